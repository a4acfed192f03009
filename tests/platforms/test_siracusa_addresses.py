"""C headers and the linker script of Siracusa say the addresses that `platform.yaml` says."""

from __future__ import annotations

import re

from tilewright.machine.target import load_platform

SIRACUSA = load_platform("siracusa")
TIMING = next(iter(SIRACUSA.timings.values()))


def defined() -> dict[str, int]:
    """Numbers that the platform's own headers define."""
    headers = [path for path in SIRACUSA.headers if path.parent.parent == SIRACUSA.folder]
    text = "\n".join(path.read_text() for path in headers)
    plain = re.findall(r"^#define (TW_\w+) (0x[0-9A-Fa-f]+)u?\b", text, re.MULTILINE)
    events = re.findall(r"^#define (TW_\w+_EVENT) \(1u << (\d+)\)", text, re.MULTILINE)
    return {name: int(value, 0) for name, value in (*plain, *events)}


def test_headers() -> None:
    devices, memories = TIMING.devices, SIRACUSA.memories
    windows = {window.name: window for window in TIMING.windows}
    wanted: dict[str, object] = {
        "TW_CLUSTER_CONTROL": devices["cluster_control"].base,
        "TW_CACHE_CONTROL": devices["cache_control"].base,
        "TW_EVENTS": windows["event_unit_port"].base,
        "TW_DMA": windows["mchan_port"].base,
        "TW_UDMA": devices["udma"].base,
        "TW_STDOUT": devices["stdout"].base,
        "TW_NEUREKA": devices["neureka"].base,
        "TW_WEIGHT_MEMORY": memories["WMEM"].base,
        "TW_WEIGHT_MEMORY_BYTES": memories["WMEM"].length,
        "TW_L3": memories["L3"].image,
        "TW_DMA_EVENT": devices["mchan"].settings["event"],
        "TW_NEUREKA_EVENT": devices["neureka"].settings["event"],
        "TW_BARRIER_EVENT": devices["event_unit"].settings["barrier_event"],
    }
    found = defined()
    assert {name: found.get(name) for name in wanted} == wanted


def test_linker_script() -> None:
    script = (SIRACUSA.folder / "runtime" / "link.ld").read_text()
    parts = re.findall(r"^  (\w+) : ORIGIN = (\w+), LENGTH = (\w+)", script, re.MULTILINE)
    linked = {name: (int(start, 0), int(size, 0)) for name, start, size in parts}
    near_start, near_size = linked.pop("NEAR")
    for name, (start, size) in linked.items():
        memory = SIRACUSA.memories[name]
        assert (start, size) == (memory.image if memory.base is None else memory.base, memory.length), name
    l1 = SIRACUSA.memories["L1"]
    assert l1.base is not None
    assert near_start + near_size == l1.base + l1.length
