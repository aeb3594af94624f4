/* cost: what probes cost, as the program sees it.
 *
 * Everything is measured in turns, block by block, in one process: two TSC reads, a loop over
 * functions that nobody touches (the twins), and the same loop over functions with probes in them.
 * With darc on operation(), with START_OPS calls before its profile is looked at and a peak from
 * bin 28 on, the program leads the descent to where each kind of probe stands and stays:
 *
 *   while profiling          operation's entry pad
 *   after SLOW_OPS slow ops  operation calls outer: on the path, not timed
 *                            inner calls leaf: timed within operation, filtered elsewhere
 *
 * usage: cost THREADS BLOCKS START_OPS SLOW_OPS    prints: NAME MEDIAN MINIMUM, cycles per call
 *        cost peer BLOCKS CALLS                    only inner's calls of leaf, for other tools
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTION __attribute__((noinline, noclone, aligned(64)))
#define SPAN_CALLS 125 /* a part of */
#define CALLS 1000 /* in a block: short enough that most blocks see no other thread */
#define SLOW_CYCLES (5UL << 26) /* bin 28: longer than a thread waits for its turn */
#define MAX_BATCH 64 /* calls that a thread of the agent keeps to itself */
#define WARM_UP 3

static inline uint64_t tsc(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}

#define FUNCTIONS(leaf, inner, outer, operation, UNTRACED)                                 \
    UNTRACED FUNCTION uint64_t leaf(uint64_t x, uint64_t cycles)                           \
    {                                                                                      \
        if (__builtin_expect(cycles != 0, 0)) {                                            \
            for (uint64_t start = tsc(); tsc() - start < cycles;)                          \
                x++;                                                                       \
        }                                                                                  \
        return x * 3;                                                                      \
    }                                                                                      \
    UNTRACED FUNCTION uint64_t inner(uint64_t x, unsigned calls, uint64_t cycles)          \
    {                                                                                      \
        for (unsigned i = 0; i < calls; i++)                                               \
            x = leaf(x + i, cycles);                                                       \
        return x + 1;                                                                      \
    }                                                                                      \
    UNTRACED FUNCTION uint64_t outer(uint64_t x, unsigned calls, unsigned leaves,          \
                                     uint64_t cycles)                                      \
    {                                                                                      \
        for (unsigned i = 0; i < calls; i++)                                               \
            x = inner(x + i, leaves, cycles);                                              \
        return x + 1;                                                                      \
    }                                                                                      \
    UNTRACED FUNCTION uint64_t operation(unsigned calls, unsigned inners, unsigned leaves, \
                                         uint64_t cycles)                                  \
    {                                                                                      \
        uint64_t x = calls;                                                                \
        for (unsigned i = 0; i < calls; i++)                                               \
            x = outer(x + i, inners, leaves, cycles);                                      \
        return x;                                                                          \
    }

FUNCTIONS(leaf, inner, outer, operation, )
FUNCTIONS(twin_leaf, twin_inner, twin_outer, twin_operation,
          __attribute__((no_instrument_function)))

FUNCTION uint64_t two_reads(unsigned calls)
{
    uint64_t x = 0;
    for (unsigned i = 0; i < calls; i++)
        x ^= tsc() ^ tsc();
    return x;
}

typedef uint64_t operation_type(unsigned, unsigned, unsigned, uint64_t);

FUNCTION uint64_t call_all(operation_type *function, unsigned calls)
{
    uint64_t x = 0;
    for (unsigned i = 0; i < calls; i++)
        x += function(0, 0, 0, 0);
    return x;
}

enum phase { PROFILING, DESCENDED };
enum kind {
    READS, PLAIN_ENTRY, ENTRY,
    READS_AGAIN, PLAIN_PATH, PATH, PLAIN_TIMED, TIMED, SPANS, PLAIN_PASS, PASS,
    KINDS
};
static const struct {
    const char *name;
    enum phase phase;
} kinds[KINDS] = {
    [READS] = {"reads-while-profiling", PROFILING},
    [PLAIN_ENTRY] = {"plain-entry", PROFILING},
    [ENTRY] = {"entry", PROFILING},
    [READS_AGAIN] = {"reads", DESCENDED},
    [PLAIN_PATH] = {"plain-path", DESCENDED},
    [PATH] = {"path", DESCENDED},
    [PLAIN_TIMED] = {"plain-timed", DESCENDED},
    [TIMED] = {"timed", DESCENDED},
    [SPANS] = {"timed-in-spans", DESCENDED},
    [PLAIN_PASS] = {"plain-pass", DESCENDED},
    [PASS] = {"pass", DESCENDED},
};

