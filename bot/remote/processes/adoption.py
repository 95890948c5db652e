"""Rooms that ran on while their gateway process was away: the one that was started again takes them back.

A room's process that has lost its link tries again, and says which room it has. Until this process is connected to
Discord the room is told to ask again soon. Then it is checked, and goes on without a new session, claim or op 4. One
that may not go on, or comes too late, is refused and hands over; its session goes on in a new process.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.background_task import logged_task
from bot.errors import KNOWN_ERRORS, SetupError
from bot.remote.messages.wire_error import NotYetError
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from bot.clock import Clock
    from bot.remote.link.hello import RoomIdentity
    from bot.remote.link.message_link import MessageLink

log = structlog.get_logger()

# A room's process tries again after two seconds at most (`link.gateway_link.LONGEST_PAUSE_S`).
COME_WITHIN_S = 3.0
# One that was told to ask again does so within half a second; on a machine that is busy it takes longer.
ASK_AGAIN_WITHIN_S = 2.0
_LOOK_EVERY_S = 0.1

NOT_OURS = Text("This process of a room was not started by this bot, or was given up.")
NOT_YET = Text("The bot is being started, and takes its rooms back in a moment.")
MAY_NOT = Text("This room cannot go on as it is ({reason}), so it begins anew.")


@dataclass(frozen=True, slots=True)
class AdoptedRoom:
    """A room that runs already. `admit`: call it once the room's messages are handled here."""

    room: RoomIdentity
    link: MessageLink
    admit: Callable[[], None]


@dataclass(frozen=True, slots=True)
class ServerNow:
    """What is known here of a server whose room has come back. `claim`: the newest of its claims; None: the database
    does not say. `bot_channel`: the voice channel in which Discord shows the bot.
    """

    is_served: bool
    has_room: bool
    bot_channel: int | None
    claim: int | None


def refusal(room: RoomIdentity, now: ServerNow, *, opened_by: str) -> str | None:
    """Return why a room may not go on, in one word for the log, or None. `opened_by`: the mark of this process."""
    reasons = (
        ("not_served", not now.is_served),
        ("has_room", now.has_room),
        ("other_settings", not room.opened_by or room.opened_by != opened_by),
        ("claim_unknown", now.claim is None),
        ("stale_claim", not room.claim or room.claim != now.claim),
        ("not_in_channel", now.bot_channel != room.channel_id),
    )
    return next((reason for reason, holds in reasons if holds), None)


class Adoptions:
    """Takes back, while the bot starts, rooms that outlived its last run. `opened_by`: the mark of this process.

    *Ownership*: one task for each room that comes, until the room is taken back or refused; `finish` waits for them.
    """

    def __init__(self, opened_by: str, clock: Clock) -> None:
        self._opened_by = opened_by
        self._clock = clock
        self._began_at = clock.monotonic()
        self._look: Callable[[RoomIdentity], Awaitable[ServerNow]] | None = None
        self._start: Callable[[AdoptedRoom], Awaitable[None]] | None = None
        self._is_over = False
        # The servers whose rooms have come, and those whose rooms were taken back or refused.
        self._asked: set[int] = set()
        self._answered: set[int] = set()
        self._starting: dict[int, asyncio.Task[None]] = {}

    def begin(
        self,
        look: Callable[[RoomIdentity], Awaitable[ServerNow]],
        start: Callable[[AdoptedRoom], Awaitable[None]],
    ) -> None:
        """Take rooms back from now on. `look`: returns what is known of a room's server. `start`: returns once the room
        goes on; raises the error of the room, or a `BotError`.
        """
        self._look, self._start = look, start

    async def finish(self, expected: Collection[int]) -> None:
        """Return once the rooms of these servers, and all others that have come, are taken back or refused, or their
        processes had time to come. Rooms that come later are refused.
        """
        begun_at = self._clock.monotonic()
        all_came_at = self._began_at + COME_WITHIN_S
        while True:
            now = self._clock.monotonic()
            until = begun_at + ASK_AGAIN_WITHIN_S if self._asked - self._answered else all_came_at
            if now >= until or not (set(expected) | self._asked) - self._answered:
                break
            await self._clock.sleep(_LOOK_EVERY_S)
        self._is_over = True
        await asyncio.gather(*self._starting.values(), return_exceptions=True)

    def on_room(self, room: RoomIdentity, link: MessageLink) -> Awaitable[None]:
        """Return what admits the link of a room that runs already; it raises `SetupError` if the room may not go on.

        Raises `NotYetError` as long as nobody can know, and `SetupError` if it is too late.
        """
        if self._is_over:
            raise SetupError(NOT_OURS)
        self._asked.add(room.guild_id)
        if self._look is None:
            raise NotYetError(NOT_YET)
        return self._admitted(room, link)

    async def _admitted(self, room: RoomIdentity, link: MessageLink) -> None:
        """Return once the room is admitted; it is taken back meanwhile. Raises `SetupError` if it may not go on.

        *Cancellation*: a room that is not admitted yet is not taken back.
        """
        assert self._look is not None, "begun"
        now = await self._look(room)
        if self._is_over:
            # It took so long that the room is being opened anew.
            raise SetupError(NOT_OURS)
        why = "has_room" if room.guild_id in self._starting else refusal(room, now, opened_by=self._opened_by)
        if why == "stale_claim":
            # Another process has claimed the server since, so the room that may go on is still to come.
            self._asked.discard(room.guild_id)
        elif why is not None:
            self._answered.add(room.guild_id)
        if why is not None:
            log.warning("room_not_taken_back", guild_id=room.guild_id, reason=why, machine=room.machine or "here")
            raise SetupError(MAY_NOT.fill(reason=why))
        admitted = asyncio.Event()
        task = self._starting[room.guild_id] = logged_task(
            self._take_back(AdoptedRoom(room, link, admitted.set)), name=f"room-taken-back-{room.guild_id}"
        )
        waiting = asyncio.create_task(admitted.wait(), name=f"room-admitted-{room.guild_id}")
        try:
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            if not admitted.is_set():
                # Its link is over, so it would be a room that nobody hears.
                task.cancel()
                await asyncio.wait({task})
        if not admitted.is_set():
            raise SetupError(NOT_OURS)

    async def _take_back(self, adopted: AdoptedRoom) -> None:
        assert self._start is not None, "begun"
        room = adopted.room
        machine = room.machine or "here"
        try:
            await self._start(adopted)
        except asyncio.CancelledError:
            log.warning("room_not_taken_back", guild_id=room.guild_id, reason="too_slow", machine=machine)
            raise
        except KNOWN_ERRORS as error:
            log.warning("room_not_taken_back", guild_id=room.guild_id, reason="failed", machine=machine, problem=error)
        else:
            log.info("room_taken_back", guild_id=room.guild_id, channel_id=room.channel_id, machine=machine)
        finally:
            self._answered.add(room.guild_id)
