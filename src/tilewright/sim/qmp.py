"""Talks to an emulator over a socket that only this process has: QEMU's machine protocol, lines of JSON."""

from __future__ import annotations

import json
import socket
from typing import Any, cast

from tilewright.errors import TilewrightError
from tilewright.sim.processes import Running


class Control:
    """Our end of the socket; `theirs` is for the emulator's."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._rest = b""
        self._answers: list[dict[str, Any]] = []
        self.closed = False
        """The emulator is gone."""
        self.ended = False
        """The program asked for a reset, or the board switched itself off."""

    @property
    def arguments(self) -> list[str]:
        """For the emulator's command line."""
        return [*("-chardev", f"socket,id=control,fd={self.theirs.fileno()}"), "-mon", "chardev=control,mode=control"]

    def attach(self, running: Running) -> None:
        """The emulator runs and has its end."""
        self.theirs.close()
        running.watch(self._ours.fileno(), self._take)

    def close(self) -> None:
        self._ours.close()
        self.theirs.close()

    def _take(self, data: bytes) -> None:
        self.closed = self.closed or not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = cast("dict[str, Any]", json.loads(line))
            self.ended = self.ended or message.get("event") == "SHUTDOWN"
            if "return" in message or "error" in message:
                self._answers.append(message)

    def ask(self, running: Running, command: str, **arguments: object) -> Any:
        """What the emulator answers; None where it is gone."""
        request = {
            "execute": command,
            "arguments": {name.replace("_", "-"): value for name, value in arguments.items()},
        }
        try:
            self._ours.sendall(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            self.closed = True
        while not self.closed and not self._answers:
            running.pump()
        if not self._answers:
            return None
        answer = self._answers.pop(0)
        if "error" in answer:
            raise TilewrightError("run-failed", f"QEMU refuses '{command}'", reasons=[str(answer["error"]["desc"])])
        return answer["return"]
