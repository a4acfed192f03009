"""error[bad-state]: what --state or a file says about states does not fit the network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import command_line
from onnx_models import Array, model, node, value, write
from stateful import running_sum, with_metadata
from tilewright.errors import TilewrightError
from tilewright.frontend import load


def refused(path: Path, states: Mapping[str, str], constants: Mapping[str, Array] | None = None) -> TilewrightError:
    with pytest.raises(TilewrightError) as caught:
        load(path, states=states, constants=constants or {})
    assert caught.value.code == "bad-state"
    return caught.value


@pytest.mark.parametrize(
    ("states", "what", "help"),
    [
        ({"s": "s_out"}, "--state names 's', which is no input of the network", "known: x, s_in"),
        ({"s_in": "s"}, "--state names 's', which is no output of the network", "known: y, s_out"),
        ({"s_out": "s_in"}, "--state names 's_out', which is no input of the network", "known: x, s_in"),
    ],
)
def test_names_that_the_network_does_not_have(states: Mapping[str, str], what: str, help: str, tmp_path: Path) -> None:
    error = refused(running_sum(tmp_path), states)
    assert (error.what, error.help) == (what, help)


def test_shapes_that_differ(tmp_path: Path) -> None:
    nodes = [node("Concat", "x h", "h_out", axis=0), node("Abs", "h_out", "y")]
    path = write(tmp_path / "m.onnx", model(nodes, [value("x", (1, 4)), value("h", (3, 4))], ["y", "h_out"]))
    error = refused(path, {"h": "h_out"})
    assert error.what == "state 'h' is float32[3,4], its new value 'h_out' is float32[4,4]"


def test_types_that_differ(tmp_path: Path) -> None:
    nodes = [node("Add", "x h", "s"), node("Cast", "s", "h_out", to=11), node("Abs", "s", "y")]
    path = write(tmp_path / "m.onnx", model(nodes, [value("x", (4,)), value("h", (4,))], ["y", "h_out"]))
    assert refused(path, {"h": "h_out"}).help == "both have to be the same: --input-type h=float64"


def test_a_state_that_is_a_constant(tmp_path: Path) -> None:
    zero = np.zeros(40, np.float32)
    error = refused(running_sum(tmp_path), {"s_in": "s_out"}, {"s_in": zero})
    assert error.what == "'s_in' is a state, and --constant fixes it"


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"s_in": 1}', "s_in=s_out", '"s_in"'])
def test_metadata_that_is_no_object_of_names(text: str, tmp_path: Path) -> None:
    assert "metadata 'tilewright.states'" in refused(with_metadata(running_sum(tmp_path), text), {}).what


def test_two_new_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = running_sum(tmp_path), tmp_path / "out"
    given = ("--state", "s_in=s_out", "--state", "s_in=y")
    printed = command_line.refused("bad-state", capsys, "compile", path, *given, "-o", output)
    assert "--state gives 's_in' two new values, 's_out' and 'y'" in printed
    assert not output.exists()
