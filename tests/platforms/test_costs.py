"""What platforms say about the cycles of kernels that are not their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tilewright.errors import TilewrightError
from tilewright.machine.target import PLATFORMS, load_platform


def platform(folder: Path, **more: object) -> Path:
    """The platform `generic` seen from elsewhere, with more in its description."""
    data = yaml.safe_load((PLATFORMS / "generic" / "platform.yaml").read_text())
    data |= {"name": "other", "kernels": [str(PLATFORMS / "generic" / "kernels")], "runtime": [], **more}
    (folder / "platform.yaml").write_text(yaml.safe_dump(data))
    return folder


def cycles(folder: Path) -> dict[str, str]:
    return {kernel.path.name: kernel.cycles for kernel in load_platform(folder).kernels}


def test_kernels_of_others(tmp_path: Path) -> None:
    plain = cycles(platform(tmp_path))
    found = cycles(platform(tmp_path, cycles={"others": 3, "softmax_f32.c": "OUTER*AXIS*70"}))
    assert found["softmax_f32.c"] == "OUTER*AXIS*70"
    assert found["maxpool.c"] == f"3*({plain['maxpool.c']})"


def test_own_kernels_say_it_themselves(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    source = (PLATFORMS / "generic" / "kernels" / "softmax_f32.c").read_text()
    (tmp_path / "kernels" / "softmax_f32.c").write_text(source)
    kernels = ["kernels", str(PLATFORMS / "generic" / "kernels")]
    found = cycles(platform(tmp_path, kernels=kernels, cycles={"others": 3, "softmax_f32.c": "1"}))
    assert found["softmax_f32.c"] == cycles(PLATFORMS / "generic")["softmax_f32.c"]


def test_unknown_kernels_are_errors(tmp_path: Path) -> None:
    with pytest.raises(TilewrightError, match=r"there is no kernel 'nothing.c'"):
        load_platform(platform(tmp_path, cycles={"nothing.c": "1"}))
