"""Fine-tunes a checkpoint to weights of few bits: `python tune.py CHECKPOINT.npz --weight-bits 4 -o TUNED.npz`.

No corpus is needed: the float model writes texts, and the one with few bits learns to expect what it does. Its weights
become whole numbers with a scale for each row, which `tilewright generate` keeps as they are. Needs numpy and PyTorch.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from train import Config, Layer, Model

BYTE = 127
SHARES = torch.linspace(0.4, 1.0, 25)
"""Of the largest weight of a row, which the largest whole number may stand for."""
TEMPERATURES = 0.7, 1.3
"""Between which texts are written, so that the model is seen where it is sure and where it is not."""
TOGETHER = 256
"""Texts that are written at once."""
JUDGED = 16
"""Texts of the model by which it is told how much is lost."""
Array = np.ndarray[Any, np.dtype[Any]]


def nearest(x: torch.Tensor) -> torch.Tensor:
    """Whole numbers, with the gradient of what was rounded."""
    return x + (x.round() - x).detach()


def in_bytes(x: torch.Tensor) -> torch.Tensor:
    """Activations with one scale for all, as those that are multiplied by whole weights have."""
    scale = x.abs().amax().clamp(min=1e-9) / BYTE
    return nearest(x / scale) * scale


class Rounded(nn.Module):
    """Weights as whole numbers of few bits times a scale for each row; both are learned."""

    def __init__(self, weights: torch.Tensor, bits: int) -> None:
        super().__init__()
        self.top = (1 << (bits - 1)) - 1
        self.weights = nn.Parameter(weights.clone())
        # At first, the scale with which a row is off least.
        tried = SHARES[:, None, None].to(weights) * weights.abs().amax(1, keepdim=True).clamp(min=1e-9) / self.top
        off = torch.stack([((self.whole(weights / scale) * scale - weights) ** 2).sum(1) for scale in tried])
        best = off.argmin(0)
        self.logs = nn.Parameter(tried[best, torch.arange(len(best), device=best.device)].log())

    def whole(self, x: torch.Tensor) -> torch.Tensor:
        return nearest(x.clamp(-self.top - 1, self.top))

    def forward(self) -> torch.Tensor:
        scale = self.logs.exp()
        return self.whole(self.weights / scale) * scale

    def arrays(self, name: str) -> dict[str, Array]:
        """What a checkpoint holds of weights of a name."""
        with torch.no_grad():
            scale = self.logs.exp()
            whole = self.whole(self.weights / scale)
        return {name: whole.cpu().numpy().astype(np.int8), f"{name}.scale": scale[:, 0].cpu().numpy()}


class RoundedLayer(Layer):
    """A layer that multiplies bytes by whole numbers."""

    def products(self, x: torch.Tensor, *names: str) -> list[torch.Tensor]:
        x = in_bytes(x)
        return [functional.linear(x, self.rounded[name]()) for name in names]


class RoundedModel(Model):
    """A model whose weights are rounded."""

    layer = RoundedLayer

    def __init__(self, config: Config, floats: Model, bits: int) -> None:
        super().__init__(config)
        del self.emb
        self.emb = Rounded(floats.emb.data, bits)
        for layer, original in zip(self.layers, floats.layers, strict=True):
            named = [*layer.named_parameters()]
            for name, _ in named:
                delattr(layer, name)
            layer.rounded = nn.ModuleDict({name: Rounded(getattr(original, name).data, bits) for name, _ in named})

    def embedding(self) -> torch.Tensor:
        return self.emb()

    def head(self, x: torch.Tensor, embedding: torch.Tensor) -> torch.Tensor:
        return super().head(in_bytes(x), embedding)

    def arrays(self) -> dict[str, Array]:
        found = self.emb.arrays("emb")
        for number, layer in enumerate(self.layers):
            for name, rounded in layer.rounded.items():
                found |= rounded.arrays(f"{number}.{name}")
        return found


@torch.no_grad()
def written(model: Model, count: int, context: int, *, own: bool = False) -> torch.Tensor:
    """Texts of a model, as long as its context: its `own`, or with other beginnings and other temperatures as well."""
    device, vocab = model.cosines.device, len(model.emb)
    tokens = torch.zeros(count, context, dtype=torch.long, device=device)
    heat = torch.ones(count, 1, device=device)
    if not own:
        # Half of them begin in the midst of something.
        tokens[::2, 0] = torch.randint(vocab, (len(tokens[::2]),), device=device)
        heat.uniform_(*TEMPERATURES)
    for begin in range(0, count, TOGETHER):
        part, warm = tokens[begin : begin + TOGETHER], heat[begin : begin + TOGETHER]
        heads = model.layers[0].heads
        past = torch.zeros(len(model.layers), 2, len(part), heads, context, model.emb.shape[1] // heads, device=device)
        for at in range(context - 1):
            logits = model(part[:, at : at + 1], at, past)[:, 0] / warm
            part[:, at + 1] = torch.multinomial(logits.softmax(-1), 1)[:, 0]
        if not own:
            print(f"written: {begin + len(part)} of {count} texts", flush=True)
    return tokens


def bits_lost(logits: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """How many more bits a token takes, on average, than by what is wanted."""
    parts = logits.flatten(0, 1).log_softmax(-1), wanted.flatten(0, 1).log_softmax(-1)
    return functional.kl_div(*parts, reduction="batchmean", log_target=True) / math.log(2)


@torch.no_grad()
def share_lost(tuned: Model, floats: Model, texts: torch.Tensor) -> float:
    """Of the bits that texts of the float model take."""
    wanted = floats(texts)
    logs = wanted.log_softmax(-1)
    taken = -(logs.exp() * logs).sum(-1).mean() / math.log(2)
    return float(bits_lost(tuned(texts), wanted) / taken)


def tuned(floats: Model, config: Config, texts: torch.Tensor, given: argparse.Namespace) -> RoundedModel:
    """A model with few bits that has learned what the float one expects."""
    model = RoundedModel(config, floats, given.weight_bits).to(texts.device)
    judged = written(floats, JUDGED, config["context"], own=True)
    print(f"rounded: loses {share_lost(model, floats, judged):.1%} of the bits of a text", flush=True)
    optimiser = torch.optim.Adam(model.parameters(), lr=given.rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, given.rate, total_steps=given.steps, pct_start=0.05, div_factor=10, final_div_factor=1e3
    )
    ready = torch.compile(model) if texts.is_cuda else model
    for step in range(1, given.steps + 1):
        part = texts[torch.randint(len(texts), (given.batch,), device=texts.device)]
        with torch.no_grad():
            wanted = floats(part)
        loss = bits_lost(ready(part), wanted)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % max(1, given.steps // 20) == 0:
            lost = share_lost(model, floats, judged)
            print(f"step {step} of {given.steps}: loses {lost:.1%} of the bits of a text", flush=True)
    return model


def refuse(what: str, why: object, help: str) -> NoReturn:
    print(f"error: {what}: {why}\nhelp: {help}", file=sys.stderr)
    raise SystemExit(2)


def arrays_of(path: Path, help: str) -> dict[str, Array]:
    """The arrays of an .npz file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return dict(file)
    except OSError as reason:
        refuse(f"'{path}' cannot be read", reason.strerror or reason, help)
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile):
        refuse(f"'{path}' cannot be read", "it is no .npz file with numbers", help)


