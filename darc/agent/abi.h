/* The memory that the agent and the debugger share.
 *
 * One header for both: the agent is compiled with it, and build.py prints every offset and constant
 * below into layout.json, which is all that Python knows of these structures. Change a structure,
 * and DARC_ABI_VERSION with it: a debugger never speaks to an agent of another version.
 *
 * Words of the field: a *slot* is the address of the stack word that holds a call's return address;
 * it names the call's frame uniquely while the frame lives. A *record* is one open call. An *op*
 * is one outermost call of f0. A *node* is an fnode, dense and numbered anew at every decision.
 */
#ifndef DARC_ABI_H
#define DARC_ABI_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

#define DARC_MAGIC 0x3130746e67416344UL /* "DcAgnt01" */
#define DARC_ABI_VERSION 53

#define DARC_MAX_BINS 520      /* 64 * resolution 8, and room for the last threshold */
#define DARC_MAX_DEPTH 16384   /* open calls of a thread that are followed */
#define DARC_HERD_PART 8       /* of a call that counts, no more than this part is in a herd's time, */
#define DARC_HERD_OPS 32       /* unless its thread had so many that did not count since the stop; */
#define DARC_HERD_CALLS 2048   /* of all functions of a set together, so many */
#define DARC_FREED 1           /* slot of a record that may be claimed anew */
#define DARC_ENDED 2           /* thread of a context that may be claimed anew, with its totals */
#define DARC_MAX_TARGETS 16    /* learned targets of one indirect site; all others are one node more */
#define DARC_LATE_TARGETS 4    /* the last one in so many places is for targets that were long in an op of the peak */
#define DARC_LONG_PART 8       /* where they took this part of the op, or more */
#define DARC_MAX_TAILS 12      /* tail calls followed inside one frame: nginx chains ten filters */
#define DARC_PROBE_LIMIT 16    /* steps of open addressing among records */
#define DARC_THREAD_LIMIT 64   /* and among contexts */
#define DARC_MAX_OLDER 12      /* tables of contexts that were full; each has more room than those before */
#define DARC_THREAD_HASH 0x9e3779b97f4a7c15UL /* spreads threads (and landings), whatever powers of two their stacks are */
#define DARC_THREAD_SHIFT 40   /* apart, over contexts: by the bits from here on of the product */
#define DARC_HASH 0x4f1bbcddUL /* spreads addresses over the tables: bits from 17 on of the product */
#define DARC_HASH_SHIFT 9      /* that is where a record is, in bytes: its size is 256 */
#define DARC_NO_PARENT 0xfffffffeu /* a site's first_parent that no node is */
#define DARC_UNTIMED 0x80000000u   /* bit of a site's first_child: the node is not timed */
#define DARC_PASSES 2u             /* a node's timed: calls of an indirect site's target are left alone */
#define DARC_OTHERS 3u             /* or it is timed, and stands for all targets that there was no room for */
#define DARC_NEVER (1UL << 62) /* start of a call that is not timed: later than any end */
#define DARC_LEFT 0x80u        /* bit of tail_count: a tail call led out of the ftree */
#define DARC_FAULTS 0x990UL    /* bits of SIGILL, SIGBUS, SIGFPE, SIGSEGV */
#define DARC_FREE 4            /* idle of a context without an op: no record's open */

/* Return landings (darc/pads/returns.py): DARC_LANDINGS cells of code at the front of an area, behind
 * them a word for each, which is 0 or, for ever, the program's own return address, and behind those a word
 * for each of f0's callers: what its cell calls. */
#define DARC_MAX_HANDLERS 32       /* of signals that come anywhere, which the debugger has looked at or is about to */
#define DARC_ELSEWHERE 0x7df7d40eUL /* bits of these signals, below the real-time ones (darc/code/faults.py) */
#define DARC_FIRST_REAL_TIME 34
#define DARC_MAX_AREAS 16          /* that have landings */
#define DARC_MAX_CODE 2032         /* stretches of code whose calls of f0 are timed */
#define DARC_LANDINGS 2048
#define DARC_LANDING_SIZE 24       /* bytes of a cell */
#define DARC_LANDING_ENTER 2       /* where f0's pad goes on in it */
#define DARC_LANDING_BACK 13       /* where is returned to */
#define DARC_LANDING_WORDS 49152   /* from the first cell to the first word */
#define DARC_LANDING_BODIES 65536  /* to the first word of what is called */
#define DARC_LANDING_SITES 24      /* the first cells are a header; then those of call sites, */
#define DARC_LANDING_CALLERS 1024  /* and those of f0's callers, */
#define DARC_LANDING_FEW 128       /* of which so many are used before all others */

