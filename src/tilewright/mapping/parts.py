"""Parts of a problem's mappings: which operands lie whole in which memories.

A tile that is a whole operand comes once, and in what time is left beside others; how much of that can hide depends on
all tiles that do so at a port. Within a part it is known which ones these are, so bounds are sharp there, and places
whose tile is whole need not be searched.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from tilewright.mapping.batch import Evaluator, Place
from tilewright.mapping.goals import Wanted
from tilewright.mapping.tables import Flags, Floats, MoveTable, room

Part = tuple[int, ...]
"""By operand: the first entry of its nest at which the tile is the whole operand; those above it are whole too."""


class Space:
    """All mappings of a problem, and their parts."""

    def __init__(self, evaluator: Evaluator, wanted: Wanted) -> None:
        self.evaluator, self.problem, self.wanted = evaluator, evaluator.problem, wanted
        self.places: tuple[tuple[int, ...], ...] = tuple(
            tuple(range(1 if table.is_output else 0, table.depth)) for table in self.problem.operands
        )
        self._rooms: dict[tuple[int, int], Floats] = {}
        self._allowed: dict[Place, Flags] = {}

    def parts(self) -> list[Part]:
        """Those that can hold a mapping."""
        choices = [
            [first for first in (*entries, table.depth) if self._possible(table.index, first)]
            for table, entries in zip(self.problem.operands, self.places, strict=True)
        ]
        return [part for part in product(*choices) if self._has_room(part)]

    def whole(self, part: Part) -> list[Place]:
        """Places whose tile is the whole operand."""
        return [(i, entry) for i, entries in enumerate(self.places) for entry in entries if entry >= part[i]]

    def open(self, part: Part) -> tuple[tuple[int, ...], ...]:
        """By operand: entries that are still to be cut."""
        return tuple(tuple(e for e in entries if e < part[i]) for i, entries in enumerate(self.places))

    def once(self, part: Part, move: MoveTable) -> bool:
        """Whether a move happens a single time."""
        if move.entry or not self.problem.operands[move.operand].is_output:
            return move.entry >= part[move.operand]
        return self.problem.steps == 1

    def least_energy(self, part: Part) -> float:
        """What any mapping of a part needs at least."""
        total = self.problem.fixed_energy
        for operand, entries in enumerate(self.places):
            for entry in entries:
                energy = self.problem.operands[operand].entries[entry].energy
                if entry >= part[operand]:
                    total += float(energy[-1])
                else:
                    total += float(energy[:-1][self.allowed((operand, entry))[:-1]].min())
        return total

    def _possible(self, operand: int, first: int) -> bool:
        """Whether tiles from an entry on can be whole, and those below can be less."""
        return all(
            bool(allowed[-1] if entry >= first else allowed[:-1].any())
            for entry in self.places[operand]
            for allowed in [self.allowed((operand, entry))]
        )

    def _has_room(self, part: Part) -> bool:
        for memory, users in self.problem.memories.items():
            taken = 0.0
            for operand, level in users:
                rooms = self._own_room(operand, level)
                whole = level + 1 >= part[operand]
                taken += float(rooms[-1] if whole else rooms[:-1].min())
            if taken > self.wanted.bits(self.problem, memory):
                return False
        return True

    def allowed(self, place: Place) -> Flags:
        """Nodes at which a place can be cut if the others take as little room as they can."""
        if place not in self._allowed:
            self._allowed[place] = self._find_allowed(*place)
        return self._allowed[place]

    def _find_allowed(self, operand: int, entry: int) -> Flags:
        table = self.problem.operands[operand]
        found = table.entries[entry].allowed
        if not entry:
            return found
        memory = table.memories[entry - 1]
        taken = self._own_room(operand, entry - 1)
        for other, level in self.problem.memories[memory]:
            if other != operand:
                taken = taken + self.least_room(other, level)[0]
        return found & (taken <= self.wanted.bits(self.problem, memory))

    def _own_room(self, operand: int, level: int) -> Floats:
        """By node: bits of a tile that is cut there, if it is as narrow as it can be."""
        nodes = np.arange(self.problem.lattice.size)
        return room(self.problem.operands[operand], level, nodes, nodes)

    def least_room(self, operand: int, level: int) -> Floats:
        """By node: bits of a tile that is cut there or further out, if it is as narrow as it can be."""
        if (operand, level) not in self._rooms:
            taken = self._own_room(operand, level)
            if level == self.problem.operands[operand].depth - 1:
                taken[:] = taken[-1]
            self._rooms[operand, level] = self.onwards(taken[None])[0]
        return self._rooms[operand, level]

    def onwards(self, values: Floats) -> Floats:
        """By row and node: the least at the node and all that can follow."""
        result = values.copy()
        inner = result.size // len(values)
        for steps in self.problem.lattice.shape:
            inner //= steps
            grid = result.reshape(-1, steps, inner)
            for step in range(steps - 2, -1, -1):
                np.minimum(grid[:, step], grid[:, step + 1], out=grid[:, step])
        return result
