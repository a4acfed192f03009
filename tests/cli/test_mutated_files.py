"""Descriptions of machines, platforms, mappings and layers, damaged at random: each gives numbers that make sense, or
one clear error."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from pathlib import Path

import pytest

from command_line import relu
from compat.zigzag_files import OLD_MACHINE
from mutations import mutated
from tilewright.api.compiling import Options, compile_model
from tilewright.api.mapping import MapOptions, find_machine, search
from tilewright.core.workload import Layer, Workload
from tilewright.core.workload_file import equation_layer, read_workload_file
from tilewright.errors import TilewrightError
from tilewright.frontend.zigzag_machine import read_machine
from tilewright.frontend.zigzag_mapping import read_mapping
from tilewright.frontend.zigzag_workload import read_yaml_workload
from tilewright.machine.library import MACHINES, machine_names
from tilewright.machine.target import PLATFORMS, load_platform
from tilewright.mapping.pinned import read_mappings
from tilewright.price.memories import with_costs
from tilewright.sim.simulator import built

LAYERS = """
layers:
  - name: first
    equation: O[b][k][x] += W[k][c][f] * I[b][c][ix]
    where: [ix = 2*x + 1*f]
    sizes: {B: 1, K: 8, C: 4, X: 8, F: 3}
    bits: {W: 8, I: 8, O: 32, O_final: 8}
    density: {W: 0.5}
    constants: [W]
    axes: {IX: 17}
  - name: second
    equation: O[m][n] += A[m][k] * B[k][n]
    sizes: {M: 8, N: 8, K: 8}
    slots: {O: O, A: I1, B: I2}
    from: {A: [first]}
"""
THEIR_MACHINE = """
name: small
memories:
  register:
    size: 16
    r_cost: 0.1
    w_cost: 0.1
    area: 2
    operands: [O]
    ports:
      - {name: r_port_1, type: read, bandwidth_min: 16, bandwidth_max: 16, allocation: ["O, tl", "O, th"]}
      - {name: w_port_1, type: write, bandwidth_min: 16, bandwidth_max: 16, allocation: ["O, fl", "O, fh"]}
    served_dimensions: []
  buffer:
    size: 4096
    auto_cost_extraction: true
    operands: [I1, I2, O]
    ports:
      - {name: r_port_1, type: read, bandwidth_min: 8, bandwidth_max: 16, allocation: ["I1, tl", "I2, tl", "O, tl"]}
      - {name: w_port_1, type: write, bandwidth_min: 8, bandwidth_max: 16, allocation: ["O, fl"]}
    served_dimensions: [D1, D2]
operational_array:
  {unit_energy: 0.5, unit_area: 1, dimensions: [D1, D2], sizes: [2, 2], is_imc: true, imc_type: digital,
   input_precision: [8, 8], bit_serial_precision: 1, adc_resolution: 0}
"""
THEIR_MAPPING = """
- name: default
  spatial_mapping: {D1: ["K, 2"]}
  spatial_mapping_hint: {D1: [K, C]}
  temporal_ordering: [[C, 4], [K, 2], [D, "*"]]
  memory_operand_links: {O: O, W: I2, I: I1}
"""
THEIR_LAYERS = """
- id: 0
  operator_type: Conv
  equation: O[k][ox]+=W[k][c][fx]*I[c][ix]
  dimension_relations: [ix=2*ox+1*fx]
  loop_dims: [K, C, OX, FX]
  loop_sizes: [4, 4, 8, 3]
  pr_loop_dims: [IX]
  pr_loop_sizes: [16]
  padding: [[1, 0]]
  operand_precision: {I: 8, W: 8, O: 16, O_final: 8}
  operand_source: {I: 0, W: 0}
- id: 1
  name: last
  operator_type: Gemm
  equation: O[d][k]+=I[d][c]*W[c][k]
  loop_dims: [D, K, C]
  loop_sizes: [2, 4, 4]
  operand_precision: {I: 8, W: 8, O: 16, O_final: 8}
  operand_source: {I: 0, W: 1}
