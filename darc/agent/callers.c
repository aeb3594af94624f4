/* Whether the word that a function finds on top of the stack is its caller's. Part of agent.c, whose rules hold here.
 *
 * A label that is jumped to, as an interpreter's in assembler are, looks like a function. What is on top of the
 * stack there may be anything, also the address of data that stands among code, or of other code: a landing in its
 * place would be wrong results, or the program's end. A caller's address is behind a call. So it is where darc has
 * put a pad, but for the few calls whose own bytes are not there meanwhile; where a user's breakpoint stands on the
 * call; and there are two of the C library's that no call comes before.
 *
 * Asked when a caller is seen for the first time, and for each call by what is none. */

#define LONGEST_CALL 7 /* from its opcode on */
#define LONGEST_PATCH 16
#define CALL 0xe8
#define GROUP_5 0xff /* with 2 in its second byte: a call */
#define JUMP 0xe9
#define SHORT_JUMP 0xeb
#define BREAKPOINT 0xcc
#define SIGNAL_RETURN 0x0f0000000fc0c748UL   /* mov rax, SYS_rt_sigreturn; syscall, but for its last byte */
#define CONTEXT_RETURN 0x48243c8b48dc8948UL  /* mov rsp, rbx; mov rdi, [rsp]: glibc's end of what makecontext began */

typedef int __attribute__((may_alias, aligned(1))) loose_int;
typedef u64 __attribute__((may_alias, aligned(1))) loose_word;

/* The stretch of code that an address is in, 0: none. A runtime that makes code, or has it made in its own way, may
 * know it by return addresses (a garbage collector that looks for what frames hold), and would not know a landing. */
static COLD const struct darc_code *ordinary(const control *ctl, u64 address)
{
    const struct darc_code *code = (const struct darc_code *)ctl->code;
    u64 low = 0, high = ctl->code_count;
    for (u32 step = 0; step < 32 && low < high && high <= DARC_MAX_CODE; step++) {
        u64 middle = (low + high) / 2;
        if (address < code[middle].start)
            high = middle;
        else if (address >= code[middle].end)
            low = middle + 1;
        else
            return &code[middle];
    }
    return 0;
}

/* How long FF /2 is, from its opcode on, by the two bytes behind that; 0: it is another instruction. */
static inline u32 indirect_length(u8 mode, u8 index)
{
    u32 of_memory = mode >> 6, base = mode & 7, has_index = base == 4;
    if ((mode >> 3 & 7) != 2)
        return 0;
    if (of_memory == 3)
        return 2;
    if (of_memory == 1)
        return 3 + has_index;
    if (of_memory == 2 || (has_index ? index & 7 : base) == 5)
        return 6 + has_index;
    return 2 + has_index;
}

/* Whether these bytes, which end at back, end in a call. */
static COLD int end_in_call(const control *ctl, const u8 *bytes, u64 back)
{
    const u8 *end = bytes + LONGEST_CALL;
    if (end[-5] == CALL)
        return 1;
    if (end[-5] == BREAKPOINT && ordinary(ctl, back + (u64)(long)*(const loose_int *)(end - 4)))
        return 1;
    for (u32 length = 2; length <= LONGEST_CALL; length++) {
        const u8 *first = end - length;
        if ((first[0] == GROUP_5 || first[0] == BREAKPOINT)
            && indirect_length(first[1], length > 2 ? first[2] : 0) == length)
            return 1;
    }
    return 0;
}

/* Whether a jump that leads out of all code that files have may stand there: to a pad, or by a short one and
 * another one. */
static COLD int leads_out(const control *ctl, const struct darc_code *code, u64 address)
{
    if (*(u8 *)address == SHORT_JUMP)
        address += 2 + (u64)(long)*(signed char *)(address + 1);
    if (address < code->start || address + 5 > code->end || *(u8 *)address != JUMP)
        return 0;
    return !ordinary(ctl, address + 5 + (u64)(long)*(loose_int *)(address + 1));
}

/* The same of what stood there before darc's patches, where any may be. */
static COLD int ended_in_call(const control *ctl, const struct darc_code *code, u8 *bytes, u64 back)
{
    u64 first = back - LONGEST_CALL, low = first - 4;
    int may_be = 0;
    for (u64 at = low < code->start ? code->start : low; at + 2 <= back; at++)
        may_be |= leads_out(ctl, code, at);
    if (!may_be)
        return 0;
    for (u64 i = 0; i < ctl->site_room; i++) {
        const site *s = (const site *)ctl->sites + i;
        if (!s->patched || s->address - low >= back - low)
            continue;
        for (u32 n = 0; n < s->length && n < LONGEST_PATCH; n++) {
            if (s->address + n - first < LONGEST_CALL)
                bytes[s->address + n - first] = s->original[n];
        }
    }
    return end_in_call(ctl, bytes, back);
}

/* Whether a call comes back there, which is in that stretch of code. */
static COLD int is_behind_call(const control *ctl, const struct darc_code *code, u64 back)
{
    u8 bytes[LONGEST_CALL];
    for (u32 i = 0; i < LONGEST_CALL; i++) {
        u64 at = back - LONGEST_CALL + i;
        bytes[i] = at >= code->start ? *(u8 *)at : 0;
    }
    if (end_in_call(ctl, bytes, back) || ended_in_call(ctl, code, bytes, back))
        return 1;
    if (code->end - back < sizeof(u64))
        return 0;
    u64 word = *(loose_word *)back;
    return word == SIGNAL_RETURN || word == CONTEXT_RETURN;
}
