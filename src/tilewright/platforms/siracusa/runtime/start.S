/* Entry of the fabric controller (which starts at the ELF's entry) and of the cluster's cores (which it starts). */
    .section .text.start, "ax"
    .globl _start
_start:
    csrr  a0, mhartid
    srli  a1, a0, 5
    andi  a0, a0, 31
    li    t0, 31
    bne   a1, t0, cluster
    la    sp, __fc_stack_top
    la    t0, __bss_start
    la    t1, __bss_end
clear:
    bgeu  t0, t1, cleared
    sw    zero, 0(t0)
    addi  t0, t0, 4
    j     clear
cleared:
    call  main
    li    t0, 0x1A1040A0
    li    t1, 0x80000000
    or    a0, a0, t1
    sw    a0, 0(t0)
end:
    j     end
cluster:
    /* A stack of its own for each core, at the top of L1. */
    la    sp, __cl_stack_top
    la    t0, __cl_stack_size
    mul   t0, t0, a0
    sub   sp, sp, t0
    call  tw_cluster_main
    /* Sleeps for ever: no event is let through. */
    lui   t0, 0x10204
    sw    zero, 0(t0)
asleep:
    .insn i 0x03, 6, x0, 0x3C(t0)
    j     asleep
