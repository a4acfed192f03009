"""The generic loop nest: C printed from an operator's access maps and body, for every platform."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.codegen.affine import Address, Block, Guard, address, dense, linear
from tilewright.codegen.literals import number
from tilewright.codegen.seams import SeamBox, boxes, sum_loops
from tilewright.codegen.steps import (
    CArray,
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
from tilewright.core.op import Body, Call, words
from tilewright.core.tiles import substitute


class Nest(Struct, frozen=True, dict=True):
    """What a loop nest computes: the call, its steps, and the pointers of every tensor operand."""

    call: Call
    domain: Domain
    body: Body
    steps: tuple[StepCode, ...]
    operands: Mapping[str, CArray]
    """Pointers by operand name of the node's own operator, outputs included."""
    extra: Mapping[str, CArray]
    """Pointers of operands of the epilogue: `s0_B` is B of step 0. One known number has none."""
    blocks: Mapping[str, Block] = field(default_factory=lambda: MappingProxyType({}))
    """Of operands of which only a part is at hand: how it lies in memory. Those of step 0 are called `s0_B`."""
    cut: frozenset[str] = frozenset()
    """Dimensions of which a tile covers a part, told by two parameters."""
    even: frozenset[str] = frozenset()
    """Those of them of which it covers as much at every call."""
    unroll: int = 1
    """How many turns of innermost loops are joined."""

    def block(self, key: str, shape: Sequence[int]) -> Block:
        return self.blocks.get(key) or dense(shape)

    @cached_property
    def looked_up(self) -> tuple[str, ...]:
        """Operands read through `X_at(...)`: those with a whole axis."""
        return tuple(o for o in self.call.operands if o in self.operands and data_dependent(self.domain, o))

    @cached_property
    def inputs(self) -> Mapping[str, int]:
        """Inputs that are loaded at points, with their numbers: present, and not indexed by data."""
        given = zip(self.call.operands, self.call.inputs, strict=True)
        known = [o for o, kind in given if kind is not None and o in self.domain.access and self.body.reads(o)]
        return {o: number for number, o in enumerate(known) if o not in self.looked_up}

    def inputs_in(self, text: str) -> list[str]:
        """Those of a text, in their order."""
        return sorted(words(text) & self.inputs.keys(), key=self.inputs.__getitem__)


def print_nest(name: str, nest: Nest, parameters: str) -> str:
    """The C function of a loop nest."""
    domain = nest.domain
    outer = [d for d in domain.dims if any(d in domain.relevant(o) for o in domain.outputs)]
    inner = [d for d in domain.dims if d not in outer]
    addresses = {o: address(domain, o, nest.blocks.get(o)) for o in nest.operands if o in domain.access}
    addresses |= {
        f"s{i}_{t}": a for i, step in enumerate(nest.steps) for t, a in _step_addresses(nest, i, step).items()
    }
    lines = [f"static void {name}({parameters}) {{"]
    # Tables are static: a local one might be built on the stack at each call.
    lines += [
        f"    {'static ' if '[' in const else ''}const {ctype} {const} = {value};"
        for ctype, const, value in nest.body.constants
    ]
    for box in boxes(domain.dims, outer, addresses):
        lines += _box(nest, box, inner)
    lines.append("}")
    return "\n".join(lines) + "\n"


def _box(nest: Nest, box: SeamBox, inner: Sequence[str]) -> list[str]:
    """The loops over a part of the results."""
    keep = used_dims(nest.body, nest.domain.dims) | _asked(box.addresses) | _step_dims(nest.steps) | nest.cut
    merged, box = _merge(nest.domain.dims, box, keep)
    lines = _macros(nest)
    indent = "    "
    for d in merged:
        ends = _ends(nest, d, box.ranges[d])
        innermost = d == merged[-1] and not _sums(nest, inner)
        lines += _unrolled(nest, indent, innermost)
        counted = innermost and d in nest.even and ends == cut_bounds(d)
        lines += [f"{indent}{line}" for line in _head(d, ends, box, counted=counted)]
        indent += "    "
    lines += _point(nest, box, inner, indent)
    for _ in merged:
        indent = indent[:-4]
        lines.append(f"{indent}}}")
    return lines + ([] if nest.steps else _undefined(nest))


def _sums(nest: Nest, inner: Sequence[str]) -> list[str]:
    """Dimensions over whose terms a point adds up something."""
    return [d for d in inner if nest.body.update and nest.domain.dims[d] > 1]


