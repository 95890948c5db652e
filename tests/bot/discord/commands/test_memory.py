"""/memory me and /memory forget against the local Discord: people see and delete the facts stored about them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from bot.discord.commands.memory import NOTHING, add_memory_commands, delete_facts, format_facts
from compaction.errors import StoreError
from compaction.memory.people import PersonFact
from compaction.model import Seq, SessionId
from tests.bot.discord.commands.local_server import answer_to, server_with
from tests.bot.discord.test_client import ADA, BEN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from bot.discord.commands.memory import PersonFacts
    from rehearsal.discord.server import LocalDiscord

AT = 1_760_000_000.0  # 9 October 2025


def fact(number: int, text: str, person: int = ADA, *, ended: float | None = None) -> PersonFact:
    return PersonFact(
        id=f"evening#{number}.0",
        person_id=str(person),
        name="Ada",
        text=text,
        session_id=SessionId("evening"),
        turn_seq=Seq(number),
        at=AT,
        superseded_by=None if ended is None else "evening#9",
        superseded_at=ended,
    )


class Book:
    """Stores facts about people in memory, and records who asked."""

    def __init__(self, *facts: PersonFact) -> None:
        self.facts = list(facts)
        self.asked: list[tuple[int | None, str]] = []

    async def facts_about(self, guild_id: int | None, person_id: str) -> Sequence[PersonFact]:
        """Return a person's facts."""
        self.asked.append((guild_id, person_id))
        return [each for each in self.facts if each.person_id == person_id]

    async def forget(self, guild_id: int | None, person_id: str) -> int:
        """Delete a person's facts."""
        before = len(self.facts)
        self.facts = [each for each in self.facts if each.person_id != person_id]
        return before - len(self.facts)


class Broken:
    """A store that always fails."""

    async def facts_about(self, guild_id: int | None, person_id: str) -> Sequence[PersonFact]:
        """Fail."""
        raise StoreError("The disk is full.")

    async def forget(self, guild_id: int | None, person_id: str) -> int:
        """Fail."""
        raise StoreError("The disk is full.")


def online(people: PersonFacts) -> AbstractAsyncContextManager[LocalDiscord]:
    """Start a local Discord with the memory commands."""
    return server_with(partial(add_memory_commands, people=people))


@pytest.mark.asyncio
async def test_a_person_sees_and_deletes_what_is_kept_about_them() -> None:
    """A person sees the facts about themselves with the day, and nobody else's. After deletion there are none."""
    book = Book(fact(1, "I live in Berlin."), fact(0, "I live in Lisbon.", ended=AT), fact(2, "I'm vegan.", BEN))
    async with online(book) as local:
        told = await answer_to(local, ADA, "memory me")
        assert told == (
            "What you have said of yourself on this server:\n- I live in Berlin. (<t:1760000000:D>)\n"
            "No longer so, as far as I know:\n- I live in Lisbon. (<t:1760000000:D>)\n/memory forget deletes it."
        )
        assert book.asked == [(local.guild.id, str(ADA))]
        assert (await answer_to(local, ADA, "memory forget")).startswith("Done: I have deleted all 2 things")
        assert await answer_to(local, ADA, "memory me") == NOTHING
        assert await answer_to(local, ADA, "memory forget") == NOTHING
        assert "I'm vegan." in await answer_to(local, BEN, "memory me")


@pytest.mark.asyncio
async def test_nobody_deletes_without_end() -> None:
    """All open rooms read their memory again each time, also if nothing is kept of the person."""
    async with online(Book()) as local:
        told = [await answer_to(local, ADA, "memory forget") for _ in range(4)]
        assert told[:3] == [NOTHING] * 3
        assert "Please wait " in told[3]
        assert await answer_to(local, BEN, "memory forget") == NOTHING


@pytest.mark.asyncio
async def test_a_store_that_fails_is_a_sentence() -> None:
    """A failure of the store is reported with its remedy."""
    assert await format_facts(Broken(), 7, "1") == "I cannot look that up now. The disk is full."
    assert "The disk is full." in await delete_facts(Broken(), 7, "1")


@pytest.mark.asyncio
async def test_a_long_list_fits_a_message() -> None:
    """A long list of facts is shortened between two lines to fit a message, and says that there is more."""
    book = Book(*(fact(number, f"My dog number {number} is called *Rex*.") for number in range(100)))
    told = await format_facts(book, 7, str(ADA))
    assert len(told) <= 2000
    assert told.endswith("There is more. /memory forget deletes all of it.")
    assert all(line.endswith("(<t:1760000000:D>)") for line in told.splitlines()[1:-1])
    assert "\\*Rex\\*" in told
