/* How the debugger is asked to look, where there is one. Part of agent.c, whose rules hold here. */

void darc_bell(void);

/* A process that was killed is there until its parent has asked for it. It has no robust list any
 * more, which every process of glibc's has; who may not be asked about it counts as alive. */
static COLD int is_dead(u64 process)
{
    u64 head = 1, size;
    u64 result = system_call(SYS_KILL, process, 0, 0, 0, 0, 0);
    if (result && result != (u64)-EPERM)
        return 1;
    return !system_call(SYS_GET_ROBUST_LIST, process, (u64)&head, (u64)&size, 0, 0, 0) && !head;
}

/* Is there somebody who listens? Another process with the same number costs time and no more. */
static COLD int debugger_lives(const control *ctl, u64 now)
{
    if ((long)(now - ctl->last_beat) < (long)ctl->fresh)
        return 1;
    return ctl->debugger && !ctl->no_calls && !is_dead(ctl->debugger);
}

/* Asked just before the signal is sent: it is for the debugger, never for the program. Zero: the
 * debugger finds the word instead, at its next look. */
ENTRY u64 darc_may_ring(control *ctl)
{
    u64 action[4] = {0}; /* struct kernel_sigaction: the handler, flags, the restorer, a mask */
    if (debugger_lives(ctl, tsc())
        && !system_call(SYS_RT_SIGACTION, ctl->bell_signal, 0, (u64)action, 8, 0, 0)
        && action[0] <= SIG_IGNORE)
        return 1;
    u64 ringing = DARC_RINGING;
    __atomic_compare_exchange_n(&ctl->bell, &ringing, DARC_WAITING, 0, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
    return 0;
}

/* A signal whose default is to be ignored: a debugger sees it, and without one the kernel drops it.
 * It is unblocked for the moment, as worker threads often block every signal. */
static void ring(control *ctl)
{
    u64 signal = ctl->bell_signal;
    if (!signal)
        return;
    if (ctl->thread_key == DARC_BY_STACK) {
        ((struct darc_doorbell *)ctl->doorbell)->rings++; /* a debugger may watch this word */
        darc_bell();                                      /* or have a breakpoint here */
        return;
    }
    u64 bell_set = 1UL << (signal - 1), old_set = 0;
    u64 process = system_call(SYS_GETPID, 0, 0, 0, 0, 0, 0);
    u64 thread = system_call(SYS_GETTID, 0, 0, 0, 0, 0, 0);
    system_call(SYS_RT_SIGPROCMASK, SIG_UNBLOCK, (u64)&bell_set, (u64)&old_set, 8, 0, 0);
    u64 info[6] = {signal, SI_QUEUE, 0, DARC_BELL_MARK, 0, 0};
    if (darc_may_ring(ctl))
        system_call(SYS_RT_TGSIGQUEUEINFO, process, thread, signal, (u64)info, 0, 0);
    system_call(SYS_RT_SIGPROCMASK, SIG_SETMASK, (u64)&old_set, 0, 8, 0, 0);
}

/* Calls pass through for want of room: the debugger is to make some, and is told once. Whoever asks uses no
 * record afterwards. */
static COLD void ask_for_room(control *ctl, u64 what)
{
    if (!ctl->may_grow || (ctl->short_of & what))
        return;
    if (!ctl->no_calls && system_call(SYS_GETPID, 0, 0, 0, 0, 0, 0) != ctl->process)
        return; /* a child of vfork */
    if (__atomic_fetch_or(&ctl->short_of, what, __ATOMIC_ACQ_REL) == 0 && !ctl->no_calls)
        ring(ctl);
}

/* Not zero: the stub of the pad that returns to back is to ring, with that control structure. The
 * debugger can lead the thread from there to back at once (struct darc_parked). */
static __attribute__((noinline)) u64 ring_bell(control *ctl, u64 back, u64 slot)
{
    u64 quiet = DARC_QUIET;
    if (!__atomic_compare_exchange_n(&ctl->bell, &quiet, DARC_RINGING, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return 0;
    ctl->bell_return = back;
    ctl->bell_slot = slot;
    ctl->bell_start = tsc();
    if (back && ctl->thread_key != DARC_BY_STACK)
        return ctl->bell_signal ? (u64)ctl : 0;
    ring(ctl);
    ctl->bell_end = tsc();
    return 0;
}

/* Counts in batches, so that threads do not fight over one cache line. As ring_bell. */
static inline u64 count_seen(control *ctl, context *ctx, u64 back, u64 slot)
{
    if (likely(++ctx->unreported < ctl->batch))
        return 0;
    u64 seen = __atomic_add_fetch(&ctl->seen, ctx->unreported, __ATOMIC_ACQ_REL);
    ctx->unreported = 0;
    if (unlikely(seen >= ctl->needed && ctl->bell == DARC_QUIET))
        return ring_bell(ctl, back, slot);
    return 0;
}
