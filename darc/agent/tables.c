/* Records of open calls and contexts of threads: found, claimed, given back. Part of agent.c, whose rules hold here. */

/* STATE of an open record that was seen to be of its context's op. The debugger may have closed it since, while
 * the thread stood still in the middle of the agent: a context that took its state over from it would stand
 * inside the agent for ever. */
static inline u64 open_state(const record *rec)
{
    return STATE(rec) | (u64)IDLE << 32;
}

/* The record that has the slot as its key, or might: try step 0, 1, … */
static inline record *place(const control *ctl, u64 slot, u32 step)
{
    u64 at = ((slot * DARC_HASH >> DARC_HASH_SHIFT) + sizeof(record) * (u64)step) & ctl->record_mask;
    return (record *)(ctl->records + at);
}

static inline u64 record_room(const control *ctl)
{
    return ctl->record_mask / sizeof(record) + 1;
}

/* The program's own return address, where word is a return address that leads to a landing; else 0. (Where
 * f0's pad is about to go on in one, the word must stay as it is.) */
static u64 own_back(const control *ctl, u64 word)
{
    for (u32 i = 0; i < ctl->landing_count && i < DARC_MAX_AREAS; i++) {
        u64 offset = word - ctl->landings[i];
        if (offset >= DARC_LANDING_WORDS)
            continue;
        u32 number = (u32)offset / DARC_LANDING_SIZE, part = (u32)offset % DARC_LANDING_SIZE;
        if (number < DARC_LANDING_SITES || part != DARC_LANDING_BACK)
            return 0;
        return ((u64 *)(ctl->landings[i] + DARC_LANDING_WORDS))[number];
    }
    return 0;
}

