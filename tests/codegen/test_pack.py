"""Weights in the order a kernel wants them."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tilewright.codegen.pack import pack
from tilewright.errors import TilewrightError
from tilewright.machine.target import load_platform

KERNEL = next(kernel for kernel in load_platform("generic").kernels if kernel.pack)


def test_axes_change_places() -> None:
    array = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(pack(array, "K,N -> N,K", {"K": 2, "N": 3}, KERNEL), array.T)


def test_a_split_axis_is_filled_up_with_zeros() -> None:
    array = np.arange(6).reshape(2, 3)
    packed = pack(array, "K,N -> N/2,K,N%2", {"K": 2, "N": 3}, KERNEL)
    np.testing.assert_array_equal(packed, [[[0, 1], [3, 4]], [[2, 0], [5, 0]]])


def test_one_axis_may_be_several_dimensions_and_several_axes_one() -> None:
    array = np.arange(2 * 2 * 3 * 1 * 2).reshape(4, 3, 1, 2)
    sizes = {"G": 2, "F": 2, "C": 3, "KH": 1, "KW": 2}
    packed = pack(array, "G,F,C,KH,KW -> G,F,(KH,KW,C)/4,(KH,KW,C)%4", sizes, KERNEL)
    assert packed.shape == (2, 2, 2, 4)
    rows = array.reshape(2, 2, 3, 1, 2).transpose(0, 1, 3, 4, 2).reshape(2, 2, 6)
    np.testing.assert_array_equal(packed.reshape(2, 2, 8)[..., :6], rows)
    assert not packed.reshape(2, 2, 8)[..., 6:].any()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("K,N", "unknown dimension"),
        ("K,X -> X,K", "unknown dimension"),
        ("K,N -> N", "every axis"),
        ("K,N -> K,N/2", "both parts"),
        ("K,K -> K,K", "have 4 elements"),
    ],
)
def test_a_wrong_description_names_kernel_and_reason(spec: str, message: str) -> None:
    with pytest.raises(TilewrightError, match=message) as caught:
        pack(np.zeros((2, 3)), spec, {"K": 2, "N": 3}, replace(KERNEL))
    assert caught.value.code == "bad-kernel"
    assert KERNEL.where in str(caught.value)
