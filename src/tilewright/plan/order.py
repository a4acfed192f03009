"""In which order to run tasks so that the most bytes live at once are few.

A buffer lives from the task that makes it (from the start, when none does) to its last use; buffers in `keep` never
die, and one that nobody needs lives only while it is made. Bytes live after a set of tasks has run depend on the set,
not on the order, so the best order is a path through sets whose highest point is lowest: found best-first, each set
seen once.

Three things keep real networks cheap. Tasks that some best order runs next to each other are joined before the search
(`_joined`; long chains become one block). Inside the search a ready block that does not raise the bytes and stays below
the height already paid is run at once: no other choice can be better. And a greedy beam search gives a first answer; if
its peak is what a single task needs anyway, or a search bounded by `states` finds nothing lower, the answer is proven.
Where the states do not suffice, a wider beam gives the answer, and nothing is proven.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.errors import TilewrightError

# How many sets the first, quick answer follows, and the one given when the search ends without an answer.
NARROW_BEAM, WIDE_BEAM = 16, 128


@dataclass(frozen=True)
class Task:
    """A step that reads the buffers it needs and writes the buffers it makes."""

    name: str
    needs: tuple[str, ...]
    makes: tuple[str, ...]


@dataclass(frozen=True)
class Order:
    """Task names in order, the most bytes live at once, and whether no order has fewer."""

    names: tuple[str, ...]
    peak: int
    optimal: bool


@dataclass(frozen=True)
class _Problem:
    """Tasks by index, with what the search asks about them. Sets of tasks are bit masks."""

    needs: list[tuple[int, ...]]
    makes: list[tuple[int, ...]]
    sizes: list[int]
    users: list[int]
    """For each buffer the tasks that need it, and a bit no task has where it must be kept."""
    before: list[int]
    """For each task those that must run before it, directly or not."""
    at_start: int

    def run(self, done: int, live: int, task: int) -> tuple[int, int]:
        """The bytes live while the task runs, and after it."""
        during = live + sum(self.sizes[buffer] for buffer in self.makes[task])
        done |= 1 << task
        dead = {b for b in (*self.needs[task], *self.makes[task]) if not self.users[b] & ~done}
        return during, during - sum(self.sizes[buffer] for buffer in dead)


@dataclass(frozen=True)
class _Block:
    """Tasks that run one after the other; bounds on how bytes change over the block and how high they get inside.

    Both are relative to the bytes before the block. What else has run decides whether a buffer shared with other blocks
    dies here, hence bounds.
    """

    tasks: tuple[int, ...]
    mask: int
    change: tuple[int, int]
    height: tuple[int, int]


@dataclass(frozen=True)
class _State:
    """What has run, the bytes live now, the most so far, and the way here."""

    done: int
    live: int
    peak: int
    block: int
    previous: _State | None


def order(tasks: Sequence[Task], sizes: Mapping[str, int], keep: frozenset[str], *, states: int = 20_000) -> Order:
    """A topological order with few live bytes at the peak. Buffers without a size count as nothing."""
    problem = _problem(tasks, sizes, keep)
    blocks = _joined(problem)
    touched = [{*needs, *makes} for needs, makes in zip(problem.needs, problem.makes, strict=True)]
    least = max([problem.at_start, *(sum(problem.sizes[buffer] for buffer in own) for own in touched)])
    first = _beam(problem, blocks, least, NARROW_BEAM)
    if first.peak <= least:
        return _result(tasks, blocks, first, True)
    best, proven = _search(problem, blocks, first, least, states)
    if not proven:
        best = min(best, _beam(problem, blocks, least, WIDE_BEAM), key=lambda state: state.peak)
    return _result(tasks, blocks, best, proven or best.peak <= least)


def _result(tasks: Sequence[Task], blocks: Sequence[_Block], state: _State, optimal: bool) -> Order:
    path: list[int] = []
    peak = state.peak
    while state.previous is not None:
        path.append(state.block)
        state = state.previous
    names = tuple(tasks[task].name for block in reversed(path) for task in blocks[block].tasks)
    return Order(names, peak, optimal)


def _problem(tasks: Sequence[Task], sizes: Mapping[str, int], keep: frozenset[str]) -> _Problem:
    mentioned = dict.fromkeys(name for task in tasks for name in (*task.needs, *task.makes))
    buffers = {name: index for index, name in enumerate(mentioned)}
    maker: dict[int, int] = {}
    users = [1 << len(tasks) if name in keep else 0 for name in buffers]
    needs = [tuple(dict.fromkeys(buffers[name] for name in task.needs)) for task in tasks]
    makes = [tuple(dict.fromkeys(buffers[name] for name in task.makes)) for task in tasks]
    for index, task in enumerate(tasks):
        for buffer in makes[index]:
            if buffer in maker:
                raise TilewrightError(
                    "bad-task", f"'{tasks[maker[buffer]].name}' and '{task.name}' make the same buffer"
                )
            maker[buffer] = index
        for buffer in needs[index]:
            users[buffer] |= 1 << index
    bytes_of = [sizes.get(name, 0) for name in buffers]
    before = _before(tasks, [{maker[b] for b in own if b in maker} for own in needs])
    unmade = sum(sizes.get(name, 0) for name in {*keep} - buffers.keys())
    at_start = unmade + sum(size for buffer, size in enumerate(bytes_of) if buffer not in maker)
    return _Problem(needs, makes, bytes_of, users, before, at_start)


def _before(tasks: Sequence[Task], direct: Sequence[set[int]]) -> list[int]:
    waiting = [len(own) for own in direct]
    after: list[list[int]] = [[] for _ in tasks]
    for index, own in enumerate(direct):
        for other in sorted(own):
            after[other].append(index)
    before = [0] * len(tasks)
    ready = [index for index, count in enumerate(waiting) if not count]
    for index in ready:
        for other in after[index]:
            before[other] |= before[index] | 1 << index
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    if len(ready) < len(tasks):
        stuck = [task.name for index, task in enumerate(tasks) if waiting[index]]
        raise TilewrightError("cyclic-graph", "tasks need each other in a circle", reasons=[", ".join(stuck)])
    return before


def _block(problem: _Problem, tasks: tuple[int, ...]) -> _Block:
    mask = sum(1 << task for task in tasks)
    others = ~mask
    low = high = 0
    top_low = top_high = 0
    done = 0
    for task in tasks:
        made = sum(problem.sizes[buffer] for buffer in problem.makes[task])
        low, high = low + made, high + made
        top_low, top_high = max(top_low, low), max(top_high, high)
        done |= 1 << task
        for buffer in {*problem.needs[task], *problem.makes[task]}:
            users = problem.users[buffer]
            if users >> len(problem.needs) or users & mask & ~done:
                continue
            # Made here and needed elsewhere: alive for certain, since what needs it comes later.
            if users & others and any(buffer in problem.makes[t] for t in tasks):
                continue
            low -= problem.sizes[buffer]
            if not users & others:
                high -= problem.sizes[buffer]
    return _Block(tasks, mask, (low, high), (top_low, top_high))


def _joined(problem: _Problem) -> list[_Block]:
    """Blocks of tasks that some best order runs without a break.

    Of two blocks u, v with u before v and nothing that must run between them:
    v may follow u at once if v is ready when u is done, never adds bytes, and gets no higher than u did;
    u may wait for v if nothing but v waits for u, u never frees bytes, and v gets at least as high as u did.
    Both are exchange arguments: moving the block lowers, or leaves, the bytes live at every step between.
    """
    blocks = [_block(problem, (task,)) for task in range(len(problem.needs))]
    owner = list(range(len(blocks)))
    pairs = _pairs(problem)
    changed = True
    while changed:
        changed = False
        for first, second in pairs:
            a, b = owner[first], owner[second]
            if a == b:
                continue
            u, v = blocks[a], blocks[b]
            if not (_may_follow(problem, u, v) or _may_wait(problem, u, v)):
                continue
            blocks[a] = _block(problem, u.tasks + v.tasks)
            for task in v.tasks:
                owner[task] = a
            changed = True
    return [blocks[index] for index in sorted(set(owner))]


def _pairs(problem: _Problem) -> list[tuple[int, int]]:
    made_by = {buffer: task for task, own in enumerate(problem.makes) for buffer in own}
    pairs = {(made_by[b], task) for task, own in enumerate(problem.needs) for b in own if b in made_by}
    return sorted(pairs, key=lambda pair: (problem.before[pair[0]].bit_count(), pair))


def _may_follow(problem: _Problem, u: _Block, v: _Block) -> bool:
    if v.change[1] > 0 or u.change[1] + v.height[1] > u.height[0]:
        return False
    known = u.mask | v.mask
    for task in u.tasks:
        known |= problem.before[task]
    return all(not problem.before[task] & ~known for task in v.tasks)


def _may_wait(problem: _Problem, u: _Block, v: _Block) -> bool:
    if u.change[0] < 0 or u.height[1] > u.change[0] + v.height[0]:
        return False
    outside = u.mask | v.mask
    for task, before in enumerate(problem.before):
        # Whatever waits for u must wait for v as well.
        if before & u.mask and not before & v.mask and not outside >> task & 1:
            return False
    return True


def _apply(problem: _Problem, blocks: Sequence[_Block], state: _State, block: int) -> _State:
    done, live, peak = state.done, state.live, state.peak
    for task in blocks[block].tasks:
        during, live = problem.run(done, live, task)
        done |= 1 << task
        peak = max(peak, during)
    return _State(done, live, peak, block, state)


class _Steps:
    """What can run next, by block."""

    def __init__(self, problem: _Problem, blocks: Sequence[_Block]) -> None:
        self.problem = problem
        self.blocks = blocks
        self.waits_for: list[int] = []
        for block in blocks:
            before = 0
            for task in block.tasks:
                before |= problem.before[task]
            self.waits_for.append(before & ~block.mask)
        self.everything = (1 << len(problem.needs)) - 1

    def next(self, state: _State, paid: int) -> list[_State]:
        """States after one more block; a single one when it is as good as any: no higher than `paid`, no more bytes."""
        found: list[_State] = []
        for index, block in enumerate(self.blocks):
            if state.done & block.mask or self.waits_for[index] & ~state.done:
                continue
            after = _apply(self.problem, self.blocks, state, index)
            if after.live <= state.live and after.peak <= paid:
                return [after]
            found.append(after)
        return found


def _start(problem: _Problem) -> _State:
    return _State(0, problem.at_start, problem.at_start, -1, None)


def _beam(problem: _Problem, blocks: Sequence[_Block], least: int, width: int) -> _State:
    """A good order, quickly: the few most promising sets go on; how far they are below `least` does not count."""
    steps = _Steps(problem, blocks)
    front = [_start(problem)]
    finished: _State | None = None
    while front:
        reached: dict[int, _State] = {}
        for state in front:
            for after in steps.next(state, max(state.peak, least)):
                known = reached.get(after.done)
                if known is None or after.peak < known.peak:
                    reached[after.done] = after
        full = reached.pop(steps.everything, None)
        if full is not None and (finished is None or full.peak < finished.peak):
            finished = full
        front = sorted(reached.values(), key=lambda state: (max(state.peak, least), state.live))[:width]
    return finished if finished is not None else _start(problem)


def _search(problem: _Problem, blocks: Sequence[_Block], known: _State, least: int, states: int) -> tuple[_State, bool]:
    """The lowest path from no task to all of them, or the known one when it cannot be improved or states run out."""
    steps = _Steps(problem, blocks)
    count = 0
    seen: set[int] = set()
    start = _start(problem)
    queue = [(max(start.peak, least), 0, 0, start)]
    while queue:
        height, _, _, state = heapq.heappop(queue)
        if state.done in seen:
            continue
        seen.add(state.done)
        if state.done == steps.everything:
            return state, True
        if len(seen) > states:
            return known, False
        for after in steps.next(state, height):
            if after.peak < known.peak and after.done not in seen:
                count += 1
                # Of equally high sets the larger goes first: near the end the search is nearly done.
                heapq.heappush(queue, (max(height, after.peak), -after.done.bit_count(), count, after))
    return known, True
