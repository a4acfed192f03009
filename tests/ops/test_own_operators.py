"""Users' own operators: mistakes in declarations are told by file, and files may change while a process runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from onnx_models import model, node, value, write
from tilewright.api import Options, compile_model
from tilewright.core.interpret import interpret
from tilewright.core.op import REGISTRY
from tilewright.core.tried import try_examples
from tilewright.errors import TilewrightError
from tilewright.ops import load_folder, operators

FILE = """\
from types import MappingProxyType
from tilewright.core.domain import dims, domain
from tilewright.core.op import Body, Operator, declare, example

def infer(call):
    return (call.type("X"),)

def loops(call):
    n, = dims("N")
    shapes = {name: call.shape(name) for name in ("X", "Y")}
    return domain({"N": shapes["X"][0]}, {"X": [n], "Y": [n]}, shapes, "Y")

def body(call):
    return Body(MappingProxyType({"Y": "3 * X"}))

declare(Operator("Thrice", "X", "Y", infer, loops, lambda call, X: 3 * X, (example("float32[4]"),),
                 kind="elementwise", body=body))
"""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    known = dict(REGISTRY)
    yield
    REGISTRY.clear()
    REGISTRY.update(known)


def test_own_declarations_have_no_mistakes() -> None:
    for operator in operators().values():
        try_examples(operator)


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ('(call.type("X"),)', 'call.type("X")', "a tuple of types"),
        ('(call.type("X"),)', '(call.type("X"),) * 2', "2 types for the outputs 'Y'"),
        ('shapes, "Y")', 'shapes, "Z")', "'Z', which is no operand"),
        ('"Y": [n]}', '"Y": [n, n]}', "the map of Y has 2 axes"),
        ('{"X": [n], "Y"', '{"Y"', "no map and shape of 'X'"),
        ('{"Y": "3 * X"}', '{"Z": "3 * X"}', "a result of each output"),
        ('{"Y": "3 * X"})', '{"Y": "3 * X"}), (("float", "sum"),)', "are triples"),
        ("call, X: 3", "call: 3", "takes 1 positional argument"),
        ("3 * X, (example", "np * X, (example", "NameError"),
        ("float32[4]", "float33[4]", "float33"),
        ('"elementwise"', '"pointwise"', "kind is 'pointwise'"),
        ("from types", "raise SystemExit\nfrom types", "SystemExit"),
    ],
)
def test_mistakes(right: str, wrong: str, told: str, tmp_path: Path) -> None:
    assert right in FILE
    (tmp_path / "thrice.py").write_text(FILE.replace(right, wrong))
    with pytest.raises(TilewrightError, match="bad-operator") as caught:
        load_folder(tmp_path)
    assert told in str(caught.value)
    assert "Thrice" not in REGISTRY


def test_a_file_that_changed_is_loaded_again(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", model([node("Thrice", "x", "y")], [value("x", (4,))], ["y"]))
    folders = [tmp_path / "first", tmp_path / "second"]
    for factor, folder in ((3, folders[0]), (5, folders[0])):
        folder.mkdir(exist_ok=True)
        (folder / "own.py").write_text(FILE.replace("3 * X", f"{factor} * X"))
        compiled = compile_model(path, Options(ops=(folder,)))
        (found,) = interpret(compiled.plan.graph, [np.ones(4, np.float32)])
        np.testing.assert_array_equal(found, np.full(4, factor, np.float32))
        assert f"{factor} * X" in compiled.files["network.c"].decode()
    folders[1].mkdir()
    (folders[1] / "own.py").write_text(FILE.replace("Thrice", "Again"))
    assert load_folder(folders[1]) == ("Again",)
