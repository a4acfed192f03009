"""Kernel instances: a kernel's C text with its type variables filled in and its epilogue hook bound."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod

from msgspec import Struct

from tilewright.base.dtype import DTYPES, DType
from tilewright.codegen.affine import Block, dense, linear, row_major
from tilewright.codegen.lanes import lanes_text
from tilewright.codegen.literals import number
from tilewright.codegen.steps import CArray, StepCode, converted, load, print_steps
from tilewright.core.domain import Affine, Domain
from tilewright.core.expr import Size
from tilewright.core.graph import Result, TensorType
from tilewright.core.op import REGISTRY, scaling
from tilewright.core.tiles import pointed
from tilewright.machine.kernel import ATTRIBUTE, Kernel

_LONG = re.compile(r"\btw_(?:erf|exp|log|sigmoid|tanh)f\(")
"""Calls of functions of dozens of instructions, which are inlined."""
_DEFINITION = re.compile(
    rf"^(?:static|TW_APART|TW_INLINE)\s+(?:(?:{ATTRIBUTE}|inline)\s+)*[\w\s]+?[\s\*](?:{ATTRIBUTE}\s+)?"
    r"(\w+)\s*\([^;{}]*\)\s*\{",
    re.MULTILINE,
)


class Field(Struct, frozen=True):
    """A field of an epilogue's parameter block: a tensor operand of a step, or one of its constants."""

    name: str
    ctype: str
    tensor: str = ""
    literal: str = ""


def epilogue_fields(steps: tuple[StepCode, ...], replaced: frozenset[str]) -> tuple[Field, ...]:
    """What an epilogue has to be told at each call; tensors that the result replaces are read through the result."""
    fields: list[Field] = []
    for index, step in enumerate(steps):
        for operand, tensor, kind in zip(step.call.operands, step.inputs, step.call.inputs, strict=True):
            if not tensor or kind is None or isinstance(tensor, Result) or tensor in replaced:
                continue
            if step.body.reads(operand):
                fields.append(_field(step, index, operand, tensor, kind))
        fields += [Field(f"s{index}_{name}", ctype, literal=value) for ctype, name, value in step.body.constants]
    return tuple(fields)


def _field(step: StepCode, index: int, operand: str, tensor: str, kind: TensorType) -> Field:
    """A constant scalar travels as its value, anything else as a pointer."""
    name = f"s{index}_{operand}"
    value = step.call.baked(operand)
    if value is not None and not pointed(step.call, step.domain, step.body, operand):
        return Field(name, kind.dtype.ctype, literal=number(kind.dtype.ctype, value))
    return Field(name, kind.dtype.ctype, tensor=tensor)


def instance_text(
    kernel: Kernel,
    variables: Mapping[str, str],
    name: str,
    output: TensorType,
    steps: tuple[StepCode, ...],
    replaced: frozenset[str] = frozenset(),
    row_axes: int = 1,
    *,
    parts: bool = False,
) -> str:
    """The C text of a kernel instance whose function is called `name`.

    `replaced` are tensors of the epilogue whose bytes the output takes, `row_axes` trailing axes of the output are what
    the kernel calls a row. With `parts` it is called for parts of a reduction, whose results the hook adds up.
    """
    if not kernel.epilogue:
        return _source(kernel.source, tuple(variables.items()), kernel.function, name)
    target = REGISTRY[kernel.op].output_names(1)[0]
    stored = (target, output.dtype.ctype)
    text = _source(kernel.source, tuple(variables.items()), kernel.function, name, stored)
    result = next(iter(kernel.types.get(target, ("float32",))))
    accumulator = DTYPES[variables.get(result, result)]
    # The hook is bound by macros, not by renaming, because macros of the kernel header use it too.
    pointwise = not parts and not replaced and not any(field.tensor for field in epilogue_fields(steps, replaced))
    macros = {"Epilogue": f"{name}_epilogue", "STORE": f"{name}_store", "STORE_4": f"{name}_four{'_sums' * parts}"}
    macros |= {"STORE_1": f"{name}_one", "STORE_POINTWISE": str(int(pointwise)), "STORE_STEPS": str(len(steps))}
    macros |= {"STORE_AGAIN": str(int(not parts and not replaced))}
    macros |= {"STORE_SCALES": "0", "STORE_SHIFTS": "0", "STORE_LISTS": "0"}
    macros |= {} if parts or replaced else _scaling(steps, output, row_axes)
    vectors: list[str] = []
    if kernel.lanes:
        vectors = [] if parts else _lanes_text(name, accumulator, output, steps, replaced, row_axes)
        macros |= {"STORE_HAS_LANES": str(int(bool(vectors))), "STORE_LANES": f"{name}_lanes"}
        indexes = (_step_indexes(step, output, row_axes).values() for step in steps)
        macros["STORE_BY_CHANNEL"] = str(int(not all(index in ("0", "at") for each in indexes for index in each)))
    return "".join(
        (
            _epilogue_text(name, accumulator.compute, output, steps, replaced, row_axes, parts=parts),
            *(f"{line}\n" for line in vectors),
            *(f"#define {macro} {meaning}\n" for macro, meaning in macros.items()),
            text,
            *(f"#undef {macro.partition('(')[0]}\n" for macro in macros),
        )
    )


