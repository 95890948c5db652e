"""PostgreSQL's notifications, on a real server."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

import psycopg
import pytest

from bot.cli.log_view.other_logs import OtherLogs
from bot.clock import SystemClock
from bot.shards import parse_shards
from bot.shared_log.messages import CHANNEL, answers_channel
from bot.shared_log.shared_log import SharedLog
from bot.store.database import open_database
from bot.store.dialects.open import notifications_of
from bot.store.dialects.port import MOST_NOTIFICATION_CHARS
from compaction.errors import StoreError
from tests.bot.shared_log.test_requested_lines import names, write
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pydantic import SecretStr

    from bot.store.dialects.port import Notifications

pytestmark = pytest.mark.postgres


async def until_heard(link: Notifications, text: str) -> list[str]:
    """Return all texts that have come once this one has."""
    heard: list[str] = []
    async with asyncio.timeout(PATIENCE_S):
        while text not in heard:
            heard += await link.heard(PATIENCE_S)
    return heard


@pytest.mark.asyncio
async def test_a_text_reaches_all_that_listen(postgres_place: SecretStr) -> None:
    """Also the longest, whatever was told meanwhile, and also the own connection; other channels are silent."""
    longest = "x" * MOST_NOTIFICATION_CHARS
    async with (
        open_database(postgres_place) as database,
        database.notifications() as one,
        database.notifications() as two,
    ):
        for link in (one, two):
            await link.listen("here")
        await one.tell("elsewhere", "unheard")
        await one.tell("here", longest)
        await two.tell("here", "last")
        for link in (one, two):
            assert await until_heard(link, "last") == [longest, "last"]


@pytest.mark.asyncio
async def test_everybody_is_told_the_time_of_one_clock(postgres_place: SecretStr) -> None:
    """It goes on between two questions, also of different connections."""
    async with notifications_of(postgres_place) as one, notifications_of(postgres_place) as two:
        times = [await each.time() for each in (one, two, one)]
        assert times == sorted(set(times))
        assert all(isinstance(each, float) for each in times)


@pytest.mark.asyncio
async def test_a_schema_has_channels_of_its_own(postgres_place: SecretStr) -> None:
    """A server's database may have several bots."""
    url = postgres_place.get_secret_value()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA other")
    try:
        other = type(postgres_place)(f"{url}&options=-csearch_path%3Dother")
        async with notifications_of(postgres_place) as one, notifications_of(other) as two:
            await one.listen("here")
            await two.tell("here", "of the other bot")
            await one.tell("here", "own")
            assert await until_heard(one, "own") == ["own"]
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA other")


@pytest.mark.asyncio
async def test_it_says_which_shards_are_served(postgres_place: SecretStr) -> None:
    """By the locks of the processes."""
    async with open_database(postgres_place) as database, database.notifications() as link:
        assert await link.serving() == ()
        async with database.held_by_bot(parse_shards("0-1/4")):
            assert await link.serving() == (parse_shards("0-1/4"),)


