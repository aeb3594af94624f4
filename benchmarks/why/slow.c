/* Preloaded into a program: CALL, one of the C library's functions, is slow one time in SLOW_ONE_IN, by
   chance, or fails with SLOW_ERRNO. SLOW_FILES=1: only where its first argument is a regular file. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <x86intrin.h>

long syscall(long, ...);

static long number(const char *name) {
    const char *value = getenv(name);
    return value ? atol(value) : 0;
}

static void wait_for(long us, long mhz) {
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    if (!mhz) {
        nanosleep(&left, 0);
        return;
    }
    for (unsigned long long end = __rdtsc() + (unsigned long long)(us * mhz); __rdtsc() < end;)
        ;
}

/* Marsaglia's xorshift; threads may get the same number twice. */
static unsigned long next(unsigned long *chance) {
    unsigned long x = *chance;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *chance = x;
}

static long one_in, us, mhz, error, files;

/* Some programs leave nothing in their environment. */
__attribute__((constructor)) static void read_environment(void) {
    one_in = number("SLOW_ONE_IN");
    us = number("SLOW_US");
    mhz = number("SLOW_MHZ");
    error = number("SLOW_ERRNO");
    files = number("SLOW_FILES");
}

/* The C library's functions that are named here take up to six integers and pointers. */
long CALL(long a, long b, long c, long d, long e, long f) {
    static long (*real)(long, long, long, long, long, long);
    static unsigned long chance = 88172645463325252;
    if (!real)
        real = (long (*)(long, long, long, long, long, long))dlsym(RTLD_NEXT, NAME);
    struct stat about;
    int counts = one_in && (!files || (syscall(SYS_fstat, a, &about) == 0 && S_ISREG(about.st_mode)));
    if (counts && next(&chance) % (unsigned long)one_in == 0) {
        if (us)
            wait_for(us, mhz);
        if (error) {
            errno = (int)error;
            return -1;
        }
    }
    return real(a, b, c, d, e, f);
}
