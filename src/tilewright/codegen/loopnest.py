"""The generic loop nest: C printed from an operator's access maps and body, for every platform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tilewright.codegen.affine import Address, Block, address, dense, linear
from tilewright.codegen.literals import number
from tilewright.codegen.steps import (
    Operand,
    StepCode,
    at_macro,
    cast,
    data_dependent,
    load,
    mentions,
    print_steps,
    store,
    used_dims,
)
from tilewright.core.domain import Axis, Domain
from tilewright.core.expr import plain
from tilewright.core.op import Body, Call
from tilewright.core.tiles import substitute


@dataclass(frozen=True)
class Nest:
    """What a loop nest computes: the call, its steps, and the pointers of every tensor operand."""

    call: Call
    domain: Domain
    body: Body
    steps: tuple[StepCode, ...]
    operands: Mapping[str, Operand]
    """Pointers by operand name of the node's own operator, outputs included."""
    extra: Mapping[str, Operand]
    """Pointers of operands of the epilogue: `s0_B` is B of step 0. One known number has none."""
    blocks: Mapping[str, Block] = field(default_factory=lambda: MappingProxyType({}))
    """Of operands of which only a part is at hand: how it lies in memory. Those of step 0 are called `s0_B`."""
    cut: frozenset[str] = frozenset()
    """Dimensions of which a tile covers a part, told by two parameters."""

    def block(self, key: str, shape: Sequence[int]) -> Block:
        return self.blocks.get(key) or dense(shape)


def print_nest(name: str, nest: Nest, parameters: str) -> str:
    """The C function of a loop nest."""
    domain = nest.domain
    outer = [d for d in domain.dims if any(d in domain.relevant(o) for o in domain.outputs)]
    inner = [d for d in domain.dims if d not in outer]
    addresses = {o: address(domain, o, nest.blocks.get(o)) for o in nest.operands if o in domain.access}
    addresses |= {
        f"s{i}_{t}": a for i, step in enumerate(nest.steps) for t, a in _step_addresses(nest, i, step).items()
    }
    keep = used_dims(nest.body, domain.dims) | _guarded(addresses) | _step_dims(nest.steps) | nest.cut
    merged, sizes = _merge(outer, dict(domain.dims), addresses, keep)
    lines = [f"static void {name}({parameters}) {{"]
    # Tables are static: a local one might be built on the stack at each call.
    lines += [
        f"    {'static ' if '[' in const else ''}const {ctype} {const} = {value};"
        for ctype, const, value in nest.body.constants
    ]
    lines += _macros(nest)
    indent = "    "
    for d in merged:
        start, stop = cut_bounds(d) if d in nest.cut else ("0", str(sizes[d]))
        lines.append(f"{indent}for (int {d} = {start}; {d} < {stop}; {d}++) {{")
        indent += "    "
    lines += _point(nest, inner, sizes, addresses, indent)
    for _ in merged:
        indent = indent[:-4]
        lines.append(f"{indent}}}")
    lines.append("}")
    lines += [] if nest.steps else _undefined(nest)
    return "\n".join(lines) + "\n"


def cut_bounds(dim: str) -> tuple[str, str]:
    """The parameters that say which part of a dimension a tile covers."""
    return f"{dim}_from", f"{dim}_to"


def _point(
    nest: Nest, inner: Sequence[str], sizes: Mapping[str, int], addresses: Mapping[str, Address], indent: str
) -> list[str]:
    """One output point: state, reduction, results, epilogue, stores."""
    body, domain = nest.body, nest.domain
    lines = [f"{indent}{ctype} {name} = {init};" for ctype, name, init in body.state]
    finish = " ".join([*body.result.values(), *(init for _, _, init in body.state)])
    reduced = set(inner)
    early = [o for o in _inputs(nest) if mentions(finish, o) and not (domain.relevant(o) & reduced)]
    state_inputs = [o for o in early if any(mentions(init, o) for _, _, init in body.state)]
    lines = (
        _loads(nest, early, addresses, indent) + lines
        if state_inputs
        else lines + _loads(nest, early, addresses, indent)
    )
    if body.update:
        late = [o for o in _inputs(nest) if mentions(body.update, o) and o not in early]
        lines += _reduction(nest, inner, sizes, late, addresses, indent)
    names = nest.call.op.output_names(len(nest.call.outputs))
    for index, output in enumerate(names):
        if output not in nest.operands:
            continue
        operand = nest.operands[output]
        value = body.result[output]
        place = addresses[output].text()
        if index == 0 and nest.steps:
            kind = nest.call.outputs[0].dtype
            lines.append(f"{indent}const {kind.compute} v0 = {cast(kind, value)};")
            # Steps may have operands of the same names.
            lines += _undefined(nest)
            code, last = print_steps(nest.steps, _StepReader(nest, addresses), indent)
            lines += code
            lines.append(indent + store(operand, place, last))
        else:
            # A point may lie outside one of several outputs: it then stores nothing there.
            guards = " && ".join(g.expression for g in addresses[output].guards)
            condition = f"if ({guards}) " if guards else ""
            lines.append(indent + condition + store(operand, place, cast(operand.type.dtype, value)))
    return lines


