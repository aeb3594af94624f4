/* f0: where an op begins and ends. Part of agent.c, whose rules hold here. */

/* Time is up: rings, as ring_bell. A debugger that was killed leaves the pads behind: they fall asleep
 * and pass through. One that lives but gives no sign, as its interpreter is busy, is waited for. */
static COLD u64 look_around(control *ctl, u64 now, u64 back, u64 slot)
{
    u64 next = now + ctl->patience;
    int is_late = (long)(now - ctl->deadline) >= 0;
    if ((long)(now - ctl->last_beat) > (long)ctl->patience && !debugger_lives(ctl, now)) {
        ((struct darc_live *)ctl->live)->enabled = 0;
        return 0;
    }
    ctl->wake = is_late || (long)(ctl->deadline - next) > 0 ? next : ctl->deadline;
    return is_late ? ring_bell(ctl, back, slot) : 0;
}

/* An op that an interrupt came to while the agent was at work, and took nobody knows how long: that counts as the time
 * of whatever called there. Such ops do not vote, unless most of the thread's do: with a clock that counts instructions a
 * timer's tick comes where one is read, always. */
static COLD int may_vote_interrupted(control *ctl, context *ctx)
{
    ctl->interrupted_ops++;
    return ++ctx->interrupted_ops > ctx->in_peak + DARC_FEW_INTERRUPTED;
}

/* Not where enough was seen and the debugger has not looked yet, nor where what took the time is not known. */
static inline int may_vote(control *ctl, context *ctx)
{
    return ctl->bell == DARC_QUIET && likely(!is_crowded(ctl, ctx))
           && (likely(ctx->interrupted != ctx->serial) || may_vote_interrupted(ctl, ctx));
}

/* What the probes of its calls cost is taken out of an op's latency. For one of 20,000 short calls that is
 * most of it, and as it was measured at a call that overlaps with nothing (calibrate.c) too much: 4–10 % were
 * seen, with which nine in ten ops of such a loop fell short of their peak. */
static inline int is_of_peak(const control *ctl, u64 latency, u64 overhead)
{
    u64 doubt = overhead >> 3;
    return latency + doubt >= ctl->peak_low && latency - at_most(latency, doubt) < ctl->peak_high;
}

static inline u64 at_least(u64 limit, u64 value)
{
    return value > limit ? value : limit;
}

/* What is taken out of an op for the probes of its calls was measured once, at calls that do nothing, and may be more
 * than they cost now: an emulator's pads were measured at 560 cycles and at 1310 on the same machine. As nothing was
 * timed in them yet, ops took least_op or more, and where not even half of that is left of an op, it counts as one of
 * the fastest of these. */
static inline u64 latency_of(control *ctl, const record *rec, u64 end)
{
    u64 latency = since(end, rec->start, rec->overhead + ctl->inner_cost);
    if (unlikely(latency < ctl->least_op / 2) && rec->overhead) {
        latency = at_most(since(end, rec->start, ctl->inner_cost), ctl->least_op);
        ctl->overdrawn_ops++; /* a lost count does no harm */
    }
    return at_least(ctl->tsc_step, latency);
}

/* A stop is nothing that the program did: what its timers and its clients had for it to do meanwhile, all threads
 * begin at once when it goes on, and wait for each other as they never do else. Each has some calls to catch up with. */
static COLD int is_of_herd(control *ctl, context *ctx, u64 start, u64 end, u32 most)
{
    u64 from = start > ctl->resumed ? start : ctl->resumed, to = end < ctl->settled ? end : ctl->settled;
    if (to <= from || to - from <= (end - start) / DARC_HERD_PART)
        return 0;
    if (ctx->held_up_at != ctl->resumed) {
        ctx->held_up_at = ctl->resumed;
        ctx->held_up = 0;
    }
    if (ctx->held_up >= most)
        return 0;
    ctx->held_up++;
    ctl->unsettled_calls++; /* a lost count does no harm */
    return 1;
}

static inline int is_unsettled(control *ctl, context *ctx, u64 start, u64 end, u32 most)
{
    return unlikely((long)(ctl->settled - start) > 0) && is_of_herd(ctl, ctx, start, end, most);
}

/* As ring_bell. */
static u64 finish_op(control *ctl, context *ctx, record *rec, u64 end, u64 back)
{
    u64 latency = latency_of(ctl, rec, end);
    if (unlikely(rec->tail_count))
        close_tails(ctl, ctx, rec, end);
    if (unlikely(ctx->interrupted == ctx->serial))
        account_asides(ctl, ctx, rec, end);
    ctx->op = 0;
    u64 rings = 0;
    if (unlikely((long)(end - ctl->wake) > 0))
        rings = look_around(ctl, end, back, rec->slot);
    if (is_unsettled(ctl, ctx, rec->start, end, DARC_HERD_OPS)) {
        if (ctx->kept)
            forget_op(ctl, ctx);
        return rings;
    }
    ctx->sum += latency;
    ctx->bins[bin_of(ctl, latency)]++;
    if (ctl->mode != DARC_PROFILE) {
        int is_voted = is_of_peak(ctl, latency, rec->overhead) && may_vote(ctl, ctx) && vote_all(ctl, ctx, latency);
        if (keeps_ops(ctl))
            end_kept(ctl, ctx, rec, end, latency, is_voted);
        if (!is_voted)
            return rings;
    }
    ctx->idle = DARC_FREE;
    return count_seen(ctl, ctx, back, rec->slot) | rings;
}

