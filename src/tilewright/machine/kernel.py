"""Kernels: a C file whose leading comment says what it computes and whose prototype is the binding."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.base.descriptions import parse_yaml, read_text
from tilewright.base.dtype import DTYPES
from tilewright.errors import TilewrightError
from tilewright.machine import macros
from tilewright.machine.arithmetic import NUMBERS, Number, check, compiled, evaluated
from tilewright.machine.terms import MOST_TERMS, expanded, weighted


class Parameter(Struct, frozen=True):
    """One parameter of a kernel's C function."""

    ctype: str
    name: str
    pointer: bool
    const: bool


class Kernel(Struct, frozen=True):
    """A C function that computes an operator for some types and shapes on one engine."""

    path: Path
    function: str
    op: str
    engine: str
    types: Mapping[str, tuple[str, ...]]
    """Element types allowed per operand; one name per type variable choice."""
    variables: Mapping[str, tuple[str, ...]]
    """Type variables such as T with the element types each may stand for."""
    when: Mapping[str, str]
    pack: Mapping[str, str]
    epilogue: bool
    scratch: str
    cycles: str
    parameters: tuple[Parameter, ...]
    source: str
    """The C text behind the header, without includes of kernel headers."""
    inplace: str = ""
    """An input whose bytes the output may take."""
    strided: tuple[str, ...] = ()
    """Operands that it walks by their strides, so that they may be parts of larger blocks."""
    whole: tuple[str, ...] = ()
    """Dimensions that it needs uncut: it uses positions along them, not only sizes."""
    accumulate: tuple[str, ...] = ()
    """Reduction dimensions along which its result is a plain sum, so that results of parts may be added up."""
    lanes: bool = False
    """Whether its epilogue also takes vectors of four results, where all that is fused behind it has such a text."""
    near: tuple[str, ...] = ()
    """Operands that have to be in the engine's own memory, also where it reads others from elsewhere."""
    within: tuple[str, ...] = ()
    """Operands that may lie within the result already: it is then called for the rest, and walks that by strides."""
    awaits: tuple[str, ...] = ()
    """Operands that may still come when it begins: where `AWAITS` is 1, it meets what drives before it reads them."""
    path_taken: str = "0"
    """A formula: calls for which it differs run code of their own."""
    terms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """What its cycles are a sum of, each times a coefficient that is measured; none where `cycles` is a formula."""
    jobs: tuple[Mapping[str, str], ...] = ()
    """What it starts on a device, in place of `cycles`: fields of each job by name, formulas but for its mode."""

    @property
    def formulas(self) -> tuple[str, ...]:
        """Those that its price is worked out from."""
        return (self.cycles, *(text for job in self.jobs for name, text in job.items() if name != MODE))

    @property
    def priced_by(self) -> str:
        """Their texts, and those of terms that take nothing so far: what these ask for is measured, too."""
        return " ".join((*self.formulas, *self.terms.values()))

    @property
    def shared(self) -> bool:
        """Whether several cores may call it for the same results: each computes part `PART` of `PARTS` of them."""
        return any(parameter.name == "PARTS" for parameter in self.parameters)

    @property
    def keeps_sums(self) -> bool:
        """Whether the device that it gives jobs to adds up parts, and keeps the sums until the last one comes."""
        return bool(self.accumulate and self.jobs)

    @property
    def where(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"


_HEADER = re.compile(r"\A\s*/\*\s*---\n(.*?)\n\s*---\s*\*/", re.DOTALL)
ATTRIBUTE = r"__attribute__\s*\(\([^;{}]*?\)\)"
"""Of a function, before its name."""
_PROTOTYPE = re.compile(
    rf"^static\s+(?:(?:{ATTRIBUTE}|\w+)\s+)*?void\s+(?:{ATTRIBUTE}\s+)?(\w+)\s*\(([^)]*)\)\s*\{{",
    re.MULTILINE | re.DOTALL,
)
_INCLUDE = re.compile(r'^#include "(.*)"$', re.MULTILINE)
_KEYS = {
    *("op", "engine", "types", "when", "pack", "epilogue", "scratch", "cycles"),
    *("inplace", "strided", "whole", "accumulate", "near", "within", "awaits", "path", "jobs"),
}

_TEXTS = {"op", "engine", "epilogue", "scratch", "cycles", "inplace", "path"}
"""Keys with one text (`op` and `cycles` may be mappings); others have lists or mappings."""
OP = "OP"
"""In the C text of a kernel for several operators: what its header says of the one that it is for."""
MODE = "mode"
"""The field of a job that is a name and no formula."""


class PackPart(Struct, frozen=True):
    """An axis of a packed constant: dimensions, joined where there are several, whole, or their blocks, or a block."""

    dims: tuple[str, ...]
    kind: str
    """`/` counts blocks, `%` is the place inside one, "" is neither."""
    block: int

    @property
    def cut(self) -> str:
        """The dimension that tiles may cut along this axis; "" where there is none."""
        name, *others = self.dims
        return "" if others or name in (BIT, PLANE) or window_of(name) else name


BIT, PLANE = "bit", "plane"
"""In place of a dimension: the number of the bit in a weight, counted from the smallest value of its type; or just of
the bits that the weights need, `weight_planes` of them, counted from `weight_low`."""
BITS = 8
WINDOWS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {"tap": ("channel", 9), "pixel": ("depth", 3), "column": ("filter", 3)}
)
"""A dimension may be read as so many pieces of equal length: the axis of the pieces, and that of what is in one.

Elements of `tap(K)` and `channel(K)` are those of a window of 3x3 pixels, in three rows that begin equally far apart;
of `pixel(K)` and `depth(K)` those of a window of one column; of `column(N)` and `filter(N)` those that a convolution
gives in three columns, the last one first. Rows, or columns, may overlap.
"""
_WINDOW = re.compile(
    rf"({'|'.join(name for pieces, (inner, _) in WINDOWS.items() for name in (pieces, inner))})\((\w+)\)"
)