@pytest.mark.asyncio
async def test_a_lost_connection_is_told_in_a_sentence(postgres_place: SecretStr) -> None:
    """Without what was sent."""
    async with notifications_of(postgres_place) as link:
        await link.listen("here")
        with psycopg.connect(postgres_place.get_secret_value(), autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        with pytest.raises(StoreError, match="is away"):
            await link.heard(PATIENCE_S)


def asking(place: SecretStr) -> OtherLogs:
    """Return what asks for the logs of others."""
    return OtherLogs(lambda: notifications_of(place), "token", "0" * 16)


@pytest.mark.asyncio
async def test_a_tail_gets_the_log_of_another_process(
    tmp_path: Path, postgres_place: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there, once, and without a word where all have answered."""
    for patience in ("ANSWER_S", "SLOW_S"):
        monkeypatch.setattr(f"bot.cli.log_view.other_logs.{patience}", PATIENCE_S)
    path = tmp_path / "roomtone.jsonl"
    write(path, *({"event": "one", "detail": f"{number} " * 100} for number in range(1_000)), {"event": "two"})
    others = asking(postgres_place)
    shards = parse_shards("0-3/4")
    async with open_database(postgres_place) as database, database.held_by_bot(shards):
        connect, clock = database.notifications, SystemClock()
        shared = SharedLog(path, connect, token="token", shards=shards, speech=False, clock=clock)
        async with shared.running():
            lines = await asyncio.to_thread(others.first)
    assert names([text for text, _ in lines]) == ["one"] * 1_000 + ["two"]
    assert others.take_sentences() == []
    await asyncio.to_thread(others.close)


class Breakable:
    """Connections that the test breaks. `breaks`: set to break the open one. `may_open`: cleared, none is opened."""

    def __init__(self, place: SecretStr) -> None:
        self._place = place
        self.breaks, self.may_open = threading.Event(), threading.Event()
        self.may_open.set()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Notifications]:
        """Yield a connection."""
        await asyncio.to_thread(self.may_open.wait)
        async with notifications_of(self._place) as link:
            heard = link.heard

            async def breaking(within_s: float) -> list[str]:
                if self.breaks.is_set():
                    self.breaks.clear()
                    raise StoreError("The database is away.")
                return await heard(within_s)

            with patch.object(link, "heard", breaking):
                yield link


@pytest.mark.asyncio
async def test_a_tail_that_loses_its_connection_misses_nothing(
    tmp_path: Path, postgres_place: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process told a line while nobody listened."""
    monkeypatch.setattr("bot.cli.log_view.other_logs.RETRY_S", 0.0)
    path = tmp_path / "roomtone.jsonl"
    write(path, {"event": "one"})
    connections, shards = Breakable(postgres_place), parse_shards("0-3/4")
    others = OtherLogs(connections.connected, "token", "0" * 16, follow=True, last=1)
    async with open_database(postgres_place) as database, database.held_by_bot(shards):
        connect, clock = database.notifications, SystemClock()
        shared = SharedLog(path, connect, token="token", shards=shards, speech=False, clock=clock)
        async with shared.running(), database.notifications() as link:
            assert names([text for text, _ in await asyncio.to_thread(others.first)]) == ["one"]
            await link.listen(answers_channel(others._tail))
            connections.may_open.clear()
            connections.breaks.set()
            async with asyncio.timeout(PATIENCE_S):
                while connections.breaks.is_set():
                    await link.heard(0.01)
                for number in range(3):
                    write(path, {"event": "two", "timestamp": f"2026-11-20T04:12:0{number}Z"})
                    # It is told, perhaps with an answer that is on its way.
                    await link.heard(1.0)
                connections.may_open.set()
                lines: list[str] = []
                while len(lines) < 3:
                    lines += names([text for text, _ in others.more()])
                    await link.heard(0.01)
            assert lines == ["two"] * 3
            assert others.take_sentences() == [
                "The logs of the bot's other processes, if it has some, are not shown: The database is away.",
                "The logs of the bot's other processes are shown again.",
            ]
    await asyncio.to_thread(others.close)


def test_one_process_is_not_asked(postgres_place: SecretStr) -> None:
    """Nothing is said, as if nobody had been asked."""
    others = asking(postgres_place)
    assert (others.first(), others.take_sentences()) == ([], [])
    others.close()


def test_a_database_that_is_away_is_said(postgres_place: SecretStr) -> None:
    """In one sentence, which does not end the tail."""
    place = type(postgres_place)("postgresql://roomtone@/x?host=/nowhere")
    others = asking(place)
    assert others.first() == []
    (said,) = others.take_sentences()
    assert said.startswith("The logs of the bot's other processes, if it has some, are not shown: postgresql://")
    others.close()


@pytest.mark.asyncio
async def test_who_began_to_listen_too_late_is_asked_again(
    tmp_path: Path, postgres_place: SecretStr, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may just have lost its connection."""
    monkeypatch.setattr("bot.cli.log_view.other_logs.RENEW_S", 0.01)
    path = tmp_path / "roomtone.jsonl"
    write(path, {"event": "one"})
    others, shards = asking(postgres_place), parse_shards("0-3/4")
    async with open_database(postgres_place) as database, database.held_by_bot(shards):
        async with database.notifications() as link:
            await link.listen(CHANNEL)
            first = asyncio.create_task(asyncio.to_thread(others.first))
            async with asyncio.timeout(PATIENCE_S):
                while not await link.heard(PATIENCE_S):
                    pass
        connect, clock = database.notifications, SystemClock()
        shared = SharedLog(path, connect, token="token", shards=shards, speech=False, clock=clock)
        async with shared.running():
            assert names([text for text, _ in await first]) == ["one"]
    await asyncio.to_thread(others.close)
