"""The package keeps to its architecture, and each rule catches a tree that does not."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import architecture
from tilewright import ops

TOP = Path(__file__).resolve().parent.parent
ROOT = TOP / "src" / architecture.PACKAGE

LONG_FILES: dict[str, str] = {}
"""Source files over the limit, each with the reason why it is better left whole."""


def project_files() -> list[Path]:
    """The files under version control, or all of them where the sources came without it."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        return [TOP / name for name in listing.stdout.split("\0") if name]
    unpacked = [TOP / "pyproject.toml", TOP / "Makefile", *TOP.glob("*.md")]
    return unpacked + [path for folder in ("src", "tests", "docs", "examples") for path in (TOP / folder).rglob("*.*")]


def report(violations: list[str]) -> str:
    return f"{len(violations)} violation(s) of the architecture:\n" + "\n".join(violations)


def test_imports_go_one_way() -> None:
    violations = architecture.import_direction(ROOT)
    assert not violations, report(violations)


def test_libraries_stay_in_their_part() -> None:
    violations = architecture.confined_libraries(ROOT)
    assert not violations, report(violations)


def test_platforms_are_named_in_their_folder_only() -> None:
    violations = architecture.platform_names(ROOT)
    assert not violations, report(violations)


def test_operators_are_named_where_they_belong() -> None:
    names = ops.operators()
    assert names, "no operator is registered, so the rule would hold for anything"
    violations = architecture.operator_names(ROOT, names)
    assert not violations, report(violations)


def test_files_are_short() -> None:
    files = [path for folder in (ROOT, TOP / "tests") for path in folder.rglob("*") if "golden" not in path.parts]
    violations = architecture.long_files(TOP, files, LONG_FILES)
    assert not violations, report(violations)


def test_no_paths_of_a_machine() -> None:
    violations = architecture.machine_paths(TOP, project_files())
    assert not violations, report(violations)


# The rules on small made-up trees: file names with their text, and what the rule must say of them ("" for nothing).

Rule = Callable[[Path], list[str]]
DEFAULT = 'DEFAULT_PLATFORM = "generic"\n'
BOARD = {"platforms/board/platform.yaml": "name: board\n", "platforms/generic/platform.yaml": "name: generic\n"}


