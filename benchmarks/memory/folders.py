"""The folders of the memory benchmark's data."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent
# The written conversations, and the facts in them.
RECORDED = _HERE / "recorded"
# What generated evenings are made of.
TEMPLATES = _HERE / "templates"
