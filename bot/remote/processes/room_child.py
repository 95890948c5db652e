"""A process that this machine has started for rooms: it loads, waits for them, runs them and ends."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import structlog

from bot.errors import SetupError
from bot.texts.text import Text

if TYPE_CHECKING:
    from asyncio.subprocess import Process

log = structlog.get_logger()

# A slow machine loads the models within this time; the supervisor gives a room up after a minute.
START_WITHIN_S = 50.0
# How long a process that was asked to end may take: its room has stored everything by then.
END_WITHIN_S = 5.0

ENDED = Text("The process that ran this room has ended.")
FROZEN = Text("The process that ran this room did not answer any more.")
NOT_STARTED = Text("A process for this room could not be started; the log says why. Try /join again.")


class RoomChild:
    """A child. `run_id`: the number of its run, which it tells wherever it introduces itself."""

    def __init__(self, run_id: str, process: Process) -> None:
        self.run_id = run_id
        self._process = process
        self._loaded = asyncio.Event()
        self._silent = asyncio.Event()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    @property
    def is_loaded(self) -> bool:
        """Return whether it waits for a room, or runs one."""
        return self.is_alive and self._loaded.is_set() and not self._silent.is_set()

    @property
    def is_loading(self) -> bool:
        """Return whether it may be loaded soon."""
        return self.is_alive and not self._loaded.is_set()

    def on_loaded(self) -> None:
        """Take note that it waits for a room."""
        self._loaded.set()

    def on_silent(self) -> None:
        """Take note that nothing is heard of it any more."""
        self._silent.set()

    async def loaded(self, within_s: float) -> None:
        """Wait until it can run a room. Raises `SetupError` if it ends before that, or takes longer."""
        await self._until_either(self._loaded, within_s)
        if not self.is_loaded:
            await self.kill()
            log.error("room_process_not_started", run_id=self.run_id, status=self._process.returncode)
            raise SetupError(NOT_STARTED)

    async def lost(self) -> None:
        """Wait until the process has ended or does not answer."""
        await self._until_either(self._silent)
        log.info("room_process_gone", run_id=self.run_id, status=self._process.returncode)

    async def ended(self) -> None:
        """Wait until the process has ended."""
        await self._process.wait()

    async def _until_either(self, event: asyncio.Event, within_s: float | None = None) -> None:
        """Wait for an event or for the process's end."""
        ended = asyncio.create_task(self._process.wait(), name=f"room-process-{self.run_id}-ended")
        happened = asyncio.create_task(event.wait(), name=f"room-process-{self.run_id}-event")
        try:
            either: set[asyncio.Task[Any]] = {ended, happened}
            await asyncio.wait(either, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            happened.cancel()

    def hand_over(self) -> None:
        """Ask it to end, and to leave its room to another process."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)

    async def kill(self) -> None:
        """End it at once, and return when it is gone."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def end(self, within_s: float = END_WITHIN_S) -> None:
        """Wait for its end, which is due, and kill it if it does not come. *Cancellation*: kills it at once."""
        try:
            async with asyncio.timeout(within_s):
                await self._process.wait()
        except TimeoutError:
            log.warning("room_process_killed", run_id=self.run_id)
            await self.kill()
        except asyncio.CancelledError:
            # Nobody would end one that hangs.
            await self.kill()
            raise
