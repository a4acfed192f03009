"""Layers in a short form: a YAML file of equations with sizes, or one equation by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from tilewright.base.descriptions import read_yaml, stem_of
from tilewright.base.files import is_file
from tilewright.base.reader import Reader
from tilewright.core.equation import LayerText, parse_equation, read_layer
from tilewright.core.workload import Layer, Workload
from tilewright.errors import TilewrightError


def read_workload_file(path: Path) -> Workload:
    """The layers of a file: `layers:`, each with `equation`, `sizes`, and `where`, `bits`, `density` as needed."""
    if not is_file(path):
        raise TilewrightError(
            "missing-file", f"{path} does not exist", help="name an ONNX file or a YAML file of layers"
        )
    top = Reader(path, read_yaml(path, "bad-workload"), code="bad-workload")
    items = top.items("layers")
    top.finish()
    texts = [_text(item, f"layer{index}") for index, item in enumerate(items)]
    names = [text.name for text in texts]
    for item, text in zip(items, texts, strict=True):
        for operand, sources in text.sources.items():
            for source in sources:
                if source not in names:
                    raise item.wrong(f"from.{operand}", f"there is no layer '{source}'")
    return Workload(stem_of(path), tuple(map(read_layer, texts)))


def equation_layer(equation: str, sizes: Mapping[str, int], bits: Mapping[str, int] | None = None) -> Layer:
    """A layer of one equation; the last input is the constant one. `where` parts follow after commas."""
    text, *where = (part.strip() for part in equation.split(","))
    constants = frozenset([name for name, _ in parse_equation(text)[1]][1:][-1:])
    layer = read_layer(
        LayerText("layer", "equation", text, sizes, tuple(where), bits=_bits(text, bits or {}), constants=constants)
    )
    for dim, size in layer.dims.items():
        if size > 1 and not any(dim in (*operand.dims, *layer.summed(operand)) for operand in layer.operands):
            raise TilewrightError(
                "unknown-dimension",
                f"{dim} has a size, but the equation has no such dimension",
                help=f"its operands are indexed by {', '.join(d for d in layer.dims if d != dim)}",
            )
    return layer


def _text(item: Reader, name: str) -> LayerText:
    equation = item.text("equation")
    inputs = [operand for operand, _ in parse_equation(equation)[1]]
    text = LayerText(
        name=item.text("name") if item.has("name") else name,
        kind=item.text("kind") if item.has("kind") else "equation",
        equation=equation,
        dims={dim.upper(): size for dim, size in _numbers(item, "sizes").items()},
        relations=tuple(item.strings("where")) if item.has("where") else (),
        bits=_bits(equation, _numbers(item, "bits")),
        sources=_sources(item, inputs),
        constants=frozenset(item.strings("constants")) if item.has("constants") else frozenset(),
        slots={name: item.part("slots").text(name) for name in item.mapping("slots")} if item.has("slots") else {},
        axis_sizes={axis.upper(): size for axis, size in _numbers(item, "axes").items()},
        density=_density(item, equation),
    )
    for operand in sorted(text.constants - set(inputs)):
        raise item.wrong("constants", f"the equation has no input '{operand}' (inputs: {', '.join(inputs)})")
    item.finish()
    return text


def _bits(equation: str, given: Mapping[str, int]) -> dict[str, int]:
    """Bits of all operands: bytes, and sums of 32 bits, where nothing else is said."""
    (output, _), inputs = parse_equation(equation)
    return {output: 32, f"{output}_final": 8, **dict.fromkeys((name for name, _ in inputs), 8), **given}


def _density(item: Reader, equation: str) -> dict[str, float]:
    """The part of each operand that is not zero."""
    if not item.has("density"):
        return {}
    output, inputs = parse_equation(equation)
    operands = [name for name, _ in (output, *inputs)]
    part = item.part("density")
    found = {name: part.number(name) for name in item.mapping("density")}
    for name, value in found.items():
        if name not in operands:
            raise item.wrong(f"density.{name}", f"the equation has no such operand (it has {', '.join(operands)})")
        if not 0 <= value <= 1:
            raise item.wrong(f"density.{name}", f"must be between 0 and 1, found {value}")
    return found


def _numbers(item: Reader, key: str) -> dict[str, int]:
    if key != "sizes" and not item.has(key):
        return {}
    part = item.part(key)
    return {name: part.integer(name, 0 if key == "bits" else 1) for name in item.mapping(key)}


def _sources(item: Reader, inputs: list[str]) -> dict[str, tuple[str, ...]]:
    if not item.has("from"):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for operand, sources in item.mapping("from").items():
        if operand not in inputs:
            raise item.wrong(f"from.{operand}", f"the equation has no such input (inputs: {', '.join(inputs)})")
        listed = cast("list[Any]", sources) if isinstance(sources, list) else [sources]
        found[operand] = tuple(str(source) for source in listed)
    return found


def print_workload(workload: Workload) -> str:
    """Layers that were written as equations, as the text of a file."""
    lines = ["layers:", *(line for layer in workload.layers for line in _lines(layer))]
    return "\n".join(lines) + "\n"


def _lines(layer: Layer) -> Iterator[str]:
    bits = {operand.name: operand.bits for operand in layer.operands}
    bits[f"{layer.output.name}_final"] = layer.output.final_bits
    sources = {
        operand.name: f"[{', '.join(map(_quoted, operand.sources))}]" for operand in layer.inputs if operand.sources
    }
    constants = [operand.name for operand in layer.inputs if operand.constant]
    yield f"  - name: {_quoted(layer.name)}"
    yield f"    kind: {_quoted(layer.kind)}"
    yield f"    equation: {_quoted(layer.equation)}"
    if layer.sums:
        terms = (f"{s.name} = {s.first_scale}*{s.first} + {s.second_scale}*{s.second}" for s in layer.sums.values())
        yield f"    where: [{', '.join(terms)}]"
        yield f"    axes: {_flow({name: found.size for name, found in layer.sums.items()})}"
    yield f"    sizes: {_flow(layer.dims)}"
    yield f"    bits: {_flow(bits)}"
    yield f"    slots: {_flow({operand.name: operand.slot for operand in layer.operands})}"
    if any(operand.density < 1 for operand in layer.operands):
        yield f"    density: {_flow({operand.name: operand.density for operand in layer.operands})}"
    if constants:
        yield f"    constants: [{', '.join(constants)}]"
    if sources:
        yield f"    from: {_flow(sources)}"


def _quoted(text: str) -> str:
    return yaml.safe_dump(text, width=10**6, default_style='"').strip()


def _flow(values: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in values.items()) + "}"
