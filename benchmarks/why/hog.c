/* Takes the processor that it is pinned to, before everybody else, for BUSY of every PERIOD us. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
    struct sched_param first = {.sched_priority = 50};
    if (argc < 3 || sched_setscheduler(0, SCHED_FIFO, &first)) {
        perror("hog");
        return 1;
    }
    for (double busy = atof(argv[1]), rest = atof(argv[2]) - busy;;) {
        for (double end = now() + busy; now() < end;)
            ;
        struct timespec left = {0, (long)(rest * 1e3)};
        nanosleep(&left, 0);
    }
}
