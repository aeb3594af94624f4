/* A program that does nothing but what a script says: calls, returns, tail calls, jumps out of frames, waits for
 * other threads, and interruptions of all these behind any instruction that darc has put in between. The agent,
 * its tables and pads are written into it by world.py, as a debugger does.
 *
 * Each transfer has registers, flags, vectors and a stack of its own making, and each is compared where it
 * leads to. Time is what the script says: reading the time-stamp counter traps (PR_SET_TSC), and the
 * handler gives the script's clock. Interruptions are handlers of SIGTRAP, by the trap flag, so that everything
 * is real: the processor runs darc's own instructions, and the kernel puts signal frames on the very stack.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "harness.h"

typedef unsigned long u64;
typedef unsigned char u8;

#define AREA 0x10000000UL
#define AREA_SIZE (1UL << 20)
#define AREA_WRITABLE 49152UL /* darc/pads/returns.py: WRITABLE */
#define AREA_WRITABLE_END 73728UL
#define TABLES 0x20000000UL
#define TABLES_SIZE (4UL << 20)
#define STACKS 0x40000000UL /* far from each other: what is near may be looked at as one stack */
#define STACK_GAP (64UL << 20)
#define STACK_SIZE (1UL << 20)
#define THREADS 3
#define SCRIPTS 12
#define OPERATIONS 2048
#define DEPTH 14
#define NESTED 2
#define FRAMES 64
#define EVENTS 40000
#define TRACED 20000
#define HEAL_ORDER 3 /* world.py */
#define COMPACT_ORDER 4

struct operation {
    int what, b;
    long a;
};

struct event {
    int what, thread;
    long a, b, c;
    u64 clock, inside; /* how many handlers deep */
};

struct traced {
    u64 rip, events, registers[16]; /* events: so many were noted before */
};

struct frame {
    int function;
    u64 slot, own, fill;
};

struct thread {
    int number, started, ended, resumer;
    sem_t baton;
    pthread_t id;
    int script, at, arm, handler, nested, traces, armed,
         outside, count, depth, base[NESTED + 2], pending_jump;
    int outer_script[NESTED + 2], outer_at[NESTED + 2]; /* what goes on when a handler is over */
    u64 seed, expect[15], vector, tail;
    u64 pointer; /* what the indirect site calls */
    struct frame frames[FRAMES];
    u8 other_stack[1 << 18];
};

/* Written by world.py. */
struct operation scripts[SCRIPTS][OPERATIONS];
u64 is_left; /* darc has left: no word of a stack may lead to it */
u64 on_other_stack; /* whether handlers have a stack of their own */
u64 snapshot_contexts; /* where the contexts are, */
u64 context_size, context_room, totals_at, node_count, bins_at, bins_count;

/* Read by it. */
struct event events[EVENTS];
u64 event_count;
u64 snapshots[1 << 18];
u64 snapshot_count;
struct traced traced[TRACED];
u64 traced_count;
u64 sizes[8] = {sizeof(struct operation), sizeof(struct event), sizeof(struct traced), OPERATIONS, EVENTS,
                sizeof(struct thread), THREADS, SCRIPTS};

static struct thread threads[THREADS];
u64 the_clock = 1000000;
u64 life_at;
static __thread struct thread *me;

extern void begin(void);
extern void jump_to(u64 where, u64 stack) __attribute__((noreturn));

#define EACH(what, i) {(u64)what##i##_0, (u64)what##i##_1, (u64)what##i##_2, (u64)what##i##_3, 0, \
                       (u64)what##i##_5, (u64)what##i##_6, (u64)what##i##_7, (u64)what##i##_8}
#define FOUR(what, i) {(u64)what##i##_0, (u64)what##i##_1, (u64)what##i##_2, (u64)what##i##_3}
#define DECLARE_ONE(i) \
    extern u8 f##i[], go_##i##_0[], go_##i##_1[], go_##i##_2[], go_##i##_3[], go_##i##_5[], go_##i##_6[], \
        go_##i##_7[], go_##i##_8[], back_##i##_0[], back_##i##_1[], back_##i##_2[], back_##i##_3[], \
        back_##i##_5[], back_##i##_6[], back_##i##_7[], back_##i##_8[], leave_##i##_0[], leave_##i##_1[], \
        leave_##i##_2[], leave_##i##_3[], igo_##i[], iback_##i[], ret_##i[], again_##i[];
