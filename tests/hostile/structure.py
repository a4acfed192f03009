"""Models that are put together wrongly: names, types, functions, inner graphs, versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper

from onnx_models import model, node, value

INPUT = [value("x", (2, 3))]


def relu() -> onnx.ModelProto:
    return model([node("Relu", "x", "y")], INPUT, ["y"])


def changed(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    """A small model after a change in place."""
    built = relu()
    change(built)
    return built


def of(*nodes: onnx.NodeProto, outputs: Sequence[str] = ("y",), **rest: Any) -> onnx.ModelProto:
    return model(nodes, INPUT, outputs, **rest)


def attribute(**content: Any) -> onnx.ModelProto:
    """A Softmax whose axis is given as something else."""
    built = of(node("Softmax", "x", "y"))
    built.graph.node[0].attribute.add(name="axis", **content)
    return built


def typed(kind: onnx.TypeProto | None) -> onnx.ModelProto:
    """A model whose input has this type."""
    built = relu()
    built.graph.input[0].ClearField("type")
    if kind is not None:
        built.graph.input[0].type.CopyFrom(kind)
    return built


def tensor(data_type: int, **content: Any) -> onnx.ModelProto:
    """A model with a constant of this element type."""
    built = of(node("Add", "x w", "y"))
    built.graph.initializer.add(name="w", data_type=data_type, dims=[2, 3], **content)
    return built


def function(name: str, *calls: str) -> onnx.FunctionProto:
    """A function that calls others in a chain."""
    names = ["a", *(f"t{i}" for i in range(len(calls) - 1)), "b"]
    nodes = [node(op, names[i], names[i + 1], domain="" if op == "Relu" else "own") for i, op in enumerate(calls)]
    opsets = [helper.make_opsetid("own", 1), helper.make_opsetid("", 20)]
    return helper.make_function("own", name, ["a"], ["b"], nodes, opsets)


def calling(*functions: onnx.FunctionProto) -> onnx.ModelProto:
    return of(node(functions[0].name, "x", "y", domain="own"), functions=functions, domains=["own"])


def doubling(depth: int) -> onnx.ModelProto:
    """Each function calls the next one twice."""
    chain = [function(f"F{i}", f"F{i + 1}", f"F{i + 1}") for i in range(depth)]
    return calling(*chain, function(f"F{depth}", "Relu"))


def graph(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], inputs: Sequence[str] = ()) -> onnx.GraphProto:
    return helper.make_graph(list(nodes), "inner", [value(n, None) for n in inputs], [value(n, None) for n in outputs])


def branch(then: onnx.GraphProto, other: onnx.GraphProto | None, condition: Any = True) -> onnx.ModelProto:
    branches: dict[str, Any] = {"then_branch": then} | ({"else_branch": other} if other is not None else {})
    nodes = [helper.make_node("If", ["c"], ["y"], **branches)]
    return of(*nodes, constants={"c": np.array(condition)})


ONE = graph([node("Relu", "x", "r")], ["r"])


def nested_ifs(depth: int, condition: str) -> onnx.ModelProto:
    inner = ONE
    for level in range(depth):
        made = helper.make_node("If", [condition], [f"o{level}"], then_branch=inner, else_branch=ONE)
        inner = graph([made], [f"o{level}"])
    nodes = [helper.make_node("If", [condition], ["y"], then_branch=inner, else_branch=ONE)]
    kinds = [*INPUT, value("d", (), TensorProto.BOOL)]
    return model(nodes, kinds, ["y"], constants={"c": np.array(True)})


def loop(body: onnx.GraphProto, *, trips: int | None, going: str = "c", outputs: str = "y") -> onnx.ModelProto:
    constants = {"c": np.array(True)} | ({"n": np.array(trips)} if trips is not None else {})
    nodes = [node("Loop", f"{'n' if trips is not None else '-'} {going} x", outputs, body=body)]
    return of(*nodes, constants=constants)


def step(*nodes: onnx.NodeProto, outputs: Sequence[str] = ("go", "s1")) -> onnx.GraphProto:
    return graph(nodes, outputs, ["i", "go", "s0"])


def nested_loops(depth: int, trips: int) -> onnx.ModelProto:
    body = step(node("Relu", "s0", "s1"))
    for level in range(depth):
        inner = node("Loop", "n c s0", f"l{level}", body=body)
        body = step(inner, outputs=("go", f"l{level}"))
    return loop(body, trips=trips)


def scan(count: int, body: onnx.GraphProto, **attrs: Any) -> onnx.ModelProto:
    return of(node("Scan", "x", "y", body=body, num_scan_inputs=count, **attrs))


MORE = step(node("Relu", "s0", "s1"))

EXPANDING: dict[str, Any] = {
    "a function that calls itself": calling(function("F", "F")),
    "a function that calls itself twice": calling(function("F", "F", "F")),
    "functions that call each other": calling(function("F", "G", "G"), function("G", "F", "F")),
    "functions that double 60 times": doubling(60),
    "functions that double 30 times": doubling(30),
    "a loop without end": loop(MORE, trips=None),
    "a loop of 2^62 steps": loop(MORE, trips=1 << 62),
    "a loop of nothing without end": loop(graph([], ["go", "s0"], ["i", "go", "s0"]), trips=None),
    "loops in loops": nested_loops(5, 5000),
    "a loop around doubling functions": of(
        node("Loop", "n c x", "y", body=step(node("F0", "s0", "s1", domain="own"))),
        constants={"n": np.array(1000), "c": np.array(True)},
        functions=[*(function(f"F{i}", f"F{i + 1}", f"F{i + 1}") for i in range(12)), function("F12", "Relu")],
        domains=["own"],
    ),
    "a scan of a million steps": model(
        [node("Scan", "x", "y", body=graph([node("Relu", "e", "r")], ["r"], ["e"]), num_scan_inputs=1)],
        [value("x", (1_000_000, 2))],
        ["y"],
    ),
}
"""They end in one clear error, however much they would expand to."""

BAD: dict[str, Any] = {
    "two inputs of one name": model([node("Relu", "x", "y")], [*INPUT, *INPUT], ["y"]),
    "two inputs of one name and other shapes": model(
        [node("Relu", "x", "y")], [*INPUT, value("x", (5,), TensorProto.INT8)], ["y"]
    ),
    "two nodes that make one tensor": of(node("Relu", "x", "y"), node("Neg", "x", "y")),
    "a node that makes a tensor twice": of(node("Split", "x", "y y", num_outputs=2)),
    "a node that makes an input": of(node("Relu", "x", "t"), node("Neg", "t", "x"), outputs=["x"]),
    "a node that makes a constant": of(node("Relu", "x", "w"), outputs=["w"], constants={"w": np.ones(3)}),
    "an input without a name": model([node("Relu", "x", "y")], [*INPUT, value("", (2,))], ["y"]),
    "an output without a name": of(node("Relu", "x", "y"), outputs=["y", ""]),
    "a cycle": of(node("Add", "x b", "y"), node("Relu", "y", "b")),
    "a node that reads itself": of(node("Add", "x y", "y")),
    "a tensor that nothing makes": of(node("Add", "x ghost", "y")),
    "no graph": changed(lambda m: m.ClearField("graph")),
    "nothing in the graph": changed(lambda m: m.graph.Clear()),
    "no operator": changed(lambda m: m.graph.node[0].ClearField("op_type")),
    "an unknown operator": of(node("Conjure", "x", "y")),
    "too many inputs": of(node("Relu", "x x x x", "y")),
    "too few inputs": of(node("Add", "x", "y")),
    "no inputs": of(node("Add", "", "y")),
    "too many outputs": of(node("Relu", "x", "y z w"), outputs=["y", "z", "w"]),
    "an absent required input": of(node("Add", "x -", "y")),
    "an attribute that is no number": attribute(type=AttributeProto.STRING, s=b"axis"),
    "an attribute of floats": attribute(type=AttributeProto.FLOATS, floats=[1.0, 2.0]),
    "an attribute that is a graph": attribute(type=AttributeProto.GRAPH, g=ONE),
    "an attribute that is a tensor": attribute(
        type=AttributeProto.TENSOR, t=helper.make_tensor("t", TensorProto.FLOAT, [2], [1.0, 2.0])
    ),
    "an attribute that is a type": attribute(type=AttributeProto.TYPE_PROTO),
    "an attribute that is a sparse tensor": attribute(type=AttributeProto.SPARSE_TENSOR),
    "an attribute that is nan": attribute(type=AttributeProto.FLOAT, f=float("nan")),
    "an attribute that is infinite": attribute(type=AttributeProto.FLOAT, f=float("inf")),
    "an unknown element type": typed(helper.make_tensor_type_proto(999, [2, 3])),
    "an undefined element type": typed(helper.make_tensor_type_proto(0, [2, 3])),
    "text": typed(helper.make_tensor_type_proto(TensorProto.STRING, [2, 3])),
    "complex numbers": typed(helper.make_tensor_type_proto(TensorProto.COMPLEX64, [2, 3])),
    "no type": typed(None),
    "no rank": typed(helper.make_tensor_type_proto(TensorProto.FLOAT, None)),
    "a sequence": typed(helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))),
    "an optional": typed(helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))),
    "a map": typed(helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(1, [2]))),
    "a sparse tensor": typed(helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2])),
    "a constant of text": tensor(TensorProto.STRING, string_data=[b"a"] * 6),
    "a constant of an unknown type": tensor(999, raw_data=bytes(24)),
    "a constant of no type": tensor(0, raw_data=bytes(24)),
    "a constant of complex numbers": tensor(TensorProto.COMPLEX64, raw_data=bytes(48)),
    "a constant in the wrong field": tensor(TensorProto.FLOAT, int64_data=[1] * 6),
    "a constant of 4 bits cut short": tensor(TensorProto.INT4, raw_data=b"1"),
    "a sparse constant": changed(
        lambda m: m.graph.sparse_initializer.add().values.CopyFrom(
            helper.make_tensor("x", TensorProto.FLOAT, [1], [1.0])
        )
    ),
    "an If without branches": of(node("If", "c", "y"), constants={"c": np.array(True)}),
    "an If without an else": branch(ONE, None, False),
    "an If whose branch reads nothing": branch(graph([node("Relu", "ghost", "r")], ["r"]), ONE),
    "an If whose branch makes nothing": branch(graph([], ["ghost"]), ONE),
    "an If whose branch has no outputs": branch(graph([node("Relu", "x", "r")], []), ONE),
    "an If of no condition": of(helper.make_node("If", [], ["y"], then_branch=ONE, else_branch=ONE)),
    "a Loop without a body": of(node("Loop", "n c x", "y"), constants={"n": np.array(2), "c": np.array(True)}),
    "a Loop of too few body inputs": loop(graph([node("Relu", "i", "r")], ["i", "r"], ["i"]), trips=2),
    "a Loop of too few body outputs": loop(graph([], ["go"], ["i", "go", "s0"]), trips=2),
    "a Loop of no body outputs": loop(graph([], [], ["i", "go", "s0"]), trips=2),
    "a Loop of a list of steps": of(
        node("Loop", "n c x", "y", body=MORE), constants={"n": np.zeros(0, np.int64), "c": np.array(True)}
    ),
    "a Scan without a body": of(node("Scan", "x", "y", num_scan_inputs=1)),
    "a Scan without a count": of(node("Scan", "x", "y", body=graph([], ["e"], ["e"]))),
    "a Scan of 0 inputs": scan(0, graph([], ["e"], ["e"])),
    "a Scan of -1 inputs": scan(-1, graph([], ["e"], ["e"])),
    "a Scan of 99 inputs": scan(99, graph([], ["e"], ["e"])),
    "a Scan of an axis outside": scan(1, graph([], ["e"], ["e"]), scan_input_axes=[9]),
    "a Scan of too many axes": scan(1, graph([], ["e"], ["e"]), scan_input_axes=[0, 0, 0]),
    "a Scan of an output axis outside": scan(1, graph([], ["e"], ["e"]), scan_output_axes=[9]),
    "a Scan of too few body inputs": scan(1, graph([node("Relu", "x", "r")], ["r"])),
    "a function without nodes": calling(helper.make_function("own", "F", ["a"], ["b"], [], [])),
    "a function that reads nothing": calling(
        helper.make_function("own", "F", ["a"], ["b"], [node("Relu", "ghost", "b")], [helper.make_opsetid("", 20)])
    ),
    "two inputs of one name in a function": calling(
        helper.make_function("own", "F", ["a", "a"], ["b"], [node("Relu", "a", "a")], [helper.make_opsetid("", 20)])
    ),
    "a Constant without a value": of(node("Constant", "", "c"), node("Add", "x c", "y")),
    "a Constant of text": of(node("Constant", "", "c", value_string="text"), node("Add", "x c", "y")),
    "a Constant that is sparse": of(
        node(
            "Constant",
            "",
            "c",
            sparse_value=helper.make_sparse_tensor(
                helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0]),
                helper.make_tensor("i", TensorProto.INT64, [1], [0]),
                [3],
            ),
        ),
        node("Add", "x c", "y"),
    ),
    "integers where floats are needed": model(
        [node("Conv", "x w", "y")],
        [value("x", (1, 1, 4, 4), TensorProto.INT64)],
        ["y"],
        constants={"w": np.ones((1, 1, 1, 1), np.float32)},
    ),
    "bool where numbers are needed": model([node("Exp", "x", "y")], [value("x", (2,), TensorProto.BOOL)], ["y"]),
    "operands of two types": of(node("Add", "x w", "y"), constants={"w": np.ones(3, np.int64)}),
}
"""One clear error."""

ODD: dict[str, Any] = {
    "a Loop of too many outputs": loop(MORE, trips=2, outputs="y z w"),
    "an If of an empty condition": branch(ONE, ONE, np.zeros(0, np.bool_)),
    "an unknown domain": of(node("Relu", "x", "y", domain="no.such")),
    **{f"opset {n}": of(node("Relu", "x", "t"), node("Softmax", "t", "y"), opset=n) for n in range(1, 27)},
    "opset 0": of(node("Relu", "x", "y"), opset=0),
    "opset -1": of(node("Relu", "x", "y"), opset=-1),
    "opset 2^62": of(node("Relu", "x", "y"), opset=1 << 62),
    "no opset": changed(lambda m: m.ClearField("opset_import")),
    "ir version 0": changed(lambda m: m.ClearField("ir_version")),
    "ir version 2^62": changed(lambda m: setattr(m, "ir_version", 1 << 62)),
    "no outputs": of(node("Relu", "x", "y"), outputs=[]),
    "no nodes": of(outputs=["x"]),
    "an output that is an input": of(node("Relu", "x", "y"), outputs=["y", "x"]),
    "an output twice": of(node("Relu", "x", "y"), outputs=["y", "y"]),
    "an output that is a constant": of(outputs=["w"], constants={"w": np.ones(3, np.float32)}),
    "only constants": model([node("Add", "a a", "y")], [], ["y"], constants={"a": np.ones(3, np.float32)}),
    "only an initializer": model([], [], ["a"], constants={"a": np.ones(3, np.float32)}),
    "two initializers of one name": changed(
        lambda m: [
            m.graph.initializer.append(helper.make_tensor("x", TensorProto.FLOAT, [2, 3], [1.0] * 6)) for _ in range(2)
        ]
    ),
    "two functions of one name": calling(function("F", "Relu"), function("F", "Relu")),
    "two domains of two versions": changed(lambda m: m.opset_import.add(domain="", version=7)),
    "an attribute twice": changed(lambda m: [m.graph.node[0].attribute.add(name="a", type=2, i=1) for _ in range(2)]),
    "an attribute without a name": attribute(type=AttributeProto.INT, i=1),
    "an attribute without a type": attribute(i=1),
    "an attribute of an unknown reference": attribute(type=AttributeProto.INT, ref_attr_name="ghost"),
    "names of odd characters": model(
        [node("Relu", "\x00\x1b[31m", "'\"\\\n")], [value("\x00\x1b[31m", (2,))], ["'\"\\\n"]
    ),
    "a long name": model([node("Relu", "x" * 70_000, "y")], [value("x" * 70_000, (2,))], ["y"]),
    "declared outputs of another shape": changed(lambda m: m.graph.output[0].CopyFrom(value("y", (7, 7, 7)))),
    "declared outputs of another type": changed(lambda m: m.graph.output[0].CopyFrom(value("y", (2, 3), 7))),
    "a declared extent of a long name": typed(helper.make_tensor_type_proto(1, ["n" * 70_000, 3])),
    "branches in branches": nested_ifs(25, "d"),
    "branches in branches of a constant": nested_ifs(25, "c"),
    "an If of two conditions": branch(ONE, ONE, np.array([True, False])),
    "an If of a float": branch(ONE, ONE, np.array(np.nan, np.float32)),
    "a Loop of -1 steps": loop(MORE, trips=-1),
    "a Loop of 0 steps": loop(MORE, trips=0),
    "a Loop of no steps with results": loop(
        step(node("Relu", "s0", "s1"), outputs=("go", "s1", "s1")), trips=0, outputs="y z"
    ),
    "a Scan of nothing": model(
        [node("Scan", "x", "y", body=graph([], ["e"], ["e"]), num_scan_inputs=1)], [value("x", (0, 2))], ["y"]
    ),
    "a Scan of a scalar": model(
        [node("Scan", "x", "y", body=graph([], ["e"], ["e"]), num_scan_inputs=1)], [value("x", ())], ["y"]
    ),
    "a function of unused inputs": calling(
        helper.make_function(
            "own", "F", ["a", "b", "c"], ["d"], [node("Relu", "a", "d")], [helper.make_opsetid("", 20)]
        )
    ),
    "a function that hides an operator": model(
        [node("Relu", "x", "y")],
        INPUT,
        ["y"],
        functions=[
            helper.make_function("", "Relu", ["a"], ["b"], [node("Neg", "a", "b")], [helper.make_opsetid("", 20)])
        ],
    ),
}
"""A clear error or a legal program."""
