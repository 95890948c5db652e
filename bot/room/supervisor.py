"""The rooms of all guilds: each in a task of its own, started again when it crashes, ended in order.

One guild has at most one room, because Discord gives a bot one voice connection a guild. A crash of one room
touches no other: it is told in that room's text channel and the room starts again, going on with its session.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

import structlog

from bot.errors import BotError, SetupError
from compaction.errors import CompactionError
from voice.errors import VoiceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from bot.channel.port import Moved, Place
    from bot.clock import Clock

log = structlog.get_logger()

# The first restart comes at once: most crashes are one bad moment. Doubled for each further one in a row.
FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 60.0
# So many crashes in a row are no bad moment.
MOST_CRASHES = 5
# A room that lived this long starts counting its crashes anew.
STABLE_S = 300.0
# Connecting to Discord's voice, with its own timeouts and retries.
JOIN_TIMEOUT_S = 60.0
# Last words transcribed, closing segment stored, goodbye said.
CLOSE_TIMEOUT_S = 20.0

KNOWN_ERRORS = (BotError, VoiceError, CompactionError)


class SupervisedRoom(Protocol):
    """What the supervisor asks of a room; `bot.room.room.Room` is it."""

    @property
    def opened(self) -> asyncio.Event:
        """Set when the bot is in the channel and hears it."""

    async def run(self) -> str:
        """Live until left; return why it ended (one word). Whatever it raises is a crash."""

    def close(self, reason: str) -> None:
        """Ask the room to end in order; `run` returns `reason`."""

    def moved(self, moved: Moved) -> None:
        """Somebody came or went."""

    def status(self) -> str:
        """Return how the room is, in plain sentences."""


@dataclass(slots=True)
class _Kept:
    """One guild's room and the task that keeps it."""

    place: Place
    room: SupervisedRoom
    task: asyncio.Task[None] | None = None
    # Between a crash and the next start there is no room to ask for an orderly end.
    resting: bool = False
    # Where somebody moved the bot; its next room opens there.
    bound_for: Place | None = None
    ending: bool = False


