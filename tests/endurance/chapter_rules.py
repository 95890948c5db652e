"""What must hold of repairs and chapters in random schedules: which of them begin, and what is stored of them.

Told independently of the machine's own state: from what the walk has sent and heard.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from compaction.folding.next_run import CHAPTER_ATTEMPTS, REPAIR_ATTEMPTS
from compaction.folding.signals import FailureSource
from compaction.summary.chapters import told_chapters, top_chapters
from compaction.summary.port import CHAPTER_PARTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.folding.signals import DegradedSegment
    from compaction.folding.state import Run
    from compaction.model import Chapter, Segment, SegmentId
    from compaction.summary.chapters import ChapterDue
    from tests.endurance.schedule_store import View

# A summary's writer is told of earlier stretches by at most so many chapters.
_MOST_TOLD = 16


class ChapterRules:
    """The rules for what one process begins: it starts anew with each, because none of this is stored."""

    def __init__(self) -> None:
        self._failed_chapters: Counter[ChapterDue] = Counter()
        self._failed_repairs: Counter[SegmentId] = Counter()
        # Whether the last run that asked the model was stored.
        self._model_works = False
        # Whether anything but a chapter was stored since the last chapter's run.
        self._may_begin = False

    def begun(self, run: Run, view: View) -> None:
        """Check a run that begins. `view`: what its session knows."""
        if run.repairs is None and run.chapter is None:
            return
        assert run.note_ids == (), "only a batch folds notes"
        if run.repairs is not None:
            oldest = [each.segment_id for each in self._waiting(view)][:1]
            assert oldest == [run.repairs], "not the oldest segment to make again"
            assert self._model_works, "made again while the model fails"
            assert not run.degraded, "made again without the model"
            assert run.attempt == self._failed_repairs[run.repairs] + 1
            return
        assert run.chapter is not None
        assert run.chapter == view.chapter, "not the chapter that is due"
        assert self._may_begin, "a burst of chapters"
        self._may_begin = False
        assert not self._is_held_up(run.chapter, view), "a chapter over a segment that is to be made again"
        failed = self._failed_chapters[run.chapter]
        assert run.attempt == failed + 1
        assert run.degraded is (failed >= CHAPTER_ATTEMPTS), "who makes the chapter does not follow from its failures"
        assert self._model_works or run.degraded, "a chapter while the model fails"
        assert not (self._model_works and self._waiting(view)), "a repair is due before a chapter"

    def none_begun(self, view: View) -> None:
        """Check that an idle session, in which no batch is due, begins neither because neither can begin."""
        assert not (self._model_works and self._waiting(view)), "a repair was left out"
        due = view.chapter
        if due is not None and self._may_begin and not self._is_held_up(due, view):
            able = self._model_works or self._failed_chapters[due] >= CHAPTER_ATTEMPTS
            assert not able, "a chapter was left out"

    def landed(self, run: Run, *, by_model: bool) -> None:
        """Take note that a run was stored."""
        self._model_works = self._model_works or by_model
        self._may_begin = run.chapter is None

    def failed(self, run: Run, culprit: FailureSource, *, retryable: bool) -> None:
        """Take note that a run failed."""
        by_model = culprit is FailureSource.MODEL
        if run.chapter is not None:
            self._failed_chapters[run.chapter] += by_model
            self._model_works = self._model_works and not by_model
            return
        self._model_works = False
        if run.repairs is not None:
            self._failed_repairs[run.repairs] += by_model or not retryable

    def _waiting(self, view: View) -> list[DegradedSegment]:
        """Return the segments to make again that were not given up."""
        return [each for each in view.degraded if self._failed_repairs[each.segment_id] < REPAIR_ATTEMPTS]

    def _is_held_up(self, due: ChapterDue, view: View) -> bool:
        return due.level == 1 and any(due.start <= each.start < due.end for each in self._waiting(view))


def check_chapters(view: View, repaired: set[SegmentId], *, has_gaps: bool) -> None:
    """Check all stored chapters: each stands over adjacent parts that exist and are older than it, and no two of a
    level stand over the same.

    `repaired`: segments that were made again, which may be newer. `has_gaps`: somebody had opted out, so parts may have
    been left out. Otherwise each chapter has eight parts, and those of a level follow each other from the first turn.
    """
    parts: Sequence[Segment | Chapter] = [each for each in view.segments if each.start < each.end]
    level = 1
    while chapters := [each for each in view.chapters if each.level == level]:
        places = {each.start: place for place, each in enumerate(parts)}
        reached = 0
        for each in chapters:
            assert each.start >= reached, "two chapters of a level overlap"
            assert has_gaps or each.start == reached, "a chapter was left out"
            reached = each.end
            place = places.get(each.start)
            assert place is not None, "a chapter begins within a part"
            held = parts[place : place + CHAPTER_PARTS]
            ends = [part.end for part in held]
            assert each.end in ends, "a chapter ends within a part, or has too many"
            held = held[: ends.index(each.end) + 1]
            assert all(before.end == after.start for before, after in pairwise(held)), "a gap"
            assert has_gaps or len(held) == CHAPTER_PARTS, "a chapter of too few parts"
            assert all(part.created_at < each.created_at or part.id in repaired for part in held), (
                "a chapter is older than what it was made of"
            )
        parts, level = chapters, level + 1
    assert all(each.level < level for each in view.chapters), "a chapter without the level below"
    assert len(told_chapters(view.chapters)) <= _MOST_TOLD
    if view.chapter is None and not has_gaps:
        tops = Counter(each.level for each in top_chapters(view.chapters))
        assert all(count < CHAPTER_PARTS for count in tops.values()), "chapters of a level are not replaced by one"
        assert CHAPTER_PARTS ** (level - 1) <= max(1, len(view.segments))
