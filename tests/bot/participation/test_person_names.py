"""The names of a room follow who is there."""

from __future__ import annotations

from bot.channel.port import Person
from bot.participation.person_names import PersonNames

BEN, ADA = Person(1, "Ben", is_bot=False), Person(2, "Ada Lovelace", is_bot=False)


def test_nobody_calls_themselves() -> None:
    """The speaker's own name is left out; a renamed person is called by the new name, and who left by none."""
    names = PersonNames()
    names.update([BEN, ADA])
    assert names.without(1) == {"adalovelace", "ada"}
    assert names.without(2) == {"ben"}
    names.update([BEN, Person(2, "Augusta", is_bot=False)])
    assert names.without(None) == {"ben", "augusta"}
    names.update([BEN])
    assert names.without(None) == {"ben"}
