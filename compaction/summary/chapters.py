"""Chapters: eight closed, adjacent segments make one, and eight chapters one of the level above. Pure.

Decides which chapter is made next and which of them tell of earlier stretches. What a chapter says is the summariser's.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.summary.port import CHAPTER_PARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from compaction.model import Chapter, Segment, Seq

# At most so many chapters tell a summary's writer of earlier stretches.
_TOLD_CHAPTERS = 2 * CHAPTER_PARTS


@dataclass(frozen=True, slots=True)
class ChapterDue:
    """A chapter to make of closed, adjacent parts of one level that none holds yet: turns `start <= seq < end`.

    `level`: of the chapter, 1 over segments. Times: when they were said, UTC epoch seconds.
    """

    level: int
    start: Seq
    end: Seq
    started_at: float
    ended_at: float


def top_chapters(chapters: Sequence[Chapter]) -> tuple[Chapter, ...]:
    """Return the chapters that no other chapter holds, oldest first. Usually there are at most seven of each level."""
    kept: list[Chapter] = []
    for each in sorted(chapters, key=lambda chapter: (chapter.start, -chapter.level)):
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
    return tuple(kept)


def told_chapters(chapters: Sequence[Chapter]) -> tuple[Chapter, ...]:
    """Return the chapters that tell a summary's writer of earlier stretches, oldest first: at most sixteen."""
    return finest_chapters(chapters)[-_TOLD_CHAPTERS:]


def finest_chapters(chapters: Sequence[Chapter]) -> tuple[Chapter, ...]:
    """Return the chapters that together tell of all that any tells of, oldest first: the newer the finer, sixteen or
    fewer where that can be.

    A chapter over others has one gist for eight of theirs, so it stands for them only where there is no room.
    """
    told = list(top_chapters(chapters))
    for place in reversed(range(len(told))):
        whole = told[place]
        parts = [
            each
            for each in chapters
            if each.level == whole.level - 1 and whole.start <= each.start and each.end <= whole.end
        ]
        if parts and len(told) - 1 + len(parts) <= _TOLD_CHAPTERS:
            told[place : place + 1] = parts
    return tuple(told)


def chapter_due(
    segments: Sequence[Segment], chapters: Sequence[Chapter], usable: Callable[[Segment | Chapter], bool]
) -> ChapterDue | None:
    """Return the next chapter to make: of the highest level that has one, the earliest; None if none waits.

    `segments`, `chapters`: ordered by `start`. `usable`: whether a part may be told. Parts that could not be used when
    later ones became a chapter lie between two chapters then, and become a shorter one.
    """
    top = max((each.level for each in chapters), default=0) + 1
    for level in range(top, 0, -1):
        over = [each for each in chapters if each.level == level]
        for run, closed in _waiting(_parts(segments, chapters, level), over, usable):
            if len(run) >= CHAPTER_PARTS or (run and closed):
                first, last = run[0], run[:CHAPTER_PARTS][-1]
                return ChapterDue(level, first.start, last.end, first.started_at, last.ended_at)
    return None


def _parts(segments: Sequence[Segment], chapters: Sequence[Chapter], level: int) -> Sequence[Segment | Chapter]:
    """Return what chapters of this level are made of: segments of turns, or chapters of the level below.

    A segment of notes alone comes with the turns after it, and does not count.
    """
    if level == 1:
        return [each for each in segments if each.start < each.end]
    return [each for each in chapters if each.level == level - 1]


def _waiting(
    parts: Sequence[Segment | Chapter], over: Sequence[Chapter], usable: Callable[[Segment | Chapter], bool]
) -> Iterator[tuple[list[Segment | Chapter], bool]]:
    """Yield the runs of adjacent usable parts that none of the chapters `over` them holds, oldest first.

    With each comes whether it can't grow any more, because it ends where one of these chapters begins.
    """
    starts = [each.start for each in over]
    run: list[Segment | Chapter] = []
    for part in parts:
        place = bisect_right(starts, part.start) - 1
        held = place >= 0 and part.start < over[place].end
        adjacent = not run or run[-1].end == part.start
        if held or not usable(part) or not adjacent:
            yield run, held and adjacent
            run = []
        if not held and usable(part):
            run.append(part)
    yield run, False
