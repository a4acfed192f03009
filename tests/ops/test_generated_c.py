"""Generated C against the references: every example of every operator, and every kernel that has to compete.

Examples of many operators share one program, which is built twice: without optimisation for the sanitizers, and
optimised for the warnings and results that only optimisation brings about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from msgspec.structs import replace

from sampling import EVERYTHING, Sampler
from tilewright.base.dtype import INT32
from tilewright.codegen import build, lower, project_files, write_project
from tilewright.codegen.build import SANITIZE, STRICT
from tilewright.core.graph import Array, Graph, Node, Result, Step, TensorType, attrs, type_of_array
from tilewright.core.interpret import interpret
from tilewright.core.matching import binding_names, why_not
from tilewright.core.op import REGISTRY, Example, arrays_of, call_example, call_node, call_of
from tilewright.machine.kernel import Kernel
from tilewright.machine.target import Target, load_platform
from tilewright.ops import operators
from tilewright.passes.halves import halves
from tilewright.plan import PlanOptions, check, plan
from tilewright.plan.select import select
from tilewright.sim import run_on_host

DYNAMIC = {"Compress", "NonZero", "Unique", "NonMaxSuppression"}
"""Their output shape depends on data: they only exist as folded constants."""
TAKEN_APART = {"MHSA"}
"""A pass makes others of them, before anything asks for their code."""
OPERATORS_PER_PROGRAM = 25
KERNELS_PER_PROGRAM = 4
EXAMPLES_PER_KERNEL = 6
BUILDS = ((*STRICT, *SANITIZE, "-O0"), (*STRICT, "-O2"))
GENERIC = load_platform("generic")
NAMES = [name for name in operators() if name not in DYNAMIC | TAKEN_APART and REGISTRY[name].kind != "view"]


@dataclass(frozen=True)
class Sample:
    """One node with the arrays it reads: those that are fed and those that are constants of the network."""

    node: Node
    types: dict[str, TensorType]
    fed: dict[str, Array]
    constants: dict[str, Array]

    def graph(self) -> Graph:
        return network([self])


def sample(op: str, spec: Example, seed: int, name: str, constant: Sequence[str] = ()) -> Sample:
    """An example as a node; operands named by `constant` are constants even where the example feeds them."""
    arrays = arrays_of(spec, seed)
    call = call_example(REGISTRY[op], spec, arrays)
    inputs: list[str] = []
    fed: dict[str, Array] = {}
    constants: dict[str, Array] = {}
    for operand, array, given in zip(call.operands, arrays, spec.inputs, strict=True):
        inputs.append("" if array is None else f"{name}_{operand}")
        if array is not None:
            fixed = isinstance(given, np.ndarray) or operand in constant
            (constants if fixed else fed)[inputs[-1]] = array
    outputs = tuple(f"{name}_out{i}" for i in range(len(call.outputs)))
    types = {tensor: type_of_array(array) for tensor, array in (*fed.items(), *constants.items())}
    types |= dict(zip(outputs, call.outputs, strict=True))
    return Sample(Node(op, tuple(inputs), outputs, spec.attrs, name), types, fed, constants)


def network(samples: Sequence[Sample]) -> Graph:
    """One graph with all nodes, each on its own."""
    types = {name: kind for s in samples for name, kind in s.types.items()}
    constants = {name: array for s in samples for name, array in s.constants.items()}
    return Graph(
        "samples",
        tuple(name for s in samples for name in s.fed),
        tuple(output for s in samples for output in s.node.outputs),
        tuple(s.node for s in samples),
        MappingProxyType(types),
        MappingProxyType(constants),
    )


def assert_close(found: Array, expected: Array, what: str) -> None:
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    tolerance = {"float16": 2e-3, "bfloat16": 1.6e-2}.get(expected.dtype.name, 1e-5)
    np.testing.assert_allclose(
        found.astype(np.float64),
        expected.astype(np.float64),
        rtol=tolerance,
        atol=1e-4 if tolerance == 1e-5 else tolerance,
        err_msg=what,
    )


def assert_program_is_right(samples: Sequence[Sample], platform: Target, folder: Path) -> None:
    """Builds all samples as one program in each way, runs it, and compares with the references."""
    graph = halves(network(samples), platform)
    planned = plan(graph, platform, PlanOptions(seconds=0.0))
    check(planned)
    write_project(project_files([lower(planned)], platform), folder)
    fed = [array for s in samples for array in s.fed.values()]
    expected = interpret(network(samples), fed)
    nodes = {output: s.node for s in samples for output in s.node.outputs}
    for flags in BUILDS:
        built = build(folder, platform, flags=flags)
        run = run_on_host(built.executable, fed, [graph.types[o] for o in graph.outputs])
        for output, found, wanted in zip(graph.outputs, run.outputs, expected, strict=True):
            node = nodes[output]
            assert_close(found, wanted, f"{node.op} {output} {dict(node.attrs)} {node.epilogue} {flags[-1]}")


# Operators


def operator_samples(names: Sequence[str], sampler: Sampler = EVERYTHING) -> list[Sample]:
    """The examples of operators; of many, some that have the loop nest and each kernel."""
    families: dict[str, list[Sample]] = defaultdict(list)
    for name in names:
        for index, spec in enumerate(REGISTRY[name].examples):
            made = sample(name, spec, index, f"{name}_{index}")
            graph = halves(made.graph(), GENERIC)
            kernels = [select(graph, node, GENERIC).kernel for node in graph.nodes]
            families[" ".join([name, *(kernel.function for kernel in kernels if kernel)])].append(made)
    return [made for family, members in families.items() for made in sampler(members, every=4, family=family)]


OPERATOR_GROUPS = [NAMES[i : i + OPERATORS_PER_PROGRAM] for i in range(0, len(NAMES), OPERATORS_PER_PROGRAM)]


@pytest.mark.parametrize("names", OPERATOR_GROUPS, ids=[f"{names[0]}-{names[-1]}" for names in OPERATOR_GROUPS])
def test_every_example_agrees_with_the_reference(names: list[str], sampler: Sampler, tmp_path: Path) -> None:
    assert_program_is_right(operator_samples(names, sampler), GENERIC, tmp_path / "c")


# Kernels


def fits(kernel: Kernel, s: Sample) -> bool:
    graph = s.graph()
    call = call_node(graph, s.node)
    return not why_not(kernel, call, s.node, graph, binding_names(call), {})


def kernel_samples(kernel: Kernel) -> list[Sample]:
    """Examples that a kernel fits, with constants where it packs weights, spread over its element types."""
    constant = [*kernel.pack, *(["B"] if kernel.pack and "W" in kernel.pack else [])]
    chosen: dict[tuple[str, ...], list[Sample]] = defaultdict(list)
    for index, spec in enumerate(REGISTRY[kernel.op].examples):
        made = sample(kernel.op, spec, index, f"{kernel.function}_{index}", constant)
        if fits(kernel, made):
            chosen[tuple(str(t.dtype) for t in made.types.values())].append(made)
    spread = (group[i] for i in range(EXAMPLES_PER_KERNEL) for group in chosen.values() if i < len(group))
    found = [made for _, made in zip(range(EXAMPLES_PER_KERNEL), spread, strict=False)]
    return found + [fused(made, number) for number, made in enumerate(found) if kernel.epilogue]


def fused(s: Sample, seed: int) -> Sample:
    """The same node with an epilogue: a value per channel, one tensor of the result's shape, and a change of type."""
    rng = np.random.default_rng(seed)
    kind = s.types[s.node.outputs[0]]
    name = f"{s.node.name}_fused"
    channel, whole = f"{name}_channel", f"{name}_whole"
    last = kind.shape[-1]
    levels = {"div": 1 << 9, "n_levels": 256, "signed": 1, "axis": kind.rank - 1}
    steps: list[tuple[str, tuple[str | Result, ...], dict[str, int]]]
    if kind.dtype.is_float:
        constants = {channel: rng.normal(size=last).astype(kind.dtype.numpy)}
        fed = {whole: rng.normal(size=kind.shape).astype(kind.dtype.numpy)}
        steps = [("Add", (Result(0), channel), {}), ("Mul", (Result(1), whole), {}), ("Relu", (Result(2),), {})]
    else:
        scale = {f"{name}_mul": rng.integers(1, 9, last).astype(np.int32), f"{name}_add": np.zeros(1, np.int32)}
        constants = {channel: rng.integers(-99, 99, last).astype(np.int32), **scale}
        fed = {whole: rng.integers(-99, 99, kind.shape).astype(np.int32)}
        steps = [
            ("Add", (Result(0), channel), {"widen": 1}),
            ("Sub", (whole, Result(1)), {}),
            ("RequantShift", (Result(2), *scale), levels),
        ]
    types = {**s.types, **{n: type_of_array(a) for n, a in (*constants.items(), *fed.items())}}
    values = [kind]
    epilogue: list[Step] = []
    for op, inputs, settings in steps:
        operands = [values[i.number] if isinstance(i, Result) else types[i] for i in inputs]
        known = [constants.get(i) if isinstance(i, str) else None for i in inputs]
        made = call_of(REGISTRY[op], operands, attrs(**settings), values=known).outputs[0]
        epilogue.append(Step(op, inputs, made, attrs(**settings)))
        values.append(made)
    # Tensors are named after the sample they came from, so the fused one needs names of its own.
    names = {tensor: f"{name}_{tensor}" for tensor in s.types}
    renamed = {names.get(tensor, tensor): k for tensor, k in types.items()}
    node = replace(s.node.rename(names), epilogue=tuple(epilogue), name=name)
    return Sample(
        node,
        {**renamed, node.outputs[0]: epilogue[-1].type},
        {**{names[n]: a for n, a in s.fed.items()}, **fed},
        {**{names[n]: a for n, a in s.constants.items()}, **constants},
    )


