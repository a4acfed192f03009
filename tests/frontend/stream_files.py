"""A machine of two cores in Stream's files."""

from __future__ import annotations

from pathlib import Path

CORE = """\
name: some core
type: compute
operational_array: {unit_energy: 0.04, unit_area: 1, dimensions: [D1, D2], sizes: [8, 4]}
dataflows:
  - {D1: ["OX, 8"], D2: ["K, 4"]}
memories:
  weights:
    size: 4096
    r_cost: 10
    w_cost: 12
    area: 0
    latency: 1
    operands: [I2]
    served_dimensions: [D1, D2]
    ports:
      - {name: r, type: read, bandwidth_min: 64, bandwidth_max: 64, allocation: ["I2, tl"]}
      - {name: w, type: write, bandwidth_min: 32, bandwidth_max: 32, allocation: ["I2, fh"]}
  data:
    size: 8192
    r_cost: 20
    w_cost: 22
    area: 0
    latency: 1
    operands: [I1, O]
    served_dimensions: [D1, D2]
    ports:
      - name: rw
        type: read_write
        bandwidth_min: 64
        bandwidth_max: 64
        allocation: ["I1, tl", "I1, fh", "O, tl", "O, fl", "O, th", "O, fh"]
"""
OUTSIDE = """\
name: offchip
type: memory
operational_array: {unit_energy: 0, unit_area: 0, dimensions: [D1, D2], sizes: [0, 0]}
memories:
  dram:
    size: 4294967296
    r_cost: 100
    w_cost: 150
    area: 0
    latency: 1
    operands: [I1, I2, O]
    served_dimensions: [D1, D2]
    ports:
      - {name: rw, type: read_write, bandwidth_min: 64, bandwidth_max: 64, allocation: ["I1, fh"]}
"""
TWO = """\
name: two
cores:
  0: ./cores/core.yaml
  1: ./cores/core.yaml
  2: ./cores/outside.yaml
offchip_core_id: 2
unit_energy_cost: 16
core_connectivity:
  - {type: link, cores: [0, 1], bandwidth: 32, unit_energy_cost: 8}
  - {type: bus, cores: [0, 1, 2], bandwidth: 64}
"""


def write_two(folder: Path, text: str = TWO) -> Path:
    """Writes the files of the cores beside the one that names them."""
    (folder / "cores").mkdir()
    (folder / "cores" / "core.yaml").write_text(CORE, encoding="utf-8")
    (folder / "cores" / "outside.yaml").write_text(OUTSIDE, encoding="utf-8")
    path = folder / "two.yaml"
    path.write_text(text, encoding="utf-8")
    return path
