"""Permutations through changes of shape, against numpy."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np

from tilewright.passes.permutation import compose, inverse, moves_units_only, reshape_first

SHAPES = [shape for rank in (1, 2, 3, 4) for shape in product((1, 2, 3), repeat=rank)]
TARGETS = [shape for rank in (1, 2, 3, 4) for shape in product((1, 2, 3, 4, 6), repeat=rank)]


def test_a_reshape_in_front_gives_the_same() -> None:
    moved = 0
    for shape in SHAPES[::2]:
        array = np.arange(np.prod(shape)).reshape(shape)
        targets = [target for target in TARGETS if np.prod(target) == array.size]
        for perm in permutations(range(len(shape))):
            for target in targets[:: max(1, len(targets) // 8)]:
                found = reshape_first(shape, perm, target)
                if found is not None:
                    moved += 1
                    turned = array.reshape(found.shape).transpose(found.perm)
                    assert np.array_equal(turned, array.transpose(perm).reshape(target)), (shape, perm, target)
    assert moved > 1000


def test_units_move_for_free() -> None:
    for shape in SHAPES:
        array = np.arange(np.prod(shape)).reshape(shape)
        for perm in permutations(range(len(shape))):
            same = np.array_equal(array.transpose(perm).reshape(-1), array.reshape(-1))
            assert moves_units_only(shape, perm) == same


def test_inverses_compose_to_nothing() -> None:
    for perm in permutations(range(4)):
        assert compose(perm, inverse(perm)) == (0, 1, 2, 3)