/* Ops that are kept whole (darc/agent/ops.c): of each class so many, chosen uniformly, and the slowest one. */
#define DARC_KEPT_CLASSES 2        /* in the peak; in the fastest one */
#define DARC_KEPT_OPS 32
#define DARC_MAX_SPANS 160        /* calls of an op, */
#define DARC_MAX_SUMS 64          /* and fnodes of it */
#define DARC_MAX_EVENTS 32         /* what it waited for, and who released that; of more, those that are like one of */
#define DARC_FIRST_EVENTS 8        /* these are added to it, the first ones stay, and of the others the last ones */
#define DARC_APART_EVENTS 4       /* so many are written down one by one, whatever they are like */
#define DARC_EVENT_WORDS 37        /* of the stack of who did */
#define DARC_MAX_SWITCHES 64       /* of an op's task, in a kernel: the first ones stay */
#define DARC_SHEET_EVENTS 8        /* room for events is taken by sheets of so many, */
#define DARC_EVENT_SHEETS 4        /* an op's has so many at most, of which the first one is its entry's own, */
#define DARC_SHEETS 5              /* and one for its switches */
#define DARC_WAITERS 256           /* ops whose threads may be waiting now, */
#define DARC_WAIT_HASHES 64        /* found by so many hashes of what they wait for: */
#define DARC_WAIT_SHIFT 58         /* object * DARC_THREAD_HASH >> this, also in the pads (pads/x86_64.py); */
#define DARC_WAITER_STEPS 128      /* places that one may take of these */
#define DARC_TAKERS 4              /* releases of a condition's mutex that are told of after each signal */
#define DARC_MOMENT_WORDS 32       /* of the stack, of what a kernel's tasks did meanwhile */
#define DARC_REQUESTS 512          /* to disks that are under way, by a hash of their addresses */
#define DARC_KEPT_FEW 1024         /* so many of the fastest are looked at in a round, as they are many */

#define DARC_MAX_FROM 4            /* stretches of code of a function whose calls a walk times */
#define DARC_CALL_BINS 46         /* of one thread's calls of one function of a set: 2^45 cycles are four hours */

/* Stand for addresses in the code that is copied into f0's pad (stubs.S). */
#define DARC_THE_SITE 0x5173517351735173UL
#define DARC_THE_CONTROL 0x5174517451745174UL
#define DARC_THE_RECORDS 0x5175517551755175UL

/* How threads are told apart: not at all, by their thread pointer, by their kernel stack. */
enum darc_thread_key {
    DARC_BY_NOTHING = 0,
    DARC_BY_STORAGE = 1,
    DARC_BY_STACK = 2,
};

#define DARC_STACK_SHIFT 14    /* a kernel stack is 16 KiB and aligned (x86-64's THREAD_SIZE) */
#define DARC_ASIDES 8          /* of so many kinds: ticks, soft interrupts, devices, the scheduler, below some nodes */
#define DARC_FEW_INTERRUPTED 2 /* calls that were interrupted in the agent's own time do not vote unless there are so many more */

enum darc_mode {
    DARC_PROFILE = 0,
    DARC_ANALYSE = 1,
    DARC_SET = 2,    /* many functions at once, each for itself (darc/agent/members.c) */
};

/* Who has the time of a loop's calls: the loop's caller (paper 3.3), or they, taken together. */
enum darc_loops {
    DARC_LOOPS_TOGETHER = 0,
    DARC_LOOPS_PAPER = 1,
};

#define DARC_REPEATED 8 /* calls of a node in an op from which on they may be a loop's */

