"""Ends the sessions that rooms have left open and nobody shall resume: at once, or as soon as the database answers.

A session that stays open brings the bot back to its channel at the next start. What the database does not take now is
tried again as long as this process runs. It is kept in memory alone, so a process that is killed before leaves the
session open; the log has said so by then.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

from bot.background_task import logged_task
from bot.room.restarts import DATABASE_PAUSE_S
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.channel.port import Place
    from bot.clock import Clock

    EndSession = Callable[[Place], Awaitable[None]]

log = structlog.get_logger()

# Ending a session is one statement.
END_SESSION_S: Final = 5.0
# For all that still wait when the process ends. Its rooms have taken their time by then (`bot.cli.run.STOP_WITHIN_S`).
LAST_TRY_S: Final = 2.0

COMES_BACK: Final = "the bot comes back to its channel at its next start, if people are there; /leave sends it away"


class SessionEndings:
    """The endings of one supervisor's rooms. `end_session`: ends what the rooms of this place's server have left open,
    and raises `StoreError`; None: rooms store no sessions.

    While a server has a room nothing is ended there, because its session is open too: a room takes an ending over when
    it begins (`take_over`), and gives it back (`end`) if it is over without having opened.

    *Ownership*: owns one task while endings wait, until `close`.
    """

    def __init__(self, end_session: EndSession | None, clock: Clock) -> None:
        self._end_session = end_session
        self._clock = clock
        # By the id of the server.
        self._waiting: dict[int, Place] = {}
        # Somebody who calls the bot waits for an ending that is being tried, so that it does not end the new session.
        self._trying = asyncio.Lock()
        self._retrying: asyncio.Task[None] | None = None
        self._is_closed = False

    async def end(self, place: Place) -> None:
        """End what the room in `place`, which is over, has left open. Tried again later if the database is away."""
        problem = await self._problem_of_ending(place)
        if problem is None:
            return
        self._waiting[place.guild_id] = place
        if self._is_closed:
            self._tell_left_open()
            return
        log.warning("session_end_waits", guild_id=place.guild_id, problem=problem, if_killed=COMES_BACK)
        if self._retrying is None or self._retrying.done():
            self._retrying = logged_task(self._try_again_and_again(), name="session-endings")

    async def try_now(self, guild_id: int) -> None:
        """Try once to end what waits for that on a server, if anything, because somebody calls the bot there."""
        if guild_id not in self._waiting:
            return
        async with self._trying:
            place = self._waiting.get(guild_id)
            if place is not None and await self._problem_of_ending(place) is None:
                self._waiting.pop(guild_id, None)

    def take_over(self, guild_id: int) -> bool:
        """End nothing any more on a server, because a room begins there. Return whether something waited for that."""
        return self._waiting.pop(guild_id, None) is not None

    async def close(self) -> None:
        """Try a last time, and say in the log what stays open."""
        self._is_closed = True
        if self._retrying is not None:
            self._retrying.cancel()
            await asyncio.wait({self._retrying})
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_TRY_S):
                await self._try_all()
        self._tell_left_open()

    async def _try_again_and_again(self) -> None:
        while self._waiting:
            await self._clock.sleep(DATABASE_PAUSE_S)
            await self._try_all()

    async def _try_all(self) -> None:
        for guild_id in list(self._waiting):
            await self.try_now(guild_id)

    async def _problem_of_ending(self, place: Place) -> Exception | None:
        """Try to end what is open on the place's server. Return why that was not possible; None: it is done."""
        if self._end_session is None:
            return None
        try:
            async with asyncio.timeout(END_SESSION_S):
                await self._end_session(place)
        except (StoreError, TimeoutError) as error:
            return error
        return None

    def _tell_left_open(self) -> None:
        for guild_id in self._waiting:
            log.warning("session_left_open", guild_id=guild_id, remedy=COMES_BACK)
        self._waiting.clear()
