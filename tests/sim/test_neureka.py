"""Single NEUREKA jobs: against the definition of a convolution, against measured jobs, and what they touch."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from sim.neureka_reference import (
    TCDM_BASE,
    TCDM_MASK,
    TCDM_SIZE,
    TIMING,
    Addresses,
    Bytes,
    Data,
    Job,
    Padding,
    Values,
    expected,
    packed_weights,
    random_data,
    random_job,
    registers,
)
from tilewright import _native

WEIGHT_MEMORY_SIZE = 1 << 17
RANDOM_JOBS = 600
RANDOM_SLICES = 12
PREFILL = 0xA5


@dataclass
class Machine:
    """The two memories, and the prefetch state that lives from job to job."""

    tcdm: Bytes
    weights: Bytes
    hidden: int = 0

    def run(self, values: list[int], *, gvsoc: bool = False) -> _native.NeurekaResult:
        result = _native.neureka_run(
            values, self.tcdm, self.weights, TCDM_BASE, TCDM_MASK, TIMING, gvsoc=gvsoc, hidden=self.hidden
        )
        self.hidden = result.hidden
        return result

    def ranges(self, values: list[int]) -> list[tuple[str, bool, bool, int, int]]:
        return _native.neureka_ranges(values, self.tcdm, self.weights, TCDM_BASE, TCDM_MASK)


def new_machine(fill: int = PREFILL) -> Machine:
    return Machine(np.full(TCDM_SIZE, fill, np.uint8), np.full(WEIGHT_MEMORY_SIZE, fill, np.uint8))


def addresses_apart(job: Job) -> Addresses:
    """Every tensor in a memory area of its own."""
    first, *others = (TCDM_BASE + 0x8000 * index for index in range(6))
    input_start, output, scales, shifts, biases = others
    return Addresses(input_start, output, 0 if job.weights_in_weight_memory else first, scales, shifts, biases)


def output_places(job: Job, at: Addresses) -> Values:
    """TCDM offsets of all output bytes, [row][column][byte]."""
    row, pixel = job.output_strides
    rows = np.arange(job.rows).reshape(-1, 1, 1) * row
    columns = np.arange(job.columns).reshape(-1, 1) * pixel
    return (at.output & TCDM_MASK) + rows + columns + np.arange(job.output_channels * job.output_bits // 8)


def as_bytes(values: Values, bits: int) -> Bytes:
    """Little-endian bytes of unsigned values, the last axis flattened."""
    flat = values.astype({8: "<u1", 16: "<u2", 32: "<u4"}[bits])
    return np.ascontiguousarray(flat).view(np.uint8)


def place(job: Job, data: Data, rng: np.random.Generator, machine: Machine) -> Addresses:
    """Writes the tensors one after the other with odd gaps, and says where they are."""
    used = int(rng.integers(0, 40))

    def put(size: int) -> int:
        nonlocal used
        start = used
        used += size + int(rng.integers(0, 40))
        assert used < TCDM_SIZE
        return start

    def write(values: Bytes) -> int:
        start = put(values.size)
        machine.tcdm[start : start + values.size] = values
        return start

    in_row, in_pixel = job.input_strides
    height, width, channels = job.input_shape
    input_start = put(height * in_row)
    places = np.arange(height).reshape(-1, 1, 1) * in_row + np.arange(width).reshape(-1, 1) * in_pixel
    machine.tcdm[input_start + places + np.arange(channels)] = data.input & 255
    packed = packed_weights(job, data, rng)
    if job.weights_in_weight_memory:
        weights = int(rng.integers(0, machine.weights.size - packed.size))
        machine.weights[weights : weights + packed.size] = packed
    else:
        weights = TCDM_BASE + write(packed)
    at = Addresses(
        input=TCDM_BASE + input_start,
        weights=weights,
        scales=TCDM_BASE + write(as_bytes(data.scales, job.scale_bits)),
        shifts=TCDM_BASE + write(as_bytes(data.shifts, 8)),
        biases=TCDM_BASE + write(as_bytes(data.biases & 0xFFFFFFFF, 32)),
        output=TCDM_BASE + put(job.rows * job.output_strides[0]),
    )
    if job.stream_in:
        machine.tcdm[output_places(job, at)] = as_bytes(data.partial_sums & 0xFFFFFFFF, 32)
    return at


def expected_memory(job: Job, at: Addresses, before: Bytes, values: Values) -> Bytes:
    """The TCDM after the job: strided jobs store the pixels of even rows and columns only."""
    step = 2 if job.strided else 1
    memory = before.copy()
    memory[output_places(job, at)[::step, ::step]] = as_bytes(values, job.output_bits)[::step, ::step]
    return memory


@pytest.mark.parametrize("part", range(RANDOM_SLICES))
def test_random_jobs(part: int) -> None:
    rng = np.random.default_rng(part)
    for number in range(RANDOM_JOBS // RANDOM_SLICES):
        job, machine = random_job(rng), new_machine()
        data = random_data(job, rng)
        at = place(job, data, rng, machine)
        wanted = expected_memory(job, at, machine.tcdm, expected(job, data))
        result = machine.run(registers(job, at))
        assert result.fault is None
        assert np.array_equal(machine.tcdm, wanted), f"job {number} of part {part}: {job}"
        assert result.cycles == sum(result.phase_cycles.values())


@pytest.mark.parametrize("part", range(4))
def test_random_jobs_with_the_model_s_padding(part: int) -> None:
    rng = np.random.default_rng(100 + part)
    for number in range(25):
        drawn = random_job(rng)
        # What remains apart from padding is measured below: striding and depthwise stream-in.
        job = replace(drawn, strided=False, stream_in=drawn.stream_in and drawn.mode != "dw")
        machine = new_machine()
        data = random_data(job, rng)
        at = place(job, data, rng, machine)
        wanted = expected_memory(job, at, machine.tcdm, expected(job, data, zero_bottom_right=True))
        assert machine.run(registers(job, at), gvsoc=True).fault is None
        assert np.array_equal(machine.tcdm, wanted), f"job {number} of part {part}: {job}"


def test_strided_jobs_pack_their_output_with_halved_strides() -> None:
    rng = np.random.default_rng(1)
    job = Job("3x3", 14, 11, 20, 8, strided=True, padding=Padding(1, 1, 1, 1))
    machine, data = new_machine(), random_data(job, rng)
    at = place(job, data, rng, machine)
    values = registers(job, at)
    packed_row = 6 * 8
    values[10:12] = [8 // 2, packed_row // 2]
    assert machine.run(values).fault is None
    start = at.output & TCDM_MASK
    found = machine.tcdm[start : start + 7 * packed_row].reshape(7, 6, 8)
    assert np.array_equal(found, expected(job, data)[::2, ::2])


@pytest.mark.parametrize("seed", range(60))
def test_ranges_are_what_a_job_touches(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    job, machine = random_job(rng), new_machine()
    at = place(job, random_data(job, rng), rng, machine)
    values = registers(job, at)
    before = machine.tcdm.copy()
    read, written = np.zeros(TCDM_SIZE, bool), np.zeros(TCDM_SIZE, bool)
    weights_read = np.zeros(machine.weights.size, bool)
    for _, write, in_weight_memory, begin, end in machine.ranges(values):
        (weights_read if in_weight_memory else written if write else read)[begin:end] = True
    machine.run(values)
    stored = output_places(job, at)[:: 2 if job.strided else 1, :: 2 if job.strided else 1]
    assert np.array_equal(np.flatnonzero(written), np.unique(stored))
    # Nothing else matters: with all other bytes changed, the result is the same.
    scrambled = Machine(before ^ np.where(read, 0, 0x5A).astype(np.uint8), machine.weights.copy())
    scrambled.weights[~weights_read] ^= 0x5A
    scrambled.run(values)
    assert np.array_equal(machine.tcdm[written], scrambled.tcdm[written])


def test_ranges_keep_the_gaps_of_strides() -> None:
    job = Job("1x1", 2, 3, 16, 8, input_gaps=(4, 0), output_gaps=(2, 0), weights_in_weight_memory=True)
    values = registers(job, Addresses(TCDM_BASE, TCDM_BASE + 0x1000, 64, TCDM_BASE + 0x2000, 0, TCDM_BASE + 0x3000))
    ranges = new_machine().ranges(values)
    assert [(begin, end) for use, _, _, begin, end in ranges if use == "input"] == [
        (20 * pixel, 20 * pixel + 16) for pixel in range(6)
    ]
    assert [(begin, end) for use, *_, begin, end in ranges if use == "output"] == [
        (0x1000 + 10 * pixel, 0x1000 + 10 * pixel + 8) for pixel in range(6)
    ]
    assert ("weights", False, True, 64, 64 + 8 * 32) in ranges


L2_ADDRESS = 0x1C010000
LAST = TCDM_BASE + TCDM_SIZE - 1


@pytest.mark.parametrize(
    ("register", "address", "use"),
    [
        (0, L2_ADDRESS, "weights"),
        (0, LAST, "weights"),
        (1, L2_ADDRESS, "input"),
        (1, LAST, "input"),
        (1, TCDM_BASE - 300, "input"),
        (2, L2_ADDRESS, "stream_in"),
        (2, LAST - 100, "stream_in"),
        (3, LAST, "scale"),
        (4, LAST, "shift"),
        (5, LAST, "bias"),
    ],
)
def test_pointers_outside_the_tcdm(register: int, address: int, use: str) -> None:
    job = Job("3x3", 7, 7, 10, 12, output_bits=32, stream_in=True, per_channel_shift=True)
    machine = new_machine()
    values = registers(job, addresses_apart(job))
    assert machine.run(values).fault is None
    before = machine.tcdm.copy()
    values[register] = address
    fault = machine.run(values).fault
    assert fault is not None
    assert fault.startswith(f"{use} at 0x")
    assert fault.endswith("is outside the TCDM")
    assert np.array_equal(machine.tcdm, before)
    assert machine.ranges(values) == []


def test_an_output_that_runs_over_the_end_names_the_first_byte_run_outside() -> None:
    job = Job("1x1", 6, 6, 8, 16)
    at = Addresses(TCDM_BASE, LAST - 20, *(TCDM_BASE + 0x8000 * index for index in range(1, 5)))
    fault = new_machine().run(registers(job, at)).fault
    assert fault == f"output at 0x{LAST - 20 + 16:08x} (16 bytes) is outside the TCDM"


def test_weights_outside_the_weight_memory() -> None:
    job = Job("1x1", 6, 6, 8, 16, weights_in_weight_memory=True)
    at = Addresses(TCDM_BASE, TCDM_BASE + 0x8000, 0x10400000, *(TCDM_BASE + 0x9000,) * 3)
    fault = new_machine().run(registers(job, at)).fault
    assert fault == "weights at 0x10400000 (32 bytes) is outside the weight memory"


@pytest.mark.parametrize(
    ("register", "value", "reason"),
    [
        (23, 3 << 5, "filter mode 3 is reserved"),
        (23, 2 << 5 | 1 << 3, "16-bit mode is not modelled"),
        (23, 2 << 5 | 1 << 7, "linear mode is not modelled"),
        (23, 2 << 5 | 1 << 4 | 3 << 12, "scale width 3 is reserved"),
        (23, 2 << 5 | 1 << 21, "outputs have 8 or 32 bit"),
        (23, 2 << 5 | 1 << 14, "stream-in needs 32-bit outputs"),
        (18, 0x00010000, "a number of tiles is 0"),
        (15, 0x00010021, "a remainder is larger than a tile"),
        (20, 0x10000000, "padding needs a 3x3 mode"),
        (19, 0xFFFFFFFF, "the job is too large to be meant"),
    ],
)
def test_settings_the_model_lacks(register: int, value: int, reason: str) -> None:
    job = Job("1x1", 6, 6, 8, 16)
    values = registers(job, addresses_apart(job))
    values[register] = value
    assert new_machine().run(values).fault == reason


@pytest.mark.parametrize("seed", range(20))
def test_random_registers_never_crash(seed: int) -> None:
    rng = np.random.default_rng(2000 + seed)
    for _ in range(200):
        job = random_job(rng)
        values = registers(job, Addresses(*(TCDM_BASE + int(rng.integers(0, TCDM_SIZE)) for _ in range(6))))
        for register in rng.integers(0, 24, 2):
            values[register] = int(rng.integers(0, 1 << 32)) >> int(rng.integers(0, 32))
        machine = new_machine()
        machine.run(values, gvsoc=bool(rng.integers(0, 2)))


@pytest.mark.parametrize(
    ("job", "cycles"),
    [
        (Job("1x1", 12, 12, 64, 64), 2188),
        (Job("3x3", 3, 3, 28, 32, weight_bits=2), 12 + 6 + 25 + 14 + 64 + 32 + 9 + 4 + 8 + 15),
        (Job("dw", 6, 6, 28, 28, weights_in_weight_memory=True), 12 + 6 + 64 + 34 + 8 * 28 + 28 + 9 + 4 + 8 + 36),
    ],
)
def test_cycles(job: Job, cycles: int) -> None:
    values = registers(job, addresses_apart(job))
    for gvsoc in (False, True):
        assert new_machine().run(values, gvsoc=gvsoc).cycles == cycles


def test_depthwise_weights_from_the_tcdm_are_free_in_the_model_only() -> None:
    job = Job("dw", 6, 6, 28, 28)
    values = registers(job, addresses_apart(job))
    assert new_machine().run(values).cycles - new_machine().run(values, gvsoc=True).cycles == 8 * 27


def test_work_of_a_dense_layer() -> None:
    job = Job("3x3", 12, 12, 112, 128, weights_in_weight_memory=True, padding=Padding(1, 1, 1, 1))
    machine = Machine(np.zeros(TCDM_SIZE, np.uint8), np.zeros(1 << 20, np.uint8))
    values = registers(job, Addresses(TCDM_BASE, TCDM_BASE + 0x10000, 0, *(TCDM_BASE + 0x20000,) * 3))
    result = machine.run(values)
    assert result.multiplications == 12 * 12 * 112 * 128 * 9
    assert result.peak_multiplications_per_cycle == 9072 / 8
    assert result.phase_bytes == {
        "overhead": 0,
        "stream_in": 0,
        "load": 4 * (4 * 49) * 112,  # for every tile of output channels 4 tiles of 7x7 pixels
        "multiply": 4 * 128 * 4 * 8 * 32,
        "quantise": 4 * 128 * 8,
        "store": 12 * 12 * 128,
    }
    assert 700 < result.multiplications / result.cycles < 1134


def test_a_prefetch_hides_multiplication_until_the_next_job() -> None:
    job = Job("3x3", 12, 12, 56, 32)
    values = registers(job, addresses_apart(job))
    plain = new_machine().run(values).cycles
    machine = new_machine()
    prefetching = machine.run(registers(replace(job, prefetch=True), addresses_apart(job)))
    assert prefetching.cycles < plain
    assert machine.hidden == 6
    machine.run(values)
    assert machine.hidden == 0


@dataclass(frozen=True)
class Measured:
    name: str
    registers: list[int]
    arrays: dict[str, Bytes]
    cycles: int
    defect: bool
    model_only: bool  # striding or padding in which the model is alone


def measured_jobs(folder: Path) -> list[Measured]:
    with np.load(folder / "jobs.npz") as archive:
        arrays = dict(archive.items())
    with (folder / "jobs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    jobs: list[Measured] = []
    for row in rows:
        prefix = f"j{int(row['id']):03d}_"
        own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        bottom_right = row["pad_bottom"] != "0" or row["pad_right"] != "0"
        own_value = int(row["pad_value"]) != 0 and bottom_right and row["rem_full"] == "0"
        values = [int(row[f"r{index}"], 16) for index in range(24)]
        defect = row["model_defect"] == "1"
        jobs.append(Measured(row["id"], values, own, int(row["cycles"]), defect, row["strided2x2"] == "1" or own_value))
    return jobs


def load_measured(job: Measured, row_addresses: dict[str, int], machine: Machine) -> None:
    for name, address in row_addresses.items():
        values = job.arrays[name]
        memory = machine.weights if name == "weights" and job.registers[23] >> 9 & 1 else machine.tcdm
        start = address if memory is machine.weights else address & TCDM_MASK
        memory[start : start + values.size] = values


def run_measured(job: Measured, machine: Machine, *, gvsoc: bool) -> tuple[_native.NeurekaResult, bool]:
    """The result, and whether the output is that of the measurement."""
    weights, first_input, output, scale, shift, bias, pixel, row = job.registers[:8]
    top, left = job.registers[20] >> 28, job.registers[20] >> 16 & 15
    places = {
        "weights": weights,
        "input": first_input + top * row + left * pixel,
        "scale": scale,
        "shift": shift,
        "bias": bias,
        "out_before": output,
    }
    load_measured(job, places, machine)
    result = machine.run(job.registers, gvsoc=gvsoc)
    wanted = job.arrays["out"]
    start = output & TCDM_MASK
    return result, bool(np.array_equal(machine.tcdm[start : start + wanted.size], wanted))


@pytest.mark.cases
def test_measured_jobs_with_the_model_s_quirks(cases: Path) -> None:
    hidden = 0  # the prefetch state is kept in the order in which the jobs ran
    for job in measured_jobs(cases / "siracusa_calibration" / "neureka"):
        machine = new_machine(0)  # stream-in at wrong places reads memory that nobody had written
        machine.hidden = hidden
        result, same = run_measured(job, machine, gvsoc=True)
        hidden = machine.hidden
        assert result.fault is None
        assert same, f"values of job {job.name}"
        assert result.cycles == job.cycles, f"cycles of job {job.name}"


@pytest.mark.cases
def test_measured_jobs_without_quirks(cases: Path) -> None:
    jobs = measured_jobs(cases / "siracusa_calibration" / "neureka")
    differing: list[str] = []
    for job in jobs:
        result, same = run_measured(job, new_machine(), gvsoc=False)
        assert result.fault is None
        if not same:
            differing.append(job.name)
    allowed = {job.name for job in jobs if job.defect or job.model_only}
    assert set(differing) <= allowed
    assert {job.name for job in jobs if job.defect} <= set(differing)
