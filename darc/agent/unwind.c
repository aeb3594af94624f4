/* Unwinders see the program's own return addresses. Part of agent.c, whose rules hold here. */

/* May the eight bytes at address be read? The kernel copies the set before it looks at how, so
 * that an unmapped address gives EFAULT and a mapped one EINVAL (as libunwind and abseil do). */
static int readable(const control *ctl, u64 address, u64 stack)
{
    if (PAGE(address) == PAGE(stack))
        return 1;
    if (ctl->no_calls) /* only the thread's own open calls are asked about then: their frames are there */
        return address - stack < NEAR_STACK;
    return system_call(SYS_RT_SIGPROCMASK, ~0UL, address, 0, 8, 0, 0) == (u64)-22;
}

/* What an unwinder that begins at stack is about to look through. */
struct unwinding {
    const control *ctl;
    u64 stack;
    u64 end;     /* no frame of this stack is there or above, but such as the thread's own open calls know of */
    u64 process; /* 0: no system call may be made */
};

/* A thread's storage lies above the stack that the C library gave it. */
static inline u64 end_of(const control *ctl, u64 stack)
{
    u64 base = ctl->thread_key == DARC_BY_STORAGE ? thread_pointer(ctl) : 0;
    return base - stack < NEAR_STACK ? base : stack + NEAR_STACK;
}

static inline struct unwinding unwinding_at(const control *ctl, u64 stack)
{
    u64 process = ctl->no_calls ? 0 : system_call(SYS_GETPID, 0, 0, 0, 0, 0, 0);
    return (struct unwinding){ctl, stack, end_of(ctl, stack), process};
}

/* Copies count words, which lie in one page, where they can be read. Frames of other threads and what was a stack
 * once may be near, and unmapped at any moment: the kernel copies, to whom a fault is nothing. */
static int fetch(const struct unwinding *at, u64 address, u64 *words, u64 count)
{
    u64 here[2] = {(u64)words, 8 * count}, there[2] = {address, 8 * count};
    if (at->process && PAGE(address) != PAGE(at->stack)) {
        u64 done = system_call(SYS_PROCESS_VM_READV, at->process, (u64)here, 1, (u64)there, 1, 0);
        if (done != (u64)-ENOSYS) /* a kernel without it */
            return done == 8 * count;
    }
    if (!readable(at->ctl, address, at->stack))
        return 0;
    for (u64 i = 0; i < count; i++)
        words[i] = ((volatile u64 *)address)[i];
    return 1;
}

/* May the word at slot be written? A program may protect a page of its stack, or of another one that is
 * near. The kernel adds nothing to it, and says EFAULT where it may not. */
static int writable(const struct unwinding *at, u64 slot)
{
    if (PAGE(slot) == PAGE(at->stack) || !at->process)
        return 1;
    return system_call(SYS_FUTEX, slot, FUTEX_WAKE_OP_PRIVATE, 0, 0, slot, FUTEX_ADD_NOTHING) != (u64)-14;
}

/* Only while it is this word: the frame may be another thread's, and gone by now. What may not be
 * written stays: an unwinder that comes as far finds a pad there. */
