"""How a model is told a time of day, everywhere: in turns, notes, quotes and prompts of folds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import tzinfo


def format_clock_time(at: float, zone: tzinfo = UTC) -> str:
    """Return a time of day, like 21:04. `at`: UTC epoch seconds."""
    return datetime.fromtimestamp(at, zone).strftime("%H:%M")
