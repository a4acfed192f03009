"""Programs for simulated machines: what an ELF file holds, and which function and source line an address is."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, cast

from elftools.common.exceptions import DWARFError, ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from msgspec import Struct

from tilewright.errors import TilewrightError

DAMAGE = (
    *(ELFError, DWARFError, ConstructError, struct.error, AssertionError, AttributeError, TypeError, ValueError),
    *(LookupError, ArithmeticError, MemoryError, RecursionError),
)
"""What the reader of ELF files raises for files that are cut off or garbled."""


class Family(Struct, frozen=True):
    """Machines with 32 bits that a program may be for."""

    name: str
    elf: str
    """What ELF files call it."""
    compiler: str
    code_bit: int = 0
    """Set in addresses of functions, which it is no part of."""

    @property
    def help(self) -> str:
        return f"compile it for this machine, e.g. with {self.compiler}"


RISCV = Family("RISC-V", "EM_RISCV", "riscv64-unknown-elf-gcc -march=rv32imc_zicsr -mabi=ilp32")
ARM = Family("Arm", "EM_ARM", "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb", code_bit=1)


class Segment(Struct, frozen=True):
    """Bytes that are loaded at an address."""

    address: int
    data: bytes


class Symbol(Struct, frozen=True):
    """A name for an address."""

    name: str
    address: int
    size: int
    is_function: bool


class SourcePlace(Struct, frozen=True):
    """An address in words: the function that it lies in, and its line of source."""

    address: int
    function: str = ""
    offset: int = 0
    line: str = ""

    def __str__(self) -> str:
        function = f" in {self.function}{f'+{self.offset:#x}' if self.offset else ''}" if self.function else ""
        return f"{self.address:#010x}{function}{f' ({self.line})' if self.line else ''}"


class ElfProgram(Struct, frozen=True, dict=True):
    """A program that can be loaded. Lines of source are looked up when somebody asks for the first one."""

    path: Path
    entry: int
    segments: tuple[Segment, ...]
    all_symbols: tuple[Symbol, ...]
    image: bytes

    @cached_property
    def symbols(self) -> Mapping[str, Symbol]:
        """By name; of several with one name (static functions of different files) the first."""
        return MappingProxyType({symbol.name: symbol for symbol in reversed(self.all_symbols)})

    @cached_property
    def functions(self) -> tuple[Symbol, ...]:
        """In the order of addresses, one for each address."""
        found = {symbol.address: symbol for symbol in self.all_symbols if symbol.is_function}
        return tuple(found[address] for address in sorted(found))

    @cached_property
    def _starts(self) -> list[int]:
        return [symbol.address for symbol in self.functions]

    @cached_property
    def _lines(self) -> tuple[list[int], list[str]]:
        """Addresses at which a line of source begins, and these lines; "" where none is known from there on."""
        # Of several rows for an address the last one counts, but for the end of a table, where another one may begin.
        rows = sorted(_line_rows(self.image), key=lambda row: (row[0], row[1] != ""))
        return [row[0] for row in rows], [row[1] for row in rows]

    def function_at(self, address: int) -> Symbol | None:
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        found = self.functions[index]
        # Functions of assembly often have no size: they reach to the next one.
        return found if not found.size or address < found.address + found.size else None

    def line_at(self, address: int) -> str:
        """`file.c:12`, or nothing where the program has no debug information for it."""
        addresses, lines = self._lines
        index = bisect_right(addresses, address) - 1
        return lines[index] if index >= 0 else ""

    def place(self, address: int) -> SourcePlace:
        function = self.function_at(address)
        if function is None:
            return SourcePlace(address)
        return SourcePlace(address, function.name, address - function.address, self.line_at(address))


def load_program(path: Path | str, family: Family = RISCV) -> ElfProgram:
    """Reads an ELF file for a machine of a family."""
    path = Path(path)
    try:
        image = path.read_bytes()
    except OSError as reason:
        raise TilewrightError(
            "missing-file", f"'{path}' cannot be read", reasons=[str(reason)], help="pass the path of an ELF program"
        ) from reason
    try:
        elf = ELFFile(BytesIO(image))
    except DAMAGE as reason:
        if image.startswith(b"\x7fELF"):
            raise _bad(path, f"its header is cut off or damaged: {reason}", "copy or link it again") from reason
        raise _bad(path, "it is not an ELF file", family.help) from reason
    machine = str(cast("Any", elf)["e_machine"])
    if machine != family.elf or elf.elfclass != 32 or not elf.little_endian:
        width = f"{elf.elfclass} bits, {'little' if elf.little_endian else 'big'} endian"
        why = f"it is for another machine: {machine} with {width}, not {family.name} with 32 bits"
        raise _bad(path, why, family.help)
    try:
        segments = tuple(_segments(path, elf, len(image)))
        symbols = tuple(_symbols(elf, family))
        entry = int(cast("Any", elf)["e_entry"])
    except DAMAGE as reason:
        raise _bad(path, f"it is damaged or cut off: {reason or type(reason).__name__}", family.help) from reason
    if not segments:
        raise _bad(path, "it has no segment to load", "link it: an object file is not a program yet")
    return ElfProgram(path, entry, segments, symbols, image)


def _bad(path: Path, why: str, help: str) -> TilewrightError:
    return TilewrightError("bad-elf", f"'{path}' cannot be simulated", reasons=[why], help=help)


def _segments(path: Path, elf: ELFFile, length: int) -> Iterator[Segment]:
    for segment in cast("Iterator[Any]", elf.iter_segments("PT_LOAD")):
        size, offset = int(segment["p_filesz"]), int(segment["p_offset"])
        if offset + size > length:
            raise _bad(path, f"it is cut off: {offset + size} bytes are announced, {length} are there", "copy it again")
        if size:
            yield Segment(int(segment["p_paddr"]), bytes(segment.data()))


def _symbols(elf: ELFFile, family: Family) -> Iterator[Symbol]:
    table = cast("Any", elf.get_section_by_name(".symtab"))
    if not isinstance(table, SymbolTableSection):
        return
    for entry in cast("Iterator[Any]", table.iter_symbols()):
        kind, binding, section = entry["st_info"]["type"], entry["st_info"]["bind"], entry["st_shndx"]
        # Names like $x mark where code and data begin.
        if not entry.name or section == "SHN_UNDEF" or entry.name.startswith(("$", ".L")):
            continue
        if kind in ("STT_FUNC", "STT_OBJECT", "STT_NOTYPE"):
            # Functions of assembly often have no type; labels inside of them are not global.
            label = kind == "STT_NOTYPE" and binding == "STB_GLOBAL" and _is_code(elf, section)
            is_function = kind == "STT_FUNC" or label
            address = int(entry["st_value"])
            address &= ~family.code_bit if kind == "STT_FUNC" else -1
            yield Symbol(str(entry.name), address, int(entry["st_size"]), is_function)


def _is_code(elf: ELFFile, index: object) -> bool:
    executable = 4
    return isinstance(index, int) and bool(cast("Any", elf.get_section(index))["sh_flags"] & executable)


def _line_rows(image: bytes) -> Iterator[tuple[int, str]]:
    """Rows of all line tables; damaged debug information counts as none."""
    try:
        elf = ELFFile(BytesIO(image))
        if not elf.has_dwarf_info():
            return
        dwarf = cast("Any", elf.get_dwarf_info())
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            if program is None:
                continue
            names = _file_names(program.header)
            first = 0 if program.header["version"] >= 5 else 1
            for entry in program.get_entries():
                state = entry.state
                if state is None:
                    continue
                index = state.file - first
                known = not state.end_sequence and 0 <= index < len(names)
                yield int(state.address), f"{names[index]}:{state.line}" if known else ""
    except DAMAGE:
        return


def _file_names(header: Any) -> Sequence[str]:
    entries = cast("Sequence[Any]", header["file_entry"])
    return [PurePosixPath(cast("bytes", entry.name).decode("utf-8", "replace")).name for entry in entries]