def competing() -> Iterator[Kernel]:
    """Kernels that the examples alone may leave out: those with rivals, packed weights or an epilogue."""
    count: dict[str, int] = defaultdict(int)
    for kernel in GENERIC.kernels:
        count[kernel.op] += 1
    yield from (k for k in GENERIC.kernels if count[k.op] > 1 or k.pack or k.epilogue)


def kernel_groups() -> list[list[Kernel]]:
    """Groups in which every operator has one kernel only, so that it is taken whatever it costs."""
    groups: list[list[Kernel]] = []
    for kernel in competing():
        for group in groups:
            if len(group) < KERNELS_PER_PROGRAM and all(k.op != kernel.op for k in group):
                group.append(kernel)
                break
        else:
            groups.append([kernel])
    return groups


@pytest.mark.parametrize("kernels", kernel_groups(), ids=lambda group: "-".join(k.path.stem for k in group))
def test_every_kernel_agrees_with_the_reference(kernels: list[Kernel], tmp_path: Path) -> None:
    platform = replace(GENERIC, kernels=tuple(kernels))
    samples = [made for kernel in kernels for made in kernel_samples(kernel)]
    for kernel in kernels:
        mine = [s for s in samples if s.node.op == kernel.op]
        assert mine, f"no example of {kernel.op} fits {kernel.where}"
        taken = [select(s.graph(), s.node, platform).kernel for s in mine]
        assert all(k is kernel for k in taken), kernel.where
    assert_program_is_right(samples, platform, tmp_path / "c")


def test_every_kernel_is_run_by_some_test() -> None:
    graph = halves(network(operator_samples(NAMES)), GENERIC)
    chosen = [select(graph, node, GENERIC).kernel for node in graph.nodes]
    run = {kernel.path for kernel in (*chosen, *competing()) if kernel is not None}
    assert not [kernel.where for kernel in GENERIC.kernels if kernel.path not in run]


def test_integer_results_with_an_epilogue_are_narrow() -> None:
    """The fused samples really end in another type than the accumulator."""
    kernel = next(k for k in competing() if k.path.stem == "matmul_s8")
    last = kernel_samples(kernel)[-1]
    assert last.node.epilogue
    assert last.types[last.node.outputs[0]].dtype != INT32
