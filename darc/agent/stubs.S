/* Stubs between the pads and the agent, shared by all pads.
 *
 * Rules for this file: every general register that is not the result comes back as it was, vector
 * registers, x87 and MXCSR are never touched, flags are free (they are dead at a call, a return and
 * a function's entry). The direction flag is clear by the ABI at all three.
 *
 * All but those of indirect calls and tail jumps get the site in rdi; the pad saved what it loaded. The
 * agent's functions keep r8 to r11 themselves, unlike the ABI's (build.py).
 *
 * No address of the agent's stays behind on the stack: what lies below a stack pointer may be a coroutine's that
 * rests, and nobody can know that a word there is dead. So each call is made by forgotten_call, which overwrites
 * what it has pushed, pads do the same, and nothing pushes a register that has such an address in it.
 *
 * darc_stub_call and darc_stub_returned are darc_enter and darc_return of calls.c where nothing is out of
 * the ordinary, and less plain: a compiler takes a tenth more for them. The agent's rules for what
 * is written when hold here as well. Addresses of records and sums follow from their sizes in abi.h.
 *
 * QEMU's emulator has its own costs, measured in a guest: 1 ns for a memory access, 1 to 2 for a branch, 12
 * for rdtsc and 12 for each return, indirect jump and jump to another page, which it looks up. So what
 * follows a call or f0 returns to the program itself, not to its pad.
 */
    .intel_syntax noprefix
    .text

    .macro save register
    push \register
    .cfi_adjust_cfa_offset 8
    .endm

    .macro restore register
    pop \register
    .cfi_adjust_cfa_offset -8
    .endm

    .macro forgotten_call target:vararg
    call \target
    mov qword ptr [rsp - 8], 0
    .endm

    .macro save_volatile
    .irp register, rcx, rdx, rsi, rdi
    save \register
    .endr
    .endm

/* The agent wants a stack of 16 bytes' alignment for nothing, as it uses no vector registers. */

/* rax = where the record of the slot is among the records, if nothing stands in its place. */
    .macro hashed slot, mask
    imul rax, \slot, HASH
    shr rax, HASH_SHIFT
    and rax, \mask
    .endm

    .macro place slot, site
    hashed \slot, [\site+SITE_RECORD_MASK]
    add rax, [\site + SITE_RECORDS]
    .endm

/* A direct call. In: rdi site, rsi slot of the calling frame, [rsp+8] rsi, [rsp+16] rdi, [rsp+24]
 * rax, [rsp+32] own slot. Out: ZF set: pass through. ZF clear: call through the pad; the TSC was read
 * where it is timed. rax, rdi and rsi are spoilt. */
    .globl darc_stub_call
    .p2align 5
darc_stub_call:
    .cfi_startproc
    save rcx
    save rdx
    place rsi, rdi
    cmp [rax + RECORD_SLOT], rsi
    jne 4f
    mov rdx, [rax + RECORD_PAD_BACK]
    cmp [rsi], rdx /* the proof: the calling frame returns to its pad */
    jne 4f
    mov rdx, [rax + RECORD_CONTEXT]
    mov rcx, [rax + RECORD_SERIAL] /* with open, as one word: STATE */
    cmp [rdx + CONTEXT_SERIAL], rcx
    jne 4f
    cmp [rdx + CONTEXT_TOP], rax
    jne 4f
    mov ecx, [rax + RECORD_NODE]
    cmp [rdi + SITE_FIRST_PARENT], ecx
    jne 4f
    mov rcx, [rax + RECORD_BELOW]
    lea rsi, [rsp + 16 + 32]
    cmp [rcx + RECORD_SLOT], rsi
    jne 3f
    mov esi, [rdi + SITE_FIRST_CHILD]
    mov dword ptr [rdx + CONTEXT_IDLE], 0
    mov [rcx + RECORD_CONTEXT], rdx
    mov [rcx + RECORD_SITE], rdi
    mov rdi, [rdi + SITE_PAD_BACK]
    mov [rcx + RECORD_PARENT], rax
    mov [rcx + RECORD_PAD_BACK], rdi
    mov rdi, [rax + RECORD_SERIAL]
    bts rdi, 32 /* open, also where the debugger has closed it just now: see open_state in tables.c */
    mov qword ptr [rcx + RECORD_OVERHEAD], 0
    mov [rcx + RECORD_NODE], rsi /* and no tail calls */
    mov [rdx + CONTEXT_TOP], rcx
    mov [rdx + CONTEXT_SERIAL], rdi
    test esi, esi /* DARC_UNTIMED */
    js 2f
