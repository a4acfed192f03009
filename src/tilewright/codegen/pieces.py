"""What all parts of a program share: C functions, emitted once each, and constants as the kernels want them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

import numpy as np
from msgspec.structs import replace

from tilewright.codegen.pack import pack
from tilewright.core.graph import Array, State
from tilewright.core.plan import CONSTANT_ALIGNMENT, Place, Plan
from tilewright.core.program import CFunction, Constant
from tilewright.machine.kernel import Kernel, Number

UNLIMITED = re.compile(r"(?<=\bclamped = )tw_within\(")
"""Where a step does not limit its result, because it is known to need no limits."""


class ConstantPool:
    """Constants of one program, or of several that share them: what is equal is there once."""

    def __init__(self) -> None:
        self._constants: dict[tuple[str, str, tuple[int, ...], bytes], Constant] = {}
        self._ends: dict[str, int] = {}
        """How far constants reach in each section."""

    @property
    def constants(self) -> tuple[Constant, ...]:
        return tuple(self._constants.values())

    @property
    def bytes(self) -> int:
        return sum(self._ends.values())

    @property
    def sections(self) -> tuple[str, ...]:
        return tuple(self._ends) or ("",)

    def placed(self, tensor: str, array: Array, section: str) -> Place:
        """Where an array is among all constants."""
        raw = np.ascontiguousarray(array)
        key = (section, str(raw.dtype), raw.shape, sha256(raw.tobytes()).digest())
        if key not in self._constants:
            offset = -(-self._ends.get(section, 0) // CONSTANT_ALIGNMENT) * CONSTANT_ALIGNMENT
            self._ends[section] = offset + max(raw.nbytes, 1)
            self._constants[key] = Constant(tensor, offset, raw, [*self._ends].index(section))
        return self._constants[key].place


class Pieces:
    """Collects functions and constants while a plan is lowered."""

    def __init__(self, plan: Plan, pool: ConstantPool | None = None) -> None:
        self._plan, self.pool = plan, pool or ConstantPool()
        self._functions: dict[str, CFunction] = {}
        self._names: set[str] = set()

    @property
    def functions(self) -> tuple[CFunction, ...]:
        return tuple(self._functions.values())

    def function(self, hint: str, text: str) -> str:
        """The name of the function with this text, which uses %NAME% for its own name.

        Of texts that differ in what they limit there is one function that limits all of it: an instruction more is less
        than another function.
        """
        limited = UNLIMITED.sub("tw_clamp(", text) if "tw_within(" in text else text
        known = self._functions.get(limited)
        if known is None:
            name, count = hint, 2
            while name in self._names:
                name, count = f"{hint}_{count}", count + 1
            self._names.add(name)
            known = CFunction(name, text.replace("%NAME%", name))
        elif known.text != text.replace("%NAME%", known.name):
            known = replace(known, text=limited.replace("%NAME%", known.name))
        self._functions[limited] = known
        return known.name

    def constant(
        self, tensor: str, spec: str = "", names: Mapping[str, Number] | None = None, kernel: Kernel | None = None
    ) -> Place:
        """A constant among all constants, reordered where a kernel wants it so."""
        array = self._plan.graph.constants[tensor]
        if spec and names is not None and kernel is not None:
            array = pack(array, spec, names, kernel)
        return self.pool.placed(tensor, array, self._section(tensor))

    def initial(self, state: State) -> Place | None:
        """The value of a state before the first run; None for zeros."""
        schedule, raw = self._plan.schedule, np.ascontiguousarray(state.initial)
        if not raw.view(np.uint8).any():
            return None
        section = "" if schedule is None else self._plan.platform.memories[schedule.states].section
        return self.pool.placed(f"initial {state.name}", raw, section)

    def _section(self, tensor: str) -> str:
        """The section of the memory that the plan has for a constant."""
        schedule, platform = self._plan.schedule, self._plan.platform
        if schedule is None:
            return ""
        direct = tensor in schedule.direct
        return platform.memories[platform.in_place if direct else schedule.home].section
