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
    u64 way;                  /* a hash of from where; 0: not asked yet */
};

/* Arguments as the entry stub has saved them, seen from the first one. */
#define SECOND (-4)
#define THIRD (-3)

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

/* A hash of from where something was entered: of those words of a stack that are addresses in files' code. */
static COLD u64 way_of(const control *ctl, const u64 *words, u32 count)
{
    u64 way = 0;
    for (u32 i = 0; i < count; i++)
        if (!i || ordinary(ctl, words[i]))
            way = (way ^ words[i] ^ i) * DARC_THREAD_HASH + 1;
    return way;
}

static u64 own_way(const control *ctl, struct entered *by)
{
    if (!by->way) {
        u32 count = 1;
        while (count < DARC_EVENT_WORDS && (by->slot + 8 * count + 7) >> by->shift == by->slot >> by->shift)
            count++;
        by->way = way_of(ctl, (const u64 *)by->slot, count);
    }
    return by->way;
}

/* Of what happens now; what was entered tells the rest. */
struct happening {
    u64 object;
    u64 time;
    u32 kind; /* enum darc_event_kind */
    u32 life, node;
};

static struct darc_event *event_at(const control *ctl, const struct darc_kept *entry, u32 number)
{
    u32 sheet = entry->sheets[number / DARC_SHEET_EVENTS];
    return sheet ? &((struct darc_sheet *)ctl->sheets)[sheet - 1].events[number % DARC_SHEET_EVENTS] : 0;
}

static int is_alike(const control *ctl, struct darc_event *event, struct entered *by, const struct happening *now)
{
    if (event->object != now->object || event->kind != now->kind || event->what != by->what
        || event->node != now->node || !event->time || event->words[0] != *(const u64 *)by->slot)
        return 0;
    if (!event->way)
        event->way = way_of(ctl, event->words, DARC_EVENT_WORDS);
    return event->way == own_way(ctl, by);
}

/* The one that it can be added to: of the same thread, else of any, if that counts; a release, to one of the same
 * wait. 0: none. */
static COLD struct darc_event *alike(const control *ctl, const struct darc_kept *entry, struct entered *by,
                                     const struct happening *now)
{
    struct darc_event *found = 0;
    for (u32 number = 0; number < DARC_MAX_EVENTS && number < entry->event_count && ctl->code_count; number++) {
        struct darc_event *event = event_at(ctl, entry, number);
        if (!event)
            break;
        if ((now->kind == DARC_EVENT_RELEASE && event->time < entry->began) || !is_alike(ctl, event, by, now))
            continue;
        if (event->life == now->life || now->kind != DARC_EVENT_RELEASE)
            return event;
        found = found ? found : event;
    }
    return found;
}

/* For how long whoever releases now had the object, if the one before released it to him. */
static inline u64 held_until(struct darc_kept *entry, u64 time)
{
    return time - __atomic_exchange_n(&entry->since, time, __ATOMIC_ACQ_REL);
}

/* Whether so many more can be written down one by one. */
static inline int has_room(control *ctl, struct darc_kept *entry, u32 more)
{
    u32 number = entry->event_count + more - 1;
    return number < DARC_MAX_EVENTS && sheet_at(ctl, entry, number / DARC_SHEET_EVENTS);
}

/* What its thread waits for first: a condition, where it is to have a mutex after that. */
static inline int is_what_it_waits_for(const control *ctl, const struct darc_kept *entry, u64 object)
{
    return entry->waiter_count < 2 || ctl->waiters[entry->waiters[0] % DARC_WAITERS].object == object;
}

/* 1 where it is added to another one: when there are some, of the same thread; of any, when there is no room, and of
 * a condition's mutex, which all have who are woken. */
static int add_event(control *ctl, struct darc_kept *entry, struct entered *by, const struct happening *now)
{
    int is_release = now->kind == DARC_EVENT_RELEASE, is_full = !has_room(ctl, entry, 1 + is_release);
    if (entry->event_count < DARC_APART_EVENTS || (!is_release && !is_full))
        return 0;
    struct darc_event *event = alike(ctl, entry, by, now);
    if (!event || (event->life != now->life && !is_full && is_what_it_waits_for(ctl, entry, now->object)))
        return 0;
    __atomic_fetch_add(&event->held, is_release ? held_until(entry, now->time) : 1, __ATOMIC_RELAXED);
    if (!is_release)
        return 1;
    if (event->life != now->life)
        event->life = 0;
    event->time = now->time;
    return 1;
}

static int is_one_way(const control *ctl, struct darc_event *one, struct darc_event *other)
{
    struct entered by = {.what = other->what, .slot = (u64)other->words, .way = other->way};
    struct happening then = {other->object, other->time, other->kind, other->life, other->node};
    if (!other->way)
        by.way = other->way = way_of(ctl, other->words, DARC_EVENT_WORDS);
    return is_alike(ctl, one, &by, &then);
}

/* Whether it is a release of this wait, and another thread's. */
static inline int is_of_this_wait(const struct darc_kept *entry, const struct darc_event *event)
{
    return event->kind == DARC_EVENT_RELEASE && event->time >= entry->began && event->life != entry->life;
}

/* One of those before that number from the same place. 0: there is none. */
static struct darc_event *earlier(const control *ctl, const struct darc_kept *entry, u32 number)
{
    struct darc_event *event = event_at(ctl, entry, number);
    for (u32 before = 0; before < number; before++) {
        struct darc_event *other = event_at(ctl, entry, before);
        if (is_of_this_wait(entry, other) && is_one_way(ctl, other, event))
            return other;
    }
    return 0;
}

