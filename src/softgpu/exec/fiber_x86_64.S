// SPDX-License-Identifier: Apache-2.0
//
// void sonde_fiber_switch(void** save, void* to): stores the callee-saved
// registers on the current stack and its pointer in *save, then goes on at the
// stack `to`, which an earlier switch or sonde_fiber_prepare left.
//
// sonde_fiber_start: the first thing a new stack runs: calls r12(r13).
        .text
        .globl  sonde_fiber_switch
        .hidden sonde_fiber_switch
        .type   sonde_fiber_switch, @function
        .balign 16
sonde_fiber_switch:
        pushq   %rbp
        pushq   %rbx
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        ret
        .size   sonde_fiber_switch, .-sonde_fiber_switch

        .globl  sonde_fiber_start
        .hidden sonde_fiber_start
        .type   sonde_fiber_start, @function
        .balign 16
sonde_fiber_start:
        xorl    %ebp, %ebp
        movq    %r13, %rdi
        callq   *%r12
        ud2
        .size   sonde_fiber_start, .-sonde_fiber_start
        .section .note.GNU-stack,"",@progbits
