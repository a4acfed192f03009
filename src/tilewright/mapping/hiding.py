"""How much of the loads that come once can hide behind the work, at most, in one part of a problem's mappings.

Only what a port has left beside its other moves can be taken off such loads: no more than all cycles of the array's
work together, and no more than each load has beyond what must be there at the start. The original model takes the same
cycles off several loads at once: a step that brings a load down to its floor is taken off all longer ones as well, so
they end below nothing. Steps are bounded here with how many loads each is taken off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from tilewright.machine.array import FROM_HIGH, TO_LOW
from tilewright.mapping.batch import Place
from tilewright.mapping.parts import Part, Space
from tilewright.mapping.tables import Floats, MoveTable

End = tuple[int, int]
"""A port, and the position among its moves."""
Weights = Mapping[Place, float]
"""Links, and how much of their cycles counts in a sum."""


class LinearSum(Struct):
    """A constant, and by place what each node adds."""

    constant: float = 0.0
    terms: dict[Place, Floats] = field(default_factory=dict[Place, Floats])

    def add(self, place: Place, values: Floats) -> None:
        self.terms[place] = self.terms[place] + values if place in self.terms else values

    def plus(self, other: LinearSum, share: float = 1.0) -> LinearSum:
        """With another one, or a share of it."""
        result = LinearSum(self.constant + share * other.constant, dict(self.terms))
        for place, values in other.terms.items():
            result.add(place, values if share == 1.0 else share * values)
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

        self._later: dict[int, Floats] = {}
        self._outer = sorted({max(ends, key=self.level)[0] for ends in self.ends.values() if ends})
        """Ports at the outer ends of links."""

    def level(self, end: End) -> int:
        return self.moves[end[0]][end[1]].level

    def least_latency(self, space: Space, part: Part) -> float:
        """What any mapping of a part takes at least: the work, less what loads hide twice.

        A link is as long as its longer end, so it cannot be further below nothing than its outer end.
        """
        if self.problem.corrected:
            return self.problem.computing
        twice = 0.0
        for port in self._outer:
            once = [
                self.longest[port, position]
                for position, move in enumerate(self.moves[port])
                if not self.ignored(move) and space.once(part, move)
            ]
            if not self.exclusive(port):
                twice += sum(place * cycles for place, cycles in enumerate(sorted(once, reverse=True)))
        return self.problem.computing - twice

    def later(self, move: MoveTable) -> Floats:
        """By node: cycles that a move which comes again needs of its port beside the work, at least."""
        key = id(move)
        if key not in self._later:
            problem = self.problem
            average = np.ceil(move.average / problem.cycles) / problem.ports[move.port][1].bits * problem.computing
            self._later[key] = np.minimum(average, move.busy * (problem.times - 1.0))
        return self._later[key]

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
        self._singles: dict[frozenset[tuple[Place, float]], LinearSum] = {}

    def repeated(self, links: Weights) -> LinearSum:
        """Cycles of links whose tile comes more than once: the first one does not hide."""
        known = self._open & self._loads.link.keys()
        return LinearSum(0.0, {link: part * self._loads.link[link] for link, part in links.items() if link in known})

    def _that_hide(self, links: Weights) -> dict[Place, float]:
        return {k: part for k, part in links.items() if k not in self._open and k in self._loads.link}

    def single(self, links: Weights) -> LinearSum:
        """Cycles of links whose tile comes once: what is left if the array works for ever."""
        mine = self._that_hide(links)
        key = frozenset(mine.items())
        if key not in self._singles:
            self._singles[key] = self._floors(mine) if self._corrected else self._stepped(mine)
        return self._singles[key]

    def dips(self, links: Weights) -> float:
        """How far below nothing links can come, each by itself."""
        return sum(min(0.0, self._least(self.single({link: part}))) for link, part in links.items())

    def ports(self, links: Weights) -> list[int]:
        """Where links that come once have an end and can hide."""
        found = {port for link in self._that_hide(links) for port, _ in self._loads.ends[link]}
        return sorted(port for port in found if not self._loads.exclusive(port))

    def beside(self, port: int, links: Weights) -> list[tuple[LinearSum, float]]:
        """Cycles of links that come once if at one port they hide only in cycles that it has left.

        Each with the part of those cycles that is to be taken off besides. What is taken off a sum is never above some
        part of all cycles, and in full what counts more than that.
        """
        mine = self._that_hide(links)
        here = {end: part for link, part in mine.items() for end in self._loads.ends[link] if end[0] == port}
        others = {k: part for k, part in mine.items() if all(end not in here for end in self._loads.ends[k])}
        total = self.single(others).plus(LinearSum(sum(part * self._loads.longest[end] for end, part in here.items())))
        if self._corrected:
            return [(self._besides(total, here, rate), rate) for rate in sorted(set(here.values()))]
        steps = self._steps(port, {end[1]: part for end, part in here.items()})
        shares = [(port, position, most / (place + 1)) for place, (position, most, _) in enumerate(steps)]
        return [
            (total.plus(LinearSum(-self._stepped_besides(shares, rate))), rate)
            for rate in sorted({share for _, _, share in shares})
        ]

    def _besides(self, total: LinearSum, here: Mapping[End, float], rate: float) -> LinearSum:
        """Less all that can be taken off loads that count for more than a rate."""
        result = total.plus(LinearSum())
        for end, part in here.items():
            if part > rate:
                spare = self._loads.longest[end] - self._loads.floor[end]
                self._put(result, self._loads.moves[end[0]][end[1]].operand, (rate - part) * spare)
        return result

    def _stepped_besides(self, shares: Sequence[tuple[int, int, float]], rate: float) -> float:
        """The same for steps, and what floors above whole loads give back where less counts."""
        total = 0.0
        for place, (port, position, share) in enumerate(shares):
            cycles = self._loads.longest[port, position] if share > rate else self._loads.raised[port, position]
            total += cycles * (place + 1) * abs(share - rate)
        return total

    def _least(self, total: LinearSum) -> float:
        return total.constant + sum(
            float(values[self._space.allowed(place)].min()) for place, values in total.terms.items()
        )

    def _put(self, total: LinearSum, operand: int, values: Floats) -> None:
        """Adds what depends on the innermost tile of an operand."""
        if (operand, 1) in self._open:
            total.add((operand, 1), values)
        else:
            total.constant += float(values[-1])

    def _floors(self, links: Weights) -> LinearSum:
        """In the corrected model no load comes below its floor."""
        total = LinearSum()
        for link, part in links.items():
            floors = [self._loads.floor[end] for end in self._loads.ends[link]]
            self._put(total, link[0], part * np.maximum.reduce(floors))
        return total

    def _stepped(self, links: Weights) -> LinearSum:
        """In the original model: loads less all steps that are taken off them, at the better end of each link."""
        groups: dict[frozenset[int], list[Place]] = {}
        for link in sorted(links):
            groups.setdefault(frozenset(port for port, _ in self._loads.ends[link]), []).append(link)
        total = LinearSum()
        for group in groups.values():
            choices = [
                self._at_ports([(self._end(link, outer), links[link]) for link in group]) for outer in (False, True)
            ]
            total = total.plus(max(choices, key=self._least))
        return total

    def _end(self, link: Place, outer: bool) -> End:
        """One end of a link, the outer or the inner one where it has two."""
        return (max if outer else min)(self._loads.ends[link], key=self._loads.level)

    def _at_ports(self, ends: Sequence[tuple[End, float]]) -> LinearSum:
        by_port: dict[int, dict[int, float]] = {}
        for (port, position), part in ends:
            by_port.setdefault(port, {})[position] = part
        total = LinearSum()
        for port, chosen in by_port.items():
            total.constant += sum(part * self._loads.longest[port, position] for position, part in chosen.items())
            if self._loads.exclusive(port):
                continue
            for position, most, least in self._steps(port, chosen):
                total.constant -= most * self._loads.longest[port, position]
                self._put(total, self._loads.moves[port][position].operand, least * self._loads.floor[port, position])
        return total

    def _steps(self, port: int, chosen: Mapping[int, float]) -> list[tuple[int, float, float]]:
        """Loads from the longest to the shortest: how much counts of what its step is taken off, at most and at least.

        Among loads of equal length the order depends on their floors, which are not known.
        """
        busy = {position: self._loads.longest[port, position] for position in self._once[port]}
        order = sorted(busy, key=lambda position: (-busy[position], -chosen.get(position, 0.0)))
        found: list[tuple[int, float, float]] = []
        until = 0.0
        for position in order:
            own = chosen.get(position, 0.0)
            until += own
            longer = sum(part for other, part in chosen.items() if busy[other] > busy[position])
            found.append((position, until, longer + own))
        return found
