"""The call that computes a node, or the tile of a node: a kernel instance or a printed loop nest with its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from tilewright.codegen import words
from tilewright.codegen.affine import Block
from tilewright.codegen.instances import epilogue_fields, instance_text, row_axes
from tilewright.codegen.literals import number
from tilewright.codegen.loopnest import Nest, cut_bounds, print_nest
from tilewright.codegen.pieces import Pieces
from tilewright.codegen.steps import CArray, epilogue_steps, mentions
from tilewright.core.expr import Expr, Size, Var, plain, rounded_up
from tilewright.core.graph import Graph, TensorType
from tilewright.core.matching import binding_names, tile_names
from tilewright.core.op import call_node
from tilewright.core.plan import Choice, Place, Plan
from tilewright.core.program import Argument, Invoke, Literal, Maybe, Number, ParameterBlock, Pointer
from tilewright.core.sizes import extents
from tilewright.core.tiles import Extent, Member, Ranges, Region, Use, region, shift, walked
from tilewright.errors import TilewrightError
from tilewright.machine import kernel as kernels


class HeldRegion(Struct, frozen=True):
    """Where the bytes of a use are, and which part of the tensor they are, row-major."""

    place: Place
    offset: Size
    region: Region
    unit: int = 1
    """Rows begin at multiples of so many elements; they are dense where it is 1."""

    def strides(self) -> tuple[Size, ...]:
        """Elements between neighbours along each axis."""
        found: list[Size] = []
        step: Size = 1
        for axis, part in enumerate(reversed(self.region)):
            found.append(step)
            step = plain(step * (part.size if axis else rounded_up(part.size, self.unit)))
        return tuple(reversed(found))

    def at(self, inner: Region) -> Size:
        """Elements from the first one to the first of a part."""
        total: Size = 0
        for mine, other, stride in zip(self.region, inner, self.strides(), strict=True):
            total = plain(total + (other.start - mine.start) * stride)
        return total


class Parts(Struct, frozen=True):
    """A reduction that is cut: which part a call computes, and where the sums of all parts are."""

    part: Size
    count: int
    sums: HeldRegion
    dims: frozenset[str]
    """The dimensions that are cut."""


def whole(kind: TensorType) -> Region:
    return tuple(Extent(0, extent) for extent in kind.shape)


def reach(plan: Plan, use: Use) -> Region:
    """All of a tensor, as far as it reaches when the program runs. States lie as if they were as large as can be."""
    found = extents(plan.graph).get(use.tensor)
    if found is None or use.pack or plan.places[use.tensor].space == "state":
        return whole(use.type)
    return tuple(Extent(0, extent) for extent in found)


def around(mine: Member, use: Use, result: Region) -> Region:
    """A part of the result in which an operand lies, counted in the operand's own indices."""
    behind = shift(mine.domain, use.key, mine.output.key) or ()
    return tuple(Extent(plain(p.start - by), plain(p.stop - by)) for p, by in zip(result, behind, strict=True))


class TileTask(Struct, frozen=True):
    """One node, or the part of one that a tile covers."""

    graph: Graph
    choice: Choice
    member: Member
    ranges: Ranges | None
    """The tile; None where the node is computed once, on whole tensors."""
    held: Mapping[str, HeldRegion]
    """By the key of each use."""
    scratch: Pointer | None
    parts: Parts | None = None
    share: tuple[Size, int] = (0, 1)
    """Which part of the results a kernel computes that cores share, and of how many."""
    inlaid: frozenset[str] = frozenset()
    """Operands that lie within the result already, so that the tile is just the rest of it."""
    awaits: bool = False
    """Whether a kernel awaits some of its operands itself."""

    @property
    def comment(self) -> str:
        node = self.member.node
        return f"{node.op} {node.label}"


def invoke(task: TileTask, pieces: Pieces) -> Invoke:
    """The call that computes a task."""
    return _nest(task, pieces) if task.choice.kernel is None else _kernel(task, pieces)


