"""What servers have chosen is kept: the contract of the store, for the database and for the one in memory."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select
from structlog.typing import EventDict

from bot.guild import Silence, VoiceMode
from bot.server_settings import (
    DEFAULTS,
    ListenOnly,
    ListenRequest,
    MemoryServerSettings,
    ServerSettings,
    ServerSettingsBook,
    ServerSettingsStore,
    from_damaged,
    from_json,
    to_json,
    without_person,
)
from bot.store.database import Database, open_database
from bot.store.servers import SqlServerSettings
from bot.store.speech_forgetting import SpeechForgetter
from bot.store.tables import server_settings
from compaction.errors import StoreError
from compaction.model import Mode
from tests.fakes.clock import FakeClock

FIELDS = sorted(field.name for field in fields(ServerSettings))
CHOSEN = ServerSettings(
    language="de",
    voice="joe",
    notice="Žofie hört zu.",
    asks=True,
    channels=(600, 602),
    roles=(7,),
    auto_join_channels=(600,),
    auto_join_people=3,
    auto_join_with=(2001,),
    follow="everybody",
    leave_when_empty_s=60.0,
    longest_session_h=2.5,
    retention_days=30.0,
    posts_recap=True,
    posts_transcripts=True,
    offers_catch_up=False,
    live_message=False,
    captions=True,
    captions_language="de",
    listen_only=ListenOnly("evening", ListenRequest("thread", 601, captions=True, language="de")),
    mode=Mode.ROLLING,
    budget_enabled=False,
    voice_mode=VoiceMode.FREE,
    heard_sign="word",
    wake_names=("Jeeves", "Žofie, the 2nd"),
    persona="A cat.",
    personas={600: "A dog."},
    spoken=("de", "yue"),
    silence=Silence(always=True, session_id="evening", until=12.5),
)


DAMAGED = {
    2: '{"longest_session_h": 999, "channels": [7], "from_the_future": 1, "asks": false, "mode": "dreaming"}',
    3: "nonsense",
    4: '{"silence": {"always": "perhaps"}}',
}


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[ServerSettingsStore]:
    """Open a store of this kind."""
    if kind == "memory":
        yield MemoryServerSettings()
        return
    async with open_database(folder / "a.db") as database:
        yield SqlServerSettings(database, FakeClock())


@pytest.mark.parametrize("kind", ["memory", "database"])
async def test_each_server_keeps_its_own_choices(kind: str, tmp_path: Path) -> None:
    """Choices are stored for each server with all their values, and the last ones count."""
    async with opened(kind, tmp_path) as store:
        assert await store.all() == {}
        await store.put(1, ServerSettings(language="fr"), by=9)
        await store.put(1, CHOSEN, by=9)
        await store.put(2, DEFAULTS, by=8)
        assert await store.all() == {1: CHOSEN, 2: DEFAULTS}


async def test_choices_outlive_the_process_and_a_broken_row(tmp_path: Path, logs: list[EventDict]) -> None:
    """Of what is damaged the valid part applies, and only who agrees is heard there: it may have been chosen. So may a
    silence that cannot be read.
    """
    async with open_database(tmp_path / "a.db") as database:
        await SqlServerSettings(database, FakeClock()).put(1, CHOSEN, by=9)
    with sqlite3.connect(tmp_path / "a.db") as connection:
        for guild_id, damaged in DAMAGED.items():
            connection.execute("INSERT INTO server_settings VALUES (?, ?, 0.0, NULL)", (guild_id, damaged))
    connection.close()
    async with open_database(tmp_path / "a.db") as database:
        found = await SqlServerSettings(database, FakeClock()).all()
        silent = ServerSettings(asks=True, silence=Silence(always=True))
        assert found == {1: CHOSEN, 2: ServerSettings(channels=(7,), asks=True), 3: silent, 4: silent}
        assert [(line["event"], line["guild_id"]) for line in logs] == [
            ("server_settings_damaged", guild_id) for guild_id in DAMAGED
        ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner),
    max_leaves=20,
).map(json.dumps)


@given(st.text() | JSON)
def test_whatever_is_stored_only_who_agrees_is_heard(text: str) -> None:
    """Reading damaged choices never fails, and what is read can be stored again."""
    found = from_damaged(text)
    assert found.asks
    assert from_json(to_json(found)) == found


class WaitingSettings(MemoryServerSettings):
    """A store whose writes wait until the test lets them. `waits`: set once one does."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = asyncio.Event()
        self.waits = asyncio.Event()

    async def put(self, guild_id: int, settings: ServerSettings, *, by: int | None) -> None:
        self.waits.set()
        await self.writes.wait()
        await super().put(guild_id, settings, by=by)


class Broken:
    """A store that takes nothing."""

    async def all(self) -> Mapping[int, ServerSettings]:
        return {}

    async def put(self, guild_id: int, settings: ServerSettings, *, by: int | None) -> None:
        raise StoreError("The disk is full.")


