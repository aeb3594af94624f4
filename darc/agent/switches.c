/* In a kernel: when an op's task has no processor, and who wakes it. Part of agent.c, whose rules hold here.
 *
 * The scheduler has its queue or the task locked there, and interrupts are off: nothing here rings, waits or
 * reads what may be missing. A task's structure and where it says its stack is are the scheduler's own while
 * it has them; of stacks only the running one is read. */

static inline int watches_switches(const control *ctl)
{
    return ctl->stack_of && keeps_ops(ctl) && ctl->mode == DARC_ANALYSE && ctl->thread_key == DARC_BY_STACK
           && ((struct darc_live *)ctl->live)->enabled;
}

static inline context *context_of(control *ctl, u64 task)
{
    return find_context(ctl, *(const u64 *)(task + ctl->stack_of), 0);
}

/* An op whose task stood in the agent is not kept: what is being written down of it is not to be touched. */
static int may_write(const control *ctl, context *ctx)
{
    if (!ctx || !ctx->op || ctx->epoch != ctl->epoch || ctx->not_kept == ctx->serial)
        return 0;
    if (!ctx->idle)
        ctx->not_kept = ctx->serial;
    return ctx->idle != 0;
}

/* Room is taken at once, as who wakes the task writes there. */
static void leave_processor(control *ctl, context *ctx, u64 task, u64 now)
{
    if (!may_write(ctl, ctx))
        return;
    u64 state = STATE(ctx);
    ctx->idle = 0;
    BARRIER();
    struct darc_kept *entry = (struct darc_kept *)ctx->kept;
    if (!is_own(ctx, entry))
        entry = claim_kept(ctl, ctx);
    if (entry) {
        u32 count = entry->switch_count++;
        struct darc_switch *switches = switches_of(ctl, entry);
        if (count < DARC_MAX_SWITCHES && switches) {
            struct darc_switch *one = &switches[count];
            one->out = now;
            one->in = 0;
            one->ready = is_ready(ctl, task);
            one->next = *(const u32 *)(per_cpu(ctl->current_at) + ctl->id_of);
            copy_name(ctl, one->name);
        }
        ctx->left_serial = ctx->serial;
        ctx->left = now;
        count_away(ctl, 1);
    } else {
        ctx->not_kept = ctx->serial;
    }
    BARRIER();
    STATE(ctx) = state;
}

static void come_back(control *ctl, context *ctx, u64 now)
{
    if (!ctx || !ctx->left)
        return;
    if (ctx->epoch == ctl->epoch)
        count_away(ctl, -1UL);
    struct darc_kept *entry = (struct darc_kept *)ctx->kept;
    if (ctx->left_serial == ctx->serial && may_write(ctl, ctx) && is_own(ctx, entry)) {
        u32 last = entry->switch_count - 1;
        struct darc_switch *switches = switches_of(ctl, entry);
        if (last < DARC_MAX_SWITCHES && switches)
            switches[last].in = now;
    }
    ctx->left = 0;
}

/* The task that runs now has the processor that the first argument had. */
static COLD void watch_switch(control *ctl, struct entered *by)
{
    if (!watches_switches(ctl) || !is_kernel_pointer(by->first))
        return;
    u64 now = tsc();
    by->shift = DARC_STACK_SHIFT;
    leave_processor(ctl, context_of(ctl, by->first), by->first, now);
    if (is_one_away(ctl))
        note_switch(ctl, by, now);
    come_back(ctl, find_context(ctl, by->slot, 0), now);
}

/* Whoever runs is about to wake the first argument, if that waits for one of the second one's reasons. */
static COLD void watch_wake(control *ctl, struct entered *by)
{
    u64 task = by->first;
    if (!watches_switches(ctl) || !ctl->state_of || !is_kernel_pointer(task)
        || !(*(const u32 *)(task + ctl->state_of) & (u32)by->second)
        || per_cpu(ctl->current_at) == task)
        return;
    if (KERNEL_STACK(by->slot) == KERNEL_STACK(per_cpu(ctl->stack_at) - 1))
        by->shift = DARC_STACK_SHIFT; /* an interrupt's stack ends at some page */
    u64 where = per_cpu(ctl->preempt_at) & ctl->not_task;
    if (is_one_away(ctl))
        note_wake(ctl, by, where);
    const context *ctx = context_of(ctl, task);
    if (!ctx || !ctx->op || !ctx->left || ctx->left_serial != ctx->serial || ctx->epoch != ctl->epoch)
        return;
    struct darc_kept *entry = (struct darc_kept *)ctx->kept;
    if (!is_own(ctx, entry))
        return;
    struct happening now = {where, tsc(), DARC_EVENT_RELEASE, running_task(ctl), DARC_NO_PARENT};
    struct darc_event *event = note_event(ctl, entry, by, &now);
    if (event && !where)
        copy_name(ctl, event->name);
}