enum darc_site_kind {
    DARC_F0 = 0,     /* entry of f0 */
    DARC_CALL = 1,   /* call site, direct or indirect */
    DARC_TAIL = 2,   /* tail jump: its time ends with its parent's */
    DARC_HIDE = 3,   /* entry of an unwinder: show it the stack as if no pad were there */
    DARC_EXIT = 5,   /* entry of _exit: the debugger looks a last time */
    DARC_JUMP = 6,   /* entry of longjmp: frames are about to be abandoned */
    DARC_SANDBOX = 7, /* entry of prctl, syscall: seccomp may be about to forbid system calls */
    DARC_END = 10,    /* a thread is about to end */
    DARC_INTERRUPT = 8, /* a kernel's handler: a call that whatever runs then makes */
    DARC_HANDLER = 9, /* entry of signal and the like: what handles faults may know instructions by address */
    DARC_LOCK = 11,     /* entry of pthread_mutex_lock and of what waits likewise while a word is not 0, */
    DARC_UNLOCK = 12,   /* of pthread_mutex_unlock, pthread_cond_signal, sem_post and the like, */
    DARC_COND_WAIT = 13, /* of pthread_cond_wait, which releases a mutex and takes it again, */
    DARC_SEM_WAIT = 14, /* of sem_wait, which waits while a word is 0, */
    DARC_BARRIER = 15,  /* of pthread_barrier_wait, */
    DARC_JOIN = 16,     /* of pthread_join, whose thread's end is its release, */
    DARC_RWLOCK = 17,   /* and of pthread_rwlock_wrlock and the like: as DARC_LOCK, its holder elsewhere */
    /* The same where the function looks at its other arguments first: what it refuses, it has not looked at. */
    DARC_LOCK_BY_CLOCK = 18,    /* of pthread_mutex_clocklock: the second one is a clock, */
    DARC_RWLOCK_UNTIL = 19,     /* of pthread_rwlock_timedrdlock and the like: it is a time, or none, */
    DARC_RWLOCK_BY_CLOCK = 20,  /* of …_clockrdlock: it is a clock, and the third one such a time, */
    DARC_SEM_WAIT_UNTIL = 21,   /* of sem_timedwait: it is a time, */
    DARC_SEM_WAIT_BY_CLOCK = 22, /* and of sem_clockwait: it is a clock, and the third one a time. */
    DARC_SWITCH = 24,   /* a kernel's finish_task_switch: one task has left the processor, another one has it */
    DARC_WAKE = 25,     /* its try_to_wake_up, */
    DARC_WORK = 29,     /* its process_one_work, */
    DARC_DISK = 30,     /* its submit_bio, and */
    DARC_DISK_END = 31, /* its bio_endio */
    /* As DARC_RWLOCK, _UNTIL and _BY_CLOCK, of those that read: other readers do not keep them waiting. */
    DARC_RDLOCK = 26,
    DARC_RDLOCK_UNTIL = 27,
    DARC_RDLOCK_BY_CLOCK = 28,
    DARC_SHOW = 4,   /* entry of __cxa_begin_catch: frames that live are taken up again */
    DARC_MEMBER = 23, /* entry of a function of a set, whose number is route_first */
    DARC_PASSED = 32, /* of f0's, or one of these, of an earlier analysis: what leads there still just passes */
    DARC_ACTION = 33, /* entry of sigaction, whose second argument leads to the handler: this is to be looked at */
};

/* What the signal of the bell carries (sigqueue(3)): it is darc's own, and not for the program. */
#define DARC_BELL_MARK 0x6c6c6542634461UL /* "aDcBell" */

/* WAITING: no signal was sent, as nobody might hear it or the program would; the debugger is to look
 * by itself. */
enum darc_bell {
    DARC_QUIET = 0,
    DARC_RINGING = 1,
    DARC_WAITING = 2,
};

/* Bits: what there is no room for. */
enum darc_short {
    DARC_SHORT_OF_CONTEXTS = 1,
    DARC_SHORT_OF_RECORDS = 2,
};

/* Wiped by fork (MADV_WIPEONFORK): the child has no debugger and passes through. */
struct darc_live {
    u64 enabled;
    u64 reserved[511];
};

/* A word that a kernel's debugger watches, on a page of its own: every access to a watched page is slow. */
struct darc_doorbell {
    u64 rings;
    u64 reserved[511];
};

/* Where those are looked for who wait. */
struct darc_waiter {
    u64 object;
    u64 entry;    /* atomic; struct darc_kept *, 0: free */
};

/* Ops of one class that are kept: struct darc_kept *, each word exchanged atomically. */
struct darc_class {
    u64 seen;            /* atomic; of this round, but for the slowest */
    u64 slowest;
    u64 kept[DARC_KEPT_OPS];
};

/* Code that no runtime looks for return addresses of. */
struct darc_code {
    u64 start;
    u64 end;
};

