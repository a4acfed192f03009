"""Flags in memory: variables by which harts tell each other that something is done, as debug information names them.

A flag is a number or pointer that is volatile or atomic: a variable, a member of such a structure, or one of a few in
an array. Large arrays are data, whatever they are called.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import Any, cast

from elftools.elf.elffile import ELFFile

from tilewright.sim.program import DAMAGE, ElfProgram

MOST = 32
"""Elements of an array of flags: one for each hart, say."""
_AT_ADDRESS = 0x03
_MARKS = ("DW_TAG_volatile_type", "DW_TAG_atomic_type")
_OTHER_NAMES = ("DW_TAG_typedef", "DW_TAG_const_type")
_NUMBERS = ("DW_TAG_base_type", "DW_TAG_pointer_type", "DW_TAG_enumeration_type")
_SCOPES = ("DW_TAG_subprogram", "DW_TAG_lexical_block", "DW_TAG_namespace")
_POINTER = 4


def flags_of(program: ElfProgram) -> tuple[tuple[int, int], ...] | None:
    """Addresses and sizes of all flags; None where there is no debug information, or a damaged one."""
    try:
        elf = ELFFile(BytesIO(program.image))
        if not elf.has_dwarf_info():
            return None
        units = cast("Any", elf.get_dwarf_info()).iter_CUs()
        return tuple(flag for unit in units for flag in _of_unit(unit.get_top_DIE()))
    except DAMAGE:
        return None


def _of_unit(top: Any) -> Iterator[tuple[int, int]]:
    if not any(child.tag in _MARKS for child in top.iter_children()):
        return
    for variable in _variables(top):
        place = variable.attributes.get("DW_AT_location")
        kind = _type(variable)
        if place is None or kind is None or not str(place.form).startswith(("DW_FORM_exprloc", "DW_FORM_block")):
            continue
        expression = bytes(cast("list[int]", place.value))
        if len(expression) == 1 + _POINTER and expression[0] == _AT_ADDRESS:
            yield from _inside(kind, int.from_bytes(expression[1:], "little"), marked=False)


def _variables(scope: Any) -> Iterator[Any]:
    for child in scope.iter_children():
        if child.tag == "DW_TAG_variable":
            yield child
        elif child.tag in _SCOPES:
            yield from _variables(child)


def _type(entry: Any) -> Any:
    """That of a variable, also where an earlier declaration says it."""
    for name in ("DW_AT_specification", "DW_AT_abstract_origin"):
        if name in entry.attributes:
            return _type(entry.get_DIE_from_attribute(name))
    return entry.get_DIE_from_attribute("DW_AT_type") if "DW_AT_type" in entry.attributes else None


def _inside(kind: Any, address: int, *, marked: bool) -> Iterator[tuple[int, int]]:
    """Flags in a variable of some type."""
    while kind is not None and kind.tag in (*_MARKS, *_OTHER_NAMES):
        marked = marked or kind.tag in _MARKS
        kind = _type(kind)
    if kind is None:
        return
    if kind.tag in _NUMBERS and marked:
        yield address, _size(kind)
    elif kind.tag in ("DW_TAG_structure_type", "DW_TAG_union_type"):
        for member in kind.iter_children():
            offset = member.attributes.get("DW_AT_data_member_location")
            inner = _type(member)
            if member.tag == "DW_TAG_member" and inner is not None:
                yield from _inside(inner, address + (int(offset.value) if offset else 0), marked=marked)
    elif kind.tag == "DW_TAG_array_type":
        element, count = _type(kind), _count(kind)
        flags = list(_inside(element, 0, marked=marked)) if count <= MOST else []
        if len(flags) == 1:
            yield from ((address + index * flags[0][1], flags[0][1]) for index in range(count))


def _size(kind: Any) -> int:
    size = kind.attributes.get("DW_AT_byte_size")
    return int(size.value) if size is not None else _POINTER


def _count(array: Any) -> int:
    """Elements of an array of one dimension; others have too many."""
    bounds = [child.attributes.get("DW_AT_upper_bound") for child in array.iter_children()]
    return int(bounds[0].value) + 1 if len(bounds) == 1 and bounds[0] is not None else MOST + 1
