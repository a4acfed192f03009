"""Programs are kept by all that goes into them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from build_cache import BuildCache

COMPILER = """#!/bin/sh
echo "built $*" >>"$(dirname "$0")/calls"
while [ "$1" != -o ]; do shift; done
cat main.c >"$2"
grep -q broken main.c && exit 1
exit 0
"""
Build = Callable[..., bytes | None]


@pytest.fixture
def compiler(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "cc"
    path.parent.mkdir()
    path.write_text(COMPILER)
    path.chmod(0o755)
    return path


@pytest.fixture
def build(tmp_path: Path, compiler: Path) -> Build:
    cache = BuildCache(tmp_path / "kept")

    def made(source: str, *flags: str, **more: str) -> bytes | None:
        folder = tmp_path / f"project{len([*tmp_path.iterdir()])}"
        folder.mkdir()
        for name, text in {"main.c": source, **more}.items():
            (folder / name).write_text(text)
        done = cache.run([str(compiler), *flags, "-o", "program", "main.c"], cwd=folder, check=False)
        return (folder / "program").read_bytes() if done.returncode == 0 else None

    return made


def calls(compiler: Path) -> int:
    return (compiler.parent / "calls").read_text().count("built")


def test_the_same_is_built_once(build: Build, compiler: Path) -> None:
    assert [build("int x;"), build("int x;")] == [b"int x;"] * 2
    assert calls(compiler) == 1


def test_whatever_differs_is_built(build: Build, compiler: Path) -> None:
    build("int x;")
    assert build("int y;") == b"int y;"
    build("int x;", "-O1")
    build("int x;", header="int z;")
    assert calls(compiler) == 4
    compiler.write_text(COMPILER + "\n")
    build("int x;")
    assert calls(compiler) == 5


@pytest.mark.parametrize("flag", ["-I/usr/include", "@flags", "/usr/lib/crt0.o", "-T../link.ld", "-Wl,-T,/link.ld"])
def test_files_elsewhere_are_not_known(flag: str, build: Build, compiler: Path) -> None:
    build("int x;", flag)
    build("int x;", flag)
    assert calls(compiler) == 2


def test_errors_are_not_kept(build: Build, compiler: Path) -> None:
    assert [build("broken"), build("broken")] == [None, None]
    assert calls(compiler) == 2


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    for age, name in enumerate(("new", "middle", "old")):
        (tmp_path / name).write_bytes(bytes(10))
        os.utime(tmp_path / name, ns=(0, 10**9 * (9 - age)))
    BuildCache(tmp_path).trim(25)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["middle", "new"]
