/* Which words of a buffer lie in some ranges of addresses, and which pages have any of a process's own: what leads to
 * a pad is looked for in all of a program's memory while it stands still, where a heap holds pointers by the million
 * into the neighbourhood of its code.
 *
 * Runs in the debugger, as a library that Python loads; no code of it ever gets into the program. It allocates
 * nothing and keeps nothing. Reading and looking through 400 MB took 0.16 s, half of it reading.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BLOCK_BITS 16

/* Addresses from low on, in blocks of 64 KiB; blocks has a byte for each of them, 0 where nothing is looked for. */
struct cluster {
    uint64_t low, span;
    const uint8_t *blocks;
};

_Static_assert(sizeof(struct cluster) == 24, "as darc/debuggee/wordscan.py makes it");

static int is_wanted(uint64_t word, const struct cluster *clusters, size_t number)
{
    for (size_t i = 0; i < number; i++) {
        uint64_t at = word - clusters[i].low;
        if (at < clusters[i].span)
            return clusters[i].blocks[at >> BLOCK_BITS];
    }
    return 0;
}

#define HIDDEN_BITS 17          /* by which glibc turns a pointer that it hides (PTR_MANGLE in its pointer_guard.h) */

/* Notes the numbers of words of such blocks, turned by so many bits and less the guard, room of them at most, from
 * word *next on; where that is not enough, *next is the word to go on with, else it is count. Returns how many were
 * noted. */
static inline size_t scan(const uint64_t *words, size_t count, unsigned turned, uint64_t guard,
                          const struct cluster *clusters, size_t number, uint32_t *found, size_t room, size_t *next)
{
    size_t noted = 0, i = *next;
    for (; i < count && noted < room; i++)
        if (is_wanted((words[i] >> turned | words[i] << (-turned & 63)) ^ guard, clusters, number))
            found[noted++] = (uint32_t)i;
    *next = i;
    return noted;
}

size_t wordscan(const uint64_t *words, size_t count, const struct cluster *clusters, size_t number, uint32_t *found,
                size_t room, size_t *next)
{
    return scan(words, count, 0, 0, clusters, number, found, room, next);
}

/* The same of words that glibc has hidden with that guard, as setjmp does with stack pointers. */
size_t hiddenscan(const uint64_t *words, size_t count, uint64_t guard, const struct cluster *clusters, size_t number,
                  uint32_t *found, size_t room, size_t *next)
{
    return scan(words, count, HIDDEN_BITS, guard, clusters, number, found, room, next);
}

#define EACH_BYTE 0x0101010101010101u

/* Marks the bytes of a word that are 0, by the highest bit of each; perhaps others above them, too. */
static uint64_t zero_bytes(uint64_t word)
{
    return (word - EACH_BYTE) & ~word & EACH_BYTE << 7;
}

static uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* The number of the first byte that is marked. */
static size_t first_of(uint64_t marked)
{
    return (size_t)__builtin_ctzll(marked) / 8;
}

#define TELLING 5               /* of a word's bytes the one that tells most addresses from other numbers */

/* The same of words that may begin at any byte, as in code, and have the byte telling there: counted are bytes. Behind the
 * buffer are as many readable bytes as a word and a half have. */
size_t oddscan(const uint8_t *bytes, size_t size, const struct cluster *clusters, size_t number, uint8_t telling,
               uint32_t *found, size_t room, size_t *next)
{
    size_t noted = 0, i = *next;
    for (; i < size && noted + 8 <= room; i += 8) {
        uint64_t marked = zero_bytes(word_at(bytes + i + TELLING) ^ EACH_BYTE * telling);
        for (; marked; marked &= marked - 1) {
            size_t at = i + first_of(marked);
            if (at + sizeof(uint64_t) <= size && is_wanted(word_at(bytes + at), clusters, number))
                found[noted++] = (uint32_t)at;
        }
    }
    *next = i < size ? i : size;
    return noted;
}

#define FLAGS_END 22            /* bits of a processor's flags */
#define FLAGS_SET 2             /* the one that is always set */
#define USER_CODE 0x33          /* the segment of a program's code (__USER_CS) */

