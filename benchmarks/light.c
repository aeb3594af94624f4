/* light: what the probes of a set of functions cost, as the program sees it.
 *
 * Measured in turns, block by block, in one process: two TSC reads, functions that nobody touches
 * (the twins), and the same functions with the probes of `darc profile` in them: one alone, and
 * eight of which each calls the next. The program waits until each of them begins with a jump. It rests between blocks: a function whose probe takes more than a
 * hundredth of a processor would be taken out.
 *
 * usage: light BLOCKS    prints: NAME MEDIAN MINIMUM, cycles per call
 *        light 0         the same without waiting: how far twins differ by chance
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FUNCTION __attribute__((noinline, noclone, aligned(64)))
#define CALLS 1000 /* in a block: short enough that most blocks see no other thread */
#define DEEP 8
#define WARM_UP 3
#define ALONE_BLOCKS 300

static inline uint64_t tsc(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

/* Work enough before its call that no call is among the instructions that a probe displaces: a
 * processor would not foresee where that returns. */
#define NEST(name, next) \
    FUNCTION uint64_t name(uint64_t x) { return next((x ^ x >> 9) + 7) + 1; }

#define FUNCTIONS(lone, nest)                            \
    FUNCTION uint64_t lone(uint64_t x) { return x * 3; } \
    FUNCTION uint64_t nest##8(uint64_t x) { return x * 5; } \
    NEST(nest##7, nest##8)                               \
    NEST(nest##6, nest##7)                               \
    NEST(nest##5, nest##6)                               \
    NEST(nest##4, nest##5)                               \
    NEST(nest##3, nest##4)                               \
    NEST(nest##2, nest##3)                               \
    NEST(nest##1, nest##2)

FUNCTIONS(lone, nest)
FUNCTIONS(twin_lone, twin_nest)

FUNCTION uint64_t two_reads(unsigned calls)
{
    uint64_t x = 0;
    for (unsigned i = 0; i < calls; i++)
        x ^= tsc() ^ tsc();
    return x;
}

typedef uint64_t function_type(uint64_t);

FUNCTION uint64_t call_all(function_type *function, unsigned calls)
{
    uint64_t x = 0;
    for (unsigned i = 0; i < calls; i++)
        x = function(x + i);
    return x;
}

static function_type *const probed[] = {lone,  nest1, nest2, nest3, nest4,
                                        nest5, nest6, nest7, nest8};
#define PROBED (sizeof probed / sizeof *probed)
#define JMP 0xe9

static unsigned with_probes(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < PROBED; i++)
        count += *(const volatile unsigned char *)(uintptr_t)probed[i] == JMP;
    return count;
}

static void rest(void)
{
    struct timespec ten_ms = {0, 10000000};
    nanosleep(&ten_ms, NULL);
}

enum kind { READS, PLAIN_LONE, LONE, PLAIN_NEST, NEST, KINDS };
static const char *const names[KINDS] = {"reads", "plain-lone", "lone", "plain-nest", "nest"};

static volatile uint64_t sink;

static void run(enum kind kind)
{
    switch (kind) {
    case READS: sink += two_reads(CALLS); break;
    case PLAIN_LONE: sink += call_all(twin_lone, CALLS); break;
    case LONE: sink += call_all(lone, CALLS); break;
    case PLAIN_NEST: sink += call_all(twin_nest1, CALLS / DEEP); break;
    case NEST: sink += call_all(nest1, CALLS / DEEP); break;
    case KINDS: break;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    unsigned blocks = strtoul(argv[1], NULL, 0);
    unsigned alone = blocks == 0;
    if (alone)
        blocks = ALONE_BLOCKS;
    double *samples[KINDS];
    for (enum kind kind = 0; kind < KINDS; kind++)
        samples[kind] = calloc(blocks, sizeof(double));
    while (!alone && with_probes() < PROBED)
        rest();
    for (unsigned block = 0; block < blocks + WARM_UP; block++) {
        rest();
        for (enum kind kind = 0; kind < KINDS; kind++) {
            uint64_t start = tsc();
            run(kind);
            double cycles = (double)(tsc() - start) / CALLS;
            if (block >= WARM_UP)
                samples[kind][block - WARM_UP] = cycles;
        }
    }
    if (!alone && with_probes() < PROBED) {
        fprintf(stderr, "light: probes have gone while it measured\n");
        return 1;
    }
    for (enum kind kind = 0; kind < KINDS; kind++) {
        qsort(samples[kind], blocks, sizeof(double), compare);
        printf("%s %.3f %.3f\n", names[kind], samples[kind][blocks / 2], samples[kind][0]);
    }
    return 0;
}
