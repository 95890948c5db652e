"""Each guild's choices are stored separately and outlive a restart."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert

from bot.guild import GuildChoice, Silence, VoiceMode
from bot.participation.all_guilds import GuildParticipations
from bot.participation.settings import ParticipationSettings
from bot.store.database import open_database
from bot.store.guilds import GuildStore, OptOutStore
from bot.store.tables import guild_settings
from compaction.errors import StoreError
from compaction.model import Mode
from tests.fakes.clock import FakeClock

if TYPE_CHECKING:
    from pathlib import Path

    from tests.bot.conftest import Place


@pytest.mark.asyncio
async def test_a_choice_outlives_the_process(tmp_path: Path) -> None:
    """Each guild keeps its own choice after a restart, and a guild without a choice has an empty one."""
    path = tmp_path / "a.db"
    async with open_database(path) as database:
        guilds = GuildStore(database, FakeClock())
        assert await guilds.choice(1) == GuildChoice()
        await guilds.choose(1, lambda _: GuildChoice(Mode.ROLLING), by=7)
        await guilds.choose(2, lambda _: GuildChoice(Mode.OFF, False), by=8)
        await guilds.choose(1, lambda _: GuildChoice(Mode.ROLLING, True), by=9)
        assert await guilds.choice(1) == GuildChoice(Mode.ROLLING, True)
    async with open_database(path) as database:
        guilds = GuildStore(database, FakeClock())
        assert await guilds.choice(1) == GuildChoice(Mode.ROLLING, True)
        assert await guilds.choice(2) == GuildChoice(Mode.OFF, False)
        assert await guilds.choice(3) == GuildChoice()
        await guilds.choose(2, lambda _: GuildChoice(), by=8)
        assert await GuildStore(database, FakeClock()).choice(2) == GuildChoice()
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT guild_id, changed_by FROM guild_settings ORDER BY guild_id").fetchall()
    connection.close()
    assert rows == [(1, 9), (2, 8)]


@pytest.mark.asyncio
async def test_what_is_chosen_at_the_same_time_all_holds(tmp_path: Path) -> None:
    """Members use different commands while the database takes its time: each change is made of what holds by then."""
    async with open_database(tmp_path / "a.db") as database:
        guilds = GuildStore(database, FakeClock())
        participation = GuildParticipations(
            guilds, OptOutStore(database, FakeClock()), ParticipationSettings(), wake_names=("Otto",), clock=FakeClock()
        )
        await participation.of_guild(1)
        seen: list[GuildChoice] = []
        with guilds.watched(lambda _, choice: seen.append(choice)):
            async with database.writing():
                changes = [
                    asyncio.create_task(guilds.choose(1, lambda now: replace(now, persona="A cat."), by=7)),
                    asyncio.create_task(participation.silence_always(1, by=8)),
                    asyncio.create_task(participation.choose_mode(1, VoiceMode.FREE, by=8)),
                    asyncio.create_task(guilds.choose(1, lambda now: replace(now, mode=Mode.ROLLING), by=7)),
                ]
                for _ in range(10):
                    await asyncio.sleep(0)
                assert not seen
            first, *_, last = await asyncio.gather(*changes)
        chosen = GuildChoice(Mode.ROLLING, voice_mode=VoiceMode.FREE, silence=Silence(always=True), persona="A cat.")
        assert (first, last, seen[-1]) == (GuildChoice(persona="A cat."), chosen, chosen)
        assert await GuildStore(database, FakeClock()).choice(1) == chosen


@pytest.mark.asyncio
async def test_when_the_bot_speaks_is_kept(place: Place) -> None:
    """The voice mode, names in any script and a silence are stored with all their values."""
    chosen = GuildChoice(
        voice_mode=VoiceMode.FREE,
        wake_names=("Jeeves", "Žofie, the 2nd"),
        silence=Silence(always=True, session_id="evening", until=12.5),
    )
    async with open_database(place) as database:
        await GuildStore(database, FakeClock()).choose(1, lambda _: chosen, by=7)
        assert await GuildStore(database, FakeClock()).choice(1) == chosen


@pytest.mark.asyncio
@pytest.mark.parametrize("choice", ['{"mode": "dreaming"}', '{"voice_mode": "shouting"}', "[", '{"wake_names": 7}'])
async def test_what_cannot_be_read_is_a_plain_sentence(place: Place, choice: str) -> None:
    """Whoever asks or chooses reads what to do."""
    async with open_database(place) as database:
        async with database.writing() as connection:
            await connection.execute(insert(guild_settings).values(guild_id=1, changed_at=0.0, choice=choice))
        guilds = GuildStore(database, FakeClock())
        with pytest.raises(StoreError, match="roomtone restore"):
            await guilds.choice(1)
        with pytest.raises(StoreError, match="roomtone restore"):
            await guilds.choose(1, lambda now: replace(now, persona="A cat."), by=7)


@pytest.mark.asyncio
async def test_an_opt_out_outlives_the_process(place: Place) -> None:
    """An opt-out is still stored after a restart until it is withdrawn, and opting out twice changes nothing."""
    async with open_database(place) as database:
        opt_outs = OptOutStore(database, FakeClock())
        for person_id in (1 << 60, 2, 2):
            await opt_outs.put(10, person_id, out=True)
        await opt_outs.put(11, 3, out=True)
        await opt_outs.put(10, 2, out=False)
        await opt_outs.put(10, 4, out=False)
    async with open_database(place) as database:
        opt_outs = OptOutStore(database, FakeClock())
        assert await opt_outs.of(10) == {1 << 60}
        assert await opt_outs.of(11) == {3}
        assert await opt_outs.of(12) == frozenset()
