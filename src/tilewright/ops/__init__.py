"""Operators: one file per operator or family; importing this package declares all of them."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from zlib import crc32

from tilewright.base.files import is_folder
from tilewright.core.op import REGISTRY, Operator
from tilewright.core.tried import Mistake, try_examples
from tilewright.errors import TilewrightError

for _module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")


def operators() -> dict[str, Operator]:
    """Every declared operator by name, sorted."""
    return dict(sorted(REGISTRY.items()))


def load_folder(folder: Path) -> tuple[str, ...]:
    """Declares the operators of a user's folder of Python files; returns their names.

    A file that was loaded before is loaded again where its text changed. What it declares is tried on its examples.
    """
    if not is_folder(folder):
        raise TilewrightError(
            "missing-folder", f"operator folder '{folder}' does not exist", help="pass an existing --ops DIR"
        )
    return tuple(sorted(name for path in sorted(folder.glob("*.py")) if path.is_file() for name in _load_file(path)))


_LOADED: dict[Path, tuple[bytes, tuple[str, ...]]] = {}
"""Users' files: their text, and the operators that they declare."""


def _load_file(path: Path) -> tuple[str, ...]:
    place, text = path.resolve(), path.read_bytes()
    known, names = _LOADED.get(place, (None, ()))
    if known == text:
        return names
    for name in names:
        REGISTRY.pop(name, None)
    before = set(REGISTRY)
    module = ModuleType(f"tilewright_user_ops_{path.stem}_{crc32(bytes(place)):08x}")
    module.__file__ = str(place)
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, str(place), "exec"), module.__dict__)
        found = tuple(REGISTRY.keys() - before)
        for name in found:
            try_examples(REGISTRY[name])
    except (Exception, SystemExit) as reason:
        _LOADED.pop(place, None)
        for name in REGISTRY.keys() - before:
            del REGISTRY[name]
        said = str(reason) if isinstance(reason, Mistake) else f"{type(reason).__name__}: {reason}"
        raise TilewrightError("bad-operator", f"operator file '{path}' does not load", reasons=[said]) from reason
    _LOADED[place] = text, found
    return found
