/* Reads zero bytes over and over in a guest and prints what a read takes, in turns without anything
 * and with the kernel's own tracers on vfs_read; then without end, for debuggers.
 *
 * A line is: what is on, and the mean nanoseconds of 1000 reads, on the guest's monotonic clock.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRACING "/sys/kernel/tracing/"
#define READS 1000
#define BLOCKS 40
#define ROUNDS 3

static int data;

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static void block(const char *what)
{
    char byte;
    uint64_t since = nanoseconds();
    for (int i = 0; i < READS; i++)
        if (read(data, &byte, 0) != 0)
            exit(1);
    printf("%s %.1f\n", what, (double)(nanoseconds() - since) / READS);
    fflush(stdout);
}

/* Writes into one of the tracing files; ends the program when the kernel does not take it. */
static void set(const char *name, const char *value)
{
    char path[128];
    snprintf(path, sizeof path, TRACING "%s", name);
    int file = open(path, O_WRONLY | O_TRUNC);
    if (file < 0 || write(file, value, strlen(value)) < 0) {
        perror(path);
        exit(1);
    }
    close(file);
}

/* A trace that stayed empty would have cost nothing: there must be a line on vfs_read. */
static void must_have_traced(void)
{
    char line[512];
    int found = 0;
    FILE *trace = fopen(TRACING "trace", "r");
    for (int i = 0; trace && i < 100 && fgets(line, sizeof line, trace); i++)
        found |= strstr(line, "vfs_read") != NULL;
    if (!found) {
        printf("nothing was traced\n");
        exit(1);
    }
    fclose(trace);
    set("trace", "\n");
}

int main(void)
{
    data = open("/ext4/data", O_RDONLY);
    set("trace_clock", "x86-tsc");
    set("kprobe_events", "p:before vfs_read\nr:after vfs_read\n");
    set("set_ftrace_filter", "vfs_read\n");

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++)
            block("nothing");
        set("events/kprobes/enable", "1");
        for (int i = 0; i < BLOCKS; i++)
            block("kretprobe");
        set("events/kprobes/enable", "0");
        must_have_traced();
        set("current_tracer", "function_graph");
        for (int i = 0; i < BLOCKS; i++)
            block("function_graph");
        set("tracing_on", "0");
        must_have_traced();
        set("current_tracer", "nop");
        set("tracing_on", "1");
    }
    set("kprobe_events", "\n");
    printf("ready\n");
    for (;;)
        block("free");
}
