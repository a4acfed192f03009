"""DFT and STFT: discrete Fourier transforms by their definition, with tables of cosines and sines.

The cost is quadratic in the length: meant for the few hundred samples of an audio frame.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from tilewright.core.domain import WHOLE, Axis, Domain, at, dim, domain
from tilewright.core.graph import Array, TensorType
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.indexing import c_table, grid, scalar
from tilewright.ops.rules import expression


def _check_complex(call: Call, operand: str) -> TensorType:
    data = call.type(operand)
    if data.rank < 2 or data.shape[-1] not in (1, 2) or not data.dtype.is_float:
        raise call.error(
            "shape-mismatch", f"'{operand}' must hold real or complex floats on its last axis, found {data}"
        )
    return data


def _complex(array: Array) -> Array:
    """The last axis, of extent 1 or 2, as real or complex numbers."""
    wide = array.astype(np.float64)
    return wide[..., 0] if array.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]


def _parts(array: Array) -> Array:
    return np.stack([array.real, array.imag], axis=-1)


def _tables(call: Call, length: int) -> tuple[tuple[str, str, str], ...]:
    angles = 2 * np.pi * np.arange(length) / length
    compute = call.outputs[0].dtype.compute
    return c_table(compute, "COSINE", np.cos(angles)), c_table(compute, "SINE", np.sin(angles))


def _rotation(bin_name: str, length: int, real: str, imaginary: str, *, inverse: bool) -> str:
    """C that adds one sample, turned by its angle, to the sums `re` and `im`."""
    turn = f"const int turn = (int)(((int64_t){bin_name} * K) % {length});\n"
    plus, minus = ("-", "+") if inverse else ("+", "-")
    if not imaginary:
        return turn + f"re += {real} * COSINE[turn];\nim {minus}= {real} * SINE[turn];"
    return turn + (
        f"re += {real} * COSINE[turn] {plus} {imaginary} * SINE[turn];\n"
        f"im += {imaginary} * COSINE[turn] {minus} {real} * SINE[turn];"
    )


def _sums(call: Call) -> tuple[tuple[str, str, str], ...]:
    compute = call.outputs[0].dtype.compute
    return (compute, "re", "0"), (compute, "im", "0")


# DFT


def _axis(call: Call) -> int:
    rank = call.type("input").rank
    axis = scalar(call, "axis") if call.has("axis") else -2
    if not -rank <= axis < rank or axis % rank == rank - 1:
        raise call.error("bad-axis", f"axis {axis} is no signal axis of a tensor of rank {rank}")
    return axis % rank


def _real_result(call: Call) -> bool:
    """The inverse of a one-sided transform gives real numbers."""
    return bool(call.int("inverse") and call.int("onesided"))


def _length(call: Call) -> int:
    if call.has("dft_length"):
        return scalar(call, "dft_length")
    extent = call.shape("input")[_axis(call)]
    return 2 * (extent - 1) if _real_result(call) else extent


def _infer_dft(call: Call) -> tuple[TensorType, ...]:
    data = _check_complex(call, "input")
    length = _length(call)
    if length < 1:
        raise call.error("bad-value", f"a transform of length {length} is empty")
    shape = list(data.shape)
    shape[_axis(call)] = length // 2 + 1 if call.int("onesided") and not call.int("inverse") else length
    shape[-1] = 1 if _real_result(call) else 2
    return (data.with_shape(shape),)


def _samples(call: Call) -> int:
    """How many inputs along the axis enter the transform; missing ones are zero."""
    length = _length(call)
    return min(call.shape("input")[_axis(call)], length // 2 + 1 if _real_result(call) else length)


def _dft_domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output"))
    axis = _axis(call)
    sizes["K"] = _samples(call)
    source: list[Axis] = [*access]
    source[axis] = dim("K")
    source[-1] = WHOLE if call.shape("input")[-1] == 2 else at(0)
    shapes = {"input": call.shape("input"), "output": call.shape("output")}
    return domain(sizes, {"input": source, "output": access}, shapes, "output")


def _dft(call: Call, input: Array, *_: Array | None) -> Array:
    axis, length = _axis(call), _length(call)
    signal = _complex(input)
    if _real_result(call):
        return np.fft.irfft(signal, length, axis)[..., None]
    if call.int("inverse"):
        return _parts(np.fft.ifft(signal, length, axis))
    spectrum = np.fft.fft(signal, length, axis)
    return _parts(spectrum.take(range(call.outputs[0].shape[axis]), axis))


def _dft_body(call: Call) -> Body:
    axis, length, rank = _axis(call), _length(call), call.type("input").rank
    place = ", ".join("K" if i == axis else f"D{i}" for i in range(rank - 1))
    is_complex = call.shape("input")[-1] == 2
    real, imaginary = (f"input_at({place}, 0)", f"input_at({place}, 1)") if is_complex else ("input", "")
    inverse = bool(call.int("inverse"))
    if _real_result(call):
        # Each bin but the first and the middle one stands for its conjugate too.
        both = expression(call, f"({{T}})(K == 0 || 2 * K == {length} ? 1 : 2)")
        real, imaginary = f"{both} * {real}", imaginary and f"{both} * {imaginary}"
    update = _rotation(f"D{axis}", length, real, imaginary, inverse=inverse)
    value = "re" if _real_result(call) else f"D{rank - 1} == 0 ? re : im"
    if inverse:
        value = expression(call, f"({value}) / ({{T}}){length}")
    if _real_result(call):
        update += "\n(void)im;"
    return Body(MappingProxyType({"output": value}), _sums(call), update, _tables(call, length))


declare(
    Operator(
        "DFT",
        "input dft_length? axis?",
        "output",
        _infer_dft,
        _dft_domain,
        _dft,
        (
            example("float32[2,8,1]"),
            example("float32[2,6,3,2]", "", np.array(1)),
            example("float32[2,9,1]", np.array(6), onesided=1),
            example("float32[1,5,2]", np.array(8), np.array(-2)),
            example("float32[1,5,2]", inverse=1),
            example("float32[1,5,2]", inverse=1, onesided=1),
            example("float64[1,4,2]", np.array(7), inverse=1, onesided=1),
        ),
        MappingProxyType({"inverse": 0, "onesided": 0}),
        "reduce",
        _dft_body,
        frozenset({"dft_length", "axis"}),
    )
)


# STFT


def _frame(call: Call) -> tuple[int, int]:
    """Length of a transform and number of samples that enter it."""
    if call.has("frame_length"):
        length = scalar(call, "frame_length")
    else:
        length = call.shape("window")[0] if call.has("window") else call.shape("signal")[-2]
    return length, min(call.shape("window")[0], length) if call.has("window") else length


def _infer_stft(call: Call) -> tuple[TensorType, ...]:
    signal = _check_complex(call, "signal")
    length, _ = _frame(call)
    step = scalar(call, "frame_step")
    if signal.rank != 3 or not 1 <= length <= signal.shape[1] or step < 1:
        raise call.error("shape-mismatch", f"frames of {length} samples every {step} do not fit {signal}")
    frames = 1 + (signal.shape[1] - length) // step
    return (signal.with_shape((signal.shape[0], frames, length // 2 + 1 if call.int("onesided") else length, 2)),)


def _stft_domain(call: Call) -> Domain:
    sizes, access = grid(call.shape("output"))
    sizes["K"] = _frame(call)[1]
    is_complex = call.shape("signal")[-1] == 2
    place = access[1] * scalar(call, "frame_step") + dim("K")
    maps: dict[str, list[Axis]] = {"signal": [access[0], place, WHOLE if is_complex else at(0)]}
    if call.has("window"):
        maps["window"] = [dim("K")]
    maps["output"] = [*access]
    return domain(sizes, maps, {name: call.shape(name) for name in maps}, "output")


def _stft(call: Call, signal: Array, frame_step: Array, window: Array | None = None, *_: Array | None) -> Array:
    length, samples = _frame(call)
    values = _complex(signal)
    weights = 1.0 if window is None else window[:samples].astype(np.float64)
    frames, bins = call.outputs[0].shape[1:3]
    starts = [frame * int(frame_step.reshape(-1)[0]) for frame in range(frames)]
    cut = np.stack([values[:, start : start + samples] * weights for start in starts], axis=1)
    return _parts(np.fft.fft(cut, length, -1)[..., :bins])


def _stft_body(call: Call) -> Body:
    length, _ = _frame(call)
    weight = " * window" if call.has("window") else ""
    place = f"D0, D1 * {scalar(call, 'frame_step')} + K"
    if call.shape("signal")[-1] == 2:
        real, imaginary = f"signal_at({place}, 0){weight}", f"signal_at({place}, 1){weight}"
    else:
        real, imaginary = f"signal{weight}", ""
    update = _rotation("D2", length, real, imaginary, inverse=False)
    return Body(MappingProxyType({"output": "D3 == 0 ? re : im"}), _sums(call), update, _tables(call, length))


declare(
    Operator(
        "STFT",
        "signal frame_step window? frame_length?",
        "output",
        _infer_stft,
        _stft_domain,
        _stft,
        (
            example("float32[2,20,1]", np.array(4), "float32[8]"),
            example("float32[1,20,1]", np.array(3), "", np.array(6), onesided=0),
            example("float32[1,12,2]", np.array(5), "float32[5]", np.array(5), onesided=0),
        ),
        MappingProxyType({"onesided": 1}),
        "reduce",
        _stft_body,
        frozenset({"frame_step", "frame_length"}),
    )
)