def grow(top: Path, files: dict[str, str]) -> Path:
    """A package folder with these files."""
    root = top / architecture.PACKAGE
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def judge(rule: Rule, top: Path, files: dict[str, str]) -> str:
    return "\n".join(rule(grow(top, files)))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"errors.py": "", "core/a.py": "from ..errors import E", "plan/b.py": "from tilewright.core import a"}, ""),
        ({"core/a.py": "", "plan/b.py": "from ..core.a import x\nfrom . import b\nfrom tilewright import core"}, ""),
        ({"core/a.py": "", "cli.py": "import tilewright, tilewright.core.a", "cli_run.py": "from . import cli"}, ""),
        ({"core/a.py": "", "__init__.py": "from tilewright.core.a import x"}, ""),
        (
            {"ops/a.py": "", "core/b.py": "\nfrom tilewright.ops import a"},
            "core/b.py:2: 'core' imports from above 'ops'",
        ),
        ({"ops/a.py": "", "core/b.py": "from tilewright import ops"}, "'core' imports from above 'ops'"),
        ({"ops/a.py": "", "core/b.py": "from ..ops import a"}, "'core' imports from above 'ops'"),
        ({"ops/a.py": "", "core/b.py": "def f():\n    import tilewright.ops.a"}, "'core' imports from above 'ops'"),
        ({"sim/a.py": "", "core/b.py": "import_module('tilewright.sim.a')"}, "'core' imports from above 'sim'"),
        ({"core/a.py": "", "errors.py": "from tilewright.core import a"}, "'errors' imports from above 'core'"),
        ({"plan/a.py": "", "mapping/b.py": "import tilewright.plan.a"}, "'mapping' imports its sibling 'plan'"),
        ({"sim/a.py": "", "codegen/b.py": "from tilewright.sim.a import x"}, "'codegen' imports its sibling 'sim'"),
        ({"__init__.py": "", "sim/b.py": "from tilewright import compile"}, "'sim' imports the public API"),
        ({"cli.py": "", "report/b.py": "from tilewright.cli import main"}, "'report' imports from above 'cli'"),
        ({"helpers/a.py": ""}, "'helpers' has no place in LAYERS"),
    ],
)
def test_import_rule(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    verdict = judge(architecture.import_direction, tmp_path, files)
    assert expected in verdict
    assert bool(verdict) == bool(expected), verdict


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {"frontend/a.py": "import onnx.helper", "cli.py": "import typer", "plan/a.py": "from ortools.sat import x"},
            "",
        ),
        ({"cli_table.py": "from rich.table import Table", "cli/a.py": "import rich"}, ""),
        ({"passes/a.py": "from onnx import helper"}, "passes/a.py:1: imports onnx, which only frontend may"),
        ({"report/a.py": "import rich"}, "imports rich, which only cli may"),
        ({"sim/a.py": "import typer"}, "imports typer, which only cli may"),
        ({"plan/a.py": "import ortools", "plan/b.py": "def f():\n    import ortools"}, "the solver is for one module"),
        ({"report/a.py": "import plotly", "report/b.py": "import matplotlib"}, "plotting is for one module"),
    ],
)
def test_library_rule(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    verdict = judge(architecture.confined_libraries, tmp_path, files)
    assert expected in verdict
    assert bool(verdict) == bool(expected), verdict


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"core/a.py": DEFAULT + '"""The board."""\nx = "the generic loop nest"\nk = keyboard = "aboard"'}, ""),
        ({"core/a.py": 'def generic_loop_nest(): ...\nflag = "--allow-generic"'}, ""),
        ({"core/a.py": "DEFAULT_PLATFORM: str = 'generic'"}, ""),
        ({"plan/a.py": 'if name == "board": ...'}, "plan/a.py:1: names the platform 'board'"),
        ({"plan/a.py": 'x = "runs on Board only"'}, "names the platform 'board'"),
        ({"plan/a.py": 'x = "platforms/generic/kernels"'}, "names the platform 'generic'"),
        ({"plan/a.py": 'x = f"{folder}/board/{kernel}"'}, "names the platform 'board'"),
        ({"plan/a.py": "def board_cycles(): ..."}, "names the platform 'board'"),
        ({"plan/a.py": "x = f(board=1)"}, "names the platform 'board'"),
        ({"plan/a.py": "generic = 1"}, "names the platform 'generic'"),
        ({"core/a.py": DEFAULT, "plan/a.py": DEFAULT}, "defines DEFAULT_PLATFORM, which another module does too"),
        ({"platforms/board/pack.py": ""}, "platforms/ is data"),
    ],
)
def test_platform_name_rule(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    verdict = judge(architecture.platform_names, tmp_path, BOARD | files)
    assert expected in verdict
    assert bool(verdict) == bool(expected), verdict


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"ops/a.py": 'x = "Conv"', "passes/a.py": 'x = "Conv"', "frontend/a.py": 'x = "Conv"'}, ""),
        ({"plan/a.py": '"""Conv is one of many."""\nx = "Convolve"'}, ""),
        ({"plan/a.py": 'if node.op == "Conv": ...'}, "plan/a.py:1: names the operator 'Conv'"),
        ({"codegen/a.py": 'x = {"Conv": 1}'}, "names the operator 'Conv'"),
        ({"price/a.py": 'match op:\n    case "Conv": ...'}, "price/a.py:2: names the operator 'Conv'"),
    ],
)
def test_operator_name_rule(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    verdict = judge(lambda root: architecture.operator_names(root, {"Conv"}), tmp_path, files)
    assert expected in verdict
    assert bool(verdict) == bool(expected), verdict


@pytest.mark.parametrize(
    ("lines", "name", "reasons", "expected"),
    [
        (500, "a.py", {}, ""),
        (501, "a.md", {}, ""),
        (501, "a.py", {"a.py": "one table"}, ""),
        (501, "a.py", {}, "a.py: 501 lines, more than 500"),
        (501, "a.c", {}, "a.c: 501 lines"),
        (501, "a.py", {"a.py": ""}, "a.py: 501 lines"),
        (500, "a.py", {"a.py": "one table"}, "a.py: listed in LONG_FILES"),
        (1, "a.py", {"gone.py": "one table"}, "gone.py: listed in LONG_FILES"),
    ],
)
def test_length_rule(tmp_path: Path, lines: int, name: str, reasons: dict[str, str], expected: str) -> None:
    path = tmp_path / name
    path.write_text("x\n" * lines, encoding="utf-8")
    verdict = "\n".join(architecture.long_files(tmp_path, [path], reasons))
    assert expected in verdict
    assert bool(verdict) == bool(expected), verdict


@pytest.mark.parametrize("folder", ["work", "tmp", "root", "home", "Users"])
@pytest.mark.parametrize("template", ["see {}/x", '"{}/me/model.onnx"', "DIR={}", "`{}`", "file://{}/x"])
def test_machine_path_rule(tmp_path: Path, folder: str, template: str) -> None:
    path = tmp_path / "notes.md"
    path.write_text("fine\n" + template.format("/" + folder), encoding="utf-8")
    found = architecture.machine_paths(tmp_path, [path])
    assert len(found) == 1
    assert found[0].startswith("notes.md:2: path of a machine")


def test_machine_path_rule_leaves_the_rest_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.md"
    text.write_text(
        "build/tmp/x ./home/y ~/work $HOME/home and/or /usr/bin /workshop /tmp-less // root", encoding="utf-8"
    )
    binary = tmp_path / "model.bin"
    binary.write_bytes(b"\xff\xfe " + b"/" + b"work/x")
    assert architecture.machine_paths(tmp_path, [text, binary, tmp_path / "deleted.md"]) == []
