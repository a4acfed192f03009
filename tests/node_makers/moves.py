"""Nodes that move elements: views, cuts, indices."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import helper, numpy_helper

from node_makers.drawing import Drawing, Impossible, Maker
from tilewright.base.dtype import DTYPES
from tilewright.core.graph import Array


def reshape(d: Drawing) -> None:
    shape = d.shape()
    d.put(shape, constant=False)
    size, target = prod(shape), list[int]()
    while size > 1 and len(target) < 4:
        target.append(int(d.pick(*[n for n in range(1, size + 1) if size % n == 0])))
        size //= target[-1]
    target = [*target, size] if size != 1 or d.flip() else target
    if d.flip() and 0 not in target and target:
        target[d.below(len(target))] = -1
    for at, extent in enumerate(target):
        if at < len(shape) and extent == shape[at] != 0 and d.flip():
            target[at] = 0
    if 0 in shape and d.has("allowzero"):
        d.attributes["allowzero"] = 1
    d.numbers(target)


def flatten(d: Drawing) -> None:
    shape = d.shape(1)
    d.put(shape, constant=False)
    d.say("axis", d.axis(len(shape)) if d.below(4) else len(shape))


def squeeze(d: Drawing) -> None:
    shape = d.shape()
    d.put(shape, constant=False)
    ones = [axis - (len(shape) if d.opset >= 11 and d.rarely() else 0) for axis, n in enumerate(shape) if n == 1]
    if ones and d.below(4):
        d.either("axes", [axis for axis in ones if d.flip()] or ones)


def unsqueeze(d: Drawing) -> None:
    shape = d.shape(0, 3)
    d.put(shape, constant=False)
    rank = len(shape) + d.between(1, 2)
    axes = [int(axis) for axis in d.rng.permutation(rank)[: rank - len(shape)]]
    d.either("axes", [axis - rank if d.opset >= 11 and d.rarely() else axis for axis in axes])


def transpose(d: Drawing) -> None:
    shape = d.shape(1, 5)
    d.put(shape, constant=False)
    d.say("perm", [int(axis) for axis in d.rng.permutation(len(shape))])


def expand(d: Drawing) -> None:
    whole = d.shape()
    d.put(d.part(whole), constant=False)
    d.numbers([extent if d.below(4) else 1 for extent in whole][d.below(len(whole) + 1) if d.rarely() else 0 :])


def tile(d: Drawing) -> None:
    shape = d.shape(1)
    d.put(shape, constant=False)
    d.numbers([d.pick(1, 1, 2, 3, 0 if d.rarely() else 1) for _ in shape])


def concat(d: Drawing) -> None:
    shape = d.shape(1)
    axis = d.axis(len(shape))
    for _ in range(d.between(1, 4)):
        own = list(shape)
        own[axis] = d.pick(1, 2, 3, 0 if d.rarely() else 1)
        d.put(own)
    d.attributes["axis"] = axis


def split(d: Drawing) -> None:
    shape = list(d.shape(1))
    axis = d.axis(len(shape))
    count = d.between(1, 4)
    parts = [d.between(0 if d.rarely() else 1, 3) for _ in range(count)]
    given = d.flip()
    shape[axis] = sum(parts) if given else count * d.between(1, 3)
    if not given and d.has("num_outputs"):
        d.attributes["num_outputs"] = count
        shape[axis] = d.between(1, 3) * (count - 1) + 1
    d.put(shape, constant=False)
    if given:
        d.either("split", parts)
    d.say("axis", axis, always=axis != 0)
    d.results(count)


def slices(d: Drawing) -> None:
    shape = d.shape(1)
    d.put(shape, constant=False)
    axes = [int(axis) for axis in d.rng.permutation(len(shape))[: d.between(1, len(shape))]]
    stated = [axis - len(shape) if d.opset >= 10 and d.rarely() else axis for axis in axes]
    steps = [d.pick(1, 1, 2, 3, -1, -2) if d.takes("steps") else 1 for _ in axes]
    far = (-(2**31), 2**31 - 1)

    def bound(axis: int) -> int:
        return d.pick(*far) if d.rarely() else d.between(-shape[axis] - 1, shape[axis] + 1)

    starts, ends = [[bound(axis) for axis in axes] for _ in range(2)]
    sorted_axes = axes == list(range(len(axes)))
    d.either("starts", starts)
    d.either("ends", ends)
    if not sorted_axes or d.flip() or len(axes) < len(shape):
        d.either("axes", stated)
        if d.takes("steps"):
            d.numbers(steps)


def pad(d: Drawing) -> None:
    shape = d.shape(1)
    d.put(shape, constant=False)
    mode = d.pick("constant", "constant", "edge", "reflect", *(["wrap"] if d.opset >= 19 else []))
    axes = list(range(len(shape)))
    if d.takes("axes") and d.flip():
        axes = axes[: d.between(1, len(axes))]

    def room(axis: int) -> int:
        most = {"reflect": max(shape[axis] - 1, 0), "wrap": shape[axis]}.get(mode, 3)
        if mode == "edge" and not shape[axis]:
            return 0
        return d.between(-min(shape[axis], 2) if d.rarely() else 0, min(3, most))

    d.say("mode", mode, always=mode != "constant")
    d.either("pads", [room(axis) for _ in range(2) for axis in axes])
    if d.takes("constant_value"):
        if mode == "constant" and d.flip():
            d.put(())
        if len(axes) < len(shape):
            if len(d.inputs) == 2:
                d.skip()
            d.numbers([axis - len(shape) if d.flip() else axis for axis in axes])
    elif mode == "constant":
        d.say("value", 0.5)


def depth(d: Drawing) -> None:
    block = d.between(1, 3)
    n, c, h, w = (d.between(1, 3) for _ in range(4))
    deep = d.op == "DepthToSpace"
    d.put((n, c * block**2, h, w) if deep else (n, c, h * block, w * block), constant=False)
    d.attributes["blocksize"] = block
    d.say("mode", d.pick("DCR", "CRD"))


def center(d: Drawing) -> None:
    shape = d.shape(1)
    d.put(shape, constant=False)
    axes = d.axes(len(shape), 1) if d.flip() else list(range(len(shape)))
    d.numbers([d.between(1, 8) for _ in axes])
    d.say("axes", axes, always=axes != list(range(len(shape))))


def _indices(d: Drawing, shape: tuple[int, ...], extent: int) -> Array:
    if not extent:
        raise Impossible
    low = -extent if d.opset >= 11 and d.flip() else 0
    found = d.rng.integers(low, extent, shape)
    return np.asarray(found).astype(DTYPES[d.next_kind()].numpy)


def gather(d: Drawing) -> None:
    shape = d.shape(1)
    axis = d.axis(len(shape))
    d.put(shape)
    d.give(_indices(d, d.shape(0, 2), shape[axis]))
    d.say("axis", axis, always=True)


def gather_elements(d: Drawing) -> None:
    shape = d.shape(1)
    axis = d.axis(len(shape))
    d.put(shape)
    own = [d.between(1, max(extent, 1)) for extent in shape]
    own[axis] = d.between(1, 4)
    d.give(_indices(d, tuple(own), shape[axis]))
    d.say("axis", axis, always=True)


def _tuples(d: Drawing, shape: tuple[int, ...], around: tuple[int, ...], unique: bool = False) -> Array:
    """Tuples of indices of the first axes of a shape."""
    if 0 in shape:
        raise Impossible
    flat = d.rng.permutation(prod(shape)) if unique else d.rng.integers(0, prod(shape), prod(around))
    if len(flat) < prod(around):
        raise Impossible
    found = np.stack(np.unravel_index(flat[: prod(around)], shape), -1)
    return found.reshape(*around, len(shape)).astype(np.int64)


def gather_nd(d: Drawing) -> None:
    shape = d.shape(1)
    batch = d.below(len(shape)) if d.has("batch_dims") and d.flip() else 0
    depth = d.between(1, len(shape) - batch)
    d.put(shape)
    around = (*shape[:batch], *d.shape(0 if batch else 1, 2))
    d.give(_tuples(d, shape[batch : batch + depth], around))
    d.say("batch_dims", batch, always=batch > 0)


def _reduced(d: Drawing) -> str:
    if d.kind("T") == "bool":
        return "none"
    known = {16: ("none", "add", "mul"), 18: ("none", "add", "mul", "max", "min")}
    return str(d.pick(*known.get(d.schema.since, ("none",))))


def scatter_elements(d: Drawing) -> None:
    shape = d.shape(1)
    axis = d.axis(len(shape))
    if 0 in shape:
        raise Impossible
    d.put(shape)
    how = _reduced(d)
    own = [d.between(1, extent) for extent in shape]
    # Which of several updates of one element wins is not said.
    order = np.argsort(d.rng.random(shape), axis)[tuple(slice(0, extent) for extent in own)]
    if how != "none":
        order = d.rng.integers(0, shape[axis], own)
    low = shape[axis] if d.flip() else 0
    d.give(np.asarray(order - low).astype(DTYPES[d.next_kind()].numpy))
    d.put(own)
    d.say("axis", axis, always=True)
    d.say("reduction", how, always=how != "none")


def scatter_nd(d: Drawing) -> None:
    shape = d.shape(1)
    depth = d.between(1, len(shape))
    d.put(shape)
    how = _reduced(d)
    if 0 in shape:
        raise Impossible
    around = (d.between(1, prod(shape[:depth])),)
    d.give(_tuples(d, shape[:depth], around, unique=how == "none"))
    d.put((*around, *shape[depth:]))
    d.say("reduction", how, always=how != "none")


def one_hot(d: Drawing) -> None:
    shape = d.shape(0, 3)
    count = d.between(1, 5)
    # What is no whole number is cast to one, which onnxruntime does when it has looked for the sign.
    found = np.round(d.noise(d.next_kind(), shape, -count - 1, count + 1).astype(np.float64))
    d.give(found.astype(DTYPES[d.next_kind()].numpy))
    kind = DTYPES[d.next_kind()].numpy
    d.give(np.asarray([count] if d.flip() else count).astype(kind), constant=True)
    d.put((2,))
    d.say("axis", d.between(-len(shape) - 1, len(shape)))


def compress(d: Drawing) -> None:
    shape = d.shape(1)
    d.put(shape, constant=True)
    axis = d.axis(len(shape))
    along = d.flip()
    length = shape[axis] if along else prod(shape)
    d.give(d.rng.random(d.between(0, length)) < 0.5, constant=True)
    d.say("axis", axis, always=True) if along else None


def top_k(d: Drawing) -> None:
    shape = d.shape(1)
    axis = d.axis(len(shape))
    d.put(shape, -3, 3, constant=False)
    count = d.between(0, shape[axis])
    if d.has("k"):
        d.attributes["k"] = max(count, 1)
    else:
        d.numbers([count])
    d.say("axis", axis, always=True)
    d.say("largest", d.below(2))
    d.say("sorted", 1)
    d.results(2)


def trilu(d: Drawing) -> None:
    d.put(d.shape(2), constant=False)
    if d.flip():
        d.give(np.asarray(d.between(-4, 4), np.int64), constant=True)
    d.say("upper", d.below(2))


def eye_like(d: Drawing) -> None:
    d.put(d.shape(2, 2), constant=False)
    d.say("k", d.between(-4, 4))
    kind = d.kind("T2")
    d.say("dtype", helper.np_dtype_to_tensor_dtype(DTYPES[kind].numpy))


def filled(d: Drawing) -> None:
    d.give(np.asarray(d.shape(), np.int64), constant=True)
    value = d.noise(d.kind("T2"), (1,))
    d.say("value", numpy_helper.from_array(value))


def sequence(d: Drawing) -> None:
    d.give(np.asarray(d.between(-5, 5)).astype(DTYPES[d.next_kind()].numpy), constant=True)
    d.give(np.asarray(d.between(-9, 9)).astype(DTYPES[d.next_kind()].numpy), constant=True)
    d.give(np.asarray(d.pick(1, 2, 3, -1, -2)).astype(DTYPES[d.next_kind()].numpy), constant=True)


def reverse_sequence(d: Drawing) -> None:
    shape = d.shape(2)
    time = d.below(2)
    d.put(shape, constant=False)
    if 0 in shape:
        raise Impossible
    d.give(np.asarray(d.rng.integers(1, shape[time] + 1, shape[1 - time])).astype(np.int64))
    d.attributes.update(time_axis=time, batch_axis=1 - time)


def sizes(d: Drawing) -> None:
    shape = d.shape()
    d.put(shape, constant=False)
    d.say("start", d.between(-len(shape) - 1, len(shape) + 1))
    d.say("end", d.between(-len(shape) - 1, len(shape) + 1))


def of_constant(d: Drawing) -> None:
    """The shape of the result depends on the data."""
    d.put(d.shape(1), -2, 2, constant=True)
    if d.op == "Unique":
        d.say("sorted", 1)
        d.results(most=4)


def tensor_scatter(d: Drawing) -> None:
    shape: tuple[int, ...] = d.pick((2, 4, 3), (1, 2, 5, 3), (3, 1, 4, 2))
    axis = d.between(1, len(shape) - 1)
    update = list(shape)
    update[axis] = d.between(1, shape[axis])
    d.put(shape)
    d.put(update)
    mode = d.pick("linear", "circular")
    last: int = shape[axis] - (update[axis] if mode == "linear" else 1)
    if d.flip():
        d.give(np.asarray(d.rng.integers(0, last + 1, shape[0])).astype(np.int64))
    d.say("mode", mode, always=True)
    d.say("axis", axis - len(shape) if d.flip() else axis, always=True)


MAKERS: dict[str, Maker] = {
    "CenterCropPad": center,
    "Compress": compress,
    "Concat": concat,
    "ConstantOfShape": filled,
    "DepthToSpace": depth,
    "Expand": expand,
    "EyeLike": eye_like,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "NonZero": of_constant,
    "OneHot": one_hot,
    "Pad": pad,
    "Range": sequence,
    "Reshape": reshape,
    "ReverseSequence": reverse_sequence,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Shape": sizes,
    "Size": sizes,
    "Slice": slices,
    "SpaceToDepth": depth,
    "Split": split,
    "Squeeze": squeeze,
    "TensorScatter": tensor_scatter,
    "Tile": tile,
    "TopK": top_k,
    "Transpose": transpose,
    "Trilu": trilu,
    "Unique": of_constant,
    "Unsqueeze": unsqueeze,
}