#define ALL(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8)
ALL(DECLARE_ONE)
#define GO(i) EACH(go_, i),
#define BACK(i) EACH(back_, i),
#define LEAVE(i) FOUR(leave_, i),
static const u64 go[9][9] = {ALL(GO)}, back[9][9] = {ALL(BACK)}, leave[9][4] = {ALL(LEAVE)};
#define ONE(name) static const u64 name[9] = {(u64)name##_0, (u64)name##_1, (u64)name##_2, (u64)name##_3, \
    (u64)name##_4, (u64)name##_5, (u64)name##_6, (u64)name##_7, (u64)name##_8};
ONE(igo) ONE(iback) ONE(ret) ONE(again)
static const u64 functions[9] = {(u64)f0, (u64)f1, (u64)f2, (u64)f3, (u64)f4, (u64)f5, (u64)f6, (u64)f7, (u64)f8};
static const u64 frame_size[9] = {136, 152, 184, 136, 168, 136, 136, 136, 136};
enum { ROOT = 4, UNWINDER = 5, CATCHER = 6, LONGJMP = 7, ENDING = 8 };

static void note(int what, long a, u64 b, u64 c)
{
    if (event_count < EVENTS)
        events[event_count++] = (struct event){
            what, me ? me->number : -1, a, (long)b, (long)c, the_clock, me ? (u64)me->nested : 0};
}

static void wrong(int what, u64 b, u64 c)
{
    note(EV_WRONG, what, b, c);
}

/* ------------------------------------------------------------- registers and stacks */

static u64 next_random(u64 *seed) /* splitmix64 */
{
    u64 z = *seed += 0x9e3779b97f4a7c15UL;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9UL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebUL;
    return z ^ z >> 31;
}

static void fill(const struct frame *f)
{
    u64 seed = f->fill;
    for (u64 at = f->slot - frame_size[f->function]; at < f->slot; at += 8)
        *(u64 *)at = next_random(&seed);
}

static void check_frame(const struct frame *f)
{
    u64 seed = f->fill;
    for (u64 at = f->slot - frame_size[f->function]; at < f->slot; at += 8) {
        u64 expected = next_random(&seed);
        if (*(u64 *)at != expected)
            wrong(WRONG_FRAME, at, *(u64 *)at);
    }
}

#define VECTORS "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
    "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define EACH_VECTOR ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"

/* The last thing before a transfer; nothing in C uses vectors then (-mgeneral-regs-only). */
static void set_vectors(struct thread *t)
{
    u64 words[32];
    t->vector = next_random(&t->seed);
    u64 seed = t->vector;
    for (int i = 0; i < 32; i++)
        words[i] = next_random(&seed);
    unsigned mxcsr = 0x1f80 | (unsigned)(seed & 0xe040); /* rounding, flush to zero, denormals */
    unsigned short control = 0x37f & ~0xc00;
    control |= (unsigned short)(seed >> 20 & 0xc00);
    __asm__ volatile("fldcw %0\n ldmxcsr %1" ::"m"(control), "m"(mxcsr));
    __asm__ volatile(EACH_VECTOR "movdqu 16*\\n(%0), %%xmm\\n\n .endr" ::"r"(words) : "memory");
}

static void check_vectors(struct thread *t)
{
    u64 words[32];
    unsigned mxcsr;
    unsigned short control;
    __asm__ volatile(EACH_VECTOR "movdqu %%xmm\\n, 16*\\n(%0)\n .endr" ::"r"(words) : "memory");
    __asm__ volatile("fnstcw %0\n stmxcsr %1" : "=m"(control), "=m"(mxcsr));
    u64 seed = t->vector;
    for (int i = 0; i < 32; i++)
        if (words[i] != next_random(&seed))
            wrong(WRONG_VECTOR, (u64)i, words[i]);
    if (mxcsr != (0x1f80 | (unsigned)(seed & 0xe040))
        || control != ((0x37f & ~0xc00) | (unsigned short)(seed >> 20 & 0xc00)))
        wrong(WRONG_CONTROL, mxcsr, control);
    mxcsr = 0x1f80;
    control = 0x37f;
    __asm__ volatile("fldcw %0\n ldmxcsr %1" ::"m"(control), "m"(mxcsr));
}