def packing_names(graph: Graph, member: Member) -> Mapping[str, kernels.Number]:
    """The sizes that the text of a packing uses."""
    return binding_names(call_node(graph, member.node))


# Kernels


def _kernel(task: TileTask, pieces: Pieces) -> Invoke:
    kernel, node = task.choice.kernel, task.member.node
    assert kernel is not None
    call = call_node(task.graph, node)
    steps, domain = epilogue_steps(task.graph, node), call.domain()
    output = task.graph.types[node.outputs[0]] if node.outputs[0] else call.outputs[0]
    replaced = _replaced(task)
    parts = task.parts is not None
    text = instance_text(
        kernel, task.choice.variables, "%NAME%", output, steps, replaced, row_axes(domain), parts=parts
    )
    function = pieces.function(kernel.function, text)
    uses = {use.key: use for use in task.member.uses}
    operands = {*call.operands, *call.op.output_names(len(node.outputs))}
    strided = walked(task.member, kernel) | ({task.member.output.key} if task.inlaid else set[str]())
    strides = {key: task.held[key].strides() for key in strided if key in task.held}
    share = {"PART": task.share[0], "PARTS": task.share[1], "AWAITS": int(task.awaits)}
    names = tile_names(call, domain, task.ranges, strides) | share
    arguments: list[Argument] = []
    for parameter in kernel.parameters:
        name = parameter.name
        if name == "epilogue":
            fields = epilogue_fields(steps, replaced)
            values: list[Pointer | Literal | Number] = [
                _part(task, uses[f.name], f.ctype) if f.tensor else Literal(f.literal) for f in fields
            ]
            values += _sums(task, task.parts, call.outputs[0]) if task.parts else []
            arguments.append(ParameterBlock(f"struct {function}_epilogue", tuple(values or [Literal("0")])))
        elif name == "scratch":
            arguments.append(task.scratch or Literal("NULL"))
        elif parameter.pointer:
            arguments.append(_operand_argument(task, uses[name]) if name in uses else Literal("NULL"))
        elif name in names:
            value = names[name]
            arguments.append(Number(value) if isinstance(value, Expr) else Literal(number(parameter.ctype, value)))
        else:
            raise TilewrightError(
                "bad-kernel",
                f"kernel '{kernel.where}': '{name}' is no operand, size or attribute of {node.op}",
                help=f"known here: {', '.join(sorted([*operands, *names]))}",
            )
    return Invoke(function, tuple(arguments), task.comment)


def _operand_argument(task: TileTask, use: Use) -> Argument:
    pointer = _part(task, use, use.type.dtype.ctype)
    if task.parts is None or use.writes or task.parts.dims & task.member.domain.relevant(use.key):
        return pointer
    # What is added to the sum, such as a bias, is added once.
    return Maybe(pointer, task.parts.part)


def _sums(task: TileTask, parts: Parts, result: TensorType) -> list[Pointer | Literal | Number]:
    """What the hook has to know to add up parts."""
    inner = region(task.member.domain, task.member.output.key, task.ranges or {})
    offset = plain(parts.sums.offset + parts.sums.at(inner) * result.dtype.bytes)
    return [
        Pointer(parts.sums.place, result.dtype.ctype, False, offset),
        Number(parts.part),
        Literal(str(parts.count)),
    ]


def _part(task: TileTask, use: Use, ctype: str) -> Pointer:
    """The part of a use that the task touches."""
    held = task.held[use.key]
    if task.ranges is None:
        return Pointer(held.place, ctype, not use.writes, held.offset)
    inner = region(task.member.domain, use.key, task.ranges)
    offset = plain(held.offset + held.at(inner) * use.type.dtype.bytes)
    return Pointer(held.place, ctype, not use.writes, offset)


def _replaced(task: TileTask) -> frozenset[str]:
    """Tensors of the epilogue whose bytes the output takes."""
    output = task.held[task.member.output.key]
    return frozenset(
        use.tensor
        for use in task.member.uses
        if not use.writes
        and use.tensor not in task.member.node.inputs
        and use.type.bytes
        and task.held[use.key].place == output.place
    )


