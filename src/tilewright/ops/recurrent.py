"""LSTM, GRU and RNN: what they share is here (directions, sequence lengths, activations), their cells are below.

DynamicQuantizeLSTM is an LSTM with weights of 8 bits, whose columns are units. Inputs, all at once, and the states of
all samples before each step are rounded to 8 bits of the range that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tilewright.base.dtype import FLOAT32
from tilewright.core.domain import WHOLE, Axis, Domain, at, dim, domain
from tilewright.core.graph import Array, Attr, TensorType
from tilewright.core.op import REGISTRY, Call, Example, Operator, declare, example, parse_type
from tilewright.ops.named_activations import CODES, FORMS, Activation, activation
from tilewright.ops.normalization import check_float
from tilewright.ops.quantize_linear import dynamic_parameters
from tilewright.ops.quantized_rules import f32, need_narrow, u8
from tilewright.ops.sampling import between, even

ATTRS: dict[str, Attr] = {
    "activation_alpha": None,
    "activation_beta": None,
    "activations": None,
    "clip": None,
    "direction": "forward",
    "hidden_size": None,
    "layout": 0,
}


QUANTISED = "DynamicQuantizeLSTM"


class RecurrentSizes(Struct, frozen=True):
    directions: int
    batch: int
    steps: int
    hidden: int
    inputs: int


def _quantised(call: Call) -> bool:
    return call.op.name == QUANTISED


def _sizes(call: Call) -> RecurrentSizes:
    x, r = call.shape("X"), call.shape("R")
    if len(x) != 3 or len(r) != 3:
        raise call.error("shape-mismatch", f"X {call.type('X')} and R {call.type('R')} need three axes")
    hidden = r[1] if _quantised(call) else r[2]
    steps, batch = (x[1], x[0]) if call.int("layout") else (x[0], x[1])
    return RecurrentSizes(2 if call.text("direction") == "bidirectional" else 1, batch, steps, hidden, x[2])


def _shapes(size: RecurrentSizes, gates: int, batch_first: int) -> dict[str, tuple[int, ...]]:
    """Of all operands."""
    d, b, h = size.directions, size.batch, size.hidden
    state = (b, d, h) if batch_first else (d, b, h)
    return {
        "X": (b, size.steps, size.inputs) if batch_first else (size.steps, b, size.inputs),
        "W": (d, gates * h, size.inputs),
        "R": (d, gates * h, h),
        "B": (d, 2 * gates * h),
        "sequence_lens": (b,),
        "initial_h": state,
        "initial_c": state,
        "P": (d, 3 * h),
    }


def _check(call: Call, gates: int) -> RecurrentSizes:
    check_float(call, "X")
    if call.text("direction") not in ("forward", "reverse", "bidirectional"):
        raise call.error("bad-attribute", f"direction={call.text('direction')} is unknown")
    size = _sizes(call)
    shapes = _shapes(size, gates, call.int("layout"))
    if _quantised(call):
        _check_quantised(call, shapes)
    for name, shape in shapes.items():
        if call.has(name) and call.shape(name) != shape:
            raise call.error("shape-mismatch", f"{name} {call.type(name)} needs the shape {list(shape)}")
    return size


def _check_quantised(call: Call, shapes: dict[str, tuple[int, ...]]) -> None:
    """Turns the shapes of the weights, and looks at what else there is of them."""
    if call.type("X").dtype != FLOAT32:
        raise call.error("type-mismatch", f"X must be float32, found {call.type('X').dtype}")
    need_narrow(call, "W", "R")
    for name in "WR":
        directions, units, depth = shapes[name]
        shapes[name] = (directions, depth, units)
        for part in PARTS:
            if call.has(name + part) and call.shape(name + part) not in ((directions,), (directions, units)):
                raise call.error(
                    "shape-mismatch",
                    f"{name + part} {call.type(name + part)} is neither of each direction nor of each of its columns",
                )


def _infer(call: Call, gates: int) -> tuple[TensorType, ...]:
    size, x = _check(call, gates), call.type("X")
    _activations(call)
    d, b, h = size.directions, size.batch, size.hidden
    every = (b, size.steps, d, h) if call.int("layout") else (size.steps, d, b, h)
    state = x.with_shape((b, d, h) if call.int("layout") else (d, b, h))
    return (x.with_shape(every), state, state)[: call.wanted]


PARTS = ("_scale", "_zero_point")
"""Of quantised weights."""


def _domain(call: Call) -> Domain:
    size, last = _sizes(call), bool(call.int("layout"))
    d, b, t, h, i = (dim(name) for name in ("DIRECTIONS", "BATCH", "SEQ", "HIDDEN", "INPUT"))
    # One direction is no loop: its axis has a single element.
    way = d if size.directions > 1 else at(0)
    state: list[Axis] = [b, way, h] if last else [way, b, h]
    access: dict[str, list[Axis]] = {
        "X": [b, t, i] if last else [t, b, i],
        "W": [way, WHOLE, i],
        "R": [way, WHOLE, WHOLE],
        "B": [way, WHOLE],
        "sequence_lens": [b],
        "initial_h": state,
        "initial_c": state,
        "P": [way, WHOLE],
        "Y": [b, t, way, h] if last else [t, way, b, h],
        "Y_h": state,
        "Y_c": state,
    }
    if _quantised(call):
        access |= {"W": [way, i, WHOLE], "R": [way, WHOLE, WHOLE]}
        names = [name + part for name in "WR" for part in PARTS]
        access |= {name: [way, WHOLE][: len(call.shape(name))] for name in names if call.has(name)}
    outputs = call.op.output_names(len(call.outputs))
    used = {name: axes for name, axes in access.items() if name in outputs or call.has(name)}
    sizes = {
        "DIRECTIONS": size.directions,
        "BATCH": size.batch,
        "SEQ": size.steps,
        "HIDDEN": size.hidden,
        "INPUT": size.inputs,
    }
    shapes = {name: call.shape(name) for name in used}
    return domain(sizes, used, shapes, " ".join(outputs), whole=f"SEQ HIDDEN INPUT{' BATCH' * _quantised(call)}")


DEFAULTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "LSTM": ("Sigmoid", "Tanh", "Tanh"),
        QUANTISED: ("Sigmoid", "Tanh", "Tanh"),
        "GRU": ("Sigmoid", "Tanh"),
        "RNN": ("Tanh",),
    }
)


def _activations(call: Call) -> tuple[tuple[Activation, ...], ...]:
    """The activations of each direction; parameters are consumed in order by those that have them."""
    default, directions = DEFAULTS[call.op.name], _sizes(call).directions
    given = call.attrs.get("activations")
    names = [str(name) for name in given] if isinstance(given, tuple) else list(default) * directions
    if len(names) < len(default) * directions:
        raise call.error("bad-attribute", f"activations={names} needs {len(default) * directions} names")
    alphas, betas = _reals(call, "activation_alpha"), _reals(call, "activation_beta")
    found: list[Activation] = []
    for name in names[: len(default) * directions]:
        plain = activation(call, name, None, None)
        alpha = alphas.pop(0) if alphas and "{a}" in FORMS[plain.name].c else None
        beta = betas.pop(0) if betas and "{b}" in FORMS[plain.name].c else None
        found.append(activation(call, name, alpha, beta))
    return tuple(tuple(found[i * len(default) : (i + 1) * len(default)]) for i in range(directions))


def _reals(call: Call, name: str) -> list[float]:
    value = call.attrs.get(name)
    return [float(v) for v in value if isinstance(v, (int, float))] if isinstance(value, tuple) else []


def _limit(call: Call) -> float:
    """The clip threshold, 0 for none."""
    return 0.0 if call.attrs.get("clip") is None else call.float("clip")


def _numbers(call: Call) -> dict[str, int | float]:
    """What kernels ask for beside sizes: REVERSED, CLIP, and each activation as ACT_i, ALPHA_i, BETA_i.

    CURVES is how many activations of a unit take powers. Of quantised weights there is how far apart the scales of
    columns, and of directions, are (W_scale_COLUMN, W_scale_WAY), and so for zero points.
    """
    ways = _activations(call)
    flat = [one for way in (*ways, *ways)[:2] for one in way]
    numbers: dict[str, int | float] = {"REVERSED": int(call.text("direction") == "reverse"), "CLIP": _limit(call)}
    numbers["CURVES"] = sum("tw_" in FORMS[one.name].c or "exp" in FORMS[one.name].c for one in ways[0])
    for i, one in enumerate(flat):
        numbers |= {f"ACT_{i}": CODES[one.name], f"ALPHA_{i}": one.alpha, f"BETA_{i}": one.beta}
    if _quantised(call):
        for name in (weights + part for weights in "WR" for part in PARTS):
            columns = call.shape(name)[1:] if call.has(name) else ()
            numbers |= {f"{name}_COLUMN": len(columns), f"{name}_WAY": columns[0] if columns else 1}
    return numbers


class Cell(Struct, frozen=True):
    """The weights of one direction in float64, and how its sums are limited and activated."""

    w: Array
    r: Array
    wb: Array
    rb: Array
    p: Array
    act: tuple[Activation, ...]
    limit: float
    call: Call

    def activate(self, index: int, sums: Array) -> Array:
        return self.act[index].reference(np.clip(sums, -self.limit, self.limit) if self.limit else sums)


Step = Callable[[Cell, Array, tuple[Array, Array]], tuple[Array, Array]]
"""One step of one sample: from input and states (h, c) to states."""


def _cell(call: Call, arrays: Mapping[str, Array | None], way: int) -> Cell:
    def weights(name: str, size: int) -> Array:
        array = arrays.get(name)
        return np.zeros(size) if array is None else array[way].astype(np.float64)

    w, r = weights("W", 0), weights("R", 0)
    if _quantised(call):
        w = _dequantised(w, arrays["W_scale"], arrays.get("W_zero_point"), way)
        r = _dequantised(r, arrays["R_scale"], arrays.get("R_zero_point"), way)
    rows = len(w)
    bias = weights("B", 2 * rows)
    return Cell(
        w,
        r,
        bias[:rows],
        bias[rows:],
        weights("P", 3 * _sizes(call).hidden),
        _activations(call)[way],
        _limit(call),
        call,
    )


def _dequantised(weights: Array, scale: Array | None, zero: Array | None, way: int) -> Array:
    """Weights of one direction as they are in LSTM."""
    assert scale is not None
    return ((weights - (0 if zero is None else zero[way].astype(np.float64))) * scale[way]).T


def _rounded(values: Array) -> Array:
    """Real numbers as 8 bits of their range hold them."""
    scale, zero = dynamic_parameters(values)
    return (np.clip(np.rint(values.astype(np.float32) / scale) + zero, 0, 255) - zero).astype(np.float64) * scale


def _as_it_is(values: Array) -> Array:
    return values


def _run(call: Call, arrays: Mapping[str, Array | None], step: Step) -> tuple[Array, ...]:
    """All directions and samples in layout 0, turned to the call's layout at the end."""
    rounded = _rounded if _quantised(call) else _as_it_is
    size, last = _sizes(call), bool(call.int("layout"))
    X = arrays["X"]
    assert X is not None
    xs = rounded((np.swapaxes(X, 0, 1) if last else X).astype(np.float64))

    def initial(name: str) -> Array:
        array = arrays.get(name)
        if array is None:
            return np.zeros((size.directions, size.batch, size.hidden))
        return (np.swapaxes(array, 0, 1) if last else array).astype(np.float64)

    lengths = arrays.get("sequence_lens")
    y = np.zeros((size.steps, size.directions, size.batch, size.hidden))
    hs, cs = initial("initial_h").copy(), initial("initial_c").copy()
    for way in range(size.directions):
        cell = _cell(call, arrays, way)
        backwards = way == 1 or call.text("direction") == "reverse"
        for number in range(size.steps):
            before = rounded(hs[way])
            for b in range(size.batch):
                length = size.steps if lengths is None else min(size.steps, max(0, int(lengths[b])))
                if number < length:
                    t = length - 1 - number if backwards else number
                    hs[way, b], cs[way, b] = step(cell, xs[t, b], (before[b], cs[way, b]))
                    y[t, way, b] = hs[way, b]
    if last:
        return np.transpose(y, (2, 0, 1, 3)), np.swapaxes(hs, 0, 1), np.swapaxes(cs, 0, 1)
    return y, hs, cs


