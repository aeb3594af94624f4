/* A set of functions, each timed by itself (OSprof 3.1). Part of agent.c, whose rules hold here.
 *
 * A call is a record, by the slot, as one of f0 is, and comes back through a landing of its own caller: what
 * was said of f0's return (darc/pads/returns.py) holds for a thousand functions as well. There is no stack of
 * calls beside the program's: it would have to follow coroutines, and a shared return stub that asks it for the
 * way back could send the program elsewhere. So no call knows of another one:
 *   - whether a function is called within a call of its own, its block tells (the call that began last);
 *   - what probes of calls inside have cost, those within a call of their own too, one sum of the thread's
 *     tells (spent), before and after;
 *   - what an exception leaves was hidden from it, and what a longjmp leaves is found when a frame further out
 *     comes back, or when something else has its slot.
 *
 * In a kernel there are no landings: the way back of a call is in its record, which has the slot for its key and
 * is nobody else's while the frame lives. So where a pad's return address stands in the slot already, as another
 * member has jumped to this one, that record is not touched.
 */

static inline struct darc_block **blocks_of(context *ctx)
{
    return (struct darc_block **)ctx->sums;
}

/* The block that a record was opened for; 0 where it is not one of this set's. */
static inline struct darc_block *block_of(const control *ctl, const record *rec)
{
    u64 offset = rec->block - ctl->blocks;
    return offset < ctl->block_room * sizeof(struct darc_block) ? (struct darc_block *)rec->block : 0;
}

static COLD struct darc_block *claim_block(control *ctl, context *ctx, u32 member)
{
    u64 number = __atomic_fetch_add(&ctl->block_next, 1, __ATOMIC_RELAXED);
    if (number >= ctl->block_room) {
        __atomic_fetch_add(&ctl->lost_blocks, 1, __ATOMIC_RELAXED);
        return 0;
    }
    struct darc_block *block = (struct darc_block *)ctl->blocks + number;
    block->member = member + 1;
    blocks_of(ctx)[member] = block;
    return block;
}

/* The frame of an open call is gone, and did not return. */
static COLD void leave_behind(control *ctl, record *rec)
{
    struct darc_block *block = block_of(ctl, rec);
    rec->open = 0;
    if (!block)
        return;
    block->left++;
    context *ctx = (context *)rec->context;
    for (u32 i = 0; i < rec->tail_count && i < DARC_MAX_TAILS; i++) {
        struct darc_block *tail = blocks_of(ctx)[rec->tail_nodes[i]];
        if (tail)
            tail->left++;
    }
}

/* A longjmp has left frames that are deeper than one that comes back now, and began before it. */
static COLD void leave_jumped(control *ctl, context *ctx, const record *live)
{
    u64 count = ctl->record_count;
    for (u64 i = 0; i < count && i < record_room(ctl); i++) {
        u64 number = ((u32 *)ctl->record_list)[i] & (record_room(ctl) - 1);
        record *rec = &((record *)ctl->records)[number];
        if (rec->open == OPEN && rec->context == (u64)ctx && live->slot - rec->slot < NEAR_STACK
            && rec->slot < live->slot && rec->start > live->start && rec->start < ctx->jump_time)
            leave_behind(ctl, rec);
    }
    ctx->jump_time = 0;
}

/* Whether a call of the block's function is under way of which the one at slot is a part: only the outermost one
 * counts. On another stack, as coroutines have, another one may be: that has a record of its own. */
static inline int is_recursion(control *ctl, context *ctx, struct darc_block *block, u64 slot)
{
    record *open = (record *)block->open;
    if (likely(!open || open->serial != block->serial || open->context != (u64)ctx || !open->open))
        return 0;
    if (open->slot == slot && open->open == OPEN && *(u64 *)slot == open->pad_back)
        return 1; /* a jump to its own first byte, as loops have, or back to it from one that it has jumped to */
    if (open->slot - slot < NEAR_STACK && op_runs(ctl, open, slot))
        return 1;
    if (open->slot - slot < NEAR_STACK || open->open == HIDDEN || open->start < ctx->jump_time)
        leave_behind(ctl, open);
    return 0;
}

static inline void add_call(struct darc_block *block, u64 latency)
{
    u32 bin = 63 - (u32)__builtin_clzl(latency | 1);
    block->calls++;
    block->sum += latency;
    if (unlikely(latency > block->max))
        block->max = latency;
    u32 *count = &block->bins[likely(bin < DARC_CALL_BINS) ? bin : DARC_CALL_BINS - 1];
    *count += likely(*count != ~0u);
}

