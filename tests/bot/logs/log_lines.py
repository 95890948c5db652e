"""The events of a log file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the events of one log file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
