"""Runs the real bot in this process for a rehearsal, and reports its events and the problems that it logs.

Its database is in a temporary folder.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import FrameType, TracebackType

from bot.app import RunningBot, running_bot
from bot.clock import SystemClock
from bot.errors import first_cause
from bot.local_zone import LocalZone
from bot.store.database import open_database
from bot.store.sessions import Sessions
from bot.store.turns import SqlTurnStore
from bot.tuning import Tuning, split_overrides
from bot.wiring.settings import BotSettings
from config.load import load
from config.schema import Settings
from rehearsal.roomtone.trial import names_with
from rehearsal.runner.ports import BotSetup
from rehearsal.runner.record import BotCrashed, LoggedProblem, ObservationCallback

# What somebody causes who watches the dashboard, and nobody in a scenario: its login link works once.
_OF_ONLOOKERS = frozenset({"login_link_count"})


class InProcessBot(AbstractAsyncContextManager["InProcessBot"]):
    """`rehearsal.runner.ports.BotOfDiscord` around the running bot.

    `overrides`: settings by dotted name that override the scenario's. `on_dashboard`: gets the dashboard's login link
    and the data folder at each start.
    *Ownership*: an async context manager that owns the bot's task, its data folder and its log handler.
    """

    def __init__(
        self, overrides: Mapping[str, object], *, on_dashboard: Callable[[str, Path], None] = lambda *_: None
    ) -> None:
        self._overrides = dict(overrides)
        self._on_dashboard = on_dashboard
        self._folder = tempfile.TemporaryDirectory(prefix="roomtone-rehearsal-", ignore_cleanup_errors=True)
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._running: RunningBot | None = None
        self._watch: ProblemLogHandler | None = None

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.kill()
        self._folder.cleanup()

    async def start(self, setup: BotSetup, report: ObservationCallback) -> None:
        """Start the bot and return when it is connected. See `BotOfDiscord.start`."""
        settings = self.settings(setup)
        if setup.history:
            await _store_history(settings, setup)
        self._stopping = asyncio.Event()
        self._watch = ProblemLogHandler(report)
        logging.getLogger().addHandler(self._watch)
        ready: asyncio.Future[RunningBot] = asyncio.get_running_loop().create_future()
        # After a crash the bot rejoins by itself. If the scenario has a history, a person uses /join instead.
        parts = BotSettings.from_schema(settings, self._split(setup)[0])
        life = self._live(parts, report, ready, rejoin=not setup.history)
        self._task = asyncio.create_task(life, name="rehearsed-bot")
        try:
            self._running = await asyncio.shield(ready)
            if self._running.dashboard_link is not None:
                self._on_dashboard(self._running.dashboard_link, settings.storage.data_dir)
        except BaseException:
            await self.kill()
            raise

    def settings(self, setup: BotSetup) -> Settings:
        """Return the operator's settings, overridden by the scenario's and then by the local Discord's."""
        return load(overrides=self._split(setup)[1])

    def _split(self, setup: BotSetup) -> tuple[Tuning, dict[str, object]]:
        return split_overrides(
            {
                "brain.names": names_with(setup.bot_name),
                # The bot's speech is checked, so the same words must sound the same each time.
                "tuning.voice_variety": 0.0,
                # Scenarios take the encryption away, too.
                "discord.require_e2ee": False,
                **setup.settings,
                "discord.token": setup.discord.token,
                "discord.api_base": setup.discord.api_base,
                "tuning.discord_certificate": str(setup.discord.certificate_path),
                # The operator's servers, roles and channels are real ones.
                "discord.guilds": (),
                "discord.owners": (),
                # Several bots may run on this machine.
                "web.port": 0,
                "storage.data_dir": self._folder.name,
                # The operator's own memory stays as it is.
                "storage.database_url": None,
                **self._overrides,
            }
        )

    async def enter(self, guild_id: int, channel_id: int) -> None:
        """Make the bot join a voice channel without a command. Raises the bot's errors."""
        assert self._running is not None, "started before"
        channel = self._running.client.find_channel(guild_id, channel_id)
        assert channel is not None, "a channel of the local Discord"
        await self._running.rooms.join(channel)

    async def stop(self) -> None:
        """Stop properly. See `BotUnderTest.stop`."""
        self._stopping.set()
        task = self._task
        if task is not None:
            # A caller that stops waiting calls `kill`, so the task is kept until it has ended.
            await asyncio.wait({task})
            self._task = None
        self._forget()
        if task is not None and (failure := task.exception()) is not None:
            raise first_cause(failure)

    async def kill(self) -> None:
        """End at once, without saving. See `BotUnderTest.kill`."""
        if self._running is not None:
            await self._running.rooms.abandon()
        if self._task is not None:
            task, self._task = self._task, None
            task.cancel()
            await asyncio.wait({task})
            # The result is discarded, as after SIGKILL.
            if not task.cancelled():
                task.exception()
        self._forget()

    def _forget(self) -> None:
        self._running = None
        if self._watch is not None:
            logging.getLogger().removeHandler(self._watch)
            self._watch = None

    async def _live(
        self, parts: BotSettings, report: ObservationCallback, ready: asyncio.Future[RunningBot], *, rejoin: bool
    ) -> None:
        """Run the bot until it ends, and report a crash. Raises errors from the shutdown, for `stop`."""
        try:
            async with running_bot(parts, observe=report, rejoin=rejoin, zone=LocalZone()) as running:
                ready.set_result(running)
                await running.run_until(self._stopping)
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
            elif self._stopping.is_set():
                raise
            else:
                report(BotCrashed(str(first_cause(error))))


async def _store_history(settings: Settings, setup: BotSetup) -> None:
    """Store the scenario's earlier turns as an open session of the voice channel."""
    clock = SystemClock()
    async with open_database(settings.storage.database, data_dir=settings.storage.data_dir) as database:
        opened = await Sessions(database, clock).open(
            guild_id=setup.discord.guild_id, channel_id=setup.discord.voice_channel_id, resume_within_s=0.0
        )
        store = SqlTurnStore(database, clock)
        for turn in setup.history:
            await store.append_turn(opened.session.id, turn)


class ProblemLogHandler(logging.Handler):
    """Reports the bot's logged warnings and errors as problems, without those of the rehearsal itself."""

    def __init__(self, report: ObservationCallback) -> None:
        super().__init__(logging.WARNING)
        self._report = report
        self._loop = asyncio.get_running_loop()

    def emit(self, record: logging.LogRecord) -> None:
        """Report one record. Called on any thread."""
        if _logged_by_rehearsal():
            return
        if isinstance(record.msg, dict):
            event = str(record.msg.get("event", ""))
            counts = {key: value for key, value in record.msg.items() if key.endswith("_count")}
            if counts and counts.keys() <= _OF_ONLOOKERS:
                return
            why = (str(record.msg[key]) for key in ("problem", "error", "reason") if key in record.msg)
            detail = next(why, ", ".join(f"{key}={value}" for key, value in counts.items()))
        else:
            event, detail = record.name, record.getMessage()
        level = "error" if record.levelno >= logging.ERROR else "warning"
        problem = LoggedProblem(event, detail, level)
        self._loop.call_soon_threadsafe(self._report, problem)


def _logged_by_rehearsal() -> bool:
    """Return whether the rehearsal logged this. All our code uses one logger, so the call stack is examined."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("logging", "structlog", __name__)):
            return module.startswith("rehearsal")
        frame = frame.f_back
    return False
