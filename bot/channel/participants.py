"""The people in the bot's channel, and the names of those who have left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.words import Leased, Words

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.channel.port import Person, RoomChannel


class Participants:
    """The people of one room. Remembers the names of those who have left."""

    def __init__(
        self, channel: RoomChannel, words: Words, name_of: Callable[[str, str], str] = lambda _, name: name
    ) -> None:
        """`name_of`: returns the name in the session's turns for an id and a display name."""
        self._channel = channel
        self._name_of = name_of
        self._words = words
        self._names: dict[int, Leased[str]] = {}

    @property
    def people(self) -> list[Person]:
        """Return the people in the channel now, without bots."""
        return [person for person in self._channel.members() if not person.is_bot]

    def present(self) -> list[tuple[str, str]]:
        """Return id and name of the people in the channel now, in the form that turns use."""
        names = self.names()
        return [(str(person.id), names[person.id]) for person in self.people]

    def note_name(self, person: Person) -> None:
        lease = self._words.lease({person.id}, since=None)
        self._names[person.id] = Leased(self._session_name(person), lease)

    def gone(self) -> list[tuple[str, str]]:
        """Return id and name of those who were in the channel and are not now, in the form that turns use."""
        here = {person.id for person in self._channel.members()}
        return [(str(user_id), name) for user_id, name in self.names().items() if user_id not in here]

    def find(self, user_id: int) -> Person | None:
        """Return the member of the channel with this id, people and other bots alike, or None."""
        return next((person for person in self._channel.members() if person.id == user_id), None)

    def name(self, user_id: int) -> str:
        """Return a person's name in the session, also after they have left."""
        return self.names().get(user_id, "Somebody")

    def names(self) -> dict[int, str]:
        """Return the names in the session of all who are or were in the channel, by id."""
        here = {person.id: self._session_name(person) for person in self._channel.members()}
        for person in self._channel.members():
            self.note_name(person)
        known = ((user_id, each.take()) for user_id, each in self._names.items())
        return {user_id: name for user_id, name in known if name is not None} | here

    def _session_name(self, person: Person) -> str:
        return self._name_of(str(person.id), person.name)
