"""What a network may be called in C: its name begins those of functions and files, so it must not be one already."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tilewright.errors import TilewrightError
from tilewright.machine.target import Target

LONGEST = 31
"""Letters of a name that every linker tells apart."""
KEYWORDS = frozenset(
    (
        *("alignas", "alignof", "auto", "bool", "break", "case", "char", "const", "constexpr", "continue", "default"),
        *("do", "double", "else", "enum", "extern", "false", "float", "for", "goto", "if", "inline", "int", "long"),
        *("nullptr", "register", "restrict", "return", "short", "signed", "sizeof", "static", "static_assert"),
        *("struct", "switch", "thread_local", "true", "typedef", "typeof", "typeof_unqual", "union", "unsigned"),
        *("void", "volatile", "while", "asm", "fortran"),
    )
)
HEADERS = frozenset(
    (
        *("alloca", "arm_acle", "arm_mve", "arm_neon", "assert", "byteswap", "complex", "ctype", "dirent", "elf"),
        *("endian", "errno", "fcntl", "features", "fenv", "float", "inttypes", "iso646", "limits", "link", "locale"),
        *("malloc", "math", "memory", "poll", "pthread", "pwd", "regex", "sched", "search", "semaphore", "setjmp"),
        *("signal", "spawn", "stdalign", "stdarg", "stdatomic", "stdbool", "stdckdint", "stdc", "stddef", "stdint"),
        *("stdio", "stdlib", "stdnoreturn", "string", "strings", "termios", "tgmath", "threads", "time", "uchar"),
        *("unistd", "utime", "wchar", "wctype"),
    )
)
"""Of the C library, which a header of that name would hide."""
OURS = ("tw", "tilewright")
"""What names of our own begin with in C."""


def check_name(name: str) -> None:
    """An error for a name that C has a meaning for, or none at all."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise _refused(name, "is not a C identifier: letters, digits and _, no digit first")
    if len(name) > LONGEST:
        raise _refused(f"{name[:LONGEST]}...", f"is longer than {LONGEST} letters")
    if name.startswith("_"):
        raise _refused(name, "begins with _, as names of compilers do")
    if name in KEYWORDS:
        raise _refused(name, "is a word of C itself")
    if name.lower() in HEADERS:
        raise _refused(name, f"is taken: <{name.lower()}.h> is a header of the C library")
    if name.lower() in OURS or name.lower().startswith(tuple(f"{ours}_" for ours in OURS)):
        raise _refused(name, "is taken by code that goes with every network")


def check_files(name: str, platform: Target) -> None:
    """An error where a platform has a file of that name already."""
    folders = [part for place in (*platform.runtime, *platform.layout.values()) for part in PurePosixPath(place).parts]
    for part in dict.fromkeys(folders):
        if part.removesuffix(".in").partition(".")[0].lower() == name.lower():
            raise _refused(name, f"is taken: '{part.removesuffix('.in')}' goes with every network for {platform.name}")


def _refused(name: str, why: str) -> TilewrightError:
    return TilewrightError("bad-argument", f"--name '{name}' {why}", help="choose another one, such as my_network")
