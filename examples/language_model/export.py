"""Writes a checkpoint as a decode graph in ONNX, in the form of Hugging Face's exports: `python export.py OUT.onnx`.

One token goes in with its position, a mask and past keys and values; logits and all keys and values come out. With
`--fixed` caches have room for the whole context from the beginning, and only the new rows come out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
Array = np.ndarray[Any, np.dtype[Any]]


class Exported:
    """An ONNX graph while it is made."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: Array) -> str:
        self.constants.setdefault(name, numpy_helper.from_array(value, name))
        return name

    def whole(self, *values: int) -> str:
        return self.constant("_".join(["whole", *map(str, values)]), np.asarray(values, np.int64))

    def add(self, op: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        output = name or f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], name=f"node_{len(self.nodes)}", **attributes))
        return output


def exported(arrays: Mapping[str, Array], *, fixed: bool = False) -> onnx.ModelProto:
    """The decode graph of a checkpoint; keys and values may have fewer heads than queries."""
    config: dict[str, Any] = json.loads(str(arrays["config"]))
    layers, heads, context = config["layers"], config["heads"], config["context"]
    head = config["dim"] // heads
    groups = arrays["0.wk"].shape[0] // head
    b, ids = Exported(), "tokens" if fixed else "input_ids"
    theta, eps = config.get("theta", 10000.0), config.get("eps", 1e-5)

    def norm(x: str) -> str:
        mean = b.add("ReduceMean", b.add("Mul", x, x), b.whole(-1), keepdims=1)
        return b.add("Div", x, b.add("Sqrt", b.add("Add", mean, b.constant("eps", np.asarray([eps], np.float32)))))

    def times(x: str, name: str) -> str:
        return b.add("MatMul", x, b.constant(name, np.ascontiguousarray(arrays[name].astype(np.float32).T)))

    def apart(x: str, count: int) -> str:
        return b.add("Transpose", b.add("Reshape", x, b.whole(1, 1, count, head)), perm=[0, 2, 1, 3])

    def turned(x: str) -> str:
        left = b.add("Slice", x, b.whole(0), b.whole(head // 2), b.whole(3))
        right = b.add("Slice", x, b.whole(head // 2), b.whole(head), b.whole(3))
        other = b.add("Concat", b.add("Neg", right), left, axis=-1)
        return b.add("Add", b.add("Mul", x, cosines), b.add("Mul", other, sines))

    def repeated(x: str) -> str:
        if groups == heads:
            return x
        # What follows from the length of the cache is computed from its shape, as exporters do.
        rows = b.add("Slice", b.add("Shape", x), b.whole(2), b.whole(3), b.whole(0))
        wide = b.add("Concat", b.whole(1, groups, heads // groups), rows, b.whole(head), axis=0)
        many = b.add("Expand", b.add("Unsqueeze", x, b.whole(2)), wide)
        return b.add("Reshape", many, b.add("Concat", b.whole(1, heads), rows, b.whole(head), axis=0))

    frequencies = theta ** (-np.arange(head // 2) / (head // 2))
    position = b.add("Reshape", "position" if fixed else "position_ids", b.whole(1, 1, 1, 1))
    table = b.constant("frequencies", np.tile(frequencies, 2).astype(np.float32))
    angles = b.add("Mul", b.add("Cast", position, to=TensorProto.FLOAT), table)
    cosines, sines = b.add("Cos", angles), b.add("Sin", angles)
    least = b.constant("least", np.asarray(-1e9, np.float32))
    if fixed:
        # A row of the table for each position: what lies before it, and the new row behind the cache.
        seen = np.arange(context + 1) < np.arange(context)[:, None]
        seen[:, -1] = True
        rows = b.constant("masks", np.where(seen, 0, -1e9).astype(np.float32).reshape(context, 1, 1, context + 1))
        mask = b.add("Gather", rows, "position", axis=0)
    else:
        count = b.add("Squeeze", b.add("Shape", "past_key_values.0.key", start=2, end=3))
        total = b.add("Add", count, b.constant("one", np.asarray(1, np.int64)))
        steps = b.add("Range", b.constant("zero", np.asarray(0, np.int64)), total, "one")
        before = b.add("LessOrEqual", steps, count)
        kept = b.add("And", before, b.add("Cast", "attention_mask", to=TensorProto.BOOL))
        mask = b.add("Where", kept, b.constant("none", np.asarray(0, np.float32)), least)
    scale = b.constant("scale", np.asarray(head**-0.5, np.float32))
    x = b.add(
        "Gather", b.constant("emb", arrays["emb"].astype(np.float32)), b.add("Reshape", ids, b.whole(1, 1)), axis=0
    )
    inputs, outputs = list[onnx.ValueInfoProto](), list[onnx.ValueInfoProto]()
    for number in range(layers):
        n = f"{number}."
        inner = norm(x)
        query, key = (turned(apart(times(inner, n + w), c)) for w, c in (("wq", heads), ("wk", groups)))
        value = apart(times(inner, n + "wv"), groups)
        both: list[str] = []
        for part, rows in (("key", key), ("value", value)):
            past, present = f"past_key_values.{n}{part}", f"present.{n}{part}"
            all_rows = b.add("Concat", past, rows, name="" if fixed else present, axis=2)
            if fixed:
                b.add("Identity", rows, name=present)
            inputs.append(_float(past, 1, groups, context if fixed else "past", head))
            outputs.append(_float(present, 1, groups, 1 if fixed else "past + 1", head))
            both.append(repeated(all_rows))
        scores = b.add("Mul", b.add("MatMul", query, b.add("Transpose", both[0], perm=[0, 1, 3, 2])), scale)
        weights = b.add("Softmax", b.add("Add", scores, mask), axis=-1)
        mixed = b.add("Transpose", b.add("MatMul", weights, both[1]), perm=[0, 2, 1, 3])
        x = b.add("Add", x, times(b.add("Reshape", mixed, b.whole(1, 1, config["dim"])), n + "wo"))
        inner = norm(x)
        gate = times(inner, n + "gate")
        hidden = b.add("Mul", b.add("Mul", gate, b.add("Sigmoid", gate)), times(inner, n + "up"))
        x = b.add("Add", x, times(hidden, n + "down"))
    turned_emb = b.constant("head", np.ascontiguousarray(arrays["emb"].astype(np.float32).T))
    b.add("MatMul", norm(x), turned_emb, name="logits")
    whole = {ids: (1,) if fixed else (1, 1), "position" if fixed else "position_ids": (1,) if fixed else (1, 1)}
    whole |= {} if fixed else {"attention_mask": (1, "past + 1")}
    own = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name, shape in whole.items()]
    logits = _float("logits", 1, 1, config["vocab"])
    graph = helper.make_graph(b.nodes, "decode", [*own, *inputs], [logits, *outputs], list(b.constants.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def _float(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list[Any](shape))


def main() -> None:
    """Exports the model of this folder, or another one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--model", type=Path, default=HERE / "model.npz")
    parser.add_argument("--fixed", action="store_true")
    given = parser.parse_args()
    with np.load(given.model) as arrays:
        onnx.save(exported(dict(arrays), fixed=given.fixed), given.output)


if __name__ == "__main__":
    main()
