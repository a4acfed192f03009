"""GridSample and AffineGrid: samples of an image at the places a grid names.

Grid coordinates run from -1 to 1 along each image axis, the last axis first. `align_corners` says whether these are the
centres of the corner elements or the outer edges of them.
"""

from __future__ import annotations

from itertools import product
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import WHOLE, Axis, Domain, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import c_float, grid, integers
from tilewright.ops.rules import expression

TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
PADDINGS = ("zeros", "border", "reflection")
CUBIC_A = -0.75


def _infer(call: Call) -> tuple[TensorType, ...]:
    data, places = call.type("X"), call.type("grid")
    if call.text("mode") not in TAPS:
        raise call.error("bad-attribute", f"mode='{call.text('mode')}' must be one of {', '.join(TAPS)}")
    if call.text("padding_mode") not in PADDINGS:
        raise call.error(
            "bad-attribute", f"padding_mode='{call.text('padding_mode')}' must be one of {', '.join(PADDINGS)}"
        )
    if not data.dtype.is_float or not places.dtype.is_float:
        raise call.error("type-mismatch", f"X and grid must be floats, found {data.dtype} and {places.dtype}")
    spatial = data.rank - 2
    if spatial < 1 or places.rank != data.rank or places.shape[0] != data.shape[0] or places.shape[-1] != spatial:
        raise call.error("shape-mismatch", f"grid {places} does not name places in X {data}")
    if 0 in data.shape[2:]:
        raise call.error("shape-mismatch", f"X {data} has no elements to sample")
    return (data.with_shape((*data.shape[:2], *places.shape[1:-1])),)


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("Y"))
    maps: dict[str, list[Axis]] = {
        "X": [*access[:2], *[WHOLE] * (len(access) - 2)],
        "grid": [access[0], *access[2:], WHOLE],
        "Y": [*access],
    }
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "Y")


def _borders(call: Call, extent: int) -> tuple[float, float]:
    return (0.0, extent - 1.0) if call.int("align_corners") else (-0.5, extent - 0.5)


def _coordinates(call: Call, values: Array, extent: int) -> Array:
    """Where the grid lies on an image axis, after padding has brought in what lies outside."""
    place = (values + 1) / 2 * (extent - 1) if call.int("align_corners") else ((values + 1) * extent - 1) / 2
    if call.text("mode") == "nearest":
        place = np.rint(place)
    low, high = _borders(call, extent)
    beyond = ~((place >= low) & (place <= high))
    if call.text("padding_mode") == "border" and call.text("mode") != "cubic":
        return np.where(beyond, np.where(place > 0, np.minimum(place, extent - 1.0), 0.0), place)
    if call.text("padding_mode") == "reflection":
        reach = high - low
        # A reach of zero (one element, corners aligned) leaves only that element.
        phase = np.mod(place - low, 2 * reach) if reach else place * 0
        folded = low + np.where(phase > reach, 2 * reach - phase, phase)
        place = np.where(beyond, folded, place)
        return np.where((place >= low) & (place <= high), place, low)
    # Further out than the widest kernel reaches, nothing changes any more.
    return np.where(place > -4, np.minimum(place, extent + 4.0), -4.0)


def _index(call: Call, index: Array, extent: int) -> tuple[Array, Array]:
    """The element a tap reads, and whether there is one."""
    if call.text("padding_mode") == "zeros":
        inside = (index >= 0) & (index < extent)
        return np.where(inside, index, 0), inside
    if call.text("padding_mode") == "border":
        return np.clip(index, 0, extent - 1), np.ones(index.shape, np.bool_)
    period = max(1, 2 * (extent - 1)) if call.int("align_corners") else 2 * extent
    mirror = period if call.int("align_corners") else period - 1
    phase = np.mod(index, period)
    return np.where(phase >= extent, mirror - phase, phase), np.ones(index.shape, np.bool_)


def _weights(mode: str, part: Array) -> list[Array]:
    if mode == "nearest":
        return [np.ones_like(part)]
    if mode == "linear":
        return [1 - part, part]
    a = CUBIC_A

    def near(x: Array) -> Array:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Array:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(part + 1), near(part), near(1 - part), far(2 - part)]


