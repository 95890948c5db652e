"""Decides who may read what was said. Commands, buttons, the dashboard and quotes in prompts all ask here.

A person may read what was said while they were in the channel. Somebody to whom the server has opened its history
(`/settings`) may read everything in the channels that they may enter. There is one exception: catching up tells
who is in the channel now what was said earlier in the session that goes on.

Pure: `bot.store.attendance` stores who was there, and `bot.discord.voice_channels` finds out about people and channels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from compaction.memory.chapters import without_headings
from compaction.memory.passage import ALWAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compaction.model import Segment, SessionId, Turn


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who wants to read what was said on a server, or to whom it would be told aloud.

    `allowed`: the voice channels of which may be told where they read; their age restriction decides. `opened`: the
    channels whose whole history is open to them. `present_in`: the voice channel that they are in now.
    """

    person_id: str
    guild_id: int
    allowed: frozenset[int]
    opened: frozenset[int] = frozenset()
    present_in: int | None = None

    @property
    def reads_everything(self) -> bool:
        """Return whether they may read what was said in all channels of which they may be told."""
        return self.allowed <= self.opened


@dataclass(frozen=True, slots=True)
class Stay:
    """A time that somebody was in the channel, in UTC epoch seconds. `left_at` None: they have not left."""

    came_at: float
    left_at: float | None = None

    def covers(self, since: float, until: float) -> bool:
        return self.came_at <= since and (self.left_at is None or until <= self.left_at)


@dataclass(frozen=True, slots=True)
class AttendedSession:
    """Where a session was, whether it goes on, and when each of some people was there, by their id."""

    id: SessionId
    guild_id: int | None
    channel_id: int | None
    goes_on: bool
    stays: Mapping[str, tuple[Stay, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Viewing:
    """What one person may read of one session. `is_whole`: all of it. `stays`: what was said during these."""

    person_id: str = ""
    is_whole: bool = False
    stays: tuple[Stay, ...] = ()

    @property
    def is_nothing(self) -> bool:
        return not self.is_whole and not self.stays

    def covers(self, since: float, until: float) -> bool:
        """Return whether they may read all that was said, shown or written about in a stretch of time."""
        return self.is_whole or any(stay.covers(since, until) for stay in self.stays)

    def reads(self, turn: Turn) -> bool:
        """Return whether they may read a whole turn."""
        return self.covers(turn.started_at, turn.ended_at)

    def turn(self, turn: Turn) -> Turn:
        """Return a turn as they may read it: of one that they have not heard, their own words. It may be empty."""
        if self.reads(turn):
            return turn
        own = tuple(part for part in turn.parts if part.speaker_id == self.person_id) if self.stays else ()
        return turn.with_parts(own)

    def segments(self, segments: Sequence[Segment], turns: Sequence[Turn]) -> Sequence[Segment]:
        """Return what they may read of a session's segments: of one about turns that they have not heard, only the
        facts from turns that they have. `turns`: those of the session.
        """
        if self.is_whole:
            return segments
        heard = {turn.seq for turn in turns if self.reads(turn)}

        def read(segment: Segment) -> Segment:
            if heard.issuperset(range(segment.start, segment.end)):
                return segment
            facts = tuple(fact if heard.issuperset(fact.turns) else fact.blanked() for fact in segment.facts)
            return replace(segment, gist="", paragraph="", facts=facts)

        read_of = tuple(map(read, segments))
        lost = [left is not segment for left, segment in zip(read_of, segments, strict=True)]
        return without_headings(read_of, segments, lost)

    @property
    def stretches(self) -> tuple[tuple[float, float], ...]:
        """Return the stretches of time that they may read, in order and apart (`Readable` of compaction)."""
        if self.is_whole:
            return (ALWAYS,)
        found: list[tuple[float, float]] = []
        for stay in sorted(self.stays, key=lambda each: each.came_at):
            since, until = stay.came_at, ALWAYS[1] if stay.left_at is None else stay.left_at
            if found and since < found[-1][1]:
                since, until = found[-1][0], max(until, found.pop()[1])
            found.append((since, until))
        return tuple(found)


NOTHING = Viewing()
WHOLE = Viewing(is_whole=True)


def hears(viewer: Viewer, channel_id: int) -> bool:
    """Return whether somebody may read what is being said in a channel of their server now."""
    return channel_id in viewer.allowed and (channel_id in viewer.opened or channel_id == viewer.present_in)


def viewing_of(viewer: Viewer, session: AttendedSession, *, catches_up: bool = False) -> Viewing:
    """Return what somebody may read of a session. `catches_up`: it is for catching up."""
    if session.guild_id != viewer.guild_id or session.channel_id not in viewer.allowed:
        return NOTHING
    if session.channel_id in viewer.opened:
        return WHOLE
    if catches_up and session.goes_on and session.channel_id == viewer.present_in:
        return WHOLE
    return Viewing(viewer.person_id, stays=session.stays.get(viewer.person_id, ()))


def read_by_all(viewers: Iterable[Viewer], session: AttendedSession) -> tuple[tuple[float, float], ...]:
    """Return the stretches of time of a session that all of these may read, in order and apart."""
    common: Sequence[tuple[float, float]] = (ALWAYS,)
    for viewer in viewers:
        theirs = viewing_of(viewer, session).stretches
        both = ((max(a, c), min(b, d)) for a, b in common for c, d in theirs)
        common = [(since, until) for since, until in both if since <= until]
    return tuple(common)
