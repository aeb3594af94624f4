/* The agent: what runs inside the program at every timed call.
 *
 * Rules for this file. It runs in any thread of somebody's program, between any two instructions,
 * in signal handlers and while other threads do the same:
 *   - freestanding: no libc, no relocations, no data or bss of its own, no vector registers;
 *   - no lock, no loop without a bound, at most 256 bytes of stack;
 *   - no system call, but once a level when the bell rings, and when an unwinder is about to look;
 *   - it reads and writes only shared memory (abi.h) and stack words of frames that live;
 *   - whatever interrupts it (a signal handler that longjmps out, a coroutine switch) may cost a
 *     measurement and never more: a measurement in doubt is dropped;
 *   - the program always gets its own return address back.
 *
 * Compiled so that a function keeps r8 to r11 as well (build.py): the stubs save only registers that
 * every call needs. A timed call is bound by how many instructions it has; what is common of a direct
 * call is therefore in the stubs themselves (stubs.S), and darc_enter and darc_return are called for
 * all that is not.
 */
#include "abi.h"

#define ENTRY __attribute__((used, visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define SYS_RT_SIGACTION 13
#define SYS_RT_SIGPROCMASK 14
#define SYS_GETPID 39
#define SYS_GETTID 186
#define SYS_KILL 62
#define SYS_RT_TGSIGQUEUEINFO 297
#define SYS_GET_ROBUST_LIST 274
#define SYS_SECCOMP 317
#define PR_SET_SECCOMP 22
#define PR_SET_NO_NEW_PRIVS 38
#define SI_QUEUE 0xffffffffUL /* si_code -1 */
#define SIG_IGNORE 1 /* SIG_IGN; SIG_DFL is 0, a handler's address is more */
#define EPERM 1
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2

#define OPEN 1
#define HIDDEN 2
#define IDLE OPEN
#define NO_NODE 0xffffffffu
#define PAGE(address) ((address) >> 12)
#define KERNEL_STACK(address) ((address) >> DARC_STACK_SHIFT)
#define NEAR_STACK (8UL << 20) /* the usual limit of a stack */
#define SCANNED (256UL << 10)  /* bytes of a stack that are looked through */

typedef struct darc_control control;
typedef struct darc_site site;
typedef struct darc_record record;
typedef struct darc_context context;

#define COLD __attribute__((noinline, cold))

/* A record's serial and open, or a context's serial and idle, as one word: the two words are equal
 * where the record is open and of the current op and the agent does not interrupt itself. Less
 * plain than three comparisons, but each costs a timed call. Written as one word before they are
 * read as one, as the processor waits where it must put one together from pending stores. */
typedef u64 __attribute__((may_alias)) state_word;
#define STATE(structure) (*(state_word *)&(structure)->serial)

static inline u64 tsc(void)
{
    u32 low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (u64)high << 32 | low;
}

static inline u64 fs_base(void)
{
    u64 self; /* the ABI keeps the thread control block's own address in its first word */
    __asm__("mov %%fs:0, %0" : "=r"(self));
    return self;
}

static inline u64 system_call(u64 number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
    u64 result;
    register u64 r10 __asm__("r10") = d;
    register u64 r8 __asm__("r8") = e;
    register u64 r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* The compiler must not move memory accesses across: a signal handler may look in between. */
#define BARRIER() __asm__ volatile("" ::: "memory")

/* ------------------------------------------------------------------ tables */


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
    u64 at = ((slot * DARC_HASH >> DARC_HASH_SHIFT) + 64 * (u64)step) & ctl->record_mask;
    return (record *)(ctl->records + 3 * at);
}