struct darc_control {
    u64 magic;
    u32 version;
    u32 reserved;
    u64 live;            /* struct darc_live * */
    u64 doorbell;        /* struct darc_doorbell * */
    u64 enter;           /* darc_entry and darc_leave, for the pad of a kernel's f0 */
    u64 leave;
    u64 sites;           /* struct darc_site * */
    u64 nodes;           /* struct darc_node * */
    u64 routes;          /* struct darc_route * */
    u64 records;         /* struct darc_record * */
    u64 contexts;        /* struct darc_contexts *, the table in which threads find room */
    u64 analysis;        /* u32 *, node numbers whose children are compared */
    u32 analysis_count;
    u32 node_count;
    u32 resolution;      /* read as one word with mode */
    u32 mode;
    u64 node_mask;       /* how many nodes there is room for, a power of two, less 1 */
    u64 record_mask;     /* records likewise, as bits that are left of a hash (DARC_HASH_SHIFT) */
    u64 epoch;           /* advanced by the debugger at every stop */
    u64 resumed;         /* TSC when the program went on after a stop, and until when what had become due meanwhile */
    u64 settled;         /* may run as a herd: calls of which much is between the two do not count */
    u64 unsettled_calls; /* so many */
    u64 last_beat;       /* TSC of the debugger's last sign of life */
    u64 deadline;        /* TSC after which f0's next return rings, whatever was seen */
    u64 wake;            /* TSC after which the agent looks: for the deadline, for the debugger */
    u64 patience;        /* cycles without a sign of life after which it looks for the debugger */
    u64 fresh;           /* cycles for which a sign of life is proof of it */
    u64 debugger;        /* its pid as the program sees it; 0: it does not */
    u64 only_thread;     /* thread pointer of the one thread to watch, 0: all */
    u64 thread_key;      /* enum darc_thread_key */
    u64 current_at;      /* kernel: the running task's address, seen from gs */
    u64 preempt_at;      /* and preempt_count, */
    u64 not_task;        /* and what of its low half is set in interrupts, NMIs and soft interrupts that are served */
    u64 stack_at;        /* and the end of the running task's stack */
    u64 vectors_at;      /* and what each vector of a device's interrupt stands for, 0: not told apart */
    u64 action_at;       /* where that has its first action, */
    u64 handler_at;      /* and where an action has its handler */
    u64 stack_of;        /* offsets in a task: its stack; 0: switches are not watched, */
    u64 queued_of;       /* whether it is on a queue of those that could run, */
    u64 delayed_of;      /* though it sleeps, 0: none is then; */
    u64 cpu_of;          /* its processor's number, 0: not known; */
    u64 work_of;         /* offsets in a work_struct: its function, 0: not known; */
    u64 last_of;         /* and in a worker: the function of the one that it did last; */
    u64 state_of;        /* for what it waits to be woken, */
    u64 id_of;           /* its id, */
    u64 name_of;         /* and its name, of 16 bytes */
    u64 task_at;         /* offset of two words in it that tell a task to watch */
    u64 task_mask[2];    /* bits that count; both 0: every task, and interrupts */
    u64 task_value[2];
    u64 peak_low;        /* cycles; an op is in the peak when low <= latency < high, */
    u64 peak_high;       /* give or take an eighth of what its probes cost */
    u64 least_op;        /* cycles that the ops took at least while nothing was timed in them; 0: not known */
    u64 overdrawn_ops;   /* of which far less would be left without what their probes cost: they count as that */
    u64 needed;          /* ring when this many ops (PROFILE) or in-peak ops (ANALYSE) were seen */
    u64 loops;           /* enum darc_loops */
    u64 batch;           /* ops a context keeps to itself before adding them to seen */
    u64 seen;            /* atomic */
    u64 bell;            /* enum darc_bell, atomic */
    u64 bell_signal;     /* 0: ring by memory only, the debugger polls */
    u64 bell_return;     /* where the thread that rang goes on in the program */
    u64 bell_slot;       /* and the stack word below its stack pointer there: that which held the address, where f0 returned */
    u64 process;         /* the program's pid: a vfork child shares this memory */
    u64 exiting;         /* the program is about to end */
    u64 bell_start;      /* TSC when it rang and when the program went on */
    u64 bell_end;
    u64 inner_cost;      /* cycles of the pad between its two TSC reads */
    u64 tsc_step;        /* cycles that the TSC goes by at once: an op that takes less counts as that */
    u64 full_cost;       /* cycles that a timed call adds to its caller, opened and closed by the stubs */
    u64 kept_cost;       /* the same of one whose span they keep */
    u64 path_cost;       /* cycles that an untimed call on the path adds to its caller */
    u64 pass_cost;       /* and one that is left alone, as it is none of its caller's fnode there */
    u64 slow_cost;       /* beyond full_cost: where the agent's C opens it in place of the stub, */
    u64 indirect_cost;   /* where its site is an indirect one, */
    u64 return_cost;     /* where C closes it, */
    u64 span_cost;       /* as its span is kept there, */
    u64 first_cost;      /* which is the op's first one, */
    u64 closing_cost;    /* or as tail calls in its frame end with it, */
    u64 target_cost;     /* each of which takes so many */
    u64 tail_cost;       /* cycles that a tail call adds to the frame that it is made in */
    u64 cost_doubt;      /* by how many more cycles than full_cost a timed call may cost, as it does not always cost the same */
    u64 tail_inner;      /* and of its probes between its TSC read and the one at the frame's end */
    u64 is_measured;     /* these costs are known, and whatever else is told once, as the agent begins: written last */
    u64 lost_records;    /* calls not timed as the table was full */
    u64 lost_contexts;   /* the same for threads */
    u64 lost_ops;        /* ops whose exception was caught where the agent could not see it */
    u64 left_ops;        /* and such that were left in another way, or whose frames are not in their place */
    u64 interrupted_ops; /* in a kernel: ops of the peak that were interrupted in the agent's own time, nobody knows for how long */
    u64 round;           /* advanced at every decision: totals start anew */
    u64 context_size;    /* bytes of each context */
    u64 totals_at;       /* offset of the totals in each */
    u64 older_count;     /* tables of contexts that were full; a thread moves when it has no op */
    u64 older[DARC_MAX_OLDER]; /* struct darc_contexts * */
    u64 tables_size;     /* bytes of the mapping that begins with this */
    u64 may_grow;        /* the debugger can make room: it is to be rung for where there is none */
    u64 short_of;        /* atomic; enum darc_short: it was rung for that */
    u64 rooms;           /* from 1 on: how often the debugger has looked for room for records */
    u64 site_room;       /* how many sites and routes there are */
    u64 route_room;
    u64 faults;          /* bits: the program sets handlers for these signals now (DARC_HANDLER, DARC_ACTION) */
    u64 handlers[DARC_MAX_HANDLERS]; /* atomic; those of other signals that it has set, each once; 0: none */
    u64 handler[4];      /* the kernel's answer to rt_sigaction */
    u64 no_calls;        /* the program is in a seccomp sandbox: make no system call */
    u64 record_count;    /* atomic; how many records were ever claimed */
    u64 record_list;     /* u32 *, and which */
    u64 may_read_pointer; /* threads may read their thread pointers by an instruction of their own */
    u64 life_at;         /* where, seen from its thread pointer, a thread has the id of its own; 0: unknown */
    u64 lost_callers;    /* calls of f0, or of a set, not timed as all landings were taken */
    u64 lost_jumps;      /* as they were none: code had jumped there */
    u64 lost_foreign;    /* and as they came from other code than this: */
    u64 code;            /* struct darc_code *, by address: whose calls of f0 get landings */
    u64 code_count;
    u64 scan;            /* landings may stand on stacks where no record tells of them */
    u64 landing_count;
    u64 landings[DARC_MAX_AREAS]; /* where the areas with landings begin */
    u64 least_span;      /* cycles; shorter calls have no span; DARC_NEVER: no op is kept */
    u64 fast_low;        /* cycles; an op is of the fastest peak when low <= latency < high */
    u64 fast_high;       /* 0: none is; so it is set when enough were seen */
    u64 kept;            /* struct darc_kept *, */
    u64 kept_room;       /* and how many there are */
    u64 kept_next;       /* atomic; where room is looked for next */
    u64 sheets;          /* struct darc_sheet *: one for each of kept, and more for all, */
    u64 sheet_room;      /* how many there are, */
    u64 sheet_next;      /* atomic; and how many of those for all were asked for since they were free */
    u64 not_kept;        /* atomic; ops that found none */
    u64 not_followed;    /* atomic; waits that found no place */
    u64 moments;         /* in a kernel: struct darc_moment *, as many struct darc_words and DARC_REQUESTS struct darc_request, */
    u64 moment_room;     /* and how many there are, a power of two; 0: none */
    u64 moment_next;     /* atomic; how many were written since the last stop */
    u64 away;            /* atomic; how many kept ops have no processor now, and above the 16th bit in which epoch */
    u64 blocks;          /* of a set: struct darc_block *, */
    u64 block_room;      /* how many there are, */
    u64 block_next;      /* atomic; and how many were asked for */
    u64 member_inner;    /* cycles of a member's pad between its two TSC reads, */
    u64 member_cost;     /* and cycles that a call of one adds to its caller */
    u64 lost_blocks;     /* calls not timed as there was none, */
    u64 lost_moved;      /* as another thread or frame came back from them, */
    u64 lost_tails;      /* as too many tail calls had been made in the frame */
    u64 from_count;      /* of a walk: calls count that come from code in so many of these stretches; 0: all do */
    struct darc_code from[DARC_MAX_FROM];
    u64 from_member;     /* and where this member has handed its frame on by a tail jump: its number, and 1; 0: none */
    u64 free_members;    /* but for members below this number, whose calls all count; */
    u64 idle_members;    /* and the calls of those below this one are taken out of all that they are in */
    u64 interrupt_members; /* of a set in a kernel: an interrupt's calls count for the member with so many more; 0: nobody asks */
    u64 plain_set;       /* all calls of a set count alike, in threads that have storage: the stubs need not ask */
    struct darc_waiter waiters[DARC_WAITERS];
    u32 waiting[DARC_WAIT_HASHES]; /* atomic; how many wait for objects of that hash */
    struct darc_class classes[DARC_KEPT_CLASSES];
    u64 thresholds[DARC_MAX_BINS];
};

