"""Networks with states in C: reset, arenas of one's own, and two networks in one program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from passes.build import Builder
from tilewright.api import Options, compile_model
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Graph, State
from tilewright.report import render_report

MAIN = """
#include "first.h"
#include "second.h"
#include <stdio.h>

static _Alignas(16) unsigned char one[FIRST_ARENA_BYTES], two[FIRST_ARENA_BYTES];

int main(void) {
    const float x[3] = {1, 2, 3};
    float y[3];
    const void *const inputs[] = {x};
    void *const outputs[] = {y};
    first_reset();
    second_reset();
    first_reset_in(one);
    first_reset_in(two);
    for (int i = 0; i < 3; i++) first_run(inputs, outputs);
    printf("%g", (double)y[0]);
    second_run(inputs, outputs);
    printf(" %g", (double)y[0]);
    first_run_in(one, inputs, outputs);
    first_run_in(one, inputs, outputs);
    printf(" %g", (double)y[0]);
    first_run_in(two, inputs, outputs);
    printf(" %g", (double)y[0]);
    first_run(inputs, outputs);
    printf(" %g", (double)y[0]);
    first_reset();
    first_run(inputs, outputs);
    printf(" %g\\n", (double)y[0]);
    return 0;
}
"""


def sums(initial: float) -> Graph:
    """y is the sum of all inputs so far, in the type of the state."""
    b = Builder()
    x, s = b.input("x", "float32[3]"), b.input("s", "float32[3]")
    total = b.op("Add", x, s, name="s_new")
    graph = b.graph(b.op("Relu", total, name="y"), total)
    return replace(graph, states=(State("s", np.full(3, initial, np.float32)),))


def test_arenas_and_networks_have_states_of_their_own(tmp_path: Path) -> None:
    for name, initial in (("first", 0.0), ("second", 10.0)):
        compile_model(sums(initial), Options(name=name)).write(tmp_path)
    (tmp_path / "both.c").write_text(MAIN)
    sources = ["both.c", "first.c", "second.c"]
    command = ["gcc", *STRICT, *SANITIZE, "-O1", "-I.", *sources, "-lm", "-o", "both"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "both"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "11", "2", "1", "4", "1"]


@pytest.mark.parametrize("platform", ["generic", "scratchpad"])
def test_the_report_shows_states(platform: str) -> None:
    compiled = compile_model(sums(1.0), Options(platform))
    page = render_report(compiled.plan, compiled.program, title="sums")
    assert "kept from run to run: 12 bytes" in page


def test_networks_without_states_know_nothing_of_them() -> None:
    files = compile_model(replace(sums(0.0), states=()), Options()).files
    assert not any(b"reset" in data or b"STATES" in data for name, data in files.items() if name.startswith("network"))
