"""The validator accepts what the planner makes and refuses every way to break it."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from passes.build import Builder, noise, platform
from support import assert_linear, lines_run
from tilewright.core.graph import Array, Graph, Node
from tilewright.core.interpret import interpret
from tilewright.core.op import REGISTRY
from tilewright.core.plan import Choice, Place, Plan
from tilewright.passes import run_pipeline
from tilewright.passes.outputs import outputs
from tilewright.plan import PlanError, PlanOptions, check, plan

GENERIC = platform()


def planned(graph: Graph, *, passes: bool = True) -> Plan:
    lowered = run_pipeline(graph, GENERIC) if passes else outputs(graph, GENERIC)
    return plan(lowered, GENERIC, PlanOptions(seconds=0.0))


def executed(plan: Plan, inputs: list[Array]) -> list[bytes]:
    """Runs a plan literally: references on tensors that are cut out of byte arrays and written back."""
    graph = plan.graph
    arena = bytearray(plan.arena_bytes)
    results = [bytearray(graph.types[name].bytes) for name in graph.outputs]
    fed = dict(zip(graph.inputs, inputs, strict=True))

    def place(name: str) -> tuple[bytearray, int] | None:
        where = plan.places[name]
        if where.space == "arena":
            return arena, where.offset
        return (results[where.index], where.offset) if where.space == "output" else None

    def read(name: str) -> Array:
        where, kind = place(name), graph.types[name]
        if where is None:
            at = plan.places[name]
            source = graph.constants[name] if at.space == "constant" else fed[graph.inputs[at.index]]
            return np.asarray(source).reshape(kind.shape)
        memory, offset = where
        return np.frombuffer(bytes(memory[offset : offset + kind.bytes]), kind.dtype.numpy).reshape(kind.shape)

    for step, node in enumerate(graph.nodes):
        if REGISTRY[node.op].kind == "view" and not node.epilogue:
            continue
        names = tuple(name for name in node.reads if name not in graph.constants)
        single = replace(graph, inputs=names, outputs=tuple(filter(None, node.outputs)), nodes=(node,))
        made = interpret(single, [read(name) for name in names])
        if plan.choices[step].scratch:
            start = plan.scratch[step]
            arena[start : start + plan.choices[step].scratch] = b"\xa5" * plan.choices[step].scratch
        for name, array in zip(single.outputs, made, strict=True):
            where = place(name)
            assert where is not None
            memory, offset = where
            memory[offset : offset + array.nbytes] = array.tobytes()
    return [bytes(result) for result in results]


# Networks


def residual() -> Graph:
    """A block with a residual, a view, a softmax and two outputs."""
    b = Builder()
    x = b.input("x", "float32[1,8,16]")
    hidden = b.op("MatMul", x, b.weights(16, 16), name="hidden")
    active = b.op("Tanh", hidden, name="active")
    again = b.op("MatMul", active, b.weights(16, 16), name="again")
    flat = b.op("Reshape", b.op("Softmax", again, name="soft"), [8, 16], name="flat")
    total = b.op("Add", b.op("Reshape", b.op("MatMul", active, b.weights(16, 16), name="other"), [8, 16]), flat)
    return b.graph(b.op("MatMul", total, b.weights(16, 8), name="y"), b.op("ReduceMax", total, [1], name="z"))


def convolutions() -> Graph:
    b = Builder()
    x = b.input("x", "float32[1,3,12,12]")
    first = b.op("Relu", b.op("Conv", x, b.weights(8, 3, 3, 3), b.weights(8), pads=(1, 1, 1, 1)))
    second = b.op("Conv", first, b.weights(8, 8, 3, 3), pads=(1, 1, 1, 1))
    pooled = b.op("MaxPool", b.op("Add", first, second), kernel_shape=(2, 2), strides=(2, 2))
    return b.graph(b.op("Flatten", b.op("GlobalAveragePool", pooled)))


def integers() -> Graph:
    b = Builder()
    x = b.input("x", "int8[1,8,8,4]")
    y = b.op("Conv", b.op("Transpose", x, perm=(0, 3, 1, 2)), b.weights(8, 4, 3, 3, dtype="int8"))
    mul, add = np.asarray(3, np.int32), np.asarray(0, np.int32)
    return b.graph(b.op("RequantShift", y, mul, add, div=1024, n_levels=256, signed=1))


def many_outputs() -> Graph:
    b = Builder()
    x = b.input("x", "float32[4,6]")
    y = b.op("Exp", x)
    parts = b.ops("Split", y, [2, 2, 2], names=("a", "b", "c"), axis=1)
    return b.graph(*parts, y, x, b.op("Reshape", y, [6, 4]), y)


def recurrent() -> Graph:
    b = Builder()
    x = b.input("x", "float32[5,2,3]")
    y, last = b.ops("GRU", x, b.weights(1, 12, 3), b.weights(1, 12, 4), names=("y", "last"), hidden_size=4)
    return b.graph(b.op("Relu", y), last)


NETWORKS = [residual, convolutions, integers, many_outputs, recurrent]


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("passes", [True, False])
def test_the_plans_of_the_planner_are_right(network: Callable[[], Graph], passes: bool) -> None:
    graph = network()
    made = planned(graph, passes=passes)
    check(made)
    inputs = noise(graph)
    assert executed(made, inputs) == [array.tobytes() for array in interpret(made.graph, inputs)]


OPS = (
    "Add",
    "Mul",
    "Relu",
    "Tanh",
    "Softmax",
    "MatMul",
    "Reshape",
    "Transpose",
    "Concat",
    "Split",
    "ReduceSum",
    "Cast",
)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Small random networks: every operator takes any earlier tensors that suit it."""
    b = Builder()
    square = [b.input("x", "float32[4,4]")]
    if draw(st.booleans()):
        square.append(b.input("w", "float32[4,4]"))
    others: list[str] = []
    for _ in range(draw(st.integers(1, 14))):
        op = draw(st.sampled_from(OPS))
        a, c = draw(st.sampled_from(square)), draw(st.sampled_from(square))
        match op:
            case "Add" | "Mul" | "MatMul":
                square.append(b.op(op, a, c))
            case "Reshape":
                square.append(b.op(op, b.op(op, a, [2, 8]), [4, 4]))
            case "Transpose":
                square.append(b.op(op, a, perm=(1, 0)))
            case "Concat":
                others.append(b.op(op, a, c, axis=0))
            case "Split":
                left, right = b.ops(op, a, [2, 2], names=(f"{a}_l{len(others)}", f"{a}_r{len(others)}"), axis=1)
                others += [left, right]
                square.append(b.op("Concat", right, left, axis=1))
            case "ReduceSum":
                square.append(b.op("Add", a, b.op(op, c, [1], keepdims=1)))
            case "Cast":
                others.append(b.op(op, a, to=3))
            case _:
                square.append(b.op(op, a))
    results = draw(st.lists(st.sampled_from([*square, *others]), min_size=1, max_size=4))
    return b.graph(*results)


