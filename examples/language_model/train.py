"""Trains the example model: a tokenizer and a small Llama on made-up stories, to `model.npz` and `tokenizer.json`.

    python train.py --output DIR [--steps 4000] [--dim 64 --layers 5 --heads 4 --ffn 192 --vocab 768]

Needs numpy and PyTorch. On a data-centre GPU the model of the repository takes 90 seconds, on a CPU some hours.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stories import stories
from torch import nn
from torch.nn import functional

END, PATTERN = "<|end|>", r" ?[A-Za-z]+| ?[^A-Za-z \n]+|[ \n]"
EPS, THETA = 1e-5, 10000.0
Pair = tuple[int, int]
Config = dict[str, Any]


class Words:
    """A byte-pair encoding: 0 ends a story, characters follow, then pairs by how often they occur."""

    def __init__(self, texts: list[str], size: int) -> None:
        letters = ["\n", *map(chr, range(32, 127))]
        self.texts: list[str] = [END, *letters]
        self.merges: list[Pair] = []
        self._of = {letter: number for number, letter in enumerate(letters, 1)}
        counts = Counter(piece for text in texts for piece in re.findall(PATTERN, text))
        pieces = {piece: [self._of[letter] for letter in piece] for piece in counts}
        while len(self.texts) < size:
            pairs: Counter[Pair] = Counter()
            for piece, tokens in pieces.items():
                for pair in pairwise(tokens):
                    pairs[pair] += counts[piece]
            if not pairs:
                raise SystemExit(f"the stories have words for {len(self.texts)} tokens, not for {size}")
            best = min(pairs, key=lambda pair: (-pairs[pair], pair))
            made = len(self.texts)
            self.merges.append(best)
            self.texts.append(self.texts[best[0]] + self.texts[best[1]])
            pieces = {piece: _merged(tokens, best, made) for piece, tokens in pieces.items()}
        self._encode = lru_cache(None)(self._piece)

    def _piece(self, piece: str) -> list[int]:
        tokens = [self._of[letter] for letter in piece]
        for made, pair in enumerate(self.merges, len(self.texts) - len(self.merges)):
            tokens = _merged(tokens, pair, made)
        return tokens

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
        return [token for piece in re.findall(PATTERN, text) for token in self._encode(piece)]

    def json(self) -> str:
        """The text of a file in the form of the `tokenizers` package."""
        written = [END, *(text.replace(" ", "\u0120").replace("\n", "\u010a") for text in self.texts[1:])]
        split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        merges = [[written[left], written[right]] for left, right in self.merges]
        added = {"id": 0, "content": END, "single_word": False, "lstrip": False, "rstrip": False}
        return json.dumps(
            {
                "version": "1.0",
                "added_tokens": [{**added, "normalized": False, "special": True}],
                "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
                "decoder": byte_level | {"use_regex": True},
                "model": {"type": "BPE", "vocab": {text: n for n, text in enumerate(written)}, "merges": merges},
            },
            ensure_ascii=False,
            indent=0,
        )


def _merged(tokens: list[int], pair: Pair, made: int) -> list[int]:
    found: list[int] = []
    for token in tokens:
        if found and (found[-1], token) == pair:
            found[-1] = made
        else:
            found.append(token)
    return found


class Layer(nn.Module):
    """RMS norm, attention with rotary positions, RMS norm, SwiGLU."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        dim, ffn, layers, self.heads = (int(config[name]) for name in ("dim", "ffn", "layers", "heads"))
        self.eps = config.get("eps", EPS)
        shapes = {"wq": (dim, dim), "wk": (dim, dim), "wv": (dim, dim), "wo": (dim, dim)}
        shapes |= {"gate": (ffn, dim), "up": (ffn, dim), "down": (dim, ffn)}
        for name, shape in shapes.items():
            spread = shape[1] ** -0.5 / (math.sqrt(2 * layers) if name in ("wo", "down") else 1)
            self.register_parameter(name, nn.Parameter(torch.randn(shape) * spread))

    def products(self, x: torch.Tensor, *names: str) -> list[torch.Tensor]:
        """Rows times weights, by their names."""
        return [functional.linear(x, getattr(self, name)) for name in names]

    def forward(
        self, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor, at: int = 0, past: torch.Tensor | None = None
    ) -> torch.Tensor:
        inner = norm(x, self.eps)
        query, key, value = (
            rows.unflatten(-1, (self.heads, -1)).transpose(1, 2) for rows in self.products(inner, "wq", "wk", "wv")
        )
        query, key = turned(query, cosines, sines), turned(key, cosines, sines)
        if past is not None:
            end = at + x.shape[1]
            past[..., at:end, :] = torch.stack([key, value])
            key, value = past[..., :end, :]
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=past is None)
        x = x + self.products(mixed.transpose(1, 2).flatten(2), "wo")[0]
        inner = norm(x, self.eps)
        gate, up = self.products(inner, "gate", "up")
        return x + self.products(functional.silu(gate) * up, "down")[0]


