"""Networks in GVSoC, played by a script that simulates the program with the timing of GVSoC."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from command_line import refused
from passes.build import Builder
from sim.small_programs import small_program
from tilewright.api import Options, run_model
from tilewright.cli.app import run
from tilewright.core.graph import Graph
from tilewright.core.interpret import interpret
from tilewright.errors import TilewrightError
from tilewright.machine.target import Sizes, load_platform
from tilewright.sim.confined import kernel_version
from tilewright.sim.gvsoc import simulate
from tilewright.sim.limits import Limits

MODELS = Path(__file__).parent.parent.parent / "examples" / "models"
PLAYS = """#!{python}
import subprocess, sys
given = dict(text.lstrip("-").split("=", 1) for text in sys.argv[1:] if "=" in text)
assert sys.argv[-3:] == ["image", "flash", "run"], sys.argv
assert given["target"] == "siracusa", sys.argv
print("something of its own", flush=True)
sys.exit(subprocess.run([sys.executable, "-m", "tilewright", "sim", given["binary"], "--platform", "siracusa",
                         "--timing", "gvsoc", "--checks"]).returncode)
"""


def script(folder: Path, text: str) -> Path:
    path = folder / "gvsoc"
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def gvsoc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GVSoC on PATH."""
    script(tmp_path, PLAYS.replace("{python}", sys.executable))
    monkeypatch.delenv("GVSOC", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


def network() -> Graph:
    b = Builder()
    x, y = b.input("x", "int8[5,9]"), b.input("y", "float32[3]")
    return b.graph(b.op("Transpose", x, perm=(1, 0)), b.op("Add", y, y))


@pytest.mark.usefixtures("gvsoc")
def test_inputs_and_outputs_of_several_types() -> None:
    graph = network()
    fed = [np.arange(45, dtype=np.int8).reshape(5, 9) - 20, np.array([1.5, -2.25, 1e9], np.float32)]
    ran = run_model(graph, Options(platform="siracusa"), inputs=fed, simulator="gvsoc")
    for found, wanted in zip(ran.outputs, interpret(graph, fed), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert ran.cycles is not None
    assert ran.cycles > 0


@pytest.mark.usefixtures("gvsoc")
def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    model = MODELS / "tiny_cnn_int8.onnx"
    status = run(["test", str(model), "--platform", "siracusa", "--simulator", "gvsoc"])
    text = capsys.readouterr().out
    assert status == 0, text
    assert "1 pass of 1 cases" in text
    status = run(["run", str(model), "--platform", "siracusa", "--simulator", "gvsoc"])
    text = capsys.readouterr().out
    assert status == 0, text
    assert "cycles in GVSoC" in text


def test_a_program_by_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named by the variable; what it prints and its status come through."""
    run_model(network(), Options(platform="siracusa"), folder=tmp_path / "project")
    monkeypatch.setenv("GVSOC", str(script(tmp_path, "#!/bin/sh\necho hello; exit 7\n")))
    program = str(tmp_path / "project" / "network")
    status = run(["sim", program, "--platform", "siracusa", "--simulator", "gvsoc"])
    text = capsys.readouterr().out
    assert (status, text) == (7, "hello\n")
    refused("bad-argument", capsys, "sim", program, "--platform", "siracusa", "--simulator", "gvsoc", "--stats")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#!/bin/sh\necho broken >&2; exit 3\n", "ended with status 3 in GVSoC"),
        ("#!/bin/sh\necho tw_cycles 5\n", "without having printed all results"),
        ("no program\n", "cannot be started"),
    ],
)
def test_runs_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
    monkeypatch.setenv("GVSOC", str(script(tmp_path, text)))
    with pytest.raises(TilewrightError, match=said):
        run_model(network(), Options(platform="siracusa"), simulator="gvsoc")


def test_it_changes_nothing_outside_of_its_folder(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does for programs what they ask for by semihosting, such as writing to files."""
    if not kernel_version():
        pytest.skip("this kernel cannot confine processes")
    kept, outside = tmp_path / "kept", tmp_path / "outside"
    kept.write_text("as it was\n")
    tries = f"touch inside && echo inside; touch {outside}; echo changed > {kept}; rm {kept}; exit 5"
    monkeypatch.setenv("GVSOC", str(script(tmp_path, f"#!/bin/sh\n{tries}\n")))
    program = small_program(tmp_path, "hello", "STATUS=0")
    assert run(["sim", str(program), "--platform", "siracusa", "--simulator", "gvsoc"]) == 5
    assert capfdbinary.readouterr().out.startswith(b"inside\n")
    assert not outside.exists()
    assert kept.read_text() == "as it was\n"


@pytest.mark.usefixtures("gvsoc")
def test_what_it_cannot_do() -> None:
    with pytest.raises(TilewrightError, match="GVSoC has no machine for platform 'scratchpad'"):
        run_model(network(), Options(platform="scratchpad"), simulator="gvsoc")
    with pytest.raises(TilewrightError, match="cannot fill L3"):
        run_model(network(), Options(platform="siracusa", sizes=Sizes(home="L3")), simulator="gvsoc")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A file that stands for a program."""
    path = tmp_path / "program.elf"
    path.touch()
    return path


def test_a_program_that_never_ends(tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the launcher has started ends with it, and somebody hears that time passes."""
    monkeypatch.setenv("GVSOC", str(script(tmp_path, "#!/bin/sh\necho tries\nsleep 600 &\necho $!\nwait\n")))
    monkeypatch.setattr("tilewright.sim.gvsoc.NEWS", 0.2)
    heard: list[str] = []
    with pytest.raises(TilewrightError, match="has not ended after 1 s in GVSoC") as caught:
        simulate(program, load_platform("siracusa"), Limits(seconds=1.0), sink=print, progress=heard.append)
    tries, started = caught.value.reasons
    assert tries == "tries"
    assert "-DTW_GVSOC" in caught.value.help
    assert len(heard) > 1
    assert "GVSoC, for " in heard[0]
    running = Path("/proc") / started / "stat"
    while running.exists() and running.read_text().split()[2] != "Z":
        time.sleep(0.01)  # it has been killed, which takes a moment


def test_another_python_than_ours(tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher takes python3 from PATH; ours lacks its packages."""
    own, others = tmp_path / "own", tmp_path / "others"
    for folder in (own / "bin", others):
        folder.mkdir(parents=True)
        (folder / "python3").write_text(f"#!/bin/sh\necho {folder}\n")
        (folder / "python3").chmod(0o755)
    monkeypatch.setenv("GVSOC", str(script(tmp_path, '#!/bin/sh\npython3\necho "in [$VIRTUAL_ENV]"\n')))
    monkeypatch.setattr("sys.prefix", str(own))
    monkeypatch.setenv("PATH", f"{own / 'bin'}{os.pathsep}{others}")
    monkeypatch.setenv("VIRTUAL_ENV", str(own))
    printed = bytearray()
    assert simulate(program, load_platform("siracusa"), sink=printed.extend) == 0
    assert printed.decode() == f"{others}\nin []\n"
    monkeypatch.setenv("PATH", str(own / "bin"))
    printed.clear()
    assert simulate(program, load_platform("siracusa"), sink=printed.extend) == 0
    assert printed.decode() == f"{own / 'bin'}\nin [{own}]\n", "there is no other"
