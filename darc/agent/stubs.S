/* Stubs between the pads and the agent, shared by all pads.
 *
 * Rules for this file: every general register that is not the result comes back as it was, vector
 * registers, x87 and MXCSR are never touched, flags are free (they are dead at a call, a return and
 * a function's entry). The direction flag is clear by the ABI at all three.
 *
 * The stubs of calls are called with the site in rdi, the others with the site in rax; the pad saved
 * what it loaded. The agent's functions keep r8 to r11 themselves, unlike the ABI's (build.py).
 *
 * darc_stub_call and darc_stub_returned are darc_enter and darc_return of agent.c where nothing is out
 * of the ordinary, and less plain: a compiler takes a tenth more for them. The agent's rules for what
 * is written when hold here as well. Addresses of records are slot * hash * 192, those of sums 24 *
 * node; both are sizes of abi.h.
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

    .macro save_volatile
    .irp register, rcx, rdx, rsi, rdi
    save \register
    .endr
    .endm

/* The agent wants a stack of 16 bytes' alignment for nothing, as it uses no vector registers. */

/* rax = where the record of the slot is, if nothing stands in its place. */
    .macro place slot, site
    imul eax, \slot, HASH
    shr eax, RECORD_SHIFT
    imul eax, eax, RECORD_SIZE
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
    place esi, rdi
    cmp [rax + RECORD_SLOT], rsi
    jne 4f
    mov rdx, [rax + RECORD_SITE]
    mov rdx, [rdx + SITE_PAD_BACK]
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
    mov rdi, [rdx + CONTEXT_STATE]
    mov [rcx + RECORD_PARENT], rax
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
    call darc_enter
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
    call darc_enter
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
    call darc_tail
    restore rdi
    restore rsi
    restore rdx
    restore rcx
    ret
    .cfi_endproc

/* In: [rsp+8] slot of f0's frame. Out: as darc_stub_call. The agent sees rdi where it is saved. */
    .globl darc_stub_entry
darc_stub_entry:
    .cfi_startproc
    save_volatile
    mov rdi, rax
    mov rsi, [rsp + 32 + 8]
    mov rdx, rsp
    call darc_entry
    restore rdi
    restore rsi
    mov rcx, rax
    test rax, rax
    jz 1f
    rdtsc
    shl rdx, 32
    or rax, rdx
    mov [rcx + RECORD_START], rax
1:  test rcx, rcx
    restore rdx
    restore rcx
    ret
    .cfi_endproc

/* A call has returned. In: rdi site, [rsp+8] rdi, [rsp+16] rax as the callee left it, [rsp+24] the
 * slot, which holds the program's return address already. rax and rdi are spoilt. */
    .globl darc_stub_returned
    .p2align 5
darc_stub_returned:
    .cfi_startproc
    save rdx
    cmp dword ptr [rdi + SITE_TIMED], 0
    je 5f
    rdtsc
    shl rdx, 32
    or rdx, rax
1:  save rsi
    save rcx
    lea rsi, [rsp + 24 + 24]
    place esi, rdi
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
    cmp rdi, MAX_NODES /* with tail_count above it */
    jae 8f
    lea rdi, [rdi + rdi * 2]
    lea rdi, [rsi + rdi * 8 + CONTEXT_SUMS]
    mov dword ptr [rsi + CONTEXT_IDLE], 0
    sub rdx, [rax + RECORD_START]
    sub rdx, [rax + RECORD_OVERHEAD]
    sub rdx, [rcx + CONTROL_INNER_COST]
    jle 7f
2:  mov rcx, [rcx + CONTROL_FULL_COST]
    add rcx, [rax + RECORD_OVERHEAD]
    mov dword ptr [rax + RECORD_OPEN], 0
    mov rax, [rax + RECORD_PARENT]
    add [rax + RECORD_OVERHEAD], rcx
    mov rcx, [rsi + CONTEXT_STATE]
    mov [rsi + CONTEXT_TOP], rax
    cmp [rdi + SUM_SERIAL], ecx
    jne 4f
    add [rdi + SUM_SUM], rdx
    inc dword ptr [rdi + SUM_CALLS]
    cmp [rdi + SUM_MAX], rdx
    jb 3f