static inline int exchange(const struct unwinding *at, u64 slot, u64 word, u64 with)
{
    return writable(at, slot)
           && __atomic_compare_exchange_n((u64 *)slot, &word, with, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

#define FETCHED 8 /* words: of the agent's 256 bytes of stack */

/* A debugger has ended since, or room was made among the records: a coroutine's frames that were
 * copied out then may be back. */
static COLD void hide_unrecorded(const struct unwinding *at)
{
    u64 words[FETCHED], size = sizeof(words), end = at->stack + SCANNED < at->end ? at->stack + SCANNED : at->end;
    for (u64 address = at->stack & ~(size - 1); address < end; address += size) {
        if (!fetch(at, address, words, FETCHED))
            return;
        for (u64 i = 0; i < FETCHED; i++) {
            u64 back = own_back(at->ctl, words[i]);
            if (back)
                exchange(at, address + 8 * i, words[i], back);
        }
    }
}

#define SEVERAL (~0U)
#define SHOWING (~1U)

/* Which thread has hidden this call, whose serial is part of it: what an earlier one in the same slot has left
 * means nothing. A record is of 256 bytes, and has no room for it but where the last tail call of a chain is, which
 * hardly any is as long for: one that is stays hidden. */
static inline u64 *hidden_by(record *rec)
{
    return &rec->tails[DARC_MAX_TAILS - 1];
}

static inline int has_mark(const record *rec)
{
    return (rec->tail_count & ~DARC_LEFT) < DARC_MAX_TAILS;
}

static inline u64 mark_of(const record *rec, u32 who)
{
    return (u64)rec->serial << 32 | who;
}

static inline u32 who_is(const context *ctx)
{
    return ctx ? (u32)((u64)ctx >> 6) : SEVERAL;
}

/* A thread shows again what no other one has passed: fibers go from thread to thread, and stacks of others
 * may be near. What another unwinder may be in the midst of stays hidden until its frame returns; what is
 * being shown just now is waited for, as its address may come any moment. That takes a few instructions, or a
 * turn of the processor. */
static void pass_record(const control *ctl, record *rec, const context *ctx)
{
    u64 own = mark_of(rec, who_is(ctx)), before = __atomic_load_n(hidden_by(rec), __ATOMIC_ACQUIRE), begin = tsc(), with;
    do {
        while (before == mark_of(rec, SHOWING) && tsc() - begin < ctl->fresh)
            before = __atomic_load_n(hidden_by(rec), __ATOMIC_ACQUIRE);
        with = before == own || before >> 32 != own >> 32 ? own : mark_of(rec, SEVERAL);
    } while (!__atomic_compare_exchange_n(hidden_by(rec), &before, with, 0, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE));
}

/* Puts the landing's address back. What is not of this stack stays hidden: that may be of a thread which had the
 * context before, or memory may be something else by now. */
static int show_record(const struct unwinding *at, record *rec, const context *ctx)
{
    u64 back = own_back(at->ctl, rec->pad_back), own = mark_of(rec, who_is(ctx)), now = mark_of(rec, SHOWING);
    if (!back || rec->slot >= at->end || !readable(at->ctl, rec->slot, at->stack)
        || !__atomic_compare_exchange_n(hidden_by(rec), &own, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return 0;
    int is_shown = exchange(at, rec->slot, back, rec->pad_back);
    /* A debugger has taken the probes out for good while this thread stood here: nobody is there any more to hide
     * that from the next unwinder. */
    if (is_shown && !((struct darc_live *)at->ctl->live)->enabled) {
        exchange(at, rec->slot, rec->pad_back, back);
        is_shown = 0;
    }
    if (is_shown)
        rec->open = OPEN;
    if (__atomic_compare_exchange_n(hidden_by(rec), &now, is_shown ? 0 : own, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return is_shown;
    rec->open = HIDDEN; /* somebody has not waited any longer */
    exchange(at, rec->slot, rec->pad_back, back);
    return 0;
}

static inline int is_hidden_by(record *rec, const context *ctx)
{
    return rec->open == HIDDEN && has_mark(rec) && *hidden_by(rec) == mark_of(rec, who_is(ctx));
}

/* Every frame above that returns to a landing: of the current op, and also of ops that a coroutine left
 * open on this stack, of whatever thread and time. What is timed may depend on them; what an
 * unwinder finds must not. So the word in the slot decides and tells what to put there, whatever the
 * record says. Frames of other threads that happen to be near are hidden with them,
 * which costs their measurement and no more, as the word is their own return address. */
static void hide(control *ctl, u64 stack)
{
    const context *ctx = find_context(ctl, stack, 0);
    struct unwinding at = unwinding_at(ctl, stack);
    u64 count = ctl->record_count;
    for (u64 i = 0; i < count && i < record_room(ctl); i++) {
        u64 number = ((u32 *)ctl->record_list)[i] & (record_room(ctl) - 1);
        record *rec = &((record *)ctl->records)[number];
        u64 slot = rec->slot, word, back;
        int is_own = rec->open && rec->context == (u64)ctx;
        if (slot < stack || (!is_own && slot >= at.end))
            continue;
        /* In a sandbox nobody can tell what is mapped: above a thread's stack there may be holes, and
         * records of stacks that were there. */
        if (ctl->no_calls && !is_own)
            continue;
        if (rec->open && has_mark(rec))
            pass_record(ctl, rec, ctx);
        if (!fetch(&at, slot, &word, 1))
            continue;
        back = own_back(ctl, word);
        if (back && exchange(&at, slot, word, back) && rec->open == OPEN && word == rec->pad_back)
            rec->open = HIDDEN;
    }
    if (unlikely(ctl->scan && !ctl->no_calls))
        hide_unrecorded(&at);
}

/* The same for calls of a set, which know nothing of each other: all that are hidden are looked at. */
static COLD void show_members(control *ctl, context *ctx, u64 stack)
{
    struct unwinding at = unwinding_at(ctl, stack);
    u64 count = ctl->record_count;
    ctx->idle = 0;
    BARRIER();
    for (u64 i = 0; i < count && i < record_room(ctl); i++) {
        u64 number = ((u32 *)ctl->record_list)[i] & (record_room(ctl) - 1);
        record *rec = &((record *)ctl->records)[number];
        if (!is_hidden_by(rec, ctx) || rec->context != (u64)ctx)
            continue;
        if (rec->slot <= stack)
            leave_behind(ctl, rec);
        else
            show_record(&at, rec, ctx);
    }
    BARRIER();
    ctx->idle = DARC_FREE;
}

/* What threw has left a hidden call of the op: it ended, and so did the op where it is f0's. As ring_bell. */
static u64 close_hidden(control *ctl, context *ctx, const site *s, record *rec, u64 stack, u64 now)
{
    rec->open = 0;
    if (ctx->epoch != ctl->epoch)
        return 0;
    if (rec != (record *)ctx->op) {
        ((record *)rec->parent)->overhead += rec->overhead;
        close_record(ctl, ctx, rec, now);
        return 0;
    }
    u64 rings = finish_op(ctl, ctx, rec, now, s->address);
    if (rings)
        ctl->bell_slot = stack - 8; /* f0's is gone */
    return rings;
}

/* The handler's frame has its stack pointer at stack: frames below are gone, frames above go on. Whoever
 * rings does so in the stub of this guard, and goes on there. As ring_bell. */
static u64 show(control *ctl, const site *s, u64 stack)
{
    context *ctx = find_context(ctl, stack, 0);
    if (ctx && ctx->idle && ctl->mode == DARC_SET)
        show_members(ctl, ctx, stack);
    if (!ctx || !ctx->op || !ctx->idle)
        return 0;
    struct unwinding at = unwinding_at(ctl, stack);
    u64 now = tsc(), rings = 0;
    record *rec = (record *)ctx->top;
    record *top = 0;
    ctx->idle = 0;
    BARRIER();
    for (u32 depth = 0; rec && depth < DARC_MAX_DEPTH; depth++) {
        record *parent = (record *)rec->parent;
        if (is_hidden_by(rec, ctx) && rec->serial == ctx->serial) {
            if (rec->slot <= stack)
                rings |= close_hidden(ctl, ctx, s, rec, stack, now);
            else if (show_record(&at, rec, ctx))
                top = top ? top : rec;
        }
        rec = parent;
    }
    ctx->top = (u64)top;
    BARRIER();
    ctx->idle = ctx->op ? IDLE : DARC_FREE;
    return rings;
}
