/* What an op's thread waits for, and who releases it: the C library's locks, and futexes through its syscall(2).
 * Part of agent.c, whose rules hold here.
 *
 * Who owns a lock when a wait begins is mostly not who releases it in the end: a wait is divided among those
 * who held the lock one after the other (DepGraph III). So who is about to wait says so in a table, and who is
 * about to release looks there, and writes into the waiting op's own entry: memory does not grow with what
 * happens. Objects are read only where the library's function would read them next, and in its order: what it
 * refuses (EINVAL) may be at any address. */

/* A function of the C library was entered. */
struct entered {
    u64 first, second, third; /* its arguments */
    u64 slot;                 /* of its return address */
    u64 frame;                /* rbp */
    u32 what;                 /* enum darc_site_kind */
    u32 shift;                /* its stack goes as far as addresses have the same bits from here on */
};

/* Arguments as the entry stub has saved them, seen from the first one. */
#define SECOND (-4)
#define THIRD (-3)

#define SYS_FUTEX 202
#define FUTEX_COMMAND 127
#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_REQUEUE 3
#define FUTEX_CMP_REQUEUE 4
#define FUTEX_WAKE_OP 5
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAKE_BITSET 10
#define MUTEX_OWNER 2   /* its third word, in glibc */
#define MUTEX_KIND 4    /* and its fifth */
#define RWLOCK_WRITER 6 /* its seventh */
#define RWLOCK_KIND 12  /* and its thirteenth, */
#define WRITERS_FIRST 2 /* which is so where readers wait for writers that wait for readers */
#define WRITER_HAS 3    /* bits of the first one: a writer has it, and it is its turn */
#define CLOCKS 2        /* CLOCK_REALTIME and CLOCK_MONOTONIC are those that may be waited by */
#define NANOSECONDS 1000000000UL
#define NO_THREAD 0x7ffffffeu /* of owners from here on: a robust mutex that nobody can have */

static inline u32 hash_of(u64 object)
{
    return (u32)(object * DARC_THREAD_HASH >> DARC_WAIT_SHIFT);
}

/* Where the places begin that those look at who release what has that hash. */
static inline u32 first_place(u32 hash)
{
    return hash * (DARC_WAITERS / DARC_WAIT_HASHES);
}

/* Whose event it is: that of the thread that runs, in whatever call below f0. */
static u32 node_of(const context *ctx)
{
    const record *top = ctx && ctx->op && ctx->idle ? (const record *)ctx->top : 0;
    return top && top->open == OPEN ? top->node : DARC_NO_PARENT;
}

/* The call that the thread is in: nothing, where an exception was caught that nobody saw thrown. */
static inline u32 own_node(const context *ctx)
{
    return ctx->top ? ((const record *)ctx->top)->node : DARC_NO_PARENT;
}

/* The stack of who enters, from the return address on, to where it may end. */
static inline void copy_stack(const struct entered *by, u64 *words, u32 count)
{
    for (u32 i = 0; i < count; i++) {
        u64 at = by->slot + 8 * i;
        words[i] = (at + 7) >> by->shift == by->slot >> by->shift ? *(const u64 *)at : 0;
    }
}

/* 0: there is no room. */
static struct darc_event *note_event(control *ctl, struct darc_kept *entry, const struct entered *by, u64 object,
                                     u32 kind, u32 life, u32 node)
{
    u32 number = __atomic_fetch_add(&entry->event_count, 1, __ATOMIC_RELAXED);
    if (number >= DARC_MAX_EVENTS)
        number = DARC_FIRST_EVENTS + (number - DARC_FIRST_EVENTS) % (DARC_MAX_EVENTS - DARC_FIRST_EVENTS);
    struct darc_sheet *sheet = sheet_at(ctl, &entry->sheets[number / DARC_SHEET_EVENTS]);
    if (!sheet) {
        __atomic_fetch_add(&entry->lost_events, 1, __ATOMIC_RELAXED);
        return 0;
    }
    struct darc_event *event = &sheet->events[number % DARC_SHEET_EVENTS];
    event->time = 0;
    BARRIER();
    event->object = object;
    event->kind = kind;
    event->what = by->what;
    event->life = life;
    event->node = node;
    event->frame = by->frame;
    event->stack = by->slot;
    event->name[0] = event->name[1] = 0;
    copy_stack(by, event->words, DARC_EVENT_WORDS);
    BARRIER();
    event->time = tsc();
    return event;
}

/* It waits no more, as far as anybody is to tell it. */
static void stop_waiting(control *ctl, struct darc_kept *entry)
{
    u32 count = entry->waiter_count;
    entry->waiter_count = 0;
    for (u32 i = 0; i < count && i < 2; i++) {
        struct darc_waiter *waiter = &ctl->waiters[entry->waiters[i] % DARC_WAITERS];
        if (waiter->entry != (u64)entry)
            continue; /* the debugger has freed all of them */
        u32 hash = hash_of(waiter->object);
        waiter->object = 0;
        __atomic_fetch_sub(&ctl->waiting[hash], 1, __ATOMIC_RELAXED);
        __atomic_store_n(&waiter->entry, 0, __ATOMIC_RELEASE);
    }
}

