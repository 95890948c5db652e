"""The ledger: all segments and chapters of a session, the facts that hold, and the summary of it all.

The summary is the paragraph that the model wrote in the newest fold, if it passed its checks; else `paragraph` makes it
from the same segments and chapters. So it is always a function of what is stored, and nothing is lost for good.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from functools import cached_property
from heapq import nlargest, nsmallest
from itertools import chain
from typing import TYPE_CHECKING

from compaction.language.text import as_sentence, sentences, whole_sentences
from compaction.model import (
    Chapter,
    FactKind,
    RenderedSentence,
    RenderedSummary,
    Segment,
    SegmentId,
    Seq,
    is_by_model,
)
from compaction.summary.chapters import chapter_due, finest_chapters, told_chapters, top_chapters
from compaction.summary.paragraph import Candidate, Stretch, compose, gist_candidate
from compaction.summary.port import (
    CHAPTER_PARTS,
    MAX_SUMMARY_CHARS,
    ChapterPart,
    ChapterRequest,
)
from compaction.summary.required_facts import required_first
from compaction.summary.segment_facts import SegmentFacts
from compaction.summary.subjects import subjects_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from compaction.model import Fact
    from compaction.summary.chapters import ChapterDue
    from compaction.summary.port import KnownFact
    from compaction.summary.segment_facts import SegmentFact

# The newest batches are what goes on: the present for somebody who comes back to the conversation.
_NEWEST_SEGMENTS = 2
# Only so many standing facts are considered for the summary. About fifteen fit into it.
_SHORTLIST = 150
# A new batch may correct so many of the newest facts, and so many of the older ones, the most important first.
_NEWEST_KNOWN = 120
_WEIGHTIEST_KNOWN = 80
_NOTHING = "Nothing was said that needs keeping."


class SegmentLedger:
    """All segments and chapters of one session. Adding a segment processes only that segment.

    Owned by one session; `with_…` return changed copies. Ten thousand turns take about five megabytes, most of it for
    the facts themselves.
    """

    def __init__(self, segments: Iterable[Segment] = (), chapters: Iterable[Chapter] = ()) -> None:
        # The segments with their facts, in the order in which they were added.
        self._facts: list[SegmentFacts] = []
        self._places: dict[SegmentId, int] = {}
        # The numbers of the facts that later ones replaced, by their segments.
        self._superseded: dict[SegmentId, frozenset[int]] = {}
        self._roster: set[str] = set()
        self._span: tuple[float, float] | None = None
        # Segments to repair, oldest first.
        self._degraded: tuple[Segment, ...] = ()
        # The place of the last recursive segment: it has no facts, and its paragraph tells what was before it.
        self._last_recursive = 0
        # Ordered by `start`, then by `level`.
        self._chapters: tuple[Chapter, ...] = tuple(chapters)
        for segment in segments:
            self.add(segment)

    # -- what it holds ------------------------------------------------------------------------------------------

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments in the order in which they were added."""
        return tuple(each.segment for each in self._facts)

    @property
    def chapters(self) -> tuple[Chapter, ...]:
        """Return the chapters, ordered by `start`, then by `level`."""
        return self._chapters

    @property
    def span(self) -> tuple[float, float] | None:
        """Return when the first and the last folded turn were said (UTC epoch seconds); None without any segment."""
        return self._span

    @property
    def degraded(self) -> tuple[Segment, ...]:
        """Return the segments to repair: those with turns that were folded without the model and are not pruned."""
        return self._degraded

    @property
    def roster(self) -> frozenset[str]:
        """Return the names of all people who stated a fact."""
        return frozenset(self._roster)

    @cached_property
    def top_chapters(self) -> tuple[Chapter, ...]:
        """Return the chapters that no other chapter holds, oldest first."""
        return top_chapters(self._chapters)

    @cached_property
    def told_chapters(self) -> tuple[Chapter, ...]:
        """Return the chapters that tell of earlier stretches, oldest first: at most sixteen, the newer the finer."""
        return told_chapters(self._chapters)

    # -- changes ------------------------------------------------------------------------------------------------

    def with_segment(self, segment: Segment) -> SegmentLedger:
        """Return a copy with this segment."""
        other = self._copy()
        other.add(segment)
        return other

    def with_chapter(self, chapter: Chapter) -> SegmentLedger:
        """Return a copy with this chapter."""
        other = self._copy()
        other._chapters = tuple(sorted((*self._chapters, chapter), key=lambda each: (each.start, each.level)))
        return other

    def with_repaired(self, segment: Segment) -> SegmentLedger:
        """Return a copy in which this segment replaces the one with its id."""
        return self.only((segment if each.id == segment.id else each for each in self.segments), self._chapters)

    def before(self, segment_id: SegmentId) -> SegmentLedger:
        """Return the ledger as it was before this segment was added, with all chapters over its turns.

        A chapter that was made later keeps its gist and loses its paragraph, which tells more.
        """
        place = self._places[segment_id]
        segments, added_at = self.segments[:place], self._facts[place].segment.created_at
        end = segments[-1].end if segments else 0
        chapters = (each for each in self._chapters if each.end <= end)
        return self.only(
            segments, (each if each.created_at < added_at else replace(each, paragraph="") for each in chapters)
        )

    def only(self, segments: Iterable[Segment], chapters: Iterable[Chapter]) -> SegmentLedger:
        """Return the ledger of these segments and chapters.

        What is known of the segments that this one has is taken over: to read a thousand again takes half a second.
        """
        held = {id(facts.segment): facts for facts in self._facts}
        other = SegmentLedger(chapters=chapters)
        for segment in segments:
            if not segment.closing:
                other._put(held.get(id(segment)) or SegmentFacts.of(segment))
        return other

    def _copy(self) -> SegmentLedger:
        other = SegmentLedger(chapters=self._chapters)
        other._facts = [*self._facts]
        other._places = self._places.copy()
        other._superseded = self._superseded.copy()
        other._roster = {*self._roster}
        other._span = self._span
        other._degraded = self._degraded
        other._last_recursive = self._last_recursive
        return other

    def add(self, segment: Segment) -> None:
        """Add one segment. A closing segment changes nothing, because its turns are not folded."""
        if not segment.closing:
            self._put(SegmentFacts.of(segment))

    def _put(self, facts: SegmentFacts) -> None:
        segment = facts.segment
        if segment.is_recursive:
            self._last_recursive = len(self._facts)
        self._places[segment.id] = len(self._facts)
        self._facts.append(facts)
        if segment.degraded and not segment.pruned and segment.start < segment.end:
            self._degraded = (*self._degraded, segment)
        first, last = (segment.started_at, segment.ended_at) if self._span is None else self._span
        self._span = (min(first, segment.started_at), max(last, segment.ended_at))
        for fact in segment.facts:
            for ref in fact.supersedes:
                self._supersede(ref)
            if fact.text:
                self._roster.add(fact.speaker)

    def _supersede(self, ref: str) -> None:
        segment_id, _, number = ref.rpartition("#")
        if number.isdecimal():
            of = SegmentId(segment_id)
            self._superseded[of] = self._superseded.get(of, frozenset()) | {int(number)}

    # -- for the summariser -------------------------------------------------------------------------------------

    def known_facts(self) -> tuple[KnownFact, ...]:
        """Return the standing facts that a new batch may supersede, oldest first: the newest, and the weightiest.

        Of those of importance 3 come first what a summary of all facts must have: each person's oldest and newest.
        """
        standing = list(self._standing(self._facts))
        older = range(len(standing) - _NEWEST_KNOWN)
        vital = [place for place in required_first([each.fact for each in standing]) if place in older]
        others = [place for place in older if standing[place].fact.importance < 3]
        others.sort(key=lambda place: (standing[place].fact.importance, place), reverse=True)
        chosen = sorted([*vital, *others][:_WEIGHTIEST_KNOWN])
        known = (*(standing[place] for place in chosen), *standing[-_NEWEST_KNOWN:])
        return tuple(each.known() for each in known)

    def candidates(self) -> tuple[Candidate, ...]:
        """Return every fact that a summary could tell, superseded ones too, in the order of talk."""
        return tuple(each.candidate() for facts in self._facts for each in facts)

    def facts_after(self, segment_id: SegmentId) -> tuple[Fact, ...]:
        """Return all facts of later segments, in order."""
        later = self.segments[self._places[segment_id] + 1 :]
        return tuple(fact for each in later for fact in each.facts)

    def chapter_due(self, usable: Callable[[Segment | Chapter], bool] = lambda _: True) -> ChapterDue | None:
        """Return the next chapter to make, of `usable` parts alone (see `chapters.chapter_due`); None if none waits.

        Whether its segments must be repaired first is for the caller to judge.
        """
        return chapter_due(self.segments, self._chapters, usable)

    def chapter_request(self, due: ChapterDue, *, summary: str = "") -> ChapterRequest:
        """Return the request for this chapter. `summary`: the one that stands now.

        What was folded of notes alone within its turns is a part of its own.
        """
        known = self.known_facts()
        below = [each for each in self._chapters if each.level == due.level - 1]
        parts: Sequence[Segment | Chapter] = self.segments if due.level == 1 else below
        return ChapterRequest(
            level=due.level,
            parts=tuple(
                ChapterPart(
                    each.start, each.end, each.started_at, each.ended_at, each.gist, tuple(self._facts_of(each))
                )
                for each in parts
                if due.start <= each.start < due.end
            ),
            chapters=tuple(each for each in self.told_chapters if each.end <= due.start),
            since=tuple(each.gist for each in self.segments if each.start >= due.end),
            known=known,
            roster=self.roster,
            summary=summary,
        )

    def _facts_of(self, part: Segment | Chapter) -> Iterator[KnownFact]:
        """Yield the standing facts of a segment, or the weightiest of a chapter."""
        chosen = set(part.refs) if isinstance(part, Chapter) else None
        over = (
            facts
            for facts in self._facts
            if facts.segment is part or (chosen is not None and part.start <= facts.segment.start < part.end)
        )
        for each in self._standing(over):
            if chosen is None or each.ref in chosen:
                yield each.known()

    # -- the summary --------------------------------------------------------------------------------------------

    def render(self, *, max_chars: int = MAX_SUMMARY_CHARS) -> RenderedSummary | None:
        """Return the summary of all segments, or None before the first. Deterministic."""
        if not self._facts:
            return None
        newest = self._facts[-1].segment
        if (written := self._written()) and (kept := whole_sentences(written, max_chars)):
            return _as_written(kept, newest.ended_at)
        since = max(0, len(self._facts) - _NEWEST_SEGMENTS)
        made = compose(
            self._stretches(since),
            [each.candidate() for each in self._weightiest(self._facts[:since])],
            [each for facts in self._facts[since:] for each in self._told(facts)],
            max_chars=max_chars,
        )
        return made or _of_gist(newest, max_chars)

    def _written(self) -> str:
        """Return the paragraph that was written last, by the newest fold or for a chapter after it; empty if none can
        be used.

        A chapter may be over earlier turns than the newest fold, because it waits for batches, repairs and other
        chapters. Its writer was told what came after, so only the times tell which is newer.
        """
        newest = self._facts[-1].segment
        later = [each for each in self._chapters if each.paragraph and each.created_at > newest.created_at]
        return max(later, key=lambda each: each.created_at).paragraph if later else newest.paragraph

    def _stretches(self, until: int) -> list[Stretch]:
        """Return the parts of the time before the segment at this position: chapters, then segments without one.

        The finest chapters, because one over two thirds of the time would leave one of these without a share.
        """
        chapters = finest_chapters(self._chapters)
        made = [
            Stretch(
                each.started_at,
                each.ended_at,
                _gist_sentences(each) if is_by_model(each.summariser) else (),
                tuple(self._of_refs(each.refs)),
                tuple(subjects_in(each.gist)),
                CHAPTER_PARTS**each.level,
            )
            for each in chapters
        ]
        starts = [each.start for each in chapters]
        for facts in self._facts[self._last_recursive : until]:
            segment = facts.segment
            over = bisect_right(starts, segment.start) - 1
            if over < 0 or segment.start >= chapters[over].end:
                told = _gist_sentences(segment) if _tells(segment) else ()
                standing = self._candidates_of(facts)
                subjects = () if told else tuple(subjects_in(segment.gist))
                made.append(Stretch(segment.started_at, segment.ended_at, told, standing, subjects))
        return sorted(made, key=lambda each: each.started_at)

    def _told(self, facts: SegmentFacts) -> list[Candidate]:
        """Return what a summary can say of one segment: its standing facts, and its gist if a model wrote it."""
        gist = _gist_sentences(facts.segment) if _tells(facts.segment) else ()
        return [*self._candidates_of(facts), *gist]

    def _standing(self, among: Iterable[SegmentFacts], *, least: float = 0.0) -> Iterator[SegmentFact]:
        """Yield the facts that hold and are worth so much, in order."""
        for facts in among:
            gone = self._superseded.get(facts.segment.id, frozenset())
            yield from (each for each in facts.worth_at_least(least) if each.number not in gone)

    def _weightiest(self, among: Sequence[SegmentFacts]) -> list[SegmentFact]:
        """Return the facts that hold and are worth most, the best first."""
        # There are thousands after an evening, and to read one takes longer than to compare its worth.
        least = min(nlargest(_SHORTLIST, chain.from_iterable(map(self._worths, among))), default=0.0)
        some = (facts for facts in among if max(facts.worths, default=0.0) >= least)
        return nsmallest(_SHORTLIST, self._standing(some, least=least), key=_rank)

    def _worths(self, facts: SegmentFacts) -> Iterable[float]:
        """Return what the facts of a segment are worth that hold."""
        gone = self._superseded.get(facts.segment.id)
        return [worth for number, worth in enumerate(facts.worths) if number not in gone] if gone else facts.worths

    def _candidates_of(self, facts: SegmentFacts) -> tuple[Candidate, ...]:
        """Return the facts of one segment that hold, as sentences that a summary may take."""
        return tuple(each.candidate() for each in self._standing((facts,)))

    def _of_refs(self, refs: Iterable[str]) -> Iterator[Candidate]:
        """Yield those of these facts that are known and hold."""
        for ref in refs:
            place = self._places.get(SegmentId(ref.rpartition("#")[0]))
            if place is not None:
                yield from (each.candidate() for each in self._standing((self._facts[place],)) if each.ref == ref)


