/* loads: does the same work again and again, for others to watch its switches.
 *
 *   processor   computes
 *   disk        writes pages and waits for the disk
 *   mixed       both in turns
 *   switches    passes a byte between two threads of one processor through pipes: on two, each byte may
 *               or may not find a processor asleep, and takes from 2 to 15 us
 *
 * usage: loads WAY TIMES    waits for a byte to read; prints the seconds that it took, and its switches */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int to[2], from[2];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void compute(void)
{
    volatile uint64_t x = 1;
    for (unsigned i = 0; i < 1000000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
}

static void write_out(int file)
{
    char page[4096];
    memset(page, 'x', sizeof page);
    for (unsigned i = 0; i < 4; i++)
        if (pwrite(file, page, sizeof page, 4096 * i) < 0)
            abort();
    if (fdatasync(file))
        abort();
}

static void pass(int read_end, int write_end)
{
    char byte;
    if (read(read_end, &byte, 1) != 1 || write(write_end, &byte, 1) != 1)
        exit(1);
}

static void stay_here(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    if (sched_setaffinity(0, sizeof here, &here))
        exit(1);
}

static void *answer(void *argument)
{
    for (unsigned long left = *(unsigned long *)argument; left; left--)
        pass(to[0], from[1]);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "processor";
    unsigned long times = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
    char name[] = "darc-load-XXXXXX", byte;
    struct rusage used;
    pthread_t thread;
    int file = mkstemp(name);
    if (file < 0 || unlink(name) || pipe(to) || pipe(from) || read(0, &byte, 1) != 1)
        return 1;
    double begin = now();
    if (!strcmp(way, "switches")) {
        stay_here();
        if (pthread_create(&thread, NULL, answer, &times) || write(to[1], "x", 1) != 1)
            return 1;
        for (unsigned long left = times - 1; left; left--)
            pass(from[0], to[1]);
        pthread_join(thread, NULL);
    } else {
        for (unsigned long i = 0; i < times; i++) {
            if (strcmp(way, "disk"))
                compute();
            if (strcmp(way, "processor"))
                write_out(file);
        }
    }
    double took = now() - begin;
    getrusage(RUSAGE_SELF, &used);
    printf("%.6f %ld\n", took, used.ru_nvcsw + used.ru_nivcsw);
    return 0;
}
