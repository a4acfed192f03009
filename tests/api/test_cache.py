"""The cache on disk: what is kept, what goes first, and that it never stands in the way."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tilewright.core.cache import USUAL, VARIABLE, Cache, user_cache

BLOCK = 4096


def names(cache: Cache) -> list[str]:
    return [entry.path.stem for entry in cache.entries()]


def test_what_is_put_is_found(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "deep" / "cache")
    assert cache.get("a") is None
    assert cache.entries() == ()
    cache.put("a", b"first")
    cache.put("a", b"second")
    assert cache.get("a") == b"second"
    assert Cache(tmp_path / "deep" / "cache").get("a") == b"second"


def test_the_least_used_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for age, name in enumerate("abc"):
        cache.put(name, bytes(2 * BLOCK))
        os.utime(tmp_path / f"{name}.entry", (age, age))
    assert names(cache) == ["a", "b", "c"]
    assert cache.get("a") is not None, "now it is the one used last"
    size = sum(entry.bytes for entry in cache.entries())
    cache.set_limit(size - 1)
    assert names(cache) == ["c", "a"]
    cache.put("d", bytes(2 * BLOCK))
    assert "c" not in names(cache)
    assert cache.get("d") is not None
    cache.put("large", bytes(size))
    assert cache.get("large") is None, "more than all of it"


def test_clear_keeps_the_limit(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.limit == USUAL
    cache.set_limit(12345)
    cache.put("a", b"x")
    (tmp_path / "notes.txt").write_text("not ours")
    cache.clear()
    assert cache.entries() == ()
    assert cache.limit == 12345
    assert (tmp_path / "notes.txt").exists()
    (tmp_path / "limit").write_text("many")
    assert cache.limit == USUAL


def test_no_place_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file")
    cache.put("a", b"x")
    assert cache.get("a") is None
    assert cache.entries() == ()


def test_many_at_once(tmp_path: Path) -> None:
    def work(number: int) -> bytes | None:
        cache = Cache(tmp_path)
        cache.put(f"{number % 3}", b"x" * (number % 3))
        cache.shrink()
        return cache.get(f"{number % 3}")

    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(work, range(48))]
    assert found == [b"x" * (number % 3) for number in range(48)]


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "own"))
    assert user_cache().folder == tmp_path / "own"
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache().folder == tmp_path / "tilewright"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_cache().folder == tmp_path / ".cache" / "tilewright"