/* saved: flags, then r15 to rax as functions.S has pushed them. */
static void set_registers(struct thread *t, u64 *saved)
{
    saved[0] = 0x202 | (next_random(&t->seed) & 0x8d5);
    for (int i = 0; i < 15; i++)
        t->expect[i] = saved[1 + i] = next_random(&t->seed);
}

static void check_registers(struct thread *t, const u64 *saved)
{
    for (int i = 0; i < 15; i++)
        if (saved[1 + i] != t->expect[i])
            wrong(WRONG_REGISTER, (u64)i, saved[1 + i]);
    if (saved[0] & 0x400)
        wrong(WRONG_DIRECTION, 0, 0);
}

enum { RBX = 13 }; /* of expect: rax is the last one */

/* --------------------------------------------------------------------- what to do */

static struct frame *top(struct thread *t)
{
    return &t->frames[t->depth - 1];
}

static void pass_baton(struct thread *t, int to)
{
    sem_post(&threads[to].baton);
    while (sem_wait(&t->baton)) {
    }
}

static void ask_debugger(long what, long argument)
{
    long request[3] = {'d', what, argument};
    char answer;
    note(EV_DEBUGGER, what, (u64)argument, 0);
    if (write(1, request, sizeof request) != sizeof request || read(0, &answer, 1) != 1)
        _exit(3);
}

/* What the agent has counted for each context: the thread, sum of latencies, dropped, in_peak, round, what is
 * not reported yet, the number of latencies in all bins, their weighted sum, and the totals. */
static void snapshot(void)
{
    u64 size = 1 + context_room * (8 + 6 * node_count);
    if (snapshot_count + size > sizeof snapshots / 8)
        return;
    note(EV_SNAP, (long)snapshot_count, context_room, node_count);
    u64 *out = snapshots + snapshot_count;
    for (u64 i = 0; i < context_room; i++) {
        const u64 *ctx = (u64 *)(snapshot_contexts + i * context_size);
        const u64 *bins = ctx + bins_at / 8, *totals = ctx + totals_at / 8;
        u64 number = 0, weighted = 0;
        for (u64 bin = 0; bin < bins_count; bin++) {
            number += bins[bin];
            weighted += bins[bin] * (bin + 1) * (bin + 1);
        }
        *out++ = ctx[0];
        *out++ = ctx[5];
        *out++ = ctx[7];
        *out++ = ctx[8];
        *out++ = ctx[9];
        *out++ = ctx[6];
        *out++ = number;
        *out++ = weighted;
        for (u64 word = 0; word < 6 * node_count; word++)
            *out++ = totals[word];
    }
    snapshot_count = (u64)(out - snapshots);
}

static u64 finish(struct thread *t, u64 *saved, u64 where)
{
    t->armed = t->outside = t->count = 0;
    if (t->arm || t->traces) {
        t->armed = 1;
        saved[0] |= 0x100;
    }
    set_vectors(t);
    return where;
}

static u64 to_call(struct thread *t, u64 *saved, int callee, int kind)
{
    struct frame *f = top(t);
    int i = f->function;
    f->fill = next_random(&t->seed);
    fill(f);
    set_registers(t, saved);
    u64 own = back[i][callee], where = go[i][callee];
    if (kind == OP_INDIRECT) {
        own = iback[i];
        where = igo[i];
        t->pointer = functions[callee];
        t->expect[RBX] = saved[1 + RBX] = (u64)&t->pointer - 0x12345678;
    }
    note(EV_CALL, callee, (u64)kind, f->slot);
    t->frames[t->depth].own = own;
    return finish(t, saved, where);
}

static u64 to_leave(struct thread *t, u64 *saved, int callee)
{
    struct frame *f = top(t);
    set_registers(t, saved);
    f->fill = next_random(&t->seed);
    fill(f);
    t->tail = f->fill;
    if (callee < 0) {
        note(EV_LEAVE, 0, f->slot, 0);
        t->depth--;
        return finish(t, saved, ret[f->function]);
    }
    note(EV_CALL, callee, OP_TAIL, f->slot);
    return finish(t, saved, leave[f->function][callee]);
}

static u64 saved_of(const struct frame *f)
{
    return f->slot - frame_size[f->function] - 128;
}

