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

from msgspec import Struct

from tilewright.errors import TilewrightError

# How many sets the first, quick answer follows, and the one given when the search ends without an answer.
NARROW_BEAM, WIDE_BEAM = 16, 128
# How many blocks are tried at most, of networks that are thousands of blocks wide: a beam by its width, which it gives
# up where it must, and the search by its states.
LOOKS_PER_WIDTH, LOOKS_PER_STATE = 12_500, 50


class OrderedTask(Struct, frozen=True):
    """A step that reads the buffers it needs and writes the buffers it makes."""

    name: str
    needs: tuple[str, ...]
    makes: tuple[str, ...]


class Order(Struct, frozen=True):
    """Task names in order, the most bytes live at once, and whether no order has fewer."""

    names: tuple[str, ...]
    peak: int
    optimal: bool


class _Problem(Struct, frozen=True):
    """Tasks by index, with what the search asks about them. Sets of tasks are bit masks."""

    needs: list[tuple[int, ...]]
    makes: list[tuple[int, ...]]
    sizes: list[int]
    users: list[int]
    """For each buffer the tasks that need it, and a bit no task has where it must be kept."""
    makers: list[int]
    """For each buffer the task that makes it, as a mask; 0 where none does."""
    before: list[int]
    """For each task those that must run before it, directly or not."""
    after: list[int]
    """For each task those that must run after it, directly or not."""
    at_start: int

    def run(self, done: int, live: int, task: int) -> tuple[int, int]:
        """The bytes live while the task runs, and after it."""
        during = live + sum(self.sizes[buffer] for buffer in self.makes[task])
        done |= 1 << task
        dead = {b for b in (*self.needs[task], *self.makes[task]) if not self.users[b] & ~done}
        return during, during - sum(self.sizes[buffer] for buffer in dead)


class _Block(Struct, frozen=True):
    """Tasks that run one after the other; bounds on how bytes change over the block and how high they get inside.

    Both are relative to the bytes before the block. What else has run decides whether a buffer shared with other blocks
    dies here, hence bounds.
    """

    tasks: tuple[int, ...]
    mask: int
    before: int
    """What must run before one of its tasks."""
    after: int
    """What must run after one of its tasks."""
    change: tuple[int, int]
    height: tuple[int, int]


class _OrderState(Struct, frozen=True):
    """What has run, the bytes live now, the most so far, and the way here."""

    done: int
    live: int
    peak: int
    block: int
    previous: _OrderState | None
    ready: int
    """The blocks that may run next, as a mask."""


def order(
    tasks: Sequence[OrderedTask], sizes: Mapping[str, int], keep: frozenset[str], *, states: int = 20_000
) -> Order:
    """A topological order with few live bytes at the peak. Buffers without a size count as nothing."""
    problem = _problem(tasks, sizes, keep)
    blocks = _joined(problem)
    touched = [{*needs, *makes} for needs, makes in zip(problem.needs, problem.makes, strict=True)]
    least = max([problem.at_start, *(sum(problem.sizes[buffer] for buffer in own) for own in touched)])
    steps = _ReadySteps(problem, blocks)
    first = _beam(steps, least, NARROW_BEAM)
    if first.peak <= least:
        return _result(tasks, blocks, first, True)
    best, proven = _search(steps, first, least, states)
    if not proven:
        best = min(best, _beam(steps, least, WIDE_BEAM), key=lambda state: state.peak)
    return _result(tasks, blocks, best, proven or best.peak <= least)


def _result(tasks: Sequence[OrderedTask], blocks: Sequence[_Block], state: _OrderState, optimal: bool) -> Order:
    path: list[int] = []
    peak = state.peak
    while state.previous is not None:
        path.append(state.block)
        state = state.previous
    names = tuple(tasks[task].name for block in reversed(path) for task in blocks[block].tasks)
    return Order(names, peak, optimal)


def _problem(tasks: Sequence[OrderedTask], sizes: Mapping[str, int], keep: frozenset[str]) -> _Problem:
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
    before, after = _dependences(tasks, [{maker[b] for b in own if b in maker} for own in needs])
    unmade = sum(sizes.get(name, 0) for name in {*keep} - buffers.keys())
    at_start = unmade + sum(size for buffer, size in enumerate(bytes_of) if buffer not in maker)
    makers = [1 << maker[buffer] if buffer in maker else 0 for buffer in range(len(bytes_of))]
    return _Problem(needs, makes, bytes_of, users, makers, before, after, at_start)


