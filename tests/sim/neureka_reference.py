"""What a NEUREKA job must compute, from the definition of a convolution, and the memory image and registers of a job.

Nothing here follows the accelerator's tiles: a job is a padded input, a sliding window and a matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tilewright.machine.target import load_platform

Bytes = NDArray[np.uint8]
Values = NDArray[np.int64]

TCDM_BASE = 0x10000000
TCDM_MASK = 0x3FFFF
TCDM_SIZE = TCDM_MASK + 1
BLOCK = 32

_DEVICE = load_platform("siracusa").timings["rtl"].devices["neureka"]
TIMING = {name: number for name, number in _DEVICE.settings.items() if isinstance(number, int)}
"""The cycles measured on this accelerator, among other numbers of the simulated device."""


@dataclass(frozen=True)
class Padding:
    top: int = 0
    right: int = 0
    bottom: int = 0
    left: int = 0
    value: int = 0


@dataclass(frozen=True)
class Job:
    """One job; sizes are those of the output before striding."""

    mode: str  # "1x1", "3x3" or "dw"
    rows: int
    columns: int
    input_channels: int
    output_channels: int
    weight_bits: int = 8
    weight_offset: int = -128
    signed_input: bool = False
    output_bits: int = 8
    quantise: bool = True
    scale_bits: int = 32
    shift: int = 21
    per_channel_shift: bool = False
    bias: bool = True
    relu: bool = False
    padding: Padding = Padding()
    filter_mask: int = 0
    stream_in: bool = False
    strided: bool = False
    weights_in_weight_memory: bool = False
    prefetch: bool = False
    input_gaps: tuple[int, int] = (0, 0)  # bytes after each pixel, after each row
    output_gaps: tuple[int, int] = (0, 0)

    @property
    def filter_size(self) -> int:
        return 1 if self.mode == "1x1" else 3

    @property
    def input_shape(self) -> tuple[int, int, int]:
        grown = self.filter_size - 1
        height = self.rows + grown - self.padding.top - self.padding.bottom
        width = self.columns + grown - self.padding.left - self.padding.right
        return height, width, self.input_channels

    @property
    def input_strides(self) -> tuple[int, int]:
        """Bytes from row to row and from pixel to pixel."""
        pixel = self.input_channels + self.input_gaps[0]
        return pixel * self.input_shape[1] + self.input_gaps[1], pixel

    @property
    def output_strides(self) -> tuple[int, int]:
        pixel = self.output_channels * self.output_bits // 8 + self.output_gaps[0]
        return pixel * self.columns + self.output_gaps[1], pixel


@dataclass(frozen=True)
class Data:
    """The tensors of a job: codes are [output][input][tap], in depthwise mode [channel][1][tap]."""

    input: Values
    codes: Values
    scales: Values
    shifts: Values
    biases: Values
    partial_sums: Values


@dataclass(frozen=True)
class Addresses:
    """Where the tensors lie, as the job's registers say it."""

    input: int
    output: int
    weights: int
    scales: int
    shifts: int
    biases: int


def random_data(job: Job, rng: np.random.Generator) -> Data:
    low = -128 if job.signed_input else 0
    taps = job.filter_size**2
    inputs = 1 if job.mode == "dw" else job.input_channels
    channels = job.output_channels
    return Data(
        input=rng.integers(low, low + 256, job.input_shape),
        codes=rng.integers(0, 2**job.weight_bits, (channels, inputs, taps)),
        scales=rng.integers(0, 2**job.scale_bits, channels) >> rng.integers(0, job.scale_bits, channels),
        shifts=rng.integers(0, 32, channels),
        biases=rng.integers(-(2**31), 2**31, channels) >> rng.integers(0, 31, channels),
        partial_sums=rng.integers(-(2**31), 2**31, (job.rows, job.columns, channels)) >> rng.integers(0, 31),
    )


def expected(job: Job, data: Data, *, zero_bottom_right: bool = False) -> Values:
    """The output of all pixels, [row][column][channel], as the value that is stored (8 or 32 bit, unsigned)."""
    padding = job.padding
    value = padding.value & 255
    value -= 256 if job.signed_input and value > 127 else 0
    picture = np.pad(data.input, ((padding.top, 0), (padding.left, 0), (0, 0)), constant_values=value)
    after = 0 if zero_bottom_right else value
    picture = np.pad(picture, ((0, padding.bottom), (0, padding.right), (0, 0)), constant_values=after)
    side = job.filter_size
    windows = sliding_window_view(picture, (side, side), axis=(0, 1)).reshape(job.rows, job.columns, -1, side * side)
    kept = np.array([not job.filter_mask >> tap & 1 or side == 1 for tap in range(side * side)])
    weights = (data.codes + job.weight_offset) * kept
    if job.mode == "dw":
        sums: Values = (windows * weights[:, 0]).sum(axis=3)
    else:
        # Exact in double precision: all sums stay far below 2**53.
        product = windows.reshape(job.rows, job.columns, -1).astype(np.float64) @ weights.reshape(
            job.output_channels, -1
        ).T.astype(np.float64)
        sums = product.astype(np.int64)
    if job.stream_in:
        sums = sums + data.partial_sums
    return (quantised(job, data, sums) if job.quantise else sums) & (2**job.output_bits - 1)


def quantised(job: Job, data: Data, sums: Values) -> Values:
    values = sums * data.scales
    if job.bias:
        values = (values + data.biases).astype(np.int32).astype(np.int64)
    values = values >> (data.shifts if job.per_channel_shift else np.int64(job.shift))
    low = 0 if job.relu else -(2 ** (job.output_bits - 1))
    high = 2**job.output_bits - 1 if job.relu else -low - 1
    if job.output_bits == 32 and not job.relu:
        return values  # no clipping
    return np.clip(values, low, high)