class RoomSupervisor:
    """Keeps rooms. `make_room` makes the room of a place, a new one for each start.

    *Ownership*: an async context manager that owns every room's task; on exit it ends all rooms in order, each
    within `CLOSE_TIMEOUT_S`, then by cancellation.
    """

    def __init__(self, make_room: Callable[[Place], SupervisedRoom], *, clock: Clock) -> None:
        self._make_room = make_room
        self._clock = clock
        self._kept: dict[int, _Kept] = {}
        self._closing = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._closing = True
        await asyncio.gather(*(self._end(guild_id, "stopped") for guild_id in list(self._kept)))

    async def join(self, place: Place) -> None:
        """Open a room in `place`; return when the bot hears it.

        Raises the room's own error, or `SetupError` when it took too long or the guild has a room already.
        """
        if self._closing:
            raise SetupError("I am shutting down. Try again in a moment.")
        if place.guild_id in self._kept:
            raise SetupError(f"I am in {self._kept[place.guild_id].place.name} already. Use /leave first.")
        first = self._make_room(place)
        kept = self._kept[place.guild_id] = _Kept(place, first)
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        kept.task = asyncio.create_task(self._keep(kept, started), name=f"room-{place.guild_id}")
        try:
            async with asyncio.timeout(JOIN_TIMEOUT_S):
                await asyncio.shield(started)
        except TimeoutError:
            await self._end(place.guild_id, "not_joined")
            raise SetupError(
                f"The voice connection did not come about within {JOIN_TIMEOUT_S:g} s. Try /join again."
            ) from None

    async def abandon(self) -> None:
        """End every room at once and save nothing more, as a killed process would; sessions stay open."""
        self._closing = True
        tasks = [kept.task for kept in self._kept.values() if kept.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def leave(self, guild_id: int) -> bool:
        """Close the guild's room; return False when there is none."""
        if guild_id not in self._kept:
            return False
        await self._end(guild_id, "left")
        return True

    def where(self, guild_id: int) -> Place | None:
        """Return where the bot is in this guild."""
        kept = self._kept.get(guild_id)
        return kept.place if kept else None

    def status(self, guild_id: int) -> str:
        """Return how the guild's room is, in plain sentences."""
        kept = self._kept.get(guild_id)
        if kept is None:
            return "I am not in a voice channel here. Use /join from the one you are in."
        return kept.room.status()

    def moved(self, guild_id: int, channel_id: int, moved: Moved) -> None:
        """Tell the room of that channel, if there is one."""
        kept = self._kept.get(guild_id)
        if kept is not None and kept.place.channel_id == channel_id:
            kept.room.moved(moved)

    def dragged(self, place: Place) -> None:
        """Follow where somebody moved the bot: its room ends in order, and the next one opens in `place`."""
        kept = self._kept.get(place.guild_id)
        if kept is None or kept.ending or kept.resting:
            return
        kept.bound_for = place
        kept.room.close("moved")

    async def _end(self, guild_id: int, reason: str) -> None:
        kept = self._kept.get(guild_id)
        if kept is None or kept.task is None:
            return
        kept.ending, kept.bound_for = True, None
        if kept.resting:
            kept.task.cancel()
        else:
            kept.room.close(reason)
        done, _ = await asyncio.wait({kept.task}, timeout=CLOSE_TIMEOUT_S)
        if not done:
            log.warning("room_close_timed_out", guild_id=guild_id, timeout_s=CLOSE_TIMEOUT_S)
            kept.task.cancel()
            await asyncio.wait({kept.task}, timeout=CLOSE_TIMEOUT_S)

    async def _keep(self, kept: _Kept, started: asyncio.Future[None]) -> None:
        """Run the room of one guild, over and over while it crashes, and wherever the bot is moved."""
        guild_id = kept.place.guild_id
        crashes = 0
        was_dragged = False
        try:
            while True:
                begun_at = self._clock.monotonic()
                error = await self._live(kept, started)
                if kept.bound_for is not None:
                    kept.place, kept.bound_for = kept.bound_for, None
                    kept.room = self._make_room(kept.place)
                    was_dragged = True
                    continue
                if error is None:
                    return
                if not started.done():
                    # The very first opening: whoever asked for it is told, and may ask again.
                    started.set_exception(error)
                    return
                if was_dragged and not kept.room.opened.is_set():
                    # Where it may not be; trying again would change nothing.
                    await kept.place.write(f"I could not come along. {_why(error)}")
                    return
                was_dragged = False
                crashes = 1 if self._clock.monotonic() - begun_at >= STABLE_S else crashes + 1
                kept.resting = True
                if not await self._wait_after_crash(kept, error, crashes):
                    return
                kept.resting = False
                kept.room = self._make_room(kept.place)
        finally:
            if self._kept.get(guild_id) is kept:
                del self._kept[guild_id]
            if not started.done():
                started.set_exception(SetupError("The room closed before it was open. Try /join again."))
            if started.done() and not started.cancelled():
                # Whoever waited may have gone; the error is logged, so it need not be told again.
                started.exception()

    async def _live(self, kept: _Kept, started: asyncio.Future[None]) -> Exception | None:
        """Run the room once. Return the error it crashed with, or None when it ended in order."""
        guild_id, room = kept.place.guild_id, kept.room
        opening = asyncio.create_task(room.opened.wait(), name=f"room-opening-{guild_id}")
        opening.add_done_callback(lambda task: None if task.cancelled() or started.done() else started.set_result(None))
        try:
            reason = await room.run()
            log.info("room_ended", guild_id=guild_id, reason=reason)
            return None
        except Exception as error:
            # One room's crash, whatever it is, must end no other room.
            cause = _first(error)
            log.exception("room_crashed", guild_id=guild_id, error_class=type(cause).__name__)
            return cause
        finally:
            opening.cancel()

    async def _wait_after_crash(self, kept: _Kept, error: Exception, crashes: int) -> bool:
        """Tell the people, wait, and return whether to start again."""
        why = _why(error)
        if crashes > MOST_CRASHES:
            await kept.place.write(
                f"{why} That was the {crashes}th time in a row, so I stop. Use /join to call me back."
            )
            return False
        wait_s = min(FIRST_BACKOFF_S * 2 ** (crashes - 1), LONGEST_BACKOFF_S)
        await kept.place.write(f"{why} I am starting again in {wait_s:g} s; what was said before is kept.")
        await self._clock.sleep(wait_s)
        return True


def _why(error: Exception) -> str:
    """Return what people are told of a crash."""
    return str(error) if isinstance(error, KNOWN_ERRORS) else "Something in me broke."


def _first(error: Exception) -> Exception:
    """Return the first error inside a task group's."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
