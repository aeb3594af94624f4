/* Where calls and jumps in some code lead, and which functions most calls lead to: of a program with a hundred
 * libraries that is a look at each of millions of calls, for which the program stands still.
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

/* How long a jump is whose first bytes these are, with how far it goes from behind it in *far; 0: they are none. */
static size_t jump_at(const uint8_t *code, size_t size, int64_t *far)
{
    int32_t distance;
    if ((code[0] >= 0x70 && code[0] <= 0x7f) || (code[0] >= 0xe0 && code[0] <= 0xe3) || code[0] == 0xeb) {
        if (size < 2)
            return 0;
        *far = (int8_t)code[1];
        return 2;
    }
    size_t opcode = code[0] == 0xe9 ? 1 : size >= 2 && code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 2 : 0;
    if (!opcode || size < opcode + sizeof distance)
        return 0;
    __builtin_memcpy(&distance, code + opcode, sizeof distance);
    *far = distance;
    return opcode + sizeof distance;
}

/* How many bytes of the code, which is at base, could begin a jump to somewhere between low and high, both excluded;
 * notes the numbers of the first ones, room of them at most. */
size_t jumpscan(const uint8_t *code, size_t size, uint64_t base, uint64_t low, uint64_t high, uint32_t *places,
                size_t room)
{
    size_t found = 0;
    for (size_t at = 0; at < size; at++) {
        int64_t far;
        size_t length = jump_at(code + at, size - at, &far);
        uint64_t target = base + at + length + (uint64_t)far;
        if (!length || target <= low || target >= high)
            continue;
        if (found < room)
            places[found] = (uint32_t)at;
        found++;
    }
    return found;
}

/* The numbers of what is called, and what is known of each. */
typedef uint32_t item_t;
typedef struct {
    const uint64_t *calls;
    const uint8_t *is_last;
} order_t;

/* Those that are not last come first, then those that most calls lead to. */
static int is_before(const item_t *a, const item_t *b, const order_t *known)
{
    if (known->is_last[*a] != known->is_last[*b])
        return known->is_last[*a] < known->is_last[*b];
    return known->calls[*a] != known->calls[*b] ? known->calls[*a] > known->calls[*b] : *a < *b;
}

#include "mergesort.h"

/* Writes the numbers below count to order, in the order of the above; room has place for as many. */
void rank(const uint64_t *calls, const uint8_t *is_last, size_t count, uint32_t *order, uint32_t *room)
{
    for (size_t at = 0; at < count; at++)
        order[at] = at;
    sort(order, room, count, &(order_t){calls, is_last});
}
