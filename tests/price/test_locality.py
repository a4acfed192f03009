"""Results that stay on chip."""

from __future__ import annotations

from msgspec.structs import replace

from price.small_array import BUFFER, MACHINE, REGISTER, product
from tilewright.core.workload import Layer, Workload
from tilewright.machine.array import FROM_LOW, TO_LOW, ArrayEngine, MemoryLevel, Port
from tilewright.price.locality import local_engines

DRAM = MemoryLevel(
    "dram",
    1 << 20,
    ("I1", "I2", "O"),
    (Port("port", "read_write", 8, 8, (("I1", TO_LOW), ("I2", TO_LOW), ("O", TO_LOW), ("O", FROM_LOW))),),
    ("D1",),
)


def named(name: str, *sources: str) -> Layer:
    layer = product()
    inputs = tuple(replace(o, sources=sources) if o.name == "I" else o for o in layer.inputs)
    return replace(layer, name=name, inputs=inputs)


def machine(bits: int) -> ArrayEngine:
    """With a buffer of activations; weights come from outside."""
    buffer = replace(BUFFER, bits=bits, slots=("I1", "O"))
    return replace(MACHINE, memories=(REGISTER, buffer, DRAM))


def tops(workload: Workload, engine: ArrayEngine) -> dict[str, tuple[str, str, str]]:
    """The outermost memory of the input, the weights and the output of each layer."""
    engines = local_engines(workload, engine)
    return {
        name: tuple(local.levels(slot)[-1].name for slot in ("I1", "I2", "O"))  # type: ignore[misc]
        for name, local in engines.items()
    }


def test_a_chain_stays_on_chip() -> None:
    """A layer reads 64 bits and makes 8 sums of 16 bits."""
    chain = Workload("chain", (named("a"), named("b", "a"), named("c", "b")))
    stays = ("buffer", "dram", "buffer")
    assert tops(chain, machine(192)) == {"a": stays, "b": stays, "c": stays}


def test_what_does_not_fit_leaves() -> None:
    chain = Workload("chain", (named("a"), named("b", "a")))
    leaves = ("dram", "dram", "dram")
    assert tops(chain, machine(191)) == {"a": leaves, "b": leaves}


def test_branches_leave_and_come_back() -> None:
    """Where layers branch off or join, results go outside."""
    diamond = Workload("diamond", (named("a"), named("b", "a"), named("c", "a"), named("d", "b", "c")))
    found = tops(diamond, machine(4096))
    assert found["a"][2] == "dram"
    assert found["b"] == ("dram", "dram", "dram")
    assert found["d"] == ("dram", "dram", "buffer")
