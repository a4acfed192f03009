"""Packages that import what they offer only when it is asked for, so that a command pays for no other command."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose `__init__.pyi` says which name comes from where.

    Type checkers and editors read the same stub, so that every name is said once: as `from home import A as A`, or as
    `b = a` behind `from home import a`.
    """
    imported: dict[str, tuple[str, str]] = {}
    homes: dict[str, tuple[str, str]] = {}
    for statement in ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8")).body:
        match statement:
            case ast.ImportFrom(module=str(module), names=names):
                imported |= {name.name: (module, name.name) for name in names}
                homes |= {name.asname: (module, name.name) for name in names if name.asname}
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=given)):
                homes[name] = imported[given]
            case _:
                pass

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module, there = homes[name]
        found = getattr(import_module(module), there)
        setattr(sys.modules[package], name, found)
        return found

    def all_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, all_names, sorted(homes)
