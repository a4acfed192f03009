"""`tilewright schedule`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import refused
from frontend.stream_files import write_two
from onnx_models import model, node, value, write
from tilewright.cli.app import run

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "many_core"
TRIO = str(EXAMPLES / "trio.yaml")


def _network(folder: Path) -> Path:
    """Two convolutions and a residual."""
    nodes = [
        node("Conv", "x w", "a", name="first", pads=[1, 1, 1, 1]),
        node("Conv", "a v", "b", name="second", pads=[1, 1, 1, 1]),
        node("Add", "a b", "y", name="sum"),
    ]
    weights = {"w": np.ones((4, 3, 3, 3), np.float32), "v": np.ones((4, 4, 3, 3), np.float32)}
    return write(folder / "net.onnx", model(nodes, [value("x", (1, 3, 8, 8))], ["y"], constants=weights))


def test_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _network(tmp_path)
    mapping = str(EXAMPLES / "mapping.yaml")
    trace = tmp_path / "trace.json"
    options = ["--mapping", mapping, "--bits", "8", "--split", "none", "--trace", str(trace)]
    assert run(["schedule", str(path), "--platform", TRIO, *options]) == 0
    printed = capsys.readouterr()
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    assert sum(event["ph"] == "X" and event["pid"] == 1 for event in events) == 17
    assert {"first [3]", "w"} <= {event["name"] for event in events}
    assert "first" in printed.out
    assert "transfers between engines" in printed.out
    assert "critical path" in printed.out
    assert "17 nodes" in printed.err
    assert "all allocations tried" in printed.err


def test_json_is_the_same_for_a_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _network(tmp_path)
    command = ["schedule", str(path), "--platform", TRIO, "--split", "OY=2", "--evaluations", "20", "--json"]
    found: list[dict[str, Any]] = []
    for _ in range(2):
        assert run(command) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    assert found[0]["tried"] == {"OY 2": found[0]["latency"]}
    assert found[0]["splits"]["sum"] == {"across": [], "within": [["D2", 2]]}
    assert [operation["name"] for operation in found[0]["operations"]] == ["first", "second", "sum"]


def test_what_it_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _network(tmp_path)
    for wrong in (["--split", "OY"], ["--split", "=3"], ["--limit", "speed=3"], ["--limit", "energy=x"]):
        refused("bad-argument", capsys, "schedule", path, "--platform", TRIO, *wrong)
    refused("bad-argument", capsys, "schedule", path, "--platform", TRIO, "--split", "none", "--layer-cutoffs", "0")
    small = tmp_path / "small.yaml"
    small.write_text(Path(TRIO).read_text(encoding="utf-8").replace("bytes: 1073741824", "bytes: 16"), encoding="utf-8")
    given = ("schedule", path, "--platform", small, "--split", "none", "--evaluations", "5")
    assert "bits of 'dram'" in refused("no-room", capsys, *given)
    for ignored in (["--layer-cutoffs", "3"], ["--cn-define-mode", "2"]):
        refused("bad-argument", capsys, "schedule", path, "--platform", TRIO, *ignored)
    for cutoffs in ("7", "2,1"):
        lists = ";".join(["OY=2"] * (cutoffs.count(",") + 2))
        cut = ["--split", lists, "--cn-define-mode", "3", "--layer-cutoffs", cutoffs]
        assert "rising numbers" in refused("bad-argument", capsys, "schedule", path, "--platform", TRIO, *cut)
    said = refused("unknown-dimension", capsys, "schedule", path, "--platform", TRIO, "--split", "OY=2,ZZ=2")
    assert "can be cut along ZZ" in said
    assert "OY" in said.partition("help:")[2]
    refused("not-many-core", capsys, "schedule", path, "--platform", "tpu-like")
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("- {name: Conv, core_allocation: [wide]}\n", encoding="utf-8")
    said = refused("unallocated-layer", capsys, "schedule", path, "--platform", TRIO, "--mapping", mapping)
    assert "nothing says which engine computes 'sum'" in said


def test_import_of_streams_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write_two(tmp_path), tmp_path / "own.yaml"
    assert run(["import", "stream", str(path), "-o", str(out)]) == 0
    assert "two, 2 engines" in " ".join(capsys.readouterr().out.split())
    assert "home: core2" in out.read_text(encoding="utf-8")


def test_costs_and_cuts_as_others_give_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, costs = _network(tmp_path), tmp_path / "costs.yaml"
    lines = [
        f"- {{operation: {name}, engine: wide, cycles: {cycles}, energy: 10, streamed: []}}"
        for name, cycles in (("first", 100), ("second", 1000), ("sum", 10))
    ]
    costs.write_text("\n".join(lines), encoding="utf-8")
    command = ["schedule", str(path), "--platform", TRIO, "--bits", "8", "--costs", str(costs), "--rules", "stream"]
    cut = ["--split", "OY=2;none", "--cn-define-mode", "3", "--layer-cutoffs", "1", "--json", "--limit", "latency=1e6"]
    assert run([*command, *cut]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [operation["work"] for operation in found["operations"]] == [200, 1000, 10]
    assert found["energies"]["compute"] == 40
    refused("bad-argument", capsys, *command)
    costs.write_text("- {operation: third, engine: wide, cycles: 3, energy: 10}\n", encoding="utf-8")
    assert "'third'" in refused("bad-value", capsys, *command, "--split", "none")


def test_two_schedules_beside_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, trace, page = _network(tmp_path), tmp_path / "whole.json", tmp_path / "page.html"
    command = ["schedule", str(path), "--platform", TRIO, "--bits", "8", "--evaluations", "30"]
    assert run([*command, "--split", "none", "--trace", str(trace)]) == 0
    capsys.readouterr()
    assert run([*command, "--split", "OY=4", "--against", str(trace), "--html", str(page)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "side by side" in printed
    text = page.read_text(encoding="utf-8")
    for part in ("Timeline of", "Memories of", "Critical path of"):
        assert text.count(f"<h2>{part}") == 2
    assert "first [0]" in text
    assert "data-edges='[[" in text
    refused("missing-file", capsys, *command, "--against", tmp_path / "none.json")