1:  rdtsc
    shl rdx, 32
    or rax, rdx /* not zero */
    mov [rcx + RECORD_START], rax
    mov [rcx + RECORD_SERIAL], rdi /* opened last: only then is its start its own */
    .cfi_remember_state
    restore rdx
    restore rcx
    ret
    .cfi_restore_state
2:  btr esi, 31
    movabs rax, NEVER
    mov [rcx + RECORD_NODE], rsi
    mov [rcx + RECORD_START], rax
    mov [rcx + RECORD_SERIAL], rdi
    test rcx, rcx
    .cfi_remember_state
    restore rdx
    restore rcx
    ret
    .cfi_restore_state
3:  mov rsi, [rax + RECORD_SLOT]
4:  lea rdx, [rsp + 16 + 32]
    xor ecx, ecx
    forgotten_call darc_enter
    mov rcx, rax
    test al, 1
    jnz 5f
    test rax, rax
    jz 5f
    mov rdi, [rax + RECORD_SERIAL]
    jmp 1b
5:  restore rdx
    restore rcx
    ret
    .cfi_endproc

/* An indirect call. In:  rax site, [rsp+8] slot of the calling frame, [rsp+16] target, [rsp+24] rax,
 * [rsp+32] own slot. Out: as darc_stub_call, with rax alone spoilt. */
    .globl darc_stub_indirect
darc_stub_indirect:
    .cfi_startproc
    save_volatile
    mov rdi, rax
    mov rsi, [rsp + 32 + 8]
    mov rcx, [rsp + 32 + 16]
    lea rdx, [rsp + 32 + 32]
    forgotten_call darc_enter
    restore rdi
    restore rsi
    mov rcx, rax
    test al, 1
    jnz 1f
    test rax, rax
    jz 1f
    rdtsc
    shl rdx, 32
    or rax, rdx
    mov [rcx + RECORD_START], rax
1:  restore rdx
    restore rcx
    ret
    .cfi_endproc

/* The same for a tail jump: [rsp+32] is not a slot, and the jump is always taken. */
    .globl darc_stub_tail
darc_stub_tail:
    .cfi_startproc
    save_volatile
    mov rdi, rax
    mov rsi, [rsp + 32 + 8]
    mov rcx, [rsp + 32 + 16]
    forgotten_call darc_tail
    restore rdi
    restore rsi
    restore rdx
    restore rcx
    ret
    .cfi_endproc

/* A function's entry. In: rdi site, [rsp+8] rdi, [rsp+16] rax, and above the red zone the slot. Out: as
 * darc_stub_call, with rax and rdi spoilt. The agent sees rdi where it is saved, and
 * rsi 4 words below. */
    .globl darc_stub_entry
    .p2align 5
darc_stub_entry:
    .cfi_startproc
    .irp register, rcx, rdx, rsi
    save \register
    .endr
    lea rsi, [rsp + 24 + 24 + 128]
    cmp dword ptr [rdi + SITE_KIND], MEMBER
    je 3f
2:  lea rdx, [rsp + 24 + 8]
    mov rcx, rbp
    forgotten_call darc_entry
    mov rcx, rax
    test rax, rax
    jz 6f
    rdtsc
    shl rdx, 32
    or rax, rdx
    mov [rcx + RECORD_START], rax
1:  test rcx, rcx
    .cfi_remember_state
    restore rsi
    restore rdx
    restore rcx
    ret
    .cfi_restore_state
6:  test rdx, rdx /* the site of a guard that is to ring */
    jz 1b
    lea rsi, [rsp + 24 + 24 + 128]
    save [rdx+SITE_ADDRESS] /* the stack as darc_parked has it, with copies of what is saved above */
    save [rsp+8+32] /* rdi */
    save [rsp+16+40] /* rax */
    save [rsp+24+8] /* rdx */
    save [rsp+32+16] /* rcx */
    save [rsp+40] /* rsi */
    mov rdx, [rdx + SITE_CONTROL]
    forgotten_call darc_stub_ring
    add rsp, 48
    .cfi_adjust_cfa_offset -48
    xor ecx, ecx
    jmp 1b
