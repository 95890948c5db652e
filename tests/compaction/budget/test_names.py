"""`compaction.budget` exports the public names of specification 4."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import compaction.budget


def test_every_public_name_is_had_from_the_package() -> None:
    """The names that specification 4 asks for can be imported from `compaction.budget`."""
    for name in (
        "build_final_prompt",
        "enforce_context_limit",
        "estimate_text_tokens",
        "estimate_tokens",
        "extract_key_info",
        "get_active_files",
        "summarize_context",
        "trim_conversation",
        "truncate_old_tool_outputs",
    ):
        assert callable(getattr(compaction.budget, name))


def test_any_of_its_modules_can_be_imported_first() -> None:
    """Every module of the package can be imported first, before any other module."""
    folder = Path(compaction.budget.__file__).parent
    for path in sorted(folder.glob("*.py")):
        module = "compaction.budget" if path.stem == "__init__" else f"compaction.budget.{path.stem}"
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