/* The call that began in this frame spans a stop, and is dropped. What is jumped to begins behind the stop. */
static COLD void take_over(control *ctl, context *ctx, record *rec, struct darc_block *block)
{
    struct darc_block *before = block_of(ctl, rec);
    if (before)
        before->dropped++;
    rec->tail_count = 0;
    rec->overhead = ctx->spent;
    rec->block = (u64)block;
    rec->entered = ctl->epoch;
    rec->start = tsc();
    block->open = (u64)rec;
    block->serial = rec->serial;
}

/* The latest that is known to have had a call's frame, plus 1; 0: none of this set's. */
static inline u32 latest_member(const control *ctl, const record *rec)
{
    if (rec->tail_count)
        return rec->tail_nodes[rec->tail_count - 1] + 1;
    const struct darc_block *block = block_of(ctl, rec);
    return block ? (u32)block->member : 0;
}

/* A function that another one has jumped to in its end returns where that does. word leads to its landing. */
static COLD void enter_tail(control *ctl, context *ctx, struct darc_block *block, u32 member, u64 slot, u64 word)
{
    record *rec = find_record(ctl, slot);
    if (!rec || rec->open != OPEN || rec->pad_back != word || rec->context != (u64)ctx)
        return;
    if (rec->entered != ctl->epoch) {
        take_over(ctl, ctx, rec, block);
        return;
    }
    if (latest_member(ctl, rec) == member + 1)
        return; /* it has jumped to its own first byte */
    if (rec->tail_count >= DARC_MAX_TAILS) {
        ctl->lost_tails++;
        return;
    }
    block->open = (u64)rec;
    block->serial = rec->serial;
    rec->tail_nodes[rec->tail_count] = member;
    rec->tails[rec->tail_count] = tsc() - ctx->spent;
    rec->tail_count++;
}

/* The member that a walk asks for the calls of. Each of its frames has a record, which tells who jumps from there;
 * where its own calls are asked for as well (free), the outermost one's alone. */
static inline int hands_on(const control *ctl, u32 member)
{
    return unlikely(ctl->from_member) && member + 1 == ctl->from_member && member >= ctl->free_members;
}

/* The record of a call that begins at slot, from where it returns to back; 0: there is none left. entered tells
 * whether a pad has entered the frame before, by where back leads: then no record is claimed for it. */
static inline record *claim_frame(control *ctl, const site *s, u64 slot, u64 back, int *entered)
{
    *entered = back == s->pad_back || own_back(ctl, back);
    if (unlikely(*entered))
        return 0;
    record *rec = place(ctl, slot, 0);
    if (unlikely(rec->slot != slot))
        rec = claim_record(ctl, slot);
    *entered = rec && back == rec->pad_back;
    return rec;
}

/* A call begins that returns to back, by a landing where there is one. */
static inline void begin_call(control *ctl, context *ctx, site *s, struct darc_block *block, record *rec, u64 back,
                              u64 landing)
{
    if (unlikely(rec->open)) { /* what stood there is gone, or was copied elsewhere */
        if (rec->open == HIDDEN || rec->start < ((context *)rec->context)->jump_time)
            leave_behind(ctl, rec);
        else
            ctl->lost_moved++;
    }
    rec->context = (u64)ctx;
    rec->site = (u64)s;
    rec->back = back;
    rec->pad_back = landing ? landing + DARC_LANDING_BACK : s->pad_back;
    rec->landing = (u32)((landing - s->landings) / DARC_LANDING_SIZE - DARC_LANDING_CALLERS);
    rec->overhead = ctx->spent;
    rec->parent = 0;
    rec->node = 0;
    rec->tail_count = 0;
    rec->entered = ctl->epoch;
    rec->block = (u64)block;
    block->open = (u64)rec;
    block->serial = ctx->serial;
    STATE(rec) = (u64)OPEN << 32 | ctx->serial;
}

static inline record *open_member(control *ctl, context *ctx, site *s, struct darc_block *block, u32 member, u64 slot)
{
    u64 back = *(u64 *)slot, landing = 0;
    int entered;
    if (!hands_on(ctl, member) && is_recursion(ctl, ctx, block, slot)) {
        block->recursions++;
        ctx->spent += ctl->member_cost / 2; /* 57 of 94 cycles were measured */
        return 0;
    }
    record *rec = claim_frame(ctl, s, slot, back, &entered);
    if (unlikely(entered)) {
        enter_tail(ctl, ctx, block, member, slot, back);
        return 0;
    }
    if (unlikely(!rec))
        return 0;
    if (s->landings && !(landing = claim_landing(ctl, s, back, block)))
        return 0;
    begin_call(ctl, ctx, s, block, rec, back, landing);
    if (landing)
        *(u64 *)slot = landing + DARC_LANDING_ENTER; /* the pad goes on there */
    return rec;
}

