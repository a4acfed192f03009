"""Formulas of kernel headers over many tiles at once, and the names that they may use."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from functools import reduce
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from tilewright.core.domain import Affine, Domain
from tilewright.machine.arithmetic import Number, compiled, evaluated
from tilewright.machine.kernel import predicate

Numbers = Any
"""A number, or an array of them."""

_FUNCTIONS: dict[str, Any] = {
    "__builtins__": {},
    "both": np.logical_and,
    "either": np.logical_or,
    "log": np.log,
    "max": np.maximum,
    "min": np.minimum,
}


class Names(dict[str, Numbers]):
    """Numbers of a call on a tile by name, worked out when asked for: `core.matching.tile_names` over many tiles.

    `sizes` are those of the dimensions, `extent` gives that of an operand's axis, `strided` operands may be parts of
    larger ones. `complete` turns false where a product of dimensions has no stride because they are not walked as one.
    `split` is the dimension that cores share: `X_sPART` are the elements of an operand between parts of two cores, each
    `part` of it long, also where `sizes` are those of what is left for the last core.
    `outside` is how far windows of the tile reach over both edges of an operand's axis, together `X_o1`; `padding` says
    which numbers are one of these, `pads_0` and the like.
    Operands of `whole` lie in their tensors, whose strides they have.
    """

    def __init__(
        self,
        domain: Domain,
        known: Mapping[str, Number],
        sizes: Mapping[str, Numbers],
        extent: Callable[[str, int], Numbers],
        strided: frozenset[str] = frozenset(),
        split: str = "",
        outside: Callable[[str, int], tuple[Numbers, Numbers]] | None = None,
        whole: Collection[str] = (),
        padding: Mapping[str, tuple[str, int, str]] = MappingProxyType({}),
    ) -> None:
        super().__init__(sizes)
        self._whole = whole
        self._walks: dict[str, tuple[dict[str, Numbers], dict[str, Numbers]]] = {}
        self._split = split
        self.part: Numbers = sizes.get(split, 0)
        self._strided = strided
        self._domain, self._known, self._sizes, self._extent = domain, known, sizes, extent
        self._outside, self._padding = outside, padding
        self.complete: Numbers = True

    def __missing__(self, name: str) -> Numbers:
        self[name] = found = self._find(name)
        return found

    def _find(self, name: str) -> Numbers:
        parts = self._domain.products.get(name)
        if parts is not None:
            return reduce(operator.mul, (self[part] for part in parts), 1)
        operand, _, rest = name.rpartition("_")
        if operand in self._domain.access and rest[:1] == "n" and rest[1:].isdigit():
            return self._extent(operand, int(rest[1:]))
        if operand in self._domain.access and rest == "sPART":
            return self._stride(operand, self._split) * self.part if self._split else 0
        if operand in self._domain.access and rest[:1] == "o" and rest[1:].isdigit():
            return sum(self._outside(operand, int(rest[1:]))) if self._outside else 0
        along = rest[1:].isdigit() or rest[1:] in {*self._domain.dims, *self._domain.products}
        if operand in self._domain.access and rest[:1] == "s" and along:
            return self._stride(operand, rest[1:])
        if name in self._padding and self._outside:
            operand, axis, side = self._padding[name]
            before, after = self._outside(operand, axis)
            # A window that is rounded up may reach further than the padding does.
            return before if side == "before" else np.minimum(after, self._known[name])
        return self._known[name]

    def _stride(self, operand: str, of: str) -> Numbers:
        if operand not in self._walks:
            self._walks[operand] = self._walk(operand)
        steps, linear = self._walks[operand]
        if of in steps:
            return steps[of]
        if of not in self._domain.products:
            return linear.get(of, 0)
        real = [part for part in self._domain.products[of] if self._domain.dims[part] > 1]
        for a, b in pairwise(real):
            walked = linear.get(a, 0) == linear.get(b, 0) * self[b]
            if operand in self._strided and b in linear:
                # A part of something larger is walked as one only where nothing of it is left out.
                walked = np.logical_and(walked, self[b] == self._domain.dims[b])
            self.complete = np.logical_and(self.complete, walked)
        return linear.get(real[-1], 0) if real else 0

    def _walk(self, operand: str) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
        """Elements between two along each axis of an operand, by its number, and along each dimension."""
        steps, linear = dict[str, Numbers](), dict[str, Numbers]()
        axes, whole = self._domain.access[operand], operand in self._whole
        step: Numbers = 1
        for number in reversed(range(len(axes))):
            steps[str(number)] = step
            axis = axes[number]
            if isinstance(axis, Affine) and axis.divisor == 1:
                for name, coefficient in axis.terms:
                    linear[name] = linear.get(name, 0) + step * coefficient
            if number:
                step = step * (self._domain.shapes[operand][number] if whole else self._extent(operand, number))
        return steps, linear


def evaluate(text: str, names: Names) -> Numbers:
    """The value of a formula, which may be an array; its text is checked."""
    return evaluated(compiled(text, arrays=True), _FUNCTIONS, names)


def condition(name: str, text: str, names: Names) -> Numbers:
    """Whether a predicate of a header holds: `core.kernel.holds` over many tiles."""
    names.complete = True
    found = evaluate(predicate(name, text), names)
    return np.logical_and(found, names.complete)
