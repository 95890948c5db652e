"""Two processes of one bot with different shards on one PostgreSQL database: each serves its own servers. One that was
frozen comes back while another one runs its room: the newer one keeps it, and nothing is doubled.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from rehearsal.pytest_plugin import open_discord
from tests.bot.bot_process import ADA, CLIPS, Process, ada_in, logged, roomtone_run
from tests.patience import PATIENCE_S, patiently

# Of four shards, the second and the fourth.
NORTH = GuildSpec(id=(8 * 4 + 1) << 22, name="North")
SOUTH = GuildSpec(
    id=(9 * 4 + 3) << 22,
    name="South",
    voice_channels=(Channel(700, "Southern evening"),),
    text_channel=Channel(701, "southern chat"),
)

# A shard's lock has two numbers: that of the tables, and the shard's with the total in its upper bits.
_CUT_OFF = """
    SELECT pg_terminate_backend(pid) FROM (
        SELECT DISTINCT pid FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 2 AND objid = ANY(%s::bigint[]::oid[])
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ) AS holders
"""


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds in another process."""
    for _ in range(round(PATIENCE_S / 0.1)):
        if holds():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{what} did not come")


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


@pytest.mark.rehearsal
@pytest.mark.postgres
async def test_two_processes_share_a_bot_by_shards(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """Each process hears its own server and knows nothing of the other's.

    One is frozen and loses its locks, so another starts in its place and goes on with the session; the other server's
    is not touched. When the frozen one wakes up, it ends its room without taking the bot out of the channel: the newer
    one hears on, and every turn is stored once.
    """
    for name in ("low", "again", "high"):
        (tmp_path / name).mkdir()
    clips = [Clip.load(CLIPS / name) for name in ("2-ada.ogg", "3-ada.ogg", "1-ada.ogg")]
    async with (
        open_discord(NORTH) as north,
        open_discord(SOUTH, beside=north) as south,
        ada_in(north.discord) as northerner,
        ada_in(south.discord) as southerner,
        serving(north.discord, tmp_path / "low", whisper_model_dir, postgres_place, "0-1/4") as low,
        serving(north.discord, tmp_path / "high", whisper_model_dir, postgres_place, "2-3/4") as high,
    ):
        assert ("North" in low.out, "South" in low.out) == (True, False)
        assert ("North" in high.out, "South" in high.out) == (False, True)
        for local, ada in ((north, northerner), (south, southerner)):
            await local.discord.invoke(ADA, "join")
            await patiently(ada.meet(ROOMTONE_BOT_ID))
            await ada.say(clips[0])
        for guild in (NORTH, SOUTH):
            await until(partial(has_spoken, postgres_place, guild, 1), f"the first turn of {guild.name}")

        low.send_signal(signal.SIGSTOP)
        with psycopg.connect(postgres_place.get_secret_value()) as database:
            assert database.execute(_CUT_OFF, [[4 << 15 | 0, 4 << 15 | 1]]).rowcount == 1
        async with serving(north.discord, tmp_path / "again", whisper_model_dir, postgres_place, "0-1/4") as again:
            await until(lambda: bool(logged(tmp_path / "again", "room_opened")), "the room of the North again")
            await patiently(northerner.meet(ROOMTONE_BOT_ID))
            for ada in (northerner, southerner):
                await ada.say(clips[1])
            for guild in (NORTH, SOUTH):
                await until(partial(has_spoken, postgres_place, guild, 2), f"the second turn of {guild.name}")
            low.send_signal(signal.SIGCONT)
            await until(lambda: bool(logged(tmp_path / "low", "room_taken_over")), "the end of the first room")
            # The bot is quoting the first clip: the same words would be taken for its own voice.
            await northerner.say(clips[2])
            await until(partial(has_spoken, postgres_place, NORTH, 3), "the third turn of North")
            assert sessions(postgres_place) == {NORTH.id: [False], SOUTH.id: [False]}
            for process in (again, high):
                status, err = await process.ends(signal.SIGTERM)
                assert (status, err.count("Traceback")) == (0, 0)
    assert sessions(postgres_place) == {NORTH.id: [True], SOUTH.id: [True]}
    for guild, turns in ((NORTH, 3), (SOUTH, 2)):
        said = spoken(postgres_place, guild)
        assert len({session for session, _ in said}) == 1
        assert len(said) == turns
    with psycopg.connect(postgres_place.get_secret_value()) as database:
        numbers = database.execute("SELECT session_id, seq FROM turns ORDER BY session_id, seq").fetchall()
    for session_id in {session_id for session_id, _ in numbers}:
        of_session = [seq for each, seq in numbers if each == session_id]
        assert of_session == list(range(len(of_session))), "a turn is missing"
    assert len(logged(tmp_path / "high", "room_opened")) == 1, "the other room was not touched"
    assert logged(tmp_path / "again", "session_not_resumed") == []
    for folder, shard in (("low", 1), ("again", 1), ("high", 3)):
        assert {line["shard"] for line in logged(tmp_path / folder, "room_opened")} == {shard}