/* Whether the word is that value now, which it was, or which it becomes where it was 0. */
static inline int claim(u64 *word, u64 value)
{
    u64 found = *word;
    if (likely(found == value))
        return 1;
    return found == 0
           && (__atomic_compare_exchange_n(word, &found, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
               || found == value);
}

/* Where a landing is looked for first. One function may have a thousand callers, and one caller, by a pointer, call
 * a thousand functions of a set. In the next analysis both are what they were; where a body is then, nobody knows. */
static inline u32 first_landing(const site *s, u64 back)
{
    return (u32)((back * DARC_HASH + s->address) * DARC_THREAD_HASH >> DARC_THREAD_SHIFT) & 1023;
}

/* Of a set, a function must not seem not to be called as none of its calls is timed. */
static COLD u64 has_no_landing(u64 *lost, u32 *of_block)
{
    __atomic_fetch_add(lost, 1, __ATOMIC_RELAXED);
    if (of_block)
        *of_block += *of_block != ~0u;
    return 0;
}

/* Whether a caller that is seen for the first time gets a landing; it is counted that it does not. */
static COLD int may_land(control *ctl, u64 back, struct darc_block *block)
{
    const struct darc_code *code = ordinary(ctl, back);
    if (!code)
        return (int)has_no_landing(&ctl->lost_foreign, block ? &block->foreign : 0);
    if (!is_behind_call(ctl, code, back))
        return (int)has_no_landing(&ctl->lost_jumps, block ? &block->jumps : 0);
    return 1;
}

/* The landing of the site's function for callers that come back to this address; it is never used for another
 * address. 0: there is none, which is counted, in the block too where there is one. */
static u64 claim_landing(control *ctl, const site *s, u64 back, struct darc_block *block)
{
    u64 *words = (u64 *)(s->landings + DARC_LANDING_WORDS) + DARC_LANDING_CALLERS;
    u64 *bodies = (u64 *)(s->landings + DARC_LANDING_BODIES);
    u32 first = first_landing(s, back), others = DARC_LANDINGS - DARC_LANDING_CALLERS - DARC_LANDING_FEW;
    for (u32 step = 0; step < 6 * DARC_PROBE_LIMIT; step++) {
        u32 number = (first + step) % DARC_LANDING_FEW;
        if (step >= DARC_PROBE_LIMIT)
            number = DARC_LANDING_FEW + (first + step) % others;
        if (unlikely(!words[number]) && !may_land(ctl, back, block))
            return 0;
        if (claim(&words[number], back) && claim(&bodies[number], s->body))
            return s->landings + (DARC_LANDING_CALLERS + number) * DARC_LANDING_SIZE;
    }
    return has_no_landing(&ctl->lost_callers, block ? &block->lost : 0);
}

static record *find_record(const control *ctl, u64 slot)
{
    for (u32 step = 0; step < DARC_PROBE_LIMIT; step++) {
        record *rec = place(ctl, slot, step);
        if (likely(rec->slot == slot))
            return rec;
        if (rec->slot == 0)
            return 0;
    }
    return 0;
}

static inline void give(u64 *pointer, u64 value)
{
    u64 none = 0;
    __atomic_compare_exchange_n(pointer, &none, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Before a record can be found: the stubs follow its pointers without a look at them. */
static void furnish(const control *ctl, record *rec)
{
    give(&rec->site, ctl->sites);
    give(&rec->below, (u64)rec);
    give(&rec->context, ctl->contexts + sizeof(struct darc_contexts));
}

static void ask_for_room(control *ctl, u64 what);

/* A key stays once it is claimed, so only the first call at a new stack depth pays the atomic. */
static __attribute__((noinline)) record *claim_record(control *ctl, u64 slot)
{
    for (u32 step = 0; step < DARC_PROBE_LIMIT; step++) {
        record *rec = place(ctl, slot, step);
        if (likely(rec->slot == slot))
            return rec;
        u64 free = rec->slot;
        if (free == 0)
            furnish(ctl, rec);
        if (free <= DARC_FREED
            && (__atomic_compare_exchange_n(&rec->slot, &free, slot, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)
                || free == slot)) {
            if (free <= DARC_FREED) {
                u64 count = __atomic_fetch_add(&ctl->record_count, 1, __ATOMIC_ACQ_REL);
                ((u32 *)ctl->record_list)[count & (record_room(ctl) - 1)] =
                    (u32)(rec - (record *)ctl->records);
            }
            return rec;
        }
    }
    __atomic_fetch_add(&ctl->lost_records, 1, __ATOMIC_RELAXED);
    ask_for_room(ctl, DARC_SHORT_OF_RECORDS);
    return 0;
}

/* A call of the op's was not timed for want of room: its time would count as its caller's own. */
static COLD void spoil_op(const control *ctl, context *ctx)
{
    ctx->spoiled = ctx->serial;
    ctx->crowded = (u32)ctl->rooms;
}

/* Nor do the thread's other ops vote until the debugger has looked for more room, if it can: those that make no such
 * call, as they were preempted elsewhere, would alone. */
static inline int is_crowded(const control *ctl, const context *ctx)
{
    return unlikely(ctx->spoiled == ctx->serial) || unlikely(ctx->crowded == (u32)ctl->rooms && ctl->may_grow);
}

/* Nothing of another thread's op is taken over, nor that it was in the agent. */
static COLD void renew(context *ctx, u32 life)
{
    ctx->op = ctx->top = 0;
    ctx->jump_time = 0;
    ctx->idle = DARC_FREE;
    ctx->serial++;
    ctx->crowded = 0;
    BARRIER();
    ctx->life = life;
}

static inline context *context_at(const control *ctl, const struct darc_contexts *table, u64 thread,
                                  u32 step)
{
    u64 index = ((thread * DARC_THREAD_HASH >> DARC_THREAD_SHIFT) + step) & table->mask;
    return (context *)((u64)(table + 1) + index * ctl->context_size);
}

/* A thread that has ended leaves its context to another one, with its totals. */
static context *claim_context(const control *ctl, struct darc_contexts *table, u64 thread)
{
    for (u32 step = 0; step < DARC_THREAD_LIMIT && step <= table->mask; step++) {
        context *ctx = context_at(ctl, table, thread, step);
        u64 free = ctx->thread, was = free;
        if ((free != 0 && free != DARC_ENDED)
            || !__atomic_compare_exchange_n(&ctx->thread, &free, thread, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE))
            continue;
        if (was == 0) {
            u64 place = __atomic_fetch_add(&table->count, 1, __ATOMIC_ACQ_REL);
            if (place <= table->mask)
                ((u32 *)table->numbers)[place] =
                    (u32)(((u64)ctx - (u64)(table + 1)) / ctl->context_size);
        }
        return ctx;
    }
    return 0;
}

static context *find_in(const control *ctl, const struct darc_contexts *table, u64 thread)
{
    for (u32 step = 0; step < DARC_THREAD_LIMIT && step <= table->mask; step++) {
        context *ctx = context_at(ctl, table, thread, step);
        if (ctx->thread == thread)
            return ctx;
        if (ctx->thread == 0)
            break;
    }
    return 0;
}

/* A context in a table that was full stays, with all that was counted there, also once its thread has
 * moved. */
static context *find_older(const control *ctl, u64 thread)
{
    u64 count = ctl->older_count;
    context *ctx = 0;
    for (u64 i = 0; !ctx && i < count && i < DARC_MAX_OLDER; i++)
        ctx = find_in(ctl, (struct darc_contexts *)ctl->older[i], thread);
    return ctx;
}

static int readable(const control *ctl, u64 address, u64 stack);

/* Whether the thread whose pointer is thread - 1 has storage there, as the ABI wants it: its first word is that
 * address. A thread may have none (clone, arch_prctl), or something else there, and is not followed. */
static COLD int has_storage(const control *ctl, u64 thread, u64 stack)
{
    u64 base = thread - 1, id = base + ctl->life_at;
    if (ctl->thread_key != DARC_BY_STORAGE)
        return 1;
    if (!base || base % 8)
        return 0;
    if (!ctl->no_calls && (!readable(ctl, base, stack) || (PAGE(id) != PAGE(base) && !readable(ctl, id, stack))))
        return 0;
    return *(u64 *)base == base;
}

static __attribute__((noinline)) context *search_context(control *ctl, u64 slot, u64 thread, int claim)
{
    struct darc_contexts *table = (struct darc_contexts *)ctl->contexts;
    context *ctx = find_in(ctl, table, thread);
    if (ctx)
        return ctx;
    context *older = find_older(ctl, thread);
    if (older && (older->op || !older->idle))
        return older;
    if (claim && !older && !has_storage(ctl, thread, slot))
        return 0;
    ctx = claim ? claim_context(ctl, table, thread) : 0;
    if (!ctx) {
        if (claim && !older) {
            __atomic_fetch_add(&ctl->lost_contexts, 1, __ATOMIC_RELAXED);
            ask_for_room(ctl, DARC_SHORT_OF_CONTEXTS);
        }
        return older;
    }
    renew(ctx, 0);
    if (older) {
        ctx->unreported += older->unreported;
        older->unreported = 0;
        __atomic_store_n(&older->thread, DARC_ENDED, __ATOMIC_RELEASE);
    }
    return ctx;
}

/* In a kernel the thread is the stack that the slot is in: an interrupt's is not its task's. */
static inline u64 thread_of(const control *ctl, u64 slot)
{
    if (likely(ctl->thread_key == DARC_BY_STORAGE))
        return thread_pointer(ctl) + 1;
    return (ctl->thread_key == DARC_BY_STACK ? KERNEL_STACK(slot) : 0) + 1;
}

/* A new thread may have the thread pointer of one that has ended. Where it is not known where threads have their
 * ids, the first word is read in place of one, which never differs. */
static inline u32 life_of(const control *ctl, u64 thread)
{
    return *(u32 *)(thread - 1 + ctl->life_at);
}

static __attribute__((noinline)) context *find_other_context(control *ctl, u64 slot, int claim)
{
    u64 thread = thread_of(ctl, slot);
    context *ctx = search_context(ctl, slot, thread, claim);
    if (!ctx || ctl->thread_key != DARC_BY_STORAGE || ctx->life == life_of(ctl, thread))
        return ctx;
    renew(ctx, life_of(ctl, thread));
    return ctx->thread == thread ? ctx : 0; /* the debugger may give it to another one just now */
}

static inline context *find_context(control *ctl, u64 slot, int claim)
{
    if (likely(ctl->thread_key == DARC_BY_STORAGE)) {
        u64 thread = thread_pointer(ctl) + 1;
        context *ctx = context_at(ctl, (struct darc_contexts *)ctl->contexts, thread, 0);
        if (likely(ctx->thread == thread && ctx->life == life_of(ctl, thread)))
            return ctx;
    }
    return find_other_context(ctl, slot, claim);
}

/* The context of a thread whose call at slot is watched; 0: it is not, or the agent is at work in it. */
static inline context *watched_context(control *ctl, u64 slot)
{
    context *ctx = find_context(ctl, slot, 1);
    if (unlikely(!ctx || (!ctx->idle && ctx->stuck != ctx->serial)))
        return 0;
    if (ctl->only_thread && ctx->thread != ctl->only_thread + 1)
        return 0;
    return ctx;
}

/* Which of the site's targets it is; one that is new takes the next of the first places. NO_NODE: they are taken. */
static u32 learn_target(site *s, u64 target, u32 places)
{
    for (;;) {
        u32 count = s->target_count;
        for (u32 i = 0; i < count && i < DARC_MAX_TARGETS; i++) {
            if (s->targets[i] == target)
                return i;
        }
        if (count >= places)
            return NO_NODE;
        u64 free = 0;
        if (__atomic_compare_exchange_n(&s->targets[count], &free, target, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)
            || free == target) {
            __atomic_compare_exchange_n(&s->target_count, &count, count + 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE);
            return count;
        }
        __atomic_compare_exchange_n(&s->target_count, &count, count + 1, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE);
    }
}

static inline u32 bits(u32 word)
{
    word -= word >> 1 & 0x55555555;
    word = (word & 0x33333333) + (word >> 2 & 0x33333333);
    return ((word + (word >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

/* Paper 3.1: the same site is another fnode under another parent. */
static inline u32 child_node(control *ctl, site *s, u32 parent, u64 target)
{
    const struct darc_route *routes = (struct darc_route *)ctl->routes + s->route_first;
    for (u32 i = 0; i < s->route_count; i++) {
        if (routes[i].parent != parent)
            continue;
        if (!s->indirect)
            return routes[i].child;
        u32 lanes = routes[i].lanes;
        u32 index = learn_target(s, target, s->indirect - s->indirect / DARC_LATE_TARGETS);
        if (index == NO_NODE || !(lanes >> index & 1)) {
            index = s->indirect & 31; /* all others': whose time it is, not the caller's own */
            if (!(lanes >> index & 1))
                return NO_NODE;
            s->overflow++; /* a lost count does no harm */
        }
        return routes[i].child + bits(lanes & ((1u << index) - 1));
    }
    return NO_NODE;
}
