"""Starts and ends the processes that run rooms: children of the gateway process, one of them loaded and waiting.

Loading the models takes seconds. A room that is wanted, or has lost its process, gets the one that waits; the next one
is loaded once the room has had time to begin, because loading takes the processor from it.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

import structlog

from bot.errors import BotError, SetupError
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import TracebackType

    from bot.clock import Clock
    from bot.remote.hello import RoomIdentity
    from bot.remote.link import MessageLink

log = structlog.get_logger()

# A slow machine loads the models within this time; the supervisor gives a room up after a minute.
START_WITHIN_S = 50.0
# How long a process that was asked to end may take: its room has stored everything by then.
END_WITHIN_S = 5.0
# The room is in its channel by then.
SPARE_AFTER_S = 10.0
# After a process that ended before it was loaded; doubled up to the longest.
FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 300.0

ENDED = Text("The process that ran this room has ended.")
FROZEN = Text("The process that ran this room did not answer any more.")
ONE_LINK = Text("A process of a room opens one link.")
NOT_OURS = Text("This process of a room was not started by this bot, or was given up.")
NOT_STARTED = Text("A process for this room could not be started; the log says why. Try /join again.")


class RoomProcess:
    """A child process that runs one room, or waits for one. `link`: once it is loaded."""

    def __init__(self, run_id: str, process: asyncio.subprocess.Process) -> None:
        self.run_id = run_id
        self._process = process
        self._link: asyncio.Future[MessageLink] = asyncio.get_running_loop().create_future()
        self._unlinked = asyncio.Event()

    @property
    def link(self) -> MessageLink:
        """Return the link to the process. It is loaded by then."""
        return self._link.result()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None

    @property
    def is_loaded(self) -> bool:
        """Return whether it waits for a room, or runs one."""
        return self.is_alive and self._link.done() and self.link.is_open

    def on_link(self, link: MessageLink) -> None:
        """Take the link that the process has opened. Raises `BotError` for a second one."""
        if self._link.done():
            raise SetupError(ONE_LINK)
        link.on_closed(self._unlinked.set)
        self._link.set_result(link)

    async def loaded(self, within_s: float) -> None:
        """Wait until it can run a room. Raises `SetupError` if it ends before that, or takes longer."""
        ended = asyncio.create_task(self._process.wait(), name=f"room-process-{self.run_id}-ended")
        try:
            either: set[asyncio.Future[Any]] = {ended, self._link}
            await asyncio.wait(either, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if not self.is_loaded:
            await self.kill()
            log.error("room_process_not_started", run_id=self.run_id, status=self._process.returncode)
            raise SetupError(NOT_STARTED)

    async def lost(self) -> Text:
        """Wait until the process has ended or does not answer, and return which."""
        ended = asyncio.create_task(self._process.wait(), name=f"room-process-{self.run_id}-ended")
        unlinked = asyncio.create_task(self._unlinked.wait(), name=f"room-process-{self.run_id}-unlinked")
        try:
            await asyncio.wait({ended, unlinked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            unlinked.cancel()
        # A process that is killed loses its link first.
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await self._process.wait()
        log.info("room_process_gone", run_id=self.run_id, status=self._process.returncode)
        return FROZEN if self.is_alive else ENDED

    async def kill(self) -> None:
        """End it at once, and return when it is gone."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def end(self) -> None:
        """Wait for its end, which is due, and kill it if it does not come."""
        try:
            async with asyncio.timeout(END_WITHIN_S):
                await self._process.wait()
        except TimeoutError:
            log.warning("room_process_killed", run_id=self.run_id)
            await self.kill()


class RoomProcesses:
    """The rooms' processes. `command`: starts one; the number of its run is added. For one event loop.

    *Ownership*: an async context manager. It owns the processes and the task that keeps one waiting.
    """

    def __init__(self, command: Callable[[str], Sequence[str]], clock: Clock) -> None:
        self._command = command
        self._clock = clock
        self._known: dict[str, RoomProcess] = {}
        self._spare: RoomProcess | None = None
        self._wanted = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._keeping = asyncio.create_task(self._keep_spare(), name="room-spare")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._keeping is not None, "entered"
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)
        await asyncio.gather(*(process.kill() for process in list(self._known.values())))

    def on_link(self, room: RoomIdentity, link: MessageLink) -> None:
        """Take the link of a process. Raises `BotError` if nobody here has started it."""
        process = self._known.get(room.run_id)
        if process is None:
            raise SetupError(NOT_OURS)
        process.on_link(link)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[RoomProcess]:
        """Yield a process for one room; it is loaded. It has ended afterwards. Raises `SetupError`."""
        spare, self._spare = self._spare, None
        process = spare if spare is not None and spare.is_alive else await self._started()
        try:
            await process.loaded(START_WITHIN_S)
            self._wanted.set()
            yield process
        except BaseException:
            await process.kill()
            raise
        finally:
            await self._ended(process)

    async def _started(self) -> RoomProcess:
        run_id = secrets.token_hex(8)
        try:
            child = await asyncio.create_subprocess_exec(
                *self._command(run_id), stdin=asyncio.subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            raise SetupError(NOT_STARTED) from error
        process = self._known[run_id] = RoomProcess(run_id, child)
        log.info("room_process_started", run_id=run_id, pid=child.pid)
        return process

    async def _ended(self, process: RoomProcess) -> None:
        try:
            await process.end()
        finally:
            self._known.pop(process.run_id, None)

    async def _keep_spare(self) -> None:
        """Have one process loaded and waiting."""
        pause_s = FIRST_PAUSE_S
        while True:
            self._wanted.clear()
            spare: RoomProcess | None = None
            try:
                spare = self._spare = await self._started()
                await spare.loaded(START_WITHIN_S)
                pause_s = FIRST_PAUSE_S
                await self._until_wanted(spare)
                wait_s = SPARE_AFTER_S
            except BotError as error:
                log.warning("no_spare_room_process", problem=error, retry_s=pause_s)
                wait_s, pause_s = pause_s, min(2 * pause_s, LONGEST_PAUSE_S)
            if spare is not None and self._spare is spare:
                # Nobody has taken it, and it is of no use any more.
                self._spare = None
                await spare.kill()
                self._known.pop(spare.run_id, None)
            await self._clock.sleep(wait_s)

    async def _until_wanted(self, spare: RoomProcess) -> None:
        """Return once a room has taken the process that waits, or it is lost."""
        wanted = asyncio.create_task(self._wanted.wait(), name="room-spare-wanted")
        lost = asyncio.create_task(spare.lost(), name="room-spare-lost")
        try:
            await asyncio.wait({wanted, lost}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            wanted.cancel()
            lost.cancel()
