"""How many bits each weight of a language model gets: as few in all as a loss allows, which the model's texts tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, log, sqrt
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.base.dtype import INT8
from tilewright.core.graph import Array, Graph
from tilewright.core.interpret import interpret
from tilewright.errors import TilewrightError
from tilewright.language import FEWEST_BITS, USUAL_BITS, LeastBits, WeightBits
from tilewright.language.checkpoint import Checkpoint
from tilewright.language.graphs import integer_graph
from tilewright.language.quantised import LOGIT, Choices, IntegerModel, quantised, read_by, smoothed
from tilewright.language.ranges import ActivationRanges, moments, own_texts, watched
from tilewright.language.reference import Reference
from tilewright.language.rounding import fitted_steps, rounded

TRIED = 4
"""Bits with which it is measured how much a model loses by what some weights are off."""
JUDGED, JUDGE_SEED = 8, 2
"""Texts, others than those that a model was watched on, on which a loss is measured."""
ROUNDS = 5
"""Of models in integers that are looked at."""
TOGETHER = (("wq", "wk"), ("wv",), ("wo",), ("gate",), ("up",), ("down",))
"""Weights of a layer that have the same bits."""
Progress = Callable[[str], None]


def integer_model(
    model: Checkpoint, weight_bits: WeightBits = None, progress: Progress = lambda _stage: None
) -> IntegerModel:
    """The model in integers that are fitted to what it writes by itself."""
    if model.steps and weight_bits is not None:
        raise TilewrightError(
            "bad-argument",
            "the weights of this model are whole numbers already, and stay as they are",
            help="leave --weight-bits away",
        )
    texts = own_texts(model)
    seen = watched(model, texts)
    if weight_bits is None or weight_bits == USUAL_BITS:
        return quantised(model, seen)
    chosen = Choices(moments=moments(model, texts))
    if isinstance(weight_bits, LeastBits):
        return _with_least_bits(model, seen, chosen, weight_bits.loss, progress)
    return quantised(model, seen, replace(chosen, weight_bits=weight_bits))


def stored_bits(graph: Graph) -> float | None:
    """Of a weight that sums are made with, on average; None where weights are floats."""
    names = {node.inputs[1] for node in graph.nodes if node.op == "MatMul" and node.inputs[1] in graph.constants}
    weights = [graph.constants[name] for name in names if graph.types[name].dtype == INT8]
    if not weights:
        return None
    return sum(_bits(weight) * weight.size for weight in weights) / sum(weight.size for weight in weights)


def _bits(weights: Array) -> int:
    return 1 + max(int(weights.max()), -1 - int(weights.min())).bit_length()


def integer_logits(model: IntegerModel, texts: Array) -> Array:
    """What follows each token of each text."""
    graph = integer_graph(model, texts.shape[1])
    states = [state.initial for state in graph.states]
    runs = [interpret(graph, [text.astype(np.int32), np.asarray(0), *states])[0] for text in texts]
    return np.stack(runs).astype(np.float64) / LOGIT


class _Judge(Struct, frozen=True, eq=False):
    """Texts of a model, and how likely it takes every token to be behind each of theirs."""

    texts: Array
    logs: Array
    bits: float
    """That a token of such texts takes."""

    def loss(self, logits: Array) -> float:
        """The share of bits that a text takes more when its tokens are guessed by other logits."""
        more = (np.exp(self.logs) * (self.logs - _logs(logits))).sum(axis=-1).mean() / log(2)
        return float(more) / max(self.bits, 1e-9)  # a model may be certain of every token


def _judge(model: Checkpoint) -> _Judge:
    texts = own_texts(model, JUDGED, JUDGE_SEED)
    logs = _logs(Reference(model).logits(texts))
    return _Judge(texts, logs, float(-(np.exp(logs) * logs).sum(axis=-1).mean()) / log(2))


def _logs(logits: Array) -> Array:
    wide = logits.astype(np.float64)
    below = wide - wide.max(axis=-1, keepdims=True)
    return below - np.log(np.exp(below).sum(axis=-1, keepdims=True))


class _Unit(Struct, frozen=True):
    """Weights that have the same bits, and what a model loses when they alone have `TRIED`."""

    names: Sequence[str]
    size: int
    loss: float

    def lost(self, bits: int) -> float:
        """What rounding takes away grows with the square of a step."""
        return self.loss * ((2 ** (TRIED - 1) - 1) / (2 ** (bits - 1) - 1)) ** 2


def _units(
    model: Checkpoint, seen: ActivationRanges, chosen: Choices, judge: _Judge, progress: Progress
) -> list[_Unit]:
    layers = [[f"{layer}.{part}" for part in parts] for layer in range(model.sizes.layers) for parts in TOGETHER]
    found: list[_Unit] = []
    for names in [["emb"], *layers]:
        progress(f"weigh {names[0]}")
        weights = {name: _off(model, name, seen, chosen) for name in names}
        # What is read of the embedding keeps its bits: only the head has fewer.
        other = replace(model, weights=MappingProxyType({**model.weights, **weights}))
        loss = judge.loss(Reference(other, embedding=model.weights["emb"]).logits(judge.texts))
        found.append(_Unit(names, sum(weight.size for weight in weights.values()), loss))
    return found


def _off(model: Checkpoint, name: str, seen: ActivationRanges, chosen: Choices) -> Array:
    """Weights as they are when they have few bits."""
    scales = smoothed(seen.channels(read_by(name)), chosen)
    wide, top = model.weights[name] * scales, (1 << (TRIED - 1)) - 1
    moved = chosen.moments[read_by(name)] / np.outer(scales, scales)
    step = np.maximum(fitted_steps(wide, top, moved), 1e-12)
    return (rounded(wide, step, top, moved) * step[:, None] / scales).astype(np.float32)


def _shared(units: Sequence[_Unit], loss: float) -> Mapping[str, int]:
    """Bits by name: one after the other goes where it is missed least, until the model has lost so much."""
    bits, left = [USUAL_BITS] * len(units), loss - sum(unit.lost(USUAL_BITS) for unit in units)

    def missed(at: int) -> float:
        return units[at].lost(bits[at] - 1) - units[at].lost(bits[at]) if bits[at] > FEWEST_BITS else inf

    while (lost := missed(at := min(range(len(units)), key=lambda at: missed(at) / units[at].size))) <= left:
        bits[at] -= 1
        left -= lost
    return MappingProxyType({name: b for unit, b in zip(units, bits, strict=True) for name in unit.names})


def _with_least_bits(
    model: Checkpoint, seen: ActivationRanges, chosen: Choices, most: float, progress: Progress
) -> IntegerModel:
    """What is lost by rounding weights is about the sum of what each loses alone: how near that is, models tell."""
    judge = _judge(model)
    best = quantised(model, seen)
    usual, fewest = judge.loss(integer_logits(best, judge.texts)), float(USUAL_BITS)
    units, aim = _units(model, seen, chosen, judge, progress), most - usual
    enough, too_much = 0.0, inf
    for turn in range(ROUNDS if aim > 0 else 0):
        progress(f"round {turn + 1}")
        found = quantised(model, seen, replace(chosen, bits=_shared(units, aim)))
        if judge.loss(integer_logits(found, judge.texts)) > most:
            too_much = aim
        else:
            enough, bits = aim, stored_bits(integer_graph(found))
            best, fewest = (found, bits) if bits is not None and bits < fewest else (best, fewest)
        aim = 2 * enough if too_much == inf else sqrt(enough * too_much) if enough else too_much / 2
    return best