3:  mov rcx, [rdi + SITE_CONTROL] /* as enter_member does where the frame had a call of this site before */
    mov rdx, [rcx + CONTROL_LIVE]
    cmp qword ptr [rcx + CONTROL_PLAIN_SET], 0
    je 2b
    cmp qword ptr [rdx], 0
    je 2b
    place rsi, rdi
    cmp [rax + RECORD_SLOT], rsi
    jne 2b
    cmp [rax + RECORD_SITE], rdi
    jne 2b
    cmp dword ptr [rax + RECORD_OPEN], 0
    jne 2b
    save r8
    save r9
    mov r8, [rax + RECORD_CONTEXT]
    rdfsbase rdx
    lea r9, [rdx + 1]
    cmp [r8 + CONTEXT_THREAD], r9
    jne 5f
    mov r9, [rcx + CONTROL_LIFE_AT] /* a thread that has a context has storage there */
    mov r9d, [rdx + r9]
    cmp [r8 + CONTEXT_LIFE], r9d
    jne 5f
    cmp dword ptr [r8 + CONTEXT_IDLE], FREE
    jne 5f
    mov edx, [rdi + SITE_ROUTE_FIRST]
    mov r9, [rax + RECORD_BLOCK]
    test r9, r9
    jz 5f
    cmp [r8 + rdx * 8 + CONTEXT_SUMS], r9
    jne 5f
    cmp qword ptr [r9 + BLOCK_OPEN], 0
    jne 5f
    mov rcx, [rdi + SITE_LANDINGS]
    test rcx, rcx
    jz 5f
    mov edx, [rax + RECORD_LANDING]
    cmp edx, LANDINGS - LANDING_CALLERS
    jae 5f
    lea rdx, [rcx + rdx * 8] /* the proof: this landing calls the function, for this caller alone. Whoever uses
                                the record meanwhile changes neither word, nor what is in registers */
    mov rdi, [rdi + SITE_BODY]
    cmp [rdx + LANDING_BODIES], rdi
    jne 4f
    mov rdi, [rsi]
    cmp [rdx + LANDING_WORDS + 8 * LANDING_CALLERS], rdi
    jne 4f
    mov dword ptr [r8 + CONTEXT_IDLE], 0
    mov [rax + RECORD_BACK], rdi
    sub rdx, rcx
    lea rdx, [rdx + rdx * 2]
    lea rdi, [rcx + rdx + LANDING_SIZE * LANDING_CALLERS + LANDING_BACK]
    mov edx, [r8 + CONTEXT_SERIAL]
    inc edx
    mov [r8 + CONTEXT_SERIAL], edx
    mov rcx, [rax + RECORD_SITE]
    mov [rax + RECORD_PAD_BACK], rdi
    mov rcx, [rcx + SITE_CONTROL]
    mov [r9 + BLOCK_OPEN], rax
    mov rcx, [rcx + CONTROL_EPOCH]
    mov [r9 + BLOCK_SERIAL], edx
    mov [rax + RECORD_ENTERED], rcx
    mov rcx, [r8 + CONTEXT_SPENT]
    mov qword ptr [rax + RECORD_PARENT], 0
    mov [rax + RECORD_OVERHEAD], rcx
    mov qword ptr [rax + RECORD_NODE], 0 /* and no tail calls */
    bts rdx, 32 /* open */
    add rdi, LANDING_ENTER - LANDING_BACK
    mov [rax + RECORD_SERIAL], rdx
    mov [rsi], rdi /* the pad goes on there */
    mov dword ptr [r8 + CONTEXT_IDLE], FREE
    mov rcx, rax
    rdtsc
    shl rdx, 32
    or rax, rdx /* not zero */
    mov [rcx + RECORD_START], rax
    .cfi_remember_state
    restore r9
    restore r8
    restore rsi
    restore rdx
    restore rcx
    ret
    .cfi_restore_state
4:  mov rdi, [rax + RECORD_SITE]
5:  restore r9
    restore r8
    jmp 2b
    .cfi_endproc

/* What follows was jumped to by a pad, and returns to the program. In: rdi site, [rsp] rdi, [rsp+8] the
 * slot. */
    .macro begin_after
    .cfi_startproc
    .cfi_def_cfa_offset 16
    .cfi_offset rdi, -16
    save rax
    save rdx
    .endm

    .macro end_after
    restore rdx
    restore rax
    restore rdi
    ret
    .endm

/* A call has returned. The slot holds the program's return address already. */
    .globl darc_stub_returned
    .p2align 5
darc_stub_returned:
    begin_after
    cmp dword ptr [rdi + SITE_TIMED], 0
    je 5f
    rdtsc
    shl rdx, 32
    or rdx, rax
