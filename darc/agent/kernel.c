/* In a kernel: interrupts are calls of whatever they interrupt. Part of agent.c, whose rules hold here. */

/* Whom the kernel is about to call for a device's interrupt (handle_irq, arch/x86/kernel/irq_64.c, and
 * __handle_irq_event_percpu). */
static COLD u64 device_handler(const control *ctl, u64 vector)
{
    u64 line = per_cpu(ctl->vectors_at + 8 * (vector & 0xff));
    u64 action = is_kernel_pointer(line) ? *(u64 *)(line + ctl->action_at) : 0;
    return is_kernel_pointer(action) ? *(u64 *)(action + ctl->handler_at) : 0;
}

/* The innermost open call of the task makes the call. */
static inline record *enter_within(control *ctl, site *s, context *ctx, u64 slot, u64 target)
{
    record *parent = (record *)ctx->top;
    u32 node = child_node(ctl, s, parent->node, target);
    if (node == NO_NODE)
        return 0;
    record *rec = claim_record(ctl, slot);
    if (!rec) {
        spoil_op(ctl, ctx);
        return 0;
    }
    open_call(s, ctx, parent, node, rec, 0);
    return rec;
}

/* Paper 3.6: an interrupt, or the scheduler at its end, is a call that the innermost open call of the
 * interrupted task makes, wherever that stands. What interrupts an interrupt is part of it. */
static COLD record *enter_interrupt(control *ctl, site *s, u64 slot, u64 vector)
{
    if (!((struct darc_live *)ctl->live)->enabled)
        return 0;
    u64 now = tsc();
    context *ctx = find_context(ctl, per_cpu(ctl->stack_at) - 1, 0);
    if (!ctx || !ctx->op || ctx->epoch != ctl->epoch)
        return 0;
    u64 handler = s->indirect ? device_handler(ctl, vector) : 0;
    u64 target = handler ? handler : s->address;
    record *parent = (record *)ctx->top;
    if (!ctx->idle || !parent || STATE(parent) != STATE(ctx)
        || *(u64 *)parent->slot != parent->pad_back)
        parent = 0;
    record *rec = parent ? enter_within(ctl, s, ctx, slot, target) : enter_aside(ctl, s, ctx, slot);
    if (!rec)
        return 0;
    rec->back = *(u64 *)slot;
    rec->entered = now;
    rec->block = target;
    return rec;
}

/* Its pad takes longer than a call site's: what it took on the way in, it takes on the way out. */
static COLD void leave_interrupt(control *ctl, context *ctx, record *rec, u64 end)
{
    ((record *)rec->parent)->overhead += 2 * since(rec->start, rec->entered, 0);
    leave_call(ctl, ctx, rec, end, 0);
}