/* Is the op that this context holds still running above us? Its stack word may only be read where
 * it is certainly mapped: on our own page, or on a kernel's stack, which is mapped as a whole.
 * Elsewhere it is taken to run; the debugger, which can read any address safely, clears what is
 * stale. */
static inline int op_runs(const control *ctl, const record *op, u64 slot)
{
    if (op->slot <= slot || op->open != OPEN)
        return 0;
    if (PAGE(op->slot) == PAGE(slot) || ctl->thread_key == DARC_BY_STACK)
        return *(u64 *)op->slot == op->pad_back;
    return 1;
}

/* The op that this context holds has no end: an exception was caught out of sight, code has jumped out, or
 * its frame was copied away and another coroutine's is there. */
static COLD void count_left(control *ctl, const context *ctx, const record *op)
{
    if (op->open == HIDDEN)
        ctl->lost_ops++;
    else if (ctx->epoch == ctl->epoch)
        ctl->left_ops++;
}

/* An op begins at a call that returns to back, by a landing where there is one. */
static inline void begin_op(control *ctl, context *ctx, site *s, record *rec, u64 back, u64 landing)
{
    ctx->idle = 0;
    BARRIER(); /* before the serial is read: a handler's op has one of its own */
    u64 state = (u64)IDLE << 32 | (ctx->serial + 1);
    rec->context = (u64)ctx;
    rec->site = (u64)s;
    rec->back = back;
    rec->pad_back = landing ? landing + DARC_LANDING_BACK : s->pad_back;
    rec->overhead = 0;
    rec->parent = 0;
    rec->node = 0;
    rec->tail_count = 0;
    ctx->epoch = ctl->epoch;
    STATE(rec) = state;
    ctx->top = (u64)rec;
    BARRIER(); /* an interrupt that finds an op goes to its innermost call */
    ctx->op = (u64)rec;
    ctx->jump_time = 0;
    BARRIER();
    STATE(ctx) = state;
}

static inline record *enter_f0(control *ctl, site *s, u64 slot)
{
    if (unlikely(!((struct darc_live *)ctl->live)->enabled))
        return 0;
    if (ctl->thread_key == DARC_BY_STACK && !is_watched(ctl))
        return 0;
    context *ctx = watched_context(ctl, slot);
    if (unlikely(!ctx))
        return 0;
    /* Read once: a process that shares the memory, and the thread pointer, may end it just now. */
    const record *op = (const record *)__atomic_load_n(&ctx->op, __ATOMIC_RELAXED);
    if (op && ctx->stale != ctx->serial && op_runs(ctl, op, slot))
        return 0; /* recursion: only the outermost call is an operation */
    u64 back = *(u64 *)slot, landing = 0;
    if (back == s->pad_back || own_back(ctl, back))
        return 0; /* a tail loop to f0's first byte, or a tail call in a frame that is timed already */
    if (unlikely(op))
        count_left(ctl, ctx, op);
    record *rec = place(ctl, slot, 0);
    if (unlikely(rec->slot != slot))
        rec = claim_record(ctl, slot);
    if (unlikely(!rec))
        return 0;
    if (s->landings && !(landing = claim_landing(ctl, s, back, 0)))
        return 0;
    begin_op(ctl, ctx, s, rec, back, landing);
    if (landing) {
        *(volatile u64 *)slot = landing + DARC_LANDING_ENTER; /* the pad goes on there */
        if (unlikely(!__atomic_load_n(&((struct darc_live *)ctl->live)->enabled, __ATOMIC_RELAXED))) {
            *(volatile u64 *)slot = back; /* as in show_record: no frame is to lead there any more */
            return 0;
        }
    }
    return rec;
}

/* As ring_bell. */
static __attribute__((noinline)) u64 leave_f0(control *ctl, context *ctx, record *rec, u64 end)
{
    u64 rings = 0;
    ctx->idle = 0;
    BARRIER();
    rec->open = 0;
    if (unlikely(ctx->top != (u64)rec))
        close_abandoned(ctl, ctx, rec, end);
    if (likely(ctx->epoch == ctl->epoch)) {
        rings = finish_op(ctl, ctx, rec, end, rec->back);
    } else {
        ctx->dropped++;
        ctx->op = 0;
        if (ctx->kept)
            forget_op(ctl, ctx);
    }
    ctx->top = 0;
    BARRIER();
    ctx->idle = DARC_FREE; /* alone: where it was so before, a handler's op has taken the next serial */
    return rings;
}
