"""Every option of every command with values that make no sense: one clear error each, status 2, and nothing left."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from command_line import relu
from tilewright.api.compiling import Options, compile_model
from tilewright.cli.app import COMMANDS, load_command, run
from tilewright.cli.options import byte_count, whole_number
from tilewright.codegen import build

EQUATION = "O[m][n] += A[m][k] * B[k][n]"
MAP = ["map", EQUATION, "--sizes", "M=8,N=8,K=8", "-m", "gemm-array"]


def options() -> Iterator[tuple[str, str, Any, Any]]:
    """Of every option: its command, its flag, its type and what typer knows of it."""
    for command in map(load_command, COMMANDS):
        assert command.callback is not None
        hints = get_type_hints(command.callback, include_extras=True)
        for parameter in inspect.signature(command.callback).parameters.values():
            kind, *infos = get_args(hints[parameter.name])
            flags = [infos[0].default, *(infos[0].param_decls or ())]
            flag = next((f for f in flags if isinstance(f, str) and f.startswith("--")), "")
            yield str(command.name), flag, kind, infos[0]


NUMBERS = [found for found in options() if {int, float} & {found[2], *get_args(found[2])}]


def needed(command: str) -> list[str]:
    """What a command cannot do without."""
    return {"sim": ["sim", "x.elf", "-p", "siracusa"], "map": MAP, "cost": ["cost", "x.onnx"]}.get(
        command, [command, "x"]
    )


def assert_refused(arguments: list[str], capsys: pytest.CaptureFixture[str], code: str = "") -> str:
    status = run(arguments)
    printed = capsys.readouterr()
    assert status == 2, (arguments, status, printed.err)
    assert printed.err.startswith(f"error[{code or ''}"), (arguments, printed.err)
    assert printed.err.count("error[") == 1, printed.err
    assert "\n  help: " in printed.err, (arguments, printed.err)
    assert printed.out == ""
    assert len(printed.err) < 5000
    return printed.err


def test_there_are_options() -> None:
    assert len(NUMBERS) > 40


@pytest.mark.parametrize(("command", "flag", "kind", "info"), NUMBERS, ids=[f"{n[0]} {n[1]}" for n in NUMBERS])
def test_numbers(command: str, flag: str, kind: object, info: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A new option has to say what its range is."""
    assert flag
    values = ["nan", "9" * 5000]
    if info.parser is None:
        assert info.min is not None, "what is the least that makes sense?"
        assert info.max is not None, "what is the most that makes sense?"
        whole = int in (kind, *get_args(kind))
        values += [str(info.max + 1), str(info.min - 1)] if whole else ["inf", str(info.min - 0.01)]
    for value in values:
        text = assert_refused([*needed(command), f"{flag}={value}"], capsys, "bad-argument")
        assert flag in text


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [
        ("7", 7, 7),
        ("8", 7, None),
        ("007", 7, None),
        ("²", 9, None),
        ("-1", 9, None),
        ("9" * 5000, 9, None),
        ("", 9, None),
    ],
)
def test_whole_numbers(text: str, most: int, expected: int | None) -> None:
    assert whole_number(text, most) == expected


def test_the_most_bytes() -> None:
    assert byte_count("1024G") == 2**40
    with pytest.raises(Exception, match="at most 1024G"):
        byte_count("1025G")


