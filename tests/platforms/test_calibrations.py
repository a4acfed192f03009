"""What was measured of kernels and loop nests belongs to what there is now."""

from __future__ import annotations

import pytest

from tilewright.api.bench import compiler_of
from tilewright.api.calibrating import kernels_with_terms, outdated
from tilewright.machine.calibration import COMPILER, ENGINE, NESTS, STEPS, TIMES
from tilewright.machine.parts import Device
from tilewright.machine.staleness import stale_engine, stale_nests, stale_times
from tilewright.machine.target import load_platform, platform_names

PLATFORMS = [load_platform(name) for name in platform_names()]
PARTLY = {
    "snitch-ita": """attention attention_f32 averagepool_f32 conv2d_f32 conv2d_s8 conv2d_soft_f32 cumprod_int
        cumsum_int depthwise_f32 depthwise_s8 iattention ilayernorm ilayernorm_wide irmsnorm irmsnorm_wide irotary
        isoftmax isoftmax_wide ita_attention ita_heads ita_linear ita_max ita_partial_max ita_softmax
        layer_normalization layernorm_f32 layernorm_s8 matmul_f32 matmul_packed_f32 matmul_packed_s8
        matmul_s8 matmul_soft_f32 maxpool rmsnorm_f32 softmax_f32 softmax_f64 softmax_inner_f32 softmax_s8
        sumpool_s8 topk transpose_runs"""
}
"""Platforms on which only loop nests and these kernels were measured, as floats take long without an FPU: others
count terms. What is measured may only become more."""
SIMULATED = [platform.name for platform in PLATFORMS if platform.timings and platform.name not in PARTLY]
COUNTED = [platform.name for platform in PLATFORMS if platform.qemu]
MEASURED_ENGINES = [("mempool-ita", "ita"), ("siracusa", "neureka"), ("snitch-ita", "ita")]
TIMED = ("siracusa", "mempool", "mempool-16", "mempool-1024", "mempool-ita", "snitch", "snitch-ita")
"""Platforms whose times of transfers were measured. There may only be more of them."""
MOST_ERROR, MOST_ERROR_OF_NESTS = 0.1, 0.15
"""The median error of shapes held out that a kernel may have, and loop nests: operators are less alike than layers."""
ABOVE = {
    "cortex-m0plus": """attention concat conv2d_f32 conv2d_s8 cumprod_float cumsum_int depthwise_s8 dynamic_quantize
        isoftmax log_softmax matmul_packed_s8 matmul_s8 rnn scatter_elements softmax_s8 sumpool_s8 topk""",
    "cortex-m4": "concat dynamic_quantize ita_max layer_normalization log_softmax rnn sumpool_s8 topk",
    "cortex-m55": """attention embed_layer_normalization ita_max linear_attention skip_simplified_layer_normalization
        topk transpose_pixels""",
    "mempool": """attention conv2d_f32 cumprod_int cumsum_int depthwise_s8 irotary layer_norm_grad
        linear_attention matmul_f32 matmul_packed_f32 matmul_packed_s8 matmul_s8 skip_layer_normalization
        softmax_f64 softmax_grad sumpool_s8 topk loop_nests""",
    "snitch": """averagepool_f32 conv2d_f32 conv2d_s8 cumprod_int cumsum_float depthwise_f32
        depthwise_s8 dynamic_quantize layernorm_f32 matmul_f32 matmul_packed_s8 matmul_s8 maxpool_pairs_f32
        rmsnorm_f32 topk""",
}
"""Kernels whose terms, written for another machine, say less of instructions here. The list may only become shorter."""


def test_platforms_without_measurements_have_none() -> None:
    measured = {platform.name for platform in PLATFORMS if platform.timings and platform.calibrations}
    assert measured == {*SIMULATED, *PARTLY}


@pytest.mark.parametrize("platform", PARTLY)
def test_what_is_measured_is_not_out_of_date(platform: str) -> None:
    machine = load_platform(platform)
    names = [f"{name}.c" for name in PARTLY[platform].split()]
    assert {*machine.calibrations} == {NESTS, *names}
    assert outdated(platform, names=names) == []
    assert stale_nests(machine, {COMPILER: compiler_of(machine)}) == ()


def test_starts_of_engines_are_not_out_of_date() -> None:
    """`tilewright calibrate --platform P --engine NAME` brings one up to date."""
    parts = [(platform, part) for platform in PLATFORMS for part in platform.own_calibrations if part != TIMES]
    measured = [(platform, part.removeprefix(ENGINE)) for platform, part in parts]
    assert [(platform.name, name) for platform, name in measured] == MEASURED_ENGINES
    for platform, name in measured:
        assert stale_engine(platform, name, {COMPILER: compiler_of(platform)}) == ()
        found = platform.own_calibrations[f"{ENGINE}{name}"]
        device = platform.engines[name]
        assert isinstance(device, Device)
        assert device.fork == found.terms["fork"] > 0
        assert device.begin == found.terms["begin"]
        assert device.turn == found.terms["turn"]
        assert found.held_out["median"] < MOST_ERROR


def test_times_of_transfers_are_not_out_of_date() -> None:
    """`tilewright calibrate --platform P --times` brings them up to date."""
    measured = [platform for platform in PLATFORMS if TIMES in platform.own_calibrations]
    assert {platform.name for platform in measured} == {*TIMED}
    for platform in measured:
        assert stale_times(platform, {COMPILER: compiler_of(platform)}) == ()
        (link,) = (platform.links[name] for name in ("mchan", "dma") if name in platform.links)
        terms = platform.own_calibrations[TIMES].terms
        assert link.issue == terms[f"{link.name}.issue"] > 0
        assert platform.operations["wait"] == terms["wait"] > 0


@pytest.mark.parametrize("platform", SIMULATED + COUNTED)
def test_nothing_is_out_of_date(platform: str) -> None:
    """`tilewright calibrate --platform P --kernel NAME` brings a kernel up to date, `--nests` loop nests."""
    assert outdated(platform) == []


@pytest.mark.parametrize(
    "platform", [p.name for p in PLATFORMS if p.measured_as is None and p.name in (*SIMULATED, *COUNTED)]
)
def test_predictions_of_shapes_held_out(platform: str) -> None:
    machine = load_platform(platform)
    measured = {kernel.path.name for kernel in kernels_with_terms(machine)} & {*machine.calibrations}
    errors = {name.removesuffix(".c"): machine.calibrations[name].held_out["median"] for name in measured}
    above = {name for name, error in errors.items() if error > MOST_ERROR}
    if machine.timings and machine.calibrations[NESTS].held_out["median"] > MOST_ERROR_OF_NESTS:
        above.add("loop_nests")
    if STEPS in machine.calibrations and machine.calibrations[STEPS].held_out["median"] > MOST_ERROR:
        above.add("steps")
    known = {*ABOVE.get(platform, "").split()}
    assert above - known == set()
    assert known - above == set(), "close by now: take it off the list"
