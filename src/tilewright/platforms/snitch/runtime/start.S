/* All cores begin here, each with a stack of its own at the top of L1. The first one makes memory ready for all. */
    .section .text.start, "ax"
    .globl _start
_start:
    csrr  a0, mhartid
    la    sp, __cl_stack_top
    la    t0, __cl_stack_size
    mul   t0, t0, a0
    sub   sp, sp, t0
    li    t0, 0x6000 /* floats are switched on */
    csrs  mstatus, t0
    bnez  a0, ready
    la    t0, __bss_start
    la    t1, __bss_end
clear:
    bgeu  t0, t1, ready
    sw    zero, 0(t0)
    addi  t0, t0, 4
    j     clear
ready:
    call  tw_cluster_main
asleep:
    wfi
    j     asleep

    /* What a host reads and answers: text, and how the program ended. */
    .section .htif, "aw"
    .balign 64
    .globl tohost
tohost:
    .dword 0
    .balign 64
    .globl fromhost
fromhost:
    .dword 0
