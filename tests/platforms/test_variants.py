"""One platform.yaml that describes several machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import refused, relu
from tilewright.errors import TilewrightError
from tilewright.machine.target import load_platform, platform_names

FAMILY = """
name: family
summary: Machines of mine.
channels_last: 1
alignment: 16
memories: {RAM: {bytes: 1024, reserved: 24}}
engines: {cpu: {kind: cores, count: 1, memory: RAM}}
kernels: []
build: {compiler: cc, machine: -O0, flags: -g, libraries: -lm}
variants:
  small: {}
  large:
    summary: The large one.
    memories: {RAM: {bytes: 4096}, MORE: {bytes: 64}}
    build: {machine: -O2}
"""


@pytest.fixture
def family(tmp_path: Path) -> Path:
    (tmp_path / "platform.yaml").write_text(FAMILY)
    return tmp_path


def test_a_variant_changes_what_it_names(family: Path) -> None:
    small, large = load_platform(family / "small"), load_platform(family / "large")
    assert (small.name, large.name) == ("small", "large")
    assert (small.summary, large.summary) == ("Machines of mine.", "The large one.")
    assert small.memories["RAM"].bytes == 1000
    assert large.memories["RAM"].bytes == 4072
    assert list(large.memories) == ["RAM", "MORE"]
    assert small.build["flags"] == "-O0 -g"
    assert large.build["flags"] == "-O2 -g"


def test_the_folder_alone_is_no_machine(family: Path) -> None:
    with pytest.raises(TilewrightError, match="is several machines"):
        load_platform(family)


def test_an_unknown_variant(family: Path) -> None:
    with pytest.raises(TilewrightError, match="there is no platform"):
        load_platform(family / "other")


def test_a_variant_may_be_measured_as_another(family: Path) -> None:
    (family / "platform.yaml").write_text(FAMILY.replace("small: {}", "small: {measured_as: large}"))
    small, large = load_platform(family / "small"), load_platform(family / "large")
    assert small.measured_as is not None
    assert (small.measured_as.name, small.measured_as.build) == ("large", large.build)
    assert large.measured_as is None


@pytest.mark.parametrize("large", ["large:\n    measured_as: small", "large:"])
def test_variants_that_are_measured_as_each_other_end(family: Path, large: str) -> None:
    text = FAMILY.replace("small: {}", "small: {measured_as: large}").replace("large:", large)
    (family / "platform.yaml").write_text(text)
    found = load_platform(family / "small").measured_as
    assert found is not None
    assert found.measured_as is None


def test_an_unknown_variant_to_be_measured_as(family: Path) -> None:
    (family / "platform.yaml").write_text(FAMILY.replace("small: {}", "small: {measured_as: huge}"))
    with pytest.raises(TilewrightError, match="there is no variant 'huge'"):
        load_platform(family / "small")


def test_variants_are_mappings(family: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (family / "platform.yaml").write_text(FAMILY.replace("small: {}", "small: 3"))
    text = refused("bad-platform", capsys, "compile", relu(tmp_path), "--platform", family / "small")
    assert "variants.small: must be a mapping" in text


def test_names_of_the_package_are_those_of_variants() -> None:
    names = platform_names()
    assert {"cortex-m0plus", "cortex-m33", "cortex-m4", "cortex-m55", "cortex-m7", "generic"} <= set(names)
    assert "cortexm" not in names
