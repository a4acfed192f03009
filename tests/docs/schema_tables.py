"""Tables of the keys that descriptions of machines may have, from the classes that read them.

`python tests/docs/schema_tables.py` writes them into docs/machines.md; a test looks whether they are there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import inspect

from tilewright.base.schema import Part, keys_of
from tilewright.machine import array_file, machine, parts, target, tiles, timing
from tilewright.machine.machine import MachineFile

PAGE = Path(__file__).parent.parent.parent / "docs" / "machines.md"
MODULES = (machine, parts, array_file, tiles, timing, target)
MARK = re.compile(r"<!-- keys of (\w+) -->\n(.*?)<!-- end -->\n", re.DOTALL)


def documents() -> dict[str, str]:
    """What stands behind each field, by class and key: `Memory.bytes`."""
    found: dict[str, str] = {}
    for module in MODULES:
        assert module.__file__ is not None
        for made in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
            if isinstance(made, ast.ClassDef):
                for field, text in zip(made.body, made.body[1:], strict=False):
                    match field, text:
                        case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                            found[f"{made.name}.{name}"] = " ".join(said.split())
                        case _:
                            pass
    return found


def classes() -> dict[str, type[Part]]:
    """All kinds of mappings that a description is made of."""
    found = {name: kind for module in MODULES for name, kind in vars(module).items() if isinstance(kind, type)}
    return {name: kind for name, kind in found.items() if issubclass(kind, Part) and kind is not Part}


def table(kind: type[Part]) -> str:
    """The keys of a class, each with what it takes and means."""
    said, made = documents(), _info(kind)
    lines = ["| key | value | meaning |", "| --- | --- | --- |"]
    if made.tag_field:
        lines.append(f"| `{made.tag_field}` | `{made.tag}` | |")
    more = set(keys_of(made)) - (set(keys_of(_info(MachineFile))) if kind is target.TargetFile else set())
    for key, field in keys_of(made).items():
        if key not in more:
            continue
        text = next(said[f"{base.__name__}.{key}"] for base in kind.__mro__ if f"{base.__name__}.{key}" in said)
        lines.append(f"| `{key}` | {value_text(field.type)}{default_text(field)} | {text} |")
    return "\n".join(lines) + "\n"


def _info(kind: type[Part]) -> inspect.StructType:
    made = inspect.type_info(kind)
    assert isinstance(made, inspect.StructType)
    return made


def default_text(field: inspect.Field) -> str:
    if field.required:
        return ", needed"
    default: Any = field.default
    shown = not isinstance(default, bool) and isinstance(default, int | float | str) and default not in ("", 0)
    return f", {default} by default" if shown else ""


def value_text(info: inspect.Type) -> str:
    """What a value may be, in a few words."""
    match info:
        case inspect.UnionType():
            texts = dict.fromkeys(t for kind in info.types if (t := value_text(kind)) not in ("nothing", "0 or 1"))
            return " or ".join(texts)
        case inspect.StructType():
            return f"[{title(info.cls)}](#{title(info.cls).replace(' ', '-')})"
        case inspect.DictType(value_type=inner):
            return f"mapping of {value_text(inner)}"
        case inspect.VarTupleType(item_type=inner):
            return f"list of {value_text(inner)}"
        case inspect.TupleType(item_types=items):
            return f"{len(items)} names"
        case inspect.LiteralType(values=values):
            return " or ".join(str(value) if isinstance(value, int) else f"`{value}`" for value in values)
        case inspect.IntType(ge=least, le=most):
            return f"whole number from {least} to {most}" if most is not None and most < 2**16 + 1 else "whole number"
        case inspect.FloatType():
            return "number"
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return "text"
        case inspect.NoneType():
            return "nothing"
        case _:
            return "anything"


def title(kind: type) -> str:
    """`LevelPart` as `level`: how the page calls it."""
    words = re.sub(r"(Part|File)$", "", kind.__name__)
    return re.sub(r"(?<!^)(?=[A-Z])", " ", words).lower()


def written(page: str) -> str:
    """The page with its tables as they have to be."""
    known = classes()
    return MARK.sub(lambda m: f"<!-- keys of {m[1]} -->\n{table(known[m[1]])}<!-- end -->\n", page)


def shown(page: str) -> Iterator[str]:
    """The classes whose keys a page has."""
    yield from (match[1] for match in MARK.finditer(page))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