def _dependences(tasks: Sequence[OrderedTask], direct: Sequence[set[int]]) -> tuple[list[int], list[int]]:
    """For each task what must run before it and after it, directly or not."""
    waiting = [len(own) for own in direct]
    next_to: list[list[int]] = [[] for _ in tasks]
    for index, own in enumerate(direct):
        for other in sorted(own):
            next_to[other].append(index)
    before = [0] * len(tasks)
    ready = [index for index, count in enumerate(waiting) if not count]
    for index in ready:
        for other in next_to[index]:
            before[other] |= before[index] | 1 << index
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    if len(ready) < len(tasks):
        stuck = [task.name for index, task in enumerate(tasks) if waiting[index]]
        raise TilewrightError("cyclic-graph", "tasks need each other in a circle", reasons=[", ".join(stuck)])
    after = [0] * len(tasks)
    for index in reversed(ready):
        for other in next_to[index]:
            after[index] |= after[other] | 1 << other
    return before, after


def _block(problem: _Problem, tasks: tuple[int, ...]) -> _Block:
    mask = before = after = 0
    for task in tasks:
        mask |= 1 << task
        before |= problem.before[task]
        after |= problem.after[task]
    return _extended(problem, _Block((), 0, 0, 0, (0, 0), (0, 0)), _Block(tasks, mask, before, after, (0, 0), (0, 0)))


def _join(problem: _Problem, u: _Block, v: _Block) -> _Block:
    """Both, one behind the other. What neither changes in the other is not looked at again."""
    few, many = (u, v) if len(u.tasks) < len(v.tasks) else (v, u)
    own = {b for task in few.tasks for b in (*problem.needs[task], *problem.makes[task]) if problem.sizes[b]}
    shared = [b for b in own if (problem.users[b] | problem.makers[b]) & many.mask]
    if any(not problem.makers[b] & u.mask for b in shared):
        # What might have died inside u lives until v.
        return _block(problem, u.tasks + v.tasks)
    if any(problem.users[b] & ~v.mask for b in shared):
        return _extended(problem, u, v)
    change = (u.change[0] + v.change[0], u.change[1] + v.change[1])
    height = (max(u.height[0], u.change[0] + v.height[0]), max(u.height[1], u.change[1] + v.height[1]))
    return _Block(u.tasks + v.tasks, u.mask | v.mask, u.before | v.before, u.after | v.after, change, height)


def _extended(problem: _Problem, u: _Block, v: _Block) -> _Block:
    """Both, where v changes nothing inside u; the bounds of v by itself are not asked for."""
    mask = u.mask | v.mask
    others = ~mask
    low, high = u.change
    top_low, top_high = u.height
    done = u.mask
    for task in v.tasks:
        made = sum(problem.sizes[buffer] for buffer in problem.makes[task])
        low, high = low + made, high + made
        top_low, top_high = max(top_low, low), max(top_high, high)
        done |= 1 << task
        for buffer in {*problem.needs[task], *problem.makes[task]}:
            users = problem.users[buffer]
            if users >> len(problem.needs) or users & mask & ~done:
                continue
            # Made here and needed elsewhere: alive for certain, since what needs it comes later.
            if users & others and problem.makers[buffer] & mask:
                continue
            low -= problem.sizes[buffer]
            if not users & others:
                high -= problem.sizes[buffer]
    return _Block(u.tasks + v.tasks, mask, u.before | v.before, u.after | v.after, (low, high), (top_low, top_high))


def _joined(problem: _Problem) -> list[_Block]:
    """Blocks of tasks that some best order runs without a break.

    Of two blocks u, v with u before v and nothing that must run between them:
    v may follow u at once if v is ready when u is done, never adds bytes, and gets no higher than u did;
    u may wait for v if nothing but v waits for u, u never frees bytes, and v gets at least as high as u did.
    Both are exchange arguments: moving the block lowers, or leaves, the bytes live at every step between.
    """
    blocks = [_block(problem, (task,)) for task in range(len(problem.needs))]
    owner = _Owners(len(blocks))
    pairs = _pairs(problem)
    changed = True
    while changed:
        changed = False
        for first, second in pairs:
            a, b = owner.find(first), owner.find(second)
            if a == b:
                continue
            u, v = blocks[a], blocks[b]
            if not (_may_follow(u, v) or _may_wait(u, v)):
                continue
            blocks[a] = _join(problem, u, v)
            owner.give(b, a)
            changed = True
    return [block for index, block in enumerate(blocks) if owner.find(index) == index]


