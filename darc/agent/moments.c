/* In a kernel: what all tasks do while that of a kept op has no processor, so that it can be told what whoever
 * wakes it had waited for itself (DepGraph III, DG's recursion). Part of agent.c, whose rules hold here, and those
 * of switches.c. A ring: what is too old is written over, and the debugger sees how far it goes back. */

/* Of a task that has left its processor, while the scheduler has the queue locked. The word has one byte from
 * 7.x on, with others of the task's behind it (task_struct.on_rq); before, it has four, of which one is used. */
static inline u32 is_ready(const control *ctl, u64 task)
{
    return *(const u8 *)(task + ctl->queued_of) && !(ctl->delayed_of && *(const u8 *)(task + ctl->delayed_of));
}

/* The running task's, of 16 bytes. */
static void copy_name(const control *ctl, u64 *to)
{
    const u64 *name = (const u64 *)(per_cpu(ctl->current_at) + ctl->name_of);
    to[0] = name[0];
    to[1] = name[1];
}

/* An op whose task has left, or got, a processor. Of those before the last stop none counts any more. */
static void count_away(control *ctl, u64 more)
{
    u64 before = __atomic_load_n(&ctl->away, __ATOMIC_RELAXED);
    for (u32 step = 0; step < DARC_PROBE_LIMIT; step++) {
        u64 count = before >> 16 == ctl->epoch ? before & 0xffff : 0;
        u64 after = ctl->epoch << 16 | ((count + more) & 0xffff);
        if (more != 1 && !count)
            return;
        if (__atomic_compare_exchange_n(&ctl->away, &before, after, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return;
    }
}

static inline int is_one_away(const control *ctl)
{
    return ctl->moment_room && ctl->away >> 16 == ctl->epoch && (ctl->away & 0xffff);
}

static inline struct darc_words *words_of(const control *ctl)
{
    return (struct darc_words *)((struct darc_moment *)ctl->moments + ctl->moment_room);
}

/* Its time is to be written when all else of it is. */
static struct darc_moment *begin_moment(control *ctl, const struct entered *by, u32 kind)
{
    u64 number = __atomic_fetch_add(&ctl->moment_next, 1, __ATOMIC_RELAXED) & (ctl->moment_room - 1);
    struct darc_moment *moment = (struct darc_moment *)ctl->moments + number;
    moment->time = 0;
    BARRIER();
    moment->kind = kind;
    moment->cpu = ctl->cpu_of ? *(const u32 *)(per_cpu(ctl->current_at) + ctl->cpu_of) : 0;
    moment->task = running_task(ctl);
    moment->other = 0;
    moment->how = moment->what = moment->before = 0;
    moment->stack = by->slot;
    moment->frame = by->frame;
    moment->name[0] = moment->name[1] = 0;
    if (kind == DARC_MOMENT_SWITCH || kind == DARC_MOMENT_WAKE)
        copy_stack(by, words_of(ctl)[number].words, DARC_MOMENT_WORDS);
    return moment;
}

static inline void end_moment(struct darc_moment *moment, u64 now)
{
    BARRIER();
    moment->time = now;
}

static COLD void note_switch(control *ctl, const struct entered *by, u64 now)
{
    struct darc_moment *moment = begin_moment(ctl, by, DARC_MOMENT_SWITCH);
    moment->task = *(const u32 *)(per_cpu(ctl->current_at) + ctl->id_of);
    moment->other = *(const u32 *)(by->first + ctl->id_of);
    moment->how = is_ready(ctl, by->first);
    copy_name(ctl, moment->name);
    end_moment(moment, now);
}

static COLD void note_wake(control *ctl, const struct entered *by, u64 where)
{
    struct darc_moment *moment = begin_moment(ctl, by, DARC_MOMENT_WAKE);
    moment->other = moment->task;
    moment->task = *(const u32 *)(by->first + ctl->id_of);
    moment->how = where;
    if (!where)
        copy_name(ctl, moment->name);
    end_moment(moment, tsc());
}

/* A worker, the first argument, is about to do the work that is the second one. */
static COLD void watch_work(control *ctl, const struct entered *by)
{
    if (!ctl->work_of || !is_one_away(ctl) || !is_kernel_pointer(by->first) || !is_kernel_pointer(by->second))
        return;
    struct darc_moment *moment = begin_moment(ctl, by, DARC_MOMENT_WORK);
    moment->what = *(const u64 *)(by->second + ctl->work_of);
    moment->before = *(const u64 *)(by->first + ctl->last_of);
    copy_name(ctl, moment->name);
    end_moment(moment, tsc());
}

static inline struct darc_request *request_place(const control *ctl, u64 request)
{
    struct darc_request *all = (struct darc_request *)(words_of(ctl) + ctl->moment_room);
    return &all[request * DARC_THREAD_HASH >> 32 & (DARC_REQUESTS - 1)];
}

/* Two requests at one place, or two processors there at one time, cost the knowledge of whose one was. */
static COLD void watch_disk(control *ctl, const struct entered *by)
{
    if (!ctl->moment_room)
        return;
    struct darc_request *place = request_place(ctl, by->first);
    place->request = 0;
    BARRIER();
    place->time = tsc();
    place->task = running_task(ctl);
    copy_name(ctl, place->name);
    BARRIER();
    place->request = by->first;
}

static COLD void watch_disk_end(control *ctl, const struct entered *by)
{
    if (!ctl->moment_room)
        return;
    struct darc_request *place = request_place(ctl, by->first);
    if (place->request != by->first)
        return;
    if (is_one_away(ctl)) {
        struct darc_moment *moment = begin_moment(ctl, by, DARC_MOMENT_DISK);
        moment->task = place->task;
        moment->what = place->time;
        moment->name[0] = place->name[0];
        moment->name[1] = place->name[1];
        end_moment(moment, tsc());
    }
    place->request = 0;
}