@lru_cache(maxsize=256)
def _source(
    text: str, variables: tuple[tuple[str, str], ...], function: str, name: str, stored: tuple[str, str] | None = None
) -> str:
    """The C text of a kernel with types in place of variables, and names of its own for its functions.

    `stored` is the operand whose type its hook says, and that type.
    """
    for variable, choice in variables:
        text = re.sub(rf"\b{variable}\b", DTYPES[choice].ctype, text)
    for defined in set(_DEFINITION.findall(text)):
        text = re.sub(rf"\b{defined}\b", name if defined == function else f"{name}_{defined}", text)
    if stored:
        target, ctype = stored
        pointer = rf"\b(?:float|double|u?int\d+_t)\s*\*\s*(restrict\s+)?{target}\b"
        text = re.sub(pointer, rf"{ctype} *\1{target}", text)
    return text


def _scaling(steps: tuple[StepCode, ...], output: TensorType, row_axes: int) -> dict[str, str]:
    """How kernels that have a faster way to scale sums back get at the numbers, where that is all that is fused.

    Before the sums are scaled, something may be added to each channel.
    """
    last, body = len(steps) - 1, scaling([step.body for step in steps])
    if body is None:
        return {}
    factor = _of_channel(steps, last, "mul", output, row_axes)
    added = next((o for o, n in zip("AB", steps[0].inputs, strict=False) if n != Result(0)), "") if last else ""
    more = _of_channel(steps, 0, added, output, row_axes) if added else "0"
    offset = _of_channel(steps, last, "add", output, row_axes) if body.shifts and body.reads("add") else "0"
    if steps[-1].inputs[0] != Result(last) or not factor or not more or not offset or last != len(added):
        return {}
    macros = {"STORE_ADDED(e, channel)": more, "STORE_SIGNED": str(int(output.dtype.lo < 0))}
    macros["STORE_SHIFT(e)"] = f"(e)->s{last}_shift"
    if body.scales:
        macros |= {"STORE_SCALES": "1", "STORE_FACTOR(e, channel)": f"tw_factor({factor}, (e)->s{last}_shift)"}
        return macros | {"STORE_OFFSET(e, channel)": "0", "STORE_ZERO(e)": f"(e)->s{last}_zero"}
    macros |= {"STORE_SHIFTS": "1", "STORE_FACTOR(e, channel)": f"(int32_t){factor}"}
    if not added and all(_by_channel(steps[-1], text, name) for text, name in ((factor, "mul"), (offset, "add"))):
        macros |= {"STORE_LISTS": "1", "STORE_FACTORS(e)": f"(e)->s{last}_mul", "STORE_OFFSETS(e)": f"(e)->s{last}_add"}
    return macros | {"STORE_OFFSET(e, channel)": f"(int32_t){offset}", "STORE_ZERO(e)": "0"}


