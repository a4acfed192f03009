"""ConvTranspose: 1-D to 3-D, with groups.

Each output gathers the inputs whose window reaches it, so that outputs tile freely.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from msgspec import Struct

from tilewright.core.domain import Axis, Domain, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.matmul import accumulator, contraction_body
from tilewright.ops.windows import auto_pad_of, extents, halves, pads_of, per_axis, positive


class Geometry(Struct, frozen=True):
    """Per spatial axis: window, strides, dilations, padding cut off before, outputs."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def names(self) -> str:
        return "DHW"[3 - len(self.kernel) :]


def _geometry(call: Call) -> Geometry:
    sizes = extents(call)
    rank, kernel = len(sizes), call.shape("W")[2:]
    strides, dilations = positive(call, "strides", rank), positive(call, "dilations", rank)
    extra, mode = per_axis(call, "output_padding", rank, 0), auto_pad_of(call)
    first, last = pads_of(call, rank)
    wanted = call.ints("output_shape")[-rank:]
    full = [strides[i] * (sizes[i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1 for i in range(rank)]
    if wanted or mode.startswith("SAME"):
        outputs = wanted or tuple(sizes[i] * strides[i] for i in range(rank))
        # Padding is never negative: a larger output_shape leaves zeros behind.
        before = tuple(halves(max(0, full[i] - outputs[i]), mode)[0] for i in range(rank))
    elif mode == "VALID":
        outputs, before = tuple(full), (0,) * rank
    else:
        outputs, before = tuple(full[i] - first[i] - last[i] for i in range(rank)), first
    if min(outputs) < 0:
        raise call.error("shape-mismatch", f"padding leaves nothing of the output, {list(outputs)}")
    return Geometry(kernel, strides, dilations, before, outputs)


def _infer(call: Call) -> tuple[TensorType, ...]:
    x, w, group = call.type("X"), call.type("W"), call.int("group")
    extents(call)
    if x.dtype.is_float != w.dtype.is_float:
        raise call.error("type-mismatch", f"X is {x.dtype} and W is {w.dtype}", help="insert a Cast")
    if w.rank != x.rank or w.shape[0] != x.shape[1] or x.shape[1] % group:
        raise call.error("shape-mismatch", f"W {w} with group={group} does not fit X {x}")
    features = w.shape[1] * group
    if call.has("B") and call.shape("B") != (features,):
        raise call.error("shape-mismatch", f"B {call.type('B')} needs one value for each of {features} channels")
    return (TensorType(accumulator(x.dtype, w.dtype), (x.shape[0], features, *_geometry(call).outputs)),)


def _domain(call: Call) -> Domain:
    geometry, group = _geometry(call), call.int("group")
    x, w = call.shape("X"), call.shape("W")
    channels, features = x[1] // group, w[1]
    n, channel, feature = dim("N"), dim("G") * channels + dim("C"), dim("G") * features + dim("F")
    outputs: list[Axis] = [dim(f"O{name}") for name in geometry.names]
    taps: list[Axis] = [dim(f"K{name}") for name in geometry.names]
    sources: list[Axis] = []
    for i, name in enumerate(geometry.names):
        reached = dim(f"O{name}") - dim(f"K{name}") * geometry.dilations[i] + geometry.before[i]
        sources.append(reached.over(geometry.strides[i], exact=True))
    access: dict[str, list[Axis]] = {"X": [n, channel, *sources], "W": [channel, dim("F"), *taps]}
    if call.has("B"):
        access["B"] = [feature]
    access["Y"] = [n, feature, *outputs]
    sizes = {"N": x[0], "G": group, "F": features}
    sizes |= {f"O{name}": size for name, size in zip(geometry.names, geometry.outputs, strict=True)}
    sizes |= {"C": channels, **{f"K{name}": size for name, size in zip(geometry.names, geometry.kernel, strict=True)}}
    shapes = {name: call.shape(name) for name in access}
    return domain(sizes, access, shapes, "Y", products={"BATCH": ["N"]})


def _reference(call: Call, X: Array, W: Array, B: Array | None = None) -> Array:
    """Scatters each input through the window, the definition the other way round."""
    geometry, group = _geometry(call), call.int("group")
    wide = np.float64 if call.outputs[0].dtype.is_float else np.int64
    n, spatial = X.shape[0], X.shape[2:]
    rank, features = len(spatial), W.shape[1]
    strides, dilations = geometry.strides, geometry.dilations
    ends = [(spatial[i] - 1) * strides[i] + 1 for i in range(rank)]
    reach = [
        max(geometry.before[i] + geometry.outputs[i], ends[i] + (geometry.kernel[i] - 1) * dilations[i])
        for i in range(rank)
    ]
    full = np.zeros((n, group, features, *reach), wide)
    inputs = X.astype(wide).reshape(n, group, -1, *spatial)
    weights = W.astype(wide).reshape(group, -1, features, *geometry.kernel)
    for tap in np.ndindex(*geometry.kernel):
        part = np.einsum("ngc...,gcf->ngf...", inputs, weights[(..., *tap)])
        offsets = [tap[i] * dilations[i] for i in range(rank)]
        where = tuple(slice(offsets[i], offsets[i] + ends[i], strides[i]) for i in range(rank))
        full[(slice(None), slice(None), slice(None), *where)] += part
    cut = tuple(slice(geometry.before[i], geometry.before[i] + geometry.outputs[i]) for i in range(rank))
    result = full[(slice(None), slice(None), slice(None), *cut)].reshape(n, group * features, *geometry.outputs)
    return result if B is None else result + B.astype(wide).reshape(-1, *(1,) * rank)


def _body(call: Call) -> Body:
    plain = contraction_body(call, "X", "W")
    unsigned = "" if call.outputs[0].dtype.is_float else f"({plain.state[0][0]})"
    return Body(MappingProxyType({"Y": f"acc + {unsigned}B" if call.has("B") else "acc"}), plain.state, plain.update)


declare(
    Operator(
        "ConvTranspose",
        "X W B?",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[1,2,3,4]", "float32[2,3,3,3]"),
            example("float32[1,2,3,4]", "float32[2,3,3,2]", "float32[3]", strides=(3, 2), output_padding=(1, 1)),
            example("float32[2,4,3,3]", "float32[4,1,3,3]", group=2, strides=(2, 2), pads=(1, 1, 0, 2)),
            example("float32[1,1,3,3]", "float32[1,2,3,3]", auto_pad="SAME_UPPER", strides=(2, 2)),
            example("float32[1,1,3,3]", "float32[1,2,3,3]", auto_pad="SAME_LOWER", strides=(2, 2)),
            example("float32[1,1,3,3]", "float32[1,2,3,3]", output_shape=(10, 8), strides=(3, 2)),
            example("float32[1,1,3,3]", "float32[1,1,2,2]", dilations=(2, 2)),
            example("float32[2,3,5]", "float32[3,2,3]", strides=(2,)),
            example("float32[1,1,3,4,2]", "float32[1,2,2,3,3]", strides=(1, 2, 2)),
            example("int8[1,2,3,3]", "int8[2,2,2,2]", "int32[2]", strides=(2, 2)),
            example("float64[1,2,3,3]", "float64[2,2,2,2]"),
        ),
        MappingProxyType(
            {
                "auto_pad": "NOTSET",
                "dilations": None,
                "group": 1,
                "kernel_shape": None,
                "output_padding": None,
                "output_shape": None,
                "pads": None,
                "strides": None,
            }
        ),
        "reduce",
        _body,
    )
)
