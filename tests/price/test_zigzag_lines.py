"""The cost of given mappings is what ZigZag says, in every quantity that it states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isclose

import pytest
from msgspec.structs import replace

from price.zigzag_lines import (
    DIRECTION,
    Line,
    machine,
    sampled,
    searched,
    stated_layer,
    stated_spatial,
    stated_temporal,
    workload,
)
from tilewright.core.mapping import Loop
from tilewright.price.array import ArrayCost, areas, clock_period, evaluate
from tilewright.price.array_nest import loops_by_memory

pytestmark = pytest.mark.cases
IMC_PARTS = {
    "local_bl_precharging": "",
    "cells": "",
    "dacs": "converters to analog",
    "adcs": "converters to digital",
    "mults": "multipliers",
    "analog_bl_addition": "bit lines",
    "adders_regular": "adder trees",
    "adders_pv": "place-value adders",
    "accumulators": "accumulators",
}
Pair = tuple[str, float, float]


def cost(line: Line) -> ArrayCost:
    layer, engine = stated_layer(line), machine(line["accelerator"])
    return evaluate(layer, engine, stated_spatial(line["user_spatial_mapping"]), stated_temporal(line))


def energies(line: Line, ours: ArrayCost) -> Iterator[Pair]:
    moves = {(move.operand, move.level, move.direction): move for move in ours.moves}
    for operand in ours.layer.operands:
        name = operand.name
        for level, words in enumerate(line["memory_word_access"][name]):
            for direction, count in words.items():
                move = moves.get((name, level, DIRECTION[direction]))
                yield f"words {name}{level} {direction}", move.words if move else 0, count
                spent = line["mem_energy_breakdown_further"][name][level][direction]
                yield f"energy {name}{level} {direction}", move.energy if move else 0.0, spent
    yield "memory energy", ours.memory_energy, line["mem_energy"]
    yield "unit energy", ours.unit_energy, line["mac_energy"]
    yield "energy", ours.energy, line["energy"]
    for part, energy in line.get("mac_energy_breakdown", {}).items():
        yield part, ours.unit_energies.get(IMC_PARTS[part], 0.0), energy


def latencies(line: Line, ours: ArrayCost) -> Iterator[Pair]:
    found = ours.latency
    yield "ideal cycles", found.ideal, line["ideal_cycle"]
    yield "cycles of computing", found.computing, line["ideal_temporal_cycle"]
    yield "stall", found.stall, line["stall_slack_comb"]
    yield "loading", found.loading, line["onloading"]
    yield "storing", found.storing, line["offloading"]
    yield "latency", ours.cycles, line["latency2"]
    yield "utilisation", ours.utilisation, line["mac_util2"]
    yield "spatial utilisation", ours.spatial_utilisation, line["mac_spatial_util"]
    for which in ("data_loading_cc_per_op", "data_offloading_cc_per_op"):
        for name, times in line[which].items():
            for key, (cycles, _) in times.items():
                level, direction = re.fullmatch(rf"{name}(\d+)_(\w+)", key).groups()  # pyright: ignore[reportOptionalMemberAccess]
                yield key, found.loads.get((name, int(level), DIRECTION[direction]), 0.0), cycles


def occupations(line: Line, ours: ArrayCost) -> Iterator[Pair]:
    for operand in ours.layer.operands:
        name = operand.name
        for level, part in enumerate(line["mem_utili_individual"][name]):
            yield f"part of memory {name}{level}", ours.occupied(name)[level], part
        for level, double in enumerate(line["double_buffer"][name]):
            yield f"double buffer {name}{level}", ours.double_buffered[name, level], double


def stalls(line: Line, ours: ArrayCost) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """By port; memories are not named, ports without stall or slack not always listed."""
    found = sorted((port, cycles) for (_, port), cycles in ours.latency.stalls.items() if cycles)
    stated = sorted(
        (port, cycles) for ports in line["stall_slack_per_port"] for port, cycles in ports.items() if cycles
    )
    return found, stated


def unrolled(entries: list[list[Loop]] | tuple[tuple[Loop, ...], ...]) -> list[list[tuple[str, float]]]:
    return [sorted((dim, round(steps, 2)) for dim, steps in entry if steps != 1) for entry in entries]


def check(line: Line) -> None:
    ours = cost(line)
    where = f"{line['workload']} on {line['accelerator']}, layer {line['id']}"
    for what, found, stated in (*energies(line, ours), *latencies(line, ours), *occupations(line, ours)):
        assert isclose(found, stated, rel_tol=1e-9, abs_tol=1e-12), f"{where}: {what} is {stated}, not {found}"
    found, stated = stalls(line, ours)
    assert found == stated, where
    versions = {
        "spatial_mapping": ours.spatial.fractional(ours.layer),
        "spatial_mapping_int": ours.spatial.integral(ours.layer),
    }
    for key, loops in versions.items():
        for operand in ours.layer.operands:
            assert unrolled(loops_by_memory(ours.engine, operand.slot, loops)) == unrolled(line[key][operand.name]), (
                where
            )


def test_sampled_mappings() -> None:
    lines = list(sampled())
    assert len(lines) == 495
    for line in lines:
        check(line)


def test_mappings_that_searches_found() -> None:
    for line in searched():
        check(line)


def test_layers_are_read_as_stated() -> None:
    """From the files of workloads and mappings, the same layers come out."""
    for line in (*sampled(), *searched()):
        read = next(x for x in workload(line["workload"], line["mapping"]).layers if x.name == line["name"])
        bare = replace(read, inputs=tuple(replace(operand, sources=()) for operand in read.inputs), equation="")
        stated = replace(stated_layer(line), equation="")
        assert bare == stated
        assert list(bare.dims) == list(stated.dims)


def test_clock_and_area_of_computing_in_memory() -> None:
    lines = [line for line in sampled() if "tclk" in line]
    assert lines
    for line in lines:
        engine = machine(line["accelerator"])
        assert isclose(clock_period(engine) or 0.0, line["tclk"], rel_tol=1e-9)
        assert isclose(sum(areas(engine).values()), line["area_total"], rel_tol=1e-9)
        for part, area in line["area_breakdown"].items():
            assert isclose(areas(engine).get(IMC_PARTS[part], 0.0), area, rel_tol=1e-9), part