def _by_channel(step: StepCode, text: str, operand: str) -> bool:
    """Whether an operand is a list of words, one for each channel."""
    return text.endswith("[channel]") and step.call.type(operand).dtype.name == "int32"


def _lanes_text(
    name: str,
    accumulator: DType,
    output: TensorType,
    steps: tuple[StepCode, ...],
    replaced: frozenset[str],
    row_axes: int,
) -> list[str]:
    indexes = {
        (number, operand): text
        for number, step in enumerate(steps)
        for operand, text in _step_indexes(step, output, row_axes).items()
    }
    fields = [(field.ctype, field.name, bool(field.tensor)) for field in epilogue_fields(steps, replaced)]
    return lanes_text(name, accumulator, output, steps, indexes, fields, replaced)


def _of_channel(steps: tuple[StepCode, ...], step: int, operand: str, output: TensorType, row_axes: int) -> str:
    """The value that an operand of a step has for a channel; empty where it is not the same for all rows."""
    name = f"s{step}_{operand}"
    if not any(field.name == name and field.tensor for field in epilogue_fields(steps, frozenset())):
        return f"(e)->{name}"
    index = _step_indexes(steps[step], output, row_axes).get(operand, "")
    return f"(e)->{name}[{index}]" if index in ("0", "channel") else ""


def row_axes(domain: Domain) -> int:
    """How many trailing axes of its result a kernel computes as one row: those of a normalisation, else the last.

    None are where the loop over a row has no axis of its own (the product of a matrix and a vector).
    """
    axes = [axis for axis in domain.access[domain.outputs[0]] if isinstance(axis, Affine)]
    whole = [index for index, axis in enumerate(axes) if domain.whole.intersection(axis.dims)]
    if whole or not axes:
        return len(axes) - whole[0] if whole else 0
    names = list(domain.dims)
    indexing = {name for operand in domain.access for name in domain.relevant(operand)}
    behind = max((names.index(name) for name in axes[-1].dims), default=len(names)) + 1
    return 1 if indexing.issuperset(names[behind:]) else 0


def _epilogue_text(
    name: str,
    accumulator: str,
    output: TensorType,
    steps: tuple[StepCode, ...],
    replaced: frozenset[str],
    row_axes: int,
    *,
    parts: bool,
) -> str:
    fields = epilogue_fields(steps, replaced)
    members = [f"    {f'const {f.ctype} *' if f.tensor else f'{f.ctype} '}{f.name};" for f in fields]
    members += [f"    {accumulator} *sums;", "    int part, parts;"] if parts else []
    ctype = output.dtype.ctype
    lines = [
        f"struct {name}_epilogue {{",
        *(members or ["    char unused;"]),
        "};",
        f"TW_INLINE {ctype} {name}_value(const struct {name}_epilogue *e, const {ctype} *restrict Y,",
        f"                          {accumulator} v0, ptrdiff_t at, int channel, ptrdiff_t row) {{",
        "    (void)e, (void)Y, (void)at, (void)channel, (void)row;",
    ]
    for f in fields:
        lines.append(f"    const {f.ctype} {'*restrict ' if f.tensor else ''}{f.name} = e->{f.name};")
    indexes = {
        (i, operand): text
        for i, step in enumerate(steps)
        for operand, text in _step_indexes(step, output, row_axes).items()
    }
    code, last = print_steps(
        steps,
        _StoreReader(steps, indexes, replaced, frozenset(f.name for f in fields if not f.tensor)),
        "    ",
        constant=lambda index, constant: f"s{index}_{constant}",
    )
    width = prod(output.shape[output.rank - row_axes :])
    row = f"(ptrdiff_t)((size_t)(at - channel) / {width}u)" if any("row" in text for text in indexes.values()) else "0"
    lines += [
        *code,
        f"    return {converted(output, last)};",
        "}",
        *_row_text(name, accumulator, output, row, long=any(map(_LONG.search, code))),
        *(_parts_text(name, accumulator, output) if parts else _rows_text(name, accumulator, output)),
    ]
    return "\n".join(lines) + "\n"


