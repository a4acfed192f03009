"""ZigZag's files: both forms of ports, keys that are there twice, windows that are not square."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from msgspec.structs import replace
from onnx import TensorProto, helper

from compat.zigzag_files import MACHINE, MAPPING, OLD_MACHINE, WORKLOAD, write
from tilewright.errors import TilewrightError
from tilewright.frontend.zigzag_machine import read_machine
from tilewright.frontend.zigzag_mapping import read_mapping
from tilewright.frontend.zigzag_onnx import workload_of_model
from tilewright.frontend.zigzag_workload import read_yaml_workload
from tilewright.machine.array import ArrayEngine


def machine(tmp_path: Path, text: str) -> tuple[ArrayEngine, tuple[str, ...]]:
    return read_machine(Path(write(tmp_path, "machine.yaml", text)))


def unnamed(engine: ArrayEngine) -> ArrayEngine:
    """Without the names of ports, in the order of what they move."""
    memories = tuple(
        replace(m, ports=tuple(sorted((replace(p, name="") for p in m.ports), key=lambda p: p.moves)))
        for m in engine.memories
    )
    return replace(engine, memories=memories)


def test_both_forms_of_ports_say_the_same(tmp_path: Path) -> None:
    assert unnamed(machine(tmp_path, OLD_MACHINE)[0]) == unnamed(machine(tmp_path, MACHINE)[0])


def test_keys_that_are_there_twice(tmp_path: Path) -> None:
    """The last one counts, as in the original, but not without a word."""
    engine, warnings = machine(tmp_path, MACHINE.replace("    size: 4096\n", "    size: 1\n    size: 4096\n"))
    assert engine.memories[1].bits == 4096
    assert warnings == ("machine.yaml:19: 'size' is there twice; the first one has no effect",)


def test_a_port_without_bandwidth(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match=r"register\.ports\[0\]\.bandwidth_max: is missing: a port needs"):
        machine(tmp_path, MACHINE.replace('bandwidth_max: 16, allocation: ["O, tl"]', 'allocation: ["O, tl"]'))


def test_a_dimension_that_the_array_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match="'D2' is not a dimension of the array"):
        machine(tmp_path, MACHINE.replace("served_dimensions: [D1]", "served_dimensions: [D1, D2]"))


def test_mapping(tmp_path: Path) -> None:
    workload, _ = read_yaml_workload(Path(write(tmp_path, "workload.yaml", WORKLOAD)))
    file, _ = read_mapping(Path(write(tmp_path, "mapping.yaml", MAPPING.replace("[D, 2]", '[D, "*"]'))))
    entry = file.entry(workload.layers[0])
    assert dict(entry.unrolled) == {"D1": (("K", 2),)}
    assert entry.order == (("C", 4), ("K", 2), ("D", None))
    assert [operand.slot for operand in workload.layers[0].operands] == ["O", "I1", "I2"]
    assert workload.producers(workload.layers[1]) == ("Layer0",)


def convolution() -> onnx.ModelProto:
    """A window of 1 row and 3 columns, two columns apart, over 8 rows and 10 columns."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], "wide", kernel_shape=[1, 3], strides=[1, 2], pads=[0, 1, 0, 1])
    graph = helper.make_graph(
        [node, helper.make_node("Relu", ["y"], ["z"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 10])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 6, 8, 5])],
        [helper.make_tensor("w", TensorProto.FLOAT, [6, 4, 1, 3], [0.0] * 72)],
    )
    return helper.make_model(graph)


def test_windows_that_are_not_square() -> None:
    """The original takes height for width in windows and strides, but not in results."""
    original, written = (
        workload_of_model(convolution(), "net", as_written=as_written).layers for as_written in (False, True)
    )
    assert len(written) == 1
    sizes = {"B": 1, "K": 6, "G": 1, "OX": 5, "OY": 8, "C": 4}
    assert dict(written[0].dims) == {**sizes, "FX": 3, "FY": 1}
    assert dict(original[0].dims) == {**sizes, "FX": 1, "FY": 3}
    assert (written[0].sums["IX"].first_scale, original[0].sums["IX"].first_scale) == (2, 1)