1:  save rsi
    save rcx
    lea rsi, [rsp + 40]
    place rsi, rdi
    mov rcx, [rdi + SITE_CONTROL]
    cmp [rax + RECORD_SLOT], rsi
    jne 9f
    cmp [rax + RECORD_SITE], rdi
    jne 9f
    mov rsi, [rax + RECORD_CONTEXT]
    mov rdi, [rax + RECORD_SERIAL]
    cmp [rsi + CONTEXT_SERIAL], rdi
    jne 8f
    cmp [rsi + CONTEXT_TOP], rax
    jne 8f
    mov rdi, [rcx + CONTROL_EPOCH]
    cmp [rsi + CONTEXT_EPOCH], rdi
    jne 8f
    mov rdi, [rax + RECORD_NODE]
    cmp rdi, [rcx + CONTROL_NODE_MASK] /* with tail_count above it */
    ja 8f
    lea rdi, [rdi + rdi * 2]
    lea rdi, [rsi + rdi * 8 + CONTEXT_SUMS]
    mov dword ptr [rsi + CONTEXT_IDLE], 0
    sub rdx, [rax + RECORD_START]
    sub rdx, [rax + RECORD_OVERHEAD]
    sub rdx, [rcx + CONTROL_INNER_COST]
    jle 7f
    cmp rdx, [rcx + CONTROL_LEAST_SPAN] /* its span is kept */
    jae 12f
2:  mov rcx, [rcx + CONTROL_FULL_COST]
14: add rcx, [rax + RECORD_OVERHEAD]
    mov dword ptr [rax + RECORD_OPEN], 0
    mov rax, [rax + RECORD_PARENT]
    add [rax + RECORD_OVERHEAD], rcx
    mov rcx, [rax + RECORD_SERIAL]
    mov [rsi + CONTEXT_TOP], rax
    cmp [rdi + SUM_SERIAL], ecx
    jne 4f
    add [rdi + SUM_SUM], rdx
    inc dword ptr [rdi + SUM_CALLS]
    cmp [rdi + SUM_MAX], rdx
    jb 3f
10: bts rcx, 32 /* as above */
    mov [rsi + CONTEXT_SERIAL], rcx
11: .cfi_remember_state
    restore rcx
    restore rsi
    end_after
    .cfi_restore_state
3:  mov [rdi + SUM_MAX], rdx
    jmp 10b
4:  mov [rdi + SUM_SERIAL], ecx /* the op's first call of the node */
    mov [rdi + SUM_MAX], rdx
    mov [rdi + SUM_SUM], rdx
    mov dword ptr [rdi + SUM_CALLS], 1
    jmp 10b
7:  bt qword ptr [rax + RECORD_START], 62 /* DARC_NEVER */
    jc 15f
    cmp qword ptr [rcx + CONTROL_LEAST_SPAN], 1 /* also what takes next to nothing is kept */
    jbe 16f
    mov edx, 1 /* counters of two processors may differ by a little */
    jmp 2b
15: mov rcx, [rcx + CONTROL_PATH_COST]
    add rcx, [rax + RECORD_OVERHEAD]
    mov dword ptr [rax + RECORD_OPEN], 0
    mov rax, [rax + RECORD_PARENT]
    add [rax + RECORD_OVERHEAD], rcx
    mov rcx, [rax + RECORD_SERIAL]
    mov [rsi + CONTEXT_TOP], rax
    jmp 10b
12: save r8 /* as keep_span does, where the op has a place and is to be kept */
    save r9
    save r10
    mov r8, [rsi + CONTEXT_KEPT]
    mov r9d, [rsi + CONTEXT_SERIAL]
    test r8, r8
    jz 13f
    mov r10, [rax + RECORD_SITE]
    cmp [r8 + KEPT_OWNER], rsi
    jne 13f
    cmp [r8 + KEPT_SERIAL], r9d
    jne 13f
    cmp [rsi + CONTEXT_NOT_KEPT], r9d
    je 13f
    cmp dword ptr [r10 + SITE_INDIRECT], 0 /* it may be of a target that there was no room for */
    jne 13f
    mov r9d, [r8 + KEPT_SPAN_COUNT]
    cmp r9d, MAX_SPANS
    jae 13f
    lea r9, [r9 + r9 * 2]
    cmp dword ptr [rax + RECORD_OVERHEAD + 4], 0
    jne 13f
    lea r9, [r8 + r9 * 8 + KEPT_SPANS]
    mov r10, [rax + RECORD_OVERHEAD]
    add r10, [rcx + CONTROL_INNER_COST]
    mov [r9 + SPAN_COST], r10d
    add r10, rdx
    add r10, [rax + RECORD_START]
    mov [r9 + SPAN_END], r10
    mov r10, [rax + RECORD_START]
    mov [r9 + SPAN_START], r10
    mov r10d, [rax + RECORD_NODE]
    mov [r9 + SPAN_NODE], r10d
    inc dword ptr [r8 + KEPT_SPAN_COUNT]
    mov rcx, [rcx + CONTROL_KEPT_COST]
    .cfi_remember_state
    restore r10
    restore r9
    restore r8
    jmp 14b
    .cfi_restore_state
