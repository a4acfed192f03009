"""Permutations of axes, and how they pass through changes of shape."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

Perm = tuple[int, ...]
"""As Transpose has it: axis i of the result is axis perm[i] of the input."""


def inverse(perm: Perm) -> Perm:
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def compose(first: Perm, second: Perm) -> Perm:
    """The one permutation that does `first`, then `second`."""
    return tuple(first[axis] for axis in second)


def is_identity(perm: Perm) -> bool:
    return perm == tuple(range(len(perm)))


def permuted(shape: Sequence[int], perm: Perm) -> tuple[int, ...]:
    return tuple(shape[axis] for axis in perm)


def moves_units_only(shape: Sequence[int], perm: Perm) -> bool:
    """Whether transposing a tensor of this shape leaves its bytes as they are: axes of extent 1 alone change places."""
    moved = [axis for axis in perm if shape[axis] != 1]
    return moved == sorted(moved) or 0 in shape


def without(perm: Perm, results: Sequence[int]) -> Perm:
    """The permutation that is left when some axes of the result are dropped on both sides."""
    kept = [axis for i, axis in enumerate(perm) if i not in results]
    rank = {axis: position for position, axis in enumerate(sorted(kept))}
    return tuple(rank[axis] for axis in kept)


Groups = list[tuple[list[int], list[int]]]
"""Axes of one shape and the axes of another that hold the same elements."""


class Swapped(Struct, frozen=True):
    """A Reshape moved in front of a Transpose: the shape to take first, then the permutation."""

    shape: tuple[int, ...]
    perm: Perm


def reshape_first(source: Sequence[int], perm: Perm, target: Sequence[int]) -> Swapped | None:
    """How to reshape to `target` before transposing, for a tensor of shape `source` that is transposed by `perm` first.

    Possible where each group of axes that the reshape merges or splits lies together, in order, in the source too.
    """
    groups = groups_of(permuted(source, perm), target)
    if groups is None:
        return None
    # Where each group starts in the source; its axes must follow each other there (units count for nothing).
    order: list[tuple[int, int]] = []
    for index, (inputs, _) in enumerate(groups):
        axes = [perm[axis] for axis in inputs if source[perm[axis]] != 1]
        if axes and any(source[a] != 1 and a not in axes for a in range(axes[0], axes[-1] + 1)):
            return None
        if axes != sorted(axes):
            return None
        order.append((axes[0] if axes else -1, index))
    sequence = [index for _, index in sorted(order)]
    axes_in_order = [axis for index in sequence for axis in groups[index][1]]
    return Swapped(tuple(target[axis] for axis in axes_in_order), inverse(tuple(axes_in_order)))


def groups_of(left: Sequence[int], right: Sequence[int]) -> Groups | None:
    """The finest split of the axes of two shapes into groups of equal products; units join the group they follow."""
    if 0 in left or 0 in right:
        return None
    groups: Groups = []
    i = j = 0
    while i < len(left) or j < len(right):
        ins: list[int] = []
        outs: list[int] = []
        a = b = 1
        while not (ins or outs) or a != b:
            if (a <= b and i < len(left)) or j >= len(right):
                a *= left[i]
                ins.append(i)
                i += 1
            else:
                b *= right[j]
                outs.append(j)
                j += 1
        while i < len(left) and left[i] == 1:
            ins.append(i)
            i += 1
        while j < len(right) and right[j] == 1:
            outs.append(j)
            j += 1
        groups.append((ins, outs))
    return groups
