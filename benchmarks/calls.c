/* calls: computes, and asks the kernel so many times a second meanwhile: a load for whoever records
 * system calls. How much it computes between two calls it measures first, where nothing is recorded.
 *
 * usage: calls A_SECOND    prints the seconds that it took, and the calls */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECONDS 3
#define TRIED 100000000u

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static uint64_t compute(uint64_t steps)
{
    uint64_t x = steps;
    for (uint64_t i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

int main(int argc, char **argv)
{
    unsigned a_second = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000;
    unsigned calls = SECONDS * a_second;
    double begin = now();
    uint64_t sum = compute(TRIED);
    uint64_t steps = (uint64_t)(TRIED / (now() - begin) / a_second);
    begin = now();
    for (unsigned i = 0; i < calls; i++) {
        sum += compute(steps);
        sum += (uint64_t)syscall(SYS_getppid);
    }
    printf("%.6f %u\n", now() - begin, calls);
    return sum == 1;
}