class Packing(Struct, frozen=True):
    """How a constant is reordered. The last parts may be single bits, which become bytes."""

    names: tuple[str, ...]
    """The dimensions of the constant's axes."""
    parts: tuple[PackPart, ...]
    bits: tuple[PackPart, ...] = ()
    """What a run of bits is made of, its first one in the lowest bit of the first byte."""
    multiple: int = BITS
    """Runs of bits are filled up with zeros to a multiple of this."""

    def run_bytes(self, sizes: Mapping[str, Number]) -> int:
        """Bytes of a run of bits."""
        count = 1
        for part in self.bits:
            extent = prod(extent_of(name, sizes) for name in part.dims)
            count *= part.block if part.kind == "%" else -(-extent // part.block)
        return -(-count // self.multiple) * (self.multiple // BITS)


def extent_of(name: str, sizes: Mapping[str, Number]) -> int:
    """How much there is along a dimension of a packed constant, or how many bits."""
    if within := window_of(name):
        axis = name.partition("(")[0]
        pieces, inner = window_axes(axis)
        count = WINDOWS[pieces][1]
        return window_channels(int(sizes[within]), count) if axis == inner else count
    return BITS if name == BIT else int(sizes["weight_planes" if name == PLANE else name])


def window_of(name: str) -> str:
    """The dimension that an axis such as `tap(K)` or `channel(K)` is of, which is read in pieces; "" for others."""
    found = _WINDOW.fullmatch(name)
    return found.group(2) if found else ""


def window_axes(axis: str) -> tuple[str, str]:
    """The axes of the window that one of them belongs to: of its pieces, and of what is in one."""
    return next((pieces, inner) for pieces, (inner, _) in WINDOWS.items() if axis in (pieces, inner))


def window_channels(size: int, count: int) -> int:
    """How many elements a piece has where so many pieces are three rows, from the first element to the last.

    The pieces of a row follow each other. Rows may overlap, so there have to be enough channels, and as many
    elements between the first two rows as between the last two.
    """
    least = -(-size // count)
    return least + (size - least) % 2


_PACK_PART = re.compile(r"(\w+\(\w+\)|\w+|\([\w, ]+\))\s*(?:([/%])\s*(\d+))?\s*(?:,|$)")
_PACK_BITS = re.compile(r",\s*bits\((.*)\)\s*(?:/\s*(\d+))?\s*$")


@lru_cache(maxsize=1024)
def packing(spec: str) -> Packing:
    """What a text such as `G,F,C -> G,F/16,C,F%16` or `F,C -> F,bits(C/4,bit,C%4)/256` says."""
    left, _, right = spec.partition("->")
    names = tuple(name.strip() for name in left.split(","))
    bits = _PACK_BITS.search(right)
    parts = _pack_parts(right[: bits.start()] if bits else right)
    if not bits:
        return Packing(names, parts)
    return Packing(names, parts, _pack_parts(bits.group(1)), int(bits.group(2) or BITS))


def _pack_parts(text: str) -> tuple[PackPart, ...]:
    return tuple(
        PackPart(_pack_dims(group), kind, int(block or 1)) for group, kind, block in _PACK_PART.findall(text.strip())
    )


def _pack_dims(group: str) -> tuple[str, ...]:
    """The dimensions of `C` or of `(KH,KW,C)`."""
    inner = group[1:-1] if group.startswith("(") else group
    return tuple(name.strip() for name in inner.split(","))


def parse_kernels(path: Path, text: str | None = None) -> tuple[Kernel, ...]:
    """Reads one file: a kernel for each of its operators; a wrong header is an error that names file and key.

    `text` is that of the file, where it was read before.
    """
    text = read_text(path, "bad-kernel") if text is None else text
    beside = [path.parent / name for name in _INCLUDE.findall(text)] if "\njobs:" in text else []
    return _kernels(path, text, "\n".join(read_text(other, "bad-kernel") for other in beside if other.is_file()))


@lru_cache(maxsize=1024)
def _kernels(path: Path, text: str, headers: str) -> tuple[Kernel, ...]:
    """Cached by the text, so that a process that compiles many networks parses each file once and sees edited ones.

    `headers` is that of C headers beside it that it includes.
    """
    found = _HEADER.match(text)
    if not found:
        raise _bad(path, "it does not begin with a '/* ---' header", "see docs/add_a_kernel.md")
    header = _header(path, found.group(1))
    source = re.sub(r'^#include ".*"\n', "", text[found.end() :], flags=re.MULTILINE).strip() + "\n"
    prototypes = list(_PROTOTYPE.finditer(source))
    if not prototypes:
        raise _bad(path, "it has no 'static void name(...) {' function", "the last such function is the kernel")
    prototype = prototypes[-1]
    types = cast("dict[str, Any]", header.get("types") or {})
    names = {
        str(t) for value in types.values() for t in (cast("list[str]", value) if isinstance(value, list) else [value])
    }
    variables = {
        name: tuple(cast("list[str]", header[name])) for name in sorted(names) if name not in DTYPES and name in header
    }
    unknown = sorted(set(header) - _KEYS - set(variables))
    if unknown:
        raise _bad(
            path,
            f"unknown header key {', '.join(unknown)}",
            f"known keys: {', '.join(sorted(_KEYS))} and type variables",
        )
    for name in sorted(names - set(DTYPES) - set(variables)):
        raise _bad(
            path,
            f"types: '{name}' is neither an element type nor a variable of the header",
            "add e.g. 'T: [float32, int8]'",
        )
    terms = _terms(path, header.get("cycles"))
    cycles = weighted(terms, {}) if terms else str(header.get("cycles", "0"))
    if not terms:
        _checked(path, "cycles", cycles)
    _check(path, header)
    ops = cast("dict[str, str]", header["op"] if isinstance(header["op"], dict) else {header["op"]: OP})
    kernel = Kernel(
        path,
        prototype.group(1),
        "",
        str(header.get("engine", "cpu")),
        MappingProxyType(
            {k: tuple(cast("list[str]", v)) if isinstance(v, list) else (str(v),) for k, v in types.items()}
        ),
        MappingProxyType(variables),
        MappingProxyType({str(k): str(v) for k, v in cast("dict[str, Any]", header.get("when") or {}).items()}),
        MappingProxyType(cast("dict[str, str]", header.get("pack") or {})),
        header.get("epilogue") in ("row", "lanes"),
        str(header.get("scratch", "0")),
        cycles,
        tuple(_parameter(path, part) for part in prototype.group(2).split(",")),
        source,
        str(header.get("inplace", "")),
        tuple(cast("list[str]", header.get("strided") or [])),
        tuple(cast("list[str]", header.get("whole") or [])),
        tuple(cast("list[str]", header.get("accumulate") or [])),
        header.get("epilogue") == "lanes",
        tuple(cast("list[str]", header.get("near") or [])),
        tuple(cast("list[str]", header.get("within") or [])),
        tuple(cast("list[str]", header.get("awaits") or [])),
        str(header.get("path", "0")),
        MappingProxyType(terms),
        tuple(_job(path, job, macros.macros(headers)) for job in cast("list[object]", header.get("jobs") or [])),
    )
    return tuple(
        replace(kernel, op=str(op), source=re.sub(rf"\b{OP}\b", lambda _, text=text: str(text), source))
        for op, text in ops.items()
    )


def _check(path: Path, header: Mapping[str, Any]) -> None:
    """Formulas can be worked out, and what is said in several places goes together."""
    for key in ("scratch", "path"):
        _checked(path, key, str(header.get(key, "0")))
    for name, text in cast("dict[str, Any]", header.get("when") or {}).items():
        _checked(path, "when", predicate(str(name), str(text)))
    if header.get("epilogue") not in (None, "row", "lanes"):
        raise _bad(path, f"epilogue: '{header['epilogue']}' is neither row nor lanes", "docs/add_a_kernel.md says more")
    for order in cast("dict[str, object]", header.get("pack") or {}).values():
        packed = packing(str(order))
        if 0 in (packed.multiple, *(part.block for part in (*packed.parts, *packed.bits))):
            raise _bad(path, f"pack: '{order}' has blocks of nothing", "give each block a size")
    if header.get("accumulate") and "jobs" not in header and header.get("epilogue") not in ("row", "lanes"):
        raise _bad(path, "accumulate: results of parts are added up by its epilogue", "add 'epilogue: row'")
    if "jobs" in header and "cycles" in header:
        raise _bad(path, "it says both cycles and jobs", "leave one of them away")


def _job(path: Path, job: object, known: Mapping[str, macros.Macro]) -> Mapping[str, str]:
    """A job with macros of C headers replaced by what they stand for."""
    if not isinstance(job, dict) or MODE not in job:
        raise _bad(path, "jobs: each must be a mapping with a mode", "docs/add_a_kernel.md shows one")
    fields = {str(name): str(text) for name, text in cast("dict[object, object]", job).items()}
    for name in [name for name in fields if name != MODE]:
        try:
            fields[name] = macros.expanded(fields[name], known)
        except ValueError as reason:
            raise _bad(
                path, f"jobs: {name}: {reason}", "write a formula, or a macro of a C header beside it"
            ) from reason
        _checked(path, f"jobs: {name}", fields[name])
    return MappingProxyType(fields)


def _terms(path: Path, given: object) -> dict[str, str]:
    """The terms of its cycles as plain formulas; none where these are one formula."""
    if not isinstance(given, dict):
        return {}
    texts = {str(name): str(text) for name, text in cast("dict[Any, Any]", given).items()}
    if len(texts) > MOST_TERMS:
        raise _bad(
            path, f"cycles: {len(texts)} terms", f"say it with at most {MOST_TERMS}: what does its code loop over?"
        )
    found: dict[str, str] = {}
    for name, text in texts.items():
        try:
            found[name] = expanded(text)
        except ValueError as reason:
            raise _bad(path, f"cycles: {name}: {reason}", "docs/calibrating.md says what terms may be") from reason
        _checked(path, f"cycles: {name}", found[name])
    return found


def _header(path: Path, text: str) -> dict[str, Any]:
    """What a header says, each key of the kind that it has to be."""
    try:
        data, repeated = parse_yaml(text)
    except ValueError as reason:
        raise _bad(path, f"its header is not YAML: {reason}", "check indentation and quotes") from reason
    if repeated:
        raise _bad(path, f"its header, line {repeated[0]}", "leave one of them away")
    if not isinstance(data, dict) or not cast("dict[str, Any]", data).get("op"):
        raise _bad(path, "its header does not say of which op it is", "begin it with 'op: NAME'")
    header = cast("dict[str, Any]", data)
    for key, value in header.items():
        wanted = dict if key in ("types", "when", "pack") else list
        if key in _KEYS - _TEXTS and not isinstance(value, (wanted, type(None))):
            raise _bad(
                path, f"{key}: must be a {'mapping' if wanted is dict else 'list of names'}", "write e.g. 'near: [X]'"
            )
    return header


def _parameter(path: Path, text: str) -> Parameter:
    words = re.findall(r"\w+|\*", text)
    if len(words) < 2:
        raise _bad(path, f"cannot read the parameter '{text.strip()}'", "write e.g. 'const float *X' or 'int AXIS'")
    kept = [w for w in words if w not in ("const", "restrict", "struct", "*")]
    return Parameter(" ".join(kept[:-1]), kept[-1], "*" in words, "const" in words)


def _checked(path: Path, key: str, text: str) -> None:
    try:
        check(text)
    except ValueError as reason:
        raise _bad(
            path, f"{key}: {reason}", "write sums, products, comparisons, min and max of names and numbers"
        ) from reason


@contextmanager
def named(kernel: Kernel, key: str) -> Generator[None]:
    """Around the evaluation of a formula of its header: names that there are not and divisions by zero are told."""
    try:
        yield
    except KeyError as missing:
        raise _bad(
            kernel.path,
            f"{key}: '{missing.args[0]}' is no size, stride or attribute of {kernel.op}",
            "docs/add_a_kernel.md says what names there are",
        ) from missing
    except ZeroDivisionError as reason:
        raise _bad(kernel.path, f"{key}: it divides by zero", "let max(1, ...) keep divisors from that") from reason


def _bad(path: Path, why: str, help: str) -> TilewrightError:
    return TilewrightError("bad-kernel", f"kernel '{path.name}': {why}", help=help)


def formula(text: str, names: Mapping[str, Number]) -> Number:
    """The value of an arithmetic formula of a header, whose text is checked; KeyError for an unknown name.

    Where `(A := ...)` names a part of it, `A` stands for the same behind it.
    """
    return evaluated(compiled(text), NUMBERS, {**names} if ":=" in text else names)


def holds(name: str, condition: str, names: Mapping[str, Number]) -> bool:
    """Whether a predicate such as `K: "% 4 == 0"` holds; of several joined by `and`, `or`, each repeats the name."""
    return bool(formula(predicate(name, condition), names))


_FIRST = re.compile(r"[\s(]*(\w+)")


@lru_cache(maxsize=4096)
def predicate(name: str, condition: str) -> str:
    """The formula of a predicate."""
    first = _FIRST.match(condition)
    return condition if first and first[1] == name else f"{name} {condition}"
