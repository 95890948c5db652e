"""Two processes of one bot with different shards on one PostgreSQL database: each serves its own servers."""

from __future__ import annotations

import asyncio
import signal
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import psycopg
import pytest

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from tests.bot.bot_process import ADA, CLIPS, ada_in, logged, roomtone_run
from tests.bot.test_takeover import events, until
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pydantic import SecretStr

    from tests.bot.bot_process import Process

# Of four shards, the second and the fourth.
NORTH = GuildSpec(id=(8 * 4 + 1) << 22, name="North")
SOUTH = GuildSpec(
    id=(9 * 4 + 3) << 22,
    name="South",
    voice_channels=(Channel(700, "Southern evening"),),
    text_channel=Channel(701, "southern chat"),
)


def spoken(place: SecretStr, guild: GuildSpec) -> list[tuple[str, int]]:
    """Return session and number of each stored turn of speech of a server."""
    with psycopg.connect(place.get_secret_value()) as database:
        return database.execute(
            "SELECT session_id, seq FROM turns JOIN sessions ON sessions.id = session_id "
            "WHERE kind = 'speech' AND guild_id = %s ORDER BY seq",
            [guild.id],
        ).fetchall()


def has_spoken(place: SecretStr, guild: GuildSpec, count: int) -> bool:
    """Return whether so many turns of a server are stored."""
    return len(spoken(place, guild)) == count


def sessions(place: SecretStr) -> dict[int, list[bool]]:
    """Return for each server whether its sessions have ended."""
    with psycopg.connect(place.get_secret_value()) as database:
        rows = database.execute("SELECT guild_id, ended_at IS NOT NULL FROM sessions ORDER BY started_at").fetchall()
    found: dict[int, list[bool]] = {}
    for guild_id, ended in rows:
        found.setdefault(guild_id, []).append(ended)
    return found


@asynccontextmanager
async def serving(
    north: LocalDiscord, folder: Path, whisper: Path, place: SecretStr, shards: str
) -> AsyncIterator[Process]:
    """Start a process of the bot with these shards, and wait until it is on Discord."""
    more = {"ROOMTONE_DATABASE_URL": place.get_secret_value(), "ROOMTONE_SHARDS": shards}
    async with roomtone_run(north, folder, whisper, **more) as process:
        await process.says("is on Discord")
        yield process


async def refused(north: LocalDiscord, folder: Path, whisper: Path, place: SecretStr, shards: str) -> str:
    """Start a process that must not run; return what it says."""
    more = {"ROOMTONE_DATABASE_URL": place.get_secret_value(), "ROOMTONE_SHARDS": shards}
    async with roomtone_run(north, folder, whisper, **more) as process:
        status, err = await process.ends()
    assert status == 1
    return err


@pytest.mark.rehearsal
@pytest.mark.postgres
async def test_two_processes_share_a_bot_by_shards(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """Each process hears its own server and knows nothing of the other's. One is killed and started again: its session
    goes on, and the other's is not touched. Processes with overlapping shards or another total are refused.
    """
    for name in ("low", "high", "both", "eight"):
        (tmp_path / name).mkdir()
    clips = [Clip.load(CLIPS / name) for name in ("2-ada.ogg", "3-ada.ogg")]
    async with (
        LocalDiscord(guild=NORTH) as north,
        LocalDiscord(guild=SOUTH, beside=north) as south,
        ada_in(north) as northerner,
        ada_in(south) as southerner,
        serving(north, tmp_path / "low", whisper_model_dir, postgres_place, "0-1/4") as low,
        serving(north, tmp_path / "high", whisper_model_dir, postgres_place, "2-3/4") as high,
    ):
        assert ("North" in low.out, "South" in low.out) == (True, False)
        assert ("North" in high.out, "South" in high.out) == (False, True)
        for local, ada in ((north, northerner), (south, southerner)):
            await local.invoke(ADA, "join")
            async with asyncio.timeout(PATIENCE_S):
                await ada.meet(ROOMTONE_BOT_ID)
            await ada.say(clips[0])
        for guild in (NORTH, SOUTH):
            await until(partial(has_spoken, postgres_place, guild, 1), f"the first turn of {guild.name}")

        overlapping, other_total = await asyncio.gather(
            refused(north, tmp_path / "both", whisper_model_dir, postgres_place, "1-2/4"),
            refused(north, tmp_path / "eight", whisper_model_dir, postgres_place, "4-7/8"),
        )
        assert "serves shard 1-2 of 4 already" in overlapping
        assert "into 4 shards, and this one into 8" in other_total

        low.tell(signal.SIGKILL)
        await low.gone()
        async with serving(north, tmp_path / "low", whisper_model_dir, postgres_place, "0-1/4") as again:
            await until(lambda: len(logged(tmp_path / "low", "room_opened")) == 2, "the room of the North again")
            async with asyncio.timeout(PATIENCE_S):
                await northerner.meet(ROOMTONE_BOT_ID)
            for ada in (northerner, southerner):
                await ada.say(clips[1])
            for guild in (NORTH, SOUTH):
                await until(partial(has_spoken, postgres_place, guild, 2), f"the second turn of {guild.name}")
            assert sessions(postgres_place) == {NORTH.id: [False], SOUTH.id: [False]}
            for process in (again, high):
                status, err = await process.ends(signal.SIGTERM)
                assert (status, err.count("Traceback")) == (0, 0)
    assert sessions(postgres_place) == {NORTH.id: [True], SOUTH.id: [True]}
    for guild in (NORTH, SOUTH):
        assert len({session for session, _ in spoken(postgres_place, guild)}) == 1
    assert len(logged(tmp_path / "high", "room_opened")) == 1, "the other room was not touched"
    assert "session_not_resumed" not in events(tmp_path / "low")
    for folder, shard in (("low", 1), ("high", 3)):
        assert {line["shard"] for line in logged(tmp_path / folder, "room_opened")} == {shard}