class Model(nn.Module):
    """Layers between an embedding and an output head with the same weights."""

    layer = Layer

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.eps = config.get("eps", EPS)
        self.emb = nn.Parameter(torch.randn(config["vocab"], config["dim"]) * 0.1)
        self.layers = nn.ModuleList(self.layer(config) for _ in range(config["layers"]))
        half = config["dim"] // config["heads"] // 2
        angles = torch.arange(config["context"])[:, None] * config.get("theta", THETA) ** (-torch.arange(half) / half)
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def embedding(self) -> torch.Tensor:
        return self.emb

    def forward(self, tokens: torch.Tensor, at: int = 0, past: torch.Tensor | None = None) -> torch.Tensor:
        """What follows each token; the first is at a position, and `past` has room for all keys and values."""
        embedding, places = self.embedding(), slice(at, at + tokens.shape[1])
        x = embedding[tokens]
        for number, layer in enumerate(self.layers):
            x = layer(x, self.cosines[places], self.sines[places], at, None if past is None else past[number])
        return self.head(norm(x, self.eps), embedding)

    def head(self, x: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        return functional.linear(x, embedding)


def norm(x: torch.Tensor, eps: float) -> torch.Tensor:
    return functional.rms_norm(x, x.shape[-1:], eps=eps)


def turned(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, -1)
    return torch.cat([left * cosines - right * sines, left * sines + right * cosines], -1)


def trained(config: dict[str, int], tokens: torch.Tensor, steps: int, batch: int, device: str) -> Model:
    """A model that was shown as many pieces of the tokens, each as long as its context."""
    model = Model(config).to(device)
    ready = torch.compile(model) if device == "cuda" else model
    optimiser = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.97), weight_decay=0.05)
    at = torch.arange(config["context"] + 1, device=device)
    tokens = tokens.to(device)
    for step in range(steps):
        rate = 4e-3 * min(1, (step + 1) / 200) * (0.5 + 0.5 * math.cos(math.pi * step / steps))
        for group in optimiser.param_groups:
            group["lr"] = rate
        starts = torch.randint(len(tokens) - len(at), (batch, 1), device=device)
        part = tokens[starts + at]
        loss = functional.cross_entropy(ready(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 500 == 0 or step == steps - 1:
            print(f"step {step}: {loss.item() / math.log(2):.4f} bits a token", flush=True)
    return model


def arrays(model: Model, config: dict[str, int]) -> dict[str, np.ndarray]:
    """What docs/language_models.md says a checkpoint holds."""
    weights = {"emb": model.emb} | {f"{n}.{k}": w for n, r in enumerate(model.layers) for k, w in r.named_parameters()}
    found = {name: weight.detach().cpu().numpy().astype(np.float16) for name, weight in weights.items()}
    return {"config": np.asarray(json.dumps({**config, "theta": THETA, "eps": EPS})), **found}


def main() -> None:
    """Makes a corpus, trains a tokenizer and a model on it, and says how well it does on stories it has not seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sizes = {"dim": 64, "layers": 5, "heads": 4, "ffn": 192, "vocab": 768, "context": 256}
    for name, usual in {**sizes, "steps": 4000, "batch": 256, "stories": 60000, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--output", type=Path, default=Path())
    given = parser.parse_args()
    config = {name: getattr(given, name) for name in sizes}
    torch.manual_seed(given.seed)
    torch.set_float32_matmul_precision("high")
    texts = list(islice(stories(given.seed), given.stories))
    words = Words(texts, given.vocab)
    corpus = torch.tensor([token for text in texts for token in (0, *words.encode(text))])
    print(f"{sum(map(len, texts)):,} characters, {len(corpus):,} tokens", flush=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = trained(config, corpus, given.steps, given.batch, device)
    unseen = list(islice(stories(given.seed + 1), 500))
    rows = [[0, *words.encode(text), 0][: config["context"] + 1] for text in unseen]
    taken = 0.0
    with torch.no_grad():
        for row in rows:
            tokens = torch.tensor(row, device=device)
            taken += float(functional.cross_entropy(model(tokens[None, :-1])[0], tokens[1:], reduction="sum"))
    print(f"{taken / math.log(2) / sum(map(len, unseen)):.4f} bits a character of stories not seen")
    given.output.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(given.output / "model.npz", **arrays(model, config))
    (given.output / "tokenizer.json").write_text(words.json(), encoding="utf-8")


if __name__ == "__main__":
    main()
