"""RoiAlign: bilinear samples of regions of interest, pooled to a fixed size."""

from __future__ import annotations

from math import ceil
from types import MappingProxyType

import numpy as np

from tilewright.core.domain import WHOLE, Axis, Domain, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import c_float, grid
from tilewright.ops.rules import expression, one_dtype

COORDINATES = ("half_pixel", "output_half_pixel")
MOST_SAMPLES = 4096
"""Samples along an axis of a bin at most; holds back regions of absurd size."""

REGION = """\
const {T} left = rois_at(D0, 0) * {SCALE} - {OFFSET}, top = rois_at(D0, 1) * {SCALE} - {OFFSET};
{T} width = rois_at(D0, 2) * {SCALE} - {OFFSET} - left, height = rois_at(D0, 3) * {SCALE} - {OFFSET} - top;
{FORCE}const {T} bin_w = width / {OW}, bin_h = height / {OH};
const int cols = {COLS}, rows = {ROWS};
int64_t b = batch_indices;
b = b < 0 ? 0 : b > {LAST} ? {LAST} : b;
for (int iy = 0; iy < rows; iy++)
    for (int ix = 0; ix < cols; ix++) {
        {T} y = top + (({T})D2 + (({T})iy + {HALF}) / ({T})rows) * bin_h;
        {T} x = left + (({T})D3 + (({T})ix + {HALF}) / ({T})cols) * bin_w;
        const bool near = y >= -1 && y <= {H} && x >= -1 && x <= {W};
        y = !near || y < 0 ? 0 : y > {BOTTOM} ? {BOTTOM} : y;
        x = !near || x < 0 ? 0 : x > {RIGHT} ? {RIGHT} : x;
        const int y0 = (int)y, x0 = (int)x;
        const int y1 = y0 < {BOTTOM} ? y0 + 1 : y0, x1 = x0 < {RIGHT} ? x0 + 1 : x0;
        const {T} fy = y - ({T})y0, fx = x - ({T})x0;
        {T} value[4] = {X_at(b, D1, y0, x0), X_at(b, D1, y0, x1), X_at(b, D1, y1, x0), X_at(b, D1, y1, x1)};
        value[0] = near ? (1 - fy) * (1 - fx) * value[0] : 0;
        value[1] = near ? (1 - fy) * fx * value[1] : 0;
        value[2] = near ? fy * (1 - fx) * value[2] : 0;
        value[3] = near ? fy * fx * value[3] : 0;
        {POOL}
    }
{FINISH}"""


def _infer(call: Call) -> tuple[TensorType, ...]:
    data, rois = call.type("X"), call.type("rois")
    one_dtype(call, ("X", "rois"))
    if data.rank != 4 or not data.dtype.is_float or 0 in data.shape:
        raise call.error("shape-mismatch", f"X must be floats with the axes N, C, H, W, found {data}")
    if rois.rank != 2 or rois.shape[1] != 4 or call.shape("batch_indices") != rois.shape[:1]:
        raise call.error("shape-mismatch", f"rois {rois} must be corners of regions, one batch index for each")
    mode, coordinates = call.text("mode"), call.text("coordinate_transformation_mode")
    if mode not in ("avg", "max") or coordinates not in COORDINATES:
        raise call.error(
            "bad-attribute", f"mode='{mode}' with coordinate_transformation_mode='{coordinates}' is unknown"
        )
    return (data.with_shape((rois.shape[0], data.shape[1], call.int("output_height"), call.int("output_width"))),)


def _domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("Y"))
    maps: dict[str, list[Axis]] = {
        "X": [WHOLE, access[1], WHOLE, WHOLE],
        "rois": [access[0], WHOLE],
        "batch_indices": [access[0]],
        "Y": [*access],
    }
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "Y")


def _samples(call: Call, bin_size: float) -> int:
    """How many samples a bin takes along an axis."""
    ratio = call.int("sampling_ratio")
    return ratio if ratio > 0 else min(max(ceil(bin_size), 0), MOST_SAMPLES)


def _places(call: Call, start: float, bin_size: float, bins: int, extent: int) -> tuple[Array, Array]:
    """Sample positions `[bins, samples]` along an axis, held inside it, and which lie too far out to count."""
    samples = _samples(call, bin_size)
    inner = (np.arange(samples) + 0.5) / max(samples, 1)
    place = start + (np.arange(bins)[:, None] + inner[None, :]) * bin_size
    return np.clip(place, 0, extent - 1), (place < -1) | (place > extent)