static volatile uint64_t sink;

static void run(enum kind kind)
{
    switch (kind) {
    case READS: case READS_AGAIN: sink += two_reads(CALLS); break;
    case PLAIN_ENTRY: sink += call_all(twin_operation, CALLS); break;
    case ENTRY: sink += call_all(operation, CALLS); break;
    case PLAIN_PATH: sink += twin_operation(CALLS, 0, 0, 0); break;
    case PATH: sink += operation(CALLS, 0, 0, 0); break;
    case PLAIN_TIMED: sink += twin_operation(1, 1, CALLS, 0); break;
    case TIMED: sink += operation(1, 1, CALLS, 0); break;
    case SPANS: /* in each op no more than there is room for */
        for (unsigned calls = 0; calls < CALLS; calls += SPAN_CALLS)
            sink += operation(1, 1, SPAN_CALLS, 0);
        break;
    case PLAIN_PASS: sink += twin_inner(1, CALLS, 0); break;
    case PASS: sink += inner(1, CALLS, 0); break;
    case KINDS: break;
    }
}

static unsigned threads, blocks;
static double *samples[KINDS];
static pthread_barrier_t barrier;

static void measure(unsigned thread, enum phase phase)
{
    for (unsigned block = 0; block < blocks + WARM_UP; block++) {
        for (enum kind kind = 0; kind < KINDS; kind++) {
            if (kinds[kind].phase != phase)
                continue;
            uint64_t start = tsc();
            run(kind);
            double cycles = (double)(tsc() - start) / CALLS;
            if (block >= WARM_UP)
                samples[kind][thread * blocks + block - WARM_UP] = cycles;
        }
    }
}

static void *work(void *number)
{
    unsigned thread = (unsigned)(uintptr_t)number;
    for (enum phase phase = PROFILING; phase <= DESCENDED; phase++) {
        pthread_barrier_wait(&barrier);
        measure(thread, phase);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

/* From profiling to where every probe stands. */
static void lead(uint64_t start_ops, unsigned slow_ops)
{
    uint64_t done = (uint64_t)threads * (blocks + WARM_UP) * CALLS;
    uint64_t all = start_ops + (uint64_t)(threads + 1) * MAX_BATCH;
    sink += operation(1, 1, 1, SLOW_CYCLES);
    for (; done < all; done++)
        sink += operation(0, 0, 0, 0);
    for (unsigned op = 0; op < slow_ops; op++)
        sink += operation(1, 1, 1, SLOW_CYCLES);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const char *name, double *cycles, unsigned count)
{
    qsort(cycles, count, sizeof *cycles, compare);
    printf("%s %.3f %.3f\n", name, cycles[count / 2], cycles[0]);
}

/* The same calls as TIMED, in blocks of any size. */
static int peer(unsigned calls)
{
    double plain[blocks], traced[blocks];
    for (unsigned block = 0; block < blocks; block++) {
        uint64_t start = tsc();
        sink += twin_inner(1, calls, 0);
        plain[block] = (double)(tsc() - start) / calls;
        start = tsc();
        sink += inner(1, calls, 0);
        traced[block] = (double)(tsc() - start) / calls;
    }
    print("plain-timed", plain, blocks);
    print("timed", traced, blocks);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "peer")) {
        blocks = strtoul(argv[2], NULL, 0);
        return peer(strtoul(argv[3], NULL, 0));
    }
    if (argc != 5)
        return 2;
    threads = strtoul(argv[1], NULL, 0);
    blocks = strtoul(argv[2], NULL, 0);
    uint64_t start_ops = strtoul(argv[3], NULL, 0);
    unsigned slow_ops = strtoul(argv[4], NULL, 0);
    unsigned count = threads * blocks;
    pthread_t handles[threads];

    for (enum kind kind = 0; kind < KINDS; kind++)
        samples[kind] = calloc(count, sizeof(double));
    sink += operation(0, 0, 0, 0);
    pthread_barrier_init(&barrier, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++)
        pthread_create(&handles[i], NULL, work, (void *)(uintptr_t)i);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    if (start_ops)
        lead(start_ops, slow_ops);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
    for (enum kind kind = 0; kind < KINDS; kind++)
        print(kinds[kind].name, samples[kind], count);
    return 0;
}