def float_model(path: Path) -> tuple[Config, Array, Model]:
    """The sizes of a checkpoint, these as its file has them, and its model."""
    help = "docs/language_models.md says what a checkpoint holds"
    arrays = arrays_of(path, help)
    try:
        config: Config = json.loads(str(arrays["config"]))
        model = Model(config)
        places = {"emb": model.emb}
        places |= {f"{n}.{name}": w for n, layer in enumerate(model.layers) for name, w in layer.named_parameters()}
        for name, place in places.items():
            weights = torch.from_numpy(arrays[name].astype(np.float32))
            if f"{name}.scale" in arrays:
                weights *= torch.from_numpy(arrays[f"{name}.scale"].astype(np.float32)).reshape(-1, 1)
            if weights.shape != place.shape or not weights.isfinite().all():
                raise ValueError(f"'{name}' is no {list(place.shape)} of finite numbers")
            place.data.copy_(weights)
    except (KeyError, ValueError, TypeError, ZeroDivisionError, RuntimeError) as reason:
        refuse(f"'{path}' is not a checkpoint of a language model", reason, help)
    return config, arrays["config"], model.requires_grad_(requires_grad=False)


def given_texts(path: Path, config: Config) -> torch.Tensor:
    """Texts as long as a model's context, of the token ids of a file."""
    help = "give an .npz with whole numbers, the tokens of texts"
    arrays = arrays_of(path, help)
    rows: list[Array] = []
    for name, tokens in arrays.items():
        if tokens.dtype.kind not in "iu" or tokens.ndim != 1 or not ((tokens >= 0) & (tokens < config["vocab"])).all():
            refuse(f"'{name}' of '{path}' has no tokens of the model", f"{tokens.dtype} {list(tokens.shape)}", help)
        whole = len(tokens) // config["context"]
        rows.append(tokens[: whole * config["context"]].reshape(whole, config["context"]).astype(np.int64))
    if not sum(map(len, rows)):
        refuse(f"'{path}' has too few tokens", f"a text has {config['context']}", help)
    return torch.from_numpy(np.concatenate(rows))


def main() -> None:
    """Writes texts, tunes the model to them, and keeps what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--weight-bits", type=int, default=4, choices=range(2, 9))
    parser.add_argument("--text", type=Path, help="token ids (.npz) to tune to besides the model's own texts")
    for name, usual in {"texts": 1024, "steps": 1000, "batch": 16, "seed": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--rate", type=float, default=1e-3, help="of learning, at its highest")
    parser.add_argument("--threads", type=int, help="of the CPU; all where nothing is said")
    given = parser.parse_args()
    if min(given.texts, given.steps, given.batch, given.rate) <= 0:
        parser.error("--texts, --steps, --batch and --rate are more than nothing")
    if given.output.is_dir() or not given.output.parent.is_dir():
        parser.error(f"'{given.output}' is no file that could be written")
    torch.manual_seed(given.seed)
    torch.set_float32_matmul_precision("high")
    if given.threads:
        torch.set_num_threads(given.threads)
    config, sizes, floats = float_model(given.checkpoint)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    floats = floats.to(device)
    more = given_texts(given.text, config).to(device) if given.text else None
    texts = written(floats, given.texts, config["context"])
    texts = texts if more is None else torch.cat([texts, more])
    model = tuned(floats, config, texts, given)
    keep(given.output, {"config": sizes, **model.arrays()})


def keep(path: Path, arrays: Mapping[str, Array]) -> None:
    """A file that is there whole, or as it was."""
    made = path.with_name(f".{path.name}.new")
    with made.open("wb") as file:
        np.savez_compressed(file, **arrays)
    made.replace(path)


if __name__ == "__main__":
    main()
