/* Stubs between the pads and the agent, shared by all pads.
 *
 * Rules for this file: every general register that is not the result comes back as it was, vector
 * registers, x87 and MXCSR are never touched, flags are free (they are dead at a call, a return and
 * a function's entry). The direction flag is clear by the ABI at all three.
 *
 * All stubs are called by a pad with the site in rax; the pad saved rax before. The agent's functions
 * keep r8 to r11 themselves, unlike the ABI's (build.py).
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

/* In:  [rsp+8] slot of the calling frame, [rsp+16] target, [rsp+24] rax, [rsp+32] own slot.
 * Out: ZF set: pass through. ZF clear: call through the pad; the TSC was read where it is timed. */
    .globl darc_stub_call
darc_stub_call:
    .cfi_startproc
    save_volatile
    mov rdi, rax
    mov rsi, [rsp + 32 + 8]
    mov rcx, [rsp + 32 + 16]
    lea rdx, [rsp + 32 + 32]
    call darc_enter
    restore rdi
    restore rsi
    test al, 1
    jnz 1f
    mov rcx, rax
    test rax, rax
    jz 1f
    rdtsc
    shl rdx, 32
    or rax, rdx /* not zero */
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

/* In: [rsp+8] rax as the callee left it, [rsp+16] the slot, free. Out: the slot holds the program's
 * return address. */
    .globl darc_stub_leave
darc_stub_leave:
    .cfi_startproc
    save rdx
    save rcx
    mov rcx, rax
    xor edx, edx
    cmp dword ptr [rax + SITE_TIMED], 0
    je 1f
    rdtsc
    shl rdx, 32
    or rdx, rax
1:  save rsi
    save rdi
    mov rdi, rcx
    lea rsi, [rsp + 32 + 16]
    call darc_leave
    mov [rsp + 32 + 16], rax
    restore rdi
    restore rsi
    restore rcx
    restore rdx
    ret
    .cfi_endproc

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

    .globl darc_nothing
darc_nothing:
    .cfi_startproc
    ret
    .cfi_endproc
    .section .note.GNU-stack,"",@progbits
