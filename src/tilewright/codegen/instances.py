"""Kernel instances: a kernel's C text with its type variables filled in and its epilogue hook bound."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.codegen.affine import linear, row_major
from tilewright.codegen.literals import number
from tilewright.codegen.steps import Operand, StepCode, data_dependent, load, print_steps, reads, store
from tilewright.core.dtype import DTYPES
from tilewright.core.graph import RESULT, TensorType
from tilewright.core.kernel import Kernel

_DEFINITION = re.compile(r"^static\s+(?:inline\s+)?[\w\s]+?[\s\*](\w+)\s*\([^;{}]*\)\s*\{", re.MULTILINE)


@dataclass(frozen=True)
class Field:
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
            if not tensor or kind is None or tensor.startswith(RESULT) or tensor in replaced:
                continue
            if reads(step.body, operand):
                fields.append(_field(step, index, operand, tensor, kind))
        fields += [Field(f"s{index}_{name}", ctype, literal=value) for ctype, name, value in step.body.constants]
    return tuple(fields)


def _field(step: StepCode, index: int, operand: str, tensor: str, kind: TensorType) -> Field:
    """A constant scalar travels as its value, anything else as a pointer."""
    name = f"s{index}_{operand}"
    value = step.call.known(operand)
    if value is not None and value.size == 1 and not kind.dtype.load and not data_dependent(step.domain, operand):
        return Field(name, kind.dtype.ctype, literal=number(kind.dtype.ctype, value.reshape(-1)[0]))
    return Field(name, kind.dtype.ctype, tensor=tensor)


def instance_text(
    kernel: Kernel,
    variables: Mapping[str, str],
    name: str,
    output: TensorType,
    steps: tuple[StepCode, ...],
    replaced: frozenset[str] = frozenset(),
) -> str:
    """The C text of a kernel instance whose function is called `name`.

    `replaced` are tensors of the epilogue whose bytes the output takes.
    """
    text = kernel.source
    for variable, choice in variables.items():
        text = re.sub(rf"\b{variable}\b", DTYPES[choice].ctype, text)
    for function in set(_DEFINITION.findall(text)):
        renamed = name if function == kernel.function else f"{name}_{function}"
        text = re.sub(rf"\b{function}\b", renamed, text)
    if not kernel.epilogue:
        return text
    result = next(iter(kernel.types.get("Y", ("float32",))))
    accumulator = DTYPES[variables.get(result, result)]
    text = re.sub(r"\b(?:float|double|u?int\d+_t)\s*\*\s*(restrict\s+)?Y\b", rf"{output.dtype.ctype} *\1Y", text)
    # The hook is bound by macros, not by renaming, because macros of the kernel header use it too.
    bound = f"#define Epilogue {name}_epilogue\n#define STORE {name}_store\n"
    return (
        _epilogue_text(name, accumulator.ctype, output, steps, replaced)
        + bound
        + text
        + "#undef Epilogue\n#undef STORE\n"
    )


def _epilogue_text(
    name: str, accumulator: str, output: TensorType, steps: tuple[StepCode, ...], replaced: frozenset[str]
) -> str:
    fields = epilogue_fields(steps, replaced)
    lines = [f"struct {name}_epilogue {{"]
    lines += [f"    {f'const {f.ctype} *' if f.tensor else f'{f.ctype} '}{f.name};" for f in fields] or [
        "    char unused;"
    ]
    lines += [
        "};",
        f"TW_INLINE void {name}_row(const struct {name}_epilogue *e, {output.dtype.ctype} *restrict Y,",
        f"                          const {accumulator} *restrict acc, ptrdiff_t at, int channel, int count) {{",
    ]
    if not fields:
        lines.append("    (void)e;")
    for f in fields:
        lines.append(f"    const {f.ctype} {'*restrict ' if f.tensor else ''}{f.name} = e->{f.name};")
    target = Operand("Y", output, "")
    indexes = {
        (i, operand): text for i, step in enumerate(steps) for operand, text in _step_indexes(step, output).items()
    }
    if any("row" in text for text in indexes.values()):
        lines.append(f"    const ptrdiff_t row = (at - channel) / {output.shape[-1]};")
    elif not any("channel" in text for text in indexes.values()):
        lines.append("    (void)channel;")

    code, last = print_steps(
        steps,
        _StoreReader(steps, indexes, replaced, frozenset(f.name for f in fields if not f.tensor)),
        "        ",
        constant=lambda index, constant: f"s{index}_{constant}",
    )
    raw = f"const {accumulator} v0 = acc[i];"
    lines += [
        "    TW_ROLLED for (int i = 0; i < count; i++) {",
        f"        {raw}",
        *code,
        f"        {store(target, 'at + i', last)}",
        "    }",
        "}",
        *_rows_text(name, accumulator, output, known=bool(fields)),
    ]
    return "\n".join(lines) + "\n"


def _rows_text(name: str, accumulator: str, output: TensorType, *, known: bool) -> list[str]:
    """The hook itself: rows of results, 16 apart. It stands apart because inlined it costs the kernel its registers."""
    arguments = f"{'&e' if known else 'epilogue'}, Y, acc, at, channel"
    return [
        f"TW_APART void {name}_store(const struct {name}_epilogue *epilogue, {output.dtype.ctype} *Y,",
        f"                           const {accumulator} *acc, ptrdiff_t at, ptrdiff_t pitch, int channel, int rows, int count) {{",
        # A copy, because stores of bytes may change any memory that can be reached by a pointer.
        *([f"    const struct {name}_epilogue e = *epilogue;"] if known else []),
        "    for (int row = 0; row < rows; row++, at += pitch, acc += 16) {",
        # The usual counts are constants, so that the compiler unrolls and vectorises.
        "        if (count == 16)",
        f"            {name}_row({arguments}, 16);",
        "        else if (count == 8)",
        f"            {name}_row({arguments}, 8);",
        "        else",
        f"            {name}_row({arguments}, count);",
        "    }",
        "}",
    ]


@dataclass(frozen=True)
class _StoreReader:
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

    def array(self, index: int, operand: str, tensor: str) -> Operand:
        pointer = "Y" if tensor in self.replaced else f"s{index}_{operand}"
        return Operand(pointer, self.steps[index].call.type(operand), tensor)


def _step_indexes(step: StepCode, output: TensorType) -> dict[str, str]:
    """Element index of each tensor operand of a step at output `at + i`, channel `channel + i`."""
    dims = tuple(step.domain.dims)
    sizes = step.domain.dims
    dense = dict(zip(dims, row_major(output.shape), strict=True))
    found: dict[str, str] = {}
    for operand, tensor in zip(step.call.operands, step.inputs, strict=True):
        if not tensor or tensor.startswith(RESULT) or not reads(step.body, operand):
            continue
        place = linear(step.domain.access[operand], step.domain.shapes[operand], sizes)
        strides = {d: place.strides.get(d, 0) for d in dims if sizes[d] > 1}
        if not any(strides.values()):
            found[operand] = "0"
        elif all(strides[d] == dense[d] for d in strides):
            found[operand] = "at + i"
        else:
            found[operand] = _general(strides, dims, sizes)
    return found


def _general(strides: Mapping[str, int], dims: tuple[str, ...], sizes: Mapping[str, int]) -> str:
    parts: list[str] = []
    after = 1
    for d in reversed(dims[:-1]):
        if strides.get(d, 0):
            index = "row" if after == 1 else f"row / {after}"
            lead = dims[: dims.index(d)]
            whole = all(sizes[other] == 1 for other in lead)
            wrapped = index if whole else f"{index} % {sizes[d]}"
            parts.append(f"({wrapped}) * {strides[d]}")
        after *= sizes[d]
    last = strides.get(dims[-1], 0)
    if last:
        parts.append("channel + i" if last == 1 else f"(channel + i) * {last}")
    return " + ".join(parts)
