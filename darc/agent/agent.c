/* The agent: what runs inside the program at every timed call.
 *
 * Rules for this file. It runs in any thread of somebody's program, between any two instructions,
 * in signal handlers and while other threads do the same:
 *   - freestanding: no libc, no relocations, no data or bss of its own, no vector registers;
 *   - no lock, no loop without a bound, at most 256 bytes of stack;
 *   - no system call, but once a level when the bell rings, when an unwinder is about to look, when tables
 *     are full (which process is this?), and when the debugger gives no sign of life (is it gone?);
 *   - it reads and writes only shared memory (abi.h) and stack words of frames that live, and reads what stands
 *     before a caller's address in code of files;
 *   - it leaves no address of its own, or of a pad, behind on a stack: below a stack pointer may be the stack of a
 *     coroutine that rests, and nobody can know that a word there is dead. What a call has pushed is overwritten
 *     behind it (build.py), and what is loaded of such an address is kept across no call;
 *   - whatever interrupts it (a signal handler that longjmps out, a coroutine switch) may cost a
 *     measurement and never more: a measurement in doubt is dropped;
 *   - the program always gets its own return address back.
 *
 * Compiled so that a function keeps r8 to r11 as well (build.py): the stubs save only registers that
 * every call needs. A timed call is bound by how many instructions it has; what is common of a direct
 * call is therefore in the stubs themselves (stubs.S), and darc_enter and darc_return are called for
 * all that is not. With that a compiler's tail call loses its fifth and sixth argument, which it passes in r8 and
 * r9 and restores them before: what may become one has four.
 */
#include "abi.h"

#define ENTRY __attribute__((used, visibility("default")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define PR_SET_SECCOMP 22
#define PR_SET_NO_NEW_PRIVS 38
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define FUTEX_WAKE_OP_PRIVATE (5 | 128)
#define FUTEX_ADD_NOTHING (1U << 28)
#define SI_QUEUE 0xffffffffUL /* si_code -1 */
#define SIG_IGNORE 1 /* SIG_IGN; SIG_DFL is 0, a handler's address is more */
#define EPERM 1
#define ENOSYS 38
#define SIG_UNBLOCK 1
#define SIG_SETMASK 2

#define OPEN 1
#define HIDDEN 2
#define ASIDE 3
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

/* One translation unit, so that what is common is inlined; each file needs those before it. */
#include "x86_64.h"
#include "kernel.h"
#include "callers.c"
#include "tables.c"
#include "ops.c"
#include "votes.c"
#include "bell.c"
#include "asides.c"
#include "f0.c"
#include "calls.c"
#include "members.c"
#include "kernel.c"
#include "unwind.c"
#include "waits.c"
#include "moments.c"
#include "switches.c"
#include "guards.c"
#include "calibrate.c"

struct begun {
    u64 record; /* not zero: the call is to be timed */
    u64 rings;  /* else, not zero: the site of a guard, whose stub is to ring */
};

/* Entry pads. frame is what the program has in rbp. */
ENTRY struct begun darc_entry(site *s, u64 slot, const u64 *first_argument, u64 frame)
{
    control *ctl = (control *)s->control;
    if (likely(s->kind == DARC_F0))
        return (struct begun){.record = (u64)enter_f0(ctl, s, slot)};
    if (likely(s->kind == DARC_MEMBER))
        return (struct begun){.record = (u64)enter_member(ctl, s, slot)};
    if (s->kind == DARC_INTERRUPT) /* the second argument, as the stub saves it */
        return (struct begun){.record = (u64)enter_interrupt(ctl, s, slot, first_argument[-4])};
    return (struct begun){.rings = guard(ctl, s, slot, first_argument, frame) ? (u64)s : 0};
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
    if (s->kind == DARC_MEMBER) {
        if (rec->open == OPEN)
            left.rings = leave_member(ctl, rec, end);
        return left;
    }
    context *ctx = (context *)rec->context;
    if (unlikely(s->kind == DARC_INTERRUPT && rec->open == OPEN && STATE(rec) == STATE(ctx)))
        leave_interrupt(ctl, ctx, rec, end);
    else if (likely(rec->open == OPEN && STATE(rec) == STATE(ctx)))
        left.rings = leave_f0(ctl, ctx, rec, end);
    else if (rec->open == OPEN)
        rec->open = 0;
    else if (rec->open == ASIDE)
        leave_aside(ctl, ctx, rec, end);
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
    if (ctl->mode == DARC_SET)
        return leave_member(ctl, rec, end);
    context *ctx = (context *)rec->context;
    if (likely(STATE(rec) == STATE(ctx)))
        return leave_f0(ctl, ctx, rec, end);
    rec->open = 0;
    return 0;
}
