"""Damaged files: each is taken, or refused by one clear error; nothing else may come of it."""

from __future__ import annotations

import contextlib
import io
import random
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.fuzzing.workers import Verdict, failure
from cli.test_mutated_files import (
    GEMM,
    LAYERS,
    MAPPINGS,
    OLD_MACHINE,
    THEIR_LAYERS,
    THEIR_MACHINE,
    THEIR_MAPPING,
    cost_all,
    cost_own_layers,
    cost_their_layers,
    cost_theirs,
    pin,
    simulate,
)
from damage import damaged_arrays, damaged_network, flipped
from mutations import mutated
from samples import sample
from sim.faults import FLAGS
from sim.small_programs import small_program
from sim.test_damaged_programs import look_at
from tilewright.api import Options, compile_model
from tilewright.api.arrays import read_arrays, read_named
from tilewright.cli.app import run as command
from tilewright.core.op import HELP
from tilewright.errors import TilewrightError
from tilewright.frontend.zigzag_mapping import read_mapping
from tilewright.machine.library import MACHINES, machine_names
from tilewright.machine.target import PLATFORMS
from tilewright.sim.program import load_program

MAX_BYTES = 1 << 28
"""Of tensors of damaged networks."""
STARVED = "takes more memory than there is"
"""An error of ours that comes too late: the memory was asked for."""
WITH_CODE = ("generic", "scratchpad", "siracusa")


class Description(Struct, frozen=True):
    """A file in YAML, and what is done with damaged forms of it."""

    text: str
    use: Callable[[Path], object]
    name: str = "description.yaml"


def _platform(name: str) -> Description:
    return Description((PLATFORMS / name / "platform.yaml").read_text(encoding="utf-8"), _use_platform(name), name)


def _use_platform(name: str) -> Callable[[Path], object]:
    def use(path: Path) -> None:
        """The damaged file in a folder like that of the platform."""
        folder = path.parent / "platforms" / name
        folder.mkdir(parents=True)
        for part in (PLATFORMS / name).iterdir():
            if part.is_dir():
                (folder / part.name).symlink_to(part)
        for other in PLATFORMS.iterdir():
            if other.name != name and other.is_dir():
                (folder.parent / other.name).symlink_to(other)
        (folder / "platform.yaml").write_bytes(path.read_bytes())
        simulate(folder / "platform.yaml")
        if name in WITH_CODE:
            compile_model(sample(0, 0).write(path.parent), Options(platform=str(folder)))

    return use


def _machine(name: str) -> Description:
    text = (MACHINES / f"{name}.yaml").read_text(encoding="utf-8")
    return Description(text, lambda path: cost_all([GEMM], path))


def _pin(path: Path) -> None:
    (path.parent / "machine.yaml").write_text(OLD_MACHINE, encoding="utf-8")
    pin(path)


def descriptions() -> tuple[Description, ...]:
    return (
        *(_machine(name) for name in machine_names()),
        *(_platform(name) for name in ("generic", "scratchpad", "siracusa", "cortexm")),
        Description(LAYERS, cost_own_layers),
        Description(THEIR_MACHINE, cost_theirs),
        Description(OLD_MACHINE, cost_theirs),
        Description(THEIR_MAPPING, read_mapping),
        Description(THEIR_LAYERS, cost_their_layers),
        Description(MAPPINGS, _pin),
    )


def _behind_import(error: TilewrightError) -> bool:
    """Whether a pass made a node that its operator refuses: what is wrong with a file is seen when it is imported."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(Path(frame.filename).parent.name in ("passes", "quantize") for frame in frames)


class Files:
    """Damaged file i of seed S: networks, descriptions, arrays and programs by turns."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._descriptions = descriptions()
        with tempfile.TemporaryDirectory(prefix="tilewright-fuzz-") as scratch:
            program = small_program(Path(scratch), "hello", "STATUS=0", flags=(*FLAGS, "-g"))
            self._program = program.read_bytes()

    def content(self, index: int) -> tuple[str, bytes]:
        """The name of a file, whose ending says what it is, and what is in it."""
        own = self._seed * (1 << 32) + index
        match index % 8:
            case 0 | 1 | 2 | 3:
                # Samples of which every eighth index is taken differ in kind by what is left.
                return "network.onnx", damaged_network(sample(self._seed, index // 8 * 5 + index % 8).model, own)
            case 4 | 5:
                return "description.yaml", mutated(self._description(index).text, own)
            case 6:
                return "arrays.npz", damaged_arrays(own)
            case _:
                return "program.elf", flipped(self._program, random.Random(own))

    def _description(self, index: int) -> Description:
        return self._descriptions[(index // 8 * 2 + index % 2) % len(self._descriptions)]

    def use(self, path: Path, index: int) -> None:
        """Does with a file what users do with such files."""
        match path.suffix:
            case ".onnx":
                platform = ("generic", "generic", "generic", "scratchpad", "siracusa", "cortex-m4")[index // 8 % 6]
                compile_model(path, Options(platform=platform, max_bytes=MAX_BYTES))
            case ".yaml":
                self._description(index).use(path)
            case ".npz":
                with contextlib.suppress(TilewrightError):
                    read_named(path, code="bad-argument", help="-")
                read_arrays(path, "input")
            case _:
                look_at(load_program(path))
                options = ["--profile", "--checks", "--max-cycles", "20000"]
                said = io.TextIOWrapper(io.BytesIO(), write_through=True)
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                    status = command(["sim", str(path), "--platform", "siracusa", *options])
                if status not in (0, 2):
                    raise RuntimeError(f"status {status}: {said.buffer.getvalue().decode()}")

    def judge(self, items: Sequence[int]) -> Iterator[Verdict]:
        for index in items:
            with tempfile.TemporaryDirectory(prefix="tilewright-fuzz-") as scratch:
                name, content = self.content(index)
                path = Path(scratch) / name
                path.write_bytes(content)
                yield self.judge_file(path, index)

    def judge_file(self, path: Path, index: int) -> Verdict:
        try:
            self.use(path, index)
        except TilewrightError as error:
            if STARVED in str(error) or error.code == "internal-error":
                return Verdict(index, "memory", str(error).replace("\n", " ")[:400])
            if error.help == HELP and _behind_import(error):
                return Verdict(index, "traceback", f"a pass says: {error}".replace("\n", " ")[:400])
            if not error.help or len(str(error)) > 5000:
                return Verdict(index, "traceback", f"no help, or too long: {error}".replace("\n", " ")[:400])
            return Verdict(index, "refused", f"{path.suffix} {error.code}")
        except Exception as error:
            return failure(index, error)
        return Verdict(index, "right", path.suffix)
