"""Where everything of a plan is, from when to when: whole tensors, copies in a nearer memory, tiles of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tilewright.core.moves import Move, Residency
from tilewright.core.op import is_view
from tilewright.core.plan import Plan, Schedule, TileBuffer
from tilewright.core.tiles import member


class Residencies(Struct, frozen=True):
    """All of a plan."""

    all: tuple[Residency, ...]
    whole: Mapping[str, int]
    """Of a tensor outside of the engine's tiles, by its name."""
    stages: tuple[int, ...]
    """Of copies in a nearer memory."""
    tiles: Mapping[tuple[int, int], int]
    """By group and buffer; one that a group finds as another has left it is the same."""

    def ends(self, move: Move) -> tuple[int, int]:
        """From where to where a move goes; a copy in a nearer memory is taken where there is one."""
        if move.kind == "stage":
            copy = self.stages[move.buffer]
            return self.whole[self.all[copy].tensor], copy
        near = self.tiles[move.group, move.buffer]
        tensor, pack = self.all[near].tensor, self.all[near].pack
        return (self.far(move.group, tensor, pack), near) if move.kind == "load" else (near, self.whole[tensor])

    def far(self, group: int, tensor: str, pack: str) -> int:
        """Where a group finds a tensor that it has no tiles of."""
        for number in self.stages:
            mine = self.all[number]
            if (mine.tensor, mine.pack) == (tensor, pack) and mine.since <= group <= mine.until:
                return number
        return self.whole[tensor]


def residencies(plan: Plan) -> Residencies:
    """Those of a plan."""
    schedule = plan.schedule
    at = [*range(len(plan.graph.nodes))]
    if schedule is not None:
        grouped = {work.step: number for number, group in enumerate(schedule.groups) for work in group.works}
        at = [grouped.get(step, -1) for step in at]
    count = len(at) if schedule is None else len(schedule.groups)
    first, last = _lives(plan, at, {} if schedule is None else _done(schedule))
    lasting = {*plan.graph.fed, *plan.graph.given, *plan.graph.constants, *plan.graph.updates}
    found: list[Residency] = []
    whole: dict[str, int] = {}
    touched = {name for step in range(len(plan.graph.nodes)) for name in _touched(plan, step)}
    views = {node.outputs[0]: node.inputs[0] for node in plan.graph.nodes if is_view(node)}
    for name, place in plan.places.items():
        if name in views or name not in touched:
            continue
        until = count if name in lasting else last[name]
        direct = schedule is not None and name in schedule.direct
        space, size = plan.platform.in_place if direct else place.space, plan.graph.types[name].bytes
        whole[name] = len(found)
        found.append(Residency(name, "", space, place.offset, size, 1, first.get(name, -1), until, place.index))
    for view, shown in views.items():
        if shown in whole:
            whole[view] = whole[shown]
    if schedule is None:
        return Residencies(tuple(found), whole, (), {})
    stages = tuple(range(len(found), len(found) + len(schedule.stages)))
    for stage in schedule.stages:
        mine = (stage.tensor, stage.pack, stage.place.space, stage.place.offset, stage.bytes)
        found.append(Residency(*mine, 1, stage.start, stage.last))
    tiles = _tiles(plan, schedule, found)
    return Residencies(tuple(found), whole, stages, tiles)


def _done(schedule: Schedule) -> dict[int, int]:
    """Groups that are computed beside later ones, with the last of these."""
    return {run.group: run.wait.group for run in schedule.runs if run.wait.group > run.group}


def _lives(plan: Plan, at: Sequence[int], done: Mapping[int, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Where each tensor is made, and where it, or a view of it, is touched last; `at` says where nodes are."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    shown: dict[str, str] = {}
    for node, here in zip(plan.graph.nodes, at, strict=True):
        if is_view(node):
            shown[node.outputs[0]] = shown.get(node.inputs[0], node.inputs[0])
            continue
        first |= dict.fromkeys(node.made, here)
        for name in (*node.reads, *node.made):
            root = shown.get(name, name)
            last[root] = max(last.get(root, -1), done.get(here, here))
    return first, last


def _touched(plan: Plan, step: int) -> set[str]:
    """Tensors that code for a node, or a view, reads or writes."""
    node = plan.graph.nodes[step]
    if is_view(node):
        return {node.inputs[0]}
    return {use.tensor for use in member(plan.graph, node, plan.choices[step].kernel).uses}


def _tiles(plan: Plan, schedule: Schedule, found: list[Residency]) -> dict[tuple[int, int], int]:
    """Adds the tile buffers of all groups."""
    memory = plan.platform.engines[schedule.engine].memory
    moved: dict[tuple[int, int], list[Move]] = {}
    for move in schedule.moves:
        if move.kind != "stage":
            moved.setdefault((move.group, move.buffer), []).append(move)
    known: dict[tuple[int, int], int] = {}
    left: dict[tuple[str, str, int], int] = {}
    done = _done(schedule)
    for number, group in enumerate(schedule.groups):
        end = done.get(number, number)
        made = {name for work in group.works for name in plan.graph.nodes[work.step].made}
        for index, buffer in enumerate(group.buffers):
            mine = moved.get((number, index), [])
            before = left.get((buffer.tensor, buffer.pack, buffer.offset), -1)
            if not mine and buffer.tensor not in made and before >= 0:
                known[number, index] = before
                found[before] = replace(found[before], until=max(found[before].until, end))
                continue
            known[number, index] = left[buffer.tensor, buffer.pack, buffer.offset] = len(found)
            since = min([number, *(move.issue.group for move in mine)])
            until = max([end, *(move.wait.group for move in mine)])
            found.append(_tile(buffer, memory, since, until))
        for index, buffer in enumerate(group.buffers):
            if buffer.within >= 0:
                inner, outer = known[number, index], known[number, buffer.within]
                found[inner] = replace(found[inner], inside=outer)
    return known


def _tile(buffer: TileBuffer, memory: str, since: int, until: int) -> Residency:
    return Residency(buffer.tensor, buffer.pack, memory, buffer.offset, buffer.bytes, buffer.slots, since, until)
