/* Loaded into a debugger (LD_PRELOAD): counts what it does to the program that it traces, and kills it
 * before or after the n-th. What counts: registers and memory written, continuing, stopping, attaching,
 * detaching; by the debugger's main thread, as signs of life are given by another.
 *
 * The orders are in a file that the environment's KILLER names. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITES_MEMORY = 1000, SENDS_SIGNAL = 1001 };

struct orders {
    volatile uint64_t at;       /* 0: only count */
    volatile uint64_t after;    /* or before */
    volatile int64_t whom;      /* the debugger; the tracer may be a helper of its */
    volatile uint64_t helper;   /* whether that is killed too */
    volatile uint64_t count;
    volatile uint64_t what;     /* a request of ptrace, or one of the above */
};

static struct orders *orders;

static void obey(void)
{
    kill((pid_t)orders->whom, SIGKILL);
    if (orders->helper)
        kill(getpid(), SIGKILL);
}

static uint64_t begins(uint64_t what)
{
    uint64_t number;
    if (!orders || syscall(SYS_gettid) != getpid())
        return 0;
    number = __atomic_add_fetch(&orders->count, 1, __ATOMIC_SEQ_CST);
    if (number == orders->at)
        orders->what = what;
    if (number == orders->at && !orders->after)
        obey();
    return number;
}

static void is_done(uint64_t number)
{
    if (number && number == orders->at && orders->after)
        obey();
}

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static __attribute__((constructor)) void read_orders(void)
{
    const char *name = getenv("KILLER");
    int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    void *page;
    if (file < 0)
        return;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    orders = page == MAP_FAILED ? NULL : page;
}

static int is_counted(int request)
{
    switch (request) {
    case PTRACE_POKETEXT:
    case PTRACE_POKEDATA:
    case PTRACE_POKEUSER:
    case PTRACE_CONT:
    case PTRACE_SINGLESTEP:
    case PTRACE_SYSCALL:
    case PTRACE_SETREGS:
    case PTRACE_SETFPREGS:
    case PTRACE_SETREGSET:
    case PTRACE_SETSIGINFO:
    case PTRACE_ATTACH:
    case PTRACE_SEIZE:
    case PTRACE_INTERRUPT:
    case PTRACE_DETACH:
        return 1;
    }
    return 0;
}

long ptrace(enum __ptrace_request request, ...)
{
    static long (*next)(enum __ptrace_request, pid_t, void *, void *);
    va_list rest;
    va_start(rest, request);
    pid_t pid = va_arg(rest, pid_t);
    void *address = va_arg(rest, void *);
    void *data = va_arg(rest, void *);
    va_end(rest);
    if (!next)
        next = real("ptrace");
    uint64_t number = is_counted((int)request) ? begins((uint64_t)request) : 0;
    long result = next(request, pid, address, data);
    is_done(number);
    return result;
}

static int is_memory(int file)
{
    char link[64], path[128];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 10)
        return 0;
    path[length] = 0;
    return !strncmp(path, "/proc/", 6) && !strcmp(path + length - 4, "/mem");
}

static ssize_t write_at(const char *name, int file, const void *data, size_t size, off_t place)
{
    ssize_t (*next)(int, const void *, size_t, off_t) = real(name);
    uint64_t number = orders && is_memory(file) ? begins(WRITES_MEMORY) : 0;
    ssize_t result = next(file, data, size, place);
    is_done(number);
    return result;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t place)
{
    return write_at("pwrite", file, data, size, place);
}

ssize_t pwrite64(int file, const void *data, size_t size, off_t place)
{
    return write_at("pwrite64", file, data, size, place);
}

int kill(pid_t pid, int number)
{
    uint64_t counted = number && number != SIGKILL ? begins(SENDS_SIGNAL) : 0;
    int result = (int)((long (*)(long, ...))real("syscall"))(SYS_kill, pid, number);
    is_done(counted);
    return result;
}

long syscall(long which, ...)
{
    static long (*next)(long, ...);
    va_list rest;
    long a[6];
    va_start(rest, which);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    if (!next)
        next = real("syscall");
    uint64_t number = which == SYS_tgkill || which == SYS_tkill ? begins(SENDS_SIGNAL) : 0;
    long result = next(which, a[0], a[1], a[2], a[3], a[4], a[5]);
    is_done(number);
    return result;
}