@pytest.mark.parametrize("value", ["", "-inf", "1e400", "-1e30", "word", "0x10", "\u0661", "1;2", "1 2"])
def test_texts_that_are_no_numbers(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--seed", "--max-extra-macs", "--l1"):
        assert flag in assert_refused(["plan", "x.onnx", f"{flag}={value}"], capsys, "bad-argument")


TEXTS = [(command, flag) for command, flag, kind, _ in options() if flag and kind is not bool]


def test_no_option_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    for command, flag in TEXTS:
        for arguments in ([f"{flag}="], [flag, ""], [flag, "a\0b"]):
            assert_refused([*needed(command), *arguments], capsys, "bad-argument")


NAMES = [
    "main",
    "int",
    "while",
    "_network",
    "9lives",
    "größe",
    "two-words",
    "string",
    "math",
    "stdio",
    "Makefile",
    "tw",
    "tw_run",
    "tilewright",
    "CMakeLists",
]


@pytest.mark.parametrize("name", [*NAMES, "a" * 100, "a b", "a;b", "../a", "a/b", "a.b"])
def test_names(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "c"
    assert_refused(["compile", str(relu(tmp_path)), "--name", name, "-o", str(folder)], capsys, "bad-argument")
    assert not folder.exists()


@pytest.mark.parametrize(("platform", "name"), [("siracusa", "start"), ("siracusa", "link"), ("cortex-m4", "board")])
def test_names_of_files_of_a_platform(
    platform: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compile", str(relu(tmp_path)), "-p", platform, "--name", name, "-o", str(tmp_path / "c")]
    assert_refused(arguments, capsys, "bad-argument")


def test_a_name_of_a_library_function_is_none_of_a_network(tmp_path: Path) -> None:
    """Names of networks only begin names in C."""
    compiled = compile_model(relu(tmp_path), Options(name="printf"))
    compiled.write(tmp_path / "c")
    assert build(tmp_path / "c", compiled.platform, "printf").executable.is_file()


BAD: list[tuple[str, str]] = [
    # Code and arguments: $M a network, $D a folder, $F a file of text, $X a path below a file, $N no path at all, ...
    *(("missing-file", f"{command} $N") for command in ("compile", "run", "plan", "test", "cost -m tpu-like")),
    *(("missing-file", f"{command} $D") for command in ("compile", "run", "plan", "cost -m tpu-like")),
    *(("missing-file", f"{command} $X") for command in ("compile", "run", "plan", "test")),
    ("missing-file", "compile /proc/self/mem"),
    ("missing-file", "map $N.yaml -m tpu-like"),
    ("missing-file", "import zigzag $N -o $D/m.yaml"),
    ("missing-file", "import zigzag $D -o $D/m.yaml"),
    ("missing-file", "import zigzag /dev/zero -o $D/m.yaml"),
    ("bad-platform", "import zigzag $F -o $D/m.yaml"),
    ("bad-argument", "import other $F -o $D/m.yaml"),
    ("bad-platform", "import stream $F -o $D/m.yaml"),
    ("bad-argument", "import zigzag $F"),
    ("bad-model", "compile $F"),
    ("no-cases", "test $D"),
    ("missing-file", "sim $N -p siracusa"),
    ("missing-file", "sim $D -p siracusa"),
    ("bad-elf", "sim $F -p siracusa"),
    ("unknown-platform", "sim $F -p siracuse"),
    ("unknown-timing", "sim $F -p siracusa --timing fast"),
    ("no-simulator", "sim $F -p generic"),
    ("bad-argument", "sim $F -p siracusa --simulator spike"),
    ("cannot-write", "compile $M -o $F"),
    ("cannot-write", "compile $M -o $X"),
    ("cannot-write", "compile $M -o /dev/null"),
    ("cannot-write", "compile $M -o /proc/none"),
    ("cannot-write", "compile $M -o $D/c --dump-stages $F"),
    ("unknown-platform", "compile $M -p genric"),
    ("unknown-platform", "ops -p $F"),
    ("unknown-platform", "plan $M -p $D"),
    ("bad-platform", "ops --kernels $N"),
    ("bad-platform", "ops --kernels $F"),
    ("missing-folder", "ops --ops $N"),
    ("unknown-dimension", "compile $M --dim batch=1"),
    ("bad-argument", "compile $M --dim batch=²"),
    ("bad-argument", "compile $M --dim batch=99999999999999999999"),
    ("bad-argument", "compile $M --dim batch=-1"),
    ("bad-argument", "compile $M --dim =1"),
    ("unknown-input", "compile $M --input-type y=int8"),
    ("unknown-type", "compile $M --input-type x=int7"),
    ("unknown-type", "compile $M --input-type x=complex64"),
    ("bad-argument", "compile $M --constant x=$N"),
    ("bad-argument", "compile $M --constant x=$F"),
    ("bad-argument", "compile $M --constant x=$D"),
    ("unknown-input", "compile $M --constant y=$A"),
    ("unknown-memory", "compile $M --l1 64K"),
    ("unknown-memory", "compile $M -p siracusa --home L9"),
    ("unknown-engine", "compile $M -p siracusa --without neurekka"),
    ("bad-argument", "compile $M --buffers 2"),
    ("bad-argument", "plan $M --baseline"),
    ("bad-argument", "plan $M --order random"),
    ("bad-argument", "compile $M $M"),
    ("bad-argument", "compile"),
    ("bad-argument", "compile $M --no-such-option"),
    ("bad-argument", "compile $M --report=yes"),
    ("bad-argument", "run $M --inputs $N"),
    ("bad-argument", "run $M --inputs $D"),
    ("bad-argument", "run $M --inputs /dev/zero"),
    ("bad-argument", "run $M --expected $F"),
    ("wrong-inputs", "run $M --inputs $A"),
    ("missing-compiler", "run $M --cc $N"),
    ("missing-compiler", "run $M --cc $F"),
    ("missing-compiler", "run $M --cc $D"),
    ("build-failed", "run $M --cc true"),
    ("build-failed", "run $M --cc false"),
    ("build-failed", "run $M --cc $B/binary"),
    ("build-failed", "run $M --cc $B/babble"),
    ("run-failed", "run $M --cc $B/script"),
    ("run-failed", "run $M --cc $B/idle"),
    ("build-failed", "run $M --cflag=--no-such-flag"),
    ("cannot-write", "run $M --outputs $X"),
    ("bad-argument", "run $M --profile bytes"),
    ("no-simulator", "run $M --profile layers"),
    ("bad-argument", "run $M -p siracusa --repeat 3"),
    ("bad-argument", "run $M --dma start"),
    ("bad-argument", "cost $M"),
    ("unknown-machine", "cost $M -m tpu-lik"),
    ("unknown-machine", "cost $M -m $D"),
    ("unknown-machine", "cost $M -m /dev/zero"),
    ("bad-machine", "cost $M -m $F"),
    ("unknown-layer", "cost $M -m gemm-array --why onli"),
    ("unknown-layer", "map $M -m gemm-array --layer onli"),
    ("cannot-write", "cost $M -m gemm-array --html $X"),
    ("bad-argument", "cost $M -m gemm-array --bits I9=8"),
    ("bad-argument", "cost $M -m gemm-array --bits I1=0"),
    ("bad-argument", "cost $M -m gemm-array --density I1=2"),
    ("bad-argument", "cost $M -m gemm-array --density I1=nan"),
    ("bad-argument", "cost $M -m gemm-array --export $D/m.txt"),
    ("bad-argument", "cost $M -m gemm-array --mapping $N"),
    ("missing-file", "cost $M -m gemm-array --mapping $N.json"),
    ("missing-file", "cost $M -m gemm-array --mapping /dev/zero.json"),
    ("bad-mapping", "cost $M -m gemm-array --mapping $J"),
    ("bad-argument", "cost $M -m gemm-array --unroll D1"),
    ("bad-argument", "cost $M -m gemm-array --unroll D1=K:0"),
    ("bad-argument", "cost $M -m gemm-array --unroll D1=K:99999999999999999999"),
    ("bad-argument", "cost $M -m gemm-array --order K:x"),
    ("bad-argument", "cost $M -m gemm-array --order :4"),
    ("bad-argument", "cost $M -m gemm-array --strategy best"),
    ("bad-argument", "map $E -m gemm-array --sizes M=8,N=8,K=100000000000000000000000"),
    ("bad-workload", "map $E -m gemm-array --sizes M=2000000000,N=2000000000,K=2000000000"),
    ("bad-argument", "map $E -m gemm-array --sizes M=8,N=8,K=0"),
    ("bad-argument", "map $E -m gemm-array --sizes M=8,N=8,K"),
    ("unknown-dimension", "map $E -m gemm-array --sizes M=8"),
    ("bad-argument", "map $E -m gemm-array --sizes M=8,N=8,K=8 --strategy loma --objective pareto"),
    ("bad-argument", "map $E -m gemm-array --sizes M=8,N=8,K=8,M=9"),
    ("bad-argument", "map $E -m gemm-array --sizes M=8,N=8,K=8 --layer x"),
    ("bad-argument", "map $M -m gemm-array --sizes M=8"),
    ("bad-argument", "map $E -m gemm-array --sizes M=8,N=8,K=8 --unroll D1=K:2 --unroll D1=M:2"),
    ("bad-mapping", "map $E -m gemm-array --sizes M=8,N=8,K=8 --unroll D1=K:8,M:8"),
    ("no-mapping", "map $E -m gemm-array --sizes M=8,N=8,K=8 --max-cycles 0"),
    ("bad-equation", "map $E* -m gemm-array --sizes M=8,N=8,K=8"),
    ("bad-argument", "platforms extra"),
    ("bad-argument", "no-such-command"),
    ("bad-argument", "--no-such-option"),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the letters stand for."""
    top = tmp_path_factory.mktemp("bad")
    network = relu(top)
    for folder in ("empty", "bin"):
        (top / folder).mkdir()
    (top / "text").write_text("just text")
    (top / "text.json").write_text("[" * 100_000)
    np.save(top / "array.npy", np.zeros(7, np.float32))
    # Compilers: no program at all, one that prints bytes, one whose programs are none, one whose programs do nothing.
    find = 'while [ "$1" != -o ]; do shift; done\n'
    for name, content in {
        "binary": b"\x00\x01\x02",
        "babble": b"#!/bin/sh\nprintf '\\377\\376 \\033[2J' >&2\nexit 1\n",
        "script": f"#!/bin/sh\n{find}printf '\\000' >$2; chmod +x $2\n".encode(),
        "idle": f"#!/bin/sh\n{find}printf '#!/bin/sh\\n' >$2; chmod +x $2\n".encode(),
    }.items():
        (top / "bin" / name).write_bytes(content)
        (top / "bin" / name).chmod(0o755)
    return {
        "$M": str(network),
        "$D": str(top / "empty"),
        "$F": str(top / "text"),
        "$X": str(top / "text" / "below" / "x.npz"),
        "$N": str(top / "absent"),
        "$A": str(top / "array.npy"),
        "$J": str(top / "text.json"),
        "$B": str(top / "bin"),
        "$E": EQUATION,
    }


@pytest.mark.parametrize(("code", "text"), BAD, ids=[text for _, text in BAD])
def test_bad_options(
    code: str,
    text: str,
    places: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = text.split()
    for letter, place in places.items():
        arguments = [argument.replace(letter, place) for argument in arguments]
    said = assert_refused(arguments, capsys, code)
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []
    assert list(Path(places["$D"]).iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        "compile MODEL -o OUT --platform NAME",
        "compile MODEL -o OUT --ops NAME",
        "compile MODEL -o OUT --kernels NAME",
        "compile NAME -o OUT",
        "run MODEL --inputs NAME",
        "run MODEL --cc NAME",
        "test NAME",
        "sim NAME -p siracusa",
        "cost MODEL --machine NAME",
        "map NAME -m NAME",
        "schedule NAME --platform NAME",
        "import zigzag NAME -o OUT",
        "calibrate --platform NAME",
        "generate NAME --prompt a",
    ],
)
def test_names_longer_than_a_file_may_have(arguments: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"MODEL": str(relu(tmp_path)), "OUT": str(tmp_path / "out"), "NAME": "a" * 300}
    assert_refused([words.get(word, word) for word in arguments.split()], capsys)