static void jump(struct thread *t, int levels) __attribute__((noreturn));
static void jump(struct thread *t, int levels)
{
    int wanted = t->depth - 1 - levels;
    t->depth = (wanted < 1 ? 1 : wanted);
    for (; t->nested && t->depth < t->base[t->nested]; t->nested--) { /* out of a handler */
        t->script = t->outer_script[t->nested];
        t->at = t->outer_at[t->nested];
    }
    struct frame *f = top(t);
    note(EV_JUMP, 0, f->slot, 0);
    jump_to(again[f->function], saved_of(f));
}

/* Then darc does not do what it does where no thread is in the agent. */
static int is_anyone_interrupted(void)
{
    for (int i = 0; i < THREADS; i++)
        if (threads[i].nested)
            return 1;
    return 0;
}

static u64 act(struct thread *t, u64 *saved)
{
    for (;;) {
        struct operation op = {0};
        if (t->at < OPERATIONS)
            op = scripts[t->script][t->at++];
        struct frame *f = top(t);
        int at_base = t->depth == t->base[t->nested], guard = f->function > ROOT;
        if (guard)
            return to_leave(t, saved, -1);
        switch (op.what) {
        case OP_WORK:
            the_clock += (u64)op.a;
            break;
        case OP_CALL:
        case OP_INDIRECT:
            if (t->depth - t->base[t->nested] < DEPTH && t->depth < FRAMES - 2)
                return to_call(t, saved, (int)op.a, op.what);
            break;
        case OP_TAIL:
            if (!at_base)
                return to_leave(t, saved, (int)op.a);
            break;
        case OP_RETURN:
            if (!at_base)
                return to_leave(t, saved, -1);
            break;
        case OP_JUMP:
            if (op.b) {
                t->pending_jump = (int)op.a + 1;
                return to_call(t, saved, LONGJMP, OP_CALL);
            }
            jump(t, (int)op.a);
        case OP_HIDE:
            return to_call(t, saved, UNWINDER, OP_CALL);
        case OP_SHOW:
            return to_call(t, saved, CATCHER, OP_CALL);
        case OP_ARM:
            if (t->nested < NESTED) {
                t->arm = (int)op.a + 1;
                t->handler = op.b;
            }
            break;
        case OP_TRACE:
            t->traces = 1;
            break;
        case OP_RESUME:
            if (op.a < THREADS && !threads[op.a].ended && threads[op.a].resumer < 0 && op.a != t->number) {
                threads[op.a].resumer = t->number;
                pass_baton(t, (int)op.a);
            }
            break;
        case OP_YIELD:
            if (t->resumer >= 0) {
                int to = t->resumer;
                t->resumer = -1;
                pass_baton(t, to);
            }
            break;
        case OP_DEBUGGER:
            if (op.a != HEAL_ORDER && op.a != COMPACT_ORDER)
                ask_debugger(op.a, op.b);
            else if (!is_anyone_interrupted())
                ask_debugger(op.a, op.b);
            break;
        case OP_END:
            if (at_base && !t->nested)
                return to_call(t, saved, ENDING, OP_CALL);
            break;
        default: /* the script is over: all its frames return */
            t->at = OPERATIONS;
            return to_leave(t, saved, -1);
        }
    }
}

/* A transfer is over; behind it nothing is interrupted any more. */
static void settle(struct thread *t)
{
    if (t->armed && t->arm)
        note(EV_MISSED, 0, 0, 0);
    t->armed = t->arm = t->traces = 0;
}

static void disarm(void)
{
    u64 flags;
    __asm__ volatile("pushfq\n pop %0" : "=r"(flags));
    if (flags & 0x100)
        __asm__ volatile("push %0\n popfq" ::"r"(flags & ~0x100UL) : "cc");
}