13: restore r10
    restore r9
    restore r8
16: add rdx, [rcx + CONTROL_INNER_COST]
    add rdx, [rax + RECORD_OVERHEAD]
    add rdx, [rax + RECORD_START]
    mov dword ptr [rsi + CONTEXT_IDLE], 1
8:  mov rdi, [rax + RECORD_SITE]
    lea rsi, [rsp + 40]
9:  forgotten_call darc_return
    jmp 11b
    .cfi_adjust_cfa_offset -16
5:  xor edx, edx
    jmp 1b
    .cfi_endproc

/* What an entry pad called has returned: the slot gets the program's return address. */
    .globl darc_stub_leave
darc_stub_leave:
    begin_after
    rdtsc
    shl rdx, 32
    or rdx, rax
    save rcx
    save rsi
    lea rsi, [rsp + 40]
    forgotten_call darc_leave
    mov [rsp + 40], rax
    test rdx, rdx
    jz 1f
    lea rsi, [rsp + 48]
    forgotten_call darc_stub_ring /* with the stack as darc_parked has it */
1:  restore rsi
    restore rcx
    end_after
    .cfi_endproc

/* f0 has returned through a landing. In: rdi control, [rsp] rdi, [rsp+8] the slot, which holds the program's
 * return address already. */
    .globl darc_stub_landed
    .p2align 5
darc_stub_landed:
    begin_after
    rdtsc
    shl rdx, 32
    or rdx, rax
    save rcx
    save rsi
    lea rsi, [rsp + 40]
    cmp qword ptr [rdi + CONTROL_PLAIN_SET], 0
    jne 3f
2:  forgotten_call darc_landed
    mov rdx, rax
    test rax, rax
    jz 1f
    lea rsi, [rsp + 48]
    forgotten_call darc_stub_ring /* with the stack as darc_parked has it */
1:  .cfi_remember_state
    restore rsi
    restore rcx
    end_after
    .cfi_restore_state
3:  hashed rsi, [rdi+CONTROL_RECORD_MASK] /* as leave_member does where nobody is to be told */
    add rax, [rdi + CONTROL_RECORDS]
    cmp [rax + RECORD_SLOT], rsi
    jne 2b
    cmp dword ptr [rax + RECORD_OPEN], 1
    jne 2b
    cmp qword ptr [rax + RECORD_PARENT], 0
    jne 2b
    cmp qword ptr [rax + RECORD_NODE], 0 /* no tail calls */
    jne 2b
    mov rcx, [rsi]
    cmp [rax + RECORD_BACK], rcx
    jne 2b
    mov rcx, [rdi + CONTROL_EPOCH]
    cmp [rax + RECORD_ENTERED], rcx
    jne 2b
    mov rcx, [rdi + CONTROL_WAKE]
    sub rcx, rdx
    js 2b
    mov rcx, [rdi + CONTROL_SETTLED]
    cmp [rax + RECORD_START], rcx
    jl 2b
    mov rcx, [rax + RECORD_CONTEXT]
    rdfsbase rsi
    inc rsi
    cmp [rcx + CONTEXT_THREAD], rsi
    jne 4f
    cmp dword ptr [rcx + CONTEXT_IDLE], FREE
    jne 4f
    cmp qword ptr [rcx + CONTEXT_JUMP_TIME], 0
    jne 4f
    mov rsi, [rax + RECORD_BLOCK]
    sub rsi, [rdi + CONTROL_BLOCKS]
    shr rsi, 8
    cmp rsi, [rdi + CONTROL_BLOCK_ROOM]
    jae 4f
    mov rsi, rdx
    sub rsi, [rdi + CONTROL_MEMBER_INNER]
    sub rsi, [rax + RECORD_START]
    add rsi, [rax + RECORD_OVERHEAD]
    sub rsi, [rcx + CONTEXT_SPENT]
    jle 4f
    mov rdi, [rdi + CONTROL_MEMBER_COST]
    bsr rdx, rsi
    cmp edx, CALL_BINS
    jae 6f
5:  mov dword ptr [rax + RECORD_OPEN], 0
    mov dword ptr [rcx + CONTEXT_IDLE], 0
    add [rcx + CONTEXT_SPENT], rdi
    mov rdi, [rax + RECORD_BLOCK]
    add dword ptr [rdi + rdx * 4 + BLOCK_BINS], 1
    jc 7f
