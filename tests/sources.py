"""The source files of the product, and what they import."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("benchmarks", "bot", "compaction", "config", "rehearsal", "voice")


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement: the importing module, the imported name, and whether it is only for type checking."""

    module: str
    target: str
    line: int
    typing_only: bool


def module_name(path: Path) -> str:
    """Return the dotted name of a source file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _targets(node: ast.stmt) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), names=names, level=0):
            return [f"{module}.{alias.name}" for alias in names]
        case _:
            return []


@cache
def parsed(path: Path) -> ast.Module:
    """Return a file's syntax tree, which stays: parsing all files takes as long as all these tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # The garbage collector would walk through a million nodes, seconds each time, in every later test of this process.
    gc.freeze()
    return tree


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a file's syntax tree. Walking through all takes as long as parsing."""
    return tuple(ast.walk(parsed(path)))


def imports_of(path: Path) -> list[Import]:
    """Return every import of a file, also those inside functions."""
    tree = parsed(path)
    typing_blocks = [
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
    ]
    typing_nodes = {id(node) for block in typing_blocks for line in block.body for node in (line, *statements(line))}
    return [
        Import(module_name(path), target, node.lineno, id(node) in typing_nodes)
        for node in statements(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for target in _targets(node)
    ]


def statements(block: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements in a block, and those inside them. Looking into their expressions takes most of the time."""
    for node in ast.iter_child_nodes(block):
        if isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield node
            yield from statements(node)


def sources() -> list[Path]:
    """Return every source file of the packages."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@cache
def all_imports() -> list[Import]:
    """Return every import. Not when this module is imported, as each worker of a test run does."""
    return [found for path in sources() for found in imports_of(path)]


def part_of(module: str, package: str) -> str:
    """Return the folder or module of `package` that `module` is in: `room` for `bot.room.room` and `bot`."""
    return module.removeprefix(package).removeprefix(".").split(".")[0]
