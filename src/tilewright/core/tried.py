"""Declarations tried on their own examples, so that a mistake in a user's operator is told where it is."""

from __future__ import annotations

from typing import Any, cast, get_args

from tilewright.core.graph import TensorType
from tilewright.core.op import Call, Example, Kind, Operator, arrays_of, call_example, evaluate
from tilewright.errors import TilewrightError


class Mistake(Exception):
    """What a declaration says that cannot be."""


def try_examples(operator: Operator) -> None:
    """Asks a declaration for all it says of each of its examples; whatever is raised is a mistake in it."""
    if operator.kind not in get_args(Kind):
        raise Mistake(f"kind is '{operator.kind}', and not one of {', '.join(get_args(Kind))}")
    for number, example in enumerate(operator.examples, 1):
        try:
            _try(operator, example)
        except Exception as reason:
            kind = "" if isinstance(reason, Mistake) else f"{type(reason).__name__}: "
            raise Mistake(f"{operator.name}, example {number}: {kind}{reason}") from reason


def _try(operator: Operator, example: Example) -> None:
    arrays = arrays_of(example)
    call = call_example(operator, example, arrays)
    # Whoever wrote the type rule may have given anything.
    outputs: Any = call.outputs
    if not isinstance(outputs, tuple) or not all(isinstance(kind, TensorType) for kind in cast("tuple[Any]", outputs)):
        raise Mistake(f"the type rule must give a tuple of types, found {outputs!r}")
    names = operator.output_names(len(call.outputs))
    if not 0 < len(call.outputs) == len(names):
        raise Mistake(f"the type rule gives {len(call.outputs)} types for the outputs '{operator.outputs}'")
    evaluate(call, arrays)
    try:
        _try_domain(call, names)
    except TilewrightError as refusal:
        # Some calls have a meaning and no code, and say so.
        if refusal.code != "no-kernel":
            raise


def _try_domain(call: Call, names: tuple[str, ...]) -> None:
    domain = call.domain()
    known = {name for name in (*call.operands, *names) if name in names or call.has(name)}
    if odd := sorted((domain.access.keys() | set(domain.outputs)) - known):
        raise Mistake(f"the domain has a map of '{odd[0]}', which is no operand")
    missing = [name for name in known - call.op.compile_time if name not in domain.access or name not in domain.shapes]
    if missing:
        raise Mistake(f"the domain has no map and shape of '{min(missing)}'")
    for name, axes in domain.access.items():
        if len(axes) != call.type(name).rank or domain.shapes[name] != call.shape(name):
            raise Mistake(f"the map of {name} has {len(axes)} axes, and {name} is {call.type(name)}")
    body = call.body
    if body is None:
        return
    if unknown := sorted(body.result.keys() ^ set(names)):
        raise Mistake(f"the body must give a result of each output, and '{unknown[0]}' is not in both")
    for part in (*body.state, *body.constants):
        if len(part) != 3:
            raise Mistake(f"state and constants of the body are triples, found {part!r}")
