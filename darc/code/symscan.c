/* The functions' symbols of a file, in the order of their addresses: a program has up to millions of them, for which
 * it would stand still while Python makes an object of each.
 *
 * Runs in the debugger, as a library that Python loads; no code of it ever gets into the program. It allocates
 * nothing and keeps nothing, and reads no byte beyond what it is given, whatever a damaged file says.
 */
#include <stddef.h>
#include <stdint.h>

#define FUNCTION 2 /* STT_FUNC */
#define INDIRECT 10 /* STT_GNU_IFUNC */
#define GLOBAL 1 /* STB_GLOBAL */
#define WEAK 2 /* STB_WEAK */
#define OLD 0x8000 /* of a version in .gnu.version: for programs that were linked long ago */
#define MOST_UNDERSCORES 0xff

/* Elf64_Sym */
struct __attribute__((packed, aligned(1))) row {
    uint32_t name;
    uint8_t info, other;
    uint16_t section;
    uint64_t address, size;
};

/* A table of symbols as the file has it; versions may be none. */
struct table {
    const struct row *rows;
    uint64_t count;
    const char *strings;
    uint64_t length; /* of the strings */
    const uint16_t *versions;
    uint64_t versioned; /* how many rows have one */
    const uint8_t *code; /* for each section whether it is code */
    uint64_t sections;
    uint64_t is_dynamic;
};

enum { IS_INDIRECT = 1, IS_EXPORTED = 2, IS_OLD = 4, HAS_TYPE = 8 };

/* One that was found: its name is length bytes of its table's strings. A lower rank is a better name; number tells in
 * which order they came. */
struct symbol {
    uint64_t address, size, rank;
    uint32_t name, length, table, flags, number, unused;
};
_Static_assert(sizeof(struct symbol) == 48, "as darc/code/symscans.py reads it");

static const char *text_of(const struct symbol *one, const struct table *tables)
{
    return tables[one->table].strings + one->name;
}

/* Compares as memcmp does, which is not there. */
static int compared(const char *a, const char *b, size_t size)
{
    for (size_t at = 0; at < size; at++)
        if (a[at] != b[at])
            return (uint8_t)a[at] < (uint8_t)b[at] ? -1 : 1;
    return 0;
}

static int ends_with(const char *text, size_t length, const char *end, size_t size)
{
    return length >= size && !compared(text + length - size, end, size);
}

/* How good a name is: one of a function, that marks no section, exported, with few underscores, global, short. */
static uint64_t rank_of(const char *text, size_t length, int has_type, int is_exported, unsigned binding)
{
    size_t underscores = 0;
    while (underscores < length && underscores < MOST_UNDERSCORES && text[underscores] == '_')
        underscores++;
    int is_mark = !has_type && (ends_with(text, length, "_end", 4) || ends_with(text, length, "_start", 6));
    unsigned bound = binding == GLOBAL ? 0 : binding == WEAK ? 1 : 2;
    return (uint64_t)!has_type << 43 | (uint64_t)is_mark << 42 | (uint64_t)!is_exported << 41 | underscores << 33 |
           (uint64_t)bound << 31 | (length & 0x7fffffff);
}

/* Whether a row is that of a function, which is put down in *one but for its number. */
static int is_function(const struct table *from, uint64_t at, struct symbol *one)
{
    const struct row *row = from->rows + at;
    unsigned kind = row->info & 15;
    int may_be = !kind && row->name && row->section < from->sections && from->code[row->section];
    if ((kind != FUNCTION && kind != INDIRECT && !may_be) || !row->section || !row->address || row->name >= from->length)
        return 0;
    const char *text = from->strings + row->name;
    size_t most = from->length - row->name, length = 0, whole;
    while (length < most && text[length] && text[length] != '@')
        length++;
    for (whole = length; whole < most && text[whole]; whole++)
        ;
    int is_old = at < from->versioned && from->versions[at] & OLD;
    if (whole > length && !(length + 1 < whole && text[length + 1] == '@'))
        is_old = 1;
    one->address = row->address;
    one->size = row->size;
    one->name = row->name;
    one->length = length;
    one->flags = (kind == INDIRECT ? IS_INDIRECT : 0) | (from->is_dynamic ? IS_EXPORTED : 0) | (is_old ? IS_OLD : 0) |
                 (kind ? HAS_TYPE : 0);
    one->rank = rank_of(text, length, kind != 0, from->is_dynamic, row->info >> 4);
    return length > 0;
}

/* Those of the same name at the same address stand together, and the one that came first is before the others. */
static int by_name(const struct symbol *a, const struct symbol *b, const struct table *tables)
{
    if (a->address != b->address)
        return a->address < b->address;
    if (a->length != b->length)
        return a->length < b->length;
    int order = compared(text_of(a, tables), text_of(b, tables), a->length);
    return order ? order < 0 : a->number < b->number;
}

