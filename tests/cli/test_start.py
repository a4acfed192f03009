"""A command pays for what it uses: what is slow to import stays away from commands that do without it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilewright
from command_line import relu
from tilewright import TilewrightError, api, plan, sim
from tilewright.cli.app import COMMANDS, run
from tilewright.machine.target import described_platforms

LIBRARIES = {"numpy", "ml_dtypes", "onnx", "ortools", "pandas", "elftools"}
PARTS = {f"tilewright.{part}" for part in ("codegen", "frontend", "mapping", "ops", "passes", "price", "report")}
SLOW = LIBRARIES | PARTS


def imported(program: str) -> set[str]:
    """Modules that a new process has imported in the end."""
    command = [sys.executable, "-c", f"import sys\n{program}\nprint(*sys.modules, sep='\\n', file=sys.stderr)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_package_imports_nothing_of_itself() -> None:
    found = {name for name in imported("import tilewright") if name.startswith("tilewright")}
    assert found == {"tilewright", "tilewright.base", "tilewright.base.lazy"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["platforms"], ["machines"], ["doctor", "--json"]])
def test_what_commands_do_without(arguments: list[str]) -> None:
    found = imported(f"from tilewright.cli.app import run\nassert run({arguments}) == 0")
    assert not found & (SLOW | {"pydantic"})


@pytest.mark.parametrize("name", ["compile", "plan", "run"])
def test_commands_explain_themselves_without_the_compiler(name: str) -> None:
    found = imported(f"from tilewright.cli.app import run\nassert run(['{name}', '--help']) == 0")
    assert not found & (SLOW | {"pydantic", "yaml"})


def test_options_are_read_without_a_library(tmp_path: Path) -> None:
    arguments = [
        "compile",
        str(relu(tmp_path)),
        "-o",
        str(tmp_path / "c"),
        "-p",
        "siracusa",
        "--l1",
        "64K",
        "--cores",
        "4",
    ]
    assert "pydantic" not in imported(f"from tilewright.cli.app import run\nassert run({arguments}) == 0")


def test_the_list_of_commands_imports_none_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = imported("from tilewright.cli.app import run\nrun(['--help'])")
    assert not found & {"yaml", *(f"tilewright.cli.{module}" for module, _ in COMMANDS.values())}
    assert run(["--help"]) == 0
    listed = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for name, (_, summary) in COMMANDS.items():
        assert f"{name} {summary}" in listed


@pytest.mark.parametrize("name", COMMANDS)
def test_help_begins_with_the_line_of_the_list(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    assert " ".join(capsys.readouterr().out.split()).count(COMMANDS[name][1]) == 1


def test_folders_of_the_package_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[tuple[Path, str]] = []
    glob = Path.glob

    def noted(folder: Path, pattern: str) -> Iterator[Path]:
        listed.append((folder, pattern))
        return glob(folder, pattern)

    monkeypatch.setattr(Path, "glob", noted)
    described_platforms()
    kernels = [folder for folder, pattern in listed if pattern == "*.c"]
    assert len(kernels) == len(set(kernels))


@pytest.mark.parametrize("package", [tilewright, api, plan, sim])
def test_names_of_a_package(package: object) -> None:
    names: list[str] = getattr(package, "__all__")  # noqa: B009  # as `from package import *` asks for it
    assert names == sorted(set(names))
    assert set(names) <= set(dir(package))
    # A name that were a module as well would be one or the other, depending on what was imported before.
    assert not [name for name in names if getattr(getattr(package, name), "__spec__", None)]
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        getattr(package, "nonsense")  # noqa: B009


def test_names_are_the_things_themselves() -> None:
    assert tilewright.compile is api.compile_model
    assert tilewright.TilewrightError is TilewrightError
