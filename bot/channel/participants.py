"""Who is with the bot in a channel, and what those who were are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bot.channel.port import Person, Place


class Participants:
    """The people of one room. `place` says who is there now; names are kept of those who left."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._names: dict[int, str] = {}

    @property
    def people(self) -> list[Person]:
        """Return who is in the channel now and no bot."""
        return [person for person in self._place.company() if not person.is_bot]

    @property
    def everybody(self) -> list[Person]:
        """Return who is in the channel now, bots too, without the bot itself."""
        return list(self._place.company())

    def present(self) -> list[tuple[str, str]]:
        """Return who is in the channel now, as turns know them: id and display name."""
        return [(str(person.id), person.name) for person in self.people]

    def note(self, person: Person) -> None:
        """Remember what somebody who came or went is called."""
        self._names[person.id] = person.name

    def find(self, user_id: int) -> Person | None:
        """Return who that is, if they are in the channel now; bots too."""
        return next((person for person in self._place.company() if person.id == user_id), None)

    def name(self, user_id: int) -> str:
        """Return a person's name, also of one who has just left."""
        self._names.update((person.id, person.name) for person in self._place.company())
        return self._names.get(user_id, "Somebody")