def _region(call: Call, image: Array, roi: Array) -> Array:
    _, channels, height, width = call.shape("X")
    rows, cols = call.int("output_height"), call.int("output_width")
    half_pixel = call.text("coordinate_transformation_mode") == "half_pixel"
    left, top, right, bottom = (roi.astype(np.float64) * call.float("spatial_scale") - 0.5 * half_pixel).tolist()
    wide, high = right - left, bottom - top
    if not half_pixel:
        wide, high = max(wide, 1.0), max(high, 1.0)
    y, y_out = _places(call, top, high / rows, rows, height)
    x, x_out = _places(call, left, wide / cols, cols, width)
    if not y.size or not x.size:
        return np.zeros((channels, rows, cols))
    y0, x0 = np.floor(y).astype(int)[:, :, None, None], np.floor(x).astype(int)[None, None]
    fy, fx = y[:, :, None, None] - y0, x[None, None] - x0
    y1, x1 = np.minimum(y0 + 1, height - 1), np.minimum(x0 + 1, width - 1)
    taps = np.stack(
        [
            (1 - fy) * (1 - fx) * image[:, y0, x0],
            (1 - fy) * fx * image[:, y0, x1],
            fy * (1 - fx) * image[:, y1, x0],
            fy * fx * image[:, y1, x1],
        ]
    )
    taps[:, :, y_out[:, :, None, None] | x_out[None, None]] = 0
    if call.text("mode") == "max":
        return taps.max(axis=(0, 3, 5))
    return taps.sum(axis=0).mean(axis=(2, 4))


def _reference(call: Call, X: Array, rois: Array, batch_indices: Array) -> Array:
    images = X.astype(np.float64)
    held = np.clip(batch_indices, 0, len(X) - 1).tolist()
    regions = [_region(call, images[batch], roi) for batch, roi in zip(held, rois, strict=True)]
    return np.stack(regions) if regions else np.zeros(call.outputs[0].shape)


def _body(call: Call) -> Body:
    batches, _, height, width = call.shape("X")
    real = call.outputs[0].dtype.compute
    half_pixel = call.text("coordinate_transformation_mode") == "half_pixel"

    def counted(size: str) -> str:
        if call.int("sampling_ratio") > 0:
            return str(call.int("sampling_ratio"))
        return f"{size} > {MOST_SAMPLES} ? {MOST_SAMPLES} : {size} > 0 ? (int)ceil{{f}}({size}) : 0"

    average = call.text("mode") == "avg"
    pool = (
        "acc += value[0] + value[1] + value[2] + value[3];"
        if average
        else "for (int t = 0; t < 4; t++) { if ((iy + ix + t) == 0 || value[t] > acc) acc = value[t]; }"
    )
    fields = {
        "{COLS}": counted("bin_w"),
        "{ROWS}": counted("bin_h"),
        "{FORCE}": "" if half_pixel else "width = width > 1 ? width : 1;\nheight = height > 1 ? height : 1;\n",
        "{FINISH}": "if (rows * cols > 0) acc /= ({T})(rows * cols);" if average else "",
        "{POOL}": pool,
        "{SCALE}": c_float(call.float("spatial_scale"), real),
        "{OFFSET}": c_float(0.5 if half_pixel else 0.0, real),
        "{HALF}": c_float(0.5, real),
        "{OW}": c_float(float(call.int("output_width")), real),
        "{OH}": c_float(float(call.int("output_height")), real),
        "{LAST}": str(batches - 1),
        "{BOTTOM}": str(height - 1),
        "{RIGHT}": str(width - 1),
        "{H}": str(height),
        "{W}": str(width),
    }
    text = REGION
    for field, value in fields.items():
        text = text.replace(field, value)
    return Body(MappingProxyType({"Y": "acc"}), ((real, "acc", "0"),), expression(call, text))


_ROIS = np.array([[0, 0, 9, 9], [1, 2, 4, 8.5], [-3, -2, 20, 30], [5, 5, 4, 4]], np.float32)
_BATCHES = np.array([0, 1, 1, 0])

declare(
    Operator(
        "RoiAlign",
        "X rois batch_indices",
        "Y",
        _infer,
        _domain,
        _reference,
        (
            example("float32[2,2,7,8]", _ROIS, _BATCHES, output_height=2, output_width=3, spatial_scale=0.5),
            example("float32[2,2,7,8]", _ROIS, _BATCHES, output_height=2, output_width=2, sampling_ratio=2),
            example("float32[2,1,7,8]", _ROIS, _BATCHES, output_height=3, output_width=2, sampling_ratio=2, mode="max"),
            example(
                "float32[2,1,7,8]",
                _ROIS,
                _BATCHES,
                output_height=2,
                output_width=2,
                coordinate_transformation_mode="output_half_pixel",
            ),
        ),
        MappingProxyType(
            {
                "coordinate_transformation_mode": "half_pixel",
                "mode": "avg",
                "output_height": 1,
                "output_width": 1,
                "sampling_ratio": 0,
                "spatial_scale": 1.0,
            }
        ),
        body=_body,
    )
)
