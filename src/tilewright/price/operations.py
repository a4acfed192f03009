"""Cycles of C that is printed from expressions: loop nests, and what is fused behind nodes.

Operations are counted in the expressions of bodies, and a platform says what each kind takes (`operations` in
platform.yaml). Compilers do better or worse here and there; on average of a whole expression they do about that.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from math import prod
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from tilewright.core.domain import Affine, Axis, Domain, Whole
from tilewright.core.graph import Graph, Node, Result
from tilewright.core.op import Body, Call, call_node, call_steps, scaling, words
from tilewright.errors import TilewrightError

Counts = Mapping[str, float]
"""How often each kind of operation occurs."""
LIMITS = 2
"""Choices of a result that is kept between a lower and an upper limit."""
WRITTEN_OUT = 2
"""Terms of a sum that compilers write out one by one instead of a loop: more would be more code."""

_TOKEN = re.compile(
    r"\(\s*(?:u?int\d+_t|int|float|double|bool)\s*\)|[A-Za-z_]\w*(?=\s*\()|<<|>>|[<>=!]=|&&|\|\||[-+*/%<>?&|^]"
)
_KEYWORDS = frozenset({"for", "INT32_C", "INT64_C", "UINT32_C", "UINT64_C"})
_INSTRUCTIONS = frozenset({"fabsf"})
_KINDS = {"*": "multiply", "/": "divide", "%": "divide", "?": "choose", "<<": "shift", ">>": "shift"}
_FOLDED = re.compile(r"\b\d[\d.]*f? / \d[\d.]*f?\b")
_NUMBER = "3.0f"
"""Stands for any number that is the same for all points."""
_SAME = re.compile(r"\(3\.0f(?: [-+*/] 3\.0f)+\)")
_POWER = re.compile(r"/ (?:\(float\))?(?:1|2|4|8|16|32|64|128|256|512|1024|2048|4096)\b")
_KNOWN = re.compile(r"[/%] (?:\((?:u?int\d+_t|int|float)\))?\d[\w.]*")
_TABLE = re.compile(r"\b\w+_at\(")
_WIDE = re.compile(r"\bu?int64_t\b")
_REAL_FUNCTION = re.compile(r"\w+f")
_FLOAT = re.compile(r"\bfloat\b|\bdouble\b|[\d.]f\b")


@lru_cache(maxsize=4096)
def expression(text: str, *, wide: bool, real: bool, once: bool = False) -> Counter[str]:
    """Operations of an expression or statement; `wide` ones are of 64 bits, `real` ones of floating-point numbers.

    With `once`, what is written several times is computed once. All who ask get the same result, and leave it as it is.
    """
    text = _once(text) if once else text
    found: Counter[str] = Counter()
    if real and (place := _TABLE.search(text)):
        # Where an element of a table lies is worked out with integers.
        end = _closed(text, place.end())
        inside, text = text[place.end() : end], f"{text[: place.start()]}{place[0]}{text[end:]}"
        found += expression(inside, wide=wide, real=False) + expression(text[place.end() :], wide=wide, real=True)
        text = text[: place.end()]
    # What is known is divided by the compiler; a division by a power of two is a multiplication, or a shift, and one of
    # integers by any known number is one, too.
    text = _FOLDED.sub("1", text)
    for token in _TOKEN.findall((_POWER if real else _KNOWN).sub("* 1", text)):
        if token.startswith("("):
            continue
        if token[0].isalpha() or token[0] == "_":
            # Elements of a table are read by a macro of its own.
            name = "lookup" if token.endswith("_at") else "real plain" if token in _INSTRUCTIONS else token
            found[name] += token not in _KEYWORDS
            continue
        kind = _KINDS.get(token, "plain")
        found[f"wide {kind}" if wide else f"real {kind}" if real else kind] += 1
    return +found


def _closed(text: str, begin: int) -> int:
    """Where the bracket ends that was opened before."""
    depth = 1
    for at in range(begin, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if not depth:
            return at
    return len(text)


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


def _folded(text: str, call: Call, *, real: bool) -> str:
    """An expression without what compilers compute before loops: from numbers that are the same for all points."""
    kinds = dict(zip(call.operands, call.inputs, strict=True))
    for name in words(text) & kinds.keys():
        kind = kinds[name]
        # Integers are divided by what is known when compiling as by no others.
        if kind is not None and kind.size == 1 and (real or call.baked(name) is not None):
            text = re.sub(rf"(?:\(float\))?\b{name}\b", _NUMBER, text)
    return _SAME.sub(_NUMBER, text)


def result_counts(body: Body, call: Call, *, once: bool = False) -> Counter[str]:
    """Operations of a result: the start of its state, and its expressions."""
    real = call.outputs[0].dtype.is_float
    found: Counter[str] = Counter()
    for ctype, _, init in body.state:
        wide = _WIDE.search(ctype) is not None or _WIDE.search(init) is not None
        found += expression(init, wide=wide, real=_FLOAT.search(f"{ctype} {init}") is not None, once=once)
    for result in body.result.values():
        wide, floats = call.outputs[0].dtype.bits > 32, real or _FLOAT.search(result) is not None
        text = _folded(result, call, real=floats) if once else result
        found += expression(text, wide=wide or _WIDE.search(result) is not None, real=floats, once=once)
    return found


def update_counts(body: Body, call: Call) -> Counter[str]:
    """Operations of a point of a reduction."""
    wide = any(_WIDE.search(ctype) is not None for ctype, _, _ in body.state)
    return expression(body.update, wide=wide, real=call.outputs[0].dtype.is_float)


def read_counts(body: Body, call: Call, operand: str, *, once: bool = False) -> Counter[str]:
    """What it takes to read an element of an operand from memory; known numbers are in the code.

    With `once`, what is the same for all points is read before the loops.
    """
    domain, found = call.domain(), Counter[str]()
    kind = dict(zip(call.operands, call.inputs, strict=True))[operand]
    if kind is None or operand not in domain.access or not body.reads(operand) or call.baked(operand) is not None:
        return found
    axes = domain.access[operand]
    if (once and kind.size == 1) or any(isinstance(axis, Whole) for axis in axes):
        return found
    found["load"] += 1
    if operand in body.fill:
        found["guard"] += sum(_leaves(domain, axis, n) for axis, n in zip(axes, domain.shapes[operand], strict=True))
    found[kind.dtype.load] += bool(kind.dtype.load)
    return +found


def point_body(call: Call) -> Body | None:
    """What a nest does at its points; where these are of several kinds, at those inside of its first operand."""
    body = call.body
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


def _leaves(domain: Domain, axis: Axis, extent: int) -> bool:
    """Whether some points of the domain lie outside of an axis, so that each has to be looked at."""
    if isinstance(axis, Whole):
        return False
    ends = [(0, coefficient * (domain.dims[name] - 1)) for name, coefficient in axis.terms]
    low = (axis.constant + sum(min(pair) for pair in ends)) // axis.divisor
    return axis.exact or low < 0 or (axis.constant + sum(max(pair) for pair in ends)) // axis.divisor >= extent


def step_counts(graph: Graph, node: Node, *, once: bool = False) -> Counter[str]:
    """Operations of all that is fused behind a node, for each result."""
    found: Counter[str] = Counter()
    for step, call in zip(node.epilogue, call_steps(graph, node), strict=True):
        found["step"] += 1
        body = call.body
        if body is None:
            continue
        found += result_counts(body, call, once=once) + update_counts(body, call)
        if once:
            found += _known_products(body, call)
        if not once:
            found["power"] += _powers(body, call)
            found["real"] += _becomes_real(call)
        read = (o for o, name in zip(call.operands, step.inputs, strict=True) if not isinstance(name, Result))
        for operand in read:
            found += read_counts(body, call, operand)
    if not once:
        # Behind kernels, floats take as long as integers.
        for name in [name for name in found if name.startswith("real ") and name != "real divide"]:
            found[name.removeprefix("real ")] += found.pop(name)
    return found


def gives_bytes(graph: Graph, node: Node) -> bool:
    """Whether all that is fused behind a node is to scale sums back to bytes; kernels may have a faster way for it."""
    calls = call_steps(graph, node)
    bodies = [call.body for call in calls if call.body is not None]
    return len(bodies) == len(calls) and scaling(bodies) is not None


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


class NestCounts(Struct, frozen=True):
    """Operations of a loop nest."""

    result: Counts
    """Of each result."""
    term: Counts = field(default_factory=dict[str, float])
    """Of each term, where results are sums of many."""
    turn: Counts = field(default_factory=dict[str, float])
    """At each start of the innermost loop: of what stays the same in it."""

    @property
    def items(self) -> tuple[tuple[str, float], ...]:
        return (*self.result.items(), *self.term.items(), *self.turn.items())


def nest_counts(graph: Graph, node: Node) -> NestCounts:
    """Operations of a loop nest."""
    call = call_node(graph, node)
    body, domain = point_body(call), call.domain()
    if body is None:
        return NestCounts({"point": 1})
    each = result_counts(body, call, once=True)
    if each["choose"] == LIMITS:
        # Behind the lower one, nothing is compared with the upper one.
        each["choose"], each["either"] = 1, 1
    each["real"] += _becomes_real(call)
    each += step_counts(graph, node, once=True)
    each += _known_products(body, call)
    stored = graph.types[node.outputs[0]].dtype.store if node.outputs[0] else ""
    each[stored] += bool(stored)
    terms = prod(domain.dims[name] for name in domain.reduction)
    summed = bool(body.update) and terms > WRITTEN_OUT
    loops = [n for n, size in domain.dims.items() if size > 1 and (n in domain.reduction) == summed]
    inner = loops[-1] if loops else ""
    term, turn, fixed = Counter[str](), Counter[str](), True
    for operand in call.operands:
        dims = _dims(domain, operand)
        reads = read_counts(body, call, operand, once=True)
        updates = reads and operand in words(body.update)
        fixed = fixed and not (updates and inner in dims)
        if inner not in dims:
            turn += reads
        elif summed:
            term += reads
        else:
            each += _times(reads, terms)
    if each["load"] and copies(graph, node):
        return NestCounts(+(each - Counter({"load": 1}) + Counter({"copy": 1})), {}, +turn)
    if not body.update:
        return NestCounts(+(each + Counter({"point": 1})), {}, +turn)
    updates = update_counts(body, call)
    if summed:
        ends = Counter({"end": _ends(body, call, domain)})
        return NestCounts(+(each + ends + Counter({"result": 1})), +(term + updates + Counter({"term": 1})), +turn)
    # An index that all results of a loop have in common is worked out before it.
    if fixed and not domain.reduction:
        turn += updates
    else:
        each += _times(updates, terms)
    return NestCounts(+(each + Counter({"point": 1})), {}, +turn)


def copies(graph: Graph, node: Node) -> bool:
    """Whether points of a nest do nothing but copy an element."""
    call = call_node(graph, node)
    body = point_body(call)
    if body is None or body.update or body.state or node.epilogue:
        return False
    kinds = dict(zip(call.operands, call.inputs, strict=True))
    kind = kinds.get(next(iter(body.result.values())))
    return len(body.result) == 1 and kind is not None and kind.dtype == call.outputs[0].dtype


def _times(counts: Counter[str], times: int) -> Counter[str]:
    return Counter({name: count * times for name, count in counts.items()})


def _dims(domain: Domain, operand: str) -> set[str]:
    """Dimensions along which an operand is walked."""
    axes = domain.access.get(operand, ())
    return {name for axis in axes if isinstance(axis, Affine) for name in axis.dims}


def _ends(body: Body, call: Call, domain: Domain) -> int:
    """How many ends of loops over a sum depend on the result: terms outside of operands are left out."""
    found = 0
    for operand in streams(call):
        if operand not in body.fill:
            for axis, extent in zip(domain.access[operand], domain.shapes[operand], strict=True):
                reduced = isinstance(axis, Affine) and {*axis.dims} & {*domain.reduction}
                found += bool(reduced) and _leaves(domain, axis, extent)
    return found


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


BASIC = frozenset(
    {
        *(
            "point",
            "copy",
            "term",
            "result",
            "end",
            "step",
            "load",
            "lookup",
            "guard",
            "if",
            "real",
            "either",
            "add shifted",
        ),
        *(f"{kind}{name}" for kind in ("", "real ", "wide ") for name in ("plain", *_KINDS.values())),
    }
)
"""Kinds of operations that are no calls of functions."""


def is_function(name: str) -> bool:
    """Whether a kind of operation is a call."""
    return name not in BASIC


def functions(call: Call) -> tuple[str, ...]:
    """What the body of a call calls, where it has one."""
    try:
        body = call.body
    except TilewrightError:
        # Some have one for some of their attributes.
        return ()
    counts = result_counts(body, call) + update_counts(body, call) if body is not None else Counter[str]()
    return tuple(name for name in counts if is_function(name))


def cycles(counts: Counts, costs: Mapping[str, float]) -> float:
    """What operations take; those that a platform does not name take nothing."""
    return sum(count * costs.get(name, 0.0) for name, count in counts.items())


def begun(steps: Counts) -> Counts:
    """What code of steps behind kernels is made of, which comes into the caches."""
    return {
        "begin step": steps.get("step", 0.0),
        "begin function": sum(_REAL_FUNCTION.fullmatch(n) is not None for n in steps),
    }


def behind(name: str, *, alone: bool) -> str:
    """What an operation behind a kernel is called among measured costs.

    Kernels that are `alone`, without sums, are short: the compiler has registers left for what is fused behind them.
    Functions of floats take as long behind all.
    """
    return f"alone {name}" if alone and not _REAL_FUNCTION.fullmatch(name) else name