def packed_weights(job: Job, data: Data, rng: np.random.Generator) -> Bytes:
    """The weight blocks; bits that must not matter are random."""
    lanes = 32 if job.mode == "1x1" else 28
    codes = data.codes[:, 0].T[np.newaxis].swapaxes(1, 2) if job.mode == "dw" else data.codes
    groups, channels, taps = codes.shape
    tiles = -(-channels // lanes)
    padded = rng.integers(0, 256, (groups, tiles * lanes, taps))
    padded[:, :channels] = codes
    if job.mode == "1x1":
        padded |= rng.integers(0, 256, padded.shape) >> job.weight_bits << job.weight_bits
        quads = padded.reshape(groups, tiles, 8, 1, 4)
        bits = quads >> np.arange(8).reshape(8, 1) & 1
        return np.packbits(bits.astype(np.uint8).reshape(-1, 256), axis=1, bitorder="little").ravel()
    by_tile = padded.reshape(groups, tiles, 1, lanes, taps)
    planes = by_tile >> np.arange(job.weight_bits).reshape(-1, 1, 1) & 1
    blocks = rng.integers(0, 2, (groups * tiles * job.weight_bits, 256))
    blocks[:, : lanes * taps] = planes.swapaxes(3, 4).reshape(-1, lanes * taps)
    return np.packbits(blocks.astype(np.uint8), axis=1, bitorder="little").ravel()


def registers(job: Job, at: Addresses) -> list[int]:
    lanes_in = 32 if job.mode == "1x1" else 28
    lanes_out = 28 if job.mode == "dw" else 32
    input_tiles, output_tiles = -(-job.input_channels // lanes_in), -(-job.output_channels // lanes_out)
    padding = job.padding
    in_row, in_pixel = job.input_strides
    out_row, out_pixel = job.output_strides
    last_rows, last_columns = (job.rows - 1) % 6 + 1, (job.columns - 1) % 6 + 1
    grown = job.filter_size - 1
    channel_stride = {"1x1": BLOCK * input_tiles, "3x3": BLOCK * input_tiles * job.weight_bits, "dw": 0}[job.mode]
    values = [
        at.weights,
        at.input - padding.top * in_row - padding.left * in_pixel,
        at.output,
        at.scales,
        at.shifts,
        at.biases,
        in_pixel,
        in_row,
        0,
        32,
        out_pixel,
        out_row,
        BLOCK,
        channel_stride,
        0,
        ((job.output_channels - 1) % lanes_out + 1) << 16 | ((job.input_channels - 1) % lanes_in + 1),
        last_rows << 16 | last_columns,
        (last_rows + grown - padding.bottom) << 16 | (last_columns + grown - padding.right),
        output_tiles << 16 | input_tiles,
        -(-job.rows // 6) << 16 | -(-job.columns // 6),
        padding.top << 28 | padding.right << 24 | padding.bottom << 20 | padding.left << 16 | padding.value & 0xFFFF,
        job.weight_offset,
        job.filter_mask,
        configuration(job),
    ]
    return [value & 0xFFFFFFFF for value in values]


def configuration(job: Job) -> int:
    return (
        job.weight_bits - 1
        | job.quantise << 4
        | ("3x3", "dw", "1x1").index(job.mode) << 5
        | job.strided << 8
        | job.weights_in_weight_memory << 9
        | job.prefetch << 10
        | (8, 16, 32).index(job.scale_bits) << 12
        | job.stream_in << 14
        | 1 << 15
        | job.shift << 16
        | (8, 16, 32).index(job.output_bits) << 21
        | (not job.relu) << 23
        | job.per_channel_shift << 24
        | job.bias << 25
        | job.signed_input << 26
    )


def random_job(rng: np.random.Generator) -> Job:
    def flag(chance: float = 0.5) -> bool:
        return bool(rng.random() < chance)

    def between(low: int, high: int) -> int:
        return int(rng.integers(low, high + 1))

    mode = str(rng.choice(["1x1", "3x3", "dw"]))
    wide = mode != "1x1"
    rows, columns, channels = between(1, 20), between(1, 20), between(1, 70)
    weight_bits = between(2, 8)
    offset = int(rng.choice([0, -(2 ** (weight_bits - 1)), -1, -37, 5, between(-100000, 100000)]))
    sides = [int(flag()) if wide else 0 for _ in range(4)]
    output_bits = int(rng.choice([8, 32]))
    return Job(
        mode=mode,
        rows=rows,
        columns=columns,
        input_channels=channels,
        output_channels=channels if mode == "dw" else between(1, 70),
        weight_bits=weight_bits,
        weight_offset=offset,
        signed_input=flag(),
        output_bits=output_bits,
        quantise=flag(0.8),
        scale_bits=int(rng.choice([8, 16, 32])),
        shift=between(0, 31),
        per_channel_shift=flag(0.3),
        bias=flag(),
        relu=flag(),
        padding=Padding(*sides, value=between(0, 255) if wide and flag() else 0),
        filter_mask=between(0, 511) if wide and flag(0.3) else 0,
        stream_in=output_bits == 32 and flag(),
        strided=flag(0.15),
        weights_in_weight_memory=flag(),
        prefetch=flag(0.3),
        input_gaps=(between(0, 9) * flag(), between(0, 9) * flag()),
        output_gaps=(between(0, 9) * flag(), between(0, 9) * flag()),
    )
