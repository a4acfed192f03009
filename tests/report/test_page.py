"""The report page: complete, well-formed, self-contained and deterministic."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import tilewright
from onnx_models import model, node, value, write
from tilewright.core.domain import dims, domain
from tilewright.errors import TilewrightError
from tilewright.report import layers, render_report, write_report
from tilewright.report.flow import flow
from tilewright.report.layers import multiply_accumulates
from tilewright.report.memory import memory_maps

VOID = {"meta", "input", "br", "link"}


class Checker(HTMLParser):
    """Notes tags that are closed in the wrong order, and everything that would be fetched from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.fetched: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for key, text in attrs:
            if key in ("src", "href") and not (text or "").startswith("#"):
                self.fetched.append(f"{tag} {key}={text}")
            if key == "id":
                self.ids.append(text or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def network(tmp_path: Path, *, hostile: bool = False) -> tilewright.Compiled:
    """Two branches over a residual connection; with `hostile`, names that want escaping."""
    rng = np.random.default_rng(0)
    name = "<script>alert(1)</script>" if hostile else "first"
    nodes = [
        node("Conv", "x w", "a", name=name, pads=[1, 1, 1, 1]),
        node("Relu", "a", "b"),
        node("Conv", "b v", "c", name="second", pads=[1, 1, 1, 1]),
        node("Add", "b c", "d"),
        node("Softmax", "d", "y", name="last", axis=-1),
    ]
    weights = {"w": rng.normal(size=(4, 3, 3, 3)), "v": rng.normal(size=(4, 4, 3, 3))}
    built = model(
        nodes, [value("x", (1, 3, 8, 8))], ["y"], constants={k: w.astype(np.float32) for k, w in weights.items()}
    )
    return tilewright.compile(write(tmp_path / "m.onnx", built))


def page(compiled: tilewright.Compiled) -> str:
    return render_report(compiled.plan, compiled.program, title="small & <simple>")


def test_is_well_formed_and_fetches_nothing(tmp_path: Path) -> None:
    checker = Checker()
    checker.feed(page(network(tmp_path)))
    checker.close()
    assert checker.wrong == []
    assert checker.open == []
    assert checker.fetched == []
    assert len(checker.ids) == len(set(checker.ids))


def test_names_every_layer_buffer_and_port(tmp_path: Path) -> None:
    compiled = network(tmp_path)
    text = page(compiled)
    rows = layers(compiled.plan)
    assert len(rows) >= 3
    for row in rows:
        assert f'id="layer-{row.step}"' in text
        assert f'href="#layer-{row.step}"' in text
        assert f'<b title="{row.op}">' in text
        assert row.code in text
        assert all(other.reason.split(",")[0] in text for other in row.rejected[:1])
    assert compiled.plan.buffers
    assert text.count('class="block"') == len(compiled.plan.buffers)
    for buffer in compiled.plan.buffers:
        assert f"{buffer.bytes:,} bytes at {buffer.place.offset:,}" in text
    assert f"{compiled.program.constant_bytes:,} bytes" in text


def test_escapes_names(tmp_path: Path) -> None:
    text = page(network(tmp_path, hostile=True))
    assert "<script>alert" not in text
    assert "small &amp; &lt;simple&gt;" in text


def test_same_plan_same_bytes(tmp_path: Path) -> None:
    assert page(network(tmp_path)) == page(network(tmp_path))


def test_many_layers_stay_small(tmp_path: Path) -> None:
    nodes = [node("Softmax", f"t{i}", f"t{i + 1}", name=f"layer{i}", axis=-1) for i in range(500)]
    compiled = tilewright.compile(
        write(tmp_path / "m.onnx", model(nodes, [value("t0", (1, 16))], ["t500"])),
    )
    text = page(compiled)
    assert len(text) < 1_000_000
    assert all(f"layer{i}<" in text for i in range(500))


def test_a_network_without_intermediate_tensors(tmp_path: Path) -> None:
    built = model([node("Abs", "x", "y")], [value("x", (2, 3))], ["y"])
    text = page(tilewright.compile(write(tmp_path / "m.onnx", built)))
    assert "the arena is empty" in text


def test_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    compiled = network(tmp_path)
    write_report(compiled.plan, compiled.program, tmp_path / "report.html", title="x")
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(TilewrightError) as caught:
        write_report(compiled.plan, compiled.program, tmp_path / "m.onnx" / "report.html", title="x")
    assert caught.value.code == "cannot-write"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "report.html"]


def test_flow_routes_skips_around_the_rows_between(tmp_path: Path) -> None:
    compiled = network(tmp_path)
    drawn = flow(compiled.plan.graph, layers(compiled.plan))
    assert drawn.rows[0].kind == "input"
    assert drawn.rows[-1].kind == "output"
    reached = {target for trunk in drawn.trunks for target in trunk.targets} | {row + 1 for row in drawn.linked}
    assert reached == set(range(1, len(drawn.rows)))
    for one in drawn.trunks:
        for other in drawn.trunks:
            if one is not other and one.lane == other.lane:
                assert max(one.targets) <= other.start or max(other.targets) <= one.start


def test_multiply_accumulates_come_from_the_access_maps() -> None:
    m, n, k, x = dims("M N K X")
    product = domain(
        {"M": 2, "N": 3, "K": 5}, {"A": [m, k], "B": [k, n], "Y": [m, n]}, {"A": (2, 5), "B": (5, 3), "Y": (2, 3)}, "Y"
    )
    assert multiply_accumulates(product) == 30
    summed = domain({"M": 2, "K": 5}, {"A": [m, k], "Y": [m]}, {"A": (2, 5), "Y": (2,)}, "Y")
    assert multiply_accumulates(summed) == 0
    chain = domain(
        {"M": 2, "N": 3, "K": 5, "X": 7},
        {"A": [m, k], "B": [k, n], "C": [n, x], "Y": [m, x]},
        {"A": (2, 5), "B": (5, 3), "C": (3, 7), "Y": (2, 7)},
        "Y",
    )
    assert multiply_accumulates(chain) == 2 * 5 * 3 + 2 * 3 * 7


def test_buffers_never_leave_the_picture(tmp_path: Path) -> None:
    plan = network(tmp_path).plan
    maps = memory_maps(plan)
    assert sum(len(drawn.blocks) for drawn in maps) == len(plan.buffers)
    for drawn in maps:
        for block in drawn.blocks:
            assert drawn.left <= block.x
            assert block.x + block.width <= drawn.right + 0.2
            assert drawn.top - 0.2 <= block.y
            assert block.y + block.height <= drawn.bottom + 1.2