u64 arrived(int function, u64 *saved)
{
    struct thread *t = me;
    disarm();
    u64 slot = (u64)saved + 128 + frame_size[function];
    if (t->expect[0]) {
        check_vectors(t);
        check_registers(t, saved);
    }
    struct frame *f;
    if (t->tail) { /* in place of the frame before */
        f = top(t);
        if (f->slot != slot)
            wrong(WRONG_STACK_POINTER, f->slot, slot);
        u64 seed = t->tail;
        for (u64 at = f->slot - frame_size[f->function]; at < f->slot; at += 8) {
            u64 expected = next_random(&seed);
            if (at >= slot - 128 && *(u64 *)at != expected)
                wrong(WRONG_RED_ZONE, at, *(u64 *)at);
        }
        t->tail = 0;
        f->function = function;
    } else {
        f = &t->frames[t->depth++];
        if (t->expect[0]) {
            struct frame *caller = f - 1;
            if (slot != caller->slot - frame_size[caller->function] - 8)
                wrong(WRONG_STACK_POINTER, caller->slot, slot);
            check_frame(caller);
        } else {
            f->own = *(u64 *)slot; /* called from C */
        }
        *f = (struct frame){function, slot, f->own, 0};
    }
    f->fill = 0;
    settle(t);
    note(EV_ARRIVE, function, slot, f->own);
    if (function == UNWINDER || is_left) {
        for (int i = t->depth; i-- > 0;) {
            u64 word = *(u64 *)t->frames[i].slot;
            if (word != t->frames[i].own)
                wrong(WRONG_HIDDEN, t->frames[i].slot, word);
        }
    }
    if (function == LONGJMP && t->pending_jump) {
        int levels = t->pending_jump; /* its own frame goes as well */
        t->pending_jump = 0;
        jump(t, levels);
    }
    return act(t, saved);
}

u64 returned(int function, u64 *saved)
{
    struct thread *t = me;
    disarm();
    struct frame *f = top(t);
    check_vectors(t);
    check_registers(t, saved);
    if (f->function != function || (u64)saved != saved_of(f))
        wrong(WRONG_CALLER, (u64)function, (u64)saved);
    check_frame(f);
    t->tail = 0;
    settle(t);
    note(EV_BACK, function, f->slot, 0);
    if (t->depth == 1 && !t->nested)
        snapshot();
    return act(t, saved);
}

u64 jumped(int function, u64 *saved)
{
    struct thread *t = me;
    volatile u8 gone[1 << 14]; /* of the frames that were left nothing stays, as after some more calls */
    (void)function;
    for (u64 i = 0; i < sizeof gone; i++)
        gone[i] = 0;
    t->armed = t->arm = t->traces = 0;
    t->tail = 0;
    if (t->depth == 1 && !t->nested)
        snapshot();
    return act(t, saved);
}

/* --------------------------------------------------------------------------- signals */

static void run_handler(struct thread *t, int handler)
{
    int depth = t->depth;
    u64 expect[15], vector = t->vector, tail = t->tail, pointer = t->pointer;
    memcpy(expect, t->expect, sizeof expect);
    struct frame upper = t->frames[depth]; /* what is about to arrive */
    t->nested++;
    t->outer_script[t->nested] = t->script;
    t->outer_at[t->nested] = t->at;
    t->script = handler;
    t->at = 0;
    t->tail = 0;
    t->expect[0] = 0;
    t->base[t->nested] = depth + 1;
    note(EV_BEGIN, handler, 0, 0);
    begin();
    note(EV_FINISH, handler, 0, 0);
    t->script = t->outer_script[t->nested];
    t->at = t->outer_at[t->nested];
    t->nested--;
    t->depth = depth;
    t->frames[depth] = upper;
    memcpy(t->expect, expect, sizeof expect);
    t->vector = vector;
    t->tail = tail;
    t->pointer = pointer;
}

