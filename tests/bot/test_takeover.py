"""A bot that was frozen comes back while another one runs its room: the newer one keeps it, and nothing is doubled."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING

import psycopg
import pytest

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from tests.bot.bot_process import ADA, CLIPS, ada_in, roomtone_run
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pydantic import SecretStr

# The lock of the bot's shard has two numbers, that of work that one process does at a time has one.
_CUT_OFF = """
    SELECT pg_terminate_backend(pid) FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def said(place: SecretStr) -> list[tuple[int, str]]:
    """Return number and words of each turn of speech."""
    with psycopg.connect(place.get_secret_value()) as database:
        rows = database.execute("SELECT seq, parts FROM turns WHERE kind = 'speech' ORDER BY seq").fetchall()
    return [(seq, " ".join(text for _, _, text in json.loads(parts))) for seq, parts in rows]


def events(folder: Path) -> set[str]:
    """Return the names of the events in a bot's log."""
    lines = (line for path in folder.rglob("*.jsonl") for line in path.read_text("utf-8").splitlines())
    return {json.loads(line).get("event", "") for line in lines}


async def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds in another process."""
    for _ in range(round(PATIENCE_S / 0.1)):
        if holds():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{what} did not come")


@pytest.mark.rehearsal
@pytest.mark.postgres
async def test_a_frozen_bot_that_comes_back_leaves_the_room_to_the_next(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """The first bot stops in mid-life and loses its lock, so a second one starts on the database and goes on with the
    session. When the first one wakes up, it ends its room without taking the bot out of the channel: the second one
    hears on, and every turn is stored once.
    """
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    url = {"ROOMTONE_DATABASE_URL": postgres_place.get_secret_value()}
    async with (
        LocalDiscord() as local,
        ada_in(local) as ada,
        roomtone_run(local, folders[0], whisper_model_dir, **url) as first,
    ):
        await first.says("is on Discord")
        await local.invoke(ADA, "join")
        async with asyncio.timeout(PATIENCE_S):
            await ada.meet(ROOMTONE_BOT_ID)
        await ada.say(Clip.load(CLIPS / "2-ada.ogg"))
        await until(lambda: len(said(postgres_place)) == 1, "the first turn")
        first.tell(signal.SIGSTOP)
        with psycopg.connect(postgres_place.get_secret_value()) as database:
            assert database.execute(_CUT_OFF).rowcount == 1
        async with roomtone_run(local, folders[1], whisper_model_dir, **url) as second:
            await second.says("is on Discord")
            await until(lambda: "room_opened" in events(folders[1]), "the room of the second bot")
            async with asyncio.timeout(PATIENCE_S):
                await ada.meet(ROOMTONE_BOT_ID)
            await ada.say(Clip.load(CLIPS / "3-ada.ogg"))
            await until(lambda: len(said(postgres_place)) == 2, "the second turn")
            first.tell(signal.SIGCONT)
            await until(lambda: "room_taken_over" in events(folders[0]), "the end of the first room")
            await ada.say(Clip.load(CLIPS / "2-ada.ogg"))
            await until(lambda: len(said(postgres_place)) == 3, "the third turn")
            status, err = await second.ends(signal.SIGTERM)
            assert (status, err.count("Traceback")) == (0, 0)
    assert len(said(postgres_place)) == 3
    with psycopg.connect(postgres_place.get_secret_value()) as database:
        numbers = [seq for (seq,) in database.execute("SELECT seq FROM turns ORDER BY seq").fetchall()]
        sessions = database.execute("SELECT count(*) FROM sessions").fetchone()
    assert numbers == list(range(len(numbers)))
    assert sessions == (1,)
