/* What compilers call for floats, in one instruction each: Zfinx, floats in integer registers. */
    .text
    .macro function name
    .globl \name
    .type \name, @function
\name:
    .endm

    function __addsf3
    .insn r 0x53, 7, 0x00, a0, a0, a1
    ret
    function __subsf3
    .insn r 0x53, 7, 0x04, a0, a0, a1
    ret
    function __mulsf3
    .insn r 0x53, 7, 0x08, a0, a0, a1
    ret
    function __divsf3
    .insn r 0x53, 7, 0x0C, a0, a0, a1
    ret
    function __fixsfsi
    .insn r 0x53, 1, 0x60, a0, a0, x0
    ret
    function __fixunssfsi
    .insn r 0x53, 1, 0x60, a0, a0, x1
    ret
    function __floatsisf
    .insn r 0x53, 7, 0x68, a0, a0, x0
    ret
    function __floatunsisf
    .insn r 0x53, 7, 0x68, a0, a0, x1
    ret
    /* Comparisons: 0 where equal; below 0 where less; not above 0 where less or equal; and so on, false with NaN. */
    function __eqsf2
    function __nesf2
    .insn r 0x53, 2, 0x50, a0, a0, a1
    xori  a0, a0, 1
    ret
    function __ltsf2
    .insn r 0x53, 1, 0x50, a0, a0, a1
    neg   a0, a0
    ret
    function __lesf2
    .insn r 0x53, 0, 0x50, a0, a0, a1
    xori  a0, a0, 1
    ret
    function __gtsf2
    .insn r 0x53, 1, 0x50, a0, a1, a0
    ret
    function __gesf2
    .insn r 0x53, 0, 0x50, a0, a1, a0
    addi  a0, a0, -1
    ret
    function __unordsf2
    .insn r 0x53, 2, 0x50, a0, a0, a0
    .insn r 0x53, 2, 0x50, a1, a1, a1
    and   a0, a0, a1
    xori  a0, a0, 1
    ret
