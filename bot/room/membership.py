"""Records who comes into a room and who leaves, and offers who comes back a summary.

Comings and goings are gathered, so that each person makes at most one turn about them in a minute: an unsteady
connection, or somebody who plays with the door, would otherwise fill the memory and cause folds. A summary is offered
once in a session, and only after some time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from bot.room_part import RoomPart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bot.channel.port import MembershipChange, Person
    from bot.conversation.services import RoomContext
    from bot.conversation.turn_recorder import TurnRecorder

log = structlog.get_logger()

# A person's next turn about joining or leaving comes at least this much later.
TURN_EVERY_S: Final = 60.0
# Who fetches a drink or changes a device has missed little.
LEAST_AWAY_S: Final = 300.0
# Turns since they left. Fewer are read faster than a recap.
LEAST_TURNS: Final = 5


@dataclass(slots=True)
class _Coming:
    """One person. `recorded_present`: the last turn left them in the channel. `changes`: those since that turn."""

    person: Person
    present: bool
    recorded_present: bool
    recorded_at: float = float("-inf")
    changes: int = 0


class MembershipGatherer:
    """The comings and goings of one room. Callers pass in monotonic seconds. Not thread-safe."""

    def __init__(self) -> None:
        self._people: dict[int, _Coming] = {}

    def handle(self, change: MembershipChange) -> None:
        """Take a change. One to the state that the person is in already is ignored."""
        person = change.person
        coming = self._people.get(person.id)
        if coming is None:
            coming = self._people[person.id] = _Coming(person, not change.joined, not change.joined)
        if coming.present is not change.joined:
            coming.person, coming.present = person, change.joined
            coming.changes += 1

    def due(self, now: float, *, room_ends: bool = False) -> Iterator[tuple[Person, str]]:
        """Yield what is to be recorded now: what was gathered about people whose last turn is a minute ago, or about
        everybody: who, and what follows their name in a sentence. What is not taken from the iterator stays gathered.
        """
        for each in list(self._people.values()):
            if each.changes and (room_ends or now - each.recorded_at >= TURN_EVERY_S):
                yield self._news(each, now)

    def _news(self, coming: _Coming, now: float) -> tuple[Person, str]:
        what = _describe(recorded_present=coming.recorded_present, changes=coming.changes)
        coming.recorded_present, coming.recorded_at, coming.changes = coming.present, now, 0
        return coming.person, what


def _describe(*, recorded_present: bool, changes: int) -> str:
    """Return what happened in `changes` alternating changes of somebody who was in the channel or not."""
    times = "" if changes < 4 else f" {changes // 2} times"
    if changes == 1:
        return "left the channel." if recorded_present else "joined the channel."
    if recorded_present:
        ending = ", then left again" if changes % 2 else ""
        return f"left the channel and came back{times}{ending}."
    ending = ", then joined again" if changes % 2 else ""
    return f"joined the channel and left{times}{ending}."


class CatchUpOffers:
    """The offers of one session. Times are seconds of any one clock. Not thread-safe."""

    def __init__(self) -> None:
        # When each person left, and how many turns the session had then.
        self._away: dict[int, tuple[float, int]] = {}
        self._offered: set[int] = set()

    def handle(self, change: MembershipChange, *, total_turns: int, now: float) -> float | None:
        """Take a change. Returns for how many seconds the person was away if they are to be offered it, else None.

        `total_turns`: how many the session has had.
        """
        person = change.person
        if person.is_bot:
            return None
        if not change.joined:
            self._away[person.id] = (now, total_turns)
            return None
        left = self._away.pop(person.id, None)
        if left is None or person.id in self._offered:
            return None
        left_at, turns_then = left
        if now - left_at < LEAST_AWAY_S or total_turns - turns_then < LEAST_TURNS:
            return None
        self._offered.add(person.id)
        return now - left_at


class MembershipRecorder(RoomPart):
    """The comings and goings of one room. `recorder`: makes the turns about them. Little waits, however slow Discord or
    the database is: of each person how often they came and went.

    *Ownership*: `run` is a task of the room. Not thread-safe.
    """

    task = "membership"

    def __init__(self, session: RoomContext, recorder: TurnRecorder) -> None:
        self._session = session
        self._recorder = recorder
        self._clock = session.services.clock
        self._offers = CatchUpOffers()
        self._gatherer = MembershipGatherer()
        # Who is to be offered a summary, and for how long they were away.
        self._to_offer: dict[int, tuple[Person, float]] = {}
        self._changed = asyncio.Event()

    def on_change(self, change: MembershipChange) -> None:
        """Take a change. Does not wait."""
        person, now = change.person, self._clock.monotonic()
        away_s = self._offers.handle(change, total_turns=self._session.timeline.total_turns, now=now)
        self._gatherer.handle(change)
        if away_s is not None:
            self._to_offer[person.id] = (person, away_s)
        self._changed.set()

    async def run(self) -> None:
        """Record what happens. Never returns."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self.record_due()
            # After the turn: Discord may take seconds, and what they say meanwhile comes after their coming.
            while self._to_offer:
                _, (person, away_s) = self._to_offer.popitem()
                await self._offer_catch_up(person, away_s)

    async def record_due(self) -> None:
        """Record what was gathered and is due by now."""
        for person, what in self._gatherer.due(self._clock.monotonic()):
            await self._record(person, what)

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """Record all that was gathered. Nobody is offered anything any more."""
        self._to_offer.clear()
        for person, what in self._gatherer.due(self._clock.monotonic(), room_ends=True):
            await self._record(person, what)

    async def _offer_catch_up(self, person: Person, away_s: float) -> None:
        """Offer somebody who was away for `away_s` what was said, if the server wants it and they may be heard."""
        channel, services = self._session.channel, self._session.services
        is_wanted = services.servers.of(channel.guild_id).offers_catch_up
        if services.memory.readable is None or not is_wanted or self._session.words.excludes(person.id):
            return
        offered = await channel.offer_catch_up(person, minutes=round(away_s / 60))
        log.info("catch_up_offered", user_id=person.id, away_s=round(away_s), offered=offered)

    async def _record(self, person: Person, what: str) -> None:
        if not self._session.words.excludes(person.id):
            await self._recorder.record_membership(person, what)