"""
MAPPINGS = """
mapping:
- {target: array.D1, type: spatial, factors: [K=2], permutation: [K]}
- {target: register, type: temporal, factors: [C=4], permutation: [C]}
- {target: register, type: bypass, keep: [O], bypass: [I, W]}
- {target: buffer, type: temporal, factors: K=2 D=2, permutation: KDC}
"""
GEMM = equation_layer("O[m][n] += A[m][k] * B[k][n]", {"M": 8, "N": 8, "K": 8}, {"O": 16})
CODES = frozenset(
    [
        "bad-machine",
        "bad-platform",
        "bad-mapping",
        "bad-workload",
        "bad-equation",
        "unknown-dimension",
        "no-mapping",
        "simulator-only",
    ]
)


def survey(folder: Path, name: str, text: str, seeds: range, use: Callable[[Path], object]) -> dict[str, int]:
    """How often each error came, "" for none, over damaged forms of a description."""
    found: dict[str, int] = {}
    for seed in seeds:
        path = folder / name
        path.write_bytes(mutated(text, seed))
        try:
            use(path)
            code, clear = "", True
        except TilewrightError as error:
            code, clear = error.code, bool(error.help) and len(str(error)) < 3000
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}: {type(error).__name__}: {error}") from error
        assert clear, f"{name}, seed {seed}: no help, or too long"
        assert code in {*CODES, ""}, f"{name}, seed {seed}: {code}"
        found[code] = found.get(code, 0) + 1
    return found


def cost_all(layers: list[Layer], machine: Path | str) -> None:
    engine = find_machine(machine)
    for layer in layers:
        order = tuple((dim, None) for dim in layer.dims)
        (found,) = search(layer, engine, MapOptions(order=order))
        assert isfinite(found.cost.energy)
        assert isfinite(found.cost.cycles)
        assert found.cost.energy >= 0
        assert found.cost.cycles >= 1


@pytest.mark.parametrize("name", machine_names())
def test_machines(name: str, tmp_path: Path) -> None:
    text = (MACHINES / f"{name}.yaml").read_text(encoding="utf-8")
    found = survey(tmp_path, "m.yaml", text, range(16), lambda path: cost_all([GEMM], path))
    assert found["bad-machine"] >= 8


@pytest.fixture
def platforms(tmp_path: Path) -> Path:
    """A folder of platforms in which descriptions can be replaced."""
    for folder in PLATFORMS.iterdir():
        if (folder / "platform.yaml").is_file():
            (tmp_path / folder.name).mkdir()
            for part in folder.iterdir():
                if part.is_dir():
                    (tmp_path / folder.name / part.name).symlink_to(part)
            (tmp_path / folder.name / "platform.yaml").write_bytes((folder / "platform.yaml").read_bytes())
    return tmp_path


def simulate(path: Path) -> None:
    platform = load_platform(path.parent)
    for timing in platform.timings.values():
        built(platform, timing)


@pytest.mark.parametrize(
    ("name", "variant", "count"), [("generic", "", 24), ("scratchpad", "", 24), ("cortexm", "cortex-m4", 16)]
)
def test_platforms(name: str, variant: str, count: int, platforms: Path) -> None:
    text = (PLATFORMS / name / "platform.yaml").read_text(encoding="utf-8")
    model = relu(platforms)

    def use(path: Path) -> None:
        compiled = compile_model(model, Options(platform=str(path.parent / variant)))
        assert 0 <= compiled.program.arena_bytes < 10_000

    found = survey(platforms / name, "platform.yaml", text, range(count), use)
    assert found["bad-platform"] >= count // 3


def test_simulated_platforms(platforms: Path) -> None:
    text = (PLATFORMS / "siracusa" / "platform.yaml").read_text(encoding="utf-8")
    assert survey(platforms / "siracusa", "platform.yaml", text, range(30), simulate)["bad-platform"] >= 10


def cost_theirs(path: Path) -> None:
    engine = with_costs(read_machine(path)[0])
    (found,) = search(GEMM, engine, MapOptions(order=(("M", None), ("N", None), ("K", None))))
    assert isfinite(found.cost.energy)
    assert isfinite(found.cost.cycles)


def cost_workload(workload: Workload) -> None:
    cost_all(list(workload.layers), "generic-array")


def cost_own_layers(path: Path) -> None:
    cost_workload(read_workload_file(path))


def cost_their_layers(path: Path) -> None:
    cost_workload(read_yaml_workload(path)[0])


def pin(path: Path) -> None:
    engine = with_costs(read_machine(path.with_name("machine.yaml"))[0])
    layer = equation_layer("O[d][k] += I[d][c] * W[c][k]", {"D": 2, "K": 4, "C": 4}, {"O": 16})
    for pinned in read_mappings(path):
        pinned.read(layer, engine)


@pytest.mark.parametrize(
    ("name", "text", "use"),
    [
        ("layers.yaml", LAYERS, cost_own_layers),
        ("theirs.yaml", THEIR_MACHINE, cost_theirs),
        ("old.yaml", OLD_MACHINE, cost_theirs),
        ("mapping.yaml", THEIR_MAPPING, read_mapping),
        ("workload.yaml", THEIR_LAYERS, cost_their_layers),
        ("pinned.yaml", MAPPINGS, pin),
    ],
)
def test_other_files(name: str, text: str, use: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "machine.yaml").write_text(OLD_MACHINE, encoding="utf-8")
    found = survey(tmp_path, name, text, range(30), use)
    assert sum(count for code, count in found.items() if code) >= 10