8:  cmp [rdi + BLOCK_OPEN], rax
    jne 11f
    mov qword ptr [rdi + BLOCK_OPEN], 0
11: inc qword ptr [rdi + BLOCK_CALLS]
    add [rdi + BLOCK_SUM], rsi
    cmp [rdi + BLOCK_MAX], rsi
    jb 10f
9:  mov dword ptr [rcx + CONTEXT_IDLE], FREE
    .cfi_remember_state
    restore rsi
    restore rcx
    end_after
    .cfi_restore_state
6:  mov edx, CALL_BINS - 1
    jmp 5b
7:  dec dword ptr [rdi + rdx * 4 + BLOCK_BINS] /* it is full, and counts no more */
    jmp 8b
10: mov [rdi + BLOCK_MAX], rsi
    jmp 9b
4:  lea rsi, [rsp + 40]
    jmp 2b
    .cfi_endproc

/* A thread that has left f0 rings, with all that the program had in its registers on the stack (darc_parked
 * of abi.h) or still there, and goes on by itself if nobody listens. A signal that the thread blocks is let
 * through by a system call whose mask the kernel itself takes back, wherever the debugger leads the
 * thread from there. rdx is the control structure, rsi the program's stack pointer where it goes on. */
darc_stub_ring:
    .cfi_startproc
    .irp register, r8, r9, r10, r11
    save \register
    .endr
    push rsi
    push 0
    push 0
    push 0
    push [rdx + CONTROL_BELL_SIGNAL]
    push rdx
    push 0
    push 0
    movabs rax, BELL_MARK
    push rax
    push 0
    mov eax, 0xffffffff /* si_code SI_QUEUE */
    push rax
    push [rdx + CONTROL_BELL_SIGNAL]
    .cfi_adjust_cfa_offset 96
    mov eax, 14 /* rt_sigprocmask: which signals are blocked? */
    xor edi, edi
    xor esi, esi
    lea rdx, [rsp + PARKED_MASK]
    mov r10d, 8
    syscall
    mov eax, 39 /* getpid */
    syscall
    mov r8d, eax
    mov eax, 186 /* gettid */
    syscall
    mov r9d, eax
    mov rdi, [rsp + PARKED_CONTROL]
    forgotten_call darc_may_ring /* keeps r8 and r9 */
    test eax, eax
    jz 3f
    mov edi, r8d
    mov esi, r9d
    mov rdx, [rsp + PARKED_SIGNAL]
    mov r10, rsp /* PARKED_INFO */
    mov eax, 297 /* rt_tgsigqueueinfo */
    syscall
    .globl darc_parked
darc_parked: /* from here on nothing but the stack is relied on */
    mov rdx, [rsp + PARKED_SIGNAL]
    dec edx
    js 3f /* a sandbox was entered just now */
    btr qword ptr [rsp + PARKED_MASK], rdx
    jnc 3f
    xor edi, edi
    xor esi, esi
    lea rdx, [rsp + PARKED_NO_TIME]
    lea r10, [rsp + PARKED_MASK]
    mov r8d, 8
    mov eax, 271 /* ppoll */
    syscall
3:  rdtsc
    shl rdx, 32
    or rax, rdx
    mov rdx, [rsp + PARKED_CONTROL]
    mov [rdx + CONTROL_BELL_END], rax
    .globl darc_unparked
darc_unparked:
    add rsp, 96
    .cfi_adjust_cfa_offset -96
    .irp register, r11, r10, r9, r8
    restore \register
    .endr
    ret
    .cfi_endproc

/* On its way from there to the program's own code a thread stands here for a moment: the debugger may
 * end between any two of the registers that it sets. It has written both words. */
    .globl darc_home
darc_home:
    .byte 0x48, 0xbc /* mov rsp, */
    .globl darc_home_stack
darc_home_stack:
    .quad 0
    jmp [rip]
    .globl darc_home_back
darc_home_back:
    .quad 0

/* What follows is copied into the pad of a kernel's f0, and the three words THE_… are replaced. It is
 * darc_entry and darc_leave where nothing is out of the ordinary, and calls them where something is. Each
 * part is run through to its end; the stack pointer is moved by push, pop and lea alone, and no jump leads
 * to where it stands elsewhere, as unwinders are told by that.
 *
 * In QEMU a call that is timed so takes a third of the time that it took with the stubs above and C. (A
 * process has nothing from it: on a processor its entry took 98 cycles in place of 90.)
 *
 * A kernel's function that begins with a nop for ftrace keeps to the ABI (gcc has no -fipa-ra with -pg), and
 * has no vector arguments: rax, r10 and r11 are free where it begins, and where it ends all but its
 * result and what it must preserve. A kernel has no red zone. Its agent is disabled only while f0's
 * patch is taken out. */

