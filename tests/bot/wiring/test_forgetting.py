"""What is deleted of a person goes from the rooms of other processes too."""

from __future__ import annotations

from typing import Any, cast
from weakref import WeakSet

import pytest

from bot.wiring.forgetting import PersonFactsEverywhere


class Room:
    """A room of another process, which has a book of its own. It counts how often it reads it again."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.facts = 3

    async def refresh(self) -> None:
        """Read what is stored."""
        self.facts = self.book.stored


class Book:
    """The book of the gateway process."""

    def __init__(self) -> None:
        self.stored = 3

    async def forget(self, _guild_id: int | None, _person_id: str) -> int:
        """Delete the facts."""
        deleted, self.stored = self.stored, 0
        return deleted


@pytest.mark.asyncio
async def test_facts_that_somebody_deletes_are_used_in_no_room_any_more() -> None:
    """/memory forget is answered when the rooms have read their books again."""
    book = Book()
    rooms = [Room(book), Room(book)]
    people = PersonFactsEverywhere(cast("Any", book), WeakSet(cast("Any", rooms)))
    assert await people.forget(10, "1") == 3
    assert [room.facts for room in rooms] == [0, 0]
