"""Results under the names that ZigZag gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.core.workload import Layer
from tilewright.machine.array import FROM_HIGH, FROM_LOW, TO_HIGH, TO_LOW
from tilewright.price.array import ArrayCost, areas, clock_period
from tilewright.price.array_moves import ArrayMove

DIRECTIONS = {
    "rd_out_to_low": TO_LOW,
    "wr_in_by_low": FROM_LOW,
    "rd_out_to_high": TO_HIGH,
    "wr_in_by_high": FROM_HIGH,
}
Breakdown = dict[str, list[float]]


class CostModelEvaluation:
    """The cost of one layer; `cost` is the whole of it."""

    def __init__(self, cost: ArrayCost) -> None:
        self.cost = cost
        self.layer: Layer = cost.layer
        latency = cost.latency
        self.energy_total = cost.energy
        self.mem_energy = cost.memory_energy
        self.mac_energy = cost.unit_energy
        self.ideal_cycle = latency.ideal
        self.ideal_temporal_cycle = latency.computing
        self.stall_slack_comb = latency.stall
        self.data_onloading_cycle = latency.loading
        self.data_offloading_cycle = latency.storing
        self.latency_total0 = latency.computing + latency.stall
        self.latency_total1 = self.latency_total0 + latency.loading
        self.latency_total2 = latency.total
        self.mac_spatial_utilization = cost.spatial_utilisation
        self.mac_utilization0 = latency.ideal / self.latency_total0
        self.mac_utilization1 = latency.ideal / self.latency_total1
        self.mac_utilization2 = cost.utilisation
        self.memory_word_access = _by_direction(cost, lambda move: move.words)
        self.mem_energy_breakdown_further = _by_direction(cost, lambda move: move.energy)
        self.mem_energy_breakdown: Breakdown = {
            operand: [sum(level.values()) for level in levels]
            for operand, levels in self.mem_energy_breakdown_further.items()
        }
        self.mem_utili_individual = {o.name: list(cost.occupied(o.name)) for o in cost.layer.operands}
        self.tclk = clock_period(cost.engine)
        self.area_total = sum(areas(cost.engine).values())

    def __repr__(self) -> str:
        return f"CostModelEvaluation({self.layer.name}, {self.cost.engine.name})"


class CumulativeEvaluation:
    """The sum over all layers, which run one after another."""

    def __init__(self, costs: Sequence[CostModelEvaluation]) -> None:
        self.energy_total = sum(cost.energy_total for cost in costs)
        self.mem_energy = sum(cost.mem_energy for cost in costs)
        self.mac_energy = sum(cost.mac_energy for cost in costs)
        self.ideal_cycle = sum(cost.ideal_cycle for cost in costs)
        self.ideal_temporal_cycle = sum(cost.ideal_temporal_cycle for cost in costs)
        self.latency_total0 = sum(cost.latency_total0 for cost in costs)
        self.latency_total1 = sum(cost.latency_total1 for cost in costs)
        self.latency_total2 = sum(cost.latency_total2 for cost in costs)
        self.mac_spatial_utilization = self.ideal_cycle / self.ideal_temporal_cycle
        self.mac_utilization0 = self.ideal_cycle / self.latency_total0
        self.mac_utilization1 = self.ideal_cycle / self.latency_total1
        self.mac_utilization2 = self.ideal_cycle / self.latency_total2
        self.mem_energy_breakdown: Breakdown = {}
        for cost in costs:
            for operand, levels in cost.mem_energy_breakdown.items():
                added = self.mem_energy_breakdown.setdefault(operand, [])
                added.extend([0.0] * (len(levels) - len(added)))
                for level, energy in enumerate(levels):
                    added[level] += energy


def _by_direction(cost: ArrayCost, value: Callable[[ArrayMove], float]) -> dict[str, list[dict[str, float]]]:
    moves = {(move.operand, move.level, move.direction): move for move in cost.moves}
    return {
        operand.name: [
            {
                name: value(moves[operand.name, level, direction]) if (operand.name, level, direction) in moves else 0.0
                for name, direction in DIRECTIONS.items()
            }
            for level in range(cost.nests[operand.name].depth)
        ]
        for operand in cost.layer.operands
    }


def complete(result: CostModelEvaluation) -> dict[str, Any]:
    """What a file of one layer says."""
    cost = result.cost
    levels = {o.name: [memory.name for memory in cost.engine.levels(o.slot)] for o in cost.layer.operands}
    return {
        "outputs": {
            "memory": {"utilization": result.mem_utili_individual, "word_accesses": result.memory_word_access},
            "energy": {
                "energy_total": result.energy_total,
                "operational_energy": result.mac_energy,
                "operational_energy_breakdown": dict(cost.unit_energies),
                "memory_energy": result.mem_energy,
                "memory_energy_breakdown_per_level": result.mem_energy_breakdown,
                "memory_energy_breakdown_per_level_per_operand": result.mem_energy_breakdown_further,
            },
            "latency": {
                "data_onloading": result.data_onloading_cycle,
                "computation": result.latency_total0,
                "data_offloading": result.data_offloading_cycle,
                "computation_breakdown": {
                    "mac_computation": result.ideal_temporal_cycle,
                    "memory_stalling": result.stall_slack_comb,
                },
            },
            "spatial": {
                "mac_utilization": {
                    "ideal": result.mac_spatial_utilization,
                    "stalls": result.mac_utilization0,
                    "stalls_onloading": result.mac_utilization1,
                    "stalls_onloading_offloading": result.mac_utilization2,
                }
            },
        },
        "inputs": {
            "accelerator": {"name": cost.engine.name, "memory_levels": levels},
            "layer": {
                "name": cost.layer.name,
                "type": cost.layer.kind,
                "equation": cost.layer.equation,
                "loop_dimensions": dict(cost.layer.dims),
            },
            "spatial_mapping": {array: dict(loops) for array, loops in cost.spatial.loops.items()},
            "temporal_mapping": {
                o.name: [cost.temporal.at(o.name, level) for level in range(cost.nests[o.name].depth)]
                for o in cost.layer.operands
            },
        },
    }
