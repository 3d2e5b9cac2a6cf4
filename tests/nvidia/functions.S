# SPDX-License-Identifier: Apache-2.0
# Functions with entries that hooks meet in the wild.
    .text
    .macro func name
    .p2align 4
    .globl \name
    .type \name, @function
\name:
    .endm

# The entry that a driver library's functions have.
func driver_like
    push %rbp
    mov %rsp, %rbp
    push %r12
    sub $8, %rsp
    lea 1(%rdi), %eax
    add $8, %rsp
    pop %r12
    pop %rbp
    ret

func with_endbr
    endbr64
    mov %edi, %eax
    add $2, %eax
    ret

# A rip-relative load among the moved bytes.
func rip_relative
    mov three(%rip), %eax
    add %edi, %eax
    ret

# Begins with a jump, as a function that somebody hooked already.
func already_hooked
    .byte 0xe9
    .long hooked_body - . - 4
hooked_body:
    lea 4(%rdi), %eax
    ret

func calls_at_once
    call helper
    add %edi, %eax
    ret
helper:
    mov $5, %eax
    ret

# These cannot be hooked.
func too_short
    mov %edi, %eax
    ret
func short_branch
    test %edi, %edi
    jz 1f
    mov $7, %eax
    ret
1:  mov $8, %eax
    ret
func loops_to_entry
    dec %edi
    test %edi, %edi
    .byte 0x0f, 0x85
    .long loops_to_entry + 2 - . - 4
    ret

    .p2align 4
    nop
    .globl unaligned
    .type unaligned, @function
unaligned:
    push %rbp
    mov %rsp, %rbp
    mov %edi, %eax
    pop %rbp
    ret

    .section .rodata
    .p2align 2
three: .long 3
    .section .note.GNU-stack,"",@progbits
