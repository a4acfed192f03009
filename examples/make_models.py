"""Makes the example networks and what onnxruntime computes with them: python examples/make_models.py

The weights are seeded noise, scaled so that activations keep their size: the networks have the shape and the operators
of real ones, and nothing to say. Each X.onnx has an X.npz beside it with input_0, ... and output_0, ....
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

Array = np.ndarray[Any, Any]
MODELS = Path(__file__).parent / "models"
OPSET = 20


class Network:
    """Collects nodes and weights; every method returns the name of its result."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, array: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def noise(self, *shape: int, fan_in: int) -> str:
        return self.weight(self.rng.normal(0, fan_in**-0.5, shape).astype(np.float32))

    def near(self, value: float, *shape: int) -> str:
        return self.weight((value + self.rng.normal(0, 0.1, shape)).astype(np.float32))

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def conv(self, x: str, inputs: int, outputs: int, kernel: int, *, stride: int = 1, group: int = 1) -> str:
        w = self.noise(outputs, inputs // group, kernel, kernel, fan_in=inputs // group * kernel**2)
        pad = kernel // 2
        y = self.add("Conv", x, w, pads=[pad] * 4, strides=[stride] * 2, group=group)
        norm = [self.near(value, outputs) for value in (1.0, 0.0, 0.0)]
        variance = self.weight(self.rng.uniform(0.5, 1.5, outputs).astype(np.float32))
        return self.add("BatchNormalization", y, *norm, variance)

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        return self.add(
            "Add", self.add("MatMul", x, self.noise(inputs, outputs, fan_in=inputs)), self.near(0.0, outputs)
        )

    def model(self, input: onnx.ValueInfoProto, output: str, shape: list[int]) -> onnx.ModelProto:
        result = helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)
        self.nodes.append(helper.make_node("Identity", [output], ["output"], name="result"))
        graph = helper.make_graph(self.nodes, "example", [input], [result], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        onnx.checker.check_model(made, full_check=True)
        return made


def tiny_cnn() -> onnx.ModelProto:
    """An image classifier: strided, depthwise and pointwise convolutions, a residual connection, a pool, a softmax."""
    n = Network(1)
    x = n.add("Relu", n.conv("image", 3, 8, 3, stride=2))
    y = n.add("Relu", n.conv(x, 8, 8, 3, group=8))
    x = n.add("Add", x, n.conv(y, 8, 8, 1))
    x = n.add("Relu", n.conv(x, 8, 16, 3, stride=2))
    x = n.add("Flatten", n.add("GlobalAveragePool", x))
    x = n.add("Softmax", n.add("Gemm", x, n.noise(16, 10, fan_in=4), n.near(0.0, 10)), axis=-1)
    return n.model(helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 32, 32]), x, [1, 10])


def tiny_lm() -> onnx.ModelProto:
    """A language model of one layer: embeddings, causal attention with two heads, a GELU feed-forward part, logits."""
    words, length, width, heads = 64, 16, 32, 2
    n = Network(2)
    table = n.noise(words, width, fan_in=1)
    x = n.add("Add", n.add("Gather", table, "tokens"), n.noise(length, width, fan_in=16))

    def norm(x: str) -> str:
        return n.add("LayerNormalization", x, n.near(1.0, width), n.near(0.0, width), axis=-1)

    def split(x: str) -> str:
        shape = n.weight(np.array([1, length, heads, width // heads]))
        return n.add("Transpose", n.add("Reshape", x, shape), perm=[0, 2, 1, 3])

    h = norm(x)
    q, k, v = (split(n.linear(h, width, width)) for _ in range(3))
    scores = n.add("MatMul", q, n.add("Transpose", k, perm=[0, 1, 3, 2]))
    scale = n.weight(np.array((width // heads) ** -0.5, np.float32))
    mask = n.weight(np.triu(np.full((length, length), -1e9, np.float32), 1))
    weights = n.add("Softmax", n.add("Add", n.add("Mul", scores, scale), mask), axis=-1)
    mixed = n.add("Transpose", n.add("MatMul", weights, v), perm=[0, 2, 1, 3])
    joined = n.add("Reshape", mixed, n.weight(np.array([1, length, width])))
    x = n.add("Add", x, n.linear(joined, width, width))
    x = n.add("Add", x, n.linear(n.add("Gelu", n.linear(norm(x), width, 3 * width)), 3 * width, width))
    logits = n.add("MatMul", norm(x), n.noise(width, words, fan_in=width))
    return n.model(helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, length]), logits, [1, length, words])


class Calibration(quantization.CalibrationDataReader):
    """Images from which the ranges of activations are taken."""

    def __init__(self, images: list[Array]) -> None:
        self.rest: Iterator[Mapping[str, Array]] = iter([{"image": image} for image in images])

    def get_next(self) -> Mapping[str, Array] | None:
        return next(self.rest, None)


def quantised(model: onnx.ModelProto, images: list[Array]) -> onnx.ModelProto:
    """The network with QuantizeLinear and DequantizeLinear around every operator: int8, weights per channel."""
    with tempfile.TemporaryDirectory() as folder:
        source, plain, target = (Path(folder) / f"{name}.onnx" for name in ("source", "plain", "target"))
        onnx.save(model, source)
        quantization.shape_inference.quant_pre_process(source, plain)
        quantization.quantize_static(
            plain,
            target,
            Calibration(images),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QInt8,
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
        )
        return onnx.load(target)


def write(name: str, model: onnx.ModelProto, input: Array) -> None:
    """The model, and beside it an input with the output of onnxruntime, which leaves the graph as it is."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (output,) = session.run(None, {session.get_inputs()[0].name: input})
    model.producer_name = model.producer_version = ""
    onnx.save(model, MODELS / f"{name}.onnx")
    np.savez(MODELS / f"{name}.npz", input_0=input, output_0=output)
    print(f"{name}: {(MODELS / name).with_suffix('.onnx').stat().st_size} bytes, output {output.dtype} {output.shape}")


def main() -> None:
    rng = np.random.default_rng(0)
    images = [rng.normal(size=(1, 3, 32, 32)).astype(np.float32) for _ in range(9)]
    MODELS.mkdir(exist_ok=True)
    write("tiny_cnn", tiny_cnn(), images[0])
    write("tiny_cnn_int8", quantised(tiny_cnn(), images[1:]), images[0])
    write("tiny_lm", tiny_lm(), rng.integers(0, 64, (1, 16)))


if __name__ == "__main__":
    main()
