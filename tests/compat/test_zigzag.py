"""ZigZag's entry points: its signature, its return values, its numbers."""

from __future__ import annotations

import json
import pickle
from importlib import import_module
from math import isclose
from pathlib import Path
from typing import Any

import pytest
import yaml

from compat.zigzag_files import MACHINE, MAPPING, WORKLOAD, write
from price.zigzag_lines import folder, runs
from tilewright.compat.zigzag import get_hardware_performance_zigzag, get_hardware_performance_zigzag_imc
from tilewright.errors import TilewrightError

ENERGY, LATENCY = 55.2, 31
"""Of one layer, as worked out in tests/price/test_array.py."""
OLDER = "inputs/workload/mobilenetv2.onnx"
"""ZigZag's tests keep totals of it that releases before 3.7 computed, and do not run it any more."""
MOBILENET = (722461923.9299997, 2344225.0)
"""What ZigZag 3.8.5 computes for mobilenetv2.onnx on edge_tpu_like.yaml with locality; its tests assert
735250234.17 pJ and 2417321 cycles."""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    workload = write(tmp_path, "workload.yaml", WORKLOAD)
    return workload, write(tmp_path, "machine.yaml", MACHINE), write(tmp_path, "mapping.yaml", MAPPING)


def test_a_small_network(files: tuple[str, str, str]) -> None:
    result = get_hardware_performance_zigzag(*files)
    assert len(result) == 3
    energy, latency, evaluations = result
    assert energy == pytest.approx(2 * ENERGY)
    assert latency == 2 * LATENCY
    total, layers = evaluations[0]
    assert total.energy_total == energy
    assert [layer.layer.name for layer, _ in layers] == ["Layer0", "last"]
    first = layers[0][0]
    assert (first.ideal_temporal_cycle, first.stall_slack_comb, first.data_offloading_cycle) == (16, 14, 1)
    assert first.mem_energy_breakdown == {"O": [pytest.approx(7.2), 8], "I": [8], "W": [16]}
    assert first.memory_word_access["O"][0]["rd_out_to_low"] == 32


def test_a_workload_that_is_not_a_file(files: tuple[str, str, str]) -> None:
    layers: list[dict[str, Any]] = yaml.safe_load(WORKLOAD)
    result = get_hardware_performance_zigzag(layers, *files[1:], opt="EDP")
    assert result[:2] == get_hardware_performance_zigzag(*files, opt="EDP")[:2]


def test_files_that_it_writes(files: tuple[str, str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    get_hardware_performance_zigzag(*files, dump_folder=str(out), pickle_filename=str(out / "all.pickle"))
    said = json.loads((out / "Layer0_complete.json").read_text())["outputs"]
    assert said["energy"]["energy_total"] == pytest.approx(ENERGY)
    assert said["latency"]["computation"] == 30
    assert json.loads((out / "overall_simple.json").read_text())["latency"] == 2 * LATENCY
    assert len(pickle.loads((out / "all.pickle").read_bytes())) == 2


def test_an_objective_that_there_is_not(files: tuple[str, str, str]) -> None:
    with pytest.raises(TilewrightError, match="opt is 'speed'"):
        get_hardware_performance_zigzag(*files, opt="speed")


def test_salsa_is_the_same_every_time(files: tuple[str, str, str]) -> None:
    once = get_hardware_performance_zigzag(*files, temporal_mapping_search_engine="salsa")
    assert get_hardware_performance_zigzag(*files, temporal_mapping_search_engine="salsa")[:2] == once[:2]


@pytest.mark.cases
@pytest.mark.filterwarnings("ignore:.*is there twice")
def test_searches() -> None:
    """Every search of LOMA ends with the same energy and latency."""
    for run in runs():
        if run["engine"] != "loma":
            continue
        where = folder()
        energy, latency, *_ = get_hardware_performance_zigzag(
            *(str(where / run[key]) for key in ("workload", "accelerator", "mapping")),
            opt=run["opt"],
            temporal_mapping_type=run["tm_type"],
            lpf_limit=run["lpf_limit"],
        )
        assert isclose(energy, run["energy"], rel_tol=1e-9), run["name"]
        assert isclose(latency, run["latency"], rel_tol=1e-9), run["name"]


def asserted(case: dict[str, Any], accelerator: Path) -> None:
    """Energy and latency of networks, and clock period and area of computing in memory, within 0.1 %."""
    options: dict[str, Any] = {
        key: text == "True" if text in ("True", "False") else int(text)
        for key, text in case["call"].items()
        if key != "fn"
    }
    imc = case["call"]["fn"].endswith("imc")
    call = get_hardware_performance_zigzag_imc if imc else get_hardware_performance_zigzag
    result = call(str(folder() / case["workload"]), str(accelerator), str(folder() / case["mapping"]), **options)
    for found, expected in zip(result[:-1], case["expected"], strict=True):
        assert isinstance(found, float)
        assert found == pytest.approx(expected, rel=1e-3), case["test"]


@pytest.mark.cases
@pytest.mark.filterwarnings("ignore:.*is there twice")
def test_networks_that_its_tests_assert() -> None:
    cases = [case for case in json.loads((folder() / "asserted.json").read_text()) if case["workload"] != OLDER]
    for case in cases:
        asserted(case, folder() / case["accelerator"])
    assert len(cases) == 19


@pytest.mark.cases
@pytest.mark.filterwarnings("ignore:.*is there twice")
def test_networks_as_releases_before_3_7_computed_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They hid no load behind the work, and the TPU-like machine had one register of outputs for each column."""

    def of_one(busy: list[float], *_: object) -> list[float]:
        return busy

    def of_many(_: object, busy: list[object], *_rest: object) -> list[object]:
        return busy

    monkeypatch.setattr(import_module("tilewright.price.array_latency"), "_reduced", of_one)
    monkeypatch.setattr(import_module("tilewright.mapping.batch"), "reduced", of_many)
    text = (folder() / "inputs/hardware/tpu_like.yaml").read_text()
    registers = text.index("rf_2B:")
    shared = text[:registers] + text[registers:].replace("served_dimensions: []", "served_dimensions: [D2]", 1)
    tpu = Path(write(tmp_path, "tpu_like.yaml", shared))
    cases = [case for case in json.loads((folder() / "asserted.json").read_text()) if case["workload"] == OLDER]
    for case in cases:
        older = case["accelerator"] == "inputs/hardware/tpu_like.yaml"
        asserted(case, tpu if older else folder() / case["accelerator"])
    assert len(cases) == 10


@pytest.mark.cases
def test_a_network_as_the_original_computes_it() -> None:
    inputs = folder() / "inputs"
    energy, latency, *_ = get_hardware_performance_zigzag(
        str(inputs / "workload" / "mobilenetv2.onnx"),
        str(inputs / "hardware" / "edge_tpu_like.yaml"),
        str(inputs / "mapping" / "edge_tpu_like.yaml"),
        exploit_data_locality=True,
    )
    assert (energy, latency) == pytest.approx(MOBILENET, rel=1e-9)
