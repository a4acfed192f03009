"""Writes a checkpoint as a decode graph in ONNX, in the form of Hugging Face's exports: `python export.py OUT.onnx`.

One token goes in with its position, a mask and past keys and values; logits and all keys and values come out. With
`--fixed` caches have room for the whole context from the beginning, and only the new rows come out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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


@dataclass
class Decoder:
    """The decode graph of a checkpoint; keys and values may have fewer heads than queries."""

    arrays: Mapping[str, Array]
    fixed: bool
    b: Exported = field(default_factory=Exported)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list[onnx.ValueInfoProto])
    """Past keys and values; then, as `outputs`, those that come out."""
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list[onnx.ValueInfoProto])

    def __post_init__(self) -> None:
        self.config: dict[str, Any] = json.loads(str(self.arrays["config"]))
        self.heads: int = self.config["heads"]
        self.context: int = self.config["context"]
        self.head: int = self.config["dim"] // self.heads
        self.groups = self.arrays["0.wk"].shape[0] // self.head
        self.ids, self.position = ("tokens", "position") if self.fixed else ("input_ids", "position_ids")

    def model(self) -> onnx.ModelProto:
        b, config = self.b, self.config
        self.cosines, self.sines = self.rotations()
        self.mask = self.masked()
        self.scale = b.constant("scale", np.asarray(self.head**-0.5, np.float32))
        table, token = (
            b.constant("emb", self.arrays["emb"].astype(np.float32)),
            b.add("Reshape", self.ids, b.whole(1, 1)),
        )
        x = b.add("Gather", table, token, axis=0)
        for number in range(config["layers"]):
            x = b.add("Add", x, self.attention(self.norm(x), f"{number}."))
            x = b.add("Add", x, self.feed_forward(self.norm(x), f"{number}."))
        turned = b.constant("head", np.ascontiguousarray(self.arrays["emb"].astype(np.float32).T))
        b.add("MatMul", self.norm(x), turned, name="logits")
        one = (1,) if self.fixed else (1, 1)
        whole = {self.ids: one, self.position: one} | ({} if self.fixed else {"attention_mask": (1, "past + 1")})
        own = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name, shape in whole.items()]
        results = [_float("logits", 1, 1, config["vocab"]), *self.outputs]
        graph = helper.make_graph(b.nodes, "decode", [*own, *self.inputs], results, list(b.constants.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)

    def rotations(self) -> tuple[str, str]:
        """Cosines and sines of the position."""
        b, half = self.b, self.head // 2
        frequencies = self.config.get("theta", 10000.0) ** (-np.arange(half) / half)
        position = b.add("Reshape", self.position, b.whole(1, 1, 1, 1))
        table = b.constant("frequencies", np.tile(frequencies, 2).astype(np.float32))
        angles = b.add("Mul", b.add("Cast", position, to=TensorProto.FLOAT), table)
        return b.add("Cos", angles), b.add("Sin", angles)

    def masked(self) -> str:
        """What is added to scores: nothing for rows that may be seen."""
        b, context = self.b, self.context
        least = b.constant("least", np.asarray(-1e9, np.float32))
        if self.fixed:
            # A row of the table for each position: what lies before it, and the new row behind the cache.
            seen = np.arange(context + 1) < np.arange(context)[:, None]
            seen[:, -1] = True
            rows = b.constant("masks", np.where(seen, 0, -1e9).astype(np.float32).reshape(context, 1, 1, context + 1))
            return b.add("Gather", rows, "position", axis=0)
        count = b.add("Squeeze", b.add("Shape", "past_key_values.0.key", start=2, end=3))
        total = b.add("Add", count, b.constant("one", np.asarray(1, np.int64)))
        steps = b.add("Range", b.constant("zero", np.asarray(0, np.int64)), total, "one")
        before = b.add("LessOrEqual", steps, count)
        kept = b.add("And", before, b.add("Cast", "attention_mask", to=TensorProto.BOOL))
        return b.add("Where", kept, b.constant("none", np.asarray(0, np.float32)), least)

    def attention(self, inner: str, n: str) -> str:
        b, head = self.b, self.head
        parts = (("wq", self.heads), ("wk", self.groups))
        query, key = (self.turned(self.apart(self.times(inner, n + w), count)) for w, count in parts)
        value = self.apart(self.times(inner, n + "wv"), self.groups)
        both: list[str] = []
        for part, rows in (("key", key), ("value", value)):
            past, present = f"past_key_values.{n}{part}", f"present.{n}{part}"
            all_rows = b.add("Concat", past, rows, name="" if self.fixed else present, axis=2)
            if self.fixed:
                b.add("Identity", rows, name=present)
            self.inputs.append(_float(past, 1, self.groups, self.context if self.fixed else "past", head))
            self.outputs.append(_float(present, 1, self.groups, 1 if self.fixed else "past + 1", head))
            both.append(self.repeated(all_rows))
        scores = b.add("Mul", b.add("MatMul", query, b.add("Transpose", both[0], perm=[0, 1, 3, 2])), self.scale)
        weights = b.add("Softmax", b.add("Add", scores, self.mask), axis=-1)
        mixed = b.add("Transpose", b.add("MatMul", weights, both[1]), perm=[0, 2, 1, 3])
        return self.times(b.add("Reshape", mixed, b.whole(1, 1, self.config["dim"])), n + "wo")

    def feed_forward(self, inner: str, n: str) -> str:
        gate = self.times(inner, n + "gate")
        opened = self.b.add("Mul", gate, self.b.add("Sigmoid", gate))
        return self.times(self.b.add("Mul", opened, self.times(inner, n + "up")), n + "down")

    def norm(self, x: str) -> str:
        b, eps = self.b, self.config.get("eps", 1e-5)
        mean = b.add("ReduceMean", b.add("Mul", x, x), b.whole(-1), keepdims=1)
        return b.add("Div", x, b.add("Sqrt", b.add("Add", mean, b.constant("eps", np.asarray([eps], np.float32)))))

    def times(self, x: str, name: str) -> str:
        weights = np.ascontiguousarray(self.arrays[name].astype(np.float32).T)
        return self.b.add("MatMul", x, self.b.constant(name, weights))

    def apart(self, x: str, count: int) -> str:
        split = self.b.add("Reshape", x, self.b.whole(1, 1, count, self.head))
        return self.b.add("Transpose", split, perm=[0, 2, 1, 3])

    def turned(self, x: str) -> str:
        b, head = self.b, self.head
        left = b.add("Slice", x, b.whole(0), b.whole(head // 2), b.whole(3))
        right = b.add("Slice", x, b.whole(head // 2), b.whole(head), b.whole(3))
        other = b.add("Concat", b.add("Neg", right), left, axis=-1)
        return b.add("Add", b.add("Mul", x, self.cosines), b.add("Mul", other, self.sines))

    def repeated(self, x: str) -> str:
        b, groups, heads, head = self.b, self.groups, self.heads, self.head
        if groups == heads:
            return x
        # What follows from the length of the cache is computed from its shape, as exporters do.
        rows = b.add("Slice", b.add("Shape", x), b.whole(2), b.whole(3), b.whole(0))
        wide = b.add("Concat", b.whole(1, groups, heads // groups), rows, b.whole(head), axis=0)
        many = b.add("Expand", b.add("Unsqueeze", x, b.whole(2)), wide)
        return b.add("Reshape", many, b.add("Concat", b.whole(1, heads), rows, b.whole(head), axis=0))


def exported(arrays: Mapping[str, Array], *, fixed: bool = False) -> onnx.ModelProto:
    """The decode graph of a checkpoint."""
    return Decoder(arrays, fixed).model()


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
