"""Keeps the words of people who do not want to be heard any more from every model, without deleting them.

Their parts are taken out of turns. What was made of turns cannot be told apart, so what the bot said and what was
folded from their first turn until they were withheld is left out whole. Once they allow it again, everything is used as
before.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, TypeVar

from compaction.folding.ledger_view import LedgerView, off_the_loop
from compaction.model import Seq, TurnKind
from compaction.summary.port import ChapterRequest, FoldRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from compaction.model import Chapter, Note, Segment, Turn
    from compaction.summary.ledger import SegmentLedger

_Request = TypeVar("_Request", FoldRequest, ChapterRequest)

# What is left of a note of a withheld person's screen.
SOMEBODY = "somebody"
SOME_SCREEN = "a screen that is not described"
# Turns whose parts are remembered: more than a window has, so that each is made once.
MOST_CACHED = 4_096


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

    `speakers`: ids and names of everybody in the stored turns and notes, of whom it is not known when they first spoke.
    `quotable`: ids of people who spoke or shared a screen in other sessions, of whom the bot may tell before they speak
    in this one, or though they never do.
    """

    def __init__(self, speakers: Iterable[tuple[str, str]] = (), quotable: Iterable[str] = ()) -> None:
        self._who: Callable[[], frozenset[str]] = frozenset
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        for speaker_id, name in speakers:
            self._names[speaker_id].add(name)
        # From which turn on, and since when, there may be words of each person.
        self._first = {person: (Seq(0), -inf) for person in (*self._names, *quotable)}
        self._reaches: dict[str, _Reach] = {}
        # The newest views and what is left of them: during a landing a context may still want the one before it.
        self._views: deque[tuple[LedgerView, tuple[_Reach, ...], LedgerView]] = deque(maxlen=2)
        self._turns: dict[int, tuple[Turn, Turn]] = {}
        # How often somebody was withheld or allowed again.
        self.changes = 0

    def withhold(self, who: Callable[[], frozenset[str]]) -> None:
        """Ask `who` for the ids of the withheld people, each time that something goes to a model."""
        self._who = who

    def note_turn(self, turn: Turn) -> None:
        """Remember who speaks in a new turn."""
        for part in turn.parts:
            self._first.setdefault(part.speaker_id, (turn.seq, turn.started_at))
            self._names[part.speaker_id].add(part.speaker)

    def note_screen(self, speaker_id: str, note: Note, *, next_turn: Seq) -> None:
        """Remember whose screen a new note is of. They may never have said anything."""
        self._first.setdefault(speaker_id, (next_turn, note.at))
        self._names[speaker_id].add(note.who)

    def update(self, *, said_until: Seq, folded_until: Seq, landed_at: float = inf) -> bool:
        """Take over who is withheld now; return whether anybody is who may be in it.

        `said_until`: the number of turns so far. `folded_until`: the first turn that no made or running fold has.
        `landed_at`: when the last fold landed, UTC epoch seconds; infinite where nothing is folded any more.
        """
        who = {person for person in self._who() if person in self._first}
        if who != set(self._reaches):
            self._turns.clear()
            self.changes += 1
            self._reaches = {
                person: self._reaches.get(person, _Reach(*self._first[person], said_until, folded_until, landed_at))
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
            if len(self._turns) >= MOST_CACHED:
                self._turns.clear()
            self._turns[turn.seq] = (turn, after)
        return after

    def forget_cached(self) -> None:
        """Drop all copies of words: somebody's were forgotten."""
        self._turns.clear()
        self._views.clear()

    def _without(self, turn: Turn) -> Turn:
        told = turn.kind is TurnKind.ASSISTANT and any(
            reach.first <= turn.seq < reach.said_until for reach in self._reaches.values()
        )
        parts = () if told else tuple(part for part in turn.parts if part.speaker_id not in self._reaches)
        return turn if parts == turn.parts else replace(turn, parts=parts, tombstone=not parts)

    def note(self, note: Note) -> Note:
        """Return a note; without name and content if it is of a withheld person's screen."""
        if note.person_id is None:
            hidden = any(note.who in self._names[person] for person in self._reaches)
        else:
            hidden = note.person_id in self._reaches
        return replace(note, who=SOMEBODY, what=SOME_SCREEN, person_id=None) if hidden else note

    def ledger(self, ledger: SegmentLedger) -> SegmentLedger:
        """Return the ledger without everything that may hold words of withheld people."""
        return _clean_ledger(ledger, tuple(self._reaches.values()))

    def view(self, view: LedgerView) -> LedgerView:
        """Return the view without everything that may hold words of withheld people. `view`: of the whole ledger.

        It is made once; `prepare` makes it without the event loop's time.
        """
        reaches = tuple(self._reaches.values())
        if not reaches:
            return view
        made = next((clean for whole, until, clean in self._views if whole is view and until == reaches), None)
        if made is None:
            made = _clean_view(view, reaches)
            self._views.append((view, reaches, made))
        return made

    async def prepare(self, view: LedgerView) -> None:
        """Make beside the event loop what `view` will return, if anybody is withheld."""
        if reaches := tuple(self._reaches.values()):
            made = await off_the_loop(len(view.ledger.segments), partial(_clean_view, view, reaches))
            self._views.append((view, reaches, made))

    def request(self, request: _Request) -> _Request:
        """Return the request of a fold or a chapter without words and names of withheld people."""
        if not self._reaches:
            return request
        names = {name for person in self._reaches for name in self._names[person]}
        request = replace(request, roster=request.roster - names)
        if isinstance(request, ChapterRequest):
            return request
        return replace(
            request,
            turns=tuple(map(self.turn, request.turns)),
            before=tuple(map(self.turn, request.before)),
            notes=tuple(map(self.note, request.notes)),
        )


def tells_anything(request: FoldRequest) -> bool:
    """Return whether anything is left in a request of which a segment can be made."""
    return any(turn.parts for turn in request.turns) or any(note.what != SOME_SCREEN for note in request.notes)


def _clean_view(view: LedgerView, reaches: tuple[_Reach, ...]) -> LedgerView:
    clean = _clean_ledger(view.ledger, reaches)
    kept: set[str] = {*(each.id for each in clean.segments), *(each.id for each in clean.chapters)}
    notes = [each.start for each in view.ledger.segments if each.start == each.end and each.id not in kept]

    def usable(part: Segment | Chapter) -> bool:
        return part.id in kept and not any(part.start <= start < part.end for start in notes)

    # Chapters that may not be told exist all the same, and are not made again.
    return replace(LedgerView.of(clean), chapter=view.ledger.chapter_due(usable))


def _clean_ledger(ledger: SegmentLedger, reaches: tuple[_Reach, ...]) -> SegmentLedger:
    if not reaches:
        return ledger
    segments, chapters = ledger.segments, ledger.chapters
    for reach in reaches:
        # A chapter's writer is told what came after its turns, which may be much by the time that it is made.
        told_at = min((each.created_at for each in ledger.segments if not _is_clean_segment(each, reach)), default=inf)
        segments = tuple(each for each in segments if _is_clean_segment(each, reach))
        chapters = tuple(
            each
            for each in chapters
            if _is_clean(each.start, each.end, reach)
            and (each.created_at < told_at or each.created_at > reach.landed_at)
        )
    return ledger.only(segments, chapters)


def _is_clean_segment(segment: Segment, reach: _Reach) -> bool:
    if segment.note_ids:
        # Its notes are of the time of the fold, long after its turns.
        made_at = segment.created_at
        if not (made_at > reach.landed_at if segment.start >= reach.folded_until else made_at < reach.first_at):
            return False
    return _is_clean(segment.start, segment.end, reach)


def _is_clean(start: Seq, end: Seq, reach: _Reach) -> bool:
    return end <= reach.first or start >= reach.folded_until