/* Whoever is about to release the object is to tell the op of it. 0: there is no room. */
static int ask_releasers(control *ctl, struct darc_kept *entry, u64 object)
{
    u32 hash = hash_of(object);
    for (u32 step = 0; step < DARC_WAITER_STEPS && entry->waiter_count < 2; step++) {
        u32 place = (first_place(hash) + step) % DARC_WAITERS;
        u64 none = 0;
        if (ctl->waiters[place].entry
            || !__atomic_compare_exchange_n(&ctl->waiters[place].entry, &none, (u64)entry, 0,
                                            __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        ctl->waiters[place].object = object;
        entry->waiters[entry->waiter_count++] = place;
        __atomic_fetch_add(&ctl->waiting[hash], 1, __ATOMIC_ACQ_REL);
        return 1;
    }
    __atomic_fetch_add(&ctl->not_followed, 1, __ATOMIC_RELAXED);
    return 0;
}

/* The thread that runs may be about to wait for the object, and for another one after that. owner is who the
 * object says holds it, 0: it says nothing. */
static COLD void begin_wait(control *ctl, const struct entered *by, u64 object, u64 second, u32 owner)
{
    context *ctx = find_context(ctl, by->slot, 0);
    if (!ctx || !ctx->op || !ctx->idle || ctx->epoch != ctl->epoch || ctx->not_kept == ctx->serial)
        return;
    u64 state = STATE(ctx);
    ctx->idle = 0;
    BARRIER();
    struct darc_kept *entry = (struct darc_kept *)ctx->kept;
    if (is_own(ctx, entry))
        stop_waiting(ctl, entry);
    else
        entry = claim_kept(ctl, ctx);
    if (entry) {
        entry->takers = 0;
        entry->is_reader = by->what == DARC_RDLOCK;
        int is_followed = ask_releasers(ctl, entry, object);
        if (is_followed && second)
            ask_releasers(ctl, entry, second);
        note_event(ctl, entry, by, object, is_followed ? DARC_EVENT_WAIT : DARC_EVENT_UNFOLLOWED, owner,
                   own_node(ctx));
    }
    BARRIER();
    STATE(ctx) = state;
}

/* The thread that runs releases itself what it has waited for: so that wait is over, whoever has the object
 * later. */
static COLD void end_wait(control *ctl, const struct entered *by, u64 object, context *ctx,
                          struct darc_kept *entry)
{
    if (!ctx->op || !ctx->idle || !is_own(ctx, entry) || ctx->kept != (u64)entry)
        return;
    u64 state = STATE(ctx);
    ctx->idle = 0;
    BARRIER();
    stop_waiting(ctl, entry);
    note_event(ctl, entry, by, object, DARC_EVENT_RELEASE, entry->life, own_node(ctx));
    BARRIER();
    STATE(ctx) = state;
}

/* The id of the thread that runs, which may have no context; 0: nobody knows. */
static u32 own_life(control *ctl, const context *ctx, u64 stack)
{
    u64 thread = thread_of(ctl, stack);
    return ctx ? ctx->life : has_storage(ctl, thread, stack) ? life_of(ctl, thread) : 0;
}

/* Whether it matters to the op that waits at that place. Until a condition is signalled nobody waits for its
 * mutex, and one after the other takes that then. */
static int is_to_be_told(struct darc_kept *entry, u32 place, u64 object)
{
    if (entry->is_reader)
        return ((const u32 *)object)[RWLOCK_WRITER] != 0; /* which is looked at next, too */
    if (entry->waiter_count < 2)
        return 1;
    if (place == entry->waiters[0]) {
        entry->takers = DARC_TAKERS;
        return 1;
    }
    if (!entry->takers)
        return 0;
    entry->takers--;
    return 1;
}

/* The thread that runs is about to release the object. */
static void release(control *ctl, const struct entered *by, u64 object)
{
    u32 hash = hash_of(object);
    if (likely(!ctl->waiting[hash]))
        return;
    context *ctx = find_context(ctl, by->slot, 0);
    for (u32 step = 0; step < DARC_WAITER_STEPS; step++) {
        u32 place = (first_place(hash) + step) % DARC_WAITERS;
        const struct darc_waiter *waiter = &ctl->waiters[place];
        u64 at = waiter->entry - ctl->kept;
        if (waiter->object != object || at >= ctl->kept_room * sizeof(struct darc_kept)
            || at % sizeof(struct darc_kept))
            continue;
        struct darc_kept *entry = (struct darc_kept *)(ctl->kept + at);
        if (ctx && entry->owner == (u64)ctx) /* one that is free has no owner, and a thread may have no context */
            end_wait(ctl, by, object, ctx, entry);
        else if (is_to_be_told(entry, place, object))
            note_event(ctl, entry, by, object, DARC_EVENT_RELEASE, own_life(ctl, ctx, by->slot), node_of(ctx));
    }
}

static inline int watches_waits(const control *ctl)
{
    return keeps_ops(ctl) && ctl->mode == DARC_ANALYSE && ctl->thread_key == DARC_BY_FS
           && ((struct darc_live *)ctl->live)->enabled;
}

static inline int is_time(u64 time)
{
    return ((const u64 *)time)[1] < NANOSECONDS;
}

/* Whether the function looks at its object at all. An object need not be there where the call is refused. The
 * function that it is follows. */
static int looks_at_object(struct entered *by)
{
    u32 what = by->what;
    if (what < DARC_LOCK_BY_CLOCK || what == DARC_RDLOCK)
        return 1;
    int by_clock = what == DARC_LOCK_BY_CLOCK || what == DARC_RWLOCK_BY_CLOCK || what == DARC_SEM_WAIT_BY_CLOCK
                   || what == DARC_RDLOCK_BY_CLOCK;
    u64 time = by_clock ? by->third : by->second;
    int is_clock = !by_clock || (u32)by->second < CLOCKS;
    if (what == DARC_LOCK_BY_CLOCK) {
        by->what = DARC_LOCK;
        return is_clock;
    }
    if (what == DARC_RWLOCK_UNTIL || what == DARC_RWLOCK_BY_CLOCK) {
        by->what = DARC_RWLOCK;
        return !time || (is_clock && is_time(time));
    }
    if (what == DARC_RDLOCK_UNTIL || what == DARC_RDLOCK_BY_CLOCK) {
        by->what = DARC_RDLOCK;
        return !time || (is_clock && is_time(time));
    }
    by->what = DARC_SEM_WAIT;
    return is_clock && is_time(time);
}

/* Of glibc's kinds of mutexes: a function that is given none looks no further. */
static inline int is_mutex(u32 kind)
{
    return !(kind & 12) && !(kind & 64 && kind & 48);
}

/* A writer waits for whoever has it, a reader for a writer alone, unless the lock prefers these. */
static void watch_rwlock(control *ctl, struct entered *by)
{
    const u32 *words = (const u32 *)by->first;
    u32 writer = *(const volatile u32 *)&words[RWLOCK_WRITER]; /* looked at first there, too */
    if (by->what == DARC_RDLOCK && words[RWLOCK_KIND] == WRITERS_FIRST)
        by->what = DARC_RWLOCK;
    if (by->what == DARC_RWLOCK ? words[0] : (words[0] & WRITER_HAS) == WRITER_HAS)
        begin_wait(ctl, by, by->first, 0, writer);
}

static void watch_lock(control *ctl, struct entered *by)
{
    if (!watches_waits(ctl) || !looks_at_object(by))
        return;
    const u32 *words = (const u32 *)by->first;
    if (by->what == DARC_LOCK && is_mutex(words[MUTEX_KIND]) && words[0])
        begin_wait(ctl, by, by->first, 0, words[MUTEX_OWNER] < NO_THREAD ? words[MUTEX_OWNER] : 0);
    if (by->what == DARC_RWLOCK || by->what == DARC_RDLOCK)
        watch_rwlock(ctl, by);
    if (by->what == DARC_SEM_WAIT && !words[0])
        begin_wait(ctl, by, by->first, 0, 0);
    if (by->what == DARC_JOIN)
        begin_wait(ctl, by, by->first, 0, 0);
    if (by->what == DARC_UNLOCK)
        release(ctl, by, by->first);
    if (by->what == DARC_BARRIER) {
        release(ctl, by, by->first);
        begin_wait(ctl, by, by->first, 0, 0);
    }
    if (by->what == DARC_COND_WAIT) {
        release(ctl, by, by->second);
        begin_wait(ctl, by, by->first, by->second, 0);
    }
    if (by->what == DARC_END)
        release(ctl, by, fs_base(ctl)); /* in glibc a pthread_t is that */
}

/* libc's syscall has the number for its first argument: Rust's locks, atomic::wait and others' own. */
static void watch_futex(control *ctl, const struct entered *by)
{
    if (by->first != SYS_FUTEX || !watches_waits(ctl))
        return;
    u64 command = by->third & FUTEX_COMMAND;
    if (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET)
        begin_wait(ctl, by, by->second, 0, 0);
    if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET || command == FUTEX_WAKE_OP
        || command == FUTEX_REQUEUE || command == FUTEX_CMP_REQUEUE)
        release(ctl, by, by->second);
}
