"""A model whose every tensor is an output, for runtimes that show nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import onnx


def with_all_outputs(path: Path) -> tuple[bytes, tuple[str, ...]]:
    """The model of a file as bytes, weights included, and the names of its outputs: all that its nodes make."""
    model = cast("Any", onnx).load(path)
    given = {output.name for output in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in given:
                given.add(name)
                model.graph.output.append(onnx.ValueInfoProto(name=name))
    return model.SerializeToString(), tuple(output.name for output in model.graph.output)
