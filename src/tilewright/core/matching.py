"""Whether a kernel fits a call: types, predicates and constants, with the reason where it does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import cast

from tilewright.core.domain import Affine, Domain, dim
from tilewright.core.expr import Expr, Size, plain, smaller
from tilewright.core.graph import Graph, Node, TensorType
from tilewright.core.op import REGISTRY, Call, call_node, words
from tilewright.core.sizes import call_at, ranges_of, samples
from tilewright.core.tiles import Ranges, Region, region
from tilewright.errors import TilewrightError
from tilewright.machine.kernel import Kernel, Number, holds


def binding_names(call: Call) -> Mapping[str, Number]:
    """Every number a kernel may ask for by name: sizes, extents, strides and bytes of operands, attributes."""
    if "names" not in call.answers:
        call.answers["names"] = cast("dict[str, Number]", tile_names(call, call.domain(), None))
    return call.answers["names"]


def told_names(call: Call) -> Mapping[str, Number]:
    """The numbers that have nothing to do with sizes: attributes, bytes of elements, and what the operator says."""
    if "told" not in call.answers:
        call.answers["told"] = _told_names(call)
    return call.answers["told"]


def _told_names(call: Call) -> dict[str, Number]:
    names: dict[str, Number] = {}
    for key, value in call.attrs.items():
        if isinstance(value, (int, float)):
            names[key] = value
        elif isinstance(value, tuple):
            names.update({f"{key}_{i}": v for i, v in enumerate(value) if isinstance(v, (int, float))})
    kinds = zip(call.operands, call.inputs, strict=True)
    there = {operand: kind.dtype for operand, kind in kinds if kind is not None}
    names.update({f"{operand}_bytes": dtype.bytes for operand, dtype in there.items()})
    names.update({f"{operand}_signed": int(dtype.lo < 0) for operand, dtype in there.items()})
    names.update({f"{operand}_float": int(dtype.is_float) for operand, dtype in there.items()})
    if call.op.numbers is not None:
        names.update(call.op.numbers(call))
    return names


def tile_names(
    call: Call, domain: Domain, tile: Ranges | None, strides: Mapping[str, Sequence[Size]] | None = None
) -> dict[str, Number | Expr]:
    """The same on a tile: its operands are the parts that it touches; None for whole operands.

    Each is dense in memory, or has strides of its own.
    """
    names: dict[str, Number | Expr] = {"PART": 0, "PARTS": 1}
    asked = ("SHIFTS", "SCALES", "STEPS", "LOADS", "FUSED", "SUMS", "FIRST", "UNEVEN", "OTHERS", "FPU_OTHERS")
    names |= dict.fromkeys(asked, 0) | {"LAST": 1}
    names |= told_names(call)
    regions = {} if tile is None else {operand: region(domain, operand, tile) for operand in domain.access}
    if tile is None and strides is None:
        if "names" not in domain.answers:
            domain.answers["names"] = _size_names(domain, {}, {}, {})
        names.update(domain.answers["names"])
    else:
        names.update(_size_names(domain, tile or {}, regions, strides or {}))
    if call.op.padding is not None and tile is not None:
        for name, (operand, axis, side) in call.op.padding(call).items():
            part, known = regions[operand][axis], names[name]
            # A window that is rounded up may reach further than the padding does.
            names[name] = (
                part.before if side == "before" else smaller(part.after, known if isinstance(known, int) else 0)
            )
    return names


def _size_names(
    domain: Domain, ranges: Ranges, regions: Mapping[str, Region], strides: Mapping[str, Sequence[Size]]
) -> dict[str, Size]:
    """Sizes, extents and strides on a tile; without regions for whole operands."""
    names: dict[str, Size] = {}
    shapes: dict[str, tuple[Size, ...]] = {operand: domain.shapes[operand] for operand in domain.access}
    shapes |= {operand: tuple(extent.size for extent in found) for operand, found in regions.items()}
    for operand, shape in shapes.items():
        stride: Size = 1
        for axis in reversed(range(len(shape))):
            names[f"{operand}_n{axis}"] = shape[axis]
            names[f"{operand}_s{axis}"] = stride
            stride = stride * shape[axis]
        if not regions:
            names.update(_beyond(domain, operand))
    for operand, steps in strides.items():
        names.update({f"{operand}_s{axis}": step for axis, step in enumerate(steps)})
    sizes = {name: ranges[name].size if name in ranges else size for name, size in domain.dims.items()}
    names.update(sizes)
    names.update({f"{name}_all": size for name, size in sizes.items()})
    names.update({f"{name}_whole": size for name, size in domain.dims.items()})
    names.update({f"{name}_from": ranges[name].start if name in ranges else 0 for name in domain.dims})
    names.update({name: _product(sizes[part] for part in parts) for name, parts in domain.products.items()})
    for operand in domain.access:
        linear = _linear(domain, operand, [names[f"{operand}_s{axis}"] for axis in range(len(shapes[operand]))])
        lengths = _lengths(domain, operand, shapes[operand])
        names.update(_dimension_strides(domain, operand, linear, (sizes, sizes | lengths)))
        names.update(_dimension_extents(domain, operand, shapes[operand]))
        names[f"{operand}_sPART"] = 0  # of all cores one: see `price.formulas`
    return names


def _product(sizes: Iterable[Size]) -> Size:
    result: Size = 1
    for size in sizes:
        result = result * size
    return plain(result)


def _linear(domain: Domain, operand: str, steps: Sequence[Size]) -> dict[str, Size]:
    """Elements between neighbours along a loop dimension; 0 where it does not index."""
    linear: dict[str, Size] = dict.fromkeys(domain.dims, 0)
    for axis, step in zip(domain.access[operand], steps, strict=True):
        if isinstance(axis, Affine) and axis.divisor == 1:
            for name, coefficient in axis.terms:
                linear[name] = plain(linear[name] + step * coefficient)
    return linear


def _lengths(domain: Domain, operand: str, shape: Sequence[Size]) -> dict[str, Size]:
    """Sizes of the dimensions that index an axis alone and over its whole extent, as a part of the operand has them."""
    return {
        name: size
        for axis, extent, size in zip(domain.access[operand], domain.shapes[operand], shape, strict=True)
        for name in (axis.dims if isinstance(axis, Affine) else ())
        if axis == dim(name) and extent == domain.dims[name]
    }


def _dimension_strides(
    domain: Domain, operand: str, linear: Mapping[str, Size], written: Sequence[Mapping[str, Size]]
) -> dict[str, Size]:
    """`A_sM`: the stride of a loop dimension or of a product of dimensions, which has one where they are walked as one.

    Sizes may be written in several ways that are equal, though not each is seen to be.
    """
    found = {f"{operand}_s{name}": stride for name, stride in linear.items()}
    for product, parts in domain.products.items():
        real = [p for p in parts if written[0][p] != 1]
        if all(any(plain(linear[a] - linear[b] * sizes[b]) == 0 for sizes in written) for a, b in pairwise(real)):
            found[f"{operand}_s{product}"] = linear[real[-1]] if real else 0
    return found


def _dimension_extents(domain: Domain, operand: str, shape: Sequence[Size]) -> dict[str, Size]:
    """`A_nM`: how many elements there are along the axis that a loop dimension indexes alone."""
    axes = zip(domain.access[operand], shape, strict=True)
    return {f"{operand}_n{a.dims[0]}": size for a, size in axes if isinstance(a, Affine) and len(a.dims) == 1}


def _beyond(domain: Domain, operand: str) -> dict[str, int]:
    """`A_o1`: how far windows reach over the edges of an axis, both together. Just cycles ask for it."""
    axes = zip(domain.access[operand], domain.shapes[operand], strict=True)
    return {
        f"{operand}_o{number}": max(1 + sum(abs(c) * (domain.dims[n] - 1) for n, c in axis.terms) - size, 0)
        for number, (axis, size) in enumerate(axes)
        if isinstance(axis, Affine) and axis.divisor == 1
    }


def operand_types(call: Call) -> dict[str, TensorType]:
    """Types of the operands that are there, inputs and outputs."""
    inputs = {n: t for n, t in zip(call.operands, call.inputs, strict=True) if t is not None}
    return {**inputs, **dict(zip(call.op.output_names(len(call.outputs)), call.outputs, strict=True))}


def check_kernel(kernel: Kernel) -> None:
    """An error where there is no such operator, where a name is no operand of it, or where one has no types."""
    op = REGISTRY.get(kernel.op)
    if op is None:
        raise _mistaken(
            kernel,
            f"op: there is no operator '{kernel.op}'",
            "`tilewright ops` lists those there are; operators of your own need --ops DIR",
        )
    texts = f"{op.inputs} {op.outputs}".split()
    known = re.compile("|".join(f"{name[:-1]}\\d+" if name.endswith("*") else name.rstrip("?") for name in texts))
    inplace = (kernel.inplace,) if kernel.inplace else ()
    lists = {"inplace": inplace, "strided": kernel.strided, "near": kernel.near, "within": kernel.within}
    for key, names in {"pack": kernel.pack, **lists}.items():
        if wrong := [name for name in names if not known.fullmatch(name)]:
            raise _mistaken(kernel, f"{key}: '{wrong[0]}' is no operand", f"{op.name} has {op.inputs} -> {op.outputs}")
    for name in texts:
        if name[-1] not in "?*" and name not in kernel.types and name not in op.compile_time:
            raise _mistaken(kernel, f"types: nothing is said of {name}", f"{op.name} has {op.inputs} -> {op.outputs}")


def _mistaken(kernel: Kernel, why: str, help: str) -> TilewrightError:
    return TilewrightError("bad-kernel", f"kernel '{kernel.path.name}': {why}", help=help)


def why_not(
    kernel: Kernel, call: Call, node: Node, graph: Graph, names: Mapping[str, Number], variables: dict[str, str]
) -> str:
    """Empty where the kernel fits; fills in `variables`."""
    present = operand_types(call)
    for operand, allowed in kernel.types.items():
        if operand not in present:
            continue
        found = present[operand].dtype.name
        variable = next((a for a in allowed if a in kernel.variables), None)
        if variable is None:
            if found not in allowed:
                return f"needs types {operand}: {' or '.join(allowed)}, found {found}"
        elif variables.setdefault(variable, found) != found:
            return f"needs {operand} of the same type as others of {variable} ({variables[variable]}), found {found}"
        elif found not in kernel.variables[variable]:
            return f"needs types {operand}: {' or '.join(kernel.variables[variable])}, found {found}"
    for operand in present:
        if operand not in kernel.types and operand not in call.op.compile_time:
            return f"does not take the operand {operand}"
    for name, condition in kernel.when.items():
        if name not in names:
            return f"needs {name} {condition}, which this call does not have"
        if not holds(name, condition, names):
            return f"needs {name} {condition}, found {names[name]}"
    for operand in kernel.pack:
        tensor = node.inputs[call.operands.index(operand)] if operand in call.operands else ""
        if tensor and tensor not in graph.constants:
            return f"needs a constant {operand}"
    if node.epilogue and not kernel.epilogue:
        return f"has no epilogue, needs {', '.join(step.op for step in node.epilogue)}"
    return ""


def why_not_open(graph: Graph, node: Node, kernel: Kernel) -> str:
    """Empty where the kernel also fits a node whose loops may be shorter when the network runs, however short."""
    ranges = ranges_of(graph, node)
    names = set(ranges)
    if not names:
        return ""
    products = call_node(graph, node).domain().products
    asked = {part for name in kernel.whole for part in products.get(name, (name,))}
    asked |= {word for spec in kernel.pack.values() for word in words(spec)}
    if names & asked:
        return f"needs to know {', '.join(sorted(names & asked))}, which is known when the network runs"
    if all(isinstance(plain(stop - start), int) for start, stop in ranges.values()):
        return ""  # only where they begin is known later
    for at in samples(graph):
        call = call_at(graph, node, at)
        reason = why_not(kernel, call, node, graph, binding_names(call), {})
        if reason:
            return f"{reason}, when {', '.join(f'{name} is {value}' for name, value in at.items())}"
    return ""
