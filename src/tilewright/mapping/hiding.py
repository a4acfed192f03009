"""How much of the loads that come once can hide behind the work, at most, in one part of a problem's mappings.

Only what a port has left beside its other moves can be taken off such loads: no more than all cycles of the array's
work together, and no more than each load has beyond what must be there at the start. The original model takes the same
cycles off several loads at once: a step that brings a load down to its floor is taken off all longer ones as well, so
they end below nothing. Steps are bounded here with how many loads each is taken off.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tilewright.core.accelerator import FROM_HIGH, TO_LOW
from tilewright.mapping.batch import Place
from tilewright.mapping.parts import Part, Space
from tilewright.mapping.tables import Floats, MoveTable

End = tuple[int, int]
"""A port, and the position among its moves."""


@dataclass
class Sum:
    """A constant, and by place what each node adds."""

    constant: float = 0.0
    terms: dict[Place, Floats] = field(default_factory=dict[Place, Floats])

    def add(self, place: Place, values: Floats) -> None:
        self.terms[place] = self.terms[place] + values if place in self.terms else values

    def plus(self, other: Sum) -> Sum:
        result = Sum(self.constant + other.constant, dict(self.terms))
        for place, values in other.terms.items():
            result.add(place, values)
        return result


class Loads:
    """What does not depend on the part: cycles of the first load or last store at both ends of each link."""

    def __init__(self, space: Space) -> None:
        self.problem, evaluator = space.problem, space.evaluator
        self.moves = evaluator.moves
        self.busy: dict[End, Floats] = {}
        self.longest: dict[End, float] = {}
        """Of a tile that is the whole operand."""
        self.floor: dict[End, Floats] = {}
        """By node of the innermost tile: cycles that must have passed before the array begins, or the whole load."""
        self.raised: dict[End, float] = {}
        """By how much the floor can be above the whole load."""
        for port, moves in evaluator.moves.items():
            used = self.problem.ports[port][1]
            for position, move in enumerate(moves):
                end = (port, position)
                self.busy[end] = move.busy.astype(np.float64)
                self.longest[end] = float(move.busy[-1])
                floor = np.ceil(move.least / used.bits)
                self.raised[end] = max(0.0, float(floor.max()) - self.longest[end])
                whole = np.full_like(floor, self.longest[end])
                self.floor[end] = whole if used.exclusive else np.minimum(whole, floor)
        self.ends: dict[Place, tuple[End, ...]] = {
            (operand, level + 1): link.ends
            for operand, links in evaluator.links.items()
            for level, link in enumerate(links)
        }
        self.link = {link: np.maximum.reduce([self.busy[e] for e in ends]) for link, ends in self.ends.items() if ends}
        """Cycles of a link, if they do not hide."""

    def exclusive(self, port: int) -> bool:
        return self.problem.ports[port][1].exclusive

    def ignored(self, move: MoveTable) -> bool:
        """Sums that are read again are not waited for."""
        return self.problem.operands[move.operand].is_output and move.direction in (TO_LOW, FROM_HIGH)


class Hiding:
    """Loads of one part."""

    def __init__(self, loads: Loads, space: Space, part: Part) -> None:
        self._loads, self._space = loads, space
        self._corrected = space.problem.corrected
        self._once = {
            port: [i for i, move in enumerate(moves) if not loads.ignored(move) and space.once(part, move)]
            for port, moves in loads.moves.items()
        }
        self._open = frozenset((i, entry) for i, entries in enumerate(space.open(part)) for entry in entries)
        self._singles: dict[frozenset[Place], Sum] = {}

    def repeated(self, links: Iterable[Place]) -> Sum:
        """Cycles of links whose tile comes more than once: the first one does not hide."""
        known = self._open & self._loads.link.keys()
        return Sum(0.0, {link: self._loads.link[link] for link in links if link in known})

    def _that_hide(self, links: Iterable[Place]) -> frozenset[Place]:
        return frozenset(link for link in links if link not in self._open and link in self._loads.link)

    def single(self, links: Iterable[Place]) -> Sum:
        """Cycles of links whose tile comes once: what is left if the array works for ever."""
        mine = self._that_hide(links)
        if mine not in self._singles:
            self._singles[mine] = self._floors(mine) if self._corrected else self._stepped(mine)
        return self._singles[mine]

    def dips(self, links: Iterable[Place]) -> float:
        """How far below nothing links can come, each by itself."""
        return sum(min(0.0, self._least(self.single([link]))) for link in links)

    def beside(self, port: int, links: Iterable[Place]) -> tuple[Sum, float] | None:
        """Cycles of links that come once if at one port they hide only in cycles that it has left.

        Also the part of those cycles that can be taken off the links; nothing if none of them is at the port.
        """
        mine = self._that_hide(links)
        here = {link: end for link in mine for end in self._loads.ends[link] if end[0] == port}
        if not here or self._loads.exclusive(port):
            return None
        total = self.single(mine - here.keys()).plus(Sum(sum(self._loads.longest[end] for end in here.values())))
        if self._corrected:
            return total, 1.0
        steps = self._steps(port, frozenset(end[1] for end in here.values()))
        shares = [most / (place + 1) for place, (_, most, _) in enumerate(steps)]
        for place, (position, _, _) in enumerate(steps):
            total.constant -= self._loads.raised[port, position] * (place + 1) * (max(shares) - shares[place])
        return total, max(shares)

    def _least(self, total: Sum) -> float:
        return total.constant + sum(
            float(values[self._space.allowed(place)].min()) for place, values in total.terms.items()
        )

    def _put(self, total: Sum, operand: int, values: Floats) -> None:
        """Adds what depends on the innermost tile of an operand."""
        if (operand, 1) in self._open:
            total.add((operand, 1), values)
        else:
            total.constant += float(values[-1])

    def _floors(self, links: Iterable[Place]) -> Sum:
        """In the corrected model no load comes below its floor."""
        total = Sum()
        for link in links:
            self._put(total, link[0], np.maximum.reduce([self._loads.floor[end] for end in self._loads.ends[link]]))
        return total

    def _stepped(self, links: Iterable[Place]) -> Sum:
        """In the original model: loads less all steps that are taken off them, at the better end of each link."""
        groups: dict[frozenset[int], list[Place]] = {}
        for link in sorted(links):
            groups.setdefault(frozenset(port for port, _ in self._loads.ends[link]), []).append(link)
        total = Sum()
        for group in groups.values():
            choices = [self._at_ports([self._end(link, outer) for link in group]) for outer in (False, True)]
            total = total.plus(max(choices, key=self._least))
        return total

    def _end(self, link: Place, outer: bool) -> End:
        """One end of a link, the outer or the inner one where it has two."""
        moves = self._loads.moves
        return (max if outer else min)(self._loads.ends[link], key=lambda end: moves[end[0]][end[1]].level)

    def _at_ports(self, ends: Iterable[End]) -> Sum:
        by_port: dict[int, set[int]] = {}
        for port, position in ends:
            by_port.setdefault(port, set()).add(position)
        total = Sum()
        for port, chosen in by_port.items():
            total.constant += sum(self._loads.longest[port, position] for position in chosen)
            if self._loads.exclusive(port):
                continue
            for position, most, least in self._steps(port, frozenset(chosen)):
                total.constant -= most * self._loads.longest[port, position]
                self._put(total, self._loads.moves[port][position].operand, least * self._loads.floor[port, position])
        return total

    def _steps(self, port: int, chosen: frozenset[int]) -> list[tuple[int, int, int]]:
        """Loads from the longest to the shortest: off how many chosen ones its step is taken, at most and at least.

        Among loads of equal length the order depends on their floors, which are not known.
        """
        busy = {position: self._loads.longest[port, position] for position in self._once[port]}
        order = sorted(busy, key=lambda position: (-busy[position], position not in chosen))
        found: list[tuple[int, int, int]] = []
        until = 0
        for position in order:
            until += position in chosen
            longer = sum(other in chosen for other in order if busy[other] > busy[position])
            found.append((position, until, longer + (position in chosen)))
        return found