static void add_to(struct darc_event *one, const struct darc_event *other)
{
    one->held += other->held;
    one->time = other->time > one->time ? other->time : one->time;
    one->first = other->first < one->first ? other->first : one->first;
    one->life = one->life == other->life ? one->life : 0;
}

/* Releases of this wait from one place are added up, whatever their threads, so that there is room for one from
 * another place: for whom was waited is told by functions first. Whoever signals a condition comes before those who
 * then have its mutex. 0: none. */
static COLD struct darc_event *freed(const control *ctl, const struct darc_kept *entry, u64 object)
{
    struct darc_event *of_mutex = 0;
    int is_signal = is_what_it_waits_for(ctl, entry, object);
    for (u32 number = 0; number < DARC_MAX_EVENTS && number < entry->event_count && ctl->code_count; number++) {
        struct darc_event *event = event_at(ctl, entry, number), *other;
        if (!event)
            break;
        if (!is_of_this_wait(entry, event))
            continue;
        if ((other = earlier(ctl, entry, number))) {
            add_to(other, event);
            return event;
        }
        of_mutex = is_signal && event->object != object ? event : of_mutex;
    }
    return of_mutex;
}

/* Where it is to be written: where there is no room, in the place of an older release. 0: nowhere. The thread's own
 * release, with which the wait is over, finds a place that no other one has taken. */
static struct darc_event *place_for_event(control *ctl, struct darc_kept *entry, const struct happening *now)
{
    int is_release = now->kind == DARC_EVENT_RELEASE, is_own = is_release && now->life == entry->life;
    if (has_room(ctl, entry, is_release && !is_own ? 2 : 1)) {
        u32 number = __atomic_fetch_add(&entry->event_count, 1, __ATOMIC_RELAXED);
        if (number < DARC_MAX_EVENTS && sheet_at(ctl, entry, number / DARC_SHEET_EVENTS))
            return event_at(ctl, entry, number);
    }
    if (is_own)
        return 0;
    struct darc_event *event = is_release ? freed(ctl, entry, now->object) : 0;
    if (event)
        return event;
    u32 lost = __atomic_fetch_add(&entry->lost_events, 1, __ATOMIC_RELAXED);
    for (u32 step = 0; step < DARC_FIRST_EVENTS; step++) {
        u32 number = DARC_FIRST_EVENTS + (lost + step) % (DARC_MAX_EVENTS - DARC_FIRST_EVENTS);
        event = number < entry->event_count ? event_at(ctl, entry, number) : 0;
        if (event && event->kind == DARC_EVENT_RELEASE)
            return event;
    }
    if (is_release)
        held_until(entry, now->time); /* by one who will not be known, and by nobody else */
    entry->lost_waits += !is_release;
    return 0;
}

/* 0: it was added to another one, or there is no room. */
static struct darc_event *note_event(control *ctl, struct darc_kept *entry, struct entered *by,
                                     const struct happening *now)
{
    if (by->what != DARC_WAKE && add_event(ctl, entry, by, now))
        return 0;
    struct darc_event *event = place_for_event(ctl, entry, now);
    if (!event)
        return 0;
    event->time = 0;
    BARRIER();
    event->object = now->object;
    event->kind = now->kind;
    event->what = by->what;
    event->life = now->life;
    event->node = now->node;
    event->frame = by->frame;
    event->stack = by->slot;
    event->held = now->kind == DARC_EVENT_RELEASE ? held_until(entry, now->time) : 0;
    event->way = 0;
    event->first = now->time;
    event->name[0] = event->name[1] = 0;
    copy_stack(by, event->words, DARC_EVENT_WORDS);
    BARRIER();
    event->time = now->time;
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
static COLD void begin_wait(control *ctl, struct entered *by, u64 object, u64 second, u32 owner)
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
        struct happening now = {object, tsc(), is_followed ? DARC_EVENT_WAIT : DARC_EVENT_UNFOLLOWED, owner,
                                own_node(ctx)};
        entry->since = entry->began = now.time;
        note_event(ctl, entry, by, &now);
    }
    BARRIER();
    STATE(ctx) = state;
}

/* The thread that runs releases itself what it has waited for: so that wait is over, whoever has the object
 * later. */
static COLD void end_wait(control *ctl, struct entered *by, u64 object, context *ctx, struct darc_kept *entry)
{
    if (!ctx->op || !ctx->idle || !is_own(ctx, entry) || ctx->kept != (u64)entry)
        return;
    u64 state = STATE(ctx);
    ctx->idle = 0;
    BARRIER();
    stop_waiting(ctl, entry);
    struct happening now = {object, tsc(), DARC_EVENT_RELEASE, entry->life, own_node(ctx)};
    note_event(ctl, entry, by, &now);
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
static void release(control *ctl, struct entered *by, u64 object)
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
        else if (is_to_be_told(entry, place, object)) {
            struct happening now = {object, tsc(), DARC_EVENT_RELEASE, own_life(ctl, ctx, by->slot), node_of(ctx)};
            note_event(ctl, entry, by, &now);
        }
    }
}

static inline int watches_waits(const control *ctl)
{
    return keeps_ops(ctl) && ctl->mode == DARC_ANALYSE && ctl->thread_key == DARC_BY_STORAGE
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
        release(ctl, by, thread_pointer(ctl)); /* in glibc a pthread_t is that */
}

/* libc's syscall has the number for its first argument: Rust's locks, atomic::wait and others' own. */
static void watch_futex(control *ctl, struct entered *by)
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
