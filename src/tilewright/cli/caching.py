"""`tilewright cache`: what measurements left on disk."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from tilewright.cli import options as opt
from tilewright.cli.console import results, styled
from tilewright.core.cache import USUAL, user_cache

CACHE_EXAMPLES = """
`tilewright cache` says where it is and how large

`tilewright cache --limit 64M` keeps it smaller, `tilewright cache clear` empties it
"""


commands = typer.Typer()


@commands.command("cache", epilog=CACHE_EXAMPLES)
def cache_command(
    action: Annotated[
        Literal["show", "clear"], typer.Argument(help="Say what is there, or remove all of it.", show_default=False)
    ] = "show",
    *,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            metavar="BYTES",
            parser=opt.byte_count,
            help=f"How large it may become, from now on ({USUAL // opt.UNITS['M']}M); what was not used for the "
            "longest time goes first.",
            show_default=False,
        ),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """It is the folder that `TILEWRIGHT_CACHE` names, else `tilewright` in `XDG_CACHE_HOME` or in `~/.cache`.

    An entry is what one program took on a simulated machine. Without it the program is built and simulated again;
    nothing else depends on it, so it may be removed at any time.
    """
    cache = user_cache()
    if limit is not None:
        cache.set_limit(limit)
    if action == "clear":
        cache.clear()
    entries = cache.entries()
    size = sum(entry.bytes for entry in entries)
    if as_json:
        print(json.dumps({"folder": str(cache.folder), "entries": len(entries), "bytes": size, "limit": cache.limit}))
        return
    console = results()
    console.print(styled("measurements in ", (str(cache.folder), "bold")), soft_wrap=True)
    console.print(f"{len(entries):,} entries, {size:,} of at most {cache.limit:,} bytes")