/* Between any two instructions of a transfer. */
static void step(ucontext_t *context)
{
    struct thread *t = me;
    greg_t *regs = context->uc_mcontext.gregs;
    u64 rip = (u64)regs[REG_RIP];
    int stops = 0;
    if (!t || !t->armed) {
        stops = 1;
    } else if (rip - AREA >= AREA_SIZE) {
        stops = ++t->outside > 24; /* f0's first instruction leads there again, all others need more */
    } else {
        t->outside = 0;
        if (t->traces && traced_count < TRACED) {
            struct traced *row = &traced[traced_count++];
            row->rip = rip;
            row->events = event_count;
            for (int i = 0; i < 16; i++)
                row->registers[i] = (u64)regs[i]; /* r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp */
        }
        if (t->arm && t->count++ == t->arm - 1) {
            int handler = t->handler;
            t->arm = 0;
            if (!t->traces) {
                t->armed = 0;
                stops = 1;
            }
            int armed = t->armed, traces = t->traces, outside = t->outside;
            t->armed = t->traces = 0;
            run_handler(t, handler);
            t->armed = armed;
            t->traces = traces;
            t->outside = outside;
        }
    }
    if (stops)
        regs[REG_EFL] &= ~0x100L;
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    step(context);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
    const u8 *code = (u8 *)regs[REG_RIP];
    (void)signal;
    if (info->si_code != SI_KERNEL || code[0] != 0x0f || code[1] != 0x31) {
        wrong(WRONG_FAULT, (u64)regs[REG_RIP], (u64)info->si_addr);
        long request[3] = {'f', regs[REG_RIP], (long)info->si_addr};
        _exit(write(1, request, sizeof request) == sizeof request ? 4 : 5);
    }
    regs[REG_RAX] = (greg_t)(the_clock & 0xffffffff);
    regs[REG_RDX] = (greg_t)(the_clock >> 32);
    regs[REG_RIP] += 2;
    if (regs[REG_EFL] & 0x100)
        step(context);
}

static void *run_thread(void *argument)
{
    struct thread *t = argument;
    stack_t other = {.ss_sp = t->other_stack, .ss_size = sizeof t->other_stack};
    if (on_other_stack)
        sigaltstack(&other, 0);
    me = t;
    while (sem_wait(&t->baton)) {
    }
    t->seed = 12345 + (u64)t->number;
    t->script = t->number;
    t->base[0] = 1;
    u64 base;
    __asm__("mov %%fs:0, %0" : "=r"(base));
    note(EV_START, t->number, base, 0);
    begin();
    note(EV_START, -1, 0, 0);
    t->ended = 1;
    int to = t->resumer;
    if (to >= 0)
        sem_post(&threads[to].baton);
    else
        sem_post(&threads[0].baton);
    return 0;
}

static void run(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER | (on_other_stack ? SA_ONSTACK : 0)};
    action.sa_sigaction = on_trap;
    sigaction(SIGTRAP, &action, 0);
    action.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &action, 0);
    prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    for (int i = 0; i < THREADS; i++) {
        struct thread *t = &threads[i];
        t->number = i;
        t->resumer = -1;
        sem_init(&t->baton, 0, 0);
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, (void *)(STACKS + (u64)i * STACK_GAP), STACK_SIZE);
        pthread_create(&t->id, &attributes, run_thread, t);
    }
    for (int i = 0; i < THREADS; i++) { /* those that nobody resumes run in turn */
        while (!threads[i].ended) {
            threads[i].resumer = -1;
            sem_post(&threads[i].baton);
            pthread_join(threads[i].id, 0);
        }
    }
}

static int map(u64 at, u64 size, int protection)
{
    void *got = mmap((void *)at, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return got == (void *)at;
}

/* Where, seen from its thread pointer, a thread has its id. */
static u64 find_id(void)
{
    u64 base;
    __asm__("mov %%fs:0, %0" : "=r"(base));
    for (u64 at = 0; at < 2048; at += 4)
        if (*(int *)(base + at) == (int)syscall(SYS_gettid))
            return at;
    return 0;
}

int main(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    int good = map(AREA, AREA_SIZE, PROT_READ | PROT_EXEC) && map(TABLES, TABLES_SIZE, PROT_READ | PROT_WRITE);
    good = good && !mprotect((void *)(AREA + AREA_WRITABLE), AREA_WRITABLE_END - AREA_WRITABLE, PROT_READ | PROT_WRITE);
    for (u64 i = 0; i < THREADS; i++)
        good = good && map(STACKS + i * STACK_GAP, STACK_SIZE, PROT_READ | PROT_WRITE);
    life_at = find_id();
    if (!good)
        return 1;
    for (;;) {
        char order;
        if (read(0, &order, 1) != 1)
            return 0;
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
            long hello[3] = {'p', getpid(), 0};
            if (write(1, hello, sizeof hello) != sizeof hello || read(0, &order, 1) != 1)
                _exit(2);
            run();
            long bye[3] = {'e', (long)event_count, 0};
            if (write(1, bye, sizeof bye) != sizeof bye || read(0, &order, 1) != 1)
                _exit(2);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        long end[3] = {'s', status, 0};
        if (write(1, end, sizeof end) != sizeof end)
            return 2;
    }
}