/* The stack of a thread that has rung and could be led back into the program at once, from its stack
 * pointer on. All other general registers are as the program had them. */
struct darc_parked {
    u64 info[6]; /* siginfo_t of the signal */
    u64 control; /* struct darc_control * */
    u64 signal;
    u64 mask;    /* signals that it blocks */
    u64 no_time[2];
    u64 stack;   /* the program's stack pointer where it goes on */
    u64 r11;
    u64 r10;
    u64 r9;
    u64 r8;
    u64 stub;    /* where the ringing returns to */
    u64 rsi;
    u64 rcx;
    u64 rdx;
    u64 rax;
    u64 rdi;
    u64 back;    /* where it goes on: f0's return address, or the place of a guard */
};

struct darc_route {
    u32 parent;
    u32 child; /* of an indirect site: the first of as many nodes as there are bits in lanes */
    u32 lanes; /* which of its targets have a node, in this order; bit number `indirect` is all others' */
};

struct darc_site {
    u64 control;      /* struct darc_control * */
    u64 records;      /* struct darc_record *, the control's, for the stubs */
    u64 record_mask;  /* likewise */
    u64 back;         /* return address in the program; 0 where it is dynamic (f0) */
    u64 pad_back;     /* return address in its landing or pad, where there is one alone */
    u64 landings;     /* f0: where the area begins whose landings its callers get; 0: pad_back */
    u64 body;         /* f0: where its pad goes on with it */
    u32 kind;
    u32 timed;
    u32 route_first;
    u32 route_count;
    u32 first_parent; /* its first route once more, for the stubs */
    u32 first_child;
    u32 indirect;     /* how many targets may be learned, 0: a direct site */
    u32 target_count; /* learned so far */
    u64 targets[DARC_MAX_TARGETS];
    /* For whoever cleans up after a debugger that died. */
    u64 address;
    u8 original[16];
    u16 length;
    u16 patched;
    u32 lead;     /* its pad, as seen from its address; 0: nothing leads there from one */
    u64 overflow; /* calls of targets for which there was no room, roughly */
};

