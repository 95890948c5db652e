"""The companion reports only the bot's own log lines as problems, and how the bot ends."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog

from bot.logs.output import configured_logging
from config import ConfigError
from rehearsal.roomtone.companion import InProcessBot, ProblemLogHandler
from rehearsal.runner.ports import BotSetup, DiscordAddresses
from rehearsal.runner.record import BotCrashed, LoggedProblem, Observation


async def test_the_bots_warnings_are_problems_and_the_rehearsals_are_not(tmp_path: Path) -> None:
    """A warning counts as the bot's problem depending on the module that logged it."""
    told: list[Observation] = []
    with configured_logging(data_dir=tmp_path, console=io.StringIO()):
        watch = ProblemLogHandler(told.append)
        logging.getLogger().addHandler(watch)
        try:
            structlog.get_logger().info("all_is_well")
            # Somebody who watches the dashboard has opened its login link twice.
            structlog.get_logger().warning("web_requests_refused", login_link_count=1)
            structlog.get_logger().warning("web_requests_refused", login_link_count=1, used_link_count=2)
            structlog.get_logger().warning("room_links_refused", token_count=3)
            structlog.get_logger().error("reply_failed", problem="It broke.", answer_count=2)
            logging.getLogger("discord.gateway").warning("shard %s is slow", 1)
            scope: dict[str, object] = {"__name__": "rehearsal.somewhere", "structlog": structlog}
            exec("structlog.get_logger().warning('person_lost')", scope)
            await asyncio.sleep(0)
        finally:
            logging.getLogger().removeHandler(watch)
    assert told == [
        LoggedProblem("web_requests_refused", "login_link_count=1, used_link_count=2", "warning"),
        LoggedProblem("room_links_refused", "token_count=3", "warning"),
        LoggedProblem("reply_failed", "It broke.", "error"),
        LoggedProblem("discord.gateway", "shard 1 is slow", "warning"),
    ]


def environment_of(tmp_path: Path) -> BotSetup:
    """Return the setup for a local Discord at which no server listens."""
    return BotSetup(
        DiscordAddresses("http://127.0.0.1:1/api", tmp_path / "c.pem", "1001.local", 5, 6),
        bot_name="Otto",
        settings={"llm.max_output_tokens": 60, "participation.max_calls_per_hour": 7},
    )


@pytest.mark.usefixtures("in_tmp_path")
async def test_settings_win_in_order(tmp_path: Path) -> None:
    """The command line wins over the scenario, and the scenario over the operator's file. The token is always that of
    the local Discord, and the operator's servers and channels do not count there.
    """
    (tmp_path / "roomtone.toml").write_text(
        '[llm]\nmax_output_tokens = 50\n[discord]\ntoken = "theirs"\nguilds = [1]\n'
    )
    environment = environment_of(tmp_path)
    async with InProcessBot({"llm.max_output_tokens": 80}) as companion:
        settings = companion.settings(environment)
        assert settings.llm.max_output_tokens == 80
        assert settings.participation.max_calls_per_hour == 7
        assert settings.brain.name == "Otto"
        assert settings.discord.guilds == ()
        assert settings.discord.token is not None
        assert settings.discord.token.get_secret_value() == "1001.local"
        assert settings.storage.data_dir.is_dir()
    assert not settings.storage.data_dir.exists()
    async with InProcessBot({"no.such": 1}) as companion:
        with pytest.raises(ConfigError, match=r"no\.such"):
            await companion.start(environment, lambda observation: None)


class _Bot:
    """A fake running bot. It runs until it is stopped or crashes as the test says, and its shutdown may fail."""

    def __init__(self, *, crash: Exception | None = None, ending: Exception | None = None) -> None:
        self._crash = crash
        self._ending = ending
        self.rooms = self
        self.dashboard_link: str | None = None

    async def abandon(self) -> None:
        """Do nothing: it ends with its block."""

    async def run_until(self, stop: asyncio.Event) -> None:
        """Raise the crash, or wait for `stop`."""
        if self._crash is not None:
            raise self._crash
        await stop.wait()

    @asynccontextmanager
    async def running(self, *_: object, **__: object) -> AsyncIterator[_Bot]:
        """Replace `running_bot`."""
        yield self
        if self._ending is not None:
            raise self._ending


async def test_what_goes_wrong_at_the_end_is_raised_and_a_crash_before_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failing shutdown is raised, and a bot that ends by itself is reported as a crash. A killed bot
    reports nothing.
    """
    told: list[Observation] = []
    full = RuntimeError("the disk is full")
    async with InProcessBot({}) as companion:
        monkeypatch.setattr("rehearsal.roomtone.companion.running_bot", _Bot(ending=full).running)
        await companion.start(environment_of(tmp_path), told.append)
        with pytest.raises(RuntimeError, match="full"):
            await companion.stop()
        await companion.stop()
        await companion.start(environment_of(tmp_path), told.append)
        await companion.kill()
        assert told == []
        monkeypatch.setattr("rehearsal.roomtone.companion.running_bot", _Bot(crash=full).running)
        await companion.start(environment_of(tmp_path), told.append)
        await companion.stop()
        assert told == [BotCrashed("the disk is full")]
