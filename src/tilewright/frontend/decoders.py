"""Decoders of language models in ONNX files: caches that go in and out become states that grow.

Exporters write what a decoder remembers as inputs (`past_key_values.0.key`) to which it appends rows along one axis,
and give back either all rows (`present.0.key`) or the new ones. Of both kinds the same is made: one token and its
position go in, logits come out, and every cache is a state of which a run reads the rows that are there. What masks
out other rows is then not needed. Whether the result says what the file does is tried out on numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.base.dtype import INT32
from tilewright.core.graph import Array, Bound, FreshNames, Graph, Node, State, TensorType, attrs
from tilewright.core.interpret import interpret
from tilewright.core.op import REGISTRY, call_node
from tilewright.core.sizes import extents
from tilewright.errors import TilewrightError
from tilewright.frontend.importer import import_file
from tilewright.frontend.proto import CODE_OF_DTYPE, read_model
from tilewright.frontend.raw import Declared, RawModel, Unsupported

TRIED = 3
"""Rows of caches with which a result is compared with its file."""
HIDDEN = -1e4
"""What is added to scores of rows that are not to be seen is this or less."""
FLAG = "use_cache_branch"
"""With it, files of decoders that also read prompts do what they do with caches."""


class Decoder(Struct, frozen=True, eq=False):
    """A graph with two inputs, a token and its position, and states for what it remembers; logits come out."""

    graph: Graph
    context: int

    @property
    def vocab(self) -> int:
        return self.graph.types[self.graph.given[0]].shape[-1]

    @property
    def sizes(self) -> Decoder:
        """As checkpoints have them."""
        return self


class _Roles(Struct, frozen=True):
    """What the inputs of a file are for."""

    tokens: Declared
    positions: tuple[Declared, ...]
    masks: tuple[Declared, ...]
    flags: tuple[Declared, ...]
    caches: tuple[Declared, ...]

    @property
    def grows(self) -> bool:
        """Whether the length of caches is open."""
        return any(extent is None or isinstance(extent, str) for d in self.caches for extent in (d.shape or ())[1:])

    def dims(self, rows: int) -> dict[str, int]:
        """Open extents by input and axis, with so many rows of caches: one text, one token."""
        found: dict[str, int] = {}
        for declared in (self.tokens, *self.positions, *self.masks, *self.flags, *self.caches):
            other = rows + 1 if declared in self.masks else rows if declared in self.caches else 1
            for axis, extent in enumerate(declared.shape or ()):
                if not isinstance(extent, int):
                    found[f"{declared.name}:{axis}"] = other if axis else 1
        return found

    def known(self, rows: int) -> dict[str, Array]:
        """Inputs that are the same in every run: all rows may be seen, and caches are used."""
        dims = self.dims(rows)
        found: dict[str, Array] = {}
        for declared in (*self.masks, *self.flags):
            shape = (
                extent if isinstance(extent, int) else dims[f"{declared.name}:{axis}"]
                for axis, extent in enumerate(declared.shape or ())
            )
            assert not isinstance(declared.dtype, Unsupported)
            found[declared.name] = np.ones(tuple(shape), declared.dtype.numpy)
        return found


def load_decoder(path: Path, context: int, max_bytes: int | None = None) -> Decoder:
    """The decoder of an ONNX file; `context` is how much it remembers, where the file leaves that open."""
    roles = _roles(read_model(path), path.name)

    def imported(rows: int) -> Graph:
        return import_file(path, roles.dims(rows), {}, roles.known(rows), None, max_bytes, {})

    whole = imported(context - 1)
    made = _Grown(whole, roles, path.name)
    _compare(imported(TRIED) if roles.grows else whole, made, roles, path.name)
    return Decoder(made.graph, made.context)


def _roles(model: RawModel, name: str) -> _Roles:
    found: dict[str, list[Declared]] = {"token": [], "position": [], "mask": [], "flag": [], "cache": []}
    for declared in model.inputs:
        if isinstance(declared.dtype, Unsupported) or declared.shape is None:
            raise _bad(name, f"input '{declared.name}' has no type and shape that could be a decoder's")
        floating = not declared.dtype.is_integer and len(declared.shape) >= 3
        named = next((role for role in ("mask", "position") if role in declared.name.lower()), "token")
        found["cache" if floating else "flag" if declared.name == FLAG else named].append(declared)
    tokens, caches = found["token"], found["cache"]
    if len(tokens) != 1:
        raise _bad(name, f"{len(tokens)} of its inputs may be tokens: {', '.join(d.name for d in tokens) or 'none'}")
    if not caches:
        raise _bad(name, "it has no caches: no input has floats and three axes or more")
    return _Roles(tokens[0], tuple(found["position"]), tuple(found["mask"]), tuple(found["flag"]), tuple(caches))


class _Grown:
    """A graph whose caches become states."""

    def __init__(self, graph: Graph, roles: _Roles, name: str) -> None:
        self._graph, self._roles, self._name = graph, roles, name
        self._same = dict(_passed_on(graph))
        appends = {cache.name: self._append(cache.name) for cache in roles.caches}
        rows = {graph.types[node.outputs[0]].shape[axis] for node, axis in appends.values()}
        if len(rows) != 1:
            raise _bad(name, f"its caches have different numbers of rows: {sorted(rows)}")
        self._rows = rows.pop()
        self.context = self._rows if roles.grows else self._rows - 1
        self.logits = self._logits(appends)
        self.graph = self._made(appends)

    def _root(self, tensor: str) -> str:
        return self._same.get(tensor, tensor)

    def _append(self, cache: str) -> tuple[Node, int]:
        """The node that appends rows to a cache, and along which axis."""
        users = [n for n in self._graph.nodes if any(self._root(r) == cache for r in n.reads)]
        users = [n for n in users if not all(self._root(o) == cache for o in n.outputs)]
        node = users[0] if len(users) == 1 else None
        if node is None or not REGISTRY[node.op].joins or len(node.inputs) != 2 or self._root(node.inputs[0]) != cache:
            raise _bad(self._name, f"'{cache}' is used in another way than Concat({cache}, rows)")
        results = {self._root(output) for output in self._graph.outputs}
        if results.isdisjoint({self._root(node.outputs[0]), self._root(node.inputs[1])}):
            raise _bad(self._name, f"neither all rows of '{cache}' nor the new ones are an output")
        axis = call_node(self._graph, node).axis("axis", self._graph.types[cache].rank)
        if self._graph.types[node.inputs[1]].shape[axis] != 1:
            raise _bad(self._name, f"more than one row is appended to '{cache}'")
        return node, axis

    def _made(self, appends: Mapping[str, tuple[Node, int]]) -> Graph:
        graph, names = self._graph, FreshNames(self._graph)
        token, position = names.fresh("token"), names.fresh("past")
        types = {token: TensorType(INT32, (1,)), position: TensorType(INT32, ())}
        constants: dict[str, Array] = {}
        nodes: list[Node] = []
        for declared, source in ((self._roles.tokens, token), *((d, position) for d in self._roles.positions)):
            kind, wide, shape = graph.types[declared.name], names.fresh("wide"), names.fresh("shape")
            types[wide] = types[source].with_shape(kind.shape)
            constants[shape] = np.asarray(kind.shape, np.int64)
            nodes.append(Node("Reshape", (source, shape), (wide,), name=wide))
            nodes.append(Node("Cast", (wide,), (declared.name,), attrs(to=CODE_OF_DTYPE[kind.dtype]), declared.name))
        replaced = {
            id(node): Node("Append", (cache, node.inputs[1], position), node.outputs, attrs(axis=axis), node.name)
            for cache, (node, axis) in appends.items()
        }
        unmasked = dict(self._unmasked())
        for node in graph.nodes:
            if all(self._root(output) in appends for output in node.outputs):
                continue
            read = tuple(unmasked.get(name, name) for name in node.inputs)
            if node.op == "Expand":
                # Heads that share keys and values: rows, of which there may be fewer, are not what is repeated.
                shape = names.fresh("shape")
                constants[shape] = _repeated(graph.types[read[0]].shape, graph.types[node.outputs[0]].shape)
                read = (read[0], shape)
            nodes.append(replaced.get(id(node)) or replace(node, inputs=read))
        logits = unmasked.get(self.logits, self.logits)
        states = {cache: graph.types[node.outputs[0]] for cache, (node, _) in appends.items()}
        fresh = [node.outputs[0] for node, _ in appends.values()]
        made = Graph(
            graph.name,
            (token, position, *states),
            (logits, *fresh),
            _needed(nodes, (logits, *fresh)),
            MappingProxyType({**graph.types, **types, **states}),
            graph.constants,
            tuple(State(name, np.zeros(kind.shape, kind.dtype.numpy)) for name, kind in states.items()),
            (Bound(position, 0, self._rows - 1, 0),),
            MappingProxyType({cache: ((axis, position, 0),) for cache, (_, axis) in appends.items()}),
        )
        made = made.with_nodes(made.nodes, constants=constants)
        extents(made)
        return made

    def _logits(self, appends: Mapping[str, tuple[Node, int]]) -> str:
        """The output that is not remembered."""
        graph, kept = self._graph, self._kept(appends)
        logits = [output for output in graph.outputs if self._root(output) not in kept]
        if len(logits) != 1 or graph.types[logits[0]].dtype.is_integer:
            raise _bad(self._name, f"{len(logits)} of its outputs may be logits: {', '.join(logits) or 'none'}")
        return logits[0]

    def _kept(self, appends: Mapping[str, tuple[Node, int]]) -> set[str]:
        """Outputs that have what is remembered."""
        return {self._root(tensor) for node, _ in appends.values() for tensor in (node.outputs[0], node.inputs[1])}

    def _unmasked(self) -> Iterator[tuple[str, str]]:
        """Results of nodes that hide nothing but rows that are not there, and what they are made of."""
        graph, found = self._graph, dict[str, str]()
        for node in graph.nodes:
            places = {"Add": ((0, 1), (1, 0)), "Where": ((0, 1),)}.get(node.op, ())
            for mask, scores in places:
                same = graph.types[node.outputs[0]] == graph.types[node.inputs[scores]]
                if same and graph.types[node.inputs[mask]].shape[-1:] == (self._rows,) and self._hides(node, mask):
                    source = node.inputs[scores]
                    found[node.outputs[0]] = found.get(source, source)
                    break
        yield from found.items()

    def _hides(self, node: Node, mask: int) -> bool:
        """Whether a mask shows all rows that are there, and no other."""
        name = node.inputs[mask]
        positions = {declared.name for declared in self._roles.positions}
        nodes = _needed(self._graph.nodes, (name,))
        made = {output for n in nodes for output in n.made}
        if any(r not in made and r not in positions and r not in self._graph.constants for n in nodes for r in n.reads):
            return False
        part = replace(self._graph, inputs=tuple(positions), outputs=(name,), nodes=nodes)
        # Of a cache that is as long as what there is, all is seen. One of fixed length has the new row behind its end.
        for position in [self._rows - 1] if self._roles.grows else range(self._rows - 1):
            values = interpret(part, [np.asarray(position)] * len(positions))[0].reshape(-1, self._rows)
            seen = np.arange(self._rows) < position
            seen[-1] = True
            right = values == seen if node.op == "Where" else np.where(seen, values == 0, values <= HIDDEN)
            if not right.all():
                return False
        return True


def _repeated(before: Sequence[int], after: Sequence[int]) -> Array:
    """The shape with which Expand makes one of another, 1 wherever it has nothing to repeat."""
    aligned = (1,) * (len(after) - len(before)) + tuple(before)
    return np.asarray([1 if a == b else b for a, b in zip(aligned, after, strict=True)], np.int64)


def _needed(nodes: Sequence[Node], outputs: Sequence[str]) -> tuple[Node, ...]:
    """The nodes that outputs depend on."""
    wanted, kept = set(outputs), list[Node]()
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.outputs):
            kept.append(node)
            wanted.update(node.reads)
    return tuple(reversed(kept))


def _passed_on(graph: Graph) -> Iterator[tuple[str, str]]:
    """Tensors that are others under another name."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        joins = REGISTRY[node.op].joins and len(node.inputs) == 1
        same = node.op == "Cast" and graph.types[node.inputs[0]] == graph.types[node.outputs[0]]
        if joins or same or node.op == "Identity":
            found[node.outputs[0]] = found.get(node.inputs[0], node.inputs[0])
    yield from found.items()