def _lstm_step(cell: Cell, x: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
    h, c = state
    i, o, f, fresh = np.split(cell.w @ x + cell.r @ h + cell.wb + cell.rb, 4)
    p_i, p_o, p_f = np.split(cell.p, 3)
    opened = cell.activate(0, i + p_i * c)
    kept = 1 - opened if cell.call.int("input_forget") else cell.activate(0, f + p_f * c)
    c = kept * c + opened * cell.activate(1, fresh)
    return cell.activate(0, o + p_o * c) * cell.act[2].reference(c), c


def _gru_step(cell: Cell, x: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
    h, c = state
    n = h.size
    from_x, from_h = cell.w @ x + cell.wb, cell.r[: 2 * n] @ h + cell.rb[: 2 * n]
    z, r = np.split(cell.activate(0, from_x[: 2 * n] + from_h), 2)
    if cell.call.int("linear_before_reset"):
        past = r * (cell.r[2 * n :] @ h + cell.rb[2 * n :])
    else:
        past = cell.r[2 * n :] @ (r * h) + cell.rb[2 * n :]
    return (1 - z) * cell.activate(1, from_x[2 * n :] + past) + z * h, c


def _rnn_step(cell: Cell, x: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
    h, c = state
    return cell.activate(0, cell.w @ x + cell.wb + cell.r @ h + cell.rb), c


def _sample(name: str, gates: int, spec: Example, random: np.random.Generator) -> Example:
    """Layers of other sizes, whose sequences all have full length."""
    directions = 2 if spec.attrs.get("direction") == "bidirectional" else 1
    batch, steps, hidden, inputs = (even(between(1, most, random), random) for most in (2, 8, 48, 48))
    size = RecurrentSizes(directions, batch, steps, hidden, inputs)
    shapes = _shapes(size, gates, int(str(spec.attrs.get("layout", 0))))
    if name == QUANTISED:
        shapes |= {"W": (directions, inputs, gates * hidden), "R": (directions, hidden, gates * hidden)}
    made: list[str | Array] = []
    for operand, item in zip(REGISTRY[name].operand_names(len(spec.inputs)), spec.inputs, strict=True):
        if isinstance(item, str):
            made.append(str(parse_type(item).with_shape(shapes[operand])) if item else item)
        else:
            # Sequences, or what belongs to weights, which is of a direction or of each of its columns.
            shape = shapes.get(operand, (directions, gates * hidden)[: item.ndim])
            made.append(np.full(shape, steps if operand in shapes else item.flat[0], item.dtype))
    given = {**spec.attrs, **({"hidden_size": hidden} if "hidden_size" in spec.attrs else {})}
    return replace(spec, inputs=tuple(made), attrs=MappingProxyType(given))


def _declare(
    name: str,
    gates: int,
    inputs: str,
    outputs: str,
    step: Step,
    attrs: Mapping[str, Attr],
    examples: tuple[Example, ...],
) -> None:
    def reference(call: Call, *arrays: Array | None) -> tuple[Array, ...]:
        return _run(call, dict(zip(call.operands, arrays, strict=True)), step)[: call.wanted]

    declare(
        Operator(
            name,
            inputs,
            outputs,
            lambda call: _infer(call, gates),
            _domain,
            reference,
            examples,
            MappingProxyType({**ATTRS, **attrs}),
            numbers=_numbers,
            sample=partial(_sample, name, gates),
        )
    )


LENGTHS = np.array([3, 1], np.int32)


def _examples(gates: int, peephole: bool) -> tuple[Example, ...]:
    """Three steps of two samples, five inputs, four hidden units."""
    outputs, hidden, inputs = (3 if peephole else 2), 4, 5
    w, r, b = f"[1,{gates * hidden},{inputs}]", f"[1,{gates * hidden},{hidden}]", f"[1,{2 * gates * hidden}]"
    plain = ("float32[3,2,5]", f"float32{w}", f"float32{r}")
    both = ("float32[3,2,5]", f"float32[2{w[2:]}", f"float32[2{r[2:]}", f"float32[2{b[2:]}")
    states = ["float32[1,2,4]"] * (outputs - 1)
    double = ["float32[2,2,4]"] * (outputs - 1)
    swapped = ["float32[2,1,4]"] * (outputs - 1)
    return (
        example(*plain, wanted=outputs),
        example(*plain, f"float32{b}", LENGTHS, *states, wanted=outputs),
        example(*plain, f"float32{b}", LENGTHS, *states, direction="reverse", clip=0.5, wanted=outputs),
        example(*both, LENGTHS, *double, direction="bidirectional", hidden_size=4, wanted=outputs),
        example("float32[2,3,5]", *plain[1:], f"float32{b}", "", *swapped, layout=1, wanted=outputs),
        example("float64[3,2,5]", f"float64{w}", f"float64{r}"),
    )


_declare(
    "LSTM",
    4,
    "X W R B? sequence_lens? initial_h? initial_c? P?",
    "Y? Y_h? Y_c?",
    _lstm_step,
    {"input_forget": 0},
    (
        *_examples(4, True),
        example("float32[3,2,5]", "float32[1,16,5]", "float32[1,16,4]", "", "", "", "", "float32[1,12]", wanted=3),
        example("float32[3,2,5]", "float32[1,16,5]", "float32[1,16,4]", input_forget=1),
        example(
            "float32[3,2,5]",
            "float32[1,16,5]",
            "float32[1,16,4]",
            activations=("HardSigmoid", "Softsign", "ScaledTanh"),
            activation_alpha=(0.3, 1.5),
            activation_beta=(0.4, 0.6),
        ),
    ),
)
_declare(
    "GRU",
    3,
    "X W R B? sequence_lens? initial_h?",
    "Y? Y_h?",
    _gru_step,
    {"linear_before_reset": 0},
    (
        *_examples(3, False),
        example("float32[3,2,5]", "float32[1,12,5]", "float32[1,12,4]", "float32[1,24]", linear_before_reset=1),
        example(
            "float32[3,2,5]",
            "float32[1,12,5]",
            "float32[1,12,4]",
            activations=("Softplus", "Elu"),
            activation_alpha=(0.7,),
        ),
    ),
)
_declare(
    "RNN",
    1,
    "X W R B? sequence_lens? initial_h?",
    "Y? Y_h?",
    _rnn_step,
    {},
    (
        *_examples(1, False),
        *(
            example("float32[3,2,5]", "float32[1,4,5]", "float32[1,4,4]", activations=(name,))
            for name in ("Relu", "LeakyRelu", "ThresholdedRelu", "Affine", "Sigmoid")
        ),
    ),
)
_declare(
    QUANTISED,
    4,
    "X W R B? sequence_lens? initial_h? initial_c? P? W_scale W_zero_point? R_scale R_zero_point?",
    "Y? Y_h? Y_c?",
    _lstm_step,
    {"input_forget": 0},
    (
        example(
            "float32[3,2,5]", "int8[1,5,16]", "int8[1,4,16]", "float32[1,32]", LENGTHS, "float32[1,2,4]",
            "float32[1,2,4]", "float32[1,12]", f32([0.01]), "", f32([0.01]), "", wanted=3,
        ),
        example(
            "float32[3,1,5]", "uint8[2,5,16]", "uint8[2,4,16]", "", "", "", "", "", np.full((2, 16), 0.01, np.float32),
            u8([120, 130]), f32([0.01, 0.02]), np.full((2, 16), 125, np.uint8), direction="bidirectional",
        ),
    ),
)  # fmt: skip
