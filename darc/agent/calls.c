/* Call sites: calls, tail calls and returns below f0. Part of agent.c, whose rules hold here. */

/* The open record of the frame that makes the call, where this very frame is on the path. The word
 * in its slot is the proof: it is a pad's return address only when the frame was entered through
 * that pad. Calls from elsewhere, recursion past a leaf (paper 3.5), frames of a coroutine or a
 * signal handler fail it. */
static record *path_parent(const control *ctl, u64 slot)
{
    record *rec = find_record(ctl, slot);
    if (!rec || *(u64 *)slot != rec->pad_back)
        return 0;
    context *ctx = (context *)rec->context;
    if (STATE(rec) != STATE(ctx) || !ctx->op || ctx->epoch != ctl->epoch)
        return 0;
    return rec;
}

static inline void open_call(const site *s, context *ctx, record *parent, u32 node, record *rec, u64 cost)
{
    u64 state = open_state(parent);
    ctx->idle = 0;
    BARRIER();
    parent->overhead += cost;
    rec->context = (u64)ctx;
    rec->site = (u64)s;
    rec->pad_back = s->pad_back;
    rec->start = DARC_NEVER;
    rec->overhead = 0;
    rec->parent = (u64)parent;
    rec->node = node;
    rec->tail_count = 0;
    STATE(rec) = state;
    ctx->top = (u64)rec;
    BARRIER();
    STATE(ctx) = state;
}

/* Zero: pass through. Else the call's record, to write the start into; bit 0: do not time it.
 * The stub for direct calls does the same itself where nothing is out of the ordinary. */
ENTRY u64 darc_enter(site *s, u64 parent_slot, u64 slot, u64 target)
{
    control *ctl = (control *)s->control;
    record *parent = path_parent(ctl, parent_slot);
    if (!parent)
        return 0;
    u32 node = child_node(ctl, s, parent->node, target);
    if (node == NO_NODE || ((struct darc_node *)ctl->nodes)[node].timed == DARC_PASSES) {
        parent->overhead += ctl->pass_cost;
        return 0;
    }
    context *ctx = (context *)parent->context;
    record *rec = claim_record(ctl, slot);
    if (!rec) {
        spoil_op(ctl, ctx);
        return 0;
    }
    if (ctx->top != (u64)parent) {
        ctx->idle = 0;
        BARRIER();
        close_abandoned(ctl, ctx, parent, tsc());
        BARRIER();
        ctx->idle = IDLE;
    }
    parent->below = (u64)rec;
    rec->block = target;
    open_call(s, ctx, parent, node, rec, s->indirect ? ctl->indirect_cost : ctl->slow_cost);
    return (u64)rec | !((struct darc_node *)ctl->nodes)[node].timed;
}

/* The call ends for its parent, whose own time it is not. */
static inline void close_call(control *ctl, context *ctx, record *parent, record *rec, u64 end)
{
    parent->overhead += rec->overhead + (rec->start != DARC_NEVER ? ctl->full_cost : ctl->path_cost);
    parent->overhead += close_record(ctl, ctx, rec, end);
}

/* cost is what it takes the caller more than in the stub. */
static inline void leave_call(control *ctl, context *ctx, record *rec, u64 end, u64 cost)
{
    record *parent = (record *)rec->parent;
    u64 state = open_state(rec);
    ctx->idle = 0;
    BARRIER();
    rec->open = 0;
    if (ctx->top != (u64)rec)
        close_abandoned(ctl, ctx, rec, end ? end : tsc());
    if (ctx->epoch == ctl->epoch)
        close_call(ctl, ctx, parent, rec, end);
    parent->overhead += cost;
    ctx->top = (u64)parent;
    BARRIER();
    STATE(ctx) = state;
}

/* A call's frame is gone; the pad has put the return address back. end is 0 where no TSC was read.
 * The stub does the same itself where nothing is out of the ordinary. */
ENTRY void darc_return(site *s, u64 slot, u64 end)
{
    control *ctl = (control *)s->control;
    record *rec = find_record(ctl, slot);
    if (!rec || rec->site != (u64)s || rec->open != OPEN)
        return;
    context *ctx = (context *)rec->context;
    if (STATE(rec) == STATE(ctx))
        leave_call(ctl, ctx, rec, end, ctl->return_cost);
    else
        rec->open = 0;
}

/* A tail jump hands the frame over: nothing on the stack changes, and the time of the function
 * jumped to ends when the frame does. Its pad's cost is neither function's time. Of the pad, what comes
 * behind the TSC read is in what is measured of the target, as is the way back: that part is taken out of
 * the target's once, by its start. */
static void tail(control *ctl, site *s, u64 slot, u64 target)
{
    record *rec = path_parent(ctl, slot);
    if (!rec || rec->node == NO_NODE)
        return;
    u32 node = child_node(ctl, s, rec->node, target);
    u32 count = rec->tail_count;
    if (!count)
        rec->first_node = rec->node;
    rec->overhead += ctl->tail_cost;
    BARRIER();
    if (node == NO_NODE || count >= DARC_MAX_TAILS) {
        rec->tail_count = count | DARC_LEFT;
        rec->node = NO_NODE; /* left the ftree for good; the time stays with the last node */
        return;
    }
    rec->block = target;
    rec->tail_nodes[count] = node;
    rec->tails[count] = tsc() - rec->overhead + ctl->tail_inner;
    BARRIER();
    rec->tail_count = count + 1;
    rec->node = node;
}

ENTRY u64 darc_tail(site *s, u64 slot, u64 unused, u64 target)
{
    (void)unused;
    tail((control *)s->control, s, slot, target);
    return 0;
}
