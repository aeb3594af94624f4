/* Ops that are kept whole: the calls of an op are written down while it runs, and at its end it is kept or
 * forgotten. Part of agent.c, whose rules hold here.
 *
 * There is one pool for all threads, so that memory does not grow with them. An op takes an entry of it
 * with its first call that is long enough, and gives it back at its end if it is not to be kept. The
 * debugger takes everything at its stops, and frees what nobody would. */

static void stop_waiting(control *ctl, struct darc_kept *entry);

static inline int is_own(const context *ctx, const struct darc_kept *entry)
{
    return entry && entry->owner == (u64)ctx && entry->serial == ctx->serial;
}

/* The sheet of an entry that has this index, once there is one. The first one is there for every entry: what it
 * waited for, without which all else tells nothing, always has room. */
static COLD struct darc_sheet *sheet_at(control *ctl, struct darc_kept *entry, u32 index)
{
    u32 *place = &entry->sheets[index], number = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (!number && !index) {
        number = (u32)(entry - (struct darc_kept *)ctl->kept) + 1;
        __atomic_store_n(place, number, __ATOMIC_RELEASE);
    }
    if (!number) {
        if (ctl->kept_room + ctl->sheet_next >= ctl->sheet_room)
            return 0;
        u64 next = ctl->kept_room + __atomic_fetch_add(&ctl->sheet_next, 1, __ATOMIC_RELAXED);
        if (next >= ctl->sheet_room)
            return 0;
        /* Where another thread is faster, this one is used by nobody. */
        if (__atomic_compare_exchange_n(place, &number, (u32)next + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            number = (u32)next + 1;
    }
    return (struct darc_sheet *)ctl->sheets + (number - 1);
}

static inline struct darc_switch *switches_of(control *ctl, struct darc_kept *entry)
{
    return (struct darc_switch *)sheet_at(ctl, entry, DARC_EVENT_SHEETS);
}

static inline u32 clipped(u64 value)
{
    return value >> 32 ? ~0u : (u32)value;
}

static inline void begin_kept(const context *ctx, struct darc_kept *entry)
{
    entry->span_count = entry->sum_count = entry->lost = entry->lost_sums = 0;
    entry->event_count = entry->lost_events = entry->waiter_count = entry->switch_count = 0;
    entry->lost_waits = 0;
    entry->life = ctx->life;
    entry->serial = ctx->serial;
}

static COLD struct darc_kept *claim_kept(control *ctl, context *ctx)
{
    struct darc_kept *pool = (struct darc_kept *)ctl->kept, *own = (struct darc_kept *)ctx->kept;
    if (own && own->owner == (u64)ctx) { /* left by an op that has no end */
        stop_waiting(ctl, own);
        begin_kept(ctx, own);
        return own;
    }
    for (u64 step = 0; step < ctl->kept_room; step++) { /* which has as good as one for each thread that waits */
        u64 place = __atomic_fetch_add(&ctl->kept_next, 1, __ATOMIC_RELAXED) % ctl->kept_room, none = 0;
        struct darc_kept *entry = &pool[place];
        if (entry->owner
            || !__atomic_compare_exchange_n(&entry->owner, &none, (u64)ctx, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_RELAXED))
            continue;
        begin_kept(ctx, entry);
        BARRIER();
        ctx->kept = (u64)entry;
        return entry;
    }
    ctx->not_kept = ctx->serial; /* what it would be told of later is not all that it waited for */
    __atomic_fetch_add(&ctl->not_kept, 1, __ATOMIC_RELAXED);
    return 0;
}

/* A call of at least least_span has ended. How many cycles that takes. */
static COLD u64 keep_span(control *ctl, context *ctx, u32 node, u64 start, u64 end, u64 cost)
{
    struct darc_kept *entry = (struct darc_kept *)ctx->kept;
    u64 own_cost = ctl->span_cost;
    if (ctx->not_kept == ctx->serial)
        return own_cost;
    if (!is_own(ctx, entry)) {
        own_cost += ctl->first_cost;
        if (!(entry = claim_kept(ctl, ctx)))
            return own_cost;
    }
    u32 count = entry->span_count;
    if (count >= DARC_MAX_SPANS) {
        entry->lost++;
        return own_cost;
    }
    entry->spans[count] = (struct darc_span){start, end, clipped(cost), node};
    BARRIER();
    entry->span_count = count + 1;
    return own_cost;
}

/* Writes down the sums of at least from cycles, and of fewer than below. */
static void keep_sums_of(const control *ctl, const context *ctx, struct darc_kept *entry, u64 from, u64 below)
{
    for (u32 number = 1; number < ctl->node_count; number++) {
        const struct darc_sum *sum = &ctx->sums[number];
        if (sum->serial != ctx->serial || sum->sum < from || sum->sum >= below)
            continue;
        if (entry->sum_count >= DARC_MAX_SUMS)
            entry->lost_sums++;
        else
            entry->sums[entry->sum_count++] = (struct darc_span){sum->sum, sum->max, sum->calls, number};
    }
}

/* Where there is no room for all, the large ones: what is missing is as nothing beside the op. */
static void keep_sums(const control *ctl, const context *ctx, struct darc_kept *entry)
{
    keep_sums_of(ctl, ctx, entry, 0, ~0ul);
    if (!entry->lost_sums)
        return;
    entry->sum_count = entry->lost_sums = 0;
    u64 below = ~0ul;
    for (u32 shift = 4; shift <= 20; shift += 4) {
        u64 from = shift < 20 ? entry->latency >> shift : 0;
        keep_sums_of(ctl, ctx, entry, from, below);
        below = from;
    }
}

/* The word of one more op among those that are chosen at random; 0: it is not to be kept. After n ops each
 * is among the kept ones with the same probability (Vitter's algorithm R). */
static u64 *random_place(struct darc_class *class, u64 end)
{
    u64 before = __atomic_fetch_add(&class->seen, 1, __ATOMIC_RELAXED);
    if (before < DARC_KEPT_OPS)
        return &class->kept[before];
    u64 random = (end * DARC_THREAD_HASH >> 32) % (before + 1);
    return random < DARC_KEPT_OPS ? &class->kept[random] : 0;
}

static u64 *place_of(struct darc_class *class, u64 latency, u64 end)
{
    const struct darc_kept *slowest = (struct darc_kept *)class->slowest;
    if (!slowest || slowest->latency < latency)
        return &class->slowest;
    return random_place(class, end);
}

static inline struct darc_kept *exchanged(u64 *place, struct darc_kept *entry)
{
    return (struct darc_kept *)__atomic_exchange_n(place, (u64)entry, __ATOMIC_ACQ_REL);
}

/* The op has ended: into which class it falls decides whether it is kept. */
static COLD void keep_op(control *ctl, context *ctx, const record *rec, u64 end, u64 latency, u32 class)
{
    struct darc_class *all = &ctl->classes[class];
    u64 *place = place_of(all, latency, end);
    struct darc_kept *entry = (struct darc_kept *)ctx->kept;
    if (!place || (!is_own(ctx, entry) && !(entry = claim_kept(ctl, ctx))))
        return;
    entry->latency = latency;
    entry->start = rec->start;
    entry->end = end;
    entry->cost = rec->overhead;
    if (ctl->id_of) /* in a kernel */
        entry->life = running_task(ctl);
    keep_sums(ctl, ctx, entry);
    stop_waiting(ctl, entry);
    ctx->kept = 0;
    struct darc_kept *other = exchanged(place, entry);
    if (other && place == &all->slowest && (place = random_place(all, end))) /* is one of the others now */
        other = exchanged(place, other);
    if (other)
        __atomic_store_n(&other->owner, 0, __ATOMIC_RELEASE);
}

static inline int keeps_ops(const control *ctl)
{
    return ctl->least_span < DARC_NEVER;
}

/* What was written down is not wanted. */
static inline void forget_op(control *ctl, context *ctx)
{
    struct darc_kept *entry = (struct darc_kept *)ctx->kept;
    ctx->kept = 0;
    if (!is_own(ctx, entry))
        return;
    stop_waiting(ctl, entry);
    __atomic_store_n(&entry->owner, 0, __ATOMIC_RELEASE);
}

/* The op has ended: is_voted where it is one of the peak's whose votes were counted. */
static COLD void end_kept(control *ctl, context *ctx, const record *rec, u64 end, u64 latency, int is_voted)
{
    if (ctx->not_kept == ctx->serial)
        forget_op(ctl, ctx);
    else if (is_voted)
        keep_op(ctl, ctx, rec, end, latency, 0);
    else if (latency >= ctl->fast_low && latency < ctl->fast_high && !is_crowded(ctl, ctx)
             && ctx->interrupted != ctx->serial) {
        keep_op(ctl, ctx, rec, end, latency, 1);
        if (ctl->classes[1].seen >= DARC_KEPT_FEW)
            ctl->fast_high = 0;
    }
    if (ctx->kept)
        forget_op(ctl, ctx);
}
