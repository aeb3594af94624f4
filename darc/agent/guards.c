/* Pads at runtime libraries' doors: sandboxes, handlers, jumps and ends. Part of agent.c, whose rules hold here. */

/* A program that enters a sandbox may be killed for the agent's system calls, and one that has its own
 * dispatched to itself (as Wine does) gets those as well. libc's syscall has the number for its first
 * argument. */
static void watch_sandbox(control *ctl, u64 first_argument)
{
    if (first_argument == PR_SET_SECCOMP || first_argument == PR_SET_NO_NEW_PRIVS
        || first_argument == PR_SET_SYSCALL_USER_DISPATCH || first_argument == SYS_SECCOMP
        || first_argument == SYS_PRCTL) {
        ctl->no_calls = 1;
        ctl->bell_signal = 0;
    }
}

static int is_elsewhere(u64 signal)
{
    if (signal >= DARC_FIRST_REAL_TIME)
        return signal <= 64;
    return DARC_ELSEWHERE >> signal & 1;
}

/* Whether nobody has looked at a handler yet, which is written down then. A program may set the same few ones all
 * the time. */
static int is_first(control *ctl, u64 handler, int is_noted)
{
    for (u64 i = 0; i < DARC_MAX_HANDLERS; i++) {
        u64 known = __atomic_load_n(&ctl->handlers[i], __ATOMIC_ACQUIRE);
        if (!known && !is_noted)
            return 1;
        if (!known && __atomic_compare_exchange_n(&ctl->handlers[i], &known, handler, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return 1;
        if (known == handler)
            return 0;
    }
    return 0;
}

/* The debugger is to look before the program has a handler for faults: where an instruction is that may fault, it
 * may matter from then on. So it is before it has another one that may set threads back; of what it says of that,
 * this reads the word that sigaction reads next. */
static void watch_handlers(control *ctl, const struct entered *by)
{
    u64 signal = by->first, handler = 0;
    if (!((struct darc_live *)ctl->live)->enabled)
        return;
    if (by->what == DARC_ACTION && is_elsewhere(signal) && by->second)
        handler = *(const u64 *)by->second;
    int is_fault = signal < 64 && DARC_FAULTS >> signal & 1;
    int is_other = handler > 1 /* SIG_IGN */ && is_first(ctl, handler, 0);
    if (!is_fault && !is_other)
        return;
    if (!ctl->no_calls && system_call(SYS_GETPID, 0, 0, 0, 0, 0, 0) != ctl->process)
        return; /* a child of vfork, on its way to exec */
    if (is_other && !is_first(ctl, handler, 1))
        return;
    __atomic_fetch_or(&ctl->faults, 1UL << (signal & 63), __ATOMIC_ACQ_REL);
    if (!ctl->no_calls)
        ring(ctl);
}

/* What this thread's stack loses by a jump, or with a child of vfork that lived on it, ends now. */
static void watch_jump(control *ctl, u64 slot)
{
    context *ctx = find_context(ctl, slot, 0);
    if (ctx && (ctx->op || ctl->mode == DARC_SET) && ctx->idle)
        ctx->jump_time = tsc();
}

static void watch_exit(control *ctl, u64 slot)
{
    if (!((struct darc_live *)ctl->live)->enabled || ctl->no_calls)
        return;
    if (system_call(SYS_GETPID, 0, 0, 0, 0, 0, 0) != ctl->process) {
        watch_jump(ctl, slot);
        return;
    }
    ctl->exiting = 1;
    ring_bell(ctl, 0, 0);
}

/* The thread ends without having caught what has left its calls (pthread_exit, and a cancellation): nobody is to
 * show them. */
static COLD void leave_hidden(control *ctl, const context *ctx, u64 slot)
{
    u64 count = ctl->record_count;
    for (u64 i = 0; i < count && i < record_room(ctl); i++) {
        u64 number = ((u32 *)ctl->record_list)[i] & (record_room(ctl) - 1);
        record *rec = &((record *)ctl->records)[number];
        if (rec->open == HIDDEN && rec->context == (u64)ctx && rec->slot < slot)
            leave_behind(ctl, rec);
    }
}

/* Another thread may have what this one has used, unless it ends in the middle of an op (also exit comes
 * by there). */
static void watch_end(control *ctl, u64 slot)
{
    context *ctx = find_context(ctl, slot, 0);
    if (!ctx || !ctx->idle || (ctx->op && ((record *)ctx->op)->open == OPEN))
        return;
    ctx->op = 0;
    if (ctl->mode == DARC_SET)
        leave_hidden(ctl, ctx, slot);
    __atomic_store_n(&ctx->thread, DARC_ENDED, __ATOMIC_RELEASE);
}

static int is_of_lock(u32 kind)
{
    return (kind >= DARC_LOCK && kind <= DARC_SEM_WAIT_BY_CLOCK) || (kind >= DARC_RDLOCK && kind <= DARC_RDLOCK_BY_CLOCK);
}

/* Where a kernel tells what its processors and disks do. */
static void watch_kernel(control *ctl, u32 kind, struct entered *entered)
{
    if (kind == DARC_SWITCH)
        watch_switch(ctl, entered);
    if (kind == DARC_WAKE)
        watch_wake(ctl, entered);
    if (kind == DARC_WORK && watches_switches(ctl))
        watch_work(ctl, entered);
    if (kind == DARC_DISK && watches_switches(ctl))
        watch_disk(ctl, entered);
    if (kind == DARC_DISK_END && watches_switches(ctl))
        watch_disk_end(ctl, entered);
}

/* As ring_bell. */
static COLD u64 guard(control *ctl, const site *s, u64 slot, const u64 *first_argument, u64 frame)
{
    u64 rings = 0;
    if (s->kind == DARC_PASSED)
        return 0;
    struct entered entered = {first_argument[0], first_argument[SECOND], first_argument[THIRD], slot, frame, s->kind, 12, 0};
    if (s->kind == DARC_HIDE)
        hide(ctl, slot);
    if (s->kind == DARC_SHOW)
        rings = show(ctl, s, slot);
    if (s->kind == DARC_SANDBOX) {
        watch_sandbox(ctl, entered.first);
        watch_futex(ctl, &entered);
    }
    if (s->kind == DARC_HANDLER || s->kind == DARC_ACTION)
        watch_handlers(ctl, &entered);
    if (s->kind == DARC_JUMP)
        watch_jump(ctl, slot);
    if (s->kind == DARC_END) {
        watch_end(ctl, slot);
        watch_lock(ctl, &entered);
    }
    if (s->kind == DARC_EXIT)
        watch_exit(ctl, slot);
    if (is_of_lock(s->kind))
        watch_lock(ctl, &entered);
    watch_kernel(ctl, s->kind, &entered);
    return rings;
}