def _reduction(
    nest: Nest,
    inner: Sequence[str],
    sizes: Mapping[str, int],
    late: Sequence[str],
    addresses: Mapping[str, Address],
    indent: str,
) -> list[str]:
    lines: list[str] = []
    depth = indent
    conditions = [g.expression for o in late if o not in nest.body.fill and o in addresses for g in addresses[o].guards]
    pending = list(dict.fromkeys(conditions))
    for d in inner:
        lines.append(f"{depth}for (int {d} = 0; {d} < {sizes[d]}; {d}++) {{")
        depth += "    "
    if pending:
        lines.append(f"{depth}if ({' && '.join(pending)}) {{")
        depth += "    "
    lines += _loads(nest, late, addresses, depth)
    lines += [f"{depth}{line}" for line in nest.body.update.splitlines()]
    if pending:
        depth = depth[:-4]
        lines.append(f"{depth}}}")
    for _ in inner:
        depth = depth[:-4]
        lines.append(f"{depth}}}")
    return lines


def _inputs(nest: Nest) -> list[str]:
    """Inputs that are loaded at points: present, and not indexed by data."""
    data = set(_data_dependent(nest))
    known = [o for o in nest.call.operands if nest.call.has(o) and o in nest.domain.access]
    return [o for o in known if nest.body.reads(o) and o not in data]


def _data_dependent(nest: Nest) -> list[str]:
    """Operands read through `X_at(...)`: those with a whole axis."""
    return [
        operand for operand in nest.call.operands if operand in nest.operands and data_dependent(nest.domain, operand)
    ]


def _undefined(nest: Nest) -> list[str]:
    return [f"#undef {operand}_at" for operand in _data_dependent(nest)]


def _macros(nest: Nest) -> list[str]:
    return [at_macro(o, nest.operands[o], nest.block(o, nest.domain.shapes[o])) for o in _data_dependent(nest)]


def _loads(nest: Nest, operands: Sequence[str], addresses: Mapping[str, Address], indent: str) -> list[str]:
    lines: list[str] = []
    for operand in operands:
        if operand not in nest.operands:
            kind = nest.call.type(operand).dtype
            lines.append(
                f"{indent}const {kind.compute} {operand} = {number(kind.ctype, nest.call.baked(operand) or 0)};"
            )
            continue
        place, array = addresses[operand], nest.operands[operand]
        value = load(array, place.text())
        if place.guards and operand in nest.body.fill:
            condition = " && ".join(g.expression for g in place.guards)
            value = f"{condition} ? {value} : {cast(array.type.dtype, nest.body.fill[operand])}"
        lines.append(f"{indent}const {array.type.dtype.compute} {operand} = {value};")
    return lines


@dataclass(frozen=True)
class _StepReader:
    """Reads tensors of epilogue steps through the addresses of the nest."""

    nest: Nest
    addresses: Mapping[str, Address]

    def element(self, index: int, operand: str, tensor: str) -> str:
        del tensor
        key, call = f"s{index}_{operand}", self.nest.steps[index].call
        if key not in self.nest.extra:
            return number(call.type(operand).dtype.ctype, call.baked(operand) or 0)
        return load(self.nest.extra[key], self.addresses[key].text())

    def array(self, index: int, operand: str, tensor: str) -> Operand:
        del tensor
        return self.nest.extra[f"s{index}_{operand}"]

    def block(self, index: int, operand: str) -> Block:
        return self.nest.block(f"s{index}_{operand}", self.nest.steps[index].call.shape(operand))


def _step_addresses(nest: Nest, index: int, step: StepCode) -> dict[str, Address]:
    """Addresses of a step's tensor operands over the node's own dimensions: output axes are substituted."""
    output = nest.domain.outputs[0]
    axes: dict[str, Axis] = dict(zip(step.domain.dims, nest.domain.access[output], strict=True))
    found: dict[str, Address] = {}
    for operand, tensor in zip(step.call.operands, step.inputs, strict=True):
        if not tensor or tensor.startswith("@"):
            continue
        mapped = [substitute(axis, axes) for axis in step.domain.access[operand]]
        block = nest.blocks.get(f"s{index}_{operand}")
        found[operand] = linear(mapped, step.domain.shapes[operand], nest.domain.dims, block)
    return found


def _guarded(addresses: Mapping[str, Address]) -> set[str]:
    """Dimensions whose own value is needed: by a guard or a divided index."""
    texts = [g.expression for a in addresses.values() for g in a.guards] + [
        t for a in addresses.values() for t in a.terms
    ]
    return {name for a in addresses.values() for name in a.strides if any(mentions(t, name) for t in texts)} | {
        word for text in texts for word in text.replace("(", " ").replace(")", " ").split() if word.isidentifier()
    }


def _step_dims(steps: tuple[StepCode, ...]) -> set[str]:
    return {name for step in steps for name in used_dims(step.body, step.domain.dims)}


def _merge(
    outer: Sequence[str], sizes: dict[str, int], addresses: dict[str, Address], keep: set[str]
) -> tuple[list[str], dict[str, int]]:
    """Joins neighbouring dimensions that every address walks as one, so that inner loops are long."""
    merged: list[str] = []
    for name in outer:
        if sizes[name] == 1 and name not in keep:
            for key, place in addresses.items():
                addresses[key] = replace(place, strides={n: s for n, s in place.strides.items() if n != name})
            continue
        previous = merged[-1] if merged else None
        if (
            previous is not None
            and previous not in keep
            and name not in keep
            and all(
                plain(a.strides.get(previous, 0) - a.strides.get(name, 0) * sizes[name]) == 0
                for a in addresses.values()
            )
        ):
            for key, place in addresses.items():
                addresses[key] = replace(place, strides={n: s for n, s in place.strides.items() if n != previous})
            sizes[name] *= sizes[previous]
            merged[-1] = name
        else:
            merged.append(name)
    return merged, sizes