static inline u64 record_room(const control *ctl)
{
    return (ctl->record_mask >> 6) + 1;
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

/* Whether f0's call may be timed that comes back to this address. A runtime that makes code, or has it made in its
 * own way, may know it by return addresses (a garbage collector that looks for what frames hold), and would
 * not know a landing. */
static COLD int is_ordinary(const control *ctl, u64 back)
{
    const struct darc_code *code = (const struct darc_code *)ctl->code;
    u64 low = 0, high = ctl->code_count;
    for (u32 step = 0; step < 32 && low < high && high <= DARC_MAX_CODE; step++) {
        u64 middle = (low + high) / 2;
        if (back < code[middle].start)
            high = middle;
        else if (back >= code[middle].end)
            low = middle + 1;
        else
            return 1;
    }
    return 0;
}

/* The landing of f0's callers that come back to this address; it is never used for another. */
static u64 claim_landing(control *ctl, const site *s, u64 back)
{
    u64 *words = (u64 *)(s->landings + DARC_LANDING_WORDS) + DARC_LANDING_CALLERS;
    u64 *bodies = (u64 *)(s->landings + DARC_LANDING_BODIES);
    u32 first = (u32)(back * DARC_HASH >> 17) & 1023, others = DARC_LANDINGS - DARC_LANDING_CALLERS - DARC_LANDING_FEW;
    for (u32 step = 0; step < 6 * DARC_PROBE_LIMIT; step++) {
        u32 number = (first + step) % DARC_LANDING_FEW;
        if (step >= DARC_PROBE_LIMIT)
            number = DARC_LANDING_FEW + (first + step) % others;
        if (unlikely(!words[number]) && !is_ordinary(ctl, back)) {
            __atomic_fetch_add(&ctl->lost_foreign, 1, __ATOMIC_RELAXED);
            return 0;
        }
        if (claim(&words[number], back) && claim(&bodies[number], s->body))
            return s->landings + (DARC_LANDING_CALLERS + number) * DARC_LANDING_SIZE;
    }
    __atomic_fetch_add(&ctl->lost_callers, 1, __ATOMIC_RELAXED);
    return 0;
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

/* Nothing of another thread's op is taken over, nor that it was in the agent. */
static COLD void renew(context *ctx, u32 life)
{
    ctx->op = ctx->top = 0;
    ctx->jump_time = 0;
    ctx->idle = DARC_FREE;
    ctx->serial++;
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

static __attribute__((noinline)) context *search_context(control *ctl, u64 thread, int claim)
{
    struct darc_contexts *table = (struct darc_contexts *)ctl->contexts;
    context *ctx = find_in(ctl, table, thread);
    if (ctx)
        return ctx;
    context *older = find_older(ctl, thread);
    if (older && (older->op || !older->idle))
        return older;
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
    if (likely(ctl->thread_key == DARC_BY_FS))
        return fs_base() + 1;
    return (ctl->thread_key == DARC_BY_STACK ? KERNEL_STACK(slot) : 0) + 1;
}

/* A new thread may have the fs base of one that has ended. Where it is not known where threads have their
 * ids, the first word is read in place of one, which never differs. */
static inline u32 life_of(const control *ctl, u64 thread)
{
    return *(u32 *)(thread - 1 + ctl->life_at);
}

static __attribute__((noinline)) context *find_other_context(control *ctl, u64 slot, int claim)
{
    u64 thread = thread_of(ctl, slot);
    context *ctx = search_context(ctl, thread, claim);
    if (!ctx || ctl->thread_key != DARC_BY_FS || ctx->life == life_of(ctl, thread))
        return ctx;
    renew(ctx, life_of(ctl, thread));
    return ctx->thread == thread ? ctx : 0; /* the debugger may give it to another one just now */
}

static inline context *find_context(control *ctl, u64 slot, int claim)
{
    if (likely(ctl->thread_key == DARC_BY_FS)) {
        u64 thread = fs_base() + 1;
        context *ctx = context_at(ctl, (struct darc_contexts *)ctl->contexts, thread, 0);
        if (likely(ctx->thread == thread && ctx->life == life_of(ctl, thread)))
            return ctx;
    }
    return find_other_context(ctl, slot, claim);
}

/* --------------------------------------------------------------- accounting */

static inline u32 bin_of(const control *ctl, u64 cycles)
{
    u32 r = ctl->resolution;
    u32 bin = cycles ? (63 - (u32)__builtin_clzl(cycles)) * r : 0;
    for (u32 step = 1; step < r && cycles >= ctl->thresholds[bin + 1]; step++)
        bin++;
    return bin;
}

static inline struct darc_total *totals_of(const control *ctl, context *ctx)
{
    return (struct darc_total *)((u64)ctx + ctl->totals_at);
}

static inline void account(const control *ctl, context *ctx, u32 node, u64 latency)
{
    struct darc_sum *sum = &ctx->sums[node & ctl->node_mask];
    if (unlikely(sum->serial != ctx->serial)) { /* the op's first call of the node */
        sum->serial = ctx->serial;
        sum->max = sum->sum = latency;
        sum->calls = 1;
        return;
    }
    if (unlikely(latency > sum->max))
        sum->max = latency;
    sum->sum += latency;
    sum->calls++;
}

static inline u64 since(u64 end, u64 start, u64 cost)
{
    u64 elapsed = end - start; /* counters of two processors may differ by a little */
    return (long)elapsed > (long)cost ? elapsed - cost : 1;
}

static COLD void close_tails(const control *ctl, context *ctx, record *rec, u64 end)
{
    u32 count = rec->tail_count & ~DARC_LEFT;
    if (!end)
        end = tsc(); /* the site is not timed, but a tail call in its frame is */
    for (u32 i = 0; i < count && i < DARC_MAX_TAILS; i++)
        account(ctl, ctx, rec->tail_nodes[i], since(end, rec->tails[i], rec->overhead));
}

/* The frame is gone: account its call and the tail calls that took the frame over. */
static void close_record(const control *ctl, context *ctx, record *rec, u64 end)
{
    u64 start = rec->start;
    if (start != DARC_NEVER)
        account(ctl, ctx, rec->tail_count ? rec->first_node : rec->node,
                since(end, start, rec->overhead + ctl->inner_cost));
    if (rec->tail_count)
        close_tails(ctl, ctx, rec, end);
}

/* Calls that were left by a longjmp: they are deeper than the frame that is known to live. They
 * ended when the jump began. */
static COLD void close_abandoned(const control *ctl, context *ctx, const record *live, u64 end)
{
    u64 jump = ctx->jump_time ? ctx->jump_time : end;
    record *rec = (record *)ctx->top;
    for (u32 depth = 0; rec && rec != live && depth < DARC_MAX_DEPTH; depth++) {
        record *parent = (record *)rec->parent;
        if (rec->slot >= live->slot || !parent)
            break;
        if (rec->open == OPEN && rec->serial == ctx->serial && ctx->epoch == ctl->epoch) {
            rec->open = 0;
            parent->overhead += rec->overhead;
            close_record(ctl, ctx, rec, jump > rec->start ? jump : end);
        }
        rec = parent;
    }
    ctx->top = (u64)live;
    ctx->jump_time = 0;
}

/* A loop's calls: many, and no single one has half of their time. */
static inline int is_repeated(const control *ctl, const struct darc_sum *sum)
{
    return ctl->loops != DARC_LOOPS_PAPER && sum->calls >= DARC_REPEATED && sum->max < sum->sum - sum->max;
}

static inline u64 at_most(u64 limit, u64 value)
{
    return value < limit ? value : limit;
}

/* Of what all calls of a node took, the part of its longest one: part * max / sum. The division never faults,
 * whatever the program has written over the sums: max is less than sum, and part not more. */
static u64 share(u64 max, u64 sum, u64 part)
{
    u64 low = at_most(sum, part), high, quotient, rest;
    if (likely(max >= sum))
        return part;
    __asm__("mulq %3" : "=a"(low), "=d"(high) : "0"(low), "r"(max) : "cc");
    __asm__("divq %4" : "=a"(quotient), "=d"(rest) : "0"(low), "1"(high), "r"(sum) : "cc");
    return quotient;
}

/* What a node's children are compared by. By the paper's rule the longest call of each counts. Together, the
 * calls of a loop count as one; and where the node itself is a loop's, so do those of all that it calls. */
static inline u64 contribution(const control *ctl, const struct darc_sum *node, int in_loop,
                               const struct darc_sum *child)
{
    if (in_loop)
        return child->sum;
    return is_repeated(ctl, child) ? share(node->max, node->sum, child->sum) : child->max;
}

/* The time that is the node's own: by the paper's rule what its children's longest calls leave, together what
 * all of their calls do, in its longest call or in all where that is a loop's. */
static inline u64 own_time(const control *ctl, const struct darc_sum *node, int in_loop, u64 longest, u64 all)
{
    if (ctl->loops == DARC_LOOPS_PAPER)
        return node->max - at_most(node->max, longest);
    u64 own = node->sum - at_most(node->sum, all);
    return in_loop ? own : share(node->max, node->sum, own);
}

/* Paper 3, "process_latencies": the node itself and its children compete; all in the bin of the largest get
 * a vote. */
static void vote(const control *ctl, context *ctx, u32 number)
{
    const struct darc_node *node = &((struct darc_node *)ctl->nodes)[number];
    const struct darc_sum *sum = &ctx->sums[number];
    int in_loop = is_repeated(ctl, sum);
    u64 largest = 0, longest = 0, all = 0;
    for (u32 i = 0; i < node->child_count; i++) {
        const struct darc_sum *child = &ctx->sums[node->first_child + i];
        if (child->serial != ctx->serial)
            continue;
        longest += child->max;
        all += child->sum;
        u64 part = contribution(ctl, sum, in_loop, child);
        largest = part > largest ? part : largest;
    }
    u64 own = own_time(ctl, sum, in_loop, longest, all);
    largest = own > largest ? own : largest;
    u32 bin = bin_of(ctl, largest);
    totals_of(ctl, ctx)[number].own += bin_of(ctl, own) == bin;
    for (u32 i = 0; i < node->child_count; i++) {
        u32 number_of_child = node->first_child + i;
        const struct darc_sum *child = &ctx->sums[number_of_child];
        if (child->serial == ctx->serial && bin_of(ctl, contribution(ctl, sum, in_loop, child)) == bin)
            totals_of(ctl, ctx)[number_of_child].votes++;
    }
}

/* Whether all votes were counted. A decision in the middle renumbers the nodes: what is left of this op is
 * dropped then, and it is none of the round's. Any other stop changes nothing, as the op was over before:
 * it has all of its votes or none. Nor do calls count that were counted before the round began and
 * are not reported yet. */
static __attribute__((noinline)) int vote_all(const control *ctl, context *ctx, u64 latency)
{
    struct darc_total *totals = totals_of(ctl, ctx);
    u64 round = ctl->round;
    BARRIER(); /* read first: where no stop has come since the op began, it is the op's */
    if (ctx->epoch != ctl->epoch) {
        ctx->dropped++;
        return 0;
    }
    if (ctx->round != round) {
        for (u32 number = 0; number < ctl->node_count; number++)
            totals[number] = (struct darc_total){0};
        ctx->in_peak = ctx->unreported = 0;
        BARRIER();
        ctx->round = round;
    }
    account(ctl, ctx, 0, latency);
    for (u32 number = 0; number < ctl->node_count && round == ctl->round; number++) {
        struct darc_sum *sum = &ctx->sums[number];
        BARRIER();
        if (sum->serial != ctx->serial)
            continue;
        struct darc_total *total = &totals[number];
        total->ops++;
        total->calls += sum->calls;
        total->sum += sum->sum;
        total->max_sum += sum->max;
    }
    const u32 *analysis = (const u32 *)ctl->analysis;
    for (u32 i = 0; i < ctl->analysis_count && round == ctl->round; i++) {
        BARRIER();
        struct darc_sum *sum = &ctx->sums[analysis[i]];
        if (sum->serial == ctx->serial)
            vote(ctl, ctx, analysis[i]);
    }
    BARRIER();
    if (round != ctl->round) {
        ctx->dropped++;
        return 0;
    }
    ctx->in_peak++;
    return 1;
}

/* ----------------------------------------------------------------- doorbell */

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
    if ((long)(now - ctl->heartbeat) < (long)ctl->fresh)
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

/* ------------------------------------------------------------------------ f0 */

/* Time is up: rings, as ring_bell. A debugger that was killed leaves the pads behind: they fall asleep
 * and pass through. One that lives but gives no sign, as its interpreter is busy, is waited for. */
static COLD u64 look_around(control *ctl, u64 now, u64 back, u64 slot)
{
    u64 next = now + ctl->patience;
    int is_late = (long)(now - ctl->deadline) >= 0;
    if ((long)(now - ctl->heartbeat) > (long)ctl->patience && !debugger_lives(ctl, now)) {
        ((struct darc_live *)ctl->live)->enabled = 0;
        return 0;
    }
    ctl->wake = is_late || (long)(ctl->deadline - next) > 0 ? next : ctl->deadline;
    return is_late ? ring_bell(ctl, back, slot) : 0;
}

/* As ring_bell. */
static u64 finish_op(control *ctl, context *ctx, record *rec, u64 end, u64 back)
{
    u64 latency = since(end, rec->start, rec->overhead + ctl->inner_cost);
    if (unlikely(rec->tail_count))
        close_tails(ctl, ctx, rec, end);
    ctx->op = 0;
    u64 rings = 0;
    if (unlikely((long)(end - ctl->wake) > 0))
        rings = look_around(ctl, end, back, rec->slot);
    if (ctl->mode == DARC_PROFILE) {
        ctx->sum += latency;
        ctx->bins[bin_of(ctl, latency)]++;
    } else if (latency >= ctl->peak_low && latency < ctl->peak_high) {
        if (ctl->bell != DARC_QUIET)
            return rings; /* enough was seen; the debugger has not looked yet */
        if (unlikely(ctx->spoiled == ctx->serial))
            return rings; /* what took the time is not known */
        if (!vote_all(ctl, ctx, latency))
            return rings;
    } else {
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

static inline u64 per_cpu(u64 offset)
{
    u64 value;
    __asm__ volatile("mov %%gs:(%1), %0" : "=r"(value) : "r"(offset));
    return value;
}

/* In a kernel: is this one of the tasks to watch, and not an interrupt that came to it? */
static inline int is_watched(const control *ctl)
{
    if (!(ctl->task_mask[0] | ctl->task_mask[1]))
        return 1;
    const u64 *task = (const u64 *)(per_cpu(ctl->current_at) + ctl->task_at);
    return (task[0] & ctl->task_mask[0]) == ctl->task_value[0]
           && (!ctl->task_mask[1] || (task[1] & ctl->task_mask[1]) == ctl->task_value[1])
           && !(per_cpu(ctl->preempt_at) & DARC_NOT_TASK);
}

static inline record *enter_f0(control *ctl, site *s, u64 slot)
{
    if (unlikely(!((struct darc_live *)ctl->live)->enabled))
        return 0;
    if (ctl->thread_key == DARC_BY_STACK && !is_watched(ctl))
        return 0;
    context *ctx = find_context(ctl, slot, 1);
    if (unlikely(!ctx || (!ctx->idle && ctx->stuck != ctx->serial)))
        return 0;
    if (ctl->only_thread && ctx->thread != ctl->only_thread + 1)
        return 0;
    if (ctx->op && ctx->stale != ctx->serial && op_runs(ctl, (record *)ctx->op, slot))
        return 0; /* recursion: only the outermost call is an operation */
    u64 back = *(u64 *)slot, landing = 0;
    if (back == s->pad_back || own_back(ctl, back))
        return 0; /* a tail loop to f0's first byte, or a tail call in a frame that is timed already */
    if (unlikely(ctx->op && ((record *)ctx->op)->open == HIDDEN))
        ctl->lost_ops++;
    record *rec = place(ctl, slot, 0);
    if (unlikely(rec->slot != slot))
        rec = claim_record(ctl, slot);
    if (unlikely(!rec))
        return 0;
    if (s->landings && !(landing = claim_landing(ctl, s, back)))
        return 0;
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
    ctx->op = ctx->top = (u64)rec;
    ctx->jump_time = 0;
    BARRIER();
    STATE(ctx) = state;
    if (landing)
        *(u64 *)slot = landing + DARC_LANDING_ENTER; /* the pad goes on there */
    return rec;
}

/* ---------------------------------------------------------------- call sites */

static u32 learn_target(site *s, u64 target)
{
    for (;;) {
        u32 count = s->target_count;
        for (u32 i = 0; i < count && i < DARC_MAX_TARGETS; i++) {
            if (s->targets[i] == target)
                return i;
        }
        if (count >= s->indirect) {
            s->overflow++; /* a lost count does no harm */
            return NO_NODE;
        }
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

/* Paper 3.1: the same site is another fnode under another parent. */
static inline u32 child_node(control *ctl, site *s, u32 parent, u64 target)
{
    const struct darc_route *routes = (struct darc_route *)ctl->routes + s->route_first;
    for (u32 i = 0; i < s->route_count; i++) {
        if (routes[i].parent != parent)
            continue;
        if (!s->indirect)
            return routes[i].child;
        u32 index = learn_target(s, target);
        return index == NO_NODE ? NO_NODE : routes[i].child + index;
    }
    return NO_NODE;
}

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

static inline void open_call(const site *s, context *ctx, record *parent, u32 node, record *rec)
{
    u64 state = open_state(parent);
    ctx->idle = 0;
    BARRIER();
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
    if (node == NO_NODE)
        return 0;
    context *ctx = (context *)parent->context;
    record *rec = claim_record(ctl, slot);
    if (!rec) {
        ctx->spoiled = ctx->serial; /* the callee's time would count as its caller's own */
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
    open_call(s, ctx, parent, node, rec);
    return (u64)rec | !((struct darc_node *)ctl->nodes)[node].timed;
}

static inline int is_kernel_pointer(u64 value)
{
    return (long)value < -4096; /* neither null nor an error number */
}

/* Whom the kernel is about to call for a device's interrupt (handle_irq, arch/x86/kernel/irq_64.c, and
 * __handle_irq_event_percpu). */
static COLD u64 device_handler(const control *ctl, u64 vector)
{
    u64 line = per_cpu(ctl->vectors_at + 8 * (vector & 0xff));
    u64 action = is_kernel_pointer(line) ? *(u64 *)(line + ctl->action_at) : 0;
    return is_kernel_pointer(action) ? *(u64 *)(action + ctl->handler_at) : 0;
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
    record *parent = (record *)ctx->top;
    if (!ctx->idle || !parent || STATE(parent) != STATE(ctx)
        || *(u64 *)parent->slot != parent->pad_back) {
        ctx->spoiled = ((record *)ctx->op)->serial; /* the agent or a pad was interrupted */
        return 0;
    }
    u64 handler = s->indirect ? device_handler(ctl, vector) : 0;
    u32 node = child_node(ctl, s, parent->node, handler ? handler : s->address);
    if (node == NO_NODE)
        return 0;
    record *rec = claim_record(ctl, slot);
    if (!rec) {
        ctx->spoiled = ctx->serial;
        return 0;
    }
    rec->back = *(u64 *)slot;
    rec->entered = now;
    open_call(s, ctx, parent, node, rec);
    return rec;
}

/* The call ends for its parent, whose own time it is not. */
static inline void close_call(const control *ctl, context *ctx, record *parent, record *rec, u64 end)
{
    parent->overhead += rec->overhead + (rec->start != DARC_NEVER ? ctl->full_cost : ctl->path_cost);
    close_record(ctl, ctx, rec, end);
}

static inline void leave_call(const control *ctl, context *ctx, record *rec, u64 end)
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
        leave_call(ctl, ctx, rec, end);
    else
        rec->open = 0;
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
    }
    ctx->top = 0;
    BARRIER();
    ctx->idle = DARC_FREE; /* alone: where it was so before, a handler's op has taken the next serial */
    return rings;
}

/* Its pad takes longer than a call site's: what it took on the way in, it takes on the way out. */
static COLD void leave_interrupt(const control *ctl, context *ctx, record *rec, u64 end)
{
    ((record *)rec->parent)->overhead += 2 * since(rec->start, rec->entered, 0);
    leave_call(ctl, ctx, rec, end);
}

struct left {
    u64 back; /* the program's return address */
    u64 rings; /* as ring_bell */
};

/* What an entry pad called has returned. */
ENTRY struct left darc_leave(site *s, u64 slot, u64 end)
{
    control *ctl = (control *)s->control;
    record *rec = place(ctl, slot, 0);
    if (unlikely(rec->slot != slot))
        rec = find_record(ctl, slot);
    if (unlikely(!rec || rec->site != (u64)s))
        return (struct left){0};
    struct left left = {.back = rec->back};
    context *ctx = (context *)rec->context;
    if (unlikely(s->kind == DARC_INTERRUPT && rec->open == OPEN && STATE(rec) == STATE(ctx)))
        leave_interrupt(ctl, ctx, rec, end);
    else if (likely(rec->open == OPEN && STATE(rec) == STATE(ctx)))
        left.rings = leave_f0(ctl, ctx, rec, end);
    else if (rec->open == OPEN)
        rec->open = 0;
    return left;
}

/* f0 has returned through a landing, which has put the program's return address back. As ring_bell. */
ENTRY u64 darc_landed(control *ctl, u64 slot, u64 end)
{
    record *rec = place(ctl, slot, 0);
    if (unlikely(rec->slot != slot))
        rec = find_record(ctl, slot);
    /* Coroutines that share a stack have frames with the same slot: is it this one? */
    if (unlikely(!rec || rec->open != OPEN || rec->parent || rec->back != *(u64 *)slot))
        return 0;
    context *ctx = (context *)rec->context;
    if (likely(STATE(rec) == STATE(ctx)))
        return leave_f0(ctl, ctx, rec, end);
    rec->open = 0;
    return 0;
}

/* A tail jump hands the frame over: nothing on the stack changes, and the time of the function
 * jumped to ends when the frame does. */
static void tail(control *ctl, site *s, u64 slot, u64 target)
{
    record *rec = path_parent(ctl, slot);
    if (!rec || rec->node == NO_NODE)
        return;
    u32 node = child_node(ctl, s, rec->node, target);
    u32 count = rec->tail_count;
    if (!count)
        rec->first_node = rec->node;
    BARRIER();
    if (node == NO_NODE || count >= DARC_MAX_TAILS) {
        rec->tail_count = count | DARC_LEFT;
        rec->node = NO_NODE; /* left the ftree for good; the time stays with the last node */
        return;
    }
    rec->tail_nodes[count] = node;
    rec->tails[count] = tsc() - rec->overhead;
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

/* ----------------------------------------------------------------- unwinders */

/* May the eight bytes at address be read? The kernel copies the set before it looks at how, so
 * that an unmapped address gives EFAULT and a mapped one EINVAL (as libunwind and abseil do). */
static int readable(const control *ctl, u64 address, u64 stack)
{
    if (PAGE(address) == PAGE(stack))
        return 1;
    if (ctl->no_calls) /* only frames of this very stack are asked about then */
        return address - stack < NEAR_STACK;
    return system_call(SYS_RT_SIGPROCMASK, ~0UL, address, 0, 8, 0, 0) == (u64)-22;
}

/* Only while it is this word: the frame may be another thread's, and gone by now. */
static inline int exchange(u64 slot, u64 word, u64 with)
{
    return __atomic_compare_exchange_n((u64 *)slot, &word, with, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* A debugger has ended since, or room was made among the records: a coroutine's frames that were
 * copied out then may be back. */
static COLD void hide_unrecorded(const control *ctl, u64 stack)
{
    for (u64 slot = stack & ~7UL; slot - stack < SCANNED || slot < stack; slot += 8) {
        if ((slot & 4095) < 8 && !readable(ctl, slot, stack))
            return;
        u64 word = *(u64 *)slot, back = own_back(ctl, word);
        if (back)
            exchange(slot, word, back);
    }
}

/* Every frame above that returns to a landing: of the current op, and also of ops that a coroutine left
 * open on this stack, of whatever thread and time. What is timed may depend on them; what an
 * unwinder finds must not. So the word in the slot decides and tells what to put there, whatever the
 * record says. Frames of other threads that happen to be near are hidden with them,
 * which costs their measurement and no more, as the word is their own return address. */
static void hide(control *ctl, u64 stack)
{
    const context *ctx = find_context(ctl, stack, 0);
    u64 count = ctl->record_count;
    for (u64 i = 0; i < count && i < record_room(ctl); i++) {
        u64 number = ((u32 *)ctl->record_list)[i] & (record_room(ctl) - 1);
        record *rec = &((record *)ctl->records)[number];
        u64 slot = rec->slot;
        if (slot < stack || !(rec->open || slot - stack < NEAR_STACK))
            continue;
        if (rec->context != (u64)ctx && slot - stack >= NEAR_STACK)
            continue;
        if (!readable(ctl, slot, stack))
            continue;
        u64 word = *(u64 *)slot, back = own_back(ctl, word);
        if (back && exchange(slot, word, back) && rec->open == OPEN && word == rec->pad_back)
            rec->open = HIDDEN;
    }
    if (unlikely(ctl->scan && !ctl->no_calls))
        hide_unrecorded(ctl, stack);
}

/* The handler's frame has its stack pointer at stack: frames below are gone, frames above go on. */
static void show(control *ctl, u64 stack)
{
    context *ctx = find_context(ctl, stack, 0);
    if (!ctx || !ctx->op || !ctx->idle)
        return;
    u64 now = tsc();
    record *rec = (record *)ctx->top;
    record *top = 0;
    ctx->idle = 0;
    BARRIER();
    for (u32 depth = 0; rec && depth < DARC_MAX_DEPTH; depth++) {
        record *parent = (record *)rec->parent;
        if (rec->open == HIDDEN && rec->serial == ctx->serial) {
            if (rec->slot > stack) {
                u64 back = own_back(ctl, rec->pad_back);
                if (back && readable(ctl, rec->slot, stack)
                    && exchange(rec->slot, back, rec->pad_back)) {
                    rec->open = OPEN;
                    top = top ? top : rec;
                }
            } else {
                rec->open = 0;
                if (ctx->epoch == ctl->epoch && rec != (record *)ctx->op) {
                    parent->overhead += rec->overhead;
                    close_record(ctl, ctx, rec, now);
                } else if (ctx->epoch == ctl->epoch) {
                    finish_op(ctl, ctx, rec, now, 0);
                }
            }
        }
        rec = parent;
    }
    ctx->top = (u64)top;
    BARRIER();
    ctx->idle = ctx->op ? IDLE : DARC_FREE;
}

/* A program that enters a sandbox may be killed for the agent's system calls. */
static void watch_sandbox(control *ctl, u64 first_argument)
{
    if (first_argument == PR_SET_SECCOMP || first_argument == PR_SET_NO_NEW_PRIVS
        || first_argument == SYS_SECCOMP) {
        ctl->no_calls = 1;
        ctl->bell_signal = 0;
    }
}

/* The debugger is to look before the program has a handler for faults: where an instruction is that
 * may fault, it may matter from then on. */
static void watch_handlers(control *ctl, u64 signal)
{
    if (signal >= 64 || !(DARC_FAULTS >> signal & 1) || !((struct darc_live *)ctl->live)->enabled)
        return;
    if (!ctl->no_calls && system_call(SYS_GETPID, 0, 0, 0, 0, 0, 0) != ctl->process)
        return; /* a child of vfork, on its way to exec */
    __atomic_fetch_or(&ctl->faults, 1UL << signal, __ATOMIC_ACQ_REL);
    if (!ctl->no_calls)
        ring(ctl);
}

/* What this thread's stack loses by a jump, or with a child of vfork that lived on it, ends now. */
static void watch_jump(control *ctl, u64 slot)
{
    context *ctx = find_context(ctl, slot, 0);
    if (ctx && ctx->op && ctx->idle)
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

/* Another thread may have what this one has used, unless it ends in the middle of an op (also exit comes
 * by there). */
static void watch_end(control *ctl, u64 slot)
{
    context *ctx = find_context(ctl, slot, 0);
    if (!ctx || !ctx->idle || (ctx->op && ((record *)ctx->op)->open == OPEN))
        return;
    ctx->op = 0;
    __atomic_store_n(&ctx->thread, DARC_ENDED, __ATOMIC_RELEASE);
}

static COLD void guard(control *ctl, const site *s, u64 slot, u64 first_argument)
{
    if (s->kind == DARC_HIDE)
        hide(ctl, slot);
    if (s->kind == DARC_SHOW)
        show(ctl, slot);
    if (s->kind == DARC_SANDBOX)
        watch_sandbox(ctl, first_argument);
    if (s->kind == DARC_HANDLER)
        watch_handlers(ctl, first_argument);
    if (s->kind == DARC_JUMP)
        watch_jump(ctl, slot);
    if (s->kind == DARC_END)
        watch_end(ctl, slot);
    if (s->kind == DARC_EXIT)
        watch_exit(ctl, slot);
}

/* Entry pads. Not zero: f0 is to be timed. */
ENTRY u64 darc_entry(site *s, u64 slot, const u64 *first_argument)
{
    control *ctl = (control *)s->control;
    if (likely(s->kind == DARC_F0))
        return (u64)enter_f0(ctl, s, slot);
    if (s->kind == DARC_INTERRUPT)
        return (u64)enter_interrupt(ctl, s, slot, first_argument[-4]); /* the second one, as the stub saves */
    guard(ctl, s, slot, *first_argument);
    return 0;
}

/* --------------------------------------------------------------- calibration */

u64 darc_calibrate_once(u64 entry, u64 fake_back, control *ctl, site *parent);

ENTRY u64 darc_calibrate_open(control *ctl, u64 slot, site *parent)
{
    context *ctx = find_context(ctl, slot, 1);
    record *rec = claim_record(ctl, slot);
    if (!ctx || !rec)
        return 0;
    rec->context = (u64)ctx;
    rec->site = (u64)parent;
    rec->pad_back = parent->pad_back;
    rec->node = 0;
    rec->tail_count = 0;
    ctx->epoch = ctl->epoch;
    ctx->idle = IDLE;
    STATE(rec) = STATE(ctx);
    ctx->op = ctx->top = (u64)rec;
    return (u64)rec;
}

/* Measures what a pad costs on this machine, at a site that calls nothing: the part between its
 * two TSC reads, and all of it as its caller sees it. bare is the same call without a pad. */
ENTRY void darc_calibrate(control *ctl, site *parent, u64 entry, u64 bare)
{
    u64 full = ~0UL, inner = ~0UL, empty = ~0UL;
    ctl->inner_cost = ctl->full_cost = 0;
    context *ctx = find_context(ctl, (u64)__builtin_frame_address(0), 1);
    if (!ctx)
        return;
    for (u32 round = 0; round < 256; round++) {
        ctx->serial++;
        ctx->sums[1].serial = 0;
        u64 cost = darc_calibrate_once(bare, 0, ctl, parent);
        empty = cost < empty ? cost : empty;
        cost = darc_calibrate_once(entry, parent->pad_back, ctl, parent);
        full = cost < full ? cost : full;
        u64 latency = ctx->sums[1].max;
        if (ctx->sums[1].serial == ctx->serial && latency < inner)
            inner = latency;
    }
    if (ctx->op)
        ((record *)ctx->op)->open = 0;
    ctx->op = ctx->top = 0;
    ctx->idle = DARC_FREE;
    ctx->serial++;
    ctl->full_cost = full > empty ? full - empty : 0;
    ctl->inner_cost = inner == ~0UL ? 0 : inner;
}