struct darc_node {
    u32 parent;
    u32 first_child; /* of DARC_OTHERS: the number of the site */
    u32 child_count;
    u32 timed; /* or DARC_PASSES, DARC_OTHERS */
};

struct darc_record {
    u64 slot;      /* key; claimed once, kept */
    u64 site;      /* struct darc_site *, which knows the return addresses */
    u64 start;     /* TSC, or DARC_NEVER */
    u64 overhead;  /* cost of timed calls inside */
    u64 parent;    /* struct darc_record * */
    u64 context;   /* struct darc_context * */
    u32 serial;    /* compared together with open: see the agent's STATE */
    u32 open;      /* 1: the pad stands on the stack; 2: hidden from an unwinder; 3: an interrupt's, aside; 0: closed */
    u32 node;      /* the fnode that owns the frame now (a tail call changes it) */
    u32 tail_count; /* and DARC_LEFT */
    u64 below;     /* struct darc_record * of the frame's last call, often that of its next one */
    u64 pad_back;  /* what the slot holds while the call is open */
    u64 back;      /* return address in the program where the site's is 0 */
    u32 first_node; /* the fnode before the first tail call */
    u32 landing;    /* of a set: the number of that which it returns through, among callers' */
    u32 tail_nodes[DARC_MAX_TAILS];
    u64 tails[DARC_MAX_TAILS]; /* when each began, less overhead by then; the last one: see unwind.c */
    u64 entered;    /* TSC when an interrupt's pad was entered; of a set: the epoch */
    u64 block;      /* of a set: struct darc_block *; of an indirect call: its target */
};

/* Of one node within the current op; valid when serial is the context's. */
struct darc_sum {
    u64 max;
    u64 sum;
    u32 serial;
    u32 calls;
};

/* In a kernel: what came to an op while the agent was at work, of one site, below one node; valid when serial is the context's. */
struct darc_aside {
    u64 site;     /* struct darc_site *, */
    u64 target;   /* and who was called */
    u64 start;    /* TSC of the first one, */
    u64 end;      /* and when the last one was over */
    u64 max;
    u64 sum;
    u32 serial;
    u32 calls;
    u32 under;    /* the node that it is a call of */
    u32 unused;
};

/* Of one node over all in-peak ops since the last decision. */
struct darc_total {
    u64 own;     /* times the node itself won against its children */
    u64 votes;   /* times it won as a child */
    u64 ops;
    u64 calls;
    u64 sum;
    u64 max_sum;
};

/* One call, or the sum of a node's calls in an op: start and end are their sum and the longest then, and
 * cost how many they are. */
struct darc_span {
    u64 start;    /* TSC */
    u64 end;
    u32 cost;     /* cycles of probes between the two, or as many as there is room for */
    u32 node;
};

/* What an op's thread began to wait for, and who released it since. */
enum darc_event_kind {
    DARC_EVENT_NONE = 0,
    DARC_EVENT_WAIT = 1,    /* the op's thread may be about to wait */
    DARC_EVENT_RELEASE = 2, /* some thread is about to release, or to signal */
    DARC_EVENT_UNFOLLOWED = 3, /* as DARC_EVENT_WAIT, and who releases does not know: there was no room */
};

struct darc_event {
    u64 time;     /* TSC; written last */
    u64 object;   /* the mutex's address, …, where the joined thread has its storage */
    u32 kind;     /* enum darc_event_kind */
    u32 what;     /* enum darc_site_kind of the function that was entered */
    u32 life;     /* of the thread that releases, 0: of several; of the mutex's owner, as the mutex says */
    u32 node;     /* of the innermost open call of that, where it is in an op; DARC_NO_PARENT: none */
    u64 frame;    /* its rbp, */
    u64 stack;    /* where its return address is, */
    u64 held;     /* atomic; of a release: cycles since the one before, added up; of a wait: how many like it came later */
    u64 way;      /* a hash of from where it was entered; 0: not asked yet */
    u64 words[DARC_EVENT_WORDS]; /* the stack from there on, as far as the page goes; 0: nothing */
    u64 first;    /* TSC of the first one that is added up here */
    u64 name[2];  /* in a kernel, the task's */
};

