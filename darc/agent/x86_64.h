/* What is the processor's: its counter, segments and system calls. Part of agent.c, whose rules hold here. */

static inline u64 tsc(void)
{
    u32 low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (u64)high << 32 | low;
}

/* Whether QEMU emulates the processor, whose instructions take as long as the host leaves it: it says TCGTCGTCGTCG. */
static inline int is_emulated(void)
{
    u32 leaf = 0x40000000, ebx, ecx = 0, edx;
    __asm__ volatile("cpuid" : "+a"(leaf), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return ebx == 0x54474354 && ecx == 0x43544743 && edx == 0x47435447;
}

/* value * factor / divisor, by a product of twice the size. It faults unless value <= divisor and factor < divisor. */
static inline u64 scaled(u64 value, u64 factor, u64 divisor)
{
    u64 low, high, quotient, rest;
    __asm__("mulq %3" : "=a"(low), "=d"(high) : "0"(value), "r"(factor) : "cc");
    __asm__("divq %4" : "=a"(quotient), "=d"(rest) : "0"(low), "1"(high), "r"(divisor) : "cc");
    return quotient;
}

/* Where a thread has its storage. One that has none must not be asked for its first word. */
static inline u64 thread_pointer(const control *ctl)
{
    u64 self;
    if (likely(ctl->may_read_pointer))
        __asm__ volatile("rdfsbase %0" : "=r"(self));
    else /* the ABI keeps the thread control block's own address in its first word */
        __asm__ volatile("mov %%fs:0, %0" : "=r"(self));
    return self;
}

#define SYS_RT_SIGACTION 13
#define SYS_RT_SIGPROCMASK 14
#define SYS_GETPID 39
#define SYS_GETTID 186
#define SYS_KILL 62
#define SYS_RT_TGSIGQUEUEINFO 297
#define SYS_GET_ROBUST_LIST 274
#define SYS_SECCOMP 317
#define SYS_PRCTL 157
#define SYS_FUTEX 202
#define SYS_PROCESS_VM_READV 310

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

static inline u64 per_cpu(u64 offset)
{
    u64 value;
    __asm__ volatile("mov %%gs:(%1), %0" : "=r"(value) : "r"(offset));
    return value;
}
