"""The store of random schedules, and what a session knows of it. `schedules` walks over both.

The store does what every `TurnStore` does with a landing, and what `bot.store` does when words are forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from compaction.folding.signals import DegradedSegment
from compaction.folding.window import BATCH_SIZE
from compaction.model import CompactionState, Seq
from compaction.summary.chapters import chapter_due
from compaction.summary.port import REACH_TURNS, ChapterFold
from compaction.summary.segments import make_chapter
from tests.compaction.turn_store_contract import EVENING, segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.model import Chapter, Note, NoteId, Segment, SegmentId
    from compaction.ports import Landing
    from compaction.summary.chapters import ChapterDue


@dataclass(frozen=True, slots=True)
class Withheld:
    """Somebody who was heard from turn `first` on, and opted out when turns up to `until` were folded or in a run."""

    first: int
    until: int

    def allows(self, part: Segment | Chapter) -> bool:
        return part.end <= self.first or part.start >= self.until


@dataclass(frozen=True)
class View:
    """What a session knows of its folded turns, and may be made of them: as `compaction.folding.ledger_view` has it."""

    segments: tuple[Segment, ...] = ()
    chapters: tuple[Chapter, ...] = ()
    withheld: Withheld | None = None

    @cached_property
    def degraded(self) -> tuple[DegradedSegment, ...]:
        """Return the segments to make again."""
        return tuple(
            DegradedSegment(each.id, each.start, each.end)
            for each in self.segments
            if each.degraded and each.start < each.end and self._may_tell(each)
        )

    @cached_property
    def chapter(self) -> ChapterDue | None:
        """Return the next chapter to make."""
        return chapter_due(self.segments, self.chapters, self._may_tell)

    def _may_tell(self, part: Segment | Chapter) -> bool:
        return self.withheld is None or self.withheld.allows(part)


@dataclass(slots=True)
class Stored:
    """What the store has. Both lists are ordered as `StoredMemory` says. `changes`: landings and forgettings so far."""

    state: CompactionState = field(default_factory=CompactionState)
    segments: list[Segment] = field(default_factory=list)
    chapters: list[Chapter] = field(default_factory=list)
    live: dict[NoteId, Note] = field(default_factory=dict)
    pending: dict[NoteId, Note] = field(default_factory=dict)
    folded: set[NoteId] = field(default_factory=set)
    forgotten: set[NoteId] = field(default_factory=set)
    # All notes that were ever stored.
    acknowledged: set[NoteId] = field(default_factory=set)
    # Segments that were made again, and those that are archived, which never change.
    repaired: set[SegmentId] = field(default_factory=set)
    archived: set[SegmentId] = field(default_factory=set)
    ended: bool = False
    changes: int = 0
    landed_at: dict[SegmentId, float] = field(default_factory=dict)

    @classmethod
    def written(cls, batches: int, *, with_chapters: bool) -> Stored:
        """Return a session of so many folded batches: with all chapters that are due, or none, as an earlier version
        left it.
        """
        segments, chapters = written_before(batches, with_chapters=with_chapters)
        last = segments[-1].created_at if segments else 0.0
        revision = len(segments) + len(chapters)
        return cls(
            state=CompactionState(Seq(batches * BATCH_SIZE), revision, "Old.", last) if segments else CompactionState(),
            segments=list(segments),
            chapters=list(chapters),
            changes=revision,
            landed_at={each.id: each.created_at for each in segments},
        )

    def is_ahead_of(self, memory: CompactionState) -> bool:
        """Return whether the store knows more than a session with this state."""
        return memory.revision != self.state.revision

    def take_note(self, note: Note) -> None:
        """Store a live note."""
        self.live[note.id] = note
        self.acknowledged.add(note.id)

    def make_pending(self, note_ids: Sequence[NoteId]) -> None:
        """Make live notes pending. One that was forgotten meanwhile is not live."""
        for name in note_ids:
            if name in self.live:
                self.pending[name] = self.live.pop(name)

    def land(self, landing: Landing) -> bool:
        """Apply a landing as every store does: once, and only on what it expects."""
        expected = (landing.expected_cursor, landing.expected_revision)
        if self.ended or expected != (self.state.cursor, self.state.revision):
            return False
        if landing.chapter is not None:
            self._add_chapter(landing, landing.chapter)
        elif landing.repairs:
            if not self._replace_segment(landing):
                return False
        else:
            self._add_segment(landing)
        assert not self.folded & set(landing.folded_note_ids), "a note was folded twice"
        for name in landing.folded_note_ids:
            del self.pending[name]
        self.folded |= set(landing.folded_note_ids)
        self.state = replace(landing.state, pending_notes=())
        self.changes += 1
        return True

    def _add_chapter(self, landing: Landing, chapter: Chapter) -> None:
        assert (landing.segment, landing.repairs, landing.folded_note_ids) == (None, False, ())
        assert landing.state.cursor == landing.expected_cursor, "a chapter moved the cursor"
        assert all(each.id != chapter.id for each in self.chapters), "a chapter was made twice"
        self.chapters = sorted((*self.chapters, chapter), key=lambda each: (each.start, each.level))

    def _replace_segment(self, landing: Landing) -> bool:
        made = landing.segment
        assert made is not None
        assert landing.state.cursor == landing.expected_cursor, "a repair moved the cursor"
        place = next(number for number, each in enumerate(self.segments) if each.id == made.id)
        old = self.segments[place]
        assert (old.start, old.end, old.degraded) == (made.start, made.end, True), "nothing was to be made again"
        if made.id in self.archived:
            return False
        self.segments[place] = made
        self.repaired.add(made.id)
        return True

    def _add_segment(self, landing: Landing) -> None:
        made = landing.segment
        assert made is not None
        assert made.start == (self.segments[-1].end if self.segments else 0), "segments have a gap or overlap"
        self.segments.append(made)
        self.landed_at[made.id] = made.created_at

    def forget(self, seq: int, names: set[NoteId], *, at: float) -> int:
        """Forget a turn and some notes. What was made of the turn or after it is made anew, and the chapters of it are
        deleted, as `bot.store.rebuilding` does. Return how many.
        """
        for name in names:
            self.live.pop(name, None)
            self.pending.pop(name, None)
        self.forgotten |= names
        self.state = replace(self.state, revision=self.state.revision + 1)
        self.changes += 1
        touched = [each for each in self.segments if each.start - REACH_TURNS <= seq < each.end]
        if not touched:
            return 0
        first = min(each.start for each in touched)
        since = min(min(each.created_at, self.landed_at[each.id]) for each in touched)
        self.segments = [
            replace(each, created_at=at) if each.end > first or each.created_at >= since else each
            for each in self.segments
        ]
        before = len(self.chapters)
        self.chapters = [each for each in self.chapters if each.end <= first and each.created_at < since]
        return before - len(self.chapters)

    def view(self, withheld: Withheld | None) -> View:
        """Return what a session knows that has read the store."""
        return View(tuple(self.segments), tuple(self.chapters), withheld)

    def compaction(self) -> CompactionState:
        return replace(self.state, pending_notes=tuple(self.pending.values()))


@cache
def written_before(batches: int, *, with_chapters: bool) -> tuple[tuple[Segment, ...], tuple[Chapter, ...]]:
    """Return the segments and chapters of so many folded batches, as in `Stored.written`."""
    segments = tuple(
        replace(segment(start, start + BATCH_SIZE), degraded=False, created_at=float(start + 1))
        for start in range(0, batches * BATCH_SIZE, BATCH_SIZE)
    )
    chapters: list[Chapter] = []
    while with_chapters and (due := chapter_due(segments, chapters, lambda _: True)) is not None:
        # Made between its last segment and the next one.
        at = due.end - BATCH_SIZE + 1 + due.level / 10
        chapters.append(chapter_of(due, at=at))
        chapters.sort(key=lambda each: (each.start, each.level))
    return segments, tuple(chapters)


def chapter_of(due: ChapterDue, *, at: float) -> Chapter:
    """Return the chapter that is due, as it is stored."""
    made = ChapterFold(gist=f"They talked up to turn {due.end}.", refs=())
    return make_chapter(due, made, session_id=EVENING, summariser="llm", at=at)
