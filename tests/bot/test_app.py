"""The running bot is made of all its parts: what the settings promise to people reaches Discord and the data folder."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
from datetime import UTC
from pathlib import Path

import pytest

from bot.app import running_bot
from bot.cli.signals import unless_stopped
from bot.clock import SystemClock
from bot.discord.access import Cooldowns
from bot.events import ignore_event
from bot.folder_lock import folder_lock
from bot.memory.retention import DAY_S
from bot.store.database import open_database
from bot.store.sessions import Sessions
from bot.wiring.pages import PROCESS_TASKS
from rehearsal.discord.server import LocalDiscord
from tests.bot.app_settings import settings_in
from tests.endurance import crawl
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S, settle


async def old_session(path: Path) -> None:
    """Store a session that ended 31 days ago."""
    clock = FakeClock(SystemClock().now() - 31 * DAY_S)
    async with open_database(path) as database:
        sessions = Sessions(database, clock)
        await sessions.open(guild_id=1, channel_id=2, resume_within_s=0.0)
        await sessions.end_open(1)


def session_count(path: Path) -> int:
    """Return how many sessions are stored."""
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("SELECT count(*) FROM sessions").fetchone()[0])
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("local_guild", [crawl.hostile_guild(people=2, channels=6)])
async def test_at_its_start_it_closes_its_files_and_deletes_what_is_too_old(
    local: LocalDiscord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older database loses the rights of others, and what is older than 30 days is deleted, without settings
    for either. /privacy names the services that get a part of the conversation. All that who may manage a server can
    use there, with hostile names and Discord's ids, is answered in a form that Discord takes.
    """
    monkeypatch.setattr(Cooldowns, "use", lambda *_, **__: 0)
    monkeypatch.setattr(crawl, "HOSTILE", crawl.HOSTILE[:1])
    data = tmp_path / "data"
    path = data / "roomtone.db"
    await old_session(path)
    path.chmod(0o755)
    assert session_count(path) == 1
    async with running_bot(settings_in(data, local), observe=ignore_event, zone=UTC):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await settle(lambda: session_count(path) == 0)
        manager = local.guild.owner.id
        result = await local.invoke(manager, "privacy")
        await result.until(lambda current: bool(current.replies), timeout_s=PATIENCE_S)
        (reply,) = result.replies
        assert reply.ephemeral
        assert "eyes.example.org gets pictures of shared screens, and questions about them." in reply.content
        assert "30 days after somebody said or showed it" in reply.content
        commands = {command["name"] for _, command in local.state.all_commands()}
        assert commands >= {"privacy", "my-data", "forget-me", "opt-out", "opt-in", "settings", "leave", "quiet"}
        crawled = crawl.Crawl(local, deepest=1)
        await crawled.everything(manager, local.guild.text_channel.id)
        assert (crawled.wrong, min(crawled.used.values()) > 0) == ([], True)


@pytest.mark.slow
async def test_a_stop_while_it_goes_back_to_its_rooms_ends_it_in_order(
    local: LocalDiscord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A room that takes a minute to open is not waited for; everything that was opened is closed."""
    stop, data = asyncio.Event(), tmp_path / "data"

    async def never_ends(*_: object) -> None:
        stop.set()
        await asyncio.Future()

    monkeypatch.setattr("bot.app.rejoin_sessions", never_ends)
    starting = running_bot(settings_in(data, local), observe=ignore_event, zone=UTC)
    async with asyncio.timeout(PATIENCE_S), unless_stopped(stop, starting) as running:
        assert running is None
        with folder_lock(data):
            pass
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(PROCESS_TASKS)] == []
