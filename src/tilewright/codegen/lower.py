"""Plan -> Program: every node becomes a call of a kernel instance or of a printed loop nest."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from tilewright.codegen.baked import baked
from tilewright.codegen.groups import lower_groups
from tilewright.codegen.pieces import ConstantPool, Pieces
from tilewright.codegen.works import HeldRegion, TileTask, invoke, packing_names, reach
from tilewright.core.graph import Node
from tilewright.core.op import is_view
from tilewright.core.plan import Place, Plan, Schedule
from tilewright.core.program import Invoke, KeptState, Mark, NetworkPort, Pointer, Program, Runtime
from tilewright.core.sizes import ranges_of
from tilewright.core.tiles import Extent, member


def lower(
    plan: Plan, name: str = "network", entry: str = "", pool: ConstantPool | None = None, *, observed: bool = False
) -> Program:
    """The program of a plan, or of one of several: these have names as entries, and one pool.

    One that is observed has marks where nodes are computed (`codegen.observing`), and is the same otherwise.
    """
    pieces, types = Pieces(plan, pool), plan.graph.types
    flat = plan.schedule is None
    calls: list[Invoke | Mark] = []
    for step, node in enumerate(plan.graph.nodes):
        if flat and not is_view(node):
            # A simulator that has no other way to see where a program is.
            calls += [Mark(step, "begin")] if plan.platform.qemu else []
            calls += [Mark(step, "work")] if observed else []
            calls.append(_whole_node(plan, step, node, pieces))
            calls += [Mark(step, "made")] if observed else []
    routines = () if plan.schedule is None else lower_groups(plan, plan.schedule, pieces, observed=observed)
    blocks = _blocks(plan, plan.schedule) if plan.schedule is not None else {}
    arena = blocks[plan.platform.cores.memory] if blocks and plan.platform.whole else plan.arena_bytes
    kept = _states(plan, pieces)
    memories = () if plan.platform.whole else tuple(blocks.items())
    if kept and memories and plan.schedule is not None:
        memories += ((plan.schedule.states, plan.state_bytes),)
    states_at = -(-arena // plan.platform.alignment) * plan.platform.alignment
    program = Program(
        name,
        tuple(NetworkPort(n, types[n]) for n in plan.graph.fed),
        tuple(NetworkPort(n, types[n]) for n in plan.graph.given),
        pieces.functions,
        tuple(calls),
        pieces.pool.constants,
        pieces.pool.bytes,
        states_at + plan.state_bytes if kept and not memories else arena,
        tuple((path.name, path.read_text()) for path in plan.platform.headers),
        routines,
        memories,
        "" if plan.schedule is None else plan.schedule.home,
        pieces.pool.sections,
        kept,
        states_at,
        tuple(Runtime(b, plan.graph.inputs.index(b.name)) for b in plan.graph.bounds),
        entry,
    )
    return baked(program)


def together(programs: Sequence[Program]) -> tuple[Program, ...]:
    """Programs of one pool, lowered in this order, that keep the same states: each runs in memory for any of them."""
    last = programs[-1]
    kept = [(state.name, state.type, state.offset) for state in last.states]
    for program in programs:
        if [(state.name, state.type, state.offset) for state in program.states] != kept:
            raise ValueError(f"'{program.stem}' keeps other states than '{last.stem}'")
    # States lie behind all else in an arena, and alone in the last memory.
    states_at = max(program.states_at for program in programs)
    arena = states_at + max(0, *(program.arena_bytes - program.states_at for program in programs))
    names = dict.fromkeys(name for program in programs for name, _ in _working(program))
    working = {name: max(dict(_working(program)).get(name, 0) for program in programs) for name in names}
    memories = (*working.items(), *(last.memories[-1:] if kept else ()))
    return tuple(
        replace(
            program,
            constants=last.constants,
            constant_bytes=last.constant_bytes,
            sections=last.sections,
            arena_bytes=arena,
            states_at=states_at,
            memories=memories,
        )
        for program in programs
    )


def _working(program: Program) -> tuple[tuple[str, int], ...]:
    """The memories of a program without that of its states."""
    return program.memories[:-1] if program.states else program.memories


def _states(plan: Plan, pieces: Pieces) -> tuple[KeptState, ...]:
    return tuple(
        KeptState(state.name, plan.graph.types[old], plan.places[old].offset, pieces.initial(state))
        for state, old in zip(plan.graph.states, plan.graph.updates, strict=True)
    )


def _blocks(plan: Plan, schedule: Schedule) -> dict[str, int]:
    """Bytes that the program wants of each memory; constants, inputs and outputs are not among them."""
    near = plan.platform.engines[schedule.engine].memory
    blocks = dict.fromkeys(schedule.used, 0) | {near: schedule.used[near]}
    for place, size in [(b.place, b.bytes) for b in plan.buffers] + [(s.place, s.bytes) for s in schedule.stages]:
        if place.space in blocks:
            blocks[place.space] = max(blocks[place.space], place.offset + size)
    return blocks


def _whole_node(plan: Plan, step: int, node: Node, pieces: Pieces) -> Invoke:
    choice = plan.choices[step]
    mine = member(plan.graph, node, choice.kernel)
    ranges = {name: Extent(*ends) for name, ends in ranges_of(plan.graph, node).items()}
    held: dict[str, HeldRegion] = {}
    for use in mine.uses:
        place = plan.places[use.tensor]
        # Loop nests are not told where empty tensors are.
        if place.space == "constant" and (use.type.bytes or choice.kernel is not None):
            place = pieces.constant(use.tensor, use.pack, packing_names(plan.graph, mine), choice.kernel)
        held[use.key] = HeldRegion(place, 0, reach(plan, use))
    scratch = Pointer(Place("arena", plan.scratch[step]), "void", False) if choice.scratch else None
    return invoke(TileTask(plan.graph, choice, mine, ranges or None, held, scratch), pieces)
