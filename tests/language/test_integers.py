"""The model in integers: close to the float one, and the same wherever and however it is computed."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from msgspec.structs import asdict

from language_models import tiny
from tilewright.api.compiling import Options
from tilewright.api.running import run_model
from tilewright.core.graph import Array
from tilewright.core.interpret import interpret, interpret_steps
from tilewright.errors import TilewrightError
from tilewright.language import LeastBits, WeightBits
from tilewright.language.checkpoint import checkpoint_of
from tilewright.language.graphs import integer_graph
from tilewright.language.quantised import LOGIT, Choices, IntegerModel, powers, quantised, sigmoids
from tilewright.language.ranges import own_texts, watched
from tilewright.language.reference import Reference, bits
from tilewright.language.weight_bits import integer_logits, integer_model, stored_bits


@cache
def fitted() -> IntegerModel:
    model = tiny()
    return quantised(model, watched(model, own_texts(model)))


@cache
def text() -> Array:
    return own_texts(tiny(), 1, 5)[0].astype(np.int32)


@cache
def expected() -> Array:
    count = len(text())
    fed = [text().reshape(-1, 1), np.arange(count, dtype=np.int32)]
    return interpret_steps(integer_graph(fitted()), fed, count)[0][:, 0]


def test_it_predicts_almost_as_well() -> None:
    model = tiny()
    tokens = own_texts(model, 8, 7)
    graph = integer_graph(fitted(), tokens.shape[1])
    states = [state.initial for state in graph.states]
    found = np.stack([interpret(graph, [row.astype(np.int32), np.asarray(0), *states])[0] for row in tokens]) / LOGIT
    targets = tokens[:, 1:]
    wanted = bits(Reference(model).logits(tokens)[:, :-1], targets).mean()
    assert bits(found[:, :-1], targets).mean() < 1.1 * wanted


def test_many_tokens_at_once_are_one_by_one() -> None:
    count = len(text())
    graph = integer_graph(fitted(), count)
    states = [state.initial for state in graph.states]
    np.testing.assert_array_equal(interpret(graph, [text(), np.asarray(0), *states])[0], expected())


@pytest.mark.parametrize("platform", ["generic", "siracusa"])
def test_compiled_it_is_the_same_to_the_bit(platform: str) -> None:
    count = 12
    fed = [text()[:count].reshape(-1, 1), np.arange(count, dtype=np.int32)]
    ran = run_model(integer_graph(fitted()), Options(platform=platform), inputs=fed, steps=count)
    np.testing.assert_array_equal(ran.outputs[0].reshape(count, -1), expected()[:count])


@cache
def lost(weight_bits: WeightBits) -> float:
    """The share of bits that texts take more than with floats; the model's own, so that all of it is known."""
    tokens = own_texts(tiny(), 6, 9)

    def logs(logits: Array) -> Array:
        return np.log(np.exp(logits).sum(axis=-1, keepdims=True))

    exact = Reference(tiny()).logits(tokens).astype(np.float64)
    exact -= logs(exact)
    found = integer_logits(integer_model(tiny(), weight_bits), tokens)
    found -= logs(found)
    return float((np.exp(exact) * (exact - found)).sum() / -(np.exp(exact) * exact).sum())


def test_fewer_bits_lose_more() -> None:
    assert lost(8) < lost(6) < lost(4) < lost(3)


def test_weights_of_few_bits_are_rounded_together() -> None:
    model = tiny()
    alone = quantised(model, watched(model, own_texts(model)), Choices(weight_bits=4))
    tokens = own_texts(model, 6, 9)
    wanted = Reference(model).logits(tokens)
    off = [np.abs(integer_logits(m, tokens) - wanted).mean() for m in (alone, integer_model(model, 4))]
    assert off[1] < 0.9 * off[0]
    assert stored_bits(integer_graph(alone)) == stored_bits(integer_graph(integer_model(model, 4))) == 4


@pytest.mark.parametrize("loss", [0.01, 0.03])
def test_as_few_bits_as_a_loss_allows(loss: float) -> None:
    least = stored_bits(integer_graph(integer_model(tiny(), LeastBits(loss))))
    assert least is not None
    assert 2 <= least < 8
    assert lost(LeastBits(loss)) < 1.5 * loss


def test_a_loss_that_even_the_usual_bits_exceed() -> None:
    assert stored_bits(integer_graph(integer_model(tiny(), LeastBits(1e-9)))) == 8


def test_weights_that_are_whole_numbers_stay_as_they_are() -> None:
    arrays: dict[str, Array] = {"config": np.asarray(json.dumps(asdict(tiny().sizes)))}
    for name, weight in tiny().weights.items():
        arrays[f"{name}.scale"] = (np.abs(weight).max(axis=1) / 7).astype(np.float32)
        arrays[name] = np.rint(weight / arrays[f"{name}.scale"][:, None]).astype(np.int8)
    model = checkpoint_of(arrays, "tiny")
    found = quantised(model, watched(model, own_texts(model)))
    for number, layer in enumerate(found.layers):
        parts = {"wv": layer.values, "wo": layer.output, "gate": layer.gate, "up": layer.up, "down": layer.down}
        for name, linear in parts.items():
            np.testing.assert_array_equal(linear.weights.T, arrays[f"{number}.{name}"])
        turned = np.concatenate([arrays[f"{number}.wq"], arrays[f"{number}.wk"]])
        np.testing.assert_array_equal(layer.turned.weights.T, turned)
    np.testing.assert_array_equal(found.head.weights.T, arrays["emb"])
    with pytest.raises(TilewrightError, match="whole numbers already"):
        integer_model(model, 4)


@pytest.mark.parametrize("weight_bits", [None, 5, 3])
def test_sums_fit_32_bits(weight_bits: WeightBits) -> None:
    model = integer_model(tiny(), weight_bits)
    for linear in (model.head, *(part for layer in model.layers for part in (layer.turned, layer.gate, layer.down))):
        sums = np.abs(linear.weights.astype(np.int64)).sum(axis=0) * 128
        assert (sums * linear.mul + np.abs(linear.add) + (1 << linear.shift)).max() < 1 << 31


def test_tables() -> None:
    assert powers()[0] == 255
    assert powers()[-1] == 0
    assert sigmoids()[256] == 1 << 14
    assert sigmoids()[-1] == 32757
