/* Entry of all cores. The first one starts here, and wakes the others when all is ready for them. */
    .section .text.start, "ax"
    .globl _start
_start:
    .insn i 0x73, 2, a0, x0, -0xEC /* csrr mhartid */
    addi  t0, a0, 1
    slli  t0, t0, 11
    addi  sp, t0, -16
    bnez  a0, others
    la    t0, __bss_start
    la    t1, __bss_end
clear:
    bgeu  t0, t1, cleared
    sw    zero, 0(t0)
    addi  t0, t0, 4
    j     clear
cleared:
    call  main
    slli  a0, a0, 1
    ori   a0, a0, 1
    fence
    lui   t0, 0x40000
    sw    a0, 0(t0)
others:
    call  tw_pool_main
end:
    wfi
    j     end
