/* Entry of the controller, which starts at the ELF's entry, and of the workers, which it starts. */
    .section .text.start, "ax"
    .globl _start
_start:
    csrr  a0, mhartid
    li    t0, 32
    bltu  a0, t0, worker
    la    sp, __control_stack_top
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
worker:
    la    sp, __worker_stack_top
    slli  t0, a0, 11
    sub   sp, sp, t0
    call  tw_worker_main
end:
    j     end
