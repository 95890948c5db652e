"""The events of a log file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the events of one log file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
