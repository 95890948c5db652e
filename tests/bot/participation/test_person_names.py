"""The names of a room are prepared once for each person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.addressing import PersonName, calls_any
from bot.channel.port import Person
from bot.participation.person_names import PersonNames

if TYPE_CHECKING:
    import pytest

BEN, ADA = Person(1, "Ben", is_bot=False), Person(2, "Ada Lovelace", is_bot=False)


def test_a_name_is_prepared_when_somebody_comes_or_is_renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Utterances prepare nothing; who comes, comes back or takes another name is prepared once."""
    prepared: list[str] = []
    prepare = PersonName.prepare

    def counted(name: str) -> PersonName:
        prepared.append(name)
        return prepare(name)

    monkeypatch.setattr(PersonName, "prepare", counted)
    names = PersonNames()
    for present in ([BEN], [BEN, ADA], [BEN, ADA], [Person(1, "Benno", is_bot=False), ADA], [ADA], [ADA, BEN]):
        names.update(present)
        assert len(names.without(None)) == len(present)
    assert prepared == ["Ben", "Ada Lovelace", "Benno", "Ben"]


def test_nobody_calls_themselves() -> None:
    """The speaker's own name is left out; a renamed person is called by the new name."""
    names = PersonNames()
    names.update([BEN, ADA])
    assert calls_any("Ada, are you there?", names.without(1))
    assert not calls_any("Ada, are you there?", names.without(2))
    names.update([BEN, Person(2, "Augusta", is_bot=False)])
    assert calls_any("Augusta, are you there?", names.without(1))
    assert not calls_any("Ada, are you there?", names.without(1))
