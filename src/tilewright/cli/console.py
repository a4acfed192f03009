"""Where the command line prints: results to stdout, progress and errors to stderr.

Names in networks, machine files and programs are anybody's text. They are printed as they are, except for what could
steer a terminal, and never read as markup: whatever has a colour is made by `styled`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from tilewright.api.compiling import Observer
    from tilewright.core.plan import Plan


def shown(text: str) -> str:
    """A text with escapes in place of all that is not printed: control characters, half of a surrogate pair, ..."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def styled(*parts: str | tuple[str, str]) -> Text:
    """Texts one behind the other, some with a colour or weight."""
    return Text.assemble(*(shown(part) if isinstance(part, str) else (shown(part[0]), part[1]) for part in parts))


class _Terminal(Console):
    """A console for texts of unknown origin."""

    def __init__(self, *, stderr: bool = False, width: int | None = None, **options: Any) -> None:
        super().__init__(stderr=stderr, width=width, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """All that rich prints and that is not a `Text` yet comes through here, cells of tables included."""
        return super().render_str(shown(text), **options)


def results(width: int = 0, *, stderr: bool = False) -> Console:
    """As wide as a terminal is; otherwise at least as wide as is asked for."""
    console = _Terminal(stderr=stderr)
    return console if console.is_terminal else _Terminal(stderr=stderr, width=max(console.width, width))


def errors() -> Console:
    """Plain text in lines of any length."""
    return _Terminal(stderr=True, soft_wrap=True, highlight=False)


def warn_stale(plan: Plan) -> None:
    """Tells of kernels and loop nests of a plan whose predicted cycles are not what was measured."""
    from tilewright.machine.staleness import warnings

    for line in warnings(plan.platform, [choice.kernel for choice in plan.choices]):
        errors().print(f"warning: {line}")


@contextmanager
def progress_line(title: str, *, quiet: bool) -> Generator[Observer]:
    """A line on stderr that shows the stage a long job is at, while it lasts."""
    console = _Terminal(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _stage: None
        return
    # Slow to import, and used on terminals only.
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", style="bold", markup=False),
        TextColumn("{task.fields[stage]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(shown(title), stage="")
        yield lambda stage: progress.update(task, stage=shown(stage))
