"""What changes numbers, and is done only where a user allows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from tilewright.errors import TilewrightError

ITA_SOFTMAX = "ita-softmax"
PERMISSIONS: Mapping[str, str] = MappingProxyType(
    {ITA_SOFTMAX: "attention runs on ITA, with its softmax, where the network has another one"}
)
"""What each of them allows."""


def allowed(names: Iterable[str]) -> tuple[str, ...]:
    """What a user allows; a name that says nothing is an error."""
    found = tuple(names)
    for name in found:
        if name not in PERMISSIONS:
            raise TilewrightError(
                "unknown-permission",
                f"nothing that may be allowed is named '{name}'",
                reasons=[f"{known}: {what}" for known, what in PERMISSIONS.items()],
                help="give --allow one of these names",
            )
    return found