@given(graphs(), st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_plans_of_random_networks_are_right(graph: Graph, passes: bool) -> None:
    made = planned(graph, passes=passes)
    check(made)
    inputs = noise(graph)
    assert executed(made, inputs) == [array.tobytes() for array in interpret(made.graph, inputs)]


@given(graphs(), st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
def test_a_moved_tensor_is_refused_or_harmless(graph: Graph, data: st.DataObject) -> None:
    """Whatever the validator lets pass computes the same."""
    made = planned(graph, passes=False)
    movable = [name for name, place in made.places.items() if place.space == "arena" and made.graph.types[name].bytes]
    if not movable:
        return
    name = data.draw(st.sampled_from(movable))
    target = Place("arena", 16 * data.draw(st.integers(0, made.arena_bytes // 16)))
    moved = {n: target if made.places[n] == made.places[name] else p for n, p in made.places.items()}
    buffers = tuple(replace(b, place=moved.get(b.name, b.place)) for b in made.buffers)
    broken = replace(made, places=MappingProxyType(moved), buffers=buffers)
    try:
        check(broken)
    except PlanError:
        return
    inputs = noise(graph)
    assert executed(broken, inputs) == [array.tobytes() for array in interpret(made.graph, inputs)]


# Ways to break a plan


def moved(made: Plan, name: str, place: Place) -> Plan:
    """A tensor somewhere else, its buffer with it."""
    buffers = tuple(replace(b, place=place) if b.name == name else b for b in made.buffers)
    return replace(made, places=MappingProxyType({**made.places, name: place}), buffers=buffers)


def chain() -> Plan:
    """x -> h -> (t, u) -> v -> y with known places: nothing is in place, and nothing is lent."""
    b = Builder()
    x = b.input("x", "float32[4,4]")
    h = b.op("MatMul", x, b.weights(4, 4), name="h")
    t = b.op("Transpose", h, name="t", perm=(1, 0))
    u = b.op("Concat", t, h, name="u", axis=0)
    v = b.op("Reshape", u, [4, 8], name="v")
    graph = b.graph(b.op("MatMul", v, b.weights(8, 4), name="y"))
    made = plan(graph, GENERIC, PlanOptions(seconds=0.0))
    places = {**made.places, "h": Place("arena", 0), "t": Place("arena", 64)}
    places |= {"u": Place("arena", 128), "v": Place("arena", 128)}
    choices = tuple(Choice("cpu" if node.op != "Reshape" else "", None) for node in graph.nodes)
    return replace(
        made,
        choices=choices,
        places=MappingProxyType(places),
        buffers=(),
        scratch=MappingProxyType({}),
        arena_bytes=256,
    )


def with_nodes(made: Plan, keep: Callable[[tuple[Node, ...]], tuple[Node, ...]]) -> Plan:
    nodes = keep(made.graph.nodes)
    choices = {node.outputs: choice for node, choice in zip(made.graph.nodes, made.choices, strict=True)}
    return replace(made, graph=replace(made.graph, nodes=nodes), choices=tuple(choices[node.outputs] for node in nodes))


def with_scratch(made: Plan, step: int, size: int, offset: int) -> Plan:
    choices = tuple(replace(c, scratch=size) if i == step else c for i, c in enumerate(made.choices))
    return replace(made, choices=choices, scratch=MappingProxyType({step: offset}))


def with_type(made: Plan, step: int) -> Plan:
    """The integer kernel of a product chosen for floats."""
    kernel = next(k for k in GENERIC.kernels if k.op == "MatMul" and "int8" in k.types["B"])
    choices = tuple(Choice("cpu", kernel) if i == step else c for i, c in enumerate(made.choices))
    return replace(made, choices=choices)


CORRUPTIONS: list[tuple[str, Callable[[Plan], Plan], str]] = [
    (
        "overlapping offset",
        lambda p: moved(p, "t", Place("arena", 32)),
        "'t' (arena bytes 32..96) over its operand 'h' (arena bytes 0..64)",
    ),
    (
        "scratch over an operand",
        lambda p: with_scratch(p, 2, 64, 64),
        "'scratch of step 2' (arena bytes 64..128) over its operand 't'",
    ),
    (
        "scratch over a tensor that is read later",
        lambda p: with_scratch(p, 1, 16, 0),
        "'scratch of step 1' (arena bytes 0..16) over its operand 'h'",
    ),
    ("scratch over a result", lambda p: with_scratch(p, 0, 16, 48), "writes 'h' (arena bytes 0..64) over 'scratch"),
    ("scratch outside", lambda p: with_scratch(p, 0, 16, 250), "outside its 256 bytes"),
    ("scratch without offset", lambda p: replace(with_scratch(p, 0, 8, 64), scratch=MappingProxyType({})), "scratch"),
    ("wrong order", lambda p: with_nodes(p, lambda n: (n[1], n[0], *n[2:])), "reads 'h' before anything makes it"),
    ("missing node", lambda p: with_nodes(p, lambda n: (*n[:1], *n[2:])), "reads 't' before anything makes it"),
    ("node twice", lambda p: with_nodes(p, lambda n: (*n, n[1])), "makes 't', which is there already"),
    ("missing last node", lambda p: with_nodes(p, lambda n: n[:-1]), "output 'y' is never made"),
    ("missing choice", lambda p: replace(p, choices=p.choices[:-1]), "5 nodes, but 4 choices"),
    (
        "output offset out of range",
        lambda p: moved(p, "t", Place("output", 32, 0)),
        "output 0 bytes 32..96 lie outside",
    ),
    ("no such output", lambda p: moved(p, "t", Place("output", 0, 3)), "there is no output 3"),
    ("misaligned in the arena", lambda p: moved(p, "t", Place("arena", 68)), "not aligned to 16"),
    ("lent more than there is", lambda p: moved(moved(p, "u", Place("output")), "v", Place("output")), "outside"),
    ("output elsewhere", lambda p: moved(p, "y", Place("arena", 0)), "output 0 'y' is at"),
    ("view pointing elsewhere", lambda p: moved(p, "v", Place("arena", 0)), "is a view of 'u'"),
    ("arena too small", lambda p: replace(p, arena_bytes=200), "lie outside its 200 bytes"),
    ("tensor without place", lambda p: replace(p, places=MappingProxyType({"x": p.places["x"]})), "'h' has no place"),
    ("input written", lambda p: moved(p, "t", Place("input")), "which is only read"),
    ("constant place", lambda p: moved(p, "t", Place("constant")), "'t' is no constant"),
    ("kernel of other types", lambda p: with_type(p, 0), "takes A: T, found float32"),
    ("kernel of another operator", lambda p: with_type(p, 1), "computes MatMul"),
    (
        "operand overwritten too early",
        lambda p: moved(moved(p, "u", Place("arena", 0)), "v", Place("arena", 0)),
        "over its operand 'h'",
    ),
    ("unknown engine", lambda p: replace(p, choices=(Choice("npu", None), *p.choices[1:])), "engine 'npu'"),
    ("node without code", lambda p: with_nodes(p, lambda n: (replace(n[0], op="LSTM"), *n[1:])), "neither a kernel"),
]


def test_the_chain_is_right() -> None:
    check(chain())


@pytest.mark.parametrize(("corrupt", "message"), [c[1:] for c in CORRUPTIONS], ids=[c[0] for c in CORRUPTIONS])
def test_a_broken_plan_is_refused(corrupt: Callable[[Plan], Plan], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        check(corrupt(chain()))
    assert message in str(caught.value)


def test_a_tensor_overwritten_between_its_uses_is_found() -> None:
    b = Builder()
    x = b.input("x", "float32[4]")
    first = b.op("Exp", x, name="first")
    second = b.op("Neg", first, name="second")
    graph = b.graph(b.op("Concat", second, first, name="y", axis=0))
    made = plan(graph, GENERIC, PlanOptions(seconds=0.0))
    # `second` may take the bytes of its element-wise operand, but that operand is needed once more.
    broken = moved(moved(made, "first", Place("arena", 0)), "second", Place("arena", 0))
    with pytest.raises(PlanError, match=r"'first' .arena bytes 0..16. is needed, but 'second' was written there"):
        check(replace(broken, buffers=(), arena_bytes=16))


def test_a_buffer_lent_until_its_output_is_written_is_found() -> None:
    b = Builder()
    x = b.input("x", "float32[2,2]")
    early = b.op("Exp", x, name="early")
    graph = b.graph(b.op("Transpose", early, name="first", perm=(1, 0)), b.op("Neg", early, name="late"))
    made = plan(graph, GENERIC, PlanOptions(seconds=0.0))
    # Step 1 writes the first output while `early`, lent its memory, is needed until step 2.
    broken = moved(made, "early", Place("output", 0, 0))
    with pytest.raises(PlanError, match=r"over its operand 'early'.*(\n.*)*'early' .* is needed"):
        check(replace(broken, buffers=()))


@pytest.mark.parametrize(("kind", "offset"), [("float32", 2), ("int8", 0)])
def test_a_misaligned_tensor_in_an_output_is_found(kind: str, offset: int) -> None:
    """Callers align an output to its elements only, so wider elements have no place in it."""
    b = Builder()
    early = b.op("Exp", b.input("x", "float32[2]"), name="early")
    graph = b.graph(b.op("ReduceSum", early, name="sum"), b.op("Tile", b.input("z", f"{kind}[32]"), [2], name="late"))
    made = plan(graph, GENERIC, PlanOptions(seconds=0.0))
    with pytest.raises(PlanError, match=r"'early' .* is not aligned to 4"):
        check(replace(moved(made, "early", Place("output", offset, 1)), buffers=()))


def test_an_operand_that_the_epilogue_reads_too_is_kept() -> None:
    """Softmax may take its operand's bytes, but not where the operand is added to the result afterwards."""
    b = Builder()
    h = b.op("MatMul", b.input("x", "float32[4,4]"), b.weights(4, 4), name="h")
    graph = b.graph(b.op("MatMul", b.op("Add", b.op("Softmax", h), h, name="y"), b.weights(4, 4), name="z"))
    made = planned(graph)
    check(made)
    assert [len(node.epilogue) for node in made.graph.nodes] == [0, 1, 0]
    assert made.places["h"] != made.places["y"]


def in_place(op: str, *, kernel: str = "", extra: bool = False) -> Plan:
    """Tanh, then an operator whose result takes the bytes of the tanh."""
    b = Builder()
    x = b.input("x", "float32[4,4]")
    h = b.op("Tanh", x, name="h")
    operands = (h, h) if op == "MatMul" else (h,)
    y = b.op(op, *operands, name="y", **({"perm": (1, 0)} if op == "Transpose" else {}))
    graph = b.graph(b.op("Concat", y, *([h] if extra else []), y, name="z", axis=0))
    made = plan(graph, GENERIC, PlanOptions(seconds=0.0))
    chosen = next((k for k in GENERIC.kernels if k.path.name == kernel), None)
    choices = (made.choices[0], Choice("cpu", chosen), made.choices[2])
    broken = moved(moved(made, "h", Place("arena", 0)), "y", Place("arena", 0))
    return replace(broken, choices=choices, scratch=MappingProxyType({}), buffers=(), arena_bytes=64)


def test_in_place_results_are_right_where_the_code_allows_it() -> None:
    check(in_place("Exp"))
    check(in_place("Softmax", kernel="softmax_f32.c"))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: in_place("Transpose"), "over its operand 'h'"),
        (lambda: in_place("MatMul"), "over its operand 'h'"),
        (lambda: in_place("Softmax", kernel="softmax_inner_f32.c"), "over its operand 'h'"),
        (lambda: in_place("Exp", extra=True), "'h' (arena bytes 0..64) is needed, but 'y' was written there"),
    ],
    ids=["move", "product", "kernel without inplace", "operand needed later"],
)
def test_in_place_results_are_refused_where_it_does_not(made: Callable[[], Plan], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        check(made())
    assert message in str(caught.value)


def test_a_table_is_not_replaced_by_its_look_up() -> None:
    """A lookup reads the table at indices of its own, so its result cannot take the table's bytes."""
    b = Builder()
    x = b.input("x", "uint8[256]")
    table = b.op("Tile", b.input("t", "uint8[128]"), [2], name="table")
    graph = b.graph(b.op("Concat", b.op("Lookup", x, table, name="y"), x, name="z", axis=0))
    made = plan(graph, GENERIC, PlanOptions(seconds=0.0))
    check(made)
    broken = moved(moved(made, "table", Place("arena", 0)), "y", Place("arena", 0))
    with pytest.raises(PlanError, match="over its operand 'table'"):
        check(replace(broken, buffers=()))


def test_all_violations_are_listed() -> None:
    with pytest.raises(PlanError) as caught:
        check(replace(moved(chain(), "t", Place("arena", 68)), arena_bytes=200))
    assert len(caught.value.violations) >= 3


def test_work_of_checking_grows_with_the_nodes() -> None:
    def of_nodes(count: int) -> Plan:
        b = Builder()
        tensor = b.input("x", "float32[8,8]")
        for index in range(count // 2):
            product = b.op("MatMul", tensor, b.weights(8, 8))
            tensor = b.op("Softmax" if index % 3 else "Tanh", b.op("Add", product, tensor) if index % 2 else product)
        return planned(b.graph(tensor), passes=False)

    check(of_nodes(4))  # what is worked out once is not counted
    plans = [of_nodes(count) for count in (120, 240, 480)]
    assert_linear([lines_run(lambda made=made: check(made)) for made in plans])
