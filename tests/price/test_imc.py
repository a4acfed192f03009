"""Energy, clock period and area of arrays that compute in memory, as ZigZag 3.8.5 computes them."""

from __future__ import annotations

import pytest

from tilewright.core.equation import LayerText, read_layer
from tilewright.core.mapping import SpatialMapping
from tilewright.machine.array import ArrayEngine, InMemoryCompute
from tilewright.price.array import areas, clock_period
from tilewright.price.array_imc import energies


@pytest.mark.parametrize(
    ("analog", "sizes", "bits", "used", "operations", "energy", "clock", "area"),
    [
        (True, (64, 64), (8, 8, 1, 8), (64, 48), 1179648, 1227563.981, 10.72908, 1.1237866),
        (True, (64, 64), (8, 8, 8, 8), (64, 48), 1179648, 156407.5937, 9.84956, 1.1107718),
        (True, (64, 64), (4, 8, 2, 8), (64, 48), 1179648, 308873.6885, 10.34668, 1.1216175),
        (True, (64, 64), (8, 1, 2, 8), (64, 48), 1179648, 86540.66418, 9.48628, 0.14515348),
        (True, (64, 64, 2, 2), (8, 8, 2, 6), (64, 48, 2, 2), 1179648, 447528.7713, 8.61324, 1.46927),
        (True, (16, 64), (4, 4, 1, 4), (16, 48), 1179648, 152008.4032, 5.50316, 0.017234946),
        (False, (64, 64), (8, 8, 1, 0), (64, 48), 1179648, 334207.2545, 3.43204, 0.20400125),
        (False, (64, 64), (8, 8, 8, 0), (64, 48), 1179648, 322000.5519, 3.89092, 1.5727359),
        (False, (64, 64), (4, 8, 2, 0), (64, 48), 1179648, 163090.4648, 3.16436, 0.39850074),
        (False, (64, 64), (8, 1, 2, 0), (64, 48), 1179648, 74968.10496, 2.87756, 0.089178342),
        (False, (64, 64, 2, 2), (8, 8, 2, 0), (64, 48, 2, 2), 1179648, 328187.5108, 3.54676, 1.6026795),
        (False, (16, 64), (4, 4, 1, 0), (16, 48), 1179648, 92414.21414, 2.66724, 0.028090746),
        (True, (16, 8), (8, 8, 2, 8), (12, 7), 216000, 749984.0026, 7.80364, 0.2765455),
        (False, (16, 8), (8, 8, 2, 0), (12, 7), 216000, 70007.328, 2.57164, 0.013948115),
    ],
)
def test_variants(
    analog: bool,
    sizes: tuple[int, ...],
    bits: tuple[int, int, int, int],
    used: tuple[int, ...],
    operations: int,
    energy: float,
    clock: float,
    area: float,
) -> None:
    """`bits` are those of activations, weights, a serial step and converters; `used` the units along each dimension."""
    imc = InMemoryCompute(analog, *bits)
    names = [f"D{number + 1}" for number in range(len(sizes))]
    engine = ArrayEngine("imc", dict(zip(names, sizes, strict=True)), (), compute_in_memory=imc)
    # What is unrolled matters, not which dimensions of the layer it is.
    layer = read_layer(LayerText("layer", "", "O[n] += I[n] * W[n]", {"N": operations}))
    spatial = SpatialMapping({name: (("N", units),) for name, units in zip(names, used, strict=True)})
    assert sum(energies(engine, imc, layer, spatial).values()) == pytest.approx(energy, rel=1e-8)
    assert clock_period(engine) == pytest.approx(clock, rel=1e-7)
    assert sum(areas(engine).values()) == pytest.approx(area, rel=1e-7)


def test_neighbouring_outputs_lie_along_a_diagonal() -> None:
    """4 columns of OX read 6 inputs along FX; what is not shifted keeps its rows, and so does FY without OY."""
    imc = InMemoryCompute(True, 8, 8, 2, 8)
    engine = ArrayEngine("imc", {"D1": 128, "D2": 128}, (), compute_in_memory=imc)
    sizes = {"K": 16, "C": 12, "OX": 8, "OY": 8, "FX": 3, "FY": 3}
    text = "O[k][oy][ox] += W[k][c][fy][fx] * I[c][iy][ix]"
    layer = read_layer(LayerText("layer", "", text, sizes, ("ix=1*ox+1*fx", "iy=1*oy+1*fy")))

    def rows(along: tuple[tuple[str, int], ...], across: tuple[tuple[str, int], ...]) -> float:
        """By the converters of inputs, of which each row has one: 0.081 pJ for every use of the array."""
        spatial = SpatialMapping({"D1": along, "D2": across})
        units = spatial.factor("K") * spatial.factor("OX") * spatial.factor("OY")
        uses = layer.operations / units / spatial.factor("C") / spatial.factor("FX") / spatial.factor("FY") * 4
        return energies(engine, imc, layer, spatial)["converters to analog"] / uses / 0.081

    assert rows((("K", 16),), (("C", 12), ("FX", 3))) == pytest.approx(36)
    assert rows((("K", 16), ("OX", 4)), (("C", 12), ("FX", 3))) == pytest.approx(72)
    assert rows((("K", 16), ("OX", 2), ("OY", 2)), (("C", 4), ("FX", 3), ("FY", 3))) == pytest.approx(64)
    assert rows((("K", 16), ("OX", 4)), (("C", 12), ("FY", 3))) == pytest.approx(36)
    assert rows((("K", 16), ("OX", 4)), (("C", 1),)) == pytest.approx(1)
