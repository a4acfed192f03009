"""Code generation: Plan -> Program -> C project -> build."""

from __future__ import annotations

from tilewright.codegen.build import build
from tilewright.codegen.lower import lower
from tilewright.codegen.project import project_files, project_in, write_project

__all__ = ["build", "lower", "project_files", "project_in", "write_project"]