# Loop nests


def _nest(task: TileTask, pieces: Pieces) -> Invoke:
    node, domain = task.member.node, task.member.domain
    call = call_node(task.graph, node)
    body = call.body
    if body is None:
        raise TilewrightError(
            "no-kernel", f"{node.op} '{call.name}' has no code", help="add a kernel file with --kernels DIR"
        )
    steps = epilogue_steps(task.graph, node)
    pointers: dict[Place | str, tuple[str, Pointer]] = {}
    numbers: dict[str, Size] = {}
    operands: dict[str, CArray] = {}
    blocks: dict[str, Block] = {}
    tile = task.ranges or {}
    cut = [n for n, part in tile.items() if (part.start, part.stop) != (0, domain.dims[n])]
    for name in cut:
        numbers |= dict(zip(cut_bounds(name), (tile[name].start, tile[name].stop), strict=True))
    for use in sorted(task.member.uses, key=lambda use: not use.writes):
        operands[use.key] = _operand(task, use, pointers)
        blocks[use.key] = _block(use.key, task.held[use.key], numbers)
    own = {*call.operands, *call.op.output_names(len(node.outputs))}
    nest = Nest(
        call,
        call.domain(),
        body,
        steps,
        MappingProxyType({key: operand for key, operand in operands.items() if key in own}),
        MappingProxyType({key: operand for key, operand in operands.items() if key not in own}),
        MappingProxyType(blocks),
        frozenset(cut),
        frozenset(name for name in cut if isinstance(plain(tile[name].stop - tile[name].start), int)),
        task.choice.unroll,
    )
    text = print_nest("%NAME%", nest, "%PARAMETERS%")
    numbers = {name: value for name, value in numbers.items() if mentions(text, name)}
    # An operand that a tile or all of the result lies outside of is not read.
    pointers = {key: found for key, found in pointers.items() if mentions(text, found[0])}
    parameters = [
        f"{'const ' if pointer.const else ''}{pointer.ctype} *{'restrict ' if len(pointers) > 1 else ''}{param}"
        for param, pointer in pointers.values()
    ] + [f"int {name}" for name in numbers]
    text = text.replace("%PARAMETERS%", ", ".join(parameters))
    function = pieces.function(f"{words.identifier(node.op).lower()}_nest", text)
    # An empty tensor has no address of its own, and one that it shared would break `restrict`.
    arguments: list[Argument] = [Literal("NULL") if isinstance(k, str) else p for k, (_, p) in pointers.items()]
    arguments += [Number(value) for value in numbers.values()]
    return Invoke(function, tuple(arguments), task.comment)


def _operand(task: TileTask, use: Use, pointers: dict[Place | str, tuple[str, Pointer]]) -> CArray:
    """The pointer parameter of a use; uses of the same bytes share the parameter."""
    held = task.held[use.key]
    key: Place | str = held.place if use.type.bytes else use.tensor
    if key not in pointers:
        pointers[key] = (f"p_{use.key}", Pointer(held.place, use.type.dtype.ctype, not use.writes, held.offset))
    return CArray(pointers[key][0], use.type, use.tensor)


def _block(key: str, held: HeldRegion, numbers: dict[str, Size]) -> Block:
    """How a part lies in memory; what depends on loops becomes a parameter."""
    strides = [_parameter(f"{key}_s{axis}", stride, numbers) for axis, stride in enumerate(held.strides())]
    first = tuple(Extent(0, 0) for _ in held.region)
    origin = plain(held.at(first) * -1)
    return Block(tuple(strides), _parameter(f"{key}_origin", origin, numbers))


def _parameter(name: str, value: Size, numbers: dict[str, Size]) -> Size:
    if isinstance(value, int):
        return value
    numbers[name] = value
    return Expr(((Var(name, 0, 2**31 - 1), 1),))
