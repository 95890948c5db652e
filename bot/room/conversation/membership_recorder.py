"""Records who comes into a room and who leaves, tells the room's parts of it, and offers who comes back a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bot.room.conversation.catch_up_offers import CatchUpOffers
from bot.room.conversation.membership import MembershipGatherer

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.channel.participants import Participants
    from bot.channel.port import MembershipChange, Person, Place
    from bot.clock import Clock
    from bot.memory.upkeep import MemoryUpkeep
    from bot.participation.participation import Participation
    from bot.room.conversation.membership import MembershipNews
    from bot.room.conversation.transcriber import Transcriber
    from bot.room.conversation.turn_recorder import TurnRecorder
    from compaction.session import SessionMemory

log = structlog.get_logger()


class MembershipRecorder:
    """The comings and goings of one room. `offers_catch_up`: returns whether the server wants such offers now.

    Not thread-safe; the room calls it from one task at a time.
    """

    def __init__(
        self,
        place: Place,
        *,
        memory: SessionMemory,
        participants: Participants,
        participation: Participation,
        transcriber: Transcriber,
        turn_recorder: TurnRecorder,
        upkeep: MemoryUpkeep | None,
        offers_catch_up: Callable[[], bool],
        clock: Clock,
    ) -> None:
        self._place = place
        self._memory = memory
        self._participants = participants
        self._participation = participation
        self._transcriber = transcriber
        self._turn_recorder = turn_recorder
        self._upkeep = upkeep
        self._offers_catch_up = offers_catch_up
        self._clock = clock
        self._offers = CatchUpOffers()
        self._gatherer = MembershipGatherer()

    async def handle(self, change: MembershipChange, *, room_ends: bool = False) -> None:
        """Take a change. Its turn may be gathered with later ones. `room_ends`: nobody is offered anything any more."""
        now = self._clock.monotonic()
        away_s = self._offers.handle(change, total_turns=self._memory.total_turns, now=now)
        self._tell_parts(change)
        if (news := self._gatherer.handle(change, now)) is not None:
            await self._record(news)
        # After the turn: Discord may take seconds, and what they say meanwhile comes after their coming.
        if away_s is not None and not room_ends:
            await self._offer_catch_up(change.person, away_s)

    async def record_gathered(self, *, room_ends: bool = False) -> None:
        """Record what was gathered and is due, or all of it if the room ends."""
        now = self._clock.monotonic()
        for news in self._gatherer.rest(now) if room_ends else self._gatherer.due(now):
            await self._record(news)

    async def _offer_catch_up(self, person: Person, away_s: float) -> None:
        """Offer somebody who was away for `away_s` what was said, if the server wants it and they may be heard."""
        if self._participation.excludes(person.id) or not self._offers_catch_up():
            return
        offered = await self._place.offer_catch_up(person, minutes=round(away_s / 60))
        log.info("catch_up_offered", user_id=person.id, away_s=round(away_s), offered=offered)

    def _tell_parts(self, change: MembershipChange) -> None:
        person = change.person
        self._participants.note_name(person)
        if change.joined:
            self._participation.on_joined()
            if self._upkeep is not None:
                self._upkeep.on_join([str(person.id)])
        else:
            self._participation.on_left(person.id)
            self._transcriber.forget(person.id)

    async def _record(self, news: MembershipNews) -> None:
        if not self._participation.excludes(news.person.id):
            await self._turn_recorder.record_membership(news)
