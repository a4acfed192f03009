"""The Reduce operators: one accumulation over the axes that `axes` lists, or over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType

import numpy as np

from tilewright.base.dtype import BOOL, FLOAT64, INT32, DType
from tilewright.core.domain import Axis, Domain, at, axis_names, dim, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import Body, Call, Example, Operator, declare, example
from tilewright.ops.rules import highest, lowest, truncate, truncated


def reduced_axes(call: Call, rank: int) -> tuple[int, ...]:
    """The axes that go away; without a list all of them, or none where `noop_with_empty_axes` says so."""
    listed = [int(axis) for axis in call.value("axes").reshape(-1)] if call.has("axes") else []
    if not listed:
        return () if call.int("noop_with_empty_axes") else tuple(range(rank))
    for axis in listed:
        if not -rank <= axis < rank:
            raise call.error("bad-attribute", f"axis {axis} is outside a tensor of rank {rank}")
    return tuple(sorted({axis % rank for axis in listed}))


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], *, keep: bool) -> tuple[int, ...]:
    """The shape after a reduction; a reduced axis stays with extent 1, or goes."""
    return tuple(1 if i in axes else extent for i, extent in enumerate(shape) if keep or i not in axes)


def reduction_domain(
    call: Call, axes: tuple[int, ...], *, keep: bool, operand: str = "data", output: str = "reduced"
) -> Domain:
    """Loops over every axis of the operand; the reduced ones do not index the output."""
    shape = call.shape(operand)
    names = axis_names(len(shape))
    result: list[Axis] = [at(0) if i in axes else dim(n) for i, n in enumerate(names) if keep or i not in axes]
    # The printer takes loops in order, and a reduction is innermost.
    order = sorted(range(len(shape)), key=lambda i: i in axes)
    return domain(
        {names[i]: shape[i] for i in order},
        {operand: [dim(n) for n in names], output: result},
        {operand: shape, output: call.shape(output)},
        output,
        products={"KEPT": [names[i] for i in order if i not in axes], "REDUCED": [names[i] for i in axes]},
    )


def _domain(call: Call) -> Domain:
    return reduction_domain(call, reduced_axes(call, call.type("data").rank), keep=bool(call.int("keepdims")))


def _infer(call: Call) -> tuple[TensorType, ...]:
    data = call.type("data")
    if data.dtype == BOOL and call.op.name not in ("ReduceMax", "ReduceMin"):
        raise call.error("type-mismatch", "bool is not a number")
    kind = INT32 if call.attrs.get("widen") and data.dtype.bits < 32 else data.dtype
    shape = reduced_shape(data.shape, reduced_axes(call, data.rank), keep=bool(call.int("keepdims")))
    return (TensorType(kind, shape),)


Text = str | Callable[[DType], str]


def _declare(
    name: str,
    reference: Callable[[Array, tuple[int, ...]], Array],
    body: Callable[[Call], Body],
    examples: tuple[Example, ...],
    attrs: Mapping[str, Attr] = MappingProxyType({}),
) -> None:
    def evaluate(call: Call, data: Array, _axes: Array | None = None) -> Array:
        axes, kind = reduced_axes(call, data.ndim), call.outputs[0].dtype
        if kind.is_float:
            return reference(data.astype(np.float64), axes)
        result = reference(data.astype(kind.numpy), axes)
        return truncate(result, kind) if result.dtype.kind == "f" else result

    declare(
        Operator(
            name,
            "data axes?",
            "reduced",
            _infer,
            _domain,
            evaluate,
            examples,
            MappingProxyType({"keepdims": 1, "noop_with_empty_axes": 0, **attrs}),
            "reduce",
            body,
            frozenset({"axes"}),
        )
    )


def _accumulating(
    update: Text,
    *,
    initial: str = "0",
    result: str = "acc",
    more: tuple[tuple[str, str], ...] = (),
    rounds: bool = False,
) -> Callable[[Call], Body]:
    """A body with the accumulator `acc`. In the texts `{A}` is its type and `{f}` the suffix of its math functions;
    `more` are other variables of that type with initial values. `rounds` says that the result of integers is none: then
    it is computed in double and truncated."""

    def body(call: Call) -> Body:
        source, kind = call.type("data").dtype, call.outputs[0].dtype
        # Unsigned arithmetic wraps where signed arithmetic would be undefined.
        accumulator = kind.compute if kind.is_float else "double" if rounds else f"uint{max(32, kind.bits)}_t"
        suffix = "f" if accumulator == "float" else ""

        def fill(text: str) -> str:
            return text.replace("{A}", accumulator).replace("{f}", suffix)

        final = fill(result)
        if rounds and kind.is_integer:
            final = truncated(f"({final})", FLOAT64, kind)
        state = tuple((accumulator, name, fill(value)) for name, value in (("acc", initial), *more))
        return Body(MappingProxyType({"reduced": final}), state, fill(update(source) if callable(update) else update))

    return body


def _mean_body(call: Call) -> Body:
    kind, count = call.outputs[0].dtype, prod(call.shape("data")[a] for a in reduced_axes(call, call.type("data").rank))
    if kind.is_float:
        state, result = (kind.compute, "acc", "0"), f"acc / ({kind.compute}){count}"
    elif kind.kind == "uint":
        state, result = ("uint64_t", "acc", "0"), f"acc / {max(1, count)}"
    else:
        state, result = ("uint64_t", "acc", "0"), f"(int64_t)acc / {max(1, count)}"
    return Body(MappingProxyType({"reduced": result}), (state,), _ADD.replace("{A}", state[0]))


def _mean(data: Array, axes: tuple[int, ...]) -> Array:
    if data.dtype.kind == "f":
        return np.sum(data, axis=axes, keepdims=True) / prod(data.shape[axis] for axis in axes)
    count = max(1, prod(data.shape[axis] for axis in axes))
    total = np.sum(data.astype(np.int64), axis=axes, keepdims=True)
    return np.sign(total) * (np.abs(total) // count)


def _extreme_body(symbol: str, worst: Callable[[DType], str]) -> Callable[[Call], Body]:
    def body(call: Call) -> Body:
        data, kind = call.type("data"), call.outputs[0].dtype
        better, first = f"data {symbol} best", worst(kind)
        if kind.is_float and prod(data.shape[axis] for axis in reduced_axes(call, data.rank)):
            better, first = f"{better} || best != best", "NAN"
        state = ((kind.compute, "best", first),)
        return Body(MappingProxyType({"reduced": "best"}), state, f"if ({better}) {{ best = data; }}")

    return body


def _extreme(function: np.ufunc, *, largest: bool) -> Callable[[Array, tuple[int, ...]], Array]:
    """The reference of a maximum or minimum; NaN is passed over, and is the result where there is nothing else."""

    def reference(data: Array, axes: tuple[int, ...]) -> Array:
        if data.dtype.kind == "f":
            empty = not prod(data.shape[axis] for axis in axes)
            worst: float | int = np.nan if not empty else -np.inf if largest else np.inf
        elif data.dtype.kind == "b":
            worst = not largest
        else:
            worst = np.iinfo(data.dtype).min if largest else np.iinfo(data.dtype).max
        return np.asarray(function.reduce(data, axis=axes, keepdims=True, initial=worst))

    return reference


def _log_sum_exp(data: Array, axes: tuple[int, ...]) -> Array:
    wide = data.astype(np.float64)
    top = np.max(wide, axis=axes, keepdims=True, initial=-np.inf)
    # An infinite maximum is the result; subtracting it would give NaN.
    shift = np.where(np.isfinite(top), top, 0.0)
    return np.log(np.sum(np.exp(wide - shift), axis=axes, keepdims=True)) + shift


def _examples(*kinds: str) -> tuple[Example, ...]:
    return (
        example("float32[2,3,4]", [1]),
        example("float32[2,3,4]", [0, -1], keepdims=0),
        example("float32[2,3,4]"),
        example("float32[2,3,4]", keepdims=0),
        example("float32[2,3]", noop_with_empty_axes=1),
        example("float32[2,3]", np.zeros(0, np.int64), noop_with_empty_axes=1),
        example("float32[2,0,4]", [1]),
        example("float64[3,4]", [0]),
        example("float16[3,4]", [1], keepdims=0),
        example("float32[]", keepdims=0),
        *(example(f"{kind}[3,4,2]", [1], keepdims=0) for kind in kinds),
    )


def _positive(*kinds: str) -> tuple[Example, ...]:
    """Examples with numbers that have a logarithm."""
    values = np.linspace(0.5, 3.0, 24).reshape(2, 3, 4)
    return (
        example(values.astype(np.float32), [1]),
        example(values.astype(np.float32), [0, -1], keepdims=0),
        example(values.astype(np.float32)),
        example(values.astype(np.float32), noop_with_empty_axes=1),
        example("float32[2,0,4]", [1]),
        example(values.astype(np.float64), [0]),
        example(values.astype(np.float16), [2], keepdims=0),
        *(example(np.arange(1, 25).reshape(3, 4, 2).astype(kind), [1]) for kind in kinds),
    )


def _over(function: Callable[..., Array]) -> Callable[[Array, tuple[int, ...]], Array]:
    """A numpy reduction that keeps the axes and the type of the array."""
    return lambda data, axes: function(data, axis=axes, keepdims=True, dtype=data.dtype)


def _length(data: Array, axes: tuple[int, ...]) -> Array:
    return np.sqrt(np.sum(np.square(data.astype(np.float64)), axis=axes, keepdims=True))


def _log_sum(data: Array, axes: tuple[int, ...]) -> Array:
    return np.log(np.sum(data.astype(np.float64), axis=axes, keepdims=True))


_WHOLE = (np.int32, np.int64, np.uint64)
# The term has a name because gcc warns about the sign of a narrow integer that is widened inside the sum.
_ADD = "const {A} term = ({A})data;\nacc += term;"
_ADD_SQUARE = "acc += ({A})data * ({A})data;"
_declare(
    "ReduceSum",
    _over(np.sum),
    _accumulating(_ADD),
    (
        *_examples("int32", "uint32", "int64", "uint64"),
        example("int8[2,9]", [1], widen=1),
        example("uint8[2,9]", [0], keepdims=0, widen=1),
        example("int32[2,9]", [0], widen=1),
        example(np.array([[2**60 + 1, 2**60 + 3], [-(2**62), 2**31]]), [1]),
    ),
    {"widen": 0},
)
_declare(
    "ReduceSumSquare",
    lambda data, axes: _over(np.sum)(np.square(data), axes),
    _accumulating(_ADD_SQUARE),
    _examples("int32", "uint32", "int64"),
)
_declare(
    "ReduceProd",
    _over(np.prod),
    _accumulating("acc *= ({A})data;", initial="1"),
    (*_examples(), *(example(np.arange(-3, 9).reshape(3, 4).astype(kind), [1]) for kind in _WHOLE)),
)
_declare(
    "ReduceL1",
    lambda data, axes: _over(np.sum)(np.abs(data), axes),
    _accumulating(lambda kind: _ADD if kind.kind == "uint" else "acc += data < 0 ? -({A})data : ({A})data;"),
    _examples("int32", "uint32", "int64"),
)
_declare(
    "ReduceL2",
    _length,
    _accumulating(_ADD_SQUARE, result="sqrt{f}(acc)", rounds=True),
    _examples("int32", "uint32", "int64"),
)
_declare(
    "ReduceLogSum", _log_sum, _accumulating(_ADD, result="tw_log{f}(acc)", rounds=True), _positive("int32", "int64")
)
# One pass: the sum is relative to the largest element so far, so that no power overflows.
_declare(
    "ReduceLogSumExp",
    _log_sum_exp,
    _accumulating(
        "const {A} x = ({A})data;\n"
        "if (x > top) { acc = acc * tw_exp{f}(top - x) + 1; top = x; }\n"
        "else { acc += x == top ? 1 : tw_exp{f}(x - top); }",
        result="top + tw_log{f}(acc)",
        more=(("top", "-INFINITY"),),
        rounds=True,
    ),
    (
        *_examples(),
        example(np.array([[100.0, 200.0, 300.0], [-np.inf, 1.0, 2.0], [-np.inf, -np.inf, -np.inf]], np.float32), [1]),
        example(np.array([[np.inf, np.inf, 300.0], [-np.inf, np.nan, 2.0]], np.float32), [1]),
        example(np.arange(1, 25).reshape(3, 4, 2).astype(np.int32), [1]),
    ),
)
_declare("ReduceMean", _mean, _mean_body, _examples("int32", "uint32", "int64", "int8", "uint8"))
_EXTREMES = (
    *_examples("int8", "uint8", "int32", "uint32", "int64", "uint64", "bool"),
    example("int32[2,0]", [1]),
    example("bool[2,0]", [1]),
    example("float32[2,0]", [1]),
    example(np.array([[1.0, np.nan, 3.0], [-np.inf, -np.inf, -np.inf], [np.nan, np.nan, np.nan]], np.float32), [1]),
)
_declare("ReduceMax", _extreme(np.fmax, largest=True), _extreme_body(">", lowest), _EXTREMES)
_declare("ReduceMin", _extreme(np.fmin, largest=False), _extreme_body("<", highest), _EXTREMES)