/* What the kernel saves for a signal's handler (struct sigcontext): the stack pointer, which is up to farthest bytes
 * further up, the program counter, the flags and the segments. Notes the numbers of words that may be such program
 * counters, among those that have one before them and two behind; address is the first word's. Else as wordscan. */
size_t savedscan(const uint64_t *words, size_t count, uint64_t address, uint64_t farthest, uint32_t *found, size_t room,
                 size_t *next)
{
    size_t noted = 0, i = *next;
    for (; i + 2 < count && noted < room; i++) {
        if ((words[i + 2] & 0xffff) != USER_CODE || words[i + 1] >> FLAGS_END || !(words[i + 1] & FLAGS_SET))
            continue;
        if (words[i - 1] - (address + 8 * i) - 1 < farthest - 1)
            found[noted++] = (uint32_t)i;
    }
    *next = i + 2 < count ? i : count;
    return noted;
}

#define PRESENT (1ull << 63)
#define SWAPPED (1ull << 62)
#define A_FILES (1ull << 61)

/* Of pages, by their entries in a process's page map (the kernel's pagemap.rst): the numbers of those from which on
 * they are, and are not, ones that the process has written to; of shared memory, that it uses. bounds has room for one more than there are pages;
 * returns how many are noted. */
size_t ownpages(const uint64_t *entries, size_t count, uint32_t *bounds, int shared)
{
    uint64_t asked = shared ? PRESENT : PRESENT | A_FILES;
    size_t noted = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t entry = entries[i];
        size_t is_own = (entry & SWAPPED) || (entry & asked) == PRESENT;
        if (is_own != (noted & 1))
            bounds[noted++] = (uint32_t)i;
    }
    if (noted & 1)
        bounds[noted++] = (uint32_t)count;
    return noted;
}

#define CALL 0xe8               /* the first byte of a direct call; that of a jump is the next number */
#define TWO_BYTES 0x0f          /* that of instructions whose second byte tells what they are, */
#define CONDITIONAL 0x80        /* and what the upper half of that is of a jump under a condition */
#define DISTANCE sizeof(uint32_t)

/* Where the distance of a jump or a call begins whose first byte this is; 0: it is none. */
static size_t distance_at(const uint8_t *bytes, size_t at)
{
    if ((bytes[at] & 0xfe) == CALL)
        return at + 1;
    return bytes[at] == TWO_BYTES && (bytes[at + 1] & 0xf0) == CONDITIONAL ? at + 2 : 0;
}

/* Direct jumps and calls anywhere in a buffer (SDM 2A: e8, e9, 0f 8x, and the distance from behind them as the last
 * four bytes): notes where their distances are, as wordscan does, where the lower 16 bits of what they come to are
 * among wanted, which has a bit for each of these. What they come to is the distance itself, and jumps under a condition
 * are passed over; or, where address is not 0, that of the first byte, the place that they lead to. Behind the buffer
 * are as many readable bytes as a jump has. */
size_t distancescan(const uint8_t *bytes, size_t size, uint64_t address, const uint8_t *wanted, uint32_t *found,
                    size_t room, size_t *next)
{
    size_t noted = 0, i = *next;
    for (; i < size && noted + 8 <= room; i += 8) {
        uint64_t word = word_at(bytes + i);
        uint64_t marked = zero_bytes((word & ~EACH_BYTE) ^ EACH_BYTE * CALL);
        if (address)
            marked |= zero_bytes(word ^ EACH_BYTE * TWO_BYTES);
        for (; marked; marked &= marked - 1) {
            size_t at = distance_at(bytes, i + first_of(marked));
            if (!at || at + DISTANCE > size)
                continue;
            uint32_t key = 0;
            memcpy(&key, bytes + at, DISTANCE);
            if (address)
                key += (uint32_t)(address + at + DISTANCE);
            if (wanted[(key & 0xffff) >> 3] >> (key & 7) & 1)
                found[noted++] = (uint32_t)at;
        }
    }
    *next = i < size ? i : size;
    return noted;
}