def _row_text(name: str, accumulator: str, output: TensorType, row: str, *, long: bool) -> list[str]:
    """One result, four, and a row of them. Machines without vectors store four bytes at once, but what is `long` is not
    written down four times: their caches have no room for it."""
    ctype = output.dtype.ctype

    def value(accumulated: str, further: str) -> str:
        return f"{name}_value(e, Y, {accumulated}, at{further}, channel{further}, row)"

    if output.dtype.bytes == 1:
        stored = [
            f"    tw_store_4(Y + at, {value('a', '')}, {value('b', ' + 1')},",
            f"               {value('c', ' + 2')}, {value('d', ' + 3')});",
        ]
    else:
        stored = [f"    Y[at + {i}] = {value(each, f' + {i}')};" for i, each in enumerate("abcd")]
    one = f"tw_store_1(Y + at, {value('a', '')});" if output.dtype.bytes == 1 else f"Y[at] = {value('a', '')};"
    return [
        f"TW_INLINE void {name}_one(const struct {name}_epilogue *e, {ctype} *restrict Y, {accumulator} a,",
        "                          ptrdiff_t at, int channel) {",
        f"    const ptrdiff_t row = {row};",
        f"    {one}",
        "}",
        f"TW_INLINE void {name}_four(const struct {name}_epilogue *e, {ctype} *restrict Y, {accumulator} a,",
        f"                          {accumulator} b, {accumulator} c, {accumulator} d, ptrdiff_t at, int channel) {{",
        f"    const ptrdiff_t row = {row};",
        *stored,
        "}",
        f"TW_INLINE void {name}_row(const struct {name}_epilogue *e, {ctype} *restrict Y,",
        f"                          const {accumulator} *restrict acc, ptrdiff_t at, int channel, int count) {{",
        f"    const ptrdiff_t row = {row};",
        "    int i = 0;",
        *(
            ("    for (; TW_QUADS && i < count; i++)", f"        Y[at + i] = {value('acc[i]', ' + i')};")
            if long
            else (
                "    for (; TW_QUADS && i + 4 <= count; i += 4)",
                f"        {name}_four(e, Y, acc[i], acc[i + 1], acc[i + 2], acc[i + 3], at + i, channel + i);",
            )
        ),
        "    TW_ROLLED for (; i < count; i++)",
        f"        Y[at + i] = {value('acc[i]', ' + i')};",
        "}",
    ]


def _hook_text(name: str, accumulator: str, output: TensorType) -> list[str]:
    return [
        f"TW_APART void {name}_store(const struct {name}_epilogue *epilogue, {output.dtype.ctype} *Y,",
        f"                           const {accumulator} *acc, ptrdiff_t at, ptrdiff_t pitch, int channel, int rows,",
        "                           int count) {",
    ]


def _parts_text(name: str, accumulator: str, output: TensorType) -> list[str]:
    """The hook where results are sums of parts: they are added up, and only the last part goes through the epilogue."""
    ctype = output.dtype.ctype
    return [
        *_hook_text(name, accumulator, output),
        f"    const struct {name}_epilogue e = *epilogue;",
        "    for (int row = 0; row < rows; row++, at += pitch, acc += 16) {",
        f"        {accumulator} total[16];",
        f"        {accumulator} *const sums = e.sums + at;",
        "        for (int i = 0; i < count; i++)",
        "            total[i] = e.part ? sums[i] + acc[i] : acc[i];",
        "        if (e.part == e.parts - 1)",
        f"            {name}_row(&e, Y, total, at, channel, count);",
        "        else",
        "            for (int i = 0; i < count; i++)",
        "                sums[i] = total[i];",
        "    }",
        "}",
        f"TW_INLINE void {name}_four_sums(const struct {name}_epilogue *e, {ctype} *restrict Y, {accumulator} a,",
        f"                          {accumulator} b, {accumulator} c, {accumulator} d, ptrdiff_t at, int channel) {{",
        f"    {accumulator} *const sums = e->sums + at;",
        "    if (e->part)",
        "        a += sums[0], b += sums[1], c += sums[2], d += sums[3];",
        "    if (e->part == e->parts - 1)",
        f"        {name}_four(e, Y, a, b, c, d, at, channel);",
        "    else",
        "        sums[0] = a, sums[1] = b, sums[2] = c, sums[3] = d;",
        "}",
    ]


