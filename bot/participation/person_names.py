"""The names of the people in one room, prepared for telling who is addressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.addressing import call_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.channel.port import Person


class PersonNames:
    """Prepares each name once: when its person comes, or is renamed. Keeps those of the people present."""

    def __init__(self) -> None:
        self._prepared: dict[int, tuple[str, frozenset[str]]] = {}

    def update(self, people: Iterable[Person]) -> None:
        """Prepare what is new among `people`, who are all that are present."""
        present: dict[int, tuple[str, frozenset[str]]] = {}
        for person in people:
            known = self._prepared.get(person.id)
            if known is None or known[0] != person.name:
                known = (person.name, call_names(person.name))
            present[person.id] = known
        self._prepared = present

    def without(self, person_id: int | None) -> frozenset[str]:
        """Return what everybody but one may be called."""
        return frozenset().union(*(names for each, (_, names) in self._prepared.items() if each != person_id))
