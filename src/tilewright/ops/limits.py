"""How large integer results can get: the bounds by which generated code chooses the width of its arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.core.domain import Affine, Domain
from tilewright.core.op import Call


def sum_of_products(call: Call, limits: Mapping[str, int], left: str, right: str, *, added: str = "") -> int:
    """The bound of a reduction over `left * right`, plus a bias: exact weights count where they are known."""
    domain = call.domain()
    weights = _largest_sum(call, domain, right)
    if weights is None:
        sizes = [size for name, size in domain.dims.items() if name not in domain.relevant(domain.outputs[0])]
        weights = int(np.prod(sizes, dtype=np.int64)) * limits[right]
    return weights * limits[left] + (limits[added] if call.has(added) else 0)


def _largest_sum(call: Call, domain: Domain, operand: str) -> int | None:
    """The largest sum of magnitudes that one result sees of an operand that is known."""
    value = call.known(operand)
    if value is None or not value.size:
        return None
    kept = domain.relevant(domain.outputs[0])
    reduced = tuple(
        index
        for index, axis in enumerate(domain.access[operand])
        if isinstance(axis, Affine) and not kept.intersection(axis.dims)
    )
    return int(np.abs(value.astype(np.int64)).sum(axis=reduced).max())
