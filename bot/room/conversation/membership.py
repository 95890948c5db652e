"""Gathers comings and goings, so that each person makes at most one turn about them in a minute. Pure.

An unsteady connection, or somebody who plays with the door, would otherwise fill the memory and cause folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bot.channel.port import MembershipChange, Person

# A person's next turn about joining or leaving comes at least this much later.
TURN_EVERY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class MembershipNews:
    """What to record about a person: `what` follows their name in a sentence."""

    person: Person
    what: str


@dataclass(slots=True)
class _Coming:
    """One person. `told_present`: whether the last turn left them in the channel. `changes`: those since that turn."""

    person: Person
    present: bool
    told_present: bool
    told_at: float = float("-inf")
    changes: int = 0


class MembershipGatherer:
    """The comings and goings of one room. Callers pass in monotonic seconds. Not thread-safe."""

    def __init__(self) -> None:
        self._people: dict[int, _Coming] = {}

    def handle(self, change: MembershipChange, now: float) -> MembershipNews | None:
        """Take a change. Returns what to record now: nothing within a minute of the last turn about that person.

        A change to the state that the person is in already is ignored.
        """
        person = change.person
        coming = self._people.get(person.id)
        if coming is None:
            coming = self._people[person.id] = _Coming(person, not change.joined, not change.joined)
        if coming.present is change.joined:
            return None
        coming.person, coming.present = person, change.joined
        coming.changes += 1
        return self._news(coming, now) if now - coming.told_at >= TURN_EVERY_S else None

    def due(self, now: float) -> tuple[MembershipNews, ...]:
        """Return what was gathered about people whose minute is over."""
        waiting = [each for each in self._people.values() if each.changes and now - each.told_at >= TURN_EVERY_S]
        return tuple(self._news(each, now) for each in waiting)

    def rest(self, now: float) -> tuple[MembershipNews, ...]:
        """Return everything that was gathered, because the room ends."""
        return tuple(self._news(each, now) for each in self._people.values() if each.changes)

    def _news(self, coming: _Coming, now: float) -> MembershipNews:
        what = _describe(told_present=coming.told_present, changes=coming.changes)
        coming.told_present, coming.told_at, coming.changes = coming.present, now, 0
        return MembershipNews(coming.person, what)


def _describe(*, told_present: bool, changes: int) -> str:
    """Return what happened in `changes` alternating changes of somebody who was in the channel or not."""
    times = "" if changes < 4 else f" {changes // 2} times"
    if changes == 1:
        return "left the channel." if told_present else "joined the channel."
    if told_present:
        ending = ", then left again" if changes % 2 else ""
        return f"left the channel and came back{times}{ending}."
    ending = ", then joined again" if changes % 2 else ""
    return f"joined the channel and left{times}{ending}."
