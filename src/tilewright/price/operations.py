"""Cycles of C that is printed from expressions: loop nests, and what is fused behind nodes.

Operations are counted in the expressions of bodies, and a platform says what each kind takes (`operations` in
platform.yaml). Compilers do better or worse here and there; on average of a whole expression they do about that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tilewright.base.dtype import DType
from tilewright.core.domain import Axis, Domain, Whole
from tilewright.core.graph import Graph, Node, Result, TensorType
from tilewright.core.op import Body, Call, call_node, call_steps

Counts = Mapping[str, float]
"""How often each kind of operation occurs."""
LIMITS = 2
"""Choices of a result that is kept between a lower and an upper limit."""

_TOKEN = re.compile(
    r"\(\s*(?:u?int\d+_t|int|float|double|bool)\s*\)|[A-Za-z_]\w*(?=\s*\()|<<|>>|[<>=!]=|&&|\|\||[-+*/%<>?&|^]"
)
_KINDS = {"*": "multiply", "/": "divide", "%": "divide", "?": "choose", "<<": "shift", ">>": "shift"}
_FOLDED = re.compile(r"\b\d[\d.]*f? / \d[\d.]*f?\b")
_POWER = re.compile(r"/ (?:\(float\))?(?:1|2|4|8|16|32|64|128|256|512|1024|2048|4096)\b")
_WIDE = re.compile(r"\bu?int64_t\b")
_FLOAT = re.compile(r"\bfloat\b|\bdouble\b|[\d.]f\b")


def expression(text: str, *, wide: bool, real: bool, once: bool = False) -> Counter[str]:
    """Operations of an expression or statement; `wide` ones are of 64 bits, `real` ones of floating-point numbers.

    With `once`, what is written several times is computed once.
    """
    text = _once(text) if once else text
    found: Counter[str] = Counter()
    # What is known is divided by the compiler; a division by a power of two is a multiplication, or a shift.
    for token in _TOKEN.findall(_POWER.sub("* 1", _FOLDED.sub("1", text))):
        if token.startswith("("):
            continue
        if token[0].isalpha() or token[0] == "_":
            found[token] += 1
            continue
        kind = _KINDS.get(token, "plain")
        found[f"wide {kind}" if wide else f"real {kind}" if real and kind == "divide" else kind] += 1
    return found


def _once(text: str) -> str:
    """Without what stands in the same brackets a second time."""
    opened: list[int] = []
    parts: set[str] = set()
    for at, letter in enumerate(text):
        if letter == "(":
            opened.append(at)
        elif letter == ")" and opened:
            parts.add(text[opened.pop() : at + 1])
    for part in sorted((part for part in parts if " " in part), key=len, reverse=True):
        head, found, tail = text.partition(part)
        text = head + found + tail.replace(part, "again")
    return text


def result_counts(body: Body, call: Call, *, once: bool = False) -> Counter[str]:
    """Operations of a result: the start of its state, and its expressions."""
    real = call.outputs[0].dtype.is_float
    found: Counter[str] = Counter()
    for ctype, _, init in body.state:
        wide = _WIDE.search(ctype) is not None or _WIDE.search(init) is not None
        found += expression(init, wide=wide, real=_FLOAT.search(f"{ctype} {init}") is not None, once=once)
    for text in body.result.values():
        wide = call.outputs[0].dtype.bits > 32 or _WIDE.search(text) is not None
        found += expression(text, wide=wide, real=real or _FLOAT.search(text) is not None, once=once)
    return found


def update_counts(body: Body, call: Call) -> Counter[str]:
    """Operations of a point of a reduction."""
    wide = any(_WIDE.search(ctype) is not None for ctype, _, _ in body.state)
    return expression(body.update, wide=wide, real=call.outputs[0].dtype.is_float)


def read_counts(body: Body, call: Call, *, once: bool = False) -> Counter[str]:
    """Elements that a point reads from memory; known numbers are in the code.

    With `once`, what is the same for all points is read before the loops.
    """
    domain = call.domain()
    found: Counter[str] = Counter()
    for operand, kind in zip(call.operands, call.inputs, strict=True):
        if kind is None or operand not in domain.access or not body.reads(operand) or call.baked(operand) is not None:
            continue
        if once and kind.size == 1:
            continue
        table = any(isinstance(axis, Whole) for axis in domain.access[operand])
        found["lookup" if table else "load"] += 1
        if operand in body.fill:
            found["guard"] += sum(_leaves(domain, axis, n) for axis, n in zip(*_axes(domain, operand), strict=True))
        found["convert"] += bool(kind.dtype.load)
    return found


def point_body(call: Call) -> Body | None:
    """What a nest does at its points; where these are of several kinds, at those inside of its first operand."""
    body = call.op.body(call) if call.op.body is not None else None
    if body is None or not body.inside:
        return body
    inside = next(iter(body.inside.values()))
    return replace(body, result=dict.fromkeys(body.result, inside), inside=MappingProxyType({}))


def streams(call: Call) -> tuple[str, ...]:
    """Operands that a nest walks through: those of more than one element."""
    body = point_body(call)
    domain = call.domain()
    return tuple(
        operand
        for operand, kind in zip(call.operands, call.inputs, strict=True)
        if kind is not None
        and kind.size > 1
        and operand in domain.access
        and (body is None or body.reads(operand))
        and call.baked(operand) is None
        and not any(isinstance(axis, Whole) for axis in domain.access[operand])
    )


def _axes(domain: Domain, operand: str) -> tuple[Sequence[Axis], Sequence[int]]:
    return domain.access[operand], domain.shapes[operand]


def _leaves(domain: Domain, axis: Axis, extent: int) -> bool:
    """Whether some points of the domain lie outside of an axis, so that each has to be looked at."""
    if isinstance(axis, Whole):
        return False
    ends = [(0, coefficient * (domain.dims[name] - 1)) for name, coefficient in axis.terms]
    low = (axis.constant + sum(min(pair) for pair in ends)) // axis.divisor
    return axis.exact or low < 0 or (axis.constant + sum(max(pair) for pair in ends)) // axis.divisor >= extent


def step_counts(graph: Graph, node: Node, result: TensorType, *, once: bool = False) -> Counter[str]:
    """Operations of all that is fused behind a node, for each result."""
    found: Counter[str] = Counter()
    for step, call in zip(node.epilogue, call_steps(graph, node, result), strict=True):
        found["step"] += 1
        if call.op.body is None:
            continue
        body = call.op.body(call)
        found += result_counts(body, call, once=once) + update_counts(body, call)
        if once:
            found += _known_products(body, call)
        found["power"] += _powers(body, call)
        if not once:
            found["real"] += _becomes_real(call)
        reads = read_counts(body, call)
        own = sum(isinstance(name, Result) for name in step.inputs)
        reads["load"] = max(reads["load"] - own, 0)
        found += reads
    return found


def _becomes_real(call: Call) -> bool:
    """Whether integers become floats."""
    return call.inputs[0] is not None and call.outputs[0].dtype.is_float and call.inputs[0].dtype.is_integer


def _powers(body: Body, call: Call) -> int:
    """How many factors are known powers of two: compilers shift instead."""
    return sum(value > 1 and value.bit_count() == 1 for value, _ in _known_factors(body, call, r"\w+"))


def _known_factors(body: Body, call: Call, cast: str) -> list[tuple[int, int]]:
    """Known integers that expressions multiply with, and how often; `cast` is the type to which they may be cast."""
    text = " ".join([*(init for _, _, init in body.state), *body.result.values()])
    found: list[tuple[int, int]] = []
    for name, kind in zip(call.operands, call.inputs, strict=True):
        known = call.baked(name) if kind is not None and kind.dtype.is_integer else None
        count = len(re.findall(rf"\* (?:\({cast}\))?{name}\b", text))
        if known is not None and count:
            found.append((int(known), count))
    return found


def nest_counts(graph: Graph, node: Node) -> tuple[Counter[str], Counter[str]]:
    """Operations of each result of a loop nest, and of each point where that sums up many."""
    call = call_node(graph, node)
    body = point_body(call)
    if body is None:
        return Counter({"point": 1}), Counter()
    each = result_counts(body, call, once=True)
    if each["choose"] == LIMITS:
        # Behind the lower one, nothing is compared with the upper one.
        each["choose"], each["either"] = 1, 1
    each["real"] += _becomes_real(call)
    each += step_counts(graph, node, call.outputs[0], once=True)
    each += _known_products(body, call)
    each["convert"] += bool(graph.types[node.outputs[0]].dtype.store) if node.outputs[0] else 0
    reads = read_counts(body, call, once=True)
    if not body.update:
        return each + reads + Counter({"point": 1}), Counter()
    updates = update_counts(body, call)
    if reads["lookup"]:
        # An index is read and worked out once for all results that it selects.
        reads["load"] = 0
        updates = Counter({name: count for name, count in updates.items() if not name.startswith("wide")})
    return each + Counter({"result": 1}), updates + reads + Counter({"term": 1})


def _known_products(body: Body, call: Call) -> Counter[str]:
    """Instructions beyond one of products of integers with known numbers: compilers shift and add up to four times."""
    found: Counter[str] = Counter()
    for value, count in _known_factors(body, call, "u?int32_t"):
        found["add shifted"] += count * max(_shifts(value) - 1, 0)
    return +found


def _shifts(factor: int) -> int:
    """Instructions of a product of an integer with a known one: shifts and additions, or a product."""
    rest = abs(factor)
    even = rest > 0 and rest % 2 == 0
    digits = 0
    while rest:
        # Digits of 1, 0 and -1, of which no neighbours are both other than 0.
        if rest % 2:
            digits += 1
            rest -= 2 - rest % 4
        rest //= 2
    count = {0: 0, 1: 0, 2: 2, 3: 4}.get(digits, 5) + even
    return count if count < 5 else 1


def cycles(counts: Counts, costs: Mapping[str, float]) -> float:
    """What operations take; those that a platform does not name take nothing."""
    return sum(count * costs.get(name, 0.0) for name, count in counts.items())


def fused_cycles(
    counts: Counts, costs: Mapping[str, float], kind: DType, *, alone: bool, counted: bool = True
) -> float:
    """What operations behind a kernel take; `kind` is that of its own results.

    Where a step is `counted` by the kernel's formula, what they take beyond it. Kernels that are `alone`, without sums,
    are short: the compiler has registers left for what is fused behind them.
    """
    known = "counted real" if not kind.is_integer else "counted" if kind.bits > 8 else "counted bytes"
    if not alone:
        return max(cycles(counts, costs) - costs[known] * counted, 0.0)
    share, wide = costs.get("alone", 1.0), costs.get("alone wide", 1.0)
    own = {name: costs.get(name, 0.0) * (wide if name.startswith("wide") else share) for name in (*counts, known)}
    if not kind.is_integer:
        return max(cycles(counts, own) - own[known] * counted, 0.0)
    own |= {name: costs[f"alone {name}"] for name in own if f"alone {name}" in costs}
    return cycles(counts, own) - own[known] * counted
