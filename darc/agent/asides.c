/* In a kernel: what interrupts an op while the agent or a pad is at work. Part of agent.c, whose rules hold here.
 *
 * With many short calls that is where most interrupts fall, and with a clock that counts instructions all: there a
 * timer's tick comes where one is read. */

/* What comes while the agent or a pad is at work is timed as well, but what is open then may be half written: it is
 * put aside, and accounted when the op ends (account_asides). What comes to that is part of it. The caller writes
 * down when, and what was called. */
static COLD record *enter_aside(control *ctl, const site *s, context *ctx, u64 slot)
{
    u32 serial = ((const record *)ctx->op)->serial;
    const record *other = (const record *)ctx->aside;
    if (other && other->open == ASIDE && other->serial == serial && other->context == (u64)ctx)
        return 0;
    if (ctx->interrupted != serial)
        ctx->aside_calls = 0;
    ctx->interrupted = serial;
    ctx->aside_calls++;
    record *rec = claim_record(ctl, slot);
    if (!rec)
        return 0;
    rec->context = (u64)ctx;
    rec->site = (u64)s;
    rec->pad_back = s->pad_back;
    rec->overhead = 0;
    rec->parent = ctx->top; /* the debugger follows it; the agent does not */
    rec->node = NO_NODE;
    rec->tail_count = 0;
    STATE(rec) = (u64)ASIDE << 32 | serial;
    ctx->aside = (u64)rec;
    return rec;
}

static COLD struct darc_aside *aside_of(context *ctx, u64 site, u64 target, u32 under)
{
    for (u32 i = 0; i < DARC_ASIDES; i++) {
        struct darc_aside *aside = &ctx->asides[i];
        if (aside->serial != ctx->interrupted) {
            *aside = (struct darc_aside){.site = site, .target = target, .serial = ctx->interrupted, .under = under};
            return aside;
        }
        if (aside->site == site && aside->target == target && aside->under == under)
            return aside;
    }
    return 0;
}

/* The innermost open call, which has in its time what came to the agent: the op itself, where no call is known to be.
 * One that is being opened or closed is none.
 * Where the agent was idle the start of such a one is read just then: before this came, and it is taken out of
 * that; or so soon behind that it comes to nothing. */
static COLD record *innermost(const context *ctx, record *op, u64 cycles)
{
    record *top = ctx->top ? (record *)ctx->top : op, *parent = (record *)top->parent;
    if ((top->open == OPEN && top->serial == op->serial) || !parent)
        return top;
    if (ctx->idle) {
        top->overhead += cycles;
        parent->overhead -= cycles; /* to which it comes when that ends */
    }
    return parent;
}

static COLD void leave_aside(control *ctl, context *ctx, record *rec, u64 end)
{
    u64 pad = 2 * since(rec->start, rec->entered, 0), taken = since(end, rec->start, 0); /* as leave_interrupt */
    record *op = (record *)ctx->op;
    rec->open = 0;
    ctx->aside = 0;
    if (!op || op->serial != rec->serial || ctx->interrupted != rec->serial || ctx->epoch != ctl->epoch)
        return;
    record *parent = innermost(ctx, op, taken + pad);
    struct darc_aside *aside = aside_of(ctx, rec->site, rec->block, parent->node);
    if (!aside)
        return;
    if (!aside->calls)
        aside->start = rec->start;
    aside->end = end;
    aside->sum += taken;
    if (taken > aside->max)
        aside->max = taken;
    aside->calls++;
    parent->overhead += pad;
}

/* Below which node. Where a call had its end already, and was not closed, it was its caller that was interrupted: it has
 * not taken as long itself (half of it: what the probes cost is not known so well). */
static COLD u32 node_of_aside(control *ctl, const context *ctx, const struct darc_aside *aside)
{
    u32 under = aside->under & ctl->node_mask;
    const struct darc_sum *sum = &ctx->sums[under];
    if (under && sum->serial == ctx->serial && sum->max < aside->max / 2)
        under = ((const struct darc_node *)ctl->nodes)[under].parent & ctl->node_mask;
    return child_node(ctl, (site *)aside->site, under, aside->target);
}

/* Whether all is known that came to the op while the agent was at work, and came neither before it had begun nor as it
 * was over. */
static COLD int knows_asides(const context *ctx, const record *rec, u64 end)
{
    u32 known = 0;
    for (u32 i = 0; i < DARC_ASIDES; i++) {
        const struct darc_aside *aside = &ctx->asides[i];
        if (aside->serial != ctx->serial)
            continue;
        if ((long)(aside->start - rec->start) < 0 || (long)(end - aside->end) < 0)
            return 0;
        known += aside->calls;
    }
    return known == ctx->aside_calls;
}

/* As account, of what came to the op while the agent was at work, as leave_interrupt would have it. */
static COLD void account_asides(control *ctl, context *ctx, const record *rec, u64 end)
{
    if (!knows_asides(ctx, rec, end))
        return;
    for (u32 i = 0; i < DARC_ASIDES; i++) {
        const struct darc_aside *aside = &ctx->asides[i];
        u32 node = aside->serial == ctx->serial ? node_of_aside(ctl, ctx, aside) : NO_NODE;
        if (node == NO_NODE)
            continue;
        account(ctl, ctx, node, aside->max);
        struct darc_sum *sum = &ctx->sums[node & ctl->node_mask];
        sum->sum += aside->sum - aside->max;
        sum->calls += aside->calls - 1;
        if (aside->sum >= ctl->least_span)
            keep_span(ctl, ctx, node, aside->start, aside->end, aside->end - aside->start - aside->sum);
    }
    ctx->interrupted = 0;
}
