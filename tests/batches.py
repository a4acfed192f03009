"""Many networks in one program: compiled to C under prefixes of their own, joined into one source, run one at a time.

Reading the kernel headers again for each network would take most of the compiler's time. Where the joined source is
refused, each network becomes an object of its own, so that the message is about one network.
"""

from __future__ import annotations

import re
import resource
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.api import Compiled
from tilewright.core.graph import Array
from tilewright.sim import host_environment

TIMEOUT = 120.0
PORTS = 64
OWN_NAMES = re.compile(r"^(?:(?:static|TW_[A-Z_]+) [\w *]*?(\w+)(?:[(\[]| =)|struct (\w+) \{)", re.MULTILINE)
"""What a generated file calls its own: functions, constants and structs that no other file sees."""
ALIGNED = re.compile(r"_Alignas\(\d+\) ")

DRIVER = """
#include <stdio.h>
#include <stdlib.h>

struct entry {
    const struct tilewright_tensor *inputs, *outputs;
    int input_count, output_count;
    void (*run)(const void *const *, void *const *);
};

static void *buffer_of(size_t bytes) {
    void *buffer = malloc(bytes ? bytes : 1);
    if (!buffer) exit(3);
    return buffer;
}

int main(int argc, char **argv) {
    static const struct entry entries[] = {@ENTRIES@};
    const void *inputs[@PORTS@] = {0};
    void *outputs[@PORTS@] = {0};
    if (argc != 4) return 3;
    const struct entry *e = &entries[atoi(argv[1])];
    FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
    if (!in || !out) return 3;
    for (int i = 0; i < e->input_count; i++) {
        void *buffer = buffer_of(e->inputs[i].bytes);
        if (fread(buffer, 1, e->inputs[i].bytes, in) != e->inputs[i].bytes) return 3;
        inputs[i] = buffer;
    }
    for (int i = 0; i < e->output_count; i++) outputs[i] = buffer_of(e->outputs[i].bytes);
    e->run(inputs, outputs);
    for (int i = 0; i < e->output_count; i++) fwrite(outputs[i], 1, e->outputs[i].bytes, out);
    fclose(in);
    fclose(out);
    for (int i = 0; i < e->input_count; i++) free((void *)(size_t)inputs[i]);
    for (int i = 0; i < e->output_count; i++) free(outputs[i]);
    return 0;
}
"""


@dataclass(frozen=True)
class Member:
    """A network of a batch, compiled under its own name, with what it is fed."""

    compiled: Compiled
    inputs: tuple[Array, ...]

    @property
    def prefix(self) -> str:
        return self.compiled.program.name

    @property
    def source(self) -> str:
        """Its C with names that no other member has, and without what all members include."""
        text = self.compiled.files[f"{self.prefix}.c"].decode()
        found = {name for pair in OWN_NAMES.findall(ALIGNED.sub("", text)) for name in pair if name}
        own = sorted(name for name in found if not name.startswith(f"{self.prefix}_"))
        text = re.sub(r"^#(?:include .*|define TW_GENERATED)$", "", text, flags=re.MULTILINE)
        if not own:
            return text
        return re.sub(rf"\b({'|'.join(own)})\b", rf"{self.prefix}_\1", text)


class BatchError(Exception):
    """A member that cannot be built, or does not run to its end: which stage, and what was said."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Batch:
    """Members as files of a folder, built as often as there are compilers and flags to try."""

    def __init__(self, members: Sequence[Member], folder: Path) -> None:
        self.members, self.folder = tuple(members), folder
        self.refused: dict[str, str] = {}
        """What the compiler said against members, by prefix."""
        headers: set[str] = set()
        for member in members:
            for name, content in member.compiled.files.items():
                if name.startswith((f"{member.prefix}.", f"{member.prefix}_")):
                    (folder / name).write_bytes(content)
            for name, text in member.compiled.program.headers:
                headers.add(name)
                (folder / name).write_text(text)
        includes = [f'#include "{name}"\n' for name in sorted(headers)]
        (folder / "all.h").write_text("".join(["#define TW_GENERATED\n", "#include <stdint.h>\n", *includes]))

    def build(self, compiler: str = "cc", flags: Sequence[str] = ()) -> None:
        """Makes the program; members that the compiler refuses are left out of it."""
        command = [compiler, *flags, "-I."]
        weights = [path.name for path in sorted(self.folder.glob("*_weights.S"))]
        self.refused = {}
        sources = "".join(member.source for member in self.members)
        text = f'#include "all.h"\n{self._headers(self.members)}{sources}{self._driver(self.members)}'
        (self.folder / "joined.c").write_text(text)
        if not self._call([*command, "joined.c", *weights, "-o", "joined", "-lm"]):
            return
        for member in self.members:
            message = self._call([*command, "-include", "all.h", "-c", f"{member.prefix}.c"])
            if message:
                self.refused[member.prefix] = message
        built = [member for member in self.members if member.prefix not in self.refused]
        (self.folder / "driver.c").write_text(self._headers(built) + self._driver(self.members))
        objects = [f"{member.prefix}.o" for member in built]
        message = self._call([*command, "driver.c", *objects, *weights, "-o", "joined", "-lm"])
        if message:
            raise BatchError("build-failed", message)

    def run(self, index: int) -> tuple[Array, ...]:
        """The outputs of a member, by the program that was built last."""
        member = self.members[index]
        if member.prefix in self.refused:
            raise BatchError("build-failed", self.refused[member.prefix])
        into, out = self.folder / "in", self.folder / "out"
        into.write_bytes(b"".join(np.ascontiguousarray(array).tobytes() for array in member.inputs))
        command = [str(self.folder / "joined"), str(index), str(into), str(out)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=TIMEOUT,
                env=host_environment(),
                preexec_fn=_lift_limit,
            )
        except subprocess.TimeoutExpired as reason:
            raise BatchError("run-failed", "it does not end") from reason
        if done.returncode:
            raise BatchError("run-failed", f"status {done.returncode}: {done.stderr}")
        return _outputs(member, out.read_bytes())

    @staticmethod
    def _headers(members: Sequence[Member]) -> str:
        return "".join(f'#include "{member.prefix}.h"\n' for member in members)

    def _driver(self, members: Sequence[Member]) -> str:
        """The main program; places of members that are left out stay empty."""
        entries = [
            f"{{{p}_inputs, {p}_outputs, {len(m.compiled.program.inputs)}, {len(m.compiled.program.outputs)}, {p}_run}}"
            if p not in self.refused
            else "{0, 0, 0, 0, 0}"
            for m in members
            for p in [m.prefix]
        ]
        ports = max((len(m.compiled.program.inputs) + len(m.compiled.program.outputs) for m in members), default=1)
        return DRIVER.replace("@ENTRIES@", ", ".join(entries)).replace("@PORTS@", str(max(ports, PORTS)))

    def _call(self, command: list[str]) -> str:
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        return (done.stderr or "the compiler failed") if done.returncode else ""


def _lift_limit() -> None:
    """Sanitizers lay out addresses of far more memory than they use."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _outputs(member: Member, content: bytes) -> tuple[Array, ...]:
    arrays: list[Array] = []
    start = 0
    for port in member.compiled.program.outputs:
        raw = content[start : start + port.type.bytes]
        arrays.append(np.frombuffer(raw, port.type.dtype.numpy).reshape(port.type.shape))
        start += port.type.bytes
    return tuple(arrays)