def _reference(call: Call, X: Array, grid: Array) -> Array:
    mode, spatial = call.text("mode"), X.shape[2:]
    axes: list[list[tuple[Array, Array]]] = []
    for i, extent in enumerate(spatial):
        place = _coordinates(call, grid[..., len(spatial) - 1 - i].astype(np.float64), extent)
        base = np.floor(place)
        taps: list[tuple[Array, Array]] = []
        for tap, weight in enumerate(_weights(mode, place - base)):
            index, inside = _index(call, base.astype(np.int64) + tap - (mode == "cubic"), extent)
            taps.append((index, np.where(inside, weight, 0.0)))
        axes.append(taps)
    wide = X.astype(np.float64)
    result = np.zeros(call.outputs[0].shape)
    for batch in range(X.shape[0]):
        for picked in product(*axes):
            sample = wide[batch][(slice(None), *(index[batch] for index, _ in picked))]
            weight = np.prod(np.stack([w[batch] for _, w in picked]), axis=0)
            result[batch] += sample * weight
    return result


def _axis_c(call: Call, i: int, extent: int, component: str) -> str:
    """C that finds the taps of one image axis: indices `i0[]` and weights `w0[]`."""
    mode, padding = call.text("mode"), call.text("padding_mode")
    real = call.outputs[0].dtype.compute
    low, high = (c_float(border, real) for border in _borders(call, extent))
    last, size = c_float(extent - 1.0, real), c_float(float(extent), real)
    place = f"(x{i} + 1) / 2 * {last}" if call.int("align_corners") else f"((x{i} + 1) * {size} - 1) / 2"
    lines = [f"{{T}} x{i} = ({{T}}){component};", f"x{i} = {place};"]
    if mode == "nearest":
        lines.append(f"x{i} = rint{{f}}(x{i});")
    if padding == "border" and mode != "cubic":
        lines.append(f"if (!(x{i} >= {low} && x{i} <= {high})) x{i} = x{i} > 0 ? {last} : 0;")
    elif padding == "reflection":
        reach = _borders(call, extent)[1] - _borders(call, extent)[0]
        turn, once = c_float(2 * reach, real), c_float(reach, real)
        if reach:
            lines.append(f"if (!(x{i} >= {low} && x{i} <= {high})) {{")
            lines.append(f"    {{T}} phase = fmod{{f}}(x{i} - {low}, {turn});")
            lines.append(f"    phase = phase < 0 ? phase + {turn} : phase;")
            lines.append(f"    x{i} = {low} + (phase > {once} ? {turn} - phase : phase);")
            lines.append("}")
        lines.append(f"if (!(x{i} >= {low} && x{i} <= {high})) x{i} = {low};")
    else:
        far = c_float(extent + 4.0, real)
        lines.append(f"x{i} = x{i} > -4 ? (x{i} < {far} ? x{i} : {far}) : -4;")
    lines.append(f"const {{T}} f{i} = floor{{f}}(x{i});")
    lines.append(f"const {{T}} r{i} = x{i} - f{i};")
    lines.append(_weights_c(mode, i, real))
    lines += _taps_c(call, i, extent)
    return "\n".join(lines)


def _weights_c(mode: str, i: int, real: str) -> str:
    if mode == "nearest":
        return f"(void)r{i};\n{{T}} w{i}[1] = {{1}};"
    if mode == "linear":
        return f"{{T}} w{i}[2] = {{1 - r{i}, r{i}}};"
    a, a2, a3, a4, a5, a8 = (
        c_float(v, real) for v in (CUBIC_A, CUBIC_A + 2, CUBIC_A + 3, 4 * CUBIC_A, 5 * CUBIC_A, 8 * CUBIC_A)
    )

    def near(x: str) -> str:
        return f"({a2} * {x} - {a3}) * {x} * {x} + 1"

    def far(x: str) -> str:
        return f"(({a} * {x} - {a5}) * {x} + {a8}) * {x} - {a4}"

    terms = (far(f"(r{i} + 1)"), near(f"r{i}"), near(f"(1 - r{i})"), far(f"(2 - r{i})"))
    return f"{{T}} w{i}[4] = {{{', '.join(terms)}}};"


def _taps_c(call: Call, i: int, extent: int) -> list[str]:
    """C that turns tap numbers into element indices, by the padding mode."""
    taps, padding = TAPS[call.text("mode")], call.text("padding_mode")
    first = f"(int)f{i}{' - 1' if taps == 4 else ''}"
    lines = [f"int i{i}[{taps}];", f"for (int t = 0; t < {taps}; t++) {{", f"    int k = {first} + t;"]
    if padding == "zeros":
        lines.append(f"    if (k < 0 || k >= {extent}) {{ k = 0; w{i}[t] = 0; }}")
    elif padding == "border":
        lines.append(f"    k = k < 0 ? 0 : k >= {extent} ? {extent - 1} : k;")
    else:
        period = max(1, 2 * (extent - 1)) if call.int("align_corners") else 2 * extent
        mirror = period if call.int("align_corners") else period - 1
        lines.append(f"    k = (k % {period} + {period}) % {period};")
        lines.append(f"    k = k >= {extent} ? {mirror} - k : k;")
    return [*lines, f"    i{i}[t] = k;", "}"]


