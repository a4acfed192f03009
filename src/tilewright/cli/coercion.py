"""Values of options from texts. Typer imports a library for it that takes longer than most commands.

What is plain is read here; typer is asked about everything else, so that it says what is wrong with it.
"""

from __future__ import annotations

import os
import re
from math import inf
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

_NUMBER = re.compile(r"\d{1,18}(\.\d{1,18})?")
_NOT_PLAIN = object()


class Coercion:
    """How the texts of a parameter of typer's become its values."""

    def __init__(self, parameter: Any) -> None:
        self._described = parameter.type_descriptor
        self._typers = parameter.get_runtime_param

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        found = self._found(value, param)
        return self._typers().coerce(value, param=param, ctx=ctx) if found is _NOT_PLAIN else found

    def _found(self, value: Any, parameter: Any) -> Any:
        if value is None:
            return () if parameter.multiple or parameter.nargs == -1 else None
        annotation, information = self._described.annotation, self._described.parameter_info
        if get_origin(annotation) is not list:
            return _plain(value, annotation, information)
        if not isinstance(value, (list, tuple)):
            return _NOT_PLAIN
        (kind,) = get_args(annotation)
        found = [_plain(item, kind, information) for item in cast("list[Any]", value)]
        return _NOT_PLAIN if any(item is _NOT_PLAIN for item in found) else found


def read_quickly(command: Any) -> None:
    """Makes a command of typer's read its parameters this way."""
    for parameter in command.params:
        if hasattr(parameter, "get_runtime_param"):
            coercion = Coercion(parameter)
            parameter.get_runtime_param = lambda coercion=coercion: coercion


def _plain(value: Any, kind: Any, information: Any) -> Any:
    """The value of one text, or of a default, as typer would have it; `_NOT_PLAIN` where that is not obvious."""
    if information.parser is not None:
        return information.parser(value)
    if get_origin(kind) is Literal:
        return value if isinstance(value, str) and value in get_args(kind) else _NOT_PLAIN
    if kind is str:
        return value if isinstance(value, str) else _NOT_PLAIN
    if kind is int or kind is float:
        return _number(value, kind, information)
    if kind is Path:
        return _path(value, information)
    return _NOT_PLAIN


def _number(value: Any, kind: type[int] | type[float], information: Any) -> Any:
    text = isinstance(value, str) and value.isascii() and _NUMBER.fullmatch(value)
    if not (text and (kind is float or "." not in value)) and type(value) is not kind:
        return _NOT_PLAIN
    number = kind(value)
    low = -inf if information.min is None else information.min
    high = inf if information.max is None else information.max
    return number if low <= number <= high else _NOT_PLAIN


def _path(value: Any, information: Any) -> Any:
    if not isinstance(value, (str, Path)) or information.exists or information.resolve_path or information.path_type:
        return _NOT_PLAIN
    usual = information.file_okay and information.dir_okay and not information.writable
    return Path(value) if usual and (os.access(value, os.R_OK) or not os.path.lexists(value)) else _NOT_PLAIN
