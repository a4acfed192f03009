"""Plain values of options are read without typer's library, and mean what they mean to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from tilewright.cli.app import COMMANDS, load_command
from tilewright.cli.coercion import Coercion

TEXTS = (
    "",
    "0",
    "7",
    "64K",
    "-1",
    "1.5",
    "1e3",
    "0x10",
    "٣",
    "99999999999999999999",
    "auto",
    "off",
    "AUTO",
    "x=1",
    ".",
)


def parameters(name: str) -> list[Any]:
    alone = typer.Typer(add_completion=False)
    alone.command(name)(load_command(name).callback)  # type: ignore[arg-type]
    return [p for p in get_command(alone).params if hasattr(p, "get_runtime_param")]


def outcome(coercion: Any, value: object, parameter: Any) -> str:
    try:
        return repr(coercion.coerce(value, param=parameter, ctx=None))
    except Exception as error:
        return f"{type(error)}: {error}"


@pytest.mark.parametrize("name", COMMANDS)
def test_values_are_those_of_typer(name: str, tmp_path: Path) -> None:
    """Of texts that mean something to a parameter, of others, and of its default."""
    for parameter in parameters(name):
        several = parameter.multiple or parameter.nargs == -1
        for text in (*TEXTS, str(tmp_path)):
            value = [text] if several else text
            expected = outcome(parameter.get_runtime_param(), value, parameter)
            assert outcome(Coercion(parameter), value, parameter) == expected, (parameter.name, text)
        default = parameter.default() if callable(parameter.default) else parameter.default
        expected = outcome(parameter.get_runtime_param(), default, parameter)
        assert outcome(Coercion(parameter), default, parameter) == expected, parameter.name
