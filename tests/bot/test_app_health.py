"""What the running bot in the local Discord says of its health: /readyz and /status have the same list."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC
from pathlib import Path

import aiohttp
import pytest

from bot.app import RunningBot, running_bot
from bot.discord.client import DISCORD_AWAY_S
from bot.events import ignore_event
from bot.monitoring import service_checks
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.clip import Clip
from rehearsal.people.person import scripted_member
from rehearsal.script.scenario_file import bundled_scenarios
from tests.bot.app_settings import settings_in
from tests.bot.discord.client import ADA, answered
from tests.patience import PATIENCE_S, settle
from tests.scenarios.program import REPOSITORY

# With a voice: a bot that cannot speak its answer is mute.
MODELS = {"directory": REPOSITORY / "data" / "models"}
CLIP = bundled_scenarios()["hello"].parent / "2-ada.ogg"


class Readiness:
    """Asks the running bot over HTTP."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self.causes: list[str] = []

    async def ask(self, path: str = "/readyz") -> int:
        """Return the status of the answer, and keep its causes."""
        async with self._http.get(path) as answer:
            body = await answer.json()
        self.causes = [cause["cause"] for cause in body["causes"]]
        assert all("Ada" not in cause["sentence"] and "Lounge" not in cause["sentence"] for cause in body["causes"])
        return answer.status

    async def until(self, causes: list[str]) -> None:
        """Wait until these are the causes."""
        async with asyncio.timeout(PATIENCE_S):
            await self.ask()
            while self.causes != causes:
                await asyncio.sleep(0.1)
                await self.ask()


@asynccontextmanager
async def asking(running: RunningBot) -> AsyncIterator[Readiness]:
    """Yield what asks the bot's web server."""
    async with aiohttp.ClientSession(f"http://127.0.0.1:{running.web.port}") as http:
        yield Readiness(http)


@pytest.mark.slow
async def test_a_deaf_room_is_red_until_somebody_is_heard(
    local: LocalDiscord, tmp_path: Path, whisper_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While no packet of Ada arrives although she speaks, /readyz answers 503 with the cause, and /status does not say
    that everything works. Both are green again when her packets arrive. All the while the process is alive. A database
    that another process holds, Discord's gateway and the end have causes of their own.
    """
    monkeypatch.setattr(service_checks, "CHECK_EVERY_S", 0.1)
    clip = Clip.load(CLIP)
    async with (
        scripted_member(local, ADA) as ada,
        running_bot(
            settings_in(tmp_path, local, asr={"model": str(whisper_model_dir), "languages": ["en"]}, models=MODELS),
            observe=ignore_event,
            zone=UTC,
            rejoin=False,
        ) as running,
        asking(running) as readiness,
    ):
        # Before there is a room, which would tell of it too.
        file = tmp_path / "roomtone.db"
        with closing(sqlite3.connect(file, isolation_level=None, timeout=PATIENCE_S, check_same_thread=False)) as other:
            # In a thread: the bot, which runs in this one, may have to end a transaction first.
            await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
            await readiness.until(["database"])
            other.execute("ROLLBACK")
        await readiness.until([])

        await local.invoke(ADA, "join")
        await ada.meet(ROOMTONE_BOT_ID, timeout_s=PATIENCE_S)
        assert await readiness.ask() == 200, readiness.causes
        assert "Everything works." in (await answered(local, ADA, "status"))[0]
        local.network.update({"loss": 1.0})
        await ada.say(clip)
        await settle(lambda: [fault.kind for fault in running.rooms.faults()] == ["room_deaf"])
        assert (await readiness.ask(), readiness.causes) == (503, ["room_deaf"])
        assert "Everything works." not in (await answered(local, ADA, "status"))[0]
        assert await readiness.ask("/healthz") == 200
        local.network.update({"loss": 0.0})
        await ada.say(clip)
        await settle(lambda: not running.rooms.faults())
        assert (await readiness.ask(), readiness.causes) == (200, [])

        running.client.shard_losses.lost(0)
        running.client.shard_losses.away[0] -= DISCORD_AWAY_S
        assert (await readiness.ask(), readiness.causes) == (503, ["discord"])
        running.client.shard_losses.back(0, resumed=True)
        await running.rooms.hand_over()
        assert (await readiness.ask(), readiness.causes) == (503, ["draining"])
        assert await readiness.ask("/healthz") == 200
