"""The layer's public names, all in one place."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import compaction.budget


def test_every_public_name_is_had_from_the_package() -> None:
    """Those that type checkers are told of are those that are found, and they are the real ones."""
    source = ast.parse(Path(compaction.budget.__file__).read_text("utf-8"))
    told = {
        (node.module, alias.name)
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for module, name in told:
        if module is not None and module.startswith("compaction.budget."):
            assert getattr(compaction.budget, name) is getattr(sys.modules[module], name)
    assert {name for module, name in told if str(module).startswith("compaction.")} == set(compaction.budget._HOMES)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        compaction.budget.nothing  # noqa: B018


def test_any_of_its_modules_can_be_imported_first() -> None:
    """No import depends on another having been made before."""
    folder = Path(compaction.budget.__file__).parent
    for path in sorted(folder.glob("*.py")):
        module = "compaction.budget" if path.stem == "__init__" else f"compaction.budget.{path.stem}"
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True, timeout=60)
