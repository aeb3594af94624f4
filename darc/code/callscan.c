/* How many calls in some code lead to each of some addresses: of a program with a hundred libraries that is a look at
 * each of millions of calls, for which the program stands still.
 *
 * Runs in the debugger, as a library that Python loads; no code of it ever gets into the program. It allocates
 * nothing and keeps nothing, and reads no byte beyond the code. What looks like a call in the middle of another
 * instruction counts as one: it leads nowhere in particular.
 */
#include <stddef.h>
#include <stdint.h>

#define CALL 0xe8
#define LENGTH 5 /* of a direct call: the opcode, and how far it is from behind it */

/* The number of address among those wanted, which ascend; count where it is none of them. */
static size_t number_of(uint64_t address, const uint64_t *wanted, size_t count)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (wanted[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && wanted[low] == address ? low : count;
}

/* Adds to calls, which has a number for each address that is wanted, those in the code, which is at base. */
void callscan(const uint8_t *code, size_t size, uint64_t base, const uint64_t *wanted, size_t count, uint64_t *calls)
{
    for (size_t at = 0; at + LENGTH <= size; at++) {
        if (code[at] != CALL)
            continue;
        int32_t far;
        __builtin_memcpy(&far, code + at + 1, sizeof far);
        size_t number = number_of(base + at + LENGTH + (uint64_t)(int64_t)far, wanted, count);
        if (number < count)
            calls[number]++;
    }
}
