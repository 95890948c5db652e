"""Something that holds words of people, and notes which were withdrawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.withdrawal import WordsWithdrawn


class FakeWordsHolder:
    """Notes every withdrawal."""

    def __init__(self) -> None:
        self.events: list[WordsWithdrawn] = []

    @property
    def people(self) -> list[str]:
        """Return whose words were withdrawn so far, in order."""
        return [person_id for event in self.events for person_id in sorted(event.people)]

    @property
    def turns(self) -> int:
        """Return how often turns of the room's session were withdrawn."""
        return sum(bool(event.turns) for event in self.events)

    def on_withdrawn(self, event: WordsWithdrawn) -> None:
        """Note the event."""
        self.events.append(event)
