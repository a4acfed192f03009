"""A platform with ITA: the cluster of Siracusa with it in the place of NEUREKA."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

from tilewright.base.descriptions import read_yaml
from tilewright.machine.target import DESCRIPTION, PLATFORMS

BASE, MEMORY = 0x10201C00, 0x10000000


def ita_cluster(folder: Path) -> Path:
    """The folder of the platform, a description alone."""
    # What is read is read once for all, so that a copy is changed.
    data = cast("dict[str, Any]", deepcopy(read_yaml(PLATFORMS / "siracusa" / DESCRIPTION, "bad-platform")))
    data["name"] = "ita-cluster"
    # Its L2 holds the large examples; weights and activations come from there tile by tile.
    takes = [{"op": "ITALinear"}, {"op": "ITAAttention"}]
    data["engines"]["ita"] = {"kind": "device", "memory": "L1", "peak": 1024, "device": "ita", "takes": takes}
    data["kernels"] = ["ita/kernels", "siracusa/kernels", "generic/kernels"]
    data["runtime"] = ["siracusa/runtime", "ita/runtime"]
    data["language"] = []
    data["build"]["flags"] += f" -DTW_ITA={BASE:#x}u -DTW_ITA_MEMORY={MEMORY:#x}u"
    data["simulator"]["devices"]["ita"] = {
        "kind": "ita",
        "base": BASE,
        "size": 0x400,
        "memory": "L1",
        "events": "event_unit",
        "event": 13,
        "start_cycles": 2,
        "drain_cycles": 11,
        "next_cycles": 3,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DESCRIPTION).write_text(json.dumps(data), encoding="utf-8")
    return folder