static int by_rank(const struct symbol *a, const struct symbol *b, const struct table *tables)
{
    (void)tables;
    if (a->address != b->address)
        return a->address < b->address;
    return a->rank != b->rank ? a->rank < b->rank : a->number < b->number;
}

typedef struct symbol item_t;
typedef struct {
    int (*is_before)(const struct symbol *a, const struct symbol *b, const struct table *tables);
    const struct table *tables;
} order_t;

static int is_before(const item_t *a, const item_t *b, const order_t *order)
{
    return order->is_before(a, b, order->tables);
}

#include "mergesort.h"

static int is_same(const struct symbol *a, const struct symbol *b, const struct table *tables)
{
    return a->address == b->address && a->length == b->length &&
           !compared(text_of(a, tables), text_of(b, tables), a->length);
}

/* The functions of the tables, each name once at an address, by address and rank. There is room for twice as many
 * symbols as the tables have rows; returns how many there are. */
size_t functions(const struct table *tables, size_t many, struct symbol *symbols)
{
    size_t count = 0, kept = 0;
    for (size_t table = 0; table < many; table++)
        for (uint64_t at = 0; at < tables[table].count; at++)
            if (is_function(tables + table, at, symbols + count)) {
                symbols[count].table = table;
                symbols[count].number = count;
                count++;
            }
    sort(symbols, symbols + count, count, &(order_t){by_name, tables});
    for (size_t at = 0; at < count; at++)
        if (!at || !is_same(symbols + at, symbols + kept - 1, tables))
            symbols[kept++] = symbols[at];
    sort(symbols, symbols + kept, kept, &(order_t){by_rank, tables});
    return kept;
}

/* Whether one of these symbols, by address, is at that address and has that name. */
static int is_there(const struct symbol *symbols, size_t count, const struct table *tables, uint64_t address,
                    const char *text, size_t length)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (symbols[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < count && symbols[low].address == address; low++)
        if (symbols[low].length == length && !compared(text_of(symbols + low, tables), text, length))
            return 1;
    return 0;
}

/* Takes out of the symbols those whose name is the prefix and that of the function behind them, which is room for
 * calls of a tracer; returns how many are left. */
size_t without(struct symbol *symbols, size_t count, const struct table *tables, const char *prefix, size_t size)
{
    size_t kept = 0;
    for (size_t at = 0; at < count; at++) {
        const char *text = text_of(symbols + at, tables);
        size_t length = symbols[at].length;
        int begins = length > size && !compared(text, prefix, size);
        uint64_t behind = symbols[at].address + symbols[at].size;
        /* What stands at or behind an address above this one's is still where it was. */
        int is_room = begins && behind > symbols[at].address &&
                      is_there(symbols + at, count - at, tables, behind, text + size, length - size);
        if (!is_room)
            symbols[kept++] = symbols[at];
    }
    return kept;
}

/* Writes the numbers of the symbols, by address, whose names have that part; returns how many they are. */
size_t holding(const struct symbol *symbols, size_t count, const struct table *tables, const char *part, size_t size,
               uint32_t *numbers)
{
    size_t found = 0;
    for (size_t at = 0; at < count; at++) {
        const char *text = text_of(symbols + at, tables);
        for (size_t from = 0; from + size <= symbols[at].length; from++)
            if (!compared(text + from, part, size)) {
                numbers[found++] = at;
                break;
            }
    }
    return found;
}

/* Whether it is the name of the part of a function that a compiler put aside as unlikely (.cold, .cold.0). */
static int is_cold(const char *text, size_t length)
{
    for (size_t at = 0; at + 5 <= length; at++)
        if (text[at] == '.' && !compared(text + at, ".cold", 5) && (at + 5 == length || text[at + 5] == '.'))
            return 1;
    return 0;
}

/* Writes the numbers of the symbols, by address, that no compiler put aside; returns how many they are. */
size_t whole(const struct symbol *symbols, size_t count, const struct table *tables, uint32_t *numbers)
{
    size_t found = 0;
    for (size_t at = 0; at < count; at++)
        if (!is_cold(text_of(symbols + at, tables), symbols[at].length))
            numbers[found++] = at;
    return found;
}

/* Of the symbols with these numbers, which ascend: keeps of those at one address the first one whose code is not
 * chosen late, in numbers, with bias added to its address in addresses, and writes those that are to late, of which
 * there are *lates. Returns how many are kept. */
size_t firsts(const struct symbol *symbols, uint32_t *numbers, size_t count, uint64_t bias, uint64_t *addresses,
              uint32_t *late, size_t *lates)
{
    size_t kept = 0;
    *lates = 0;
    for (size_t at = 0; at < count; at++) {
        const struct symbol *one = symbols + numbers[at];
        if (one->flags & IS_INDIRECT) {
            late[(*lates)++] = numbers[at];
        } else if (!kept || addresses[kept - 1] != one->address + bias) {
            numbers[kept] = numbers[at];
            addresses[kept++] = one->address + bias;
        }
    }
    return kept;
}
