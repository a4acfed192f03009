"""What XpulpV2 instructions do, one after the other in plain integers.

Written from the extension's description, without a look at the simulator: operands come from the bits of the encoding,
and instructions are told apart by their names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

WORD = 0xFFFFFFFF


def bits(value: int, high: int, low: int) -> int:
    return value >> low & (2 << (high - low)) - 1


def signed(value: int, width: int = 32) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


@dataclass(frozen=True)
class Operands:
    """Values of registers, and fields of the encoding."""

    rd: int
    rs1: int
    rs2: int
    word: int

    @property
    def is3(self) -> int:
        return bits(self.word, 29, 25)

    @property
    def is2(self) -> int:
        return bits(self.word, 24, 20)

    @property
    def imm6(self) -> int:
        return bits(self.word, 24, 20) << 1 | bits(self.word, 25, 25)


# Single numbers ------------------------------------------------------------------------------------------------------


def count_sign_bits(value: int) -> int:
    """Bits from the top that are equal to the sign, less one; 0 for zero."""
    if value == 0:
        return 0
    text = f"{value:032b}"
    return len(text) - len(text.lstrip(text[0])) - 1


def field_mask(width_less_one: int, position: int) -> int:
    return ((2 << width_less_one) - 1) << position & WORD


def extracted(value: int, width_less_one: int, position: int, *, with_sign: bool) -> int:
    top = min(width_less_one + position, 31)
    field = bits(value, top, position)
    return signed(field, top - position + 1) if with_sign else field


def inserted(into: int, value: int, width_less_one: int, position: int) -> int:
    mask = field_mask(width_less_one, position)
    return into & ~mask | value << position & mask


def clipped(value: int, lower: int, upper: int) -> int:
    return lower if value < lower else min(value, upper)


def clip_bound(bit_count: int) -> int:
    return 2 ** (bit_count - 1) - 1 if bit_count else 0


def clipped_unsigned(value: int, upper: int) -> int:
    """Clamp to [0, upper]; the upper bound is looked at first, which matters where it is negative."""
    return upper if value > upper else max(value, 0)


def reversed_digits(value: int, bit_count: int, digit_bits: int) -> int:
    """The index of a sample before a Fourier transform of 2**bit_count points and radix 2**digit_bits."""
    text = f"{value & (1 << bit_count) - 1:0{bit_count}b}" if bit_count else ""
    text += "0" * (-len(text) % digit_bits)
    digits = [text[i : i + digit_bits] for i in range(0, len(text), digit_bits)]
    return int("".join(reversed(digits)) or "0", 2)


SCALAR: Mapping[str, Callable[[Operands], int]] = {
    "p.abs": lambda o: abs(signed(o.rs1)),
    "p.slet": lambda o: int(signed(o.rs1) <= signed(o.rs2)),
    "p.sletu": lambda o: int(o.rs1 <= o.rs2),
    "p.min": lambda o: min(signed(o.rs1), signed(o.rs2)),
    "p.minu": lambda o: min(o.rs1, o.rs2),
    "p.max": lambda o: max(signed(o.rs1), signed(o.rs2)),
    "p.maxu": lambda o: max(o.rs1, o.rs2),
    "p.avgu": lambda o: (o.rs1 + o.rs2 & WORD) >> 1,
    "p.ff1": lambda o: (o.rs1 & -o.rs1).bit_length() - 1 if o.rs1 else 32,
    "p.fl1": lambda o: o.rs1.bit_length() - 1 if o.rs1 else 32,
    "p.clb": lambda o: count_sign_bits(o.rs1),
    "p.cnt": lambda o: o.rs1.bit_count(),
    "p.ror": lambda o: (o.rs1 | o.rs1 << 32) >> (o.rs2 & 31),
    "p.exths": lambda o: signed(o.rs1, 16),
    "p.exthz": lambda o: o.rs1 & 0xFFFF,
    "p.extbs": lambda o: signed(o.rs1, 8),
    "p.extbz": lambda o: o.rs1 & 0xFF,
    "p.extract": lambda o: extracted(o.rs1, o.is3, o.is2, with_sign=True),
    "p.extractr": lambda o: extracted(o.rs1, bits(o.rs2, 9, 5), bits(o.rs2, 4, 0), with_sign=True),
    "p.extractu": lambda o: extracted(o.rs1, o.is3, o.is2, with_sign=False),
    "p.extractur": lambda o: extracted(o.rs1, bits(o.rs2, 9, 5), bits(o.rs2, 4, 0), with_sign=False),
    "p.insert": lambda o: inserted(o.rd, o.rs1, o.is3, o.is2),
    "p.insertr": lambda o: inserted(o.rd, o.rs1, bits(o.rs2, 9, 5), bits(o.rs2, 4, 0)),
    "p.bset": lambda o: o.rs1 | field_mask(o.is3, o.is2),
    "p.bsetr": lambda o: o.rs1 | field_mask(bits(o.rs2, 9, 5), bits(o.rs2, 4, 0)),
    "p.bclr": lambda o: o.rs1 & ~field_mask(o.is3, o.is2),
    "p.bclrr": lambda o: o.rs1 & ~field_mask(bits(o.rs2, 9, 5), bits(o.rs2, 4, 0)),
    "p.clip": lambda o: clipped(signed(o.rs1), -clip_bound(o.is2) - 1, clip_bound(o.is2)),
    "p.clipr": lambda o: clipped(signed(o.rs1), -(signed(o.rs2) + 1), signed(o.rs2)),
    "p.clipu": lambda o: clipped_unsigned(signed(o.rs1), clip_bound(o.is2)),
    "p.clipur": lambda o: clipped_unsigned(signed(o.rs1), signed(o.rs2)),
    "p.mac": lambda o: o.rd + o.rs1 * o.rs2,
    "p.msu": lambda o: o.rd - o.rs1 * o.rs2,
    "p.bitrev": lambda o: reversed_digits(o.rs1, o.is2, bits(o.word, 26, 25) + 1),
    "pv.pack": lambda o: (o.rs1 & 0xFFFF) << 16 | o.rs2 & 0xFFFF,
    "pv.pack.h": lambda o: o.rs1 >> 16 << 16 | o.rs2 >> 16,
    "pv.packhi.b": lambda o: (o.rs1 & 0xFF) << 24 | (o.rs2 & 0xFF) << 16 | o.rd & 0xFFFF,
    "pv.packlo.b": lambda o: o.rd & 0xFFFF0000 | (o.rs1 & 0xFF) << 8 | o.rs2 & 0xFF,
}
"""Instructions whose result needs no more than a line; bits above the word are cut off."""


def shifted(value: int, amount: int, *, with_sign: bool, rounded: bool) -> int:
    """A shift to the right of a sum that wraps at 32 bits, the addition for rounding included."""
    total = value + (1 << amount >> 1 if rounded else 0)
    return signed(total) >> amount if with_sign else (total & WORD) >> amount


SUM = re.compile(r"p\.(add|sub)(u?)(r?)n(r?)")
PRODUCT = re.compile(r"p\.(mul|mac)(hh)?([su])(r?)(n?)")


def shifted_sum(o: Operands, operation: str, unsigned: str, rounded: str, by_register: str) -> int:
    first, second, amount = (o.rd, o.rs1, o.rs2 & 31) if by_register else (o.rs1, o.rs2, o.is3)
    total = first + second if operation == "add" else first - second
    return shifted(total, amount, with_sign=not unsigned, rounded=bool(rounded))


def shifted_product(o: Operands, operation: str, high: str, sign: str, rounded: str, normalised: str) -> int:
    with_sign = sign == "s"
    halves = [bits(value, 31, 16) if high else bits(value, 15, 0) for value in (o.rs1, o.rs2)]
    first, second = (signed(half, 16) if with_sign else half for half in halves)
    total = first * second + (o.rd if operation == "mac" else 0)
    return shifted(total, o.is3 if normalised else 0, with_sign=with_sign, rounded=bool(rounded))


# Lanes ---------------------------------------------------------------------------------------------------------------


def lanes_of(value: int, width: int) -> list[int]:
    return [bits(value, low + width - 1, low) for low in range(0, 32, width)]


def joined(lanes: list[int], width: int) -> int:
    return sum((lane & (1 << width) - 1) << (i * width) for i, lane in enumerate(lanes))


COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
UNSIGNED = {"avgu", "minu", "maxu", "srl", "sll", "dotup", "sdotup"}
"""Operations on lanes without a sign; comparisons without one end in `u`."""


def lane_result(operation: str, a: int, b: int, width: int) -> int:
    """One lane; the operands have the sign that the operation gives them."""
    if operation.startswith("cmp"):
        return -1 if COMPARISONS[operation[3:5]](a, b) else 0
    shift = b % width
    results: dict[str, Callable[[], int]] = {
        "add": lambda: a + b,
        "sub": lambda: a - b,
        "avg": lambda: signed(a + b, width) >> 1,
        "avgu": lambda: ((a + b) & (1 << width) - 1) >> 1,
        "min": lambda: min(a, b),
        "minu": lambda: min(a, b),
        "max": lambda: max(a, b),
        "maxu": lambda: max(a, b),
        "srl": lambda: a >> shift,
        "sra": lambda: a >> shift,
        "sll": lambda: a << shift,
        "or": lambda: a | b,
        "and": lambda: a & b,
        "xor": lambda: a ^ b,
        "abs": lambda: abs(a),
    }
    return results[operation]()


def vector(o: Operands, operation: str, mode: str, kind: str) -> int:
    width = {"b": 8, "h": 16}[kind]
    unsigned = operation in UNSIGNED or (operation.startswith("cmp") and operation.endswith("u"))
    count = 32 // width
    if mode == "sci":
        second = [o.imm6 if unsigned else signed(o.imm6, 6)] * count
    else:
        second = lanes_of(o.rs2, width)
        second = [second[0]] * count if mode == "sc" else second
        second = second if unsigned else [signed(lane, width) for lane in second]
    first_unsigned = unsigned or operation in {"dotusp", "sdotusp"}
    first = lanes_of(o.rs1, width)
    first = first if first_unsigned else [signed(lane, width) for lane in first]
    if "dot" in operation:
        total = sum(a * b for a, b in zip(first, second, strict=True))
        return total + (o.rd if operation.startswith("s") else 0)
    return joined([lane_result(operation, a, b, width) for a, b in zip(first, second, strict=True)], width)


def lane_access(o: Operands, operation: str, kind: str) -> int:
    width = {"b": 8, "h": 16}[kind]
    index = o.imm6 % (32 // width)
    if operation == "insert":
        lanes = lanes_of(o.rd, width)
        lanes[index] = o.rs1
        return joined(lanes, width)
    lane = lanes_of(o.rs1, width)[index]
    return lane if operation == "extractu" else signed(lane, width)


def shuffled(o: Operands, name: str) -> int:
    if name == "pv.shuffle.sci.h":
        halves = lanes_of(o.rs1, 16)
        return joined([halves[o.imm6 & 1], halves[o.imm6 >> 1 & 1]], 16)
    if name.startswith("pv.shufflei"):
        own = lanes_of(o.rs1, 8)
        numbers = [o.imm6 & 3, o.imm6 >> 2 & 3, o.imm6 >> 4 & 3, int(name[len("pv.shufflei")])]
        return joined([own[number] for number in numbers], 8)
    width = {"b": 8, "h": 16}[name[-1]]
    lanes = lanes_of(o.rs1, width)
    if name.startswith("pv.shuffle2"):
        lanes = lanes_of(o.rd, width) + lanes
    return joined([lanes[number % len(lanes)] for number in lanes_of(o.rs2, width)], width)


DIVIDED = re.compile(r"pv\.(\w+)\.h(?:\.([ri]))?(?:\.div([248]))?")


def divided(o: Operands, name: str) -> int | None:
    """Halfword operations of Fourier transforms, with a division by 1, 2, 4 or 8; none for other names."""
    parts = DIVIDED.fullmatch(name)
    if parts is None:
        return None
    operation, part, divisor = parts.groups()
    shift = {None: 0, "2": 1, "4": 2, "8": 3}[divisor]
    real1, imaginary1 = (signed(lane, 16) for lane in lanes_of(o.rs1, 16))
    real2, imaginary2 = (signed(lane, 16) for lane in lanes_of(o.rs2, 16))
    if operation in {"add", "sub"} and divisor:
        sign = 1 if operation == "add" else -1
        sums = [real1 + sign * real2, imaginary1 + sign * imaginary2]
        return joined([signed(lane, 16) >> shift for lane in sums], 16)
    if operation == "subrotmj":
        return joined([signed(lane, 16) >> shift for lane in (imaginary1 - imaginary2, real2 - real1)], 16)
    if operation == "cplxconj":
        return joined([real1, -imaginary1], 16)
    if operation == "cplxmul" and part == "r":
        return joined([signed(real1 * real2 - imaginary1 * imaginary2) >> 15 + shift, o.rd >> 16], 16)
    if operation == "cplxmul":
        return joined([o.rd, signed(real1 * imaginary2 + imaginary1 * real2) >> 15 + shift], 16)
    return None


VECTOR = re.compile(r"pv\.(\w+?)(?:\.(sc|sci))?\.([bh])")


def result(name: str, operands: Operands) -> int:
    """What an instruction that only computes writes to rd."""
    if name in SCALAR:
        value = SCALAR[name](operands)
    elif parts := SUM.fullmatch(name):
        value = shifted_sum(operands, *parts.groups(default=""))
    elif parts := PRODUCT.fullmatch(name):
        value = shifted_product(operands, *parts.groups(default=""))
    elif name.startswith("pv.shuffle"):
        value = shuffled(operands, name)
    elif (special := divided(operands, name)) is not None:
        value = special
    else:
        parts = VECTOR.fullmatch(name)
        assert parts is not None, name
        operation, mode, kind = parts.groups(default="")
        if operation in {"extract", "extractu", "insert"}:
            value = lane_access(operands, operation, kind)
        else:
            value = vector(operands, operation, mode, kind)
    return value & WORD


def execute(name: str, word: int, x: list[int]) -> None:
    """An instruction that only computes, on a file of registers."""
    rd = bits(word, 11, 7)
    operands = Operands(rd=x[rd], rs1=x[bits(word, 19, 15)], rs2=x[bits(word, 24, 20)], word=word)
    value = result(name, operands)
    if rd:
        x[rd] = value


# Loads, stores, branches ---------------------------------------------------------------------------------------------

INDEXED_LOAD, LOAD, INDEXED_STORE, STORE = 0x03, 0x0B, 0x23, 0x2B
"""Opcodes of memory accesses: with an offset in a register, and with a post-increment."""
SIZES = {"b": 1, "h": 2, "w": 4}


def accessed(word: int, x: list[int]) -> tuple[int, int]:
    """The address of a load or store, and what its base register is increased by."""
    opcode, funct3 = bits(word, 6, 0), bits(word, 14, 12)
    base = x[bits(word, 19, 15)]
    if opcode == INDEXED_LOAD:
        return base + x[bits(word, 24, 20)] & WORD, 0
    if opcode == INDEXED_STORE:
        return base + x[bits(word, 11, 7)] & WORD, 0
    if opcode == LOAD:
        return base, x[bits(word, 24, 20)] if funct3 == 7 else signed(bits(word, 31, 20), 12)
    offset = signed(bits(word, 31, 25) << 5 | bits(word, 11, 7), 12)
    return base, x[bits(word, 11, 7)] if funct3 >= 4 else offset


def access(name: str, word: int, x: list[int], memory: bytearray, start: int) -> None:
    """A load or store, in a memory that begins at `start`."""
    kind, width, unsigned = name[2], SIZES[name[3]], name.endswith("u")
    address, increment = accessed(word, x)
    rs1 = bits(word, 19, 15)
    place = slice(address - start, address - start + width)
    post_increment = bits(word, 6, 0) in {LOAD, STORE}
    if kind == "s":
        memory[place] = (x[bits(word, 24, 20)] & (1 << 8 * width) - 1).to_bytes(width, "little")
    rd = bits(word, 11, 7)
    after = x[rs1] + increment & WORD
    if kind == "l" and rd:
        value = int.from_bytes(memory[place], "little")
        x[rd] = (value if unsigned else signed(value, 8 * width)) & WORD
        if rd == rs1 and bits(word, 14, 12) != 7:  # not defined: an immediate is added to what was loaded
            after = x[rd] + increment & WORD
    if post_increment:
        x[rs1] = after


def branches(name: str, word: int, x: list[int]) -> bool:
    """Whether a comparison with a small number holds."""
    equal = signed(x[bits(word, 19, 15)]) == signed(bits(word, 24, 20), 5)
    return equal if name == "p.beqimm" else not equal
