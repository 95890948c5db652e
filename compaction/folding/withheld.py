"""Keeps the words of people who do not want to be heard any more from every model, without deleting them.

Their parts are taken out of turns. What was made of turns cannot be told apart, so what the bot said and what was
folded from their first turn until they were withheld is left out whole. Once they allow it again, everything is used as
before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.model import Seq, TurnKind
from compaction.summary.ledger import SegmentLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from compaction.model import Note, RenderedSummary, Turn
    from compaction.summary.port import FoldRequest

# What is left of a note of a withheld person's screen.
SOMEBODY = "somebody"
SOME_SCREEN = "a screen that is not described"


@dataclass(frozen=True, slots=True)
class _Reach:
    """Where a withheld person's words may be: what was said and folded from `first` on, before these turns."""

    first: Seq
    said_until: Seq
    folded_until: Seq


class WithheldPeople:
    """The withheld people of one session. Not thread-safe.

    `speakers`: ids and names of everybody in the stored turns, of whom it is not known when they first spoke.
    """

    def __init__(self, speakers: Iterable[tuple[str, str]] = ()) -> None:
        self._who: Callable[[], frozenset[str]] = frozenset
        known = list(speakers)
        self._first = {speaker_id: Seq(0) for speaker_id, _ in known}
        self._names = {speaker_id: {name} for speaker_id, name in known}
        self._reaches: dict[str, _Reach] = {}
        self._ledger: tuple[SegmentLedger, tuple[_Reach, ...], SegmentLedger] | None = None
        self._turns: dict[int, tuple[Turn, Turn]] = {}
        # How often somebody was withheld or allowed again.
        self.changes = 0

    def withhold(self, who: Callable[[], frozenset[str]]) -> None:
        """Ask `who` for the ids of the withheld people, each time that something goes to a model."""
        self._who = who

    def note_turn(self, turn: Turn) -> None:
        """Remember who speaks in a new turn."""
        for part in turn.parts:
            self._first.setdefault(part.speaker_id, turn.seq)
            self._names.setdefault(part.speaker_id, set()).add(part.speaker)

    def update(self, *, said_until: Seq, folded_until: Seq) -> bool:
        """Take over who is withheld now; return whether anybody is who has spoken.

        `said_until`: the number of turns so far. `folded_until`: the first turn that no made or running fold has.
        """
        who = {person for person in self._who() if person in self._first}
        if who != set(self._reaches):
            self._turns.clear()
            self.changes += 1
            self._reaches = {
                person: self._reaches.get(person, _Reach(self._first[person], said_until, folded_until))
                for person in sorted(who)
            }
        return bool(self._reaches)

    def turn(self, turn: Turn) -> Turn:
        """Return a turn without the parts of withheld people; without any part if the bot may have repeated them."""
        if not self._reaches:
            return turn
        before, after = self._turns.get(turn.seq, (None, turn))
        if before is not turn:
            after = self._without(turn)
            self._turns[turn.seq] = (turn, after)
        return after

    def _without(self, turn: Turn) -> Turn:
        told = turn.kind is TurnKind.ASSISTANT and any(
            reach.first <= turn.seq < reach.said_until for reach in self._reaches.values()
        )
        parts = () if told else tuple(part for part in turn.parts if part.speaker_id not in self._reaches)
        return turn if parts == turn.parts else replace(turn, parts=parts, tombstone=not parts)

    def note(self, note: Note) -> Note:
        """Return a note; without name and content if it is of a withheld person's screen."""
        names = {name for person in self._reaches for name in self._names[person]}
        return replace(note, who=SOMEBODY, what=SOME_SCREEN) if note.who in names else note

    def ledger(self, ledger: SegmentLedger) -> SegmentLedger:
        """Return the ledger without everything that may hold words of withheld people."""
        reaches = tuple(self._reaches.values())
        if not reaches:
            return ledger
        if self._ledger is None or self._ledger[0] is not ledger or self._ledger[1] != reaches:
            clean = SegmentLedger(
                [each for each in ledger.segments if _is_clean(each.start, each.end, reaches)],
                [each for each in ledger.chapters if _is_clean(each.start, each.end, reaches)],
            )
            self._ledger = (ledger, reaches, clean)
        return self._ledger[2]

    def summary(self, ledger: SegmentLedger, rendered: RenderedSummary | None) -> RenderedSummary | None:
        """Return the summary that may be sent. `rendered`: that of the whole ledger."""
        return self.ledger(ledger).render() if self._reaches else rendered

    def request(self, request: FoldRequest) -> FoldRequest:
        """Return a fold's request without words and names of withheld people."""
        if not self._reaches:
            return request
        names = {name for person in self._reaches for name in self._names[person]}
        return replace(
            request,
            turns=tuple(map(self.turn, request.turns)),
            before=tuple(map(self.turn, request.before)),
            notes=tuple(map(self.note, request.notes)),
            roster=request.roster - names,
        )


def _is_clean(start: Seq, end: Seq, reaches: tuple[_Reach, ...]) -> bool:
    return all(end <= reach.first or start >= reach.folded_until for reach in reaches)
