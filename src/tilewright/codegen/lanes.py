"""Epilogues in vectors: the hook by which a kernel hands over four neighbouring results at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.base.dtype import FLOAT32, INT8, INT16, INT32, UINT8, DType
from tilewright.codegen.steps import StepCode, data_dependent, mentions, value_name
from tilewright.core.graph import Result, TensorType

_LOADED = (INT8, UINT8, INT16, INT32, FLOAT32)
"""Element types of tensors that lanes are loaded from."""
_STORED = (INT8, UINT8, INT32, FLOAT32)


def lanes_text(
    name: str,
    accumulator: DType,
    output: TensorType,
    steps: tuple[StepCode, ...],
    indexes: Mapping[tuple[int, str], str],
    fields: Sequence[tuple[str, str, bool]],
    replaced: frozenset[str],
) -> list[str]:
    """The C lines of the hook; none where a step has no text for vectors or walks an operand in another way.

    `indexes` are the places of tensor operands by step and name, `fields` those of the parameter block: C type, name
    and whether it is a pointer.
    """
    pointers = frozenset(field for _, field, pointer in fields if pointer)
    if output.dtype not in _STORED or not all(
        _fits(step, number, indexes, pointers, replaced) for number, step in enumerate(steps)
    ):
        return []
    ctype = output.dtype.ctype
    lines = [
        f"TW_INLINE void {name}_lanes(const struct {name}_epilogue *e, {ctype} *restrict Y, {_vector(accumulator)} v0,",
        "                           ptrdiff_t at, int channel) {",
        "    (void)e, (void)channel;",
    ]
    for kind, field, pointer in fields:
        number, _, operand = field[1:].partition("_")
        if mentions(steps[int(number)].body.lanes, operand):
            lines.append(f"    const {kind} {'*restrict ' if pointer else ''}{field} = e->{field};")
    for number, step in enumerate(steps):
        lines += _step(step, number, indexes, pointers, replaced)
    return [*lines, f"    tw_lanes_put(Y + at, v{len(steps)});", "}"]


def _vector(kind: DType) -> str:
    return "tw_reals" if kind.is_float else "tw_lanes"


def _fits(
    step: StepCode,
    number: int,
    indexes: Mapping[tuple[int, str], str],
    pointers: frozenset[str],
    replaced: frozenset[str],
) -> bool:
    if not step.body.lanes:
        return False
    for operand, tensor, kind in zip(step.call.operands, step.inputs, step.call.inputs, strict=True):
        if kind is None or isinstance(tensor, Result) or not mentions(step.body.lanes, operand):
            continue
        if data_dependent(step.domain, operand):
            if tensor in replaced:
                return False
            continue
        walked = f"s{number}_{operand}" in pointers or tensor in replaced
        if kind.dtype not in _LOADED or (walked and indexes.get((number, operand)) not in ("at", "channel", "0")):
            return False
    return step.call.outputs[0].dtype in _LOADED


def _step(
    step: StepCode,
    number: int,
    indexes: Mapping[tuple[int, str], str],
    pointers: frozenset[str],
    replaced: frozenset[str],
) -> list[str]:
    text = step.body.lanes
    lines = [f"    {_vector(step.call.outputs[0].dtype)} v{number + 1};", "    {"]
    for kind, constant, _ in step.body.constants:
        if mentions(text, constant):
            lines.append(f"        const {kind} {constant} = s{number}_{constant};")
    for operand, tensor, kind in zip(step.call.operands, step.inputs, step.call.inputs, strict=True):
        if kind is None or not mentions(text, operand):
            continue
        field, index = f"s{number}_{operand}", indexes.get((number, operand), "")
        pointer = "Y" if tensor in replaced else field
        if isinstance(tensor, Result):
            lines.append(f"        const {_vector(kind.dtype)} {operand} = {value_name(tensor)};")
        elif data_dependent(step.domain, operand):
            lines.append(f"        const {kind.dtype.ctype} *const {operand} = {field};")
        elif field not in pointers and tensor not in replaced:
            lines.append(f"        const {kind.dtype.ctype} {operand} = {field};")
        elif index == "0":
            lines.append(f"        const {kind.dtype.ctype} {operand} = {pointer}[0];")
        else:
            lines.append(f"        const {_vector(kind.dtype)} {operand} = tw_lanes_at({pointer} + {index});")
    return [*lines, f"        v{number + 1} = {text};", "    }"]
