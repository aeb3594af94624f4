/* What calls took is added up, and at an op's end nodes are compared: profile and votes. Part of agent.c, whose rules hold here. */

static inline u32 bin_of(const control *ctl, u64 cycles)
{
    u32 r = ctl->resolution;
    u32 bin = cycles ? (63 - (u32)__builtin_clzl(cycles)) * r : 0;
    for (u32 step = 1; step < r && cycles >= ctl->thresholds[bin + 1]; step++)
        bin++;
    return bin;
}

static inline struct darc_total *totals_of(const control *ctl, context *ctx)
{
    return (struct darc_total *)((u64)ctx + ctl->totals_at);
}

static inline void account(const control *ctl, context *ctx, u32 node, u64 latency)
{
    struct darc_sum *sum = &ctx->sums[node & ctl->node_mask];
    if (unlikely(sum->serial != ctx->serial)) { /* the op's first call of the node */
        sum->serial = ctx->serial;
        sum->max = sum->sum = latency;
        sum->calls = 1;
        return;
    }
    if (unlikely(latency > sum->max))
        sum->max = latency;
    sum->sum += latency;
    sum->calls++;
}

static inline u64 since(u64 end, u64 start, u64 cost)
{
    u64 elapsed = end - start; /* counters of two processors may differ by a little */
    return (long)elapsed > (long)cost ? elapsed - cost : 1;
}

/* A call of at least least_span has ended: of those of targets that there was no room for, the op's longest one is
 * remembered. As keep_span. */
static COLD u64 keep_call(control *ctl, context *ctx, const record *rec, u32 node, u64 start, u64 end, u64 cost)
{
    u64 own_cost = keep_span(ctl, ctx, node, start, end, cost);
    if (((const struct darc_node *)ctl->nodes)[node & ctl->node_mask].timed != DARC_OTHERS)
        return own_cost;
    u64 latency = since(end, start, cost);
    if (ctx->others_serial == ctx->serial && ctx->others_time >= latency)
        return own_cost;
    ctx->others_serial = ctx->serial;
    ctx->others_time = latency;
    ctx->others_node = node;
    ctx->others_target = rec->block;
    return own_cost;
}

/* How many cycles that takes: close_record, too. */
static COLD u64 close_tails(control *ctl, context *ctx, record *rec, u64 end)
{
    u32 count = rec->tail_count & ~DARC_LEFT;
    u64 own_cost = ctl->closing_cost;
    if (!end)
        end = tsc(); /* the site is not timed, but a tail call in its frame is */
    for (u32 i = 0; i < count && i < DARC_MAX_TAILS; i++) {
        u64 latency = since(end, rec->tails[i], rec->overhead);
        account(ctl, ctx, rec->tail_nodes[i], latency);
        own_cost += ctl->target_cost;
        if (unlikely(latency >= ctl->least_span))
            own_cost += keep_call(ctl, ctx, rec, rec->tail_nodes[i], rec->tails[i], end, rec->overhead);
    }
    return own_cost;
}

/* The frame is gone: account its call and the tail calls that took the frame over. */
static u64 close_record(control *ctl, context *ctx, record *rec, u64 end)
{
    u64 start = rec->start, own_cost = 0;
    if (start != DARC_NEVER) {
        u32 node = rec->tail_count ? rec->first_node : rec->node;
        u64 cost = rec->overhead + ctl->inner_cost, latency = since(end, start, cost);
        account(ctl, ctx, node, latency);
        if (unlikely(latency >= ctl->least_span))
            own_cost = keep_call(ctl, ctx, rec, node, start, end, cost);
    }
    if (rec->tail_count)
        own_cost += close_tails(ctl, ctx, rec, end);
    return own_cost;
}

/* Calls that were left by a longjmp: they are deeper than the frame that is known to live. They
 * ended when the jump began. */
static COLD void close_abandoned(control *ctl, context *ctx, const record *live, u64 end)
{
    u64 jump = ctx->jump_time ? ctx->jump_time : end;
    record *rec = (record *)ctx->top;
    for (u32 depth = 0; rec && rec != live && depth < DARC_MAX_DEPTH; depth++) {
        record *parent = (record *)rec->parent;
        if (rec->slot >= live->slot || !parent)
            break;
        if (rec->open == OPEN && rec->serial == ctx->serial && ctx->epoch == ctl->epoch) {
            rec->open = 0;
            parent->overhead += rec->overhead;
            close_record(ctl, ctx, rec, jump > rec->start ? jump : end);
        }
        rec = parent;
    }
    ctx->top = (u64)live;
    ctx->jump_time = 0;
}

/* A loop's calls: many, and no single one has half of their time. */
static inline int is_repeated(const control *ctl, const struct darc_sum *sum)
{
    return ctl->loops != DARC_LOOPS_PAPER && sum->calls >= DARC_REPEATED && sum->max < sum->sum - sum->max;
}

static inline u64 at_most(u64 limit, u64 value)
{
    return value < limit ? value : limit;
}

/* Of what all calls of a node took, the part of its longest one: part * max / sum. The division never faults,
 * whatever the program has written over the sums: max is less than sum, and part not more. */
static u64 share(u64 max, u64 sum, u64 part)
{
    return likely(max >= sum) ? part : scaled(at_most(sum, part), max, sum);
}

/* What a node's children are compared by. By the paper's rule the longest call of each counts. Together, the
 * calls of a loop count as one; and where the node itself is a loop's, so do those of all that it calls. */
