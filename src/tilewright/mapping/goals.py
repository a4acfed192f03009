"""What is sought: the mapping of least latency, energy or energy-delay product, or all that no other one beats."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from math import inf
from typing import Literal

import numpy as np
from msgspec import Struct, field

from tilewright.mapping.tables import Flags, Floats, Problem

Objective = Literal["latency", "energy", "edp", "pareto"]
SAME = 1e-12
"""Costs that differ by less, relative to their size, are held to be equal: they are sums of rounded numbers."""


class Wanted(Struct, frozen=True):
    """What a mapping has to keep to."""

    latency: float = inf
    """Cycles, at most."""
    energy: float = inf
    utilisation: float = 0.0
    """The part of all units that is in use on average, at least."""
    room: Mapping[str, float] = field(default_factory=dict[str, float])
    """By memory: the part of it that tiles may take."""
    bandwidth: Mapping[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    """By memory and port: bits in a cycle that tiles may need on average."""

    def slowest(self, ideal: float) -> float:
        """Cycles, at most, that utilisation and latency allow, if `ideal` ones keep all units in use."""
        return min(self.latency, ideal / self.utilisation) if self.utilisation > 0 else self.latency

    def bits(self, problem: Problem, memory: int) -> float:
        """What tiles may take of a memory."""
        return problem.room(memory) * self.room.get(problem.engine.memories[memory].name, 1.0)


class Goal(Struct):
    """The best found so far, and what can still be better."""

    objective: Objective
    slow: float = inf
    """Mappings that take longer are not wanted."""
    high: float = inf
    """Nor are those that need more energy."""
    found: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """Latency and energy, by increasing latency; one, or for `pareto` all that no other one beats."""

    def key(self, energy: Floats, latency: Floats) -> tuple[Floats, Floats]:
        """What to look at first, and second."""
        if self.objective == "latency":
            return latency, energy
        if self.objective == "energy":
            return energy, latency
        return energy * latency, latency

    def rank(self, energy: float, latency: float) -> tuple[float, float]:
        """The same for one mapping."""
        first, second = self.key(np.array(energy), np.array(latency))
        return float(first), float(second)

    def hopeful(self, energy: Floats, latency: Floats) -> Flags:
        """Of mappings that cost at least so much: which can be better than what was found."""
        inside = (latency <= self.slow) & (energy <= self.high)
        if not self.found:
            return inside
        if self.objective == "pareto":
            return inside & ~self._beaten(energy, latency)
        best_latency, best_energy = self.found[0]
        first, second = self.key(energy, latency)
        best, runner = self.key(np.array(best_energy), np.array(best_latency))
        if self.objective == "edp":
            return inside & (first < best * (1 - SAME))
        ahead = first < best * (1 - SAME)
        level = first <= best * (1 + SAME)
        return inside & (ahead | (level & (second < runner * (1 - SAME))))

    def _beaten(self, energy: Floats, latency: Floats) -> Flags:
        """Whether something found is no worse in both."""
        latencies = np.array([found for found, _ in self.found])
        energies = np.minimum.accumulate(np.array([found for _, found in self.found]))
        place = np.searchsorted(latencies, latency * (1 + SAME), side="right")
        return (place > 0) & (energies[np.maximum(place, 1) - 1] <= energy * (1 + SAME))

    def offer(self, energy: float, latency: float) -> bool:
        """Takes a mapping if it is better than (`pareto`: not beaten by) what was found."""
        if not bool(self.hopeful(np.array(energy), np.array(latency))):
            return False
        if self.objective != "pareto":
            self.found = [(latency, energy)]
            return True
        kept = [one for one in self.found if one[0] < latency * (1 - SAME) or one[1] < energy * (1 - SAME)]
        kept.insert(bisect_left(kept, (latency, energy)), (latency, energy))
        self.found = kept
        return True

    def slowest(self, least_energy: float) -> float:
        """No mapping that takes longer is wanted any more, if none takes less energy than this."""
        if self.objective == "pareto" or not self.found:
            return self.slow
        latency, energy = self.found[0]
        if self.objective == "latency":
            return min(self.slow, latency * (1 + SAME))
        if self.objective == "edp":
            return min(self.slow, latency * energy / least_energy * (1 + SAME))
        return self.slow