def _unrolled(nest: Nest, indent: str, innermost: bool) -> list[str]:
    """What stands before a loop of which the compiler joins several turns."""
    return [f"{indent}#pragma GCC unroll {nest.unroll}"] if innermost and nest.unroll > 1 else []


def _head(name: str, ends: tuple[str, str], box: SeamBox, *, counted: bool) -> list[str]:
    """A loop from one end to the other. The turns of one that is `counted` begin at 0: tiles lie at many places, but
    compilers see how many turns these have."""
    start, stop = ends
    if not counted or not any(address.strides.get(name) for address in box.addresses.values()):
        return [f"for (int {name} = {start}; {name} < {stop}; {name}++) {{"]
    turn = f"{name}_turn"
    return [
        f"for (int {turn} = 0; {turn} < {stop} - {start}; {turn}++) {{",
        f"    const int {name} = {start} + {turn};",
    ]


def _ends(nest: Nest, name: str, part: tuple[int, int]) -> tuple[str, str]:
    """Where the loop over a part of a dimension begins and ends; of a tile it is what the tile has of it."""
    start, stop = part
    if name not in nest.cut:
        return str(start), str(stop)
    first, last = cut_bounds(name)
    return (
        f"tw_max({first}, {start})" if start > 0 else first,
        f"tw_min({last}, {stop})" if stop < nest.domain.dims[name] else last,
    )


def cut_bounds(dim: str) -> tuple[str, str]:
    """The parameters that say which part of a dimension a tile covers."""
    return f"{dim}_from", f"{dim}_to"


def _point(nest: Nest, box: SeamBox, inner: Sequence[str], indent: str) -> list[str]:
    """One output point: state, reduction, results, epilogue, stores."""
    body, domain, addresses = nest.body, nest.domain, box.addresses
    lines = [f"{indent}{ctype} {name} = {init};" for ctype, name, init in body.state]
    results = _results(nest, box)
    finish = " ".join([*results.values(), *(init for _, _, init in body.state)])
    reduced = set(inner)
    early = [o for o in nest.inputs_in(finish) if not (domain.relevant(o) & reduced)]
    state_inputs = [o for o in early if any(mentions(init, o) for _, _, init in body.state)]
    loads = _loads(nest, early, addresses, indent)
    lines = loads + lines if state_inputs else lines + loads
    if body.update:
        late = [o for o in nest.inputs_in(body.update) if o not in early]
        lines += _reduction(nest, inner, late, addresses, indent)
    for index, (output, value) in enumerate(results.items()):
        operand = nest.operands[output]
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
            lines.append(indent + store(operand, place, cast(operand.type.dtype, value)))
    return lines


def _results(nest: Nest, box: SeamBox) -> dict[str, str]:
    """The expression of each output that is stored and that the points of a box lie in."""
    outputs = nest.call.op.output_names(len(nest.call.outputs))
    found = {o: nest.body.result[o] for o in outputs if o in nest.operands and o in box.addresses}
    inside = next((nest.body.inside[operand] for operand in box.addresses if operand in nest.body.inside), None)
    return found if inside is None else {**found, outputs[0]: inside}


def _reduction(
    nest: Nest, inner: Sequence[str], late: Sequence[str], addresses: Mapping[str, Address], indent: str
) -> list[str]:
    skipping = [o for o in late if o in nest.operands and o not in nest.body.fill]
    if any(operand not in addresses for operand in skipping):
        return []
    guards = [guard for operand in skipping for guard in addresses[operand].guards]
    loops = sum_loops(inner, nest.domain.dims, guards, {name: cut_bounds(name) for name in nest.cut})
    places = {
        operand: place
        if operand in nest.body.fill
        else replace(place, guards=tuple(g for g in place.guards if g in loops.left))
        for operand, place in addresses.items()
    }
    lines = [indent + statement for statement in loops.before]
    depth = indent
    innermost = _sums(nest, inner)[-1:]
    for name, head in zip(inner, loops.heads, strict=True):
        lines += _unrolled(nest, depth, name in innermost)
        lines.append(depth + head)
        depth += "    "
    lines += _loads(nest, late, places, depth)
    update = nest.body.update.splitlines()
    if loops.left:
        update = [f"if ({_all_hold(loops.left)}) {{", *(f"    {line}" for line in update), "}"]
    lines += [f"{depth}{line}" for line in update]
    for _ in loops.heads:
        depth = depth[:-4]
        lines.append(f"{depth}}}")
    return lines