/* A time in which an op's task was off the processor. */
struct darc_switch {
    u64 out;      /* TSC */
    u64 in;       /* 0: it has none yet */
    u32 ready;    /* 1: it could have run, 0: it waited */
    u32 next;     /* the id of the task that ran then, */
    u64 name[2];  /* and its name */
};

/* Room that an op takes with its first event, or switch, that is to be written there. */
struct darc_sheet {
    struct darc_event events[DARC_SHEET_EVENTS]; /* or struct darc_switch, DARC_MAX_SWITCHES of them */
};

/* What tasks of a kernel do while a kept op's one has no processor. */
enum darc_moment_kind {
    DARC_MOMENT_NONE = 0,
    DARC_MOMENT_SWITCH = 1, /* task has the processor that other had, which was ready, or not */
    DARC_MOMENT_WAKE = 2,   /* other wakes task */
    DARC_MOMENT_WORK = 3,   /* task begins to do work for others, of the function what */
    DARC_MOMENT_DISK = 4,   /* a request that task had submitted when it was the time what has ended */
};

struct darc_moment {
    u64 time;     /* TSC; written last */
    u32 kind;     /* enum darc_moment_kind */
    u32 cpu;
    u32 task;     /* ids; 0: an interrupt, or what runs where nothing is to be done */
    u32 other;
    u64 how;      /* of a switch: whether the other one is ready; of a wake-up: bits of preempt_count that are of no task */
    u64 what;     /* of work: its function, */
    u64 before;   /* and that of the work before it */
    u64 stack;    /* where words begin: of a switch the task's, of a wake-up the other one's, at the function's entry */
    u64 frame;    /* its rbp */
    u64 name[2];  /* the task's; of a wake-up the other one's */
};

struct darc_words {
    u64 words[DARC_MOMENT_WORDS];
};

/* A request to a disk (struct bio) that is under way. */
struct darc_request {
    u64 request;
    u64 time;
    u32 task;
    u32 unused;
    u64 name[2];
};

/* One op with its calls, while it runs and after that. */
struct darc_kept {
    u64 owner;    /* atomic; struct darc_context * whose op it is, 0: free */
    u64 latency;
    u64 start;    /* TSC */
    u64 end;
    u64 cost;
    u32 serial;   /* of the op */
    u32 life;     /* of the thread */
    u32 span_count;
    u32 sum_count;
    u32 lost;     /* spans that there was no room for, */
    u32 lost_sums; /* and sums, */
    u32 event_count; /* atomic; may be more than there was room for */
    u32 waiter_count; /* how many of these are in use: */
    u32 waiters[2]; /* the places that its thread waits at */
    u32 switch_count; /* may be more than there was room for */
    u32 lost_events; /* atomic; for which there was no sheet */
    u32 sheets[DARC_SHEETS]; /* each atomic; their numbers, from 1 on; 0: none */
    u32 takers;   /* of a condition's mutex: so many releases of it are still to be told since the last signal */
    u32 is_reader; /* 1: its thread waits for a writer; what readers release is not to be told */
    u32 lost_waits; /* that were begun, without room, and without one like them before */
    u64 since;    /* atomic; TSC of the last release, or when the wait began */
    u64 began;    /* when that was */
    u64 unused[7];
    struct darc_span spans[DARC_MAX_SPANS];
    struct darc_span sums[DARC_MAX_SUMS];
};

/* A table of contexts; they follow it. One word tells all of a table, so that the debugger can give threads
 * another one wherever they stand. */
struct darc_contexts {
    u64 mask;         /* how many there are, a power of two, less 1 */
    u64 count;        /* atomic; how many are in use */
    u64 numbers;      /* u32 *, and which: there is room for all */
    u64 unused[13];
};

