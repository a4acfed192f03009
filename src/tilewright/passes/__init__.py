"""Passes: each file is one pure function from a Graph to a Graph; PIPELINE is the order in which they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.core.graph import Graph
from tilewright.machine.target import Target
from tilewright.passes.attention import attention
from tilewright.passes.batch_norm import batch_norm
from tilewright.passes.biases import biases
from tilewright.passes.byte_softmax import byte_softmax
from tilewright.passes.conv1d import conv1d
from tilewright.passes.conv_transpose import conv_transpose
from tilewright.passes.dead_code import dead_code
from tilewright.passes.fold_constants import fold_constants
from tilewright.passes.fuse import fuse
from tilewright.passes.gates import gates
from tilewright.passes.gelu import gelu
from tilewright.passes.gemm import gemm
from tilewright.passes.halves import halves
from tilewright.passes.hard_swish import hard_swish
from tilewright.passes.ita import ita
from tilewright.passes.ita_units import ita_units
from tilewright.passes.layer_norm import layer_norm
from tilewright.passes.layout import layout
from tilewright.passes.mhsa import mhsa
from tilewright.passes.outputs import outputs
from tilewright.passes.pad import pad
from tilewright.passes.reduce_steps import reduce_steps
from tilewright.passes.requant_limits import requant_limits
from tilewright.passes.residuals import residuals
from tilewright.passes.rms_norm import rms_norm
from tilewright.passes.rotary import rotary
from tilewright.passes.silu import silu
from tilewright.passes.simplify import simplify
from tilewright.passes.softmax import softmax
from tilewright.passes.states import states
from tilewright.passes.tables import tables
from tilewright.passes.transposed_matmul import transposed_matmul
from tilewright.passes.transposes import transposes
from tilewright.passes.unflatten import unflatten
from tilewright.passes.views import views

Pass = Callable[[Graph, Target], Graph]
Observer = Callable[[str, Graph], None]

FIRST: tuple[Pass, ...] = (
    *(dead_code, fold_constants, mhsa, simplify),
    *(layer_norm, rms_norm, softmax, gelu, silu, hard_swish),
)
"""Constants are computed, and what exporters spell out becomes one operator again."""
LAST: tuple[Pass, ...] = (byte_softmax, halves, biases, requant_limits, rotary, gates, residuals, fuse, outputs, states)
"""Every operator has code now: as few as possible store their results."""

PIPELINE: tuple[Pass, ...] = (
    *FIRST,
    # Fewer kinds of operators.
    gemm,
    unflatten,
    batch_norm,
    conv_transpose,
    pad,
    conv1d,
    reduce_steps,
    # What engines take.
    ita,
    ita_units,
    # The order of axes.
    layout,
    transposes,
    fold_constants,
    transposed_matmul,
    attention,
    transposes,
    simplify,
    views,
    simplify,
    tables,
    dead_code,
    *LAST,
)


def run_pipeline(
    graph: Graph, platform: Target, observe: Observer | None = None, passes: Sequence[Pass] = PIPELINE
) -> Graph:
    """The graph after all passes; `observe` is shown the name of each pass and the graph it left."""
    for step in passes:
        graph = step(graph, platform)
        if observe is not None:
            observe(step.__name__, graph)
    return graph
