"""Executes the fenced blocks of a documentation page, in order, in one folder.

    ```python file=ops/mine.py   writes the block to that file (any language)
    ```python                    runs it with Python
    ```sh                        runs it with bash; `tilewright` is on the path
    ```text                      every line of it must occur in what the block before printed

Blocks in other languages are for reading only. White space is compared loosely, since tables are drawn to fit.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tilewright

_BLOCK = re.compile(r"^```(\w+)(?:[ \t]+file=(\S+))?[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
ELLIPSIS = "..."


@dataclass(frozen=True)
class Block:
    """A fenced block and the line it begins at."""

    language: str
    file: str
    text: str
    line: int


def blocks(page: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(page):
        yield Block(found[1], found[2] or "", found[3], page.count("\n", 0, found.start()) + 1)


def execute(page: Path, folder: Path) -> int:
    """Runs a page; returns how many blocks were executed or compared."""
    printed = ""
    count = 0
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.name}:{block.line}"
        if block.file:
            target = folder / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language in ("python", "sh"):
            printed = _run(block, folder, where)
        elif block.language == "text":
            _compare(block.text, printed, where)
        else:
            continue
        count += 1
    return count


def _run(block: Block, folder: Path, where: str) -> str:
    command = [sys.executable, "-c"] if block.language == "python" else ["bash", "-euo", "pipefail", "-c"]
    tools = folder / ".bin"
    tools.mkdir(exist_ok=True)
    shim = tools / "tilewright"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tilewright "$@"\n')
    shim.chmod(0o755)
    python = Path(sys.executable).parent
    package = Path(tilewright.__file__).parent.parent
    path = f"{tools}:{python}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(package), "COLUMNS": "200"}
    done = subprocess.run(
        [*command, block.text],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{where}: status {done.returncode}\n{done.stdout}"
    return done.stdout


def _compare(text: str, printed: str, where: str) -> None:
    found = _plain(printed)
    for line in text.splitlines():
        wanted = _plain(line)
        if wanted and wanted != ELLIPSIS:
            assert wanted in found, f"{where}: '{wanted}' is not in what was printed:\n{printed}"


def _plain(text: str) -> str:
    """Without the lines of tables and without differences of white space."""
    return " ".join(re.sub(r"[│┃┏┓┗┛┡┩└┘┳┻╇┴━─]", " ", text).split())
