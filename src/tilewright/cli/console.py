"""Where the command line prints: results to stdout, progress and errors to stderr."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tilewright.api.compiling import Observer


def results(width: int | None = None) -> Console:
    """As wide as a terminal is; otherwise as wide as is asked for."""
    console = Console()
    return console if console.is_terminal else Console(width=width)


def errors() -> Console:
    """Plain text: node names and paths are printed as they are."""
    return Console(stderr=True, soft_wrap=True, markup=False, highlight=False)


@contextmanager
def progress_line(title: str, *, quiet: bool) -> Generator[Observer]:
    """A line on stderr that shows the stage a long job is at, while it lasts."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda _stage: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("[bold]{task.description}", markup=True),
        TextColumn("{task.fields[stage]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, stage="")
        yield lambda stage: progress.update(task, stage=stage)
