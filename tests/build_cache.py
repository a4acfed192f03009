"""Programs that tests build, kept by content from run to run.

What the compiler is told, every file of the project and the compiler itself are the key; only what was built without an
error is kept. Commands that name files elsewhere are left alone, because their content is not in the key.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ELSEWHERE = re.compile(r"^@|(^|[=,]|^-[A-Z])/|\.\.")
"""An argument that names a file outside of the project."""


@dataclass(frozen=True)
class BuildCache:
    """Stands in for the module `subprocess` where projects are built."""

    folder: Path

    def run(self, command: Sequence[str], *, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
        program = cwd / command[command.index("-o") + 1]
        key = _key(command, cwd)
        kept = self.folder / key if key else None
        if kept is not None and _copied(kept, program):
            return subprocess.CompletedProcess(command, 0, "", "")
        run: Any = subprocess.run
        done: subprocess.CompletedProcess[str] = run(command, cwd=cwd, **options)
        if kept is not None and done.returncode == 0 and program.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            _copied(program, kept)
        return done

    def trim(self, most: int) -> None:
        """Removes what was not used for longest, until no more bytes than these are kept."""
        kept = sorted(self.folder.glob("*"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        total = 0
        for path in kept:
            total += path.stat().st_size
            if total > most:
                path.unlink(missing_ok=True)


def _copied(source: Path, target: Path) -> bool:
    """Copies a file whole or not at all, since two processes may do so at once; False where there is none."""
    handle, name = tempfile.mkstemp(dir=target.parent)
    os.close(handle)
    try:
        shutil.copy(source, name)
    except FileNotFoundError:
        Path(name).unlink()
        return False
    Path(name).replace(target)
    # The time of the last use; the file may have been removed meanwhile, for which the copy need not care.
    if source.exists():
        os.utime(source)
    return True


def _key(command: Sequence[str], folder: Path) -> str:
    """Empty where not all that matters is known."""
    compiler, *arguments = command
    if any(ELSEWHERE.search(argument) for argument in arguments):
        return ""
    real = Path(compiler).resolve()
    about = real.stat()
    digest = hashlib.sha256(repr((str(real), about.st_size, about.st_mtime_ns, arguments)).encode())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        digest.update(f"\n{path.relative_to(folder)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()