struct darc_context {
    u64 thread;   /* key: thread pointer + 1; claimed once, kept */
    u64 op;       /* struct darc_record * of the op, 0: none */
    u64 top;      /* innermost open record */
    u32 serial;   /* of the op; compared together with idle */
    u32 idle;     /* 0: inside the agent, 1: not, while an op runs, DARC_FREE: no op runs */
    u64 epoch;    /* of the op */
    u64 sum;      /* profile: cycles */
    u64 unreported;
    u64 dropped;  /* ops that spanned a stop */
    u64 in_peak;  /* ops of this round whose votes were all counted */
    u64 round;    /* that the totals are of */
    u64 interrupted_ops; /* ops of the peak that were interrupted in the agent's own time, nobody knows for how long */
    u64 spent;    /* of a set: cycles of all probes that this thread has been through */
    u64 left;       /* TSC when its task left the processor within the op, 0: it has it */
    u64 jump_time;  /* TSC when a longjmp began within the op, 0: none */
    u32 stale;      /* serial of an op that the debugger saw to be gone, 0: none */
    u32 spoiled;    /* serial of an op in which a call was not timed, for want of room: 0: none */
    u64 kept;       /* struct darc_kept *, of an op once; its owner and serial tell whether of this one */
    u32 not_kept;   /* serial of an op that a stop has fallen into, 0: none */
    u32 left_serial; /* of that op */
    u64 first[2];   /* of a walk: TSC of the first call since the last stop, of a counted member, of an idle one, */
    u64 first_epoch[2]; /* and the epoch that it is of */
    u64 others_target; /* of the op's longest call of a target that there was no room for, */
    u64 others_time;
    u32 others_node; /* the node that it counted for, */
    u32 others_serial; /* and the serial of that op */
    u32 life;       /* tells the thread from one that had its thread pointer before */
    u32 stuck;      /* serial at which the debugger saw the agent left by a longjmp, 0: none */
    u32 interrupted; /* serial of an op that was interrupted in the agent's own time, and what that took is not accounted yet, 0: none */
    u32 held_up;    /* calls that did not count, as they came soon after the stop, */
    u64 held_up_at; /* from which the program went on at this TSC */
    u64 aside;      /* struct darc_record * of the interrupt that the agent stands still for, 0: none was yet */
    u32 aside_calls; /* so many have come to the op that is the interrupted one */
    u32 crowded;    /* the control's rooms when a call was spoiled last, 0: none */
    struct darc_aside asides[DARC_ASIDES];
    u64 bins[DARC_MAX_BINS];
    struct darc_sum sums[1]; /* as many as there is room for nodes; behind them struct darc_total, likewise */
};

/* Of a set: the calls of one function in one thread. A thread claims it at its first one, and finds it where
 * a context has its sums of nodes, which a set has no use for: a pointer for each function. */
struct darc_block {
    u64 calls;
    u64 sum;      /* cycles, */
    u64 max;      /* and the longest call's */
    u64 open;     /* struct darc_record * of the call that began last, where its serial is: */
    u32 serial;
    u32 member;   /* the number of the function, and 1 */
    u64 left;     /* calls that an exception or a longjmp has left: in no bin */
    u64 recursions; /* calls within a call of its own: in no bin */
    u32 dropped;  /* calls that spanned a stop */
    u32 lost;     /* calls not timed as all landings were taken, */
    u32 foreign;  /* as they came from other than ordinary code, */
    u32 jumps;    /* and as they were none: code had jumped there; one that is full counts no more */
    u32 bins[DARC_CALL_BINS]; /* a bin that is full counts no more */
};

_Static_assert(DARC_WAIT_HASHES == 1 << (64 - DARC_WAIT_SHIFT), "each hash has a count");
_Static_assert(sizeof(struct darc_live) == 4096, "the live page is wiped as a whole page");
_Static_assert(sizeof(struct darc_doorbell) == 4096, "nothing else is on the page that is watched");
_Static_assert(sizeof(struct darc_contexts) == 128, "contexts begin where processors fetch");
_Static_assert(sizeof(struct darc_site) == 256, "site");
_Static_assert(__builtin_offsetof(struct darc_record, serial) % 8 == 0
               && __builtin_offsetof(struct darc_context, serial) % 8 == 0, "read as one word");
_Static_assert(__builtin_offsetof(struct darc_record, node) % 8 == 0
               && __builtin_offsetof(struct darc_record, tail_count)
                      == __builtin_offsetof(struct darc_record, node) + 4, "written as one word");
_Static_assert(__builtin_offsetof(struct darc_control, resolution) % 8 == 0
               && __builtin_offsetof(struct darc_control, mode)
                      == __builtin_offsetof(struct darc_control, resolution) + 4, "read as one word");
_Static_assert(sizeof(struct darc_record) == 256, "the stubs find it by bits of the hash");
_Static_assert(DARC_LANDINGS * DARC_LANDING_SIZE == DARC_LANDING_WORDS, "the words follow the cells");
_Static_assert(DARC_LANDING_WORDS + 8 * DARC_LANDINGS == DARC_LANDING_BODIES, "and the others them");
_Static_assert(sizeof(struct darc_event) == 384 && sizeof(struct darc_kept) % 64 == 0, "what one op has, processors fetch for no other");
_Static_assert(DARC_SHEET_EVENTS * DARC_EVENT_SHEETS == DARC_MAX_EVENTS && DARC_EVENT_SHEETS + 1 == DARC_SHEETS,
               "an op's sheets");
_Static_assert(sizeof(struct darc_sheet) >= DARC_MAX_SWITCHES * sizeof(struct darc_switch), "switches fit into one");
_Static_assert(sizeof(struct darc_block) == 256, "a block");
_Static_assert(sizeof(struct darc_moment) == 80, "a moment");
_Static_assert(sizeof(struct darc_sum) == 24 && sizeof(struct darc_total) == 48, "per node");
#endif