/* Where indirect branches are tracked, they may lead to endbr64 alone. */
    .globl darc_from_pad_enter, darc_from_pad_leave
darc_from_pad_enter:
    endbr64
    jmp darc_entry
darc_from_pad_leave:
    endbr64
    jmp darc_leave

/* Out: ZF set: pass through. ZF clear: call f0 through the pad; the TSC was read. In the 16 bytes behind
 * this, the pad does that. */
    .globl darc_enter_f0
darc_enter_f0:
    push rdx
    movabs r10, THE_CONTROL
    cmp qword ptr [r10 + CONTROL_TASK_MASK], 0
    jne 1f
2:  lea r11, [rsp + 8]
    hashed r11, [r10+CONTROL_RECORD_MASK]
    movabs rdx, THE_RECORDS
    add rax, rdx
    cmp [rax + RECORD_SLOT], r11
    jne 3f
    movabs rdx, THE_SITE
    cmp [rax + RECORD_SITE], rdx /* then its parent is 0, and its context that of a call from here */
    jne 3f
    mov rdx, [rax + RECORD_CONTEXT]
    cmp dword ptr [rdx + CONTEXT_IDLE], FREE
    jne 3f
    mov r11, [rsp + 8]
    lea r10, [rip + 9f + 16]
    cmp r11, r10 /* a tail loop to f0's first byte */
    je 3f
    movabs r10, THE_CONTROL
    mov dword ptr [rdx + CONTEXT_IDLE], 0
    mov [rax + RECORD_BACK], r11
    mov r10, [r10 + CONTROL_EPOCH]
    xor r11d, r11d
    mov [rdx + CONTEXT_EPOCH], r10
    mov [rax + RECORD_OVERHEAD], r11
    mov [rax + RECORD_NODE], r11 /* and no tail calls */
    mov r11d, [rdx + CONTEXT_SERIAL]
    movabs r10, 1 << 32 /* open, and idle */
    inc r11d
    or r11, r10
    mov [rax + RECORD_SERIAL], r11
    mov [rdx + CONTEXT_TOP], rax /* first: an interrupt that finds an op goes to its innermost call */
    mov [rdx + CONTEXT_OP], rax
    mov [rdx + CONTEXT_SERIAL], r11
    jmp 4f
1:  mov rax, [r10 + CONTROL_CURRENT_AT] /* is_watched */
    mov rax, gs:[rax]
    add rax, [r10 + CONTROL_TASK_AT]
    mov rdx, [rax]
    and rdx, [r10 + CONTROL_TASK_MASK]
    cmp rdx, [r10 + CONTROL_TASK_VALUE]
    jne 6f
    mov rdx, [r10 + CONTROL_TASK_MASK + 8]
    test rdx, rdx
    jz 7f
    and rdx, [rax + 8]
    cmp rdx, [r10 + CONTROL_TASK_VALUE + 8]
    jne 6f
7:  mov rax, [r10 + CONTROL_PREEMPT_AT]
    mov edx, [r10 + CONTROL_NOT_TASK]
    test gs:[rax], edx
    jz 2b
6:  cmp eax, eax
    jmp 5f
3:  movabs r10, THE_CONTROL
    push rdi
    push rcx
    push rsi
    movabs rdi, THE_SITE
    lea rsi, [rsp + 32]
    forgotten_call [r10 + CONTROL_ENTER]
    pop rsi
    pop rcx
    pop rdi
    test rax, rax
    jz 5f
4:  mov r11, rax
    rdtsc
    shl rdx, 32
    or rax, rdx /* not zero */
    mov [r11 + RECORD_START], rax
5:  pop rdx
9:

/* f0 has returned, and its slot is off the stack. Returns to where the program called it. */
    .globl darc_leave_f0
