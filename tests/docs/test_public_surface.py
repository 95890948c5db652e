"""What other programs may use is exported at a package's door, and changes only with `public_surface.txt`."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

DOORS = ("compaction", "rehearsal.pytest_plugin", "voice")
KEPT = Path(__file__).with_name("public_surface.txt")


def _surface(value: Any, name: str) -> Iterator[str]:
    """Yield a line for a public thing, and one for each public member that a class has of its own."""
    is_class = inspect.isclass(value)
    has_signature = callable(value) and (not is_class or is_dataclass(value) or "__init__" in vars(value))
    # A function as default is shown with its place in memory.
    yield re.sub(" at 0x[0-9a-f]+", "", f"{name}{inspect.signature(value)}") if has_signature else name
    if not is_class or is_dataclass(value):
        return
    for member in sorted(each for each in vars(value) if not each.startswith("_")):
        yield from _surface(getattr(value, member), f"{name}.{member}")


def test_names_and_signatures_are_those_that_programs_know() -> None:
    """`python -m tests.docs.test_public_surface` writes the file anew."""
    assert KEPT.read_text("utf-8").splitlines() == _lines()


def _lines() -> list[str]:
    doors = {door: importlib.import_module(door) for door in DOORS}
    return [
        line
        for door, module in doors.items()
        for name in sorted(module.__all__)
        for line in _surface(getattr(module, name), f"{door}.{name}")
    ]


if __name__ == "__main__":
    KEPT.write_text("\n".join([*_lines(), ""]), "utf-8")