def _all_hold(guards: Sequence[Guard]) -> str:
    return " && ".join(guard.expression for guard in guards)


def _undefined(nest: Nest) -> list[str]:
    return [f"#undef {operand}_at" for operand in nest.looked_up]


def _macros(nest: Nest) -> list[str]:
    return [at_macro(o, nest.operands[o], nest.block(o, nest.domain.shapes[o])) for o in nest.looked_up]


def _loads(nest: Nest, operands: Sequence[str], addresses: Mapping[str, Address], indent: str) -> list[str]:
    lines: list[str] = []
    for operand in operands:
        if operand not in nest.operands:
            kind = nest.call.type(operand).dtype
            lines.append(
                f"{indent}const {kind.compute} {operand} = {number(kind.ctype, nest.call.baked(operand) or 0)};"
            )
            continue
        array, place = nest.operands[operand], addresses.get(operand)
        fill = cast(array.type.dtype, nest.body.fill[operand]) if operand in nest.body.fill else None
        kind = f"{indent}const {array.type.dtype.compute}"
        lines += [f"{kind} {name} = {value};" for name, value in _element(operand, array, place, fill).items()]
    return lines


def _element(operand: str, array: CArray, place: Address | None, fill: str | None) -> dict[str, str]:
    """Values that lead to an element, or to what stands for it outside its tensor; something is loaded in any case."""
    if place is None:
        if fill is None:
            raise ValueError(f"nothing stands for '{array.tensor}' outside of it")
        return {operand: fill}
    if not place.guards:
        return {operand: load(array, place.text())}
    inside = _all_hold(place.guards)
    loaded = load(array, f"{inside} ? {place.text()} : 0")
    return (
        {operand: loaded}
        if fill is None
        else {f"{operand}_near": loaded, operand: f"{inside} ? {operand}_near : {fill}"}
    )


class _StepReader(Struct, frozen=True):
    """Reads tensors of epilogue steps through the addresses of the nest."""

    nest: Nest
    addresses: Mapping[str, Address]

    def element(self, index: int, operand: str, tensor: str) -> str:
        del tensor
        key, call = f"s{index}_{operand}", self.nest.steps[index].call
        if key not in self.nest.extra:
            return number(call.type(operand).dtype.ctype, call.baked(operand) or 0)
        return load(self.nest.extra[key], self.addresses[key].text())

    def array(self, index: int, operand: str, tensor: str) -> CArray:
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
        if not tensor or not isinstance(tensor, str):
            continue
        mapped = [substitute(axis, axes) for axis in step.domain.access[operand]]
        block = nest.blocks.get(f"s{index}_{operand}")
        found[operand] = linear(mapped, step.domain.shapes[operand], nest.domain.dims, block)
    return found


def _asked(addresses: Mapping[str, Address]) -> frozenset[str]:
    """Dimensions whose own value is needed: by a guard or a divided index."""
    terms = (word for a in addresses.values() for text in a.terms for word in re.findall(r"[A-Za-z_]\w*", text))
    return frozenset(name for a in addresses.values() for guard in a.guards for name in guard.index.dims) | {*terms}


def _step_dims(steps: tuple[StepCode, ...]) -> set[str]:
    return {name for step in steps for name in used_dims(step.body, step.domain.dims)}


def _merge(sizes: Mapping[str, int], box: SeamBox, keep: Collection[str]) -> tuple[list[str], SeamBox]:
    """Joins neighbouring dimensions that every address walks as one, so that inner loops are long."""
    merged: list[str] = []
    ranges, addresses = dict(box.ranges), dict(box.addresses)

    def drop(dropped: str) -> None:
        for key, place in addresses.items():
            addresses[key] = replace(place, strides={n: s for n, s in place.strides.items() if n != dropped})

    for name in box.ranges:
        size = sizes[name]
        if size == 1 and name not in keep:
            drop(name)
            continue
        previous = merged[-1] if merged else None
        if (
            previous is not None
            and previous not in keep
            and name not in keep
            and ranges[name] == (0, size)
            and all(plain(a.strides.get(previous, 0) - a.strides.get(name, 0) * size) == 0 for a in addresses.values())
        ):
            drop(previous)
            start, stop = ranges[previous]
            ranges[name] = (start * size, stop * size)
            merged[-1] = name
        else:
            merged.append(name)
    return merged, SeamBox(ranges, addresses)