darc_leave_f0:
    lea rsp, [rsp - 8]
    mov r8, rax
    mov r9, rdx
    rdtsc
    movabs rcx, THE_CONTROL
    shl rdx, 32
    mov rsi, rsp
    or rdx, rax
    hashed rsi, [rcx+CONTROL_RECORD_MASK]
    movabs rdi, THE_RECORDS
    add rax, rdi
    cmp [rax + RECORD_SLOT], rsi
    jne 1f
    mov rsi, [rax + RECORD_CONTEXT]
    mov rdi, [rax + RECORD_SERIAL]
    cmp [rsi + CONTEXT_SERIAL], rdi
    jne 1f
    cmp [rsi + CONTEXT_TOP], rax
    jne 1f
    cmp qword ptr [rax + RECORD_NODE], 0 /* f0 itself, without tail calls */
    jne 1f
    mov r10, [rcx + CONTROL_EPOCH]
    cmp [rsi + CONTEXT_EPOCH], r10
    jne 1f
    cmp qword ptr [rcx + CONTROL_RESOLUTION], 1 /* with the mode above it: PROFILE */
    jne 3f
    mov r10, [rsi + CONTEXT_UNREPORTED]
    inc r10
    cmp r10, [rcx + CONTROL_BATCH]
    jae 1f /* somebody is to be told */
    sub rdx, [rax + RECORD_START]
    sub rdx, [rax + RECORD_OVERHEAD]
    sub rdx, [rcx + CONTROL_INNER_COST]
    jle 2f
    mov dword ptr [rsi + CONTEXT_IDLE], 0
    mov dword ptr [rax + RECORD_OPEN], 0
    mov [rsi + CONTEXT_UNREPORTED], r10
    add [rsi + CONTEXT_SUM], rdx
    bsr rdx, rdx
    inc qword ptr [rsi + rdx * 8 + CONTEXT_BINS]
    jmp 5f
2:  add rdx, [rcx + CONTROL_INNER_COST]
    add rdx, [rax + RECORD_OVERHEAD]
    add rdx, [rax + RECORD_START]
1:  movabs rdi, THE_SITE
    mov rsi, rsp
    forgotten_call [rcx + CONTROL_LEAVE]
    mov [rsp], rax
    jmp 6f
3:  cmp dword ptr [rcx + CONTROL_MODE], ANALYSE
    jne 1b
    sub rdx, [rax + RECORD_START]
    sub rdx, [rax + RECORD_OVERHEAD]
    sub rdx, [rcx + CONTROL_INNER_COST]
    jle 2b
    cmp rdx, [rcx + CONTROL_PEAK_LOW]
    jb 7f
    cmp rdx, [rcx + CONTROL_PEAK_HIGH]
    jb 2b
7:  cmp qword ptr [rsi + CONTEXT_KEPT], 0 /* what is written down of it is to be forgotten */
    jne 2b
    cmp rdx, [rcx + CONTROL_FAST_HIGH]
    jae 4f
    cmp rdx, [rcx + CONTROL_FAST_LOW]
    jae 2b
4:  mov dword ptr [rsi + CONTEXT_IDLE], 0
    mov dword ptr [rax + RECORD_OPEN], 0
5:  mov rdx, [rax + RECORD_BACK]
    movabs rcx, FREE << 32
    mov edi, edi /* the serial alone */
    or rdi, rcx
    xor ecx, ecx
    mov [rsi + CONTEXT_OP], rcx
    mov [rsi + CONTEXT_SERIAL], rdi
    mov [rsp], rdx
6:  mov rax, r8
    mov rdx, r9
    ret
    .globl darc_end_f0
darc_end_f0:

/* u64 darc_calibrate_once(entry, fake_back, control, parent): cycles of one call of entry from a
 * frame whose slot holds fake_back. */
    .globl darc_calibrate_once
darc_calibrate_once:
    .cfi_startproc
    save rbx
    save rbp
    mov rbx, rdi
    save rsi
    test rsi, rsi
    jz 1f
    mov rdi, rdx
    mov rsi, rsp
    mov rdx, rcx
    forgotten_call darc_calibrate_open
1:  rdtsc
    shl rdx, 32
    or rax, rdx
    mov rbp, rax
    call rbx
    .globl darc_calibrate_back
darc_calibrate_back:
    mov qword ptr [rsp - 8], 0
    rdtsc
    shl rdx, 32
    or rax, rdx
    sub rax, rbp
    add rsp, 8
    .cfi_adjust_cfa_offset -8
    restore rbp
    restore rbx
    ret
    .cfi_endproc

/* A kernel's debugger has a breakpoint here. It is alone on its page: QEMU runs whatever stands on the
 * page of a breakpoint one instruction at a time, which made a timed call six times as slow. */
    .balign 4096
    .globl darc_bell
darc_bell:
    .cfi_startproc
    nop
    ret
    .cfi_endproc
    .balign 4096

    .globl darc_nothing
darc_nothing:
    .cfi_startproc
    ret
    .cfi_endproc
    .section .note.GNU-stack,"",@progbits
