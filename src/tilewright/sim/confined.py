"""Starts a simulator that can change nothing of this computer but what lies in its folder, and has no network.

`python confined.py FOLDER COMMAND...` becomes the command. Linux confines it (Landlock, since version 5.13; TCP since
6.7); an older kernel does not. It is a program of its own, because a process cannot take its confinement back.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""System calls, with the same numbers on all machines."""
NO_NEW_PRIVILEGES = 38
VERSION = 1
PATH_BENEATH = 1
WRITE_FILE = 1 << 1
CHANGES = WRITE_FILE | sum(1 << bit for bit in range(4, 13))
"""Writing to a file, and making and removing one of any kind."""
RENAME, TRUNCATE = 1 << 13, 1 << 14
TCP = 3


def kernel_version() -> int:
    """Of what the kernel has to confine processes; 0 where it has nothing."""
    return max(ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, VERSION), 0)


def confine(folder: Path) -> None:
    """From here on, this process changes nothing outside of a folder."""
    version = kernel_version()
    if version == 0:
        return
    kernel = ctypes.CDLL(None, use_errno=True)
    changes = CHANGES | (RENAME if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    rules = struct.pack("=QQ", changes, TCP) if version >= 4 else struct.pack("=Q", changes)
    ruleset = kernel.syscall(CREATE_RULESET, rules, len(rules), 0)
    _check(ruleset)
    for place, allowed in ((folder, changes), (Path("/dev"), WRITE_FILE)):
        descriptor = os.open(place, os.O_PATH)
        _check(kernel.syscall(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", allowed, descriptor), 0))
        os.close(descriptor)
    _check(kernel.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _check(kernel.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"this process cannot be confined: {os.strerror(number)}")


def confined(folder: Path, command: list[str]) -> list[str]:
    """The command that starts another one so."""
    return [sys.executable, "-I", "-S", __file__, str(folder), *command]


if __name__ == "__main__":
    confine(Path(sys.argv[1]))
    try:
        os.execv(sys.argv[2], sys.argv[2:])
    except OSError as reason:
        sys.exit(f"'{sys.argv[2]}' cannot be started: {reason}")
