"""A process answers tails from its log, as long as they ask."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from bot.shards import parse_shards
from bot.shared_log.messages import CHANNEL, FORGET_S, LogAnswer, LogRequest, answers_channel
from bot.shared_log.sealed import answer_seal, request_seal
from bot.shared_log.shared_log import MOST_TAILS, RETRY_S, SharedLog
from tests.bot.shared_log.bus import Bus
from tests.bot.shared_log.test_requested_lines import names, write
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.bot.shared_log.bus import BusConnection

TOKEN = "token"


class Asker:
    """The side of a tail, by hand."""

    def __init__(self, link: BusConnection, clock: FakeClock, number: int = 0) -> None:
        self._link = link
        self._clock = clock
        self.tail = f"{number:032x}"
        self.answers: list[LogAnswer] = []
        self.asked: list[str] = []

    async def ask(self, **wanted: Any) -> None:
        text = request_seal(TOKEN).sealed(LogRequest(self.tail, "south", await self._link.time(), **wanted))
        assert text is not None
        self.asked.append(text)
        await self._link.tell(CHANNEL, text)

    async def until(self, event: str) -> list[str]:
        """Return the names of all events told once this one is, without caught up twice."""
        while event not in self.names:
            await self.hear()
        return self.names

    async def hear(self) -> None:
        """Wait for an answer, and let the process go on meanwhile."""
        async with asyncio.timeout(PATIENCE_S):
            heard = asyncio.create_task(self._link.heard(0.0))
            while not heard.done():
                await asyncio.sleep(0)
                if self._clock.sleeping:
                    self._clock.advance(0.25)
                for each in self._link._bus.connections:
                    if each is not self._link:
                        each.poll()
            for text in heard.result():
                self.answers.append(answer_seal(TOKEN, self.tail).opened(text, LogAnswer))

    @property
    def names(self) -> list[str]:
        return [name for answer in self.answers for name in names(list(answer.lines))]


def shared_log(path: Path, bus: Bus, clock: FakeClock) -> SharedLog:
    return SharedLog(path, bus.connected, token=TOKEN, shards=parse_shards("2-3/4"), speech=False, clock=clock)


@asynccontextmanager
async def sharing(
    path: Path, clock: FakeClock, *, bus: Bus | None = None, shared: SharedLog | None = None
) -> AsyncIterator[tuple[Bus, BusConnection]]:
    """Share a log, and yield the database and a tail's connection."""
    bus = bus or Bus(parse_shards("0-3/4"))
    shared = shared or shared_log(path, bus, clock)
    async with shared.running(), bus.connected() as link:
        async with asyncio.timeout(PATIENCE_S):
            await bus.until_connected(2)
        yield bus, link


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with two lines."""
    path = tmp_path / "roomtone.jsonl"
    write(path, {"event": "one"}, {"event": "two"})
    return path


@pytest.mark.asyncio
async def test_a_tail_gets_what_is_there_and_what_is_added(path: Path) -> None:
    """All is numbered, and the process says when it has told what was there."""
    clock = FakeClock()
    async with sharing(path, clock) as (_, link):
        asker = Asker(link, clock)
        await link.listen(answers_channel(asker.tail))
        await asker.ask(follow=True)
        await asker.until("two")
        while not asker.answers[-1].caught_up:
            await asker.hear()
        write(path, {"event": "three"})
        assert await asker.until("three") == ["one", "two", "three"]
    assert asker.answers[0].shards == "2-3/4"
    assert [each.first for each in asker.answers if each.lines] == [0, 2]


@pytest.mark.asyncio
async def test_a_tail_that_asks_no_more_is_forgotten(path: Path) -> None:
    """It may begin anew, after the last line that it has."""
    clock = FakeClock()
    async with sharing(path, clock) as (_, link):
        asker = Asker(link, clock)
        await link.listen(answers_channel(asker.tail))
        await asker.ask(follow=True)
        await asker.until("two")
        clock.advance(FORGET_S + 1)
        # A later tail's answer: by then the process has looked who asks no more.
        later = Asker(link, clock, 1)
        await link.listen(answers_channel(later.tail))
        await later.ask()
        await later.until("two")
        write(path, {"event": "three", "timestamp": "2026-11-20T04:11:06Z"})
        await asker.ask(follow=True, since_s=60.0, seen={asker.answers[0].origin: "2026-11-20T04:11:05Z"})
        assert await asker.until("three") == ["one", "two", "three"]
    assert len({each.run for each in asker.answers}) == 2


@pytest.mark.asyncio
async def test_nobody_is_told_anything_over_a_new_connection_before_they_ask_again(path: Path) -> None:
    """What was told last may be lost. The tail says what it has, and gets all that came since, and nothing twice."""
    clock = FakeClock()
    async with sharing(path, clock) as (bus, link):
        asker = Asker(link, clock)
        await link.listen(answers_channel(asker.tail))
        await asker.ask(follow=True, last=1)
        await asker.until("two")
        (other,) = (each for each in bus.connections if each is not link)
        bus.is_away = True
        other.poll()
        async with asyncio.timeout(PATIENCE_S):
            await clock.until_somebody_sleeps()
        bus.is_away = False
        missed = ({"event": f"three_{each}", "timestamp": "2026-11-20T04:11:06Z"} for each in range(3))
        write(path, *missed, {"event": "four", "timestamp": "2026-11-20T04:11:07Z"})
        clock.advance(RETRY_S)
        async with asyncio.timeout(PATIENCE_S):
            await bus.until_connected(2)
        await asker.ask(follow=True, last=1, since_s=60.0, seen={asker.answers[0].origin: "2026-11-20T04:11:05Z"})
        assert await asker.until("four") == ["two", "three_0", "three_1", "three_2", "four"]


@pytest.mark.asyncio
async def test_too_many_tails_are_refused_and_rubbish_is_counted(path: Path) -> None:
    """Whatever comes, the process goes on."""
    clock, bus = FakeClock(), Bus(parse_shards("0-3/4"))
    shared = shared_log(path, bus, clock)
    with capture_logs() as logged:
        async with sharing(path, clock, bus=bus, shared=shared) as (_, link):
            await link.tell(CHANNEL, "rubbish")
            askers = [Asker(link, clock, number) for number in range(MOST_TAILS + 1)]
            for asker in askers[:-1]:
                await asker.ask(follow=True)
            await link.listen(answers_channel(askers[-1].tail))
            await askers[-1].ask(follow=True)
            await askers[-1].hear()
            assert askers[-1].answers[0].refused
            # One ends, and there is place.
            await askers[0].ask(ends=True)
            await askers[-1].ask(follow=True)
            assert await askers[-1].until("two") == ["one", "two"]
    events = [each["event"] for each in logged]
    assert events.count("log_shared") == MOST_TAILS + 1
    assert events.count("log_requests_refused") == 1
    assert shared.queue.dropped == {"full": 1, "refused": 1}
    assert (shared.queue.name, shared.queue.waiting, shared.queue.capacity) == ("log_tails", 0, MOST_TAILS)
    assert TOKEN not in json.dumps(logged)


@pytest.mark.asyncio
async def test_nobody_asks_again_what_the_bot_has_asked(path: Path) -> None:
    """Any user of the database hears a request and may send it again: at once, after its tail has ended, and later to a
    process that has not heard it.
    """
    clock, bus = FakeClock(), Bus(parse_shards("0-3/4"))
    shared = shared_log(path, bus, clock)
    with capture_logs() as logged:
        async with sharing(path, clock, bus=bus, shared=shared) as (_, link):
            asker, later = Asker(link, clock), Asker(link, clock, 1)
            # Not heard by this process, because it was not there.
            unheard = request_seal(TOKEN).sealed(LogRequest(f"{2:032x}", "south", await link.time()))
            assert unheard is not None
            bus.time += FORGET_S + 1
            await link.tell(CHANNEL, unheard)
            await link.listen(answers_channel(asker.tail))
            await asker.ask(follow=True)
            await asker.until("two")
            await asker.ask(ends=True)
            for text in asker.asked:
                await link.tell(CHANNEL, text)
            await link.listen(answers_channel(later.tail))
            await later.ask()
            await later.until("two")
            assert shared.queue.dropped == {"full": 0, "refused": 3}
    assert [each["event"] for each in logged].count("log_shared") == 2


@pytest.mark.asyncio
async def test_a_lost_database_is_found_again(path: Path) -> None:
    """The log says so once, and that it is back."""
    clock = FakeClock()
    with capture_logs() as logged:
        async with sharing(path, clock) as (bus, _):
            bus.is_away = True
            for each in bus.connections:
                each.poll()
            async with asyncio.timeout(PATIENCE_S):
                await clock.until_somebody_sleeps()
                clock.advance(RETRY_S)
                await asyncio.sleep(0)
                await clock.until_somebody_sleeps()
                bus.is_away = False
                clock.advance(RETRY_S)
                await bus.until_connected(2)
                await asyncio.sleep(0)
    assert [each["event"] for each in logged] == ["log_not_shared", "log_shared_again"]