def _body(call: Call) -> Body:
    spatial = call.shape("X")[2:]
    rank, taps = len(spatial), TAPS[call.text("mode")]
    place = ", ".join(["D0", *(f"D{i + 2}" for i in range(rank))])
    parts = [_axis_c(call, i, n, f"grid_at({place}, {rank - 1 - i})") for i, n in enumerate(spatial)]
    loops = " ".join(f"for (int t{i} = 0; t{i} < {taps}; t{i}++)" for i in range(rank))
    weight = " * ".join(f"w{i}[t{i}]" for i in range(rank))
    source = ", ".join(["D0", "D1", *(f"i{i}[t{i}]" for i in range(rank))])
    parts.append(f"{loops} acc += {weight} * X_at({source});")
    # The type is filled in last, and braces of C are no fields of a format.
    text = expression(call, "\n".join(parts))
    return Body(MappingProxyType({"Y": "acc"}), ((call.outputs[0].dtype.compute, "acc", "0"),), text)


declare(
    Operator(
        "GridSample",
        "X grid",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            *(
                example("float32[2,3,4,5]", "float32[2,3,2,2]", mode=mode, padding_mode=padding, align_corners=align)
                for mode in TAPS
                for padding in PADDINGS
                for align in (0, 1)
            ),
            example("float32[1,2,3,4,3]", "float32[1,2,2,2,3]"),
            example("float64[1,1,3,1]", "float64[1,2,4,2]", padding_mode="reflection", align_corners=1),
        ),
        MappingProxyType({"align_corners": 0, "mode": "linear", "padding_mode": "zeros"}),
        body=_body,
    )
)


# AffineGrid


def _infer_affine(call: Call) -> tuple[TensorType, ...]:
    theta, size = call.type("theta"), integers(call, "size")
    spatial = len(size) - 2
    if spatial not in (2, 3) or theta.shape != (size[0], spatial, spatial + 1) or not theta.dtype.is_float:
        raise call.error("shape-mismatch", f"theta {theta} does not suit the size {list(size)}")
    return (theta.with_shape((size[0], *size[2:], spatial)),)


def _affine_domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("grid"))
    maps: dict[str, list[Axis]] = {"theta": [access[0], access[-1], WHOLE], "grid": [*access]}
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "grid")


def _line(extent: int, align: int) -> tuple[float, float]:
    """First coordinate of an axis and the step to the next."""
    if align:
        return (-1.0, 2.0 / (extent - 1)) if extent > 1 else (0.0, 0.0)
    return -1.0 + 1.0 / extent, 2.0 / extent


def _affine(call: Call, theta: Array, _: Array) -> Array:
    spatial = call.outputs[0].shape[1:-1]
    lines = [first + step * np.arange(n) for n in spatial for first, step in [_line(n, call.int("align_corners"))]]
    mesh = np.meshgrid(*lines, indexing="ij")
    base = np.stack([*reversed(mesh), np.ones(spatial)], axis=-1)
    return np.einsum("...k,nck->n...c", base, theta.astype(np.float64))


def _affine_body(call: Call) -> Body:
    spatial = call.outputs[0].shape[1:-1]
    rank = len(spatial)
    real = call.outputs[0].dtype.compute
    terms: list[str] = []
    for i, extent in enumerate(spatial):
        first, step = (c_float(v, real) for v in _line(extent, call.int("align_corners")))
        terms.append(f"theta_at(D0, D{rank + 1}, {rank - 1 - i}) * ({first} + ({real})D{i + 1} * {step})")
    return Body(MappingProxyType({"grid": " + ".join([*reversed(terms), f"theta_at(D0, D{rank + 1}, {rank})"])}))


declare(
    Operator(
        "AffineGrid",
        "theta size",
        "grid",
        _infer_affine,
        _affine_domain,
        _affine,
        (
            example("float32[2,2,3]", [2, 3, 4, 5]),
            example("float32[1,2,3]", [1, 3, 4, 2], align_corners=1),
            example("float32[1,3,4]", [1, 3, 2, 4, 5], align_corners=1),
        ),
        MappingProxyType({"align_corners": 0}),
        body=_affine_body,
        compile_time=frozenset({"size"}),
    )
)
