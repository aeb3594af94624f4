/* unlock: what pthread_mutex_unlock costs that leads to darc, as the program sees it.
 *
 * operation() is the function that is analysed; lock and unlock in turns are no calls of its. With START_OPS
 * calls of it before its profile is looked at, a third of which sleep, and more votes wanted than come, the
 * search goes on for as long as this program lasts, and whoever releases a lock looks for those who wait.
 *
 *   reads          two reads of the time-stamp counter
 *   unlock         of a lock that nobody waits for, and trylock
 *   unlock-N       of one that N threads wait for, each in operation(): the call alone
 *
 * usage: unlock START_OPS    prints: NAME MEDIAN LEAST, cycles per call; first as it is, then, with START_OPS
 *                            above 0, while the search goes on ("with-…") */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION __attribute__((noinline, noclone))
#define BLOCKS 400
#define CALLS 1000
#define ROUNDS 60
#define MOST 64

static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER, wanted = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned waiting;

static inline uint64_t tsc(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

static void nap(unsigned microseconds)
{
    struct timespec time = {0, microseconds * 1000L};
    nanosleep(&time, NULL);
}

FUNCTION void wait_for_lock(void)
{
    __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&wanted);
    pthread_mutex_unlock(&wanted);
    __asm__ volatile("" ::: "memory");
}

FUNCTION void operation(int how)
{
    if (how == 1)
        nap(1000);
    else if (how == 2)
        wait_for_lock();
    __asm__ volatile("" ::: "memory");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void tell(const char *prefix, const char *name, double *values, unsigned count)
{
    qsort(values, count, sizeof *values, by_value);
    printf("%s%s %.1f %.1f\n", prefix, name, values[count / 2], values[0]);
    fflush(stdout);
}

static void measure_alone(const char *prefix)
{
    double reads[BLOCKS], pairs[BLOCKS];
    for (unsigned block = 0; block < BLOCKS; block++) {
        volatile uint64_t sink = 0;
        uint64_t begin = tsc();
        for (unsigned i = 0; i < CALLS; i++)
            sink = tsc() ^ tsc();
        uint64_t middle = tsc();
        for (unsigned i = 0; i < CALLS; i++) {
            pthread_mutex_trylock(&alone); /* which leads nowhere */
            pthread_mutex_unlock(&alone);
        }
        pairs[block] = (double)(tsc() - middle) / CALLS;
        reads[block] = (double)(middle - begin) / CALLS;
        (void)sink;
    }
    tell(prefix, "reads", reads, BLOCKS);
    tell(prefix, "unlock", pairs, BLOCKS);
}

static void *wait_in_thread(void *argument)
{
    operation(2);
    return argument;
}

static void measure_wanted(const char *prefix, unsigned count)
{
    double times[ROUNDS];
    char name[32];
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_t threads[MOST];
        waiting = 0;
        pthread_mutex_lock(&wanted);
        for (unsigned i = 0; i < count; i++)
            if (pthread_create(&threads[i], NULL, wait_in_thread, NULL))
                abort();
        while (waiting < count)
            nap(100);
        nap(3000); /* they sleep by now */
        uint64_t begin = tsc();
        pthread_mutex_unlock(&wanted);
        times[round] = (double)(tsc() - begin);
        for (unsigned i = 0; i < count; i++)
            pthread_join(threads[i], NULL);
    }
    snprintf(name, sizeof name, "unlock-%u", count);
    tell(prefix, name, times, ROUNDS);
}

static void *sleep_for_good(void *argument)
{
    for (;;)
        pause();
    return argument;
}

static void measure(const char *prefix)
{
    measure_alone(prefix);
    for (unsigned count = 1; count <= MOST; count *= 4)
        measure_wanted(prefix, count);
}

int main(int argc, char **argv)
{
    unsigned start_ops = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_for_good, NULL)) /* else locks are spared their atomics */
        return 1;
    if (!start_ops) {
        measure("");
        return 0;
    }
    for (unsigned op = 0; op < start_ops + 100; op++)
        operation(op % 3 == 0);
    measure("with-");
    return 0;
}
