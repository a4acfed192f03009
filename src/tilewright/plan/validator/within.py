"""The validator of operands that lie within the result of their node: loaded there, and not copied any more."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.core.domain import Affine, Domain
from tilewright.core.op import REGISTRY
from tilewright.core.plan import Choice
from tilewright.core.tiles import Use
from tilewright.plan.validator.groups import Opened
from tilewright.plan.validator.regions import everywhere, rows


def inlaid(opened: Opened, a: int, b: int) -> bool:
    """Whether two buffers of a group are a result and a part of it, or two parts of it."""
    first, second = opened.group.buffers[a].within, opened.group.buffers[b].within
    return first == b or second == a or first == second >= 0


def within_problems(opened: Opened, choice: Choice) -> Iterator[str]:
    """What is wrong with operands within the result of a group's last node, given how that is computed."""
    parts: list[Use] = []
    for index, buffer in enumerate(opened.group.buffers):
        if buffer.within < 0:
            continue
        name = f"group {opened.number}: buffer {index} of '{buffer.tensor}' lies within buffer {buffer.within}, but"
        found = list(_bound(opened, index, choice)) or list(_placed(opened, index))
        yield from (f"{name} {reason}" for reason in found)
        if found:
            return
        parts.append(opened.users[index][0][1])
    if parts:
        yield from (f"{opened.where(opened.last)}: {reason}" for reason in _partition(opened, parts))


def _bound(opened: Opened, index: int, choice: Choice) -> Iterator[str]:
    """It is an operand of the last node alone, the other one that node's result, and it may be so."""
    buffers, outer, node = opened.group.buffers, opened.group.buffers[index].within, opened.members[opened.last].node
    if outer >= len(buffers) or buffers[outer].within >= 0:
        yield "that is none that could hold others"
        return
    last, key = opened.last, opened.members[opened.last].output.key
    if [(position, use.key) for position, use in opened.users[outer]] != [(last, key)]:
        yield "that is not the result of the last node alone"
    users = opened.users[index]
    if len(users) != 1 or users[0][0] != last or users[0][1].behind or opened.role(index) != "input":
        yield "the last node does not load it for one operand alone"
        return
    use, result = users[0][1], opened.members[last].output
    if not REGISTRY[node.op].joins or node.epilogue:
        yield "the result is not made of operands as they are"
    if choice.kernel is not None and use.key not in choice.kernel.within:
        yield f"kernel {choice.kernel.where} copies {use.key}"
    if use.type.dtype.ctype != result.type.dtype.ctype or use.pack:
        yield f"{use.type} is not as in {result.type}"
    mine, other = buffers[index], buffers[outer]
    if (mine.offset, mine.bytes, mine.slots) != (other.offset, other.bytes, other.slots):
        ours, theirs = (f"{b.slots} x {b.bytes} bytes at {b.offset}" for b in (mine, other))
        yield f"has {ours}, that {theirs}"


def _placed(opened: Opened, index: int) -> Iterator[str]:
    """At every step it has its place inside of the result's tile, and changes when that does."""
    use = opened.users[index][0][1]
    domain, result = opened.members[opened.last].domain, opened.members[opened.last].output
    behind = _behind(domain, use.key, result.key)
    if behind is None:
        yield f"its axes are not those of '{result.tensor}'"
        return
    box, around = opened.blocks[index], opened.blocks[opened.group.buffers[index].within]
    for axis, (part, outer, by) in enumerate(zip(box, around, behind, strict=True)):
        fits = (outer.start <= part.start + by) & (part.stop + by <= outer.stop)
        if not everywhere(fits):
            yield f"{rows(part, fits)} along axis {axis} is not inside of {rows(outer, fits)}"
    if opened.replay.depends(box) != opened.replay.depends(around):
        yield "is not loaded at the steps at which the result is made"


def _behind(domain: Domain, key: str, output: str) -> list[int] | None:
    """By how much the index of an element in the result is larger than its own, along each axis."""
    mine, result = domain.access[key], domain.access[output]
    if len(mine) != len(result):
        return None
    found: list[int] = []
    for a, b in zip(mine, result, strict=True):
        if not isinstance(a, Affine) or not isinstance(b, Affine) or len(b.terms) != 1 or a.terms != b.terms:
            return None
        if b.terms[0][1] != 1 or a.divisor != 1 or b.divisor != 1:
            return None
        found.append(b.constant - a.constant)
    return found


def _partition(opened: Opened, parts: list[Use]) -> Iterator[str]:
    """All operands side by side are the result, and what is left besides those within it is one part of the loops."""
    mine = opened.members[opened.last]
    shape, spans = mine.output.type.shape, list[tuple[int, int, bool]]()
    joined = {axis for use in parts for axis, extent in enumerate(use.type.shape) if extent != shape[axis]}
    if len(joined) != 1:
        yield f"parts within the result differ from it along {len(joined)} axes"
        return
    along = joined.pop()
    for use in mine.uses:
        behind = _behind(mine.domain, use.key, mine.output.key)
        if use.writes or not use.type.bytes:
            continue
        if behind is None or any(by for axis, by in enumerate(behind) if axis != along):
            yield f"'{use.tensor}' ({use.key}) is no part of the result along axis {along}"
            return
        spans.append((behind[along], behind[along] + use.type.shape[along], use in parts))
    spans.sort()
    ends = [0, *(stop for _, stop, _ in spans)]
    if [start for start, _, _ in spans] != ends[:-1] or ends[-1] != shape[along]:
        yield f"operands cover {spans[0][0]}..{ends[-1]} of {shape[along]} along axis {along}, not each element once"
    others = [number for number, (_, _, there) in enumerate(spans) if not there]
    if others and others != list(range(others[0], others[-1] + 1)):
        yield f"what is left along axis {along} is more than one part"
    name = mine.domain.access[mine.output.key][along]
    moving = {loop.dim for loop in opened.group.loops if loop.count > 1}
    if isinstance(name, Affine) and moving & {*name.dims}:
        yield f"tiles cut axis {along}, along which operands lie within the result"
