"""ScatterElements, ScatterND, TensorScatter: a tensor with some elements replaced or combined with updates.

Indices that repeat combine in order, the last one winning without a reduction. An index outside the axis is an error in
ONNX; here it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from types import MappingProxyType

import numpy as np
from msgspec.structs import replace

from tilewright.core.domain import WHOLE, Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import REGISTRY, Body, Call, Example, Operator, declare, example, parse_type
from tilewright.ops.indexing import grid
from tilewright.ops.rules import one_dtype
from tilewright.ops.sampling import resized_by_domain

REDUCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "none": lambda _, update: update,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
DEEPEST = 8
"""Rank up to which kernels are told extents."""


def _check(call: Call) -> None:
    kind = one_dtype(call, ("data", "updates"))
    if not call.type("indices").dtype.is_integer:
        raise call.error("type-mismatch", f"indices must be integers, found {call.type('indices').dtype}")
    reduction = call.text("reduction")
    if reduction not in REDUCTIONS:
        raise call.error("bad-attribute", f"reduction='{reduction}' must be one of {', '.join(REDUCTIONS)}")
    if kind.kind == "bool" and reduction != "none":
        raise call.error("type-mismatch", f"booleans cannot be combined by reduction '{reduction}'")


def _wide(call: Call, data: Array) -> Array:
    """The data in the type that updates are combined in."""
    return data.astype(np.float64) if call.type("data").dtype.is_float else data.copy()


def _accumulator(call: Call) -> tuple[str, str]:
    """C type and initial value of the combined element; unsigned where sums and products wrap."""
    kind, reduction = call.type("data").dtype, call.text("reduction")
    if kind.is_integer and reduction in ("add", "mul"):
        unsigned = f"uint{max(32, kind.bits)}_t"
        return unsigned, f"({unsigned})data"
    return kind.compute, "data"


def _combine(call: Call) -> str:
    """C that combines the accumulator `acc` with one update."""
    ctype, _ = _accumulator(call)
    return {
        "none": "acc = updates;",
        "add": f"acc += ({ctype})updates;",
        "mul": f"const {ctype} factor = ({ctype})updates; acc *= factor;",
        "max": "if (updates > acc) acc = updates;",
        "min": "if (updates < acc) acc = updates;",
    }[call.text("reduction")]


def _sample(name: str, spec: Example, random: np.random.Generator) -> Example:
    """Other sizes, with indices that lie inside."""
    made = resized_by_domain(REGISTRY[name], spec, random)
    data, indices, updates = made.inputs
    extents, places = parse_type(str(data)).shape, np.asarray(indices)
    axis = int(str(spec.attrs.get("axis", 0)))
    most = extents[: places.shape[-1]] if name == "ScatterND" else extents[axis]
    return replace(made, inputs=(data, random.integers(0, most, places.shape).astype(places.dtype), updates))


def _numbers(call: Call) -> dict[str, int | float]:
    """For kernels: the place of the reduction in REDUCTIONS, extents of data and indices, 1 beyond the last axis."""
    numbers: dict[str, int | float] = {"REDUCTION": list(REDUCTIONS).index(call.text("reduction"))}
    numbers["RANK"] = call.type("data").rank
    for i in range(DEEPEST):
        for name in ("data", "indices"):
            shape = call.shape(name)
            numbers[f"{name.upper()}{i}"] = shape[i] if i < len(shape) else 1
    return numbers


def _body(call: Call, hit: str, before: Sequence[str] = ()) -> Body:
    """Every output point looks through the updates that may fall on it; `before` are statements that `hit` needs."""
    ctype, initial = _accumulator(call)
    update = "\n".join([*before, f"if ({hit}) {{ {_combine(call)} }}"])
    return Body(MappingProxyType({"output": "acc"}), ((ctype, "acc", initial),), update)


# ScatterElements


def _infer_elements(call: Call) -> tuple[TensorType, ...]:
    _check(call)
    data, indices, updates = call.type("data"), call.type("indices"), call.type("updates")
    axis = call.axis("axis", data.rank)
    if indices.shape != updates.shape:
        raise call.error("shape-mismatch", f"indices {indices} and updates {updates} must have one shape")
    if indices.rank != data.rank or any(
        i > d for n, (i, d) in enumerate(zip(indices.shape, data.shape, strict=True)) if n != axis
    ):
        raise call.error("shape-mismatch", f"indices {indices} do not fit {data} beside axis {axis}")
    return (data,)


def _elements_domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output"))
    axis = call.axis("axis", call.type("data").rank)
    sizes["UPDATE"] = call.shape("indices")[axis]
    source: list[Axis] = [dim("UPDATE") if i == axis else place for i, place in enumerate(access)]
    maps: dict[str, list[Axis]] = {"data": [*access], "indices": source, "updates": source, "output": [*access]}
    products = {"SIZE": [f"D{i}" for i in range(len(access))]}
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "output", products=products)


def _elements(call: Call, data: Array, indices: Array, updates: Array) -> Array:
    result = _wide(call, data)
    axis = call.axis("axis", data.ndim)
    combine = REDUCTIONS[call.text("reduction")]
    for place in np.ndindex(*indices.shape):
        index = int(indices[place])
        index += data.shape[axis] if index < 0 else 0
        if 0 <= index < data.shape[axis]:
            target = (*place[:axis], index, *place[axis + 1 :])
            result[target] = combine(result[target], updates[place])
    return result


def _elements_body(call: Call) -> Body:
    axis = call.axis("axis", call.type("data").rank)
    return _body(call, f"(indices < 0 ? indices + {call.shape('data')[axis]} : indices) == D{axis}")


declare(
    Operator(
        "ScatterElements",
        "data indices updates",
        "output",
        _infer_elements,
        _elements_domain,
        _elements,
        (
            example("float32[3,4]", np.array([[0, 2, -1], [1, 0, 1]]), "float32[2,3]"),
            example("float32[1,5]", np.array([[1, 3, 1]]), "float32[1,3]", axis=1, reduction="add"),
            example("int8[4,2]", np.array([[1, 1], [1, 3], [-1, 0]], np.int32), "int8[3,2]", reduction="mul"),
            example("float32[2,5]", np.array([[1, 1], [4, 4]]), "float32[2,2]", axis=-1, reduction="max"),
            example("int64[5]", [4, 4, 0], "int64[3]", reduction="min"),
            example("int32[5]", [4, 4, 0], "int32[3]", reduction="add"),
            example("bool[5]", [4, 4, 0], "bool[3]"),
        ),
        MappingProxyType({"axis": 0, "reduction": "none"}),
        body=_elements_body,
        numbers=lambda call: {**_numbers(call), "AXIS": call.axis("axis", call.type("data").rank)},
        sample=partial(_sample, "ScatterElements"),
    )
)


# ScatterND


def _infer_nd(call: Call) -> tuple[TensorType, ...]:
    _check(call)
    data, indices, updates = call.type("data"), call.type("indices"), call.type("updates")
    depth = indices.shape[-1] if indices.rank else 0
    if not 1 <= depth <= data.rank:
        raise call.error("shape-mismatch", f"indices {indices} name {depth} axes of {data}")
    expected = (*indices.shape[:-1], *data.shape[depth:])
    if updates.shape != expected:
        raise call.error("shape-mismatch", f"updates {updates} must have the shape {list(expected)}")
    return (data,)


def _nd_domain(call: Call) -> Domain:
    """Loops over output points, then over the updates."""
    sizes, access = grid(call.shape("output"))
    indices = call.shape("indices")
    updates, update_access = grid(indices[:-1], "U")
    depth = indices[-1]
    maps: dict[str, list[Axis]] = {
        "data": [*access],
        "indices": [*update_access, WHOLE],
        "updates": [*update_access, *access[depth:]],
        "output": [*access],
    }
    products = {"INNER": [f"D{i}" for i in range(depth, len(access))], "UPDATES": [*updates], "SIZE": [*sizes]}
    shapes = {name: call.shape(name) for name in maps}
    return domain({**sizes, **updates}, maps, shapes, "output", products=products)


def _nd(call: Call, data: Array, indices: Array, updates: Array) -> Array:
    result = _wide(call, data)
    combine = REDUCTIONS[call.text("reduction")]
    extents = data.shape[: indices.shape[-1]]
    for place in np.ndindex(*indices.shape[:-1]):
        target = tuple(int(i) + (n if i < 0 else 0) for i, n in zip(indices[place], extents, strict=True))
        if all(0 <= i < n for i, n in zip(target, extents, strict=True)):
            result[target] = combine(result[target], updates[place])
    return result


def _nd_body(call: Call) -> Body:
    indices = call.shape("indices")
    lead = [f"U{i}" for i in range(len(indices) - 1)]
    kind = call.type("indices").dtype.compute
    loads: list[str] = []
    hits: list[str] = []
    for i in range(indices[-1]):
        loads.append(f"const {kind} at{i} = indices_at({', '.join([*lead, str(i)])});")
        hits.append(f"(at{i} < 0 ? at{i} + {call.shape('data')[i]} : at{i}) == D{i}")
    return _body(call, " && ".join(hits) or "true", loads)


declare(
    Operator(
        "ScatterND",
        "data indices updates",
        "output",
        _infer_nd,
        _nd_domain,
        _nd,
        (
            example("float32[8]", np.array([[4], [3], [1], [-1]]), "float32[4]"),
            example("float32[4,3,2]", np.array([[0], [2]]), "float32[2,3,2]"),
            example("float32[4,3]", np.array([[0, 1], [2, -1], [0, 1]]), "float32[3]", reduction="add"),
            example("int8[4,3]", np.array([[[0], [2]], [[0], [0]]]), "int8[2,2,3]", reduction="mul"),
            example("float32[4,3]", np.array([[0], [2], [0]]), "float32[3,3]", reduction="max"),
            example("int32[4,3]", np.array([[0], [2], [0]]), "int32[3,3]", reduction="min"),
            example("int64[6]", np.array([[4], [4], [0]]), "int64[3]", reduction="add"),
            example("bool[6]", np.array([[4], [4], [0]]), "bool[3]"),
        ),
        MappingProxyType({"reduction": "none"}),
        body=_nd_body,
        numbers=lambda call: {**_numbers(call), "DEPTH": call.shape("indices")[-1]},
        sample=partial(_sample, "ScatterND"),
    )
)


# TensorScatter

CACHE_MODES = ("linear", "circular")


def _infer_cache(call: Call) -> tuple[TensorType, ...]:
    cache, update = call.type("past_cache"), call.type("update")
    one_dtype(call, ("past_cache", "update"))
    axis = call.axis("axis", cache.rank)
    if call.text("mode") not in CACHE_MODES:
        raise call.error("bad-attribute", f"mode='{call.text('mode')}' must be one of {', '.join(CACHE_MODES)}")
    if axis == 0:
        raise call.error("bad-attribute", "axis=0 is the batch, which cannot be written along")
    fits = update.rank == cache.rank and all(
        u <= c if i == axis else u == c for i, (u, c) in enumerate(zip(update.shape, cache.shape, strict=False))
    )
    if not fits:
        raise call.error("shape-mismatch", f"update {update} does not fit the cache {cache} along axis {axis}")
    if call.has("write_indices") and call.shape("write_indices") != cache.shape[:1]:
        raise call.error("shape-mismatch", f"write_indices must hold one position for each of {cache.shape[0]} batches")
    return (cache,)


def _cache_domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("past_cache"))
    axis = call.axis("axis", len(access))
    maps: dict[str, list[Axis]] = {
        "past_cache": [*access],
        "update": [WHOLE if i == axis else place for i, place in enumerate(access)],
    }
    if call.has("write_indices"):
        maps["write_indices"] = [access[0]]
    maps["present_cache"] = [*access]
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "present_cache")


def _cache(call: Call, past_cache: Array, update: Array, write_indices: Array | None = None) -> Array:
    result = past_cache.copy()
    axis = call.axis("axis", past_cache.ndim)
    rows = np.moveaxis(result, axis, 1)
    new = np.moveaxis(update, axis, 1)
    length = past_cache.shape[axis]
    for batch in range(len(result)):
        start = 0 if write_indices is None else int(write_indices[batch])
        for step in range(new.shape[1]):
            place = (start + step) % length if call.text("mode") == "circular" else start + step
            if 0 <= place < length:
                rows[batch, place] = new[batch, step]
    return result


def _cache_body(call: Call) -> Body:
    """`step` is which update falls on this point, if one of the update's length does."""
    shape = call.shape("past_cache")
    axis = call.axis("axis", len(shape))
    start = "write_indices" if call.has("write_indices") else "0"
    update = f"step = D{axis} - {start};"
    if call.text("mode") == "circular":
        update += f" step = (step % {shape[axis]} + {shape[axis]}) % {shape[axis]};"
    state = (("int64_t", "step", "0"), (call.outputs[0].dtype.compute, "row", "past_cache"))
    if prod(call.shape("update")):
        # Loaded in any case, as all elements are: see codegen/seams.py.
        place = ", ".join("hit ? step : 0" if i == axis else f"D{i}" for i in range(len(shape)))
        update += f"\nconst bool hit = step >= 0 && step < {call.shape('update')[axis]};"
        update += f"\nconst {state[1][0]} near = update_at({place});\nrow = hit ? near : row;"
    return Body(MappingProxyType({"present_cache": "row"}), state, update)


declare(
    Operator(
        "TensorScatter",
        "past_cache update write_indices?",
        "present_cache",
        _infer_cache,
        _cache_domain,
        _cache,
        (
            example("float32[2,3,5,2]", "float32[2,3,2,2]", [1, 3]),
            example("float32[2,5,2]", "float32[2,2,2]", [4, 2], mode="circular"),
            example("int8[2,4]", "int8[2,3]", axis=1),
        ),
        MappingProxyType({"axis": -2, "mode": "linear"}),
        body=_cache_body,
    )
)
