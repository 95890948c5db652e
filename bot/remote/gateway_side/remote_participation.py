"""What commands change in a room of another process: it is told, and confirms.

A room that does not confirm is given up, so nobody is heard in it against their wish; the supervisor starts it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from bot.errors import BotError
from bot.remote.messages.participation_state import participation_state
from bot.remote.messages.room_messages import ReadMemoryAgain, StoreWaiting, TakeOver
from bot.texts.text import sentence_of
from compaction.errors import StoreError

if TYPE_CHECKING:
    import asyncio

    from bot.participation.guild_participation import GuildParticipation
    from bot.remote.processes.room_seat import RoomSeat

log = structlog.get_logger()

# A room that is busy answers within a second. Somebody waits who does not want to be heard.
CONFIRM_WITHIN_S = 5.0
# Reading the memory again takes a second for a long session.
READ_AGAIN_WITHIN_S = 30.0
# A database that is away refuses after some seconds, and several writes may wait for that.
STORE_WITHIN_S = 30.0


class RemoteParticipation:
    """Implements `SilenceableRoom` for the room in `seat`, as `Participation` does in the room's own process.

    `runs`: whether the room has begun there and is not over; its owner sets it. `ended`: set once it is over, and
    fenced if it was given up.
    """

    def __init__(self, seat: RoomSeat, guild: GuildParticipation, *, ended: asyncio.Event) -> None:
        # Once it is known.
        self.session_id = ""
        self.runs = False
        self._seat = seat
        self._guild = guild
        self._ended = ended
        # What `confirm` still has to tell.
        self._pending: TakeOver | None = None

    def stop_speaking(self) -> None:
        self._change(stops_speaking=True)

    def on_opted_out(self, person_id: int) -> None:
        self._change(opted_out=(person_id,))

    def on_forgetting(self, person_id: int) -> None:
        self._change(forgetting=(person_id,))

    def on_forgotten(self) -> None:
        self._change(forgotten=True)

    def _change(
        self,
        *,
        stops_speaking: bool = False,
        opted_out: tuple[int, ...] = (),
        forgetting: tuple[int, ...] = (),
        forgotten: bool = False,
    ) -> None:
        """Remember what `confirm` tells, which follows at once."""
        before = self._pending or TakeOver(participation_state(self._guild))
        self._pending = replace(
            before,
            stops_speaking=before.stops_speaking or stops_speaking,
            opted_out=before.opted_out + opted_out,
            forgetting=before.forgetting + forgetting,
            forgotten=before.forgotten or forgotten,
        )

    async def confirm(self) -> None:
        """Return once the room has taken over what was changed, or has ended, or stores nothing any more."""
        if not self.runs:
            return
        told = participation_state(self._guild)
        pending, self._pending = self._pending or TakeOver(told), None
        await self._certainly(replace(pending, participation=told), within_s=CONFIRM_WITHIN_S)

    async def store_waiting(self) -> None:
        """Have the room store what the store has refused so far. Raises `StoreError`, also if it does not answer."""
        if not self.runs:
            return
        try:
            await self._seat.link.ask(StoreWaiting(), within_s=STORE_WITHIN_S)
        except BotError as error:
            # Nothing is deleted yet, so the room may go on, and the person tries again.
            raise StoreError(sentence_of(error)) from error

    async def refresh(self) -> None:
        """Have the room read its memory again, because words were deleted."""
        if self.runs:
            await self._certainly(ReadMemoryAgain(), within_s=READ_AGAIN_WITHIN_S)

    async def _certainly(self, request: TakeOver | ReadMemoryAgain, *, within_s: float) -> None:
        seat = self._seat
        try:
            await seat.link.ask(request, within_s=within_s)
        except BotError as error:
            log.warning(
                "room_did_not_confirm",
                guild_id=self._guild.guild_id,
                request=type(request).__name__,
                problem=error,
                is_linked=seat.is_open,
            )
            await seat.give_up()
            # Then it is fenced too.
            await self._ended.wait()
