"""`tilewright cost`, `map`, `machines` and `import`: what they print, as tables, JSON and pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import refused, relu
from tilewright.cli.app import run
from tilewright.core.workload_file import read_workload_file
from tilewright.frontend.zigzag_workload import read_yaml_workload
from tilewright.machine.library import MACHINES, load_array, machine_names
from tilewright.machine.target import platform_names

TWO = """\
layers:
  - {name: first, equation: "O[m][n] += A[m][k] * B[k][n]", sizes: {M: 8, N: 16, K: 4}}
  - {name: second, equation: "O[m] += A[m][k]", sizes: {M: 8, K: 16}}
"""
PRODUCT = ["map", "O[m][n] += A[m][k] * B[k][n]", "--sizes", "M=16,N=16,K=16", "--machine", "tpu-like"]
ZIGZAG = """\
name: small
memories:
  rf:
    size: 8
    r_cost: 1
    w_cost: 1
    area: 0
    latency: 1
    operands: [I2]
    ports: []
    ports:
      - {name: r, type: read, bandwidth_min: 8, bandwidth_max: 8, allocation: ["I2, tl"]}
      - {name: w, type: write, bandwidth_min: 8, bandwidth_max: 8, allocation: ["I2, fh"]}
    served_dimensions: []
  dram:
    size: 100000000
    r_cost: 100
    w_cost: 100
    area: 0
    latency: 1
    operands: [I1, I2, O]
    ports:
      - name: rw
        type: read_write
        bandwidth_min: 64
        bandwidth_max: 64
        allocation: ["I1, tl", "I2, tl", "O, tl", "O, fl"]
    served_dimensions: [D1]
operational_array: {unit_energy: 1, unit_area: 1, dimensions: [D1], sizes: [4]}
"""

LAYERS = """\
- id: 0
  operator_type: Conv
  equation: O[k][ox]+=W[k][fx]*I[ix]
  dimension_relations: [ix=2*ox+1*fx]
  loop_dims: [K, OX, FX]
  loop_sizes: [8, 5, 3]
  operand_precision: {O: 16, O_final: 8, W: 8, I: 8}
  operand_source: {W: 0, I: 0}
  pr_loop_dims: [IX]
  pr_loop_sizes: [10]
- id: 1
  operator_type: Pooling
  equation: O[k]+=W*I[k][ox]
  loop_dims: [K, OX]
  loop_sizes: [8, 5]
  operand_precision: {O: 16, O_final: 8, W: 0, I: 8}
  operand_source: {W: 1, I: 0}