def render_summary(
    segments: Iterable[Segment], chapters: Iterable[Chapter] = (), *, max_chars: int = MAX_SUMMARY_CHARS
) -> RenderedSummary | None:
    """Return the summary of these segments and chapters, each in order, or None when there are no segments."""
    return SegmentLedger(segments, chapters).render(max_chars=max_chars)


def _rank(fact: SegmentFact) -> tuple[float, float, str]:
    """Return the sort key: those that stay relevant longest first, of equal ones the newest."""
    return (-fact.worth, -fact.fact.at, fact.ref)


def _tells(segment: Segment) -> bool:
    """Return whether a segment's gist is prose to use: a model wrote it, or there are no facts to use instead."""
    return is_by_model(segment.summariser) or segment.pruned or segment.is_recursive


def _gist_sentences(source: Segment | Chapter) -> tuple[Candidate, ...]:
    seqs = tuple(Seq(seq) for seq in range(source.start, source.end)) if isinstance(source, Segment) else ()
    segment_id = source.id if isinstance(source, Segment) else SegmentId("")
    told = source.paragraph if isinstance(source, Segment) and source.is_recursive else source.gist
    return tuple(gist_candidate(segment_id, seqs, source.started_at, text) for text in sentences(told))


def _as_written(paragraph: str, at: float) -> RenderedSummary:
    """Return a model's paragraph. `compaction.summary.trace` looks for the sources of its sentences."""
    written = tuple(RenderedSentence(each, (), (), FactKind.OTHER, "", at) for each in sentences(paragraph))
    return RenderedSummary(" ".join(each.text for each in written), written)


def _of_gist(segment: Segment, max_chars: int) -> RenderedSummary:
    """Return the newest gist as the summary. It is used when no fact remains."""
    rendered = RenderedSentence(
        text=whole_sentences(segment.gist, max_chars) or as_sentence(segment.gist, max_chars) or _NOTHING,
        segment_ids=(segment.id,),
        turn_seqs=tuple(Seq(seq) for seq in range(segment.start, segment.end)),
        kind=FactKind.OTHER,
        speaker="",
        at=segment.ended_at,
    )
    return RenderedSummary(rendered.text, (rendered,))
