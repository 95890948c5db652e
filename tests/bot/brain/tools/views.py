"""Fake screens that show a map."""

from __future__ import annotations

import json
from collections.abc import Sequence

MAP = json.dumps({"url": "https://maps.example/lisbon?q=1", "text": "The map:"})


class View:
    """Fake screens that show a map."""

    def __init__(self) -> None:
        self.shared: list[str] = []

    def sharing(self) -> Sequence[str]:
        """Return the names of the people who share."""
        return self.shared

    async def look(self, question: str, *, who: str | None) -> str:
        """Return a fixed description with the question."""
        return f"{who or 'Ada'} shows a map. You asked: {question}"
