"""The names of the people in one room, prepared for telling who is addressed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.addressing import PersonName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.channel.port import Person


class PersonNames:
    """Prepares each name once: when its person comes, or is renamed. Keeps those of the people present."""

    def __init__(self) -> None:
        self._prepared: dict[int, tuple[str, PersonName]] = {}

    def update(self, people: Iterable[Person]) -> None:
        """Prepare what is new among `people`, who are all that are present."""
        present: dict[int, tuple[str, PersonName]] = {}
        for person in people:
            known = self._prepared.get(person.id)
            if known is None or known[0] != person.name:
                known = (person.name, PersonName.prepare(person.name))
            present[person.id] = known
        self._prepared = present

    def without(self, person_id: int | None) -> tuple[PersonName, ...]:
        """Return the prepared names of everybody but one."""
        return tuple(prepared for each, (_, prepared) in self._prepared.items() if each != person_id)
