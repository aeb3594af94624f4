/* The program that the contract of a target is tried on: four rounds, in each of which it stops at
 * stop_here, calls pass three times, rings (sends itself SIGURG) and calls rung. The first round
 * loads a library, the second unloads it. Another thread counts ticks all the time. Ends with 7. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile unsigned long word = 0x1122334455667788, passed, ticks, calls;

struct part {
    char before[4];
    union {
        int number;
        float other;
    };
};
typedef struct part part_t;
static struct {
    long first;
    part_t parts[3];
} whole;

NOINLINE unsigned long add(unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                           unsigned long e, unsigned long f)
{
    calls++;
    return a + b + c + d + e + f;
}

NOINLINE unsigned long crash(void) { return *(volatile unsigned long *)8; }

NOINLINE void stop_here(void) { __asm__ volatile("nop"); }

NOINLINE void pass(void)
{
    passed++;
    whole.parts[passed % 3].number++;
}

NOINLINE void rung(void) { __asm__ volatile("nop"); }

static inline __attribute__((always_inline)) void inner(void)
{
    word++;
    __asm__ volatile(".globl inlined_place\ninlined_place: nop");
    word--;
}

NOINLINE void outer(void) { inner(); }

static void *tick(void *unused)
{
    for (;;)
        ticks++;
    return unused;
}

int main(int argc, char **argv)
{
    void *library = NULL;
    pthread_t thread;

    if (argc != 2 || pthread_create(&thread, NULL, tick, NULL))
        return 1;
    while (!ticks)
        ;
    for (int round = 1; round <= 4; round++) {
        stop_here();
        pass();
        pass();
        pass();
        pthread_kill(pthread_self(), SIGURG);
        rung();
        outer();
        if (round == 1 && !(library = dlopen(argv[1], RTLD_NOW)))
            return 2;
        if (round == 2 && dlclose(library))
            return 3;
    }
    _exit(add(1, 2, 4, 0, 0, 0));
}