class _Owners:
    """Which block each task is in, by the number of the block's first task."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def find(self, task: int) -> int:
        while self._parents[task] != task:
            self._parents[task] = task = self._parents[self._parents[task]]
        return task

    def give(self, block: int, owner: int) -> None:
        self._parents[block] = owner


def _pairs(problem: _Problem) -> list[tuple[int, int]]:
    made_by = {buffer: task for task, own in enumerate(problem.makes) for buffer in own}
    pairs = {(made_by[b], task) for task, own in enumerate(problem.needs) for b in own if b in made_by}
    return sorted(pairs, key=lambda pair: (problem.before[pair[0]].bit_count(), pair))


def _may_follow(u: _Block, v: _Block) -> bool:
    if v.change[1] > 0 or u.change[1] + v.height[1] > u.height[0]:
        return False
    return not v.before & ~(u.mask | v.mask | u.before)


def _may_wait(u: _Block, v: _Block) -> bool:
    if u.change[0] < 0 or u.height[1] > u.change[0] + v.height[0]:
        return False
    # Whatever waits for u must wait for v as well.
    return not u.after & ~(v.after | u.mask | v.mask)


class _ReadySteps:
    """What can run next, by block."""

    def __init__(self, problem: _Problem, blocks: Sequence[_Block]) -> None:
        self.problem = problem
        self.blocks = blocks
        self.everything = (1 << len(problem.needs)) - 1
        self._waits_for = [block.before & ~block.mask for block in blocks]
        home = {task: index for index, block in enumerate(blocks) for task in block.tasks}
        self._next_to: list[set[int]] = [set() for _ in blocks]
        made_by = {buffer: task for task, own in enumerate(problem.makes) for buffer in own}
        for task, needs in enumerate(problem.needs):
            for maker in {home[made_by[buffer]] for buffer in needs if buffer in made_by} - {home[task]}:
                self._next_to[maker].add(home[task])

    def start(self) -> _OrderState:
        ready = sum(1 << index for index, before in enumerate(self._waits_for) if not before)
        return _OrderState(0, self.problem.at_start, self.problem.at_start, -1, None, ready)

    def next(self, state: _OrderState, paid: int, most: int) -> list[_OrderState]:
        """States after one more block; a single one when it is as good as any: no higher than `paid`, no more bytes.

        Of more than `most` blocks that are ready the first are tried.
        """
        found: list[_OrderState] = []
        left = state.ready
        while left and len(found) < most:
            lowest = left & -left
            left ^= lowest
            after = self._apply(state, lowest.bit_length() - 1)
            if after.live <= state.live and after.peak <= paid:
                return [after]
            found.append(after)
        return found

    def _apply(self, state: _OrderState, block: int) -> _OrderState:
        done, live, peak = state.done, state.live, state.peak
        for task in self.blocks[block].tasks:
            during, live = self.problem.run(done, live, task)
            done |= 1 << task
            peak = max(peak, during)
        ready = state.ready ^ 1 << block
        for other in self._next_to[block]:
            if not self._waits_for[other] & ~done:
                ready |= 1 << other
        return _OrderState(done, live, peak, block, state, ready)


def _beam(steps: _ReadySteps, least: int, width: int) -> _OrderState:
    """A good order, quickly: the few most promising sets go on; how far they are below `least` does not count."""
    looks = width * LOOKS_PER_WIDTH
    width = max(1, min(width, looks // len(steps.blocks) ** 2)) if steps.blocks else width
    most = max(1, looks // (width * len(steps.blocks))) if steps.blocks else 1
    front = [steps.start()]
    finished: _OrderState | None = None
    while front:
        reached: dict[int, _OrderState] = {}
        for state in front:
            for after in steps.next(state, max(state.peak, least), most):
                known = reached.get(after.done)
                if known is None or after.peak < known.peak:
                    reached[after.done] = after
        full = reached.pop(steps.everything, None)
        if full is not None and (finished is None or full.peak < finished.peak):
            finished = full
        front = sorted(reached.values(), key=lambda state: (max(state.peak, least), state.live))[:width]
    return finished if finished is not None else steps.start()


def _search(steps: _ReadySteps, known: _OrderState, least: int, states: int) -> tuple[_OrderState, bool]:
    """The lowest path from no task to all of them, or the known one when it cannot be improved or states run out."""
    count = looks = 0
    seen: set[int] = set()
    start = steps.start()
    queue = [(max(start.peak, least), 0, 0, start)]
    while queue:
        height, _, _, state = heapq.heappop(queue)
        if state.done in seen:
            continue
        seen.add(state.done)
        if state.done == steps.everything:
            return state, True
        if len(seen) > states or looks > states * LOOKS_PER_STATE:
            return known, False
        found = steps.next(state, height, len(steps.blocks))
        looks += len(found)
        for after in found:
            if after.peak < known.peak and after.done not in seen:
                count += 1
                # Of equally high sets the larger goes first: near the end the search is nearly done.
                heapq.heappush(queue, (max(height, after.peak), -after.done.bit_count(), count, after))
    return known, True
