/* Counts the signals that come to the debugger itself, in front of the handler that it has. In the debugger's own process; a
 * signal handler: it calls nothing but that handler, and writes nothing but its count. */

typedef void handler(int number, void *info, void *context);

volatile unsigned presses;
handler *volatile before;

void press(int number, void *info, void *context)
{
    __atomic_fetch_add(&presses, 1, __ATOMIC_RELAXED);
    before(number, info, context); /* one that takes the number alone does not look at the others */
}
