/* Waits in one call of handle at a time, among many threads that wait for something else.
 *
 * usage: horde THREADS OPS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noclone))
#define SLOW_NS 60000000L
#define FAST_NS 1000000L

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

NOINLINE static void nap(long ns)
{
    struct timespec left = {0, ns};
    while (nanosleep(&left, &left))
        ;
}

NOINLINE void handle(unsigned op)
{
    nap(op % 2 ? SLOW_NS : FAST_NS);
    __asm__ volatile("" ::: "memory");
}

static void *wait_for_good(void *argument)
{
    pthread_mutex_lock(&lock);
    for (;;)
        pthread_cond_wait(&never, &lock);
    return argument;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    unsigned ops = argc > 2 ? strtoul(argv[2], NULL, 0) : 100;
    pthread_attr_t small;
    pthread_t thread;

    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 1; i < threads; i++)
        if (pthread_create(&thread, &small, wait_for_good, NULL))
            abort();
    for (unsigned op = 0; op < ops; op++)
        handle(op);
    printf("horde: %u calls among %d threads\n", ops, threads);
    return 0;
}
