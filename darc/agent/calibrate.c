/* What a pad costs on this machine. Part of agent.c, whose rules hold here. */

#define READS 1024u /* pairs of reads, one right behind the other */

/* The shortest time but none between two reads of the TSC. Two within one step may be a cycle apart, and steps a
 * cycle longer and shorter (a virtual machine's counter is scaled). */
static u64 shortest_span(void)
{
    u64 shortest = ~0UL;
    for (u32 i = 0; i < READS; i++) {
        u64 begin = tsc(), span = tsc() - begin;
        if (span > 2 && span < shortest)
            shortest = span;
    }
    return shortest;
}

/* The cycles that the TSC goes by at once, 20 to 40 on AMD's processors, where an empty pad and one around a short
 * call are often told apart by nothing; 1 where it counts finely, and spans are no multiples of the shortest. */
static u64 tsc_step(void)
{
    u64 step = shortest_span(), same = 0, fit = 0, all = 0;
    if (step > 64)
        return 1;
    for (u32 i = 0; i < READS; i++) {
        u64 begin = tsc(), span = tsc() - begin;
        if (span > 4 * step)
            continue; /* it was interrupted */
        all++;
        fit += span % step <= 2 || step - span % step <= 1;
        same += span + 1 >= step && span <= step + 2;
    }
    return step > 8 && all - fit <= all / 64 && fit - same >= READS / 128 ? step : 1;
}

#define ROUNDS 256u

u64 darc_calibrate_once(u64 entry, u64 fake_back, control *ctl, site *parent);

ENTRY u64 darc_calibrate_open(control *ctl, u64 slot, site *parent)
{
    context *ctx = find_context(ctl, slot, 1);
    record *rec = claim_record(ctl, slot);
    if (!ctx || !rec)
        return 0;
    rec->context = (u64)ctx;
    rec->site = (u64)parent;
    rec->pad_back = parent->pad_back;
    rec->node = 0;
    rec->tail_count = 0;
    ctx->epoch = ctl->epoch;
    ctx->idle = IDLE;
    STATE(rec) = STATE(ctx);
    ctx->top = (u64)rec;
    BARRIER(); /* as in enter_f0 */
    ctx->op = (u64)rec;
    return (u64)rec;
}

/* The same of the pad of a set's function that does nothing, by the thread's first block. */
ENTRY void darc_calibrate_members(control *ctl, u64 entry, u64 bare)
{
    u64 full = ~0UL, inner = ~0UL, empty = ~0UL;
    ctl->member_inner = ctl->member_cost = 0;
    context *ctx = find_context(ctl, (u64)__builtin_frame_address(0), 1);
    if (!ctx)
        return;
    for (u32 round = 0; round < ROUNDS; round++) {
        struct darc_block *block = blocks_of(ctx)[0];
        u64 before = block ? block->sum : 0, calls = block ? block->calls : 0;
        u64 cost = darc_calibrate_once(bare, 0, ctl, 0);
        empty = cost < empty ? cost : empty;
        cost = darc_calibrate_once(entry, 0, ctl, 0);
        full = cost < full ? cost : full;
        block = blocks_of(ctx)[0];
        if (block && block->calls == calls + 1 && block->sum - before < inner)
            inner = block->sum - before;
    }
    ctl->member_cost = full > empty ? full - empty : 0;
    ctl->member_inner = inner == ~0UL ? 0 : inner;
}

/* The least that was measured. */
struct costs {
    u64 full, inner, empty, slow, first;
    u32 alike; /* how often full was */
};

static void keep_costs(control *ctl, const struct costs *least)
{
    u64 full = least->full, empty = least->empty;
    ctl->full_cost = full > empty ? full - empty : 0;
    /* A clock that counts instructions says the same each time. Another one was seen to say three times as much
     * while the host was busy. Not asked in a process, which may have forbidden itself the instruction. */
    int is_doubted = ctl->thread_key == DARC_BY_STACK && is_emulated() && least->alike < ROUNDS / 2;
    ctl->cost_doubt = is_doubted ? 2 * ctl->full_cost : 0;
    ctl->first_cost = least->first - full;
    ctl->slow_cost = least->slow > full ? least->slow - full : 0;
    ctl->inner_cost = least->inner == ~0UL ? 0 : least->inner;
}

/* Measures what a pad costs on this machine, at a site that calls nothing, or what only jumps to that: what is
 * timed of the parent's first child, and all of the pad as its caller sees it; with the stub's way into it, with
 * C's, and for an op's first call. bare is the same call without a pad. */
ENTRY void darc_calibrate(control *ctl, site *parent, u64 entry, u64 bare)
{
    struct costs least = {~0UL, ~0UL, ~0UL, ~0UL, ~0UL, 0};
    ctl->tsc_step = tsc_step();
    ctl->inner_cost = ctl->full_cost = ctl->slow_cost = 0;
    context *ctx = find_context(ctl, (u64)__builtin_frame_address(0), 1);
    if (!ctx)
        return;
    for (u32 round = 0; round < ROUNDS; round++) {
        ctx->serial += ~round & 1; /* an op's first span takes longer than those after it */
        struct darc_sum *sum = &ctx->sums[parent->first_child & ctl->node_mask];
        sum->serial = 0;
        u64 cost = darc_calibrate_once(bare, 0, ctl, parent);
        least.empty = at_most(least.empty, cost);
        cost = darc_calibrate_once(entry, parent->pad_back, ctl, parent);
        least.alike = cost < least.full ? 1 : least.alike + (cost == least.full);
        least.full = at_most(least.full, cost);
        least.first = round & 1 ? least.first : at_most(least.first, cost);
        if (sum->serial == ctx->serial)
            least.inner = at_most(least.inner, sum->max);
        if (!ctx->op)
            return; /* there is no room for a record */
        ((record *)ctx->op)->below = ctx->op; /* which is not the call's: the stub leaves it to C */
        cost = darc_calibrate_once(entry, parent->pad_back, ctl, parent);
        least.slow = at_most(least.slow, cost);
    }
    ((record *)ctx->op)->open = 0;
    ctx->op = ctx->top = 0;
    ctx->idle = DARC_FREE;
    ctx->serial++;
    keep_costs(ctl, &least);
}
