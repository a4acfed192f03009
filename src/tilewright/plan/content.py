"""What nodes are to a planner, but for the names of their tensors: those that are alike are planned once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from tilewright.core.graph import Graph, Node
from tilewright.core.matching import told_names
from tilewright.core.op import words
from tilewright.core.plan import Choice
from tilewright.machine.arithmetic import worked_out
from tilewright.machine.kernel import MODE, predicate
from tilewright.plan.tiling.rules import rules
from tilewright.price.operations import streams
from tilewright.price.tasks import Task, alike

Key = tuple[Hashable, ...]


class Hashed:
    """A key that is nested deeply: it is hashed once, however often it is looked up."""

    __slots__ = ("_hash", "_key")

    def __init__(self, key: Key) -> None:
        self._key, self._hash = key, hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Hashed) and self._hash == other._hash and self._key == other._key)


class Contents:
    """Keys of nodes with their kernels: equal ones have the same tiles and the same cycles."""

    def __init__(self) -> None:
        self._tasks: dict[int, tuple[Task, Hashed]] = {}
        """By the identity of a task, which is its own as long as it is here."""
        self._keys: dict[Hashed, Hashed] = {}
        """Equal keys are one object, so that they are soon compared."""
        self._cycles: dict[Hashed, float] = {}
        self._choices: dict[tuple[int, str], tuple[Node, Graph, Choice]] = {}
        """By the identity of a node, and the engine."""

    def of(self, mine: Task) -> Hashed:
        known = self._tasks.get(id(mine))
        if known is None:
            found = Hashed(_described(mine))
            known = self._tasks[id(mine)] = (mine, self._keys.setdefault(found, found))
        return known[1]

    def cycles(self, mine: Task, price: Callable[[Task], float]) -> float:
        """What a function says of nodes that are alike."""
        key = self.of(mine)
        if key not in self._cycles:
            self._cycles[key] = price(mine)
        return self._cycles[key]

    def choice(self, graph: Graph, node: Node, engine: str, choose: Callable[[], Choice]) -> Choice:
        """What is chosen for a node on an engine: the same in all graphs that have the node and tensors like these."""
        if graph.bounds:
            # Loops that may be shorter have conditions of their own.
            return choose()
        _, other, found = self._choices.get((id(node), engine), (node, None, None))
        if other is None or found is None or not alike(node, graph, other):
            found = choose()
            self._choices[id(node), engine] = (node, graph, found)
        return found


def mentioned(nodes: Sequence[Node]) -> dict[str, int]:
    """The tensors that nodes name, numbered in order of mention."""
    names = dict.fromkeys(name for node in nodes for name in _mentions(node))
    return {name: number for number, name in enumerate(names)}


def connections(nodes: Sequence[Node], numbers: Mapping[str, int]) -> Key:
    """The tensors of each node by their numbers, as often as it names them: equal ones mean equal connections."""
    return tuple(tuple(numbers[name] for name in _mentions(node)) for node in nodes)


def attributes(node: Node) -> Key:
    """What a node and the steps behind it are told."""
    told = (node.attrs, *(step.attrs for step in node.epilogue))
    return tuple(tuple(sorted((name, repr(value)) for name, value in attrs.items())) for attrs in told)


def _mentions(node: Node) -> tuple[str, ...]:
    extra = (name for step in node.epilogue for name in step.tensors)
    return (*node.inputs, *extra, *node.outputs)


def _described(mine: Task) -> Key:
    """Everything that is asked of a task. Attributes and values of constants are in what follows from them."""
    node, kernel, asked = mine.member.node, mine.kernel, rules(mine)
    if kernel is None:
        code = (mine.nest.items, streams(mine.call))
    else:
        told = told_names(mine.call)
        # Tiles may reach less far, and have sizes of their own.
        other = {*mine.padding, *mine.domain.dims, *mine.domain.products}
        texts = (*kernel.formulas, kernel.scratch, *(predicate(*each) for each in asked.asks))
        known = [tuple((name, told[name]) for name in sorted((told.keys() & words(text)) - other)) for text in texts]
        jobs = tuple((*job, job[MODE]) for job in kernel.jobs)
        pads = tuple((name, mine.known[name]) for name in mine.padding)
        code = ((kernel.path, kernel.function, kernel.source, jobs), tuple(map(worked_out, texts, known)), pads)
    return (
        (node.op, len(node.outputs), tuple((step.op, step.type) for step in node.epilogue)),
        (mine.call.inputs, mine.call.outputs),
        tuple((use.key, use.writes, use.type, use.pack, use.behind) for use in mine.member.uses),
        (mine.member.domain.key, mine.domain.key),
        (asked.free, tuple(asked.blocks.items()), asked.fixed, asked.asks, asked.sums),
        tuple(mine.steps.items()),
        mine.to_bytes,
        code,
    )
