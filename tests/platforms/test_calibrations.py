"""What was measured of kernels and loop nests belongs to what there is now."""

from __future__ import annotations

import pytest

from tilewright.api.calibrating import kernels_with_terms, outdated
from tilewright.machine.calibration import NESTS
from tilewright.machine.target import load_platform, platform_names

PLATFORMS = [load_platform(name) for name in platform_names()]
NEVER = {"snitch", "snitch-ita", "mempool", "mempool-16", "mempool-1024"}
"""Platforms that nothing was measured on yet: their kernels count terms. The list may only become shorter."""
SIMULATED = [platform.name for platform in PLATFORMS if platform.timings and platform.name not in NEVER]
COUNTED = [platform.name for platform in PLATFORMS if platform.qemu]
MOST_ERROR = 0.1
"""The median error of shapes held out that a kernel may have."""
ABOVE = {
    "cortex-m0plus": """attention concat conv2d_f32 conv2d_s8 cumprod_float cumsum_int depthwise_s8 dynamic_quantize
        isoftmax log_softmax matmul_packed_s8 matmul_s8 rnn scatter_elements softmax_s8 sumpool_s8 topk""",
    "cortex-m4": "concat dynamic_quantize ita_max layer_normalization log_softmax rnn sumpool_s8 topk",
    "cortex-m55": """attention embed_layer_normalization ita_max linear_attention skip_simplified_layer_normalization
        topk transpose_pixels""",
}
"""Kernels whose terms, written for another machine, say less of instructions here. The list may only become shorter."""


def test_platforms_without_measurements_have_none() -> None:
    measured = {platform.name for platform in PLATFORMS if platform.timings and platform.calibrations}
    assert measured == {*SIMULATED}


@pytest.mark.parametrize("platform", SIMULATED + COUNTED)
def test_nothing_is_out_of_date(platform: str) -> None:
    """`tilewright calibrate --platform P --kernel NAME` brings a kernel up to date, `--nests` loop nests."""
    assert outdated(platform) == []


@pytest.mark.parametrize("platform", SIMULATED + [p.name for p in PLATFORMS if p.qemu and p.measured_as is None])
def test_predictions_of_shapes_held_out(platform: str) -> None:
    machine = load_platform(platform)
    errors = {k.path.stem: machine.calibrations[k.path.name].held_out["median"] for k in kernels_with_terms(machine)}
    # Operators of all kinds are less alike than layers of one kernel.
    assert not machine.timings or machine.calibrations[NESTS].held_out["median"] < 0.15
    known = ABOVE.get(platform, "").split()
    assert {name: error for name, error in errors.items() if error > MOST_ERROR and name not in known} == {}
    assert [name for name in known if errors[name] <= MOST_ERROR] == [], "close by now: take it off the list"