/* Whether the function that was jumped to at slot, where word leads to a landing, was so by the one whose calls
 * are asked for: the latest that is known to have had the frame. */
static COLD int is_handed_on(const control *ctl, u64 slot, u64 word)
{
    const record *rec = find_record(ctl, slot);
    if (!rec || rec->open != OPEN || rec->pad_back != word || rec->tail_count > DARC_MAX_TAILS)
        return 0;
    return latest_member(ctl, rec) == ctl->from_member;
}

/* Of a walk (CrossWalk 3.1): whether a call of this member is one of those that are timed now. What comes back
 * elsewhere was called elsewhere, or jumped to: that is asked for where it is known by whom. */
static inline int is_asked_for(const control *ctl, u32 member, u64 slot)
{
    if (likely(!ctl->from_count) || member < ctl->free_members || hands_on(ctl, member))
        return 1;
    u64 back = *(u64 *)slot;
    if (ctl->from_member && own_back(ctl, back))
        return is_handed_on(ctl, slot, back);
    for (u64 i = 0; i < ctl->from_count && i < DARC_MAX_FROM; i++) {
        if (back > ctl->from[i].start && back <= ctl->from[i].end)
            return 1;
    }
    return 0;
}

/* What was under way when the window began has ended by now. */
static inline void note_first(const control *ctl, context *ctx, u32 member)
{
    u32 kind = member < ctl->idle_members;
    if (ctx->first_epoch[kind] != ctl->epoch) {
        ctx->first[kind] = tsc();
        ctx->first_epoch[kind] = ctl->epoch;
    }
}

static __attribute__((noinline)) record *enter_member(control *ctl, site *s, u64 slot)
{
    if (unlikely(!((struct darc_live *)ctl->live)->enabled || ctl->mode != DARC_SET))
        return 0;
    if (ctl->thread_key == DARC_BY_STACK && !is_watched(ctl))
        return 0;
    if (unlikely(!is_asked_for(ctl, s->route_first, slot)))
        return 0;
    context *ctx = watched_context(ctl, slot);
    if (unlikely(!ctx))
        return 0;
    u32 member = s->route_first;
    if (unlikely(ctl->interrupt_members) && !is_task(ctl))
        member += ctl->interrupt_members;
    ctx->idle = 0;
    BARRIER();
    ctx->serial++;
    if (unlikely(ctl->from_count) && !hands_on(ctl, member))
        note_first(ctl, ctx, member);
    struct darc_block *block = blocks_of(ctx)[member];
    if (unlikely(!block))
        block = claim_block(ctl, ctx, member);
    record *rec = likely(block) ? open_member(ctl, ctx, s, block, member, slot) : 0;
    BARRIER();
    ctx->idle = DARC_FREE;
    return rec;
}

/* A call has ended, and those that took its frame over. */
static inline void add_ended(const control *ctl, context *ctx, struct darc_block *block, const record *rec, u64 end)
{
    u64 latency = since(end, rec->start, ctx->spent - rec->overhead + ctl->member_inner);
    add_call(block, latency);
    if (unlikely(block->member <= ctl->idle_members))
        ctx->spent += latency;
    for (u32 i = 0; unlikely(i < rec->tail_count) && i < DARC_MAX_TAILS; i++) {
        struct darc_block *tail = blocks_of(ctx)[rec->tail_nodes[i]];
        if (!tail)
            continue;
        add_call(tail, since(end - ctx->spent, rec->tails[i], 0));
        if (tail->open == (u64)rec)
            tail->open = 0;
    }
}

/* A call's frame returns. As ring_bell. */
static __attribute__((noinline)) u64 leave_member(control *ctl, record *rec, u64 end)
{
    context *ctx = (context *)rec->context;
    struct darc_block *block = block_of(ctl, rec);
    rec->open = 0;
    if (likely(block && block->open == (u64)rec))
        block->open = 0;
    if (unlikely(ctx->thread != thread_of(ctl, rec->slot) || (!ctx->idle && ctx->stuck != ctx->serial) || !block)) {
        ctl->lost_moved++;
        return 0;
    }
    u64 rings = 0;
    ctx->idle = 0;
    BARRIER();
    if (likely(rec->entered == ctl->epoch) && !is_unsettled(ctl, ctx, rec->start, end, DARC_HERD_CALLS))
        add_ended(ctl, ctx, block, rec, end);
    else
        block->dropped++;
    if (unlikely(ctx->jump_time))
        leave_jumped(ctl, ctx, rec);
    ctx->spent += ctl->member_cost;
    if (unlikely((long)(end - ctl->wake) > 0))
        rings = look_around(ctl, end, rec->back, rec->slot);
    BARRIER();
    ctx->idle = DARC_FREE;
    return rings;
}
