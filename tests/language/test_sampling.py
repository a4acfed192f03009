"""Which token follows."""

from __future__ import annotations

import numpy as np

from tilewright.language.quantised import LOGIT
from tilewright.language.sampling import Sampler, Sampling

LOGITS = (np.log([0.5, 0.25, 0.15, 0.1]) * LOGIT).round().astype(np.int16)


def drawn(sampling: Sampling, count: int = 4000) -> list[float]:
    sampler = Sampler(sampling)
    found = [sampler.pick(LOGITS) for _ in range(count)]
    return [found.count(token) / count for token in range(4)]


def test_the_likeliest() -> None:
    assert drawn(Sampling(), 5) == [1.0, 0.0, 0.0, 0.0]


def test_by_the_probabilities() -> None:
    np.testing.assert_allclose(drawn(Sampling(1.0)), [0.5, 0.25, 0.15, 0.1], atol=0.03)


def test_a_low_temperature_sharpens() -> None:
    wanted = np.asarray([0.5, 0.25, 0.15, 0.1]) ** 2
    np.testing.assert_allclose(drawn(Sampling(0.5)), wanted / wanted.sum(), atol=0.03)


def test_only_the_likeliest_share() -> None:
    np.testing.assert_allclose(drawn(Sampling(1.0, 0.7)), [2 / 3, 1 / 3, 0, 0], atol=0.03)


def test_seeds() -> None:
    texts = [[Sampler(Sampling(1.0, seed=seed)).pick(LOGITS) for _ in range(1)] for seed in range(40)]
    assert len({tuple(text) for text in texts}) > 1
    again = Sampler(Sampling(1.0, seed=3)), Sampler(Sampling(1.0, seed=3))
    assert [again[0].pick(LOGITS) for _ in range(50)] == [again[1].pick(LOGITS) for _ in range(50)]


def test_floats_are_rounded() -> None:
    assert Sampler(Sampling()).pick(np.asarray([[0.1, 0.9, 0.2]], np.float32)) == 1
