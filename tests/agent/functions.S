/* The functions that harness.c's program is made of: each does what it is told (harness.c), with all registers
 * that it has as they were told, and shows with what registers it was called and returned to.
 *
 * A frame: the return address (its slot), FRAME bytes of its own, and below them its registers wherever it
 * asks what to do next. At its calls the stack pointer stands at the end of its own bytes.
 */
    .intel_syntax noprefix
    .text

    .macro save_all
    .irp register, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
    push \register
    .endr
    pushfq
    .endm

    .macro restore_all
    popfq /* with the trap flag, perhaps: from here on each instruction is a chance to be interrupted */
    .irp register, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax
    pop \register
    .endr
    .endm

    .macro ask what, index
    save_all
    cld
    mov edi, \index
    mov rsi, rsp
    call \what
    jmp rax
    .endm

    .macro site index, callee
    .globl go_\index\()_\callee, site_\index\()_\callee, back_\index\()_\callee
go_\index\()_\callee:
    restore_all
site_\index\()_\callee:
    call f\callee
back_\index\()_\callee:
    ask returned, \index
    .endm

    .macro tail index, frame, callee
    .globl leave_\index\()_\callee, tail_\index\()_\callee
leave_\index\()_\callee:
    restore_all
    lea rsp, [rsp + \frame]
tail_\index\()_\callee:
    .byte 0xe9 /* a long jump always */
    .long f\callee - . - 4
    .endm

    /* Where the frame's own bytes are 8 modulo 16, the stack is aligned for C. */
    .macro function index, frame
    .globl f\index, icall_\index, iback_\index, igo_\index, ret_\index, again_\index
    .p2align 4
f\index:
    lea rsp, [rsp - \frame]
    ask arrived, \index
    .irp callee, 0, 1, 2, 3, 5, 6, 7, 8
    site \index, \callee
    .endr
    .irp callee, 0, 1, 2, 3
    tail \index, \frame, \callee
    .endr
igo_\index:
    restore_all
icall_\index:
    call [rbx + 0x12345678]
iback_\index:
    ask returned, \index
ret_\index:
    restore_all
    lea rsp, [rsp + \frame]
    ret
again_\index: /* a jump has led here */
    mov edi, \index
    mov rsi, rsp
    call jumped
    jmp rax
    .endm

    function 0, 136
    function 1, 152
    function 2, 184
    function 3, 136
    function 4, 168 /* what a thread, or a handler, begins with */
    function 5, 136 /* an unwinder that is about to look at the stack */
    function 6, 136 /* what begins to handle an exception */
    function 7, 136 /* longjmp */
    function 8, 136 /* what a thread calls last */

    .globl begin, jump_to
begin: /* from C: what a thread or a handler does */
    .irp register, rbx, rbp, r12, r13, r14, r15
    push \register
    .endr
    sub rsp, 8
    call f4
    add rsp, 8
    .irp register, r15, r14, r13, r12, rbp, rbx
    pop \register
    .endr
    ret

jump_to: /* (where, stack pointer) */
    mov rsp, rsi
    jmp rdi
    .section .note.GNU-stack, "", @progbits
