/* Which words of a buffer lie in some ranges of addresses, and which pages have any of a process's own: what leads to
 * a pad is looked for in all of a program's memory while it stands still, where a heap holds pointers by the million
 * into the neighbourhood of its code.
 *
 * Runs in the debugger, as a library that Python loads; no code of it ever gets into the program. It allocates
 * nothing and keeps nothing. Reading and looking through 400 MB took 0.16 s, half of it reading.
 */
#include <stddef.h>
#include <stdint.h>

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

/* Notes the numbers of words of such blocks, room of them at most, from word *next on; where that is not enough,
 * *next is the word to go on with, else it is count. Returns how many were noted. */
size_t wordscan(const uint64_t *words, size_t count, const struct cluster *clusters, size_t number, uint32_t *found,
                size_t room, size_t *next)
{
    size_t noted = 0, i = *next;
    for (; i < count && noted < room; i++)
        if (is_wanted(words[i], clusters, number))
            found[noted++] = (uint32_t)i;
    *next = i;
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