def _rows_text(name: str, accumulator: str, output: TensorType) -> list[str]:
    """The hook itself: rows of results, 16 apart. It stands apart because inlined it costs the kernel its registers."""
    return [
        *_hook_text(name, accumulator, output),
        # A copy, because stores of bytes may change any memory that can be reached by a pointer.
        f"    const struct {name}_epilogue e = *epilogue;",
        # The usual counts are constants, so that the compiler vectorises and keeps what is the same for all rows.
        *(
            line
            for condition, count in (("if (count == 16)", "16"), ("else if (count == 8)", "8"), ("else", "count"))
            for line in (
                f"    {condition} {{",
                "        for (int row = 0; row < rows; row++, at += pitch, acc += 16)",
                f"            {name}_row(&e, Y, acc, at, channel, {count});",
                "    }",
            )
        ),
        "}",
    ]


class _StoreReader(Struct, frozen=True):
    """Reads tensors of epilogue steps through the fields of the parameter block."""

    steps: tuple[StepCode, ...]
    indexes: Mapping[tuple[int, str], str]
    replaced: frozenset[str]
    scalars: frozenset[str]
    """Fields that hold a value instead of a pointer."""

    def element(self, index: int, operand: str, tensor: str) -> str:
        if f"s{index}_{operand}" in self.scalars:
            return f"s{index}_{operand}"
        return load(self.array(index, operand, tensor), self.indexes[index, operand])

    def array(self, index: int, operand: str, tensor: str) -> CArray:
        pointer = "Y" if tensor in self.replaced else f"s{index}_{operand}"
        return CArray(pointer, self.steps[index].call.type(operand), tensor)

    def block(self, index: int, operand: str) -> Block:
        return dense(self.steps[index].call.shape(operand))


def _step_indexes(step: StepCode, output: TensorType, row_axes: int) -> dict[str, str]:
    """Element index of each tensor operand of a step at output `at` of channel `channel`."""
    dims = tuple(step.domain.dims)
    sizes = step.domain.dims
    dense = dict(zip(dims, row_major(output.shape), strict=True))
    found: dict[str, str] = {}
    for operand, tensor in zip(step.call.operands, step.inputs, strict=True):
        if not tensor or isinstance(tensor, Result) or not step.body.reads(operand):
            continue
        place = linear(step.domain.access[operand], step.domain.shapes[operand], sizes)
        strides = {d: place.strides.get(d, 0) for d in dims if sizes[d] > 1}
        if not any(strides.values()):
            found[operand] = "0"
        elif all(strides[d] == dense[d] for d in strides):
            found[operand] = "at"
        else:
            lead, row = dims[: len(dims) - row_axes], dims[len(dims) - row_axes :]
            parts = _mixed("row", lead, sizes, strides) + _mixed("channel", row, sizes, strides)
            found[operand] = " + ".join(parts)
    return found


def _mixed(position: str, dims: Sequence[str], sizes: Mapping[str, int], strides: Mapping[str, Size]) -> list[str]:
    """The terms of an address whose dimensions are told by one position among all of them, row-major."""
    real = [d for d in dims if sizes[d] > 1]
    after = row_major([sizes[d] for d in real])
    if real and all(strides[d] == strides[real[-1]] * step for d, step in zip(real, after, strict=True)):
        return _scaled(position, strides[real[-1]])
    parts: list[str] = []
    for place, (d, step) in enumerate(zip(real, after, strict=True)):
        index = position if step == 1 else f"{position} / {step}"
        parts += _scaled(f"({index if place == 0 else f'{index} % {sizes[d]}'})", strides[d])
    return parts


def _scaled(index: str, stride: Size) -> list[str]:
    return [index if stride == 1 else f"{index} * {stride}"] if stride else []
