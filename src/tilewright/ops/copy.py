"""Copy: the bytes of a tensor once more, where a result must not share its memory with what it came from."""

from __future__ import annotations

from types import MappingProxyType

from tilewright.core.graph import Array
from tilewright.core.op import Body, Call, Operator, declare, example
from tilewright.ops.rules import elementwise_domain, same_type


def _reference(_call: Call, X: Array) -> Array:
    return X.copy()


declare(
    Operator(
        "Copy",
        "X",
        "Y",
        same_type,
        elementwise_domain,
        _reference,
        (example("float32[2,3]"), example("int8[7]"), example("bool[2,2]"), example("float16[5]")),
        kind="move",
        body=lambda _call: Body(MappingProxyType({"Y": "X"})),
    )
)