10: mov [rsi + CONTEXT_SERIAL], rcx
11: .cfi_remember_state
    restore rcx
    restore rsi
    restore rdx
    ret
    .cfi_restore_state
3:  mov [rdi + SUM_MAX], rdx
    jmp 10b
4:  mov [rdi + SUM_SERIAL], ecx /* the op's first call of the node */
    mov [rdi + SUM_MAX], rdx
    mov [rdi + SUM_SUM], rdx
    mov dword ptr [rdi + SUM_CALLS], 1
    jmp 10b
7:  mov edx, 1 /* counters of two processors may differ by a little */
    bt qword ptr [rax + RECORD_START], 62 /* DARC_NEVER */
    jnc 2b
    mov rcx, [rcx + CONTROL_PATH_COST]
    add rcx, [rax + RECORD_OVERHEAD]
    mov dword ptr [rax + RECORD_OPEN], 0
    mov rax, [rax + RECORD_PARENT]
    add [rax + RECORD_OVERHEAD], rcx
    mov rcx, [rsi + CONTEXT_STATE]
    mov [rsi + CONTEXT_TOP], rax
    jmp 10b
8:  mov rdi, [rax + RECORD_SITE]
    lea rsi, [rsp + 24 + 24]
9:  call darc_return
    jmp 11b
    .cfi_adjust_cfa_offset -16
5:  xor edx, edx
    jmp 1b
    .cfi_endproc

/* What an entry pad called has returned. In: rax site, [rsp+8] rax as the callee left it, [rsp+16] the
 * slot, free. Out: the slot holds the program's return address. */
    .globl darc_stub_leave
darc_stub_leave:
    .cfi_startproc
    save rdx
    save rcx
    mov rcx, rax
    rdtsc
    shl rdx, 32
    or rdx, rax
    save rsi
    save rdi
    mov rdi, rcx
    lea rsi, [rsp + 32 + 16]
    call darc_leave
    mov [rsp + 32 + 16], rax
    test rdx, rdx
    jnz 2f
1:  restore rdi
    restore rsi
    restore rcx
    restore rdx
    ret

/* The thread rings, with all that the program had in its registers on the stack (darc_parked of abi.h)
 * or still there, and goes on by itself if nobody listens. A signal that the thread blocks is let
 * through by a system call whose mask the kernel itself takes back, wherever the debugger leads the
 * thread from there. rdx is the control structure. */
2:  .irp register, r8, r9, r10, r11
    save \register
    .endr
    push 0
    push 0
    push 0
    push [rdx + CONTROL_BELL_SIGNAL]
    push rdx
    .cfi_adjust_cfa_offset 40
    mov eax, 14 /* rt_sigprocmask: which signals are blocked? */
    xor edi, edi
    xor esi, esi
    lea rdx, [rsp + PARKED_MASK]
    mov r10d, 8
    syscall
    mov eax, 39 /* getpid */
    syscall
    mov edi, eax
    mov eax, 186 /* gettid */
    syscall
    mov esi, eax
    mov rdx, [rsp + PARKED_SIGNAL]
    mov eax, 234 /* tgkill */
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
    add rsp, 40
    .cfi_adjust_cfa_offset -40
    .irp register, r11, r10, r9, r8
    restore \register
    .endr
    jmp 1b
    .cfi_endproc

/* On its way from there to the program's own code a thread stands here for a moment: the debugger may
 * end between any two of the registers that it sets. It has written both words. */
    .globl darc_home
darc_home:
    .byte 0x48, 0xbc /* mov rsp, */
    .globl darc_home_rsp
darc_home_rsp:
    .quad 0
    jmp [rip]
    .globl darc_home_back
darc_home_back:
    .quad 0

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
    call darc_calibrate_open
1:  rdtsc
    shl rdx, 32
    or rax, rdx
    mov rbp, rax
    call rbx
    .globl darc_calibrate_back
darc_calibrate_back:
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
