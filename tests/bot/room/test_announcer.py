"""Who is told that the bot listens, when, and how."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.channel.port import Person
from bot.room.notice import GATHER_S, NO_MARK, Announcer, ListeningNotice
from tests.fakes.clock import FakeClock
from tests.fakes.place import ADA, BO, OTHER_BOT, FakePlace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

CY, DEE = Person(4, "Cy", False), Person(5, "Dee", False)


class Hall:
    """A channel with an announcer; the voice works if `voiced`."""

    def __init__(self) -> None:
        self.place = FakePlace(people=[ADA, OTHER_BOT])
        self.clock = FakeClock()
        self.voiced = True
        self.spoken: list[Sequence[str]] = []
        self.announcer = Announcer(self.place, ListeningNotice(), speak=self.speak, clock=self.clock)

    async def speak(self, sentences: Sequence[str]) -> bool:
        """Store what is said aloud."""
        if self.voiced:
            self.spoken.append(sentences)
        return self.voiced

    async def come(self, *people: Person) -> None:
        """Let people come in, and all tasks run."""
        for person in people:
            self.place.people.append(person)
            self.announcer.on_joined()
        await self.wait(0.0)

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(seconds)
        for _ in range(10):
            await asyncio.sleep(0)


@asynccontextmanager
async def a_hall() -> AsyncIterator[tuple[Hall, asyncio.Task[None]]]:
    """Give the first notice and run the announcer."""
    hall = Hall()
    await hall.announcer.begin()
    running = asyncio.create_task(hall.announcer.run(), name="announcer")
    try:
        yield hall, running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_people_who_come_later_are_told_once_and_together() -> None:
    """Newcomers share one notice half a minute after the last; who was told and comes back gets no other."""
    async with a_hall() as (hall, _):
        assert len(hall.place.notices) == 1
        await hall.come(BO, CY)
        assert len(hall.place.notices) == 1
        await hall.wait(GATHER_S)
        assert len(hall.place.notices) == 2
        hall.place.people.remove(BO)
        await hall.wait(2 * GATHER_S)
        await hall.come(BO)
        await hall.wait(2 * GATHER_S)
        assert len(hall.place.notices) == 2
        await hall.come(DEE)
        assert len(hall.place.notices) == 3


async def test_who_was_told_before_a_crash_is_not_told_again() -> None:
    """The room goes on hearing at once. The mark is shown in any case, as soon as the announcer runs."""
    hall = Hall()
    told: list[frozenset[int]] = []
    people = frozenset({ADA.id})
    again = Announcer(
        hall.place, ListeningNotice(), speak=hall.speak, clock=hall.clock, told=people, on_told=told.append
    )
    await again.begin()
    assert again.has_told(ADA.id)
    assert not again.has_told(BO.id)
    assert (hall.place.notices, told) == ([], [])
    running = asyncio.create_task(again.run(), name="announcer")
    await hall.wait(0.0)
    assert hall.place.shown_as_listening
    running.cancel()


async def test_a_bot_that_comes_is_told_nothing() -> None:
    """Another bot is never heard, so it needs no notice."""
    async with a_hall() as (hall, _):
        await hall.wait(GATHER_S)
        await hall.come(Person(6, "Juke two", True))
        assert len(hall.place.notices) == 1


async def test_each_notice_comes_with_the_mark() -> None:
    """The mark is set again with each notice, and the notice says so if nothing shows that the bot listens."""
    async with a_hall() as (hall, _):
        shown = [hall.place.shown_as_listening]
        assert NO_MARK not in hall.place.notices[0]
        hall.place.markable = False
        await hall.come(BO)
        await hall.wait(GATHER_S)
        shown.append(hall.place.shown_as_listening)
        assert shown == [True, False]
        assert NO_MARK in hall.place.notices[1]
