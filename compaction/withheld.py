"""Keeps the words of people who do not want to be heard any more from every model, without deleting them.

Their parts are taken out of turns. What was made of turns cannot be told apart, so what the bot said and what was
folded from their first turn until they were withheld is left out whole. Once they allow it again, everything is used as
before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from compaction.model import Note, Segment, Seq, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


# What is left of a note of a withheld person's screen.
SOMEBODY = "somebody"
SOME_SCREEN = "a screen that is not described"


@dataclass(frozen=True, slots=True)
class _Reach:
    """Where a withheld person's words may be: what was said and folded from `first` on, before these turns.

    `first_at`: when they first spoke, as far as that is known. `landed_at`: of the last landing before they were
    withheld. UTC epoch seconds.
    """

    first: Seq
    first_at: float
    said_until: Seq
    folded_until: Seq
    landed_at: float


class WithheldPeople:
    """The withheld people of one session. Not thread-safe.

    `speakers`: ids of everybody in the stored turns and notes, of whom it is not known when they first spoke.
    `quotable`: ids of people who spoke or shared a screen in other sessions, of whom the bot may tell before they speak
    in this one, or though they never do.
    """

    def __init__(self, speakers: Iterable[str] = (), quotable: Iterable[str] = ()) -> None:
        self._who: Callable[[], frozenset[str]] = frozenset
        # From which turn on, and since when, there may be words of each person.
        self._first = {person: (Seq(0), -inf) for person in (*speakers, *quotable)}
        self._reaches: dict[str, _Reach] = {}
        # How often somebody was withheld or allowed again.
        self.changes = 0

    def withhold(self, who: Callable[[], frozenset[str]]) -> None:
        """Ask `who` for the ids of the withheld people, each time that something goes to a model."""
        self._who = who

    def note_turn(self, turn: Turn) -> None:
        """Remember who speaks in a new turn."""
        for part in turn.parts:
            self._first.setdefault(part.speaker_id, (turn.seq, turn.started_at))

    def note_screen(self, note: Note, *, next_turn: Seq) -> None:
        """Remember whose screen a new note is of. They may never have said anything."""
        if note.person_id is not None:
            self._first.setdefault(note.person_id, (next_turn, note.at))

    def update(self, *, said_until: Seq, folded_until: Seq, landed_at: float = inf) -> bool:
        """Take over who is withheld now; return whether anybody is who may be in it.

        `said_until`: the number of turns so far. `folded_until`: the first turn that no made or running fold has.
        `landed_at`: when the last fold landed, UTC epoch seconds; infinite where nothing is folded any more.
        """
        who = {person for person in self._who() if person in self._first}
        if who != set(self._reaches):
            self.changes += 1
            self._reaches = {
                person: self._reaches.get(person, _Reach(*self._first[person], said_until, folded_until, landed_at))
                for person in sorted(who)
            }
        return bool(self._reaches)

    def turn(self, turn: Turn) -> Turn:
        """Return a turn without the parts of withheld people; without any part if the bot may have repeated them."""
        # Of a reply it counts when it was asked for: it may have been in progress when they were withheld.
        asked = turn.seq if turn.answers is None else turn.answers
        may_quote = turn.kind is TurnKind.ASSISTANT and any(
            reach.first <= turn.seq and asked < reach.said_until for reach in self._reaches.values()
        )
        parts = () if may_quote else tuple(part for part in turn.parts if part.speaker_id not in self._reaches)
        return turn.with_parts(parts)

    def note(self, note: Note) -> Note:
        """Return a note; without name and content if it is of a withheld person's screen."""
        hidden = note.person_id in self._reaches
        return replace(note, who=SOMEBODY, what=SOME_SCREEN, person_id=None) if hidden else note

    def segments(self, segments: Sequence[Segment]) -> Sequence[Segment]:
        """Return the segments without those that may hold words of withheld people."""
        for reach in self._reaches.values():
            segments = tuple(_clean(segments, reach))
        return segments


def has_content(turns: Iterable[Turn], notes: Iterable[Note]) -> bool:
    """Return whether anything is left of which a segment can be made."""
    return any(turn.parts for turn in turns) or any(note.what != SOME_SCREEN for note in notes)


def _clean(segments: Iterable[Segment], reach: _Reach) -> Iterator[Segment]:
    """Yield the segments without the person's words. A paragraph tells again of what was folded before it."""
    is_told = False
    for each in segments:
        if (is_told and each.start < reach.folded_until) or not _is_clean(each, reach):
            is_told |= not each.closing
        else:
            yield each


def _is_clean(segment: Segment, reach: _Reach) -> bool:
    if segment.note_ids:
        # Its notes are of the time of the fold, long after its turns.
        made_at = segment.created_at
        if not (made_at > reach.landed_at if segment.start >= reach.folded_until else made_at < reach.first_at):
            return False
    return segment.end <= reach.first or segment.start >= reach.folded_until