def _compare(original: Graph, grown: _Grown, roles: _Roles, name: str) -> None:
    """An error where a graph says something else than its file, with random rows in its caches."""
    random = np.random.default_rng(0)
    fed: dict[str, Array] = {roles.tokens.name: np.asarray(1), **roles.known(TRIED)}
    fed |= {declared.name: np.asarray(TRIED) for declared in roles.positions}
    made, states = grown.graph, list[Array]()
    for cache, state in zip(made.inputs[2:], made.states, strict=True):
        shape, axis = original.types[cache].shape, made.open[cache][0][0]
        fed[cache] = random.normal(size=shape).astype(np.float32)
        rows = np.zeros_like(state.initial)
        part = tuple(slice(TRIED) if number == axis else slice(None) for number in range(len(shape)))
        rows[part] = fed[cache][part]
        states.append(rows)
    results = dict(zip(original.outputs, interpret(original, [fed[n] for n in original.inputs]), strict=True))
    found = interpret(made, [np.asarray([1]), np.asarray(TRIED), *states])[0].reshape(-1)
    wanted = results[grown.logits]
    if not np.allclose(found, wanted.reshape(-1), rtol=1e-3, atol=1e-3 * float(np.abs(wanted).max())):
        raise _bad(name, f"with {TRIED} tokens before it says something else when its caches grow")


def _bad(name: str, why: str) -> TilewrightError:
    return TilewrightError(
        "bad-checkpoint",
        f"'{name}' is not a decoder with caches",
        reasons=[why],
        help="docs/language_models.md says which ones are known; `tilewright run --steps` runs others with states",
    )


__all__ = ["Decoder", "load_decoder"]