static inline u64 contribution(const control *ctl, const struct darc_sum *node, int in_loop,
                               const struct darc_sum *child)
{
    if (in_loop)
        return child->sum;
    return is_repeated(ctl, child) ? share(node->max, node->sum, child->sum) : child->max;
}

/* The time that is the node's own: by the paper's rule what its children's longest calls leave, together what
 * all of their calls do, in its longest call or in all where that is a loop's. */
static inline u64 own_time(const control *ctl, const struct darc_sum *node, int in_loop, u64 longest, u64 all)
{
    if (ctl->loops == DARC_LOOPS_PAPER)
        return node->max - at_most(node->max, longest);
    u64 own = node->sum - at_most(node->sum, all);
    return in_loop ? own : share(node->max, node->sum, own);
}

/* Paper 3, "process_latencies": the node itself and its children compete; all in the bin of the largest get
 * a vote. */
static void vote(const control *ctl, context *ctx, u32 number)
{
    const struct darc_node *node = &((struct darc_node *)ctl->nodes)[number];
    const struct darc_sum *sum = &ctx->sums[number];
    int in_loop = is_repeated(ctl, sum);
    u64 largest = 0, longest = 0, all = 0;
    for (u32 i = 0; i < node->child_count; i++) {
        const struct darc_sum *child = &ctx->sums[node->first_child + i];
        if (child->serial != ctx->serial)
            continue;
        longest += child->max;
        all += child->sum;
        u64 part = contribution(ctl, sum, in_loop, child);
        largest = part > largest ? part : largest;
    }
    u64 own = own_time(ctl, sum, in_loop, longest, all);
    largest = own > largest ? own : largest;
    u32 bin = bin_of(ctl, largest);
    totals_of(ctl, ctx)[number].own += bin_of(ctl, own) == bin;
    for (u32 i = 0; i < node->child_count; i++) {
        u32 number_of_child = node->first_child + i;
        const struct darc_sum *child = &ctx->sums[number_of_child];
        if (child->serial == ctx->serial && bin_of(ctl, contribution(ctl, sum, in_loop, child)) == bin)
            totals_of(ctl, ctx)[number_of_child].votes++;
    }
}

/* A target that there was no room for, and that took much of an op of the peak, gets one of the places that are left for
 * such ones: others may have come first, but are not what is looked for. A decision in the middle renumbers the nodes:
 * another site may learn a target then that it never calls, but what is no site learns none. */
static COLD void give_place(const control *ctl, const context *ctx, u64 latency)
{
    const struct darc_node *node = &((const struct darc_node *)ctl->nodes)[ctx->others_node & ctl->node_mask];
    u32 number = node->first_child;
    BARRIER();
    if (ctx->others_time < latency / DARC_LONG_PART || node->timed != DARC_OTHERS || number >= ctl->site_room)
        return;
    site *s = (site *)ctl->sites + number;
    learn_target(s, ctx->others_target, s->indirect);
}

/* The thread's first op of a round: what it has of an earlier one counts no more. */
static inline void begin_round(const control *ctl, context *ctx, struct darc_total *totals, u64 round)
{
    for (u32 number = 0; number < ctl->node_count; number++)
        totals[number] = (struct darc_total){0};
    ctx->in_peak = ctx->unreported = 0;
    BARRIER();
    ctx->round = round;
}

/* What calls of each node took in the op, as long as the round goes on. */
static inline void add_sums(const control *ctl, const context *ctx, struct darc_total *totals, u64 round)
{
    for (u32 number = 0; number < ctl->node_count && round == ctl->round; number++) {
        const struct darc_sum *sum = &ctx->sums[number];
        BARRIER();
        if (sum->serial != ctx->serial)
            continue;
        struct darc_total *total = &totals[number];
        total->ops++;
        total->calls += sum->calls;
        total->sum += sum->sum;
        total->max_sum += sum->max;
    }
}

/* Whether all votes were counted. A decision in the middle renumbers the nodes: what is left of this op is
 * dropped then, and it is none of the round's. Any other stop changes nothing, as the op was over before:
 * it has all of its votes or none. Nor do calls count that were counted before the round began and
 * are not reported yet. */
static __attribute__((noinline)) int vote_all(const control *ctl, context *ctx, u64 latency)
{
    struct darc_total *totals = totals_of(ctl, ctx);
    u64 round = ctl->round;
    BARRIER(); /* read first: where no stop has come since the op began, it is the op's */
    if (ctx->epoch != ctl->epoch) {
        ctx->dropped++;
        return 0;
    }
    if (ctx->round != round)
        begin_round(ctl, ctx, totals, round);
    account(ctl, ctx, 0, latency);
    add_sums(ctl, ctx, totals, round);
    const u32 *analysis = (const u32 *)ctl->analysis;
    for (u32 i = 0; i < ctl->analysis_count && round == ctl->round; i++) {
        BARRIER();
        struct darc_sum *sum = &ctx->sums[analysis[i]];
        if (sum->serial == ctx->serial)
            vote(ctl, ctx, analysis[i]);
    }
    BARRIER();
    if (round != ctl->round) {
        ctx->dropped++;
        return 0;
    }
    ctx->in_peak++;
    if (unlikely(ctx->others_serial == ctx->serial))
        give_place(ctl, ctx, latency);
    return 1;
}
