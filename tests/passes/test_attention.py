"""Attention written out."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from msgspec import structs
from msgspec.structs import replace

from passes.build import Builder, applied, ops, text
from support import Golden
from tilewright.machine.target import Sizes, load_platform, resize
from tilewright.passes.attention import attention
from tilewright.passes.simplify import simplify
from tilewright.passes.transposes import transposes


def _attended(b: Builder, q: str, k: str, v: str, mask: str = "", name: str = "") -> str:
    scores = b.op("Mul", b.op("MatMul", q, k, transB=1), 0.25)
    masked = b.op("Add", scores, mask) if mask else scores
    return b.op("MatMul", b.op("Softmax", masked), v, name=name)


def _split(b: Builder, name: str) -> str:
    return b.op("Transpose", b.op("Reshape", b.input(name, "float32[2,5,12]"), [2, 5, 3, 4]), perm=(0, 2, 1, 3))


def test_attention(golden: Golden) -> None:
    b = Builder()
    merged = b.op("Transpose", _attended(b, *(_split(b, name) for name in "qkv")), perm=(0, 2, 1, 3))
    graph = b.graph(b.op("Reshape", merged, [2, 5, 12], name="y"))
    whole = text(graph, lambda g, p: simplify(transposes(attention(g, p), p), p))
    golden("passes/attention.txt", whole)


@pytest.mark.parametrize("mask", ["float32[7]", "float32[5,7]", "float32[2,1,1,7]"])
def test_masks(mask: str) -> None:
    b = Builder()
    q, k, v = b.input("q", "float32[2,3,5,4]"), b.input("k", "float32[2,3,7,4]"), b.input("v", "float32[2,3,7,6]")
    graph = b.graph(_attended(b, q, k, v, b.input("mask", mask), name="y"))
    assert "Softmax" not in ops(applied(graph, attention))


def test_three_axes() -> None:
    b = Builder()
    q, k, v = b.input("q", "float32[3,5,4]"), b.input("k", "float32[3,7,4]"), b.input("v", "float32[3,7,6]")
    assert "Attention" in ops(applied(b.graph(_attended(b, q, k, v, b.input("m", "float32[3,5,7]"), "y")), attention))


def test_weights_that_are_wanted_themselves_stay() -> None:
    b = Builder()
    q, k, v = (b.input(name, "float32[1,3,5,4]") for name in "qkv")
    weights = b.op("Softmax", b.op("MatMul", q, k, transB=1), name="weights")
    graph = b.graph(b.op("MatMul", weights, v, name="y"), weights)
    assert "Attention" not in ops(applied(graph, attention))


@pytest.mark.parametrize(
    ("cores", "heads", "room", "together"),
    [(1, 1, 65536, True), (8, 1, 65536, False), (8, 8, 65536, True), (1, 1, 8192, False)],
)
def test_cores_share_the_steps_or_the_heads(cores: int, heads: int, room: int, *, together: bool) -> None:
    """One kernel for all of a head leaves the others without work where there is one head, and takes more bytes."""
    platform = resize(load_platform("siracusa"), Sizes({"L1": room}))
    engine = platform.cores
    engines = {**platform.engines, engine.name: structs.replace(engine, count=cores)}
    b = Builder()
    q, k, v = (b.input(name, f"float32[1,{heads},128,4]") for name in "qkv")
    graph = attention(b.graph(_attended(b, q, k, v)), replace(platform, engines=MappingProxyType(engines)))
    assert ("Attention" in ops(graph)) == together
