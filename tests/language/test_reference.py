"""The float model in numpy, and the graph that is compiled of it."""

from __future__ import annotations

import numpy as np

from language_models import tiny
from tilewright.api.compiling import Options
from tilewright.api.running import run_model
from tilewright.core.interpret import interpret_steps
from tilewright.language.graphs import float_graph
from tilewright.language.ranges import own_texts
from tilewright.language.reference import Reference, bits


def test_tokens_one_by_one_are_tokens_at_once() -> None:
    model = tiny()
    tokens = own_texts(model, 2, 3)
    whole, steps = Reference(model).logits(tokens), Reference(model)
    found = np.concatenate([steps.logits(tokens[:, at : at + 1]) for at in range(tokens.shape[1])], axis=1)
    np.testing.assert_allclose(found, whole, atol=1e-4)


def test_a_reset_forgets() -> None:
    reference, token = Reference(tiny()), np.asarray([[5]])
    first = reference.logits(token)
    reference.reset()
    reference.logits(np.asarray([[9]]))
    assert not np.allclose(reference.logits(token), first, atol=1e-3)
    reference.reset()
    np.testing.assert_allclose(reference.logits(token), first, atol=1e-6)


def test_bits_of_even_odds() -> None:
    np.testing.assert_allclose(bits(np.zeros((3, 8)), np.asarray([1, 2, 7])), 3.0)


def test_the_compiled_graph_says_the_same() -> None:
    model = tiny()
    tokens = own_texts(model, 1, 4)[0].astype(np.int32)
    wanted = Reference(model).logits(tokens[None].astype(np.int64))[0]
    fed = [tokens.reshape(-1, 1), np.arange(len(tokens), dtype=np.int32)]
    graph = float_graph(model)
    np.testing.assert_allclose(interpret_steps(graph, fed, len(tokens))[0][:, 0], wanted, atol=1e-4)
    ran = run_model(graph, Options(), inputs=fed, steps=len(tokens))
    np.testing.assert_allclose(ran.outputs[0].reshape(wanted.shape), wanted, atol=1e-4)
