"""Decoders in ONNX files: caches that go in and out become states, whatever form the file has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from msgspec.structs import asdict
from onnx import helper

from language_models import ROOT, script, tiny, tiny_tokenizer, written
from tilewright.api.compiling import Options
from tilewright.api.generating import Arithmetic, generate, load_language
from tilewright.api.running import run_model
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret_steps
from tilewright.errors import TilewrightError
from tilewright.frontend.decoders import load_decoder
from tilewright.language.checkpoint import Checkpoint
from tilewright.language.reference import Reference

TOKENS = np.asarray([3, 9, 9, 40, 17, 5, 60, 1], np.int32)


def exporter() -> Any:
    return script("examples/language_model/export.py")


def shared(groups: int) -> tuple[dict[str, Array], Checkpoint]:
    """A checkpoint in which heads share keys and values, and the same with keys and values for every head."""
    model, arrays = tiny(), dict[str, Array]()
    sizes, weights = model.sizes, dict(model.weights)
    for name in model.weights:
        arrays[name] = model.weights[name]
        if name.endswith((".wk", ".wv")):
            few = model.weights[name].reshape(sizes.heads, sizes.head, -1)[:: sizes.heads // groups]
            arrays[name] = few.reshape(groups * sizes.head, -1)
            weights[name] = np.repeat(few, sizes.heads // groups, axis=0).reshape(sizes.dim, -1)
    return {**arrays, "config": np.asarray(json.dumps(asdict(sizes)))}, Checkpoint(sizes, weights)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("groups", [4, 2, 1])
@pytest.mark.parametrize("fixed", [False, True], ids=["growing", "fixed"])
def test_caches_become_states(fixed: bool, groups: int, tmp_path: Path) -> None:
    arrays, model = shared(groups)
    path = tmp_path / "decoder.onnx"
    path.write_bytes(exporter().exported(arrays, fixed=fixed).SerializeToString())
    found = load_decoder(path, 24)
    assert (found.vocab, found.context, len(found.graph.states)) == (64, 24, 4)
    count = len(TOKENS)
    fed = [TOKENS.reshape(-1, 1), np.arange(count, dtype=np.int32)]
    wanted = Reference(model).logits(TOKENS[None])[0]
    said = interpret_steps(found.graph, fed, count)[0].reshape(count, -1)
    np.testing.assert_allclose(said, wanted, rtol=1e-3, atol=1e-3)


def test_logits_are_known_among_caches_of_their_size(tmp_path: Path) -> None:
    """Four rows of a cache for two heads have 64 numbers, as have logits, which need not come first."""
    arrays, _ = shared(2)
    model: onnx.ModelProto = exporter().exported(arrays)
    outputs = [*model.graph.output]
    del model.graph.output[:]
    model.graph.output.extend(reversed(outputs))
    (tmp_path / "decoder.onnx").write_bytes(model.SerializeToString())
    assert load_decoder(tmp_path / "decoder.onnx", 24).vocab == 64


@pytest.mark.parametrize("platform", ["generic", "siracusa"])
def test_compiled(platform: str, tmp_path: Path) -> None:
    arrays, model = shared(2)
    path = tmp_path / "decoder.onnx"
    path.write_bytes(exporter().exported(arrays).SerializeToString())
    count = len(TOKENS)
    fed = [TOKENS.reshape(-1, 1), np.arange(count, dtype=np.int32)]
    ran = run_model(load_decoder(path, 24).graph, Options(platform=platform), inputs=fed, steps=count)
    wanted = Reference(model).logits(TOKENS[None])[0]
    np.testing.assert_allclose(ran.outputs[0].reshape(count, -1), wanted, rtol=1e-3, atol=1e-3)


def test_the_program_writes_what_the_checkpoint_does(tmp_path: Path) -> None:
    path, onnx_path = written(tmp_path), tmp_path / "tiny.onnx"
    with np.load(path) as arrays:
        onnx_path.write_bytes(exporter().exported(dict(arrays)).SerializeToString())
    said: list[bytes] = []
    for model in (path, onnx_path):
        text = bytearray()
        generate(
            load_language(model, context=24),
            "the cat. the",
            tokens=8,
            arithmetic=Arithmetic(floats=True),
            say=text.extend,
        )
        said.append(bytes(text))
    assert said[0] == said[1]


def _changed(how: str) -> onnx.ModelProto:
    """A decoder with something that no decoder has."""
    arrays, _ = shared(4)
    model: onnx.ModelProto = exporter().exported(arrays)
    graph = model.graph
    nodes = {node.output[0]: node for node in graph.node}
    if how == "tokens":
        graph.input.append(helper.make_tensor_value_info("more", onnx.TensorProto.INT64, (1,)))
    if how == "order":
        nodes["present.0.key"].input[:] = list(reversed(nodes["present.0.key"].input))
    if how == "output":
        kept_outputs = [o for o in graph.output if o.name != "present.0.key"]
        del graph.output[:]
        graph.output.extend(kept_outputs)
    if how == "logits":
        graph.output.append(helper.make_tensor_value_info("cos_2", onnx.TensorProto.FLOAT, None))
        graph.node.append(helper.make_node("Identity", [graph.node[2].output[0]], ["cos_2"]))
    if how == "position":
        # The position that the file reckons with is that of a whole cache.
        graph.node[0].input[0] = "steps"
        shape = helper.make_node("Shape", ["past_key_values.0.key"], ["steps"], start=2, end=3)
        graph.node.insert(0, shape)
    return model


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("tokens", "2 of its inputs may be tokens: input_ids, more"),
        ("order", "'past_key_values.0.key' is used in another way than Concat"),
        ("output", "neither all rows of 'past_key_values.0.key' nor the new ones are an output"),
        ("logits", "2 of its outputs may be logits"),
        ("position", "with 3 tokens before it says something else"),
    ],
)
def test_others_are_refused(how: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "decoder.onnx"
    path.write_bytes(_changed(how).SerializeToString())
    with pytest.raises(TilewrightError) as error:
        load_decoder(path, 24)
    assert error.value.code == "bad-checkpoint"
    assert why in str(error.value.reasons)


def test_a_network_without_caches_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(tiny_tokenizer())
    with pytest.raises(TilewrightError, match="not a decoder with caches"):
        load_language(ROOT / "examples" / "models" / "tiny_lm.onnx", tmp_path / "tokenizer.json")
