"""A machine, a mapping and a workload as files for ZigZag."""

from __future__ import annotations

from pathlib import Path

MACHINE = """
name: small
memories:
  register:
    size: 16
    r_cost: 0.1
    w_cost: 0.1
    area: 2
    latency: 1
    operands: [O]
    ports:
      - {name: r_port_1, type: read, bandwidth_min: 16, bandwidth_max: 16, allocation: ["O, tl"]}
      - {name: w_port_1, type: write, bandwidth_min: 16, bandwidth_max: 16, allocation: ["O, fl"]}
      - {name: r_port_2, type: read, bandwidth_min: 16, bandwidth_max: 16, allocation: ["O, th"]}
      - {name: w_port_2, type: write, bandwidth_min: 16, bandwidth_max: 16, allocation: ["O, fh"]}
    served_dimensions: []
  buffer:
    size: 4096
    r_cost: 1
    w_cost: 2
    area: 5
    latency: 1
    operands: [I1, I2, O]
    ports:
      - {name: r_port_1, type: read, bandwidth_min: 8, bandwidth_max: 16, allocation: ["I1, tl", "I2, tl", "O, tl"]}
      - {name: w_port_1, type: write, bandwidth_min: 8, bandwidth_max: 16, allocation: ["O, fl"]}
    served_dimensions: [D1]
operational_array: {unit_energy: 0.5, unit_area: 1, dimensions: [D1], sizes: [2]}
"""

OLD_MACHINE = """
name: small
memories:
  register:
    size: 16
    r_cost: 0.1
    w_cost: 0.1
    area: 2
    latency: 1
    r_bw: 16
    w_bw: 16
    operands: [O]
    ports: [{tl: r_port_1, fl: w_port_1, th: r_port_2, fh: w_port_2}]
    served_dimensions: []
  buffer:
    size: 4096
    r_cost: 1
    w_cost: 2
    area: 5
    latency: 1
    r_bw: 16
    w_bw: 16
    min_r_granularity: 8
    min_w_granularity: 8
    operands: [I1, I2, O]
    ports: [{tl: r_port_1}, {tl: r_port_1}, {tl: r_port_1, fl: w_port_1}]
    served_dimensions: [D1]
operational_array: {unit_energy: 0.5, unit_area: 1, dimensions: [D1], sizes: [2]}
"""

MAPPING = """
- name: default
  spatial_mapping: {D1: ["K, 2"]}
  temporal_ordering: [[C, 4], [K, 2], [D, 2]]
  memory_operand_links: {O: O, W: I2, I: I1}
"""

WORKLOAD = """
- id: 0
  operator_type: Gemm
  equation: O[d][k]+=I[d][c]*W[c][k]
  loop_dims: [D, K, C]
  loop_sizes: [2, 4, 4]
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


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)
