"""The rules of the architecture as functions over a source tree; each returns one line per violation.

They read files only (by `ast`), so a tree made up by a test is judged just as the package is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = "tilewright"

LAYERS = (
    {"errors", "_native"},
    {"base"},
    {"machine"},
    {"core"},
    {"ops"},
    {"frontend", "language", "passes", "quantize"},
    {"price"},
    {"timeline"},
    {"mapping", "plan"},
    {"codegen", "schedule", "sim"},
    {"compat", "explore", "report"},
    {"api"},
    {"cli"},
)
"""From the bottom up: a part imports from itself and from layers below its own, never from a sibling."""

PUBLIC = "__init__"
"""The package's own `__init__.py`, the public API: it may import everything and is imported by `cli` alone."""

CONFINED: Mapping[str, str] = {
    "onnx": "frontend",
    "typer": "cli",
    "click": "cli",
    "rich": "cli",
}
"""Libraries that one part alone imports."""

ONE_MODULE: Mapping[str, frozenset[str]] = {
    "the solver": frozenset({"ortools"}),
    "plotting": frozenset({"matplotlib", "plotly", "seaborn", "bokeh", "altair"}),
}
"""Libraries that one module alone imports, whichever it is."""

OPERATOR_PARTS = frozenset({"ops", "passes", "frontend", "language", "quantize"})
"""The parts that may name operators."""

DEFAULT_PLATFORM = "DEFAULT_PLATFORM"
"""The one constant that may hold the name of a platform."""

COMMON_WORDS = frozenset({"generic"})
"""Target names that are English words as well: running text and longer identifiers may contain them."""

LINE_LIMIT = 500
SOURCE_SUFFIXES = frozenset({".py", ".c", ".h"})

MACHINE_PATH = re.compile(r"((?<![\w.~$/)}\]])|(?<=file://))/(work|tmp|root|home|Users)\b(?![\w-])")


@dataclass(frozen=True)
class Module:
    """One Python file of the package."""

    root: Path
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"), filename=str(self.path))

    @property
    def relative(self) -> Path:
        return self.path.relative_to(self.root)

    @property
    def part(self) -> str:
        return part_named(self.relative.parts[0].partition(".")[0])

    @property
    def package(self) -> tuple[str, ...]:
        """The dotted name that relative imports start from."""
        return (PACKAGE, *self.relative.parent.parts)

    def at(self, line: int, message: str) -> str:
        return f"{PACKAGE}/{self.relative.as_posix()}:{line}: {message}"


def part_named(name: str) -> str:
    """The part a top-level name belongs to: `cli_test.py` and `__main__.py` are the command line too."""
    return "cli" if name == "__main__" or name.startswith("cli_") else name


def modules(root: Path) -> list[Module]:
    """Every module below the package folder `root`, and stubs that say what a package offers."""
    return [Module(root, path) for path in sorted(root.rglob("*.py*")) if path.suffix in (".py", ".pyi")]


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Line and dotted name of all that a module imports, inside functions and by literal `import_module` too."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module.split(".") if node.module else []
            if node.level:
                source = [*module.package[: len(module.package) - node.level + 1], *source]
            # `from tilewright import core` means the part; the names of deeper modules make no difference here.
            deeper = len(source) == 1
            yield from ((node.lineno, ".".join([*source, alias.name] if deeper else source)) for alias in node.names)
        elif isinstance(node, ast.Call) and _function_name(node) in {"import_module", "__import__"}:
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield node.lineno, first.value


def import_direction(root: Path) -> list[str]:
    """Parts import downwards only."""
    rank = {part: index for index, layer in enumerate(LAYERS) for part in layer}
    found: list[str] = []
    for module in modules(root):
        if module.part == PUBLIC:
            continue
        if module.part not in rank:
            found.append(module.at(1, f"'{module.part}' has no place in LAYERS of tests/architecture.py"))
            continue
        for line, target in imports(module):
            other = _imported_part(root, target)
            if other is None or other == module.part or (other == PUBLIC and module.part == "cli"):
                continue
            if other == PUBLIC:
                found.append(
                    module.at(line, f"'{module.part}' imports the public API; import the part that defines it")
                )
            elif other not in rank:
                found.append(module.at(line, f"'{module.part}' imports '{other}', which is no part of the package"))
            elif rank[other] >= rank[module.part]:
                relation = "its sibling" if rank[other] == rank[module.part] else "from above"
                found.append(module.at(line, f"'{module.part}' imports {relation} '{other}'"))
    return found


