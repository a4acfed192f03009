"""Results of ZigZag, one layer with one mapping at a time, as values of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from support import cases_folder
from tilewright.core.equation import LayerText, read_layer
from tilewright.core.mapping import SpatialMapping, TemporalMapping
from tilewright.core.workload import Layer, Workload
from tilewright.frontend.zigzag_machine import read_machine
from tilewright.frontend.zigzag_mapping import MappingFile, read_mapping
from tilewright.frontend.zigzag_onnx import read_onnx_workload
from tilewright.frontend.zigzag_workload import read_yaml_workload
from tilewright.machine.array import FROM_HIGH, FROM_LOW, TO_HIGH, TO_LOW, ArrayEngine

DIRECTION = {
    "rd_out_to_low": TO_LOW,
    "wr_in_by_low": FROM_LOW,
    "rd_out_to_high": TO_HIGH,
    "wr_in_by_high": FROM_HIGH,
}
Line = dict[str, Any]


def folder() -> Path:
    top = cases_folder()
    assert top is not None
    return top / "zigzag"


def sampled() -> Iterator[Line]:
    """The sampled mappings of all pairs of workload and machine."""
    for text in (folder() / "sweep.jsonl").read_text().splitlines():
        yield json.loads(text)


def searched() -> Iterator[Line]:
    """The best mapping of each layer of each search."""
    for run in runs():
        for layer in run["layers"]:
            yield {**layer, **{key: run[key] for key in ("accelerator", "workload", "mapping", "tm_type", "flags")}}


def runs() -> Iterator[Line]:
    for text in (folder() / "runs.jsonl").read_text().splitlines():
        yield json.loads(text)


@cache
def machine(path: str) -> ArrayEngine:
    return read_machine(folder() / path)[0]


@cache
def mapping(path: str) -> MappingFile:
    return read_mapping(folder() / path)[0]


@cache
def workload(path: str, mapped: str) -> Workload:
    file = folder() / path
    found = read_onnx_workload(file) if file.suffix == ".onnx" else read_yaml_workload(file)[0]
    return mapping(mapped).linked(found)


def stated_layer(line: Line) -> Layer:
    """The layer as the line states it, not as its files do."""
    padding = {
        axis: (int(before), int(after))
        for axis, before, after in re.findall(r"(\w+): \((\d+), (\d+)\)", line["padding"])
    }
    return read_layer(
        LayerText(
            name=line["name"],
            kind=line["type"],
            equation=line["equation"],
            dims=line["dims"],
            relations=tuple(line["dim_relations"]),
            bits=line["precision"],
            constants=frozenset(line["constant_operands"]),
            slots=line["mem_operand_links"],
            axis_sizes={axis: int(size) for axis, size in line["pr_dims"].items()},
            padding=padding,
        )
    )


def stated_spatial(text: str) -> SpatialMapping:
    """`{D1: {C: 3}, D2: {K: 32}}`."""
    loops = {
        array: tuple((dim, int(steps)) for dim, steps in re.findall(r"(\w+): (\d+)", inside))
        for array, inside in re.findall(r"(\w+): \{([^{}]*)\}", text)
    }
    return SpatialMapping(loops)


def stated_temporal(line: Line) -> TemporalMapping:
    levels: dict[str, list[list[tuple[str, int]]]] = line["temporal_mapping_origin"]
    order = tuple((dim, steps) for level in next(iter(levels.values())) for dim, steps in level)
    cuts = {
        operand: tuple(sum(len(level) for level in found[: index + 1]) for index in range(len(found)))
        for operand, found in levels.items()
    }
    return TemporalMapping(order, cuts)
