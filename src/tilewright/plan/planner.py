"""The planner; on machines with one memory: order, kernels, in-place results and arena offsets."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType

from msgspec import structs
from msgspec.structs import replace

from tilewright.core.graph import FreshNames, Graph, Node, Result
from tilewright.core.op import REGISTRY, Call, call_node, call_steps
from tilewright.core.plan import Buffer, Choice, Place, Plan, Rejection
from tilewright.core.sizes import extents, leading
from tilewright.core.tiles import member
from tilewright.errors import TilewrightError
from tilewright.machine.target import Target
from tilewright.plan.addresses import allocate as allocation
from tilewright.plan.addresses.lend import Lender, lend
from tilewright.plan.addresses.packing import round_up
from tilewright.plan.options import PlanOptions
from tilewright.plan.scheduler import other_schedules, schedule
from tilewright.plan.select import nest_choice, select
from tilewright.plan.storage import fixed, in_order, root_of, state_buffers, state_bytes, storage, tensors


def plan(graph: Graph, platform: Target, options: PlanOptions | None = None) -> Plan:
    """Places a lowered graph on a platform."""
    wishes = options or PlanOptions()
    if platform.whole:
        return _whole(graph, platform, wishes)
    return schedule(graph, platform, wishes) if platform.home else _flat(graph, platform, wishes)


def alternatives(graph: Graph, platform: Target, options: PlanOptions) -> Iterator[Plan]:
    """Other plans that may turn out to be faster than that of `plan`, the most promising first; made one by one."""
    return other_schedules(graph, platform, options) if platform.home and not platform.whole else iter(())


def _whole(graph: Graph, platform: Target, options: PlanOptions) -> Plan:
    """On whole tensors where they fit, else tile by tile; so, too, where constants are not to be read in place."""
    if platform.memories[platform.in_place].bytes == 0:
        return schedule(graph, platform, options)
    made = _flat(graph, platform, options)
    _check_constants(made)
    near = platform.memories[platform.cores.memory]
    states = round_up(made.state_bytes, platform.alignment)
    if near.bytes is None or made.arena_bytes + states <= near.bytes:
        return made
    # Callers see one arena, which the states are a part of.
    rest = structs.replace(near, bytes=max(near.bytes - states, 0))
    return schedule(graph, replace(platform, memories={**platform.memories, near.name: rest}), options)


def _check_constants(made: Plan) -> None:
    """An error where the memory that constants are read from is too small for them."""
    memory = made.platform.memories[made.platform.in_place]
    sizes = constant_bytes(made)
    if memory.bytes is None or sum(sizes.values()) <= memory.bytes:
        return
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:SHOWN]
    need = sum(sizes.values())
    raise TilewrightError(
        "does-not-fit",
        f"the constants of the network need at least {need} bytes of {memory.name}, {memory.bytes} given",
        reasons=[f"'{name}' takes {sizes[name]} bytes" for name in largest],
        help=f"give --{memory.name.lower()} {need}, or use a smaller network",
    )


def constant_bytes(made: Plan) -> dict[str, int]:
    """Bytes of every constant that code reads, as kernels want it, by tensor."""
    found: dict[tuple[str, str], int] = {}
    for step, node in enumerate(made.graph.nodes):
        if REGISTRY[node.op].kind == "view" and not node.epilogue:
            continue
        for use in member(made.graph, node, made.choices[step].kernel).uses:
            if made.places[use.tensor].space == "constant":
                found[use.tensor, use.pack] = -(-use.type.bytes // made.platform.alignment) * made.platform.alignment
    sizes: dict[str, int] = {}
    for (tensor, _), size in found.items():
        sizes[tensor] = sizes.get(tensor, 0) + size
    return sizes


SHOWN = 8
"""Constants that an error names."""


def _flat(graph: Graph, platform: Target, options: PlanOptions) -> Plan:
    roots = storage(graph)
    ordered = in_order(graph, roots, options.order)
    choices = tuple(_over_state(ordered, node, platform, select(ordered, node, platform)) for node in ordered.nodes)
    owners = _in_place(ordered, choices, roots)
    buffers, scratch = _buffers(ordered, choices, owners, platform)
    lent = lend(buffers, _lenders(ordered, owners), _element_bytes(ordered, owners))
    own = [b for b in buffers if b.name not in lent]
    result = allocation.allocate(own, seconds=options.seconds, seed=options.seed)
    found = {name: Place("arena", placement.offset) for name, placement in result.offsets.items()} | lent
    kept = state_buffers(ordered, platform)
    places = _places(ordered, owners, found | {state.name: state.place for state in kept})
    return Plan(
        ordered,
        platform,
        choices,
        MappingProxyType(places),
        (*(Buffer(b.name, b.size, b.first, b.last, found[b.name]) for b in buffers), *kept),
        MappingProxyType({step: found[name].offset for step, name in scratch.items()}),
        max((found[b.name].offset + b.size for b in own), default=0),
        result.lower_bound,
        result.status == "optimal",
        state_bytes=state_bytes(kept),
    )


def _over_state(graph: Graph, node: Node, platform: Target, choice: Choice) -> Choice:
    """The loop nest in place of a kernel that may not write over the state that it reads, or needs it without gaps."""
    if choice.kernel is None or not graph.states:
        return choice
    updates = {old: new for old, new in graph.updates.items() if new in node.made and old in node.reads}
    why = "" if all(old in _replaceable(node, choice) for old in updates) else "it does not write over what it reads"
    roots, found = storage(graph), extents(graph)
    operands = zip(REGISTRY[node.op].operand_names(len(node.inputs)), node.inputs, strict=True)
    for operand, name in operands:
        apart = root_of(roots, name) in graph.updates and not leading(found.get(name, ()))
        why = f"it needs {operand} without gaps" if apart and operand not in choice.kernel.strided else why
    if not why:
        return choice
    rejected = (*choice.rejected, Rejection(choice.kernel.where, f"{why}, a state"))
    if REGISTRY[node.op].body is None:
        raise TilewrightError(
            "no-kernel",
            f"{node.op} '{node.label}' has no kernel for a state",
            reasons=[f"{r.kernel:<28} {r.reason}" for r in rejected],
            help="add a kernel with --kernels DIR (docs/add_a_kernel.md)",
        )
    return nest_choice(graph, node, platform, rejected)


def _lenders(graph: Graph, owners: dict[str, str]) -> list[Lender]:
    """Outputs of the network, whose memory is free until they are written; of shorter ones nothing else is touched."""
    first: dict[str, int] = {}
    for step, node in enumerate(graph.nodes):
        for name in node.made:
            first.setdefault(root_of(owners, name), step)
    whole = [(index, name) for index, name in enumerate(graph.given) if name not in extents(graph)]
    kinds = [(index, graph.types[name], first[root_of(owners, name)]) for index, name in whole]
    return [Lender(index, kind.bytes, step, kind.dtype.bytes) for index, kind, step in kinds]


def _element_bytes(graph: Graph, owners: dict[str, str]) -> dict[str, int]:
    """The widest element among the tensors that share each buffer; scratch is not listed."""
    widest: dict[str, int] = {}
    for name in tensors(graph):
        root = root_of(owners, name)
        widest[root] = max(widest.get(root, 1), graph.types[name].dtype.bytes)
    return widest


def _in_place(graph: Graph, choices: tuple[Choice, ...], roots: dict[str, str]) -> dict[str, str]:
    """Extends storage sharing: a result may take the bytes of an input that dies there, where the code allows it."""
    owners = dict(roots)
    owned: dict[str, list[str]] = {}
    for name, root in owners.items():
        owned.setdefault(root, []).append(name)
    last_use = _last_uses(graph, owners)
    outside = fixed(graph, owners)
    for step, (node, choice) in enumerate(zip(graph.nodes, choices, strict=True)):
        output = node.outputs[0]
        if not output or root_of(owners, output) in outside:
            continue
        for name in _replaceable(node, choice):
            owner = root_of(owners, name)
            if (
                owner not in outside
                and last_use.get(owner, -1) == step
                and graph.types[name].shape == graph.types[output].shape
                and graph.types[name].dtype.ctype == graph.types[output].dtype.ctype
                and graph.types[owner].bytes == graph.types[output].bytes
                and [root_of(owners, other) for other in node.reads].count(owner) == 1
                and _pointwise(graph, node, choice, name)
            ):
                adopted = owned.pop(output, [])
                owners.update(dict.fromkeys(adopted, owner))
                owned.setdefault(owner, []).extend(adopted)
                last_use[owner] = max(last_use[owner], last_use.get(output, -1))
                break
    return owners


def _replaceable(node: Node, choice: Choice) -> tuple[str, ...]:
    """Inputs that are read at a point, and nowhere else, before the result at that point is written."""
    op = REGISTRY[node.op]
    if op.kind == "view":
        return ()
    if choice.kernel is None:
        return node.reads if op.kind == "elementwise" else ()
    extra = tuple(n for n in node.reads if n not in node.inputs) if choice.kernel.epilogue else ()
    operands = dict(zip(op.operand_names(len(node.inputs)), node.inputs, strict=True))
    own = operands.get(choice.kernel.inplace, "")
    # An epilogue that reads the operand as well would see it through another pointer.
    free = own and node.inputs.count(own) == 1 and not any(own in step.inputs for step in node.epilogue)
    return (own, *extra) if free else extra


def _pointwise(graph: Graph, node: Node, choice: Choice, name: str) -> bool:
    """Whether a node reads a tensor only at the indices of its result (a table it does not), or its kernel may."""
    if choice.kernel is not None and name in node.inputs:
        return True
    own = call_node(graph, node)
    calls = (own, *call_steps(graph, node))
    inputs = (node.inputs, *(step.inputs for step in node.epilogue))
    return all(_same_indices(call, read, name) for call, read in zip(calls, inputs, strict=True) if name in read)


def _same_indices(call: Call, inputs: tuple[str | Result, ...], name: str) -> bool:
    access = call.domain().access
    result = access[call.op.output_names(1)[0]]
    return all(access.get(o) == result for o, n in zip(call.operands, inputs, strict=True) if n == name)


def _last_uses(graph: Graph, owners: dict[str, str]) -> dict[str, int]:
    last: dict[str, int] = {}
    for step, node in enumerate(graph.nodes):
        for name in (*node.reads, *(o for o in node.outputs if o)):
            last[root_of(owners, name)] = step
    return last


def _buffers(
    graph: Graph, choices: tuple[Choice, ...], owners: dict[str, str], platform: Target
) -> tuple[list[allocation.BufferRequest], dict[int, str]]:
    outside = fixed(graph, owners)
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for step, node in enumerate(graph.nodes):
        for name in (*node.reads, *(o for o in node.outputs if o)):
            root = root_of(owners, name)
            if root not in outside:
                first.setdefault(root, step)
                last[root] = step + 1
    align = platform.alignment
    buffers = [
        allocation.BufferRequest(name, graph.types[name].bytes, first[name], last[name], align)
        for name in first
        if graph.types[name].bytes
    ]
    scratch: dict[int, str] = {}
    names = FreshNames(graph)
    for step, choice in enumerate(choices):
        if choice.scratch:
            scratch[step] = names.fresh(f"scratch of {graph.nodes[step].label}")
            buffers.append(allocation.BufferRequest(scratch[step], choice.scratch, step, step + 1, align))
    return buffers, scratch


def _places(graph: Graph, owners: dict[str, str], found: dict[str, Place]) -> dict[str, Place]:
    """The place of every tensor, where `found` says that of buffers by the tensor that owns them."""
    known = dict(found)
    known |= {root_of(owners, name): Place("output", index=i) for i, name in reversed([*enumerate(graph.given)])}
    known |= {name: Place("input", index=i) for i, name in reversed([*enumerate(graph.fed)])}
    known |= dict.fromkeys(graph.constants, Place("constant"))
    return {name: known.get(root_of(owners, name), Place("arena")) for name in tensors(graph)}