async def test_a_person_leaves_all_choices(database: Database) -> None:
    """A forgotten person is in no server's choices, not even in those that cannot be read, and nobody else leaves."""
    clock = FakeClock()
    store = SqlServerSettings(database, clock)
    both = ServerSettings(auto_join_with=(2001, 20010), language="de")
    await store.put(1, both, by=2001)
    await store.put(2, ServerSettings(auto_join_with=(20010,), roles=(7,)), by=9)
    async with database.writing() as connection:
        broken = {"guild_id": 3, "choices": '{"auto_join_with": [2001], "follow": 5}', "changed_at": 0.0}
        await connection.execute(server_settings.insert().values(broken))
    forgetter = SpeechForgetter(database, clock)
    person = await forgetter.find_by_id("2001")
    assert person is not None
    assert (await forgetter.forget(person)).rules == 2
    found = await store.all()
    assert found[1] == replace(both, auto_join_with=(20010,))
    assert found[2].auto_join_with == (20010,)
    async with database.reading() as connection:
        rows = {row.guild_id: row.choices for row in await connection.execute(select(server_settings))}
    assert rows[3] == '{"asks":true}'
    assert await forgetter.find_by_id("2001") is None
    assert await forgetter.find_by_id("9" * 400) is None


async def test_who_was_forgotten_elsewhere_does_not_come_back() -> None:
    """`roomtone memory forget` changes the store beside the running bot: no later change writes the id again."""
    store = MemoryServerSettings()
    await store.put(1, CHOSEN, by=9)
    book = ServerSettingsBook(store)
    await book.load()
    await store.put(1, without_person(CHOSEN, 2001), by=None)
    await book.change(1, lambda now: replace(now, language="fr"), by=9)
    assert (book.of(1).auto_join_with, book.of(1).language) == ((), "fr")
    assert (await store.all())[1] == book.of(1)
    await book.change(1, lambda _: CHOSEN, by=9)
    await store.put(1, without_person(CHOSEN, 2001), by=None)
    await book.load()
    assert book.of(1).auto_join_with == ()


async def test_two_changes_begun_together_both_hold() -> None:
    """Each is made of what the one before has left, also if writing that takes long. One that fails undoes nothing."""
    store = WaitingSettings()
    book = ServerSettingsBook(store)

    def refuse(_: ServerSettings) -> ServerSettings:
        raise LookupError

    def with_channel(channel_id: int) -> Callable[[ServerSettings], ServerSettings]:
        return lambda now: replace(now, channels=(*now.channels, channel_id))

    changes = [
        asyncio.create_task(book.change(1, change, by=9))
        for change in (with_channel(600), refuse, lambda now: replace(now, asks=True), with_channel(602))
    ]
    await store.waits.wait()
    store.writes.set()
    answers = await asyncio.gather(*changes, return_exceptions=True)
    chosen = ServerSettings(asks=True, channels=(600, 602))
    assert isinstance(answers.pop(1), LookupError)
    assert answers == [ServerSettings(channels=(600,)), ServerSettings(channels=(600,), asks=True), chosen]
    assert book.of(1) == (await store.all())[1] == chosen


async def test_a_silence_holds_before_it_is_stored() -> None:
    """It holds at once, and is stored with the next change. One that begins while that is written is stored with the
    one after.
    """
    store = WaitingSettings()
    book = ServerSettingsBook(store)
    first, second = Silence(until=60.0), Silence(until=120.0)
    book.hold_silence(1, first)
    changing = asyncio.create_task(book.change(1, lambda now: replace(now, language="fr"), by=9))
    await store.waits.wait()
    assert book.of(1).silence == first
    book.hold_silence(1, second)
    store.writes.set()
    await changing
    await book.load()
    assert book.of(1) == ServerSettings("fr", silence=second)
    assert (await store.all())[1].silence == first
    await book.change(1, lambda now: now, by=9)
    assert (await store.all())[1] == book.of(1) == ServerSettings("fr", silence=second)


async def test_a_choice_that_cannot_be_stored_does_not_apply() -> None:
    """What is chosen holds for its server alone, once it is stored."""
    store = MemoryServerSettings()
    await store.put(1, CHOSEN, by=9)
    book = ServerSettingsBook(store)
    assert book.of(1) == DEFAULTS
    await book.load()
    assert (book.of(1), book.of(2)) == (CHOSEN, DEFAULTS)
    await book.change(2, lambda _: ServerSettings(asks=True), by=9)
    assert (await store.all())[2] == book.of(2) == ServerSettings(asks=True)
    broken = ServerSettingsBook(Broken())
    with pytest.raises(StoreError):
        await broken.change(1, lambda _: CHOSEN, by=9)
    assert broken.of(1) == DEFAULTS