"""


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert run([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_cost_of_one_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "cost", relu(tmp_path), "--machine", "tpu-like", "--why", "only")
    for expected in ("network on tpu-like", "only", "Relu", "total", "accesses:"):
        assert expected in text


def test_cost_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    machines = ["--machine", "tpu-like", "--machine", "edge-array"]
    text = printed(capsys, "cost", relu(tmp_path), *machines, "--json", "--html", page)
    first, second = json.loads(text)["machines"]
    assert (first["machine"], second["machine"]) == ("tpu-like", "edge-array")
    (layer,) = first["layers"]
    assert layer["operations"] == 6
    assert layer["energy"] == pytest.approx(
        layer["unit_energy"] + sum(e for m in layer["memory_energy"].values() for o in m.values() for e in o.values())
    )
    assert layer["cycles"] == sum(layer["latency"][part] for part in ("computing", "stall", "loading", "storing"))
    html = page.read_text(encoding="utf-8")
    assert "Energy of the machines" in html
    assert "Energy of network on edge-array" in html


def test_nothing_is_written_before_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, mappings = tmp_path / "page.html", tmp_path / "all.json"
    options = ["--machine", "tpu-like", "--html", page, "--export", mappings, "--why", "nothing"]
    assert "no layer 'nothing'" in refused("unknown-layer", capsys, "cost", relu(tmp_path), *options)
    assert not page.exists()
    assert not mappings.exists()


def test_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "cost", relu(tmp_path), "-m", "tpu-like", "-m", "edge-array")
    assert "network on 2 machines" in text


def test_map_draws_loops_against_memories(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, *PRODUCT, "--why")
    for expected in ("loops, outermost first", "B (I2)", "at once N in 16 along D1", "proved best of", "stall:"):
        assert expected in text


def test_map_front(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "front.html"
    sizes = ["M=24,N=20,K=12", "--machine", "edge-array"]
    text = printed(capsys, *PRODUCT[:3], *sizes, "--objective", "pareto", "--html", page)
    assert "mappings that no other one beats" in text
    assert "Pareto front of layer on edge-array" in page.read_text(encoding="utf-8")


def test_map_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    ((mapping,),) = json.loads(printed(capsys, *PRODUCT, "--json", "--strategy", "loma"))["mappings"]
    assert mapping["proved"] is False
    assert mapping["dims"] == {"M": 16, "N": 16, "K": 16}


def test_order_is_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, *PRODUCT, "--json", "--unroll", "D1=N:16", "--unroll", "D2=K:4", "--order", "M:4,K")
    assert json.loads(text)["mappings"][0][0]["order"] == [["M", 4], ["K", 4], ["M", 4]]


@pytest.mark.parametrize("name", ["best.json", "best.yaml"])
def test_mappings_go_out_and_come_back(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    ((found,),) = json.loads(printed(capsys, *PRODUCT, "--json", "--export", path))["mappings"]
    ((again,),) = json.loads(printed(capsys, *PRODUCT, "--json", "--mapping", path))["mappings"]
    assert again == found | {"proved": False, "covered": 1, "evaluated": 1}
    assert "as given, not searched" in printed(capsys, *PRODUCT, "--mapping", path)


def test_mapping_on_another_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, machine = tmp_path / "best.json", tmp_path / "slow.yaml"
    text = (MACHINES / "tpu-like.yaml").read_text(encoding="utf-8")
    machine.write_text(text.replace("name: tpu-like", "name: slow").replace("bits: 64,", "bits: 32,"), encoding="utf-8")
    ((found,),) = json.loads(printed(capsys, *PRODUCT, "--json", "--export", path))["mappings"]
    options = ("--json", "--mapping", path, "--machine", machine)
    ((again,),) = json.loads(printed(capsys, *PRODUCT[:-1], "tpu-like", *options))["mappings"][1:]
    assert again["order"] == found["order"]
    assert again["cycles"] > found["cycles"]


def test_layers_without_a_given_mapping_are_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layers, path = tmp_path / "two.yaml", tmp_path / "all.json"
    layers.write_text(TWO, encoding="utf-8")
    command = ["cost", layers, "--machine", "tpu-like", "--json"]
    (whole,) = json.loads(printed(capsys, *command, "--export", path))["machines"]
    mappings = json.loads(path.read_text(encoding="utf-8"))["mappings"]
    assert [one["layer"] for one in mappings] == ["first", "second"]
    path.write_text(json.dumps({"mappings": mappings[:1]}), encoding="utf-8")
    (part,) = json.loads(printed(capsys, *command, "--mapping", path))["machines"]
    assert part["energy"] == whole["energy"]
    assert [layer["proved"] for layer in part["layers"]] == [False, True]


def test_mappings_that_do_not_go_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    layers, path = tmp_path / "two.yaml", tmp_path / "all.yaml"
    layers.write_text(TWO, encoding="utf-8")
    text = refused("bad-argument", capsys, "map", layers, "--machine", "tpu-like", "--export", path)
    assert "holds one mapping, not 2" in text
    assert "ends in .json" in refused("bad-argument", capsys, *PRODUCT, "--export", tmp_path / "best.txt")
    assert not path.exists()


def test_mapping_of_another_layer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"mappings": [{"layer": "other", "machine": "tpu-like"}]}', encoding="utf-8")
    text = refused("bad-mapping", capsys, *PRODUCT, "--mapping", path)
    assert "a mapping is for layer 'other' on 'tpu-like'" in text


def test_names_that_nothing_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert "bits of 'I9'" in refused("bad-argument", capsys, *PRODUCT, "--bits", "I9=4")
    assert "a density of 'C'" in refused("bad-argument", capsys, *PRODUCT, "--density", "C=0.5")


@pytest.mark.parametrize(
    ("option", "value"),
    [("--unroll", "D1"), ("--unroll", "D1=K"), ("--order", "M:x"), ("--bits", "I1=0"), ("--density", "I1=2")],
)
def test_texts_that_mean_nothing(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"{option} '{value}'" in refused("bad-argument", capsys, *PRODUCT, option, value)


def test_machines(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(printed(capsys, "machines", "--json"))["machines"]
    assert [row["name"] for row in rows] == [*machine_names(), *platform_names()]
    by_name = {row["name"]: row for row in rows}
    assert by_name["tpu-like"]["engines"] == {"array": {"D1": 32, "D2": 32}}
    assert by_name["siracusa"]["engines"] == {"cluster": {}, "neureka": {}}
    assert by_name["siracusa"]["memories"]["L1"] == 8 * 0x40000
    assert "tpu-like" in printed(capsys, "machines")


def test_an_engine_of_a_platform(capsys: pytest.CaptureFixture[str]) -> None:
    """Each layer takes the mode that suits it, and costs what it costs there."""
    layer = ("map", "O[k][x][y] += I[c][ix][iy] * W[k][c][f][g], ix = x + f, iy = y + g")
    found: dict[str, list[dict[str, object]]] = {}
    for sizes in ("K=32,C=32,X=6,Y=6,F=1,G=1", "K=32,C=28,X=6,Y=6,F=3,G=3"):
        for name in ("siracusa", "siracusa/neureka", "neureka-1x1", "neureka-3x3", "neureka-depthwise"):
            text = printed(capsys, *layer, "--sizes", sizes, "--machine", name, "--objective", "latency", "--json")
            found.setdefault(name, []).append(json.loads(text)["mappings"][0][0])
    cycles = {name: [one["cycles"] for one in each] for name, each in found.items()}
    assert cycles["siracusa"] == cycles["siracusa/neureka"] == [cycles["neureka-1x1"][0], cycles["neureka-3x3"][1]]
    assert found["siracusa"] == found["siracusa/neureka"]


def test_a_network_on_an_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = relu(tmp_path)
    (one,) = json.loads(printed(capsys, "cost", network, "--machine", "siracusa/neureka", "--json"))["machines"]
    assert one["machine"] == "siracusa/neureka"
    assert {layer["mode"] for layer in one["layers"]} <= {"neureka-1x1", "neureka-3x3", "neureka-depthwise"}
    assert one["area"] > 0
    assert "mode" in printed(capsys, "cost", network, "--machine", "siracusa/neureka")


def test_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "theirs.yaml", tmp_path / "ours.yaml"
    source.write_text(ZIGZAG, encoding="utf-8")
    assert run(["import", "zigzag", str(source), "-o", str(target)]) == 0
    captured = capsys.readouterr()
    assert "warning: theirs.yaml:" in captured.err
    assert "'ports' is there twice; the first one has no effect" in captured.err
    machine = load_array(target)
    assert machine.dims == {"D1": 4}
    assert [memory.name for memory in machine.memories] == ["rf", "dram"]


def test_import_of_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "theirs.yaml", tmp_path / "ours.yaml"
    source.write_text(LAYERS, encoding="utf-8")
    assert "2 layers" in " ".join(printed(capsys, "import", "zigzag", source, "-o", target).split())
    assert read_workload_file(target).layers == read_yaml_workload(source)[0].layers
