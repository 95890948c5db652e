"""The folders of the memory benchmark's data."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent
# Short talks, one table a file.
CASES = _HERE / "cases"
# The written conversations, what readers found in texts about them, and the answers of models.
RECORDED = _HERE / "recorded"
ANSWERS = RECORDED / "answers"
# What generated evenings are made of.
TEMPLATES = _HERE / "templates"
