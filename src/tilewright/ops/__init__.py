"""Operators: one file per operator or family; importing this package declares all of them."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path

from tilewright.base.files import is_folder
from tilewright.core.op import REGISTRY, Operator
from tilewright.errors import TilewrightError

for _module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
    importlib.import_module(f"{__name__}.{_module}")


def operators() -> dict[str, Operator]:
    """Every declared operator by name, sorted."""
    return dict(sorted(REGISTRY.items()))


def load_folder(folder: Path) -> tuple[str, ...]:
    """Declares the operators of a user's folder of Python files; returns the names that are new."""
    if not is_folder(folder):
        raise TilewrightError(
            "missing-folder", f"operator folder '{folder}' does not exist", help="pass an existing --ops DIR"
        )
    before = set(REGISTRY)
    for path in sorted(folder.glob("*.py")):
        name = f"tilewright_user_ops_{path.stem}"
        if name in sys.modules:
            continue
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise TilewrightError("bad-operator", f"'{path}' is not a Python module")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as reason:
            del sys.modules[name]
            raise TilewrightError(
                "bad-operator", f"operator file '{path}' does not load", reasons=[f"{type(reason).__name__}: {reason}"]
            ) from reason
    return tuple(sorted(set(REGISTRY) - before))
