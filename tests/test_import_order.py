"""What a module is does not depend on which modules were imported before it."""

from __future__ import annotations

import subprocess
import sys

WATCH = """
import importlib, pkgutil, sys
import tilewright
from tilewright.core import op

class Watched(dict):
    def _seen(self):
        reader = sys._getframe(2).f_globals["__name__"]
        if not reader.startswith("tilewright.ops.") and reader != "tilewright.core.op":
            print(reader)

def watched(name):
    def method(self, *arguments):
        self._seen()
        return getattr(dict, name)(self, *arguments)
    return method

for name in ("__contains__", "__getitem__", "__iter__", "__len__", "get", "items", "keys", "values"):
    setattr(Watched, name, watched(name))
op.REGISTRY = Watched()
for module in pkgutil.walk_packages(tilewright.__path__, "tilewright."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def test_operators_are_looked_up_when_all_are_declared() -> None:
    """Whoever reads the registry while it is imported may be early: other modules, and users, declare more."""
    found = subprocess.run([sys.executable, "-c", WATCH], capture_output=True, text=True, check=True)
    assert found.stdout == ""