def confined_libraries(root: Path) -> list[str]:
    """Libraries stay in the part, or the one module, that wraps them."""
    found: list[str] = []
    users: dict[str, dict[Path, str]] = {topic: {} for topic in ONE_MODULE}
    for module in modules(root):
        for line, target in imports(module):
            library = target.split(".")[0]
            home = CONFINED.get(library, module.part)
            if home != module.part:
                found.append(module.at(line, f"imports {library}, which only {home} may"))
            for topic, libraries in ONE_MODULE.items():
                if library in libraries:
                    users[topic].setdefault(module.path, module.at(line, f"imports {library}"))
    for topic, places in users.items():
        if len(places) > 1:
            found += [f"{place}, but {topic} is for one module alone" for place in places.values()]
    return found


def platform_names(root: Path) -> list[str]:
    """No platform is named outside its own folder, but once: as the default."""
    names = sorted(path.parent.name for path in (root / "platforms").glob("*/platform.yaml"))
    found: list[str] = []
    defaults: list[str] = []
    for module in modules(root):
        if module.part == "platforms":
            found.append(module.at(1, "platforms/ is data: YAML, C and templates, no Python"))
            continue
        default = _default_platform(module.tree)
        ignored = _prose_nodes(module.tree)
        if default is not None:
            defaults.append(module.at(default.lineno, f"defines {DEFAULT_PLATFORM}"))
            ignored.add(id(default))
        for node in ast.walk(module.tree):
            if id(node) in ignored:
                continue
            found += [module.at(line, f"names the platform '{n}'") for n in names for line in _mentions(node, n)]
    if len(defaults) > 1:
        found += [f"{place}, which another module does too" for place in defaults]
    return found


def operator_names(root: Path, names: Collection[str]) -> list[str]:
    """No operator is named by a string outside the parts that are about operators."""
    return [
        module.at(node.lineno, f"names the operator '{node.value}'; ask its declaration instead")
        for module in modules(root)
        if module.part not in OPERATOR_PARTS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    ]


def long_files(top: Path, files: Iterable[Path], reasons: Mapping[str, str]) -> list[str]:
    """Source files keep to the limit, unless `reasons` says why one does not."""
    found: list[str] = []
    excused = dict(reasons)
    for path in sorted(files):
        if path.suffix not in SOURCE_SUFFIXES:
            continue
        name = path.relative_to(top).as_posix()
        count = len(path.read_text(encoding="utf-8").splitlines())
        if count > LINE_LIMIT and not excused.pop(name, ""):
            found.append(f"{name}: {count} lines, more than {LINE_LIMIT}; split it, or give the reason in LONG_FILES")
    found += [f"{name}: listed in LONG_FILES, but not a file of more than {LINE_LIMIT} lines" for name in excused]
    return found


def machine_paths(top: Path, files: Iterable[Path]) -> list[str]:
    """No text file holds a path of the machine it was written on."""
    found: list[str] = []
    for path in sorted(files):
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):  # binary, or deleted but not yet committed
            continue
        found += [
            f"{path.relative_to(top).as_posix()}:{number}: path of a machine: {line.strip()[:100]}"
            for number, line in enumerate(text.splitlines(), 1)
            if MACHINE_PATH.search(line)
        ]
    return found


def _imported_part(root: Path, target: str) -> str | None:
    """The part of the package an imported name lies in; None for other packages."""
    parts = target.split(".")
    if parts[0] != PACKAGE:
        return None
    if len(parts) == 1:
        return PUBLIC
    is_part = (root / parts[1]).is_dir() or any((root / f"{parts[1]}{end}").is_file() for end in (".py", ".pyi"))
    return part_named(parts[1]) if is_part else PUBLIC


def _function_name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _prose_nodes(tree: ast.Module) -> set[int]:
    """Strings that stand as statements: documentation."""
    return {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _default_platform(tree: ast.Module) -> ast.expr | None:
    """The value of the module-level constant DEFAULT_PLATFORM."""
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == DEFAULT_PLATFORM for target in targets):
            assert isinstance(node, (ast.Assign, ast.AnnAssign))
            return node.value
    return None


def _mentions(node: ast.AST, name: str) -> Iterator[int]:
    """The line of a node that names a platform by a string or an identifier."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        running_text = name in COMMON_WORDS and re.search(r"\s", node.value.strip())
        if not running_text and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", node.value, re.IGNORECASE):
            yield node.lineno
        return
    identifier, line = _identifier(node)
    words = {identifier} if name in COMMON_WORDS else set(identifier.split("_"))
    if name.lower() in {word.lower() for word in words}:
        yield line


def _identifier(node: ast.AST) -> tuple[str, int]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return name, node.lineno
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name, node.lineno
        case ast.keyword(arg=str(name)):
            return name, node.lineno
        case _:
            return "", 0
