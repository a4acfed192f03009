"""What all other parts use."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from types import MappingProxyType


def _frozen(items: dict[object, object]) -> MappingProxyType[object, object]:
    return MappingProxyType(items)


def _reduced(
    frozen: MappingProxyType[object, object],
) -> tuple[Callable[..., MappingProxyType[object, object]], tuple[object]]:
    return _frozen, (dict(frozen),)


# Values hold frozen dictionaries, which Python neither copies nor sends to other processes by itself.
copyreg.pickle(MappingProxyType, _reduced)
