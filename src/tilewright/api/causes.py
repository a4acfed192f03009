"""Why a layer is wrong, as far as that can be found out: by trying, and by what its wrong elements have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.api.locating import Fault
from tilewright.api.measuring import Building
from tilewright.api.reproducing import Reproducer, Trial
from tilewright.core.graph import Array
from tilewright.core.plan import Place, Plan

PLAIN = ("-O0", "-ffp-contract=off", "-fno-fast-math")
"""Flags by which a compiler does what the C says, and nothing else."""
MOST = 0.9
"""Of wrong elements: what they have in common."""


class LikelyCause(Struct, frozen=True):
    """A likely cause, in a few words, and what speaks for it."""

    what: str
    evidence: tuple[str, ...] = ()


class CauseSearch(Struct, frozen=True):
    """What is known of a program with a fault, and ways to know more."""

    plan: Plan
    fault: Fault
    reproducer: Reproducer
    trial: Trial
    told: tuple[str, ...]
    """By the checks of a simulator, or whatever stopped the program."""
    right_with: Callable[[Building], bool]
    """Whether the whole program is right when it is built so."""

    def cause(self) -> LikelyCause:
        """The first that holds of: overwritten or unawaited memory, flags of the compiler, the kernel."""
        fault, building = self.fault, self.trial.building
        if fault.overwritten:
            return LikelyCause("memory overwritten", self._overwritten())
        if fault.lost:
            return LikelyCause(
                "memory overwritten", (f"'{fault.tensor}' was right when it was made, and is not any more",)
            )
        if self.told:
            return LikelyCause("missing wait, or memory overwritten", self.told)
        flags = self._flags(building)
        if flags:
            return flags
        if self.reproducer.shows and self.reproducer.layers == 1:
            return LikelyCause(pattern(fault.got, fault.expected), self._kernel())
        evidence = "the layer is right alone, with the same operands: it did not find them, or not in time"
        return LikelyCause("missing wait, or memory overwritten", (evidence,))

    def _overwritten(self) -> tuple[str, ...]:
        fault, graph = self.fault, self.plan.graph
        makers = [n.label for n in graph.nodes if fault.overwritten in n.made]
        maker = f"when '{makers[0]}' had made it" if makers else "at first"
        found = [f"'{fault.overwritten}' was right {maker}, and something else when '{fault.layer}' read it"]
        others = _sharing(self.plan, fault.overwritten, fault.node.made[0])
        return (*found, *(f"'{name}' lies in the same bytes: {text}" for name, text in others[:4]))

    def _flags(self, building: Building) -> LikelyCause | None:
        """Whether it goes away with other flags."""
        for flag in building.flags:
            if self.right_with(replace(building, flags=tuple(f for f in building.flags if f != flag))):
                return LikelyCause("compiler flags", (f"without {flag} the result is right",))
        if building.flags and self.right_with(replace(building, flags=())):
            return LikelyCause("compiler flags", (f"without {' '.join(building.flags)} the result is right",))
        if self.right_with(replace(building, flags=(*building.flags, *PLAIN))):
            usual = f"{self.plan.platform.build['flags']} {' '.join(building.flags)}".strip()
            return LikelyCause("compiler flags", (f"with {' '.join(PLAIN)} behind {usual} the result is right",))
        return None

    def _kernel(self) -> tuple[str, ...]:
        steps = [i for i, node in enumerate(self.plan.graph.nodes) if node is self.fault.node]
        kernel = self.plan.choices[steps[0]].kernel if steps else None
        code = f"kernel {kernel.function} ({kernel.path.name})" if kernel else "the loop nest printed for it"
        return (f"the layer alone is wrong as well: {code}",)


def cause_in_passes(fault: Fault) -> LikelyCause:
    """A pass has changed what the network computes."""
    return LikelyCause(pattern(fault.got, fault.expected), (f"behind the pass '{fault.stage}' results are wrong",))


def cause_in_model(fault: Fault, by: str) -> LikelyCause:
    said = f"{fault.node.op}, as it is declared here, gives something else than {by} for the same operands"
    return LikelyCause("another arithmetic declared by the operator", (said,))


def _sharing(plan: Plan, name: str, reader: str) -> list[tuple[str, str]]:
    """Tensors that lie where another one does, and are made behind it, up to the layer that reads it."""
    made = {tensor: index for index, node in enumerate(plan.graph.nodes) for tensor in node.made}
    mine, types = plan.places.get(name), plan.graph.types
    if mine is None:
        return []
    found: list[tuple[str, str]] = []
    for other, place in plan.places.items():
        between = made.get(name, -1) < made.get(other, -1) <= made[reader] and other != reader
        if between and _overlap(mine, types[name].bytes, place, types[other].bytes):
            found.append((other, f"bytes {place.offset} to {place.offset + types[other].bytes} of {place.space}"))
    return found


def _overlap(one: Place, size: int, other: Place, others: int) -> bool:
    same = (one.space, one.index) == (other.space, other.index) and one.space not in ("constant", "input")
    return same and one.offset < other.offset + others and other.offset < one.offset + size


def pattern(got: Array, expected: Array) -> str:
    """What wrong elements have in common."""
    wrong = (got != expected) & ~((got != got) & (expected != expected))
    if not wrong.any():
        return "another arithmetic"
    with np.errstate(all="ignore"):
        left, right = got[wrong].astype(np.float64), expected[wrong].astype(np.float64)
        away = left - right
    if not np.isfinite(left).all() and np.isfinite(right).all():
        return "overflow: infinities or NaN that should not be there"
    if not np.isfinite(right).all():
        return "infinities or NaN are lost"
    whole = got.dtype.kind in "iub"
    if whole and np.all(np.abs(away) == 1):
        return "rounding: every wrong element is off by one"
    # Where results are clipped, several are the same.
    ends = [end for end in (expected.min(), expected.max()) if np.sum(expected == end) > 1]
    if _most(np.isin(right, ends)) and not _most(np.isin(expected, ends)):
        return "saturation: wrong elements are those that should be clipped"
    if got.dtype.kind in "iu" and _most(np.isin(left, [np.iinfo(got.dtype).min, np.iinfo(got.dtype).max])):
        return "saturation: wrong elements are clipped"
    side = _border(wrong)
    if side:
        return f"border: {side}"
    if wrong.all() and np.ptp(away) <= 1e-6 * max(float(np.abs(away).max()), 1e-30):
        return f"a constant: every element is off by {away[0]:.6g}"
    return "another arithmetic"


def _most(mask: Array) -> bool:
    return bool(mask.mean() >= MOST)


def _border(wrong: Array) -> str:
    """Where all wrong elements lie, if that is at the ends of an axis."""
    if wrong.mean() > 0.5:
        return ""
    for axis, extent in enumerate(wrong.shape):
        rows = np.flatnonzero(wrong.any(axis=tuple(other for other in range(wrong.ndim) if other != axis)))
        if extent > 2 and rows.size and set(rows.tolist()) <= {0, extent - 1}:
            ends = {0: "first", extent - 1: "last"}
            return f"all wrong elements are {' or '.join(ends[int(row)] for row in rows)} of axis {axis}"
    return ""
