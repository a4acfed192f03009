"""The one exception users see: a code, what went wrong and where, the reasons, and the way out."""

from __future__ import annotations

MOST_OF_A_LINE = 1000
"""Characters. What an error quotes from a file may have any length."""


class TilewrightError(Exception):
    """An error the user can act on.

    `code` is a stable kebab-case identifier (one test file per code), `what` names the thing and the place,
    `reasons` are one line each, `help` says what to do next.
    """

    def __init__(self, code: str, what: str, *, reasons: tuple[str, ...] | list[str] = (), help: str = "") -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.reasons = tuple(reasons)
        self.help = help

    def __reduce__(self) -> tuple[object, ...]:
        """Errors of worker processes arrive whole."""
        return _rebuilt, (self.code, self.what, self.reasons, self.help)

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.what}", *self.reasons]
        if self.help:
            lines.append(f"help: {self.help}")
        # What stands in a file may have several lines; only the first of all begins on the left.
        return "\n  ".join(_shown(line) for text in lines for line in text.split("\n"))


def _shown(line: str) -> str:
    """A line whole, or its beginning and its end."""
    if len(line) <= MOST_OF_A_LINE:
        return line
    part = MOST_OF_A_LINE // 2
    return f"{line[:part]} [{len(line) - 2 * part} characters left out] {line[-part:]}"


def _rebuilt(code: str, what: str, reasons: tuple[str, ...], help: str) -> TilewrightError:
    return TilewrightError(code, what, reasons=reasons, help=help)
