"""The ledger: holds all segments of a session and renders the summary from them each time a segment is added.

The summary is one paragraph of whole sentences, at most 1,200 characters, ordered by kind. The newest batches have a
share of it; the rest goes to the facts that stay relevant longest. Superseded facts are left out. No model rewrites
it, so nothing fades, and each sentence names the segments and turns it comes from.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from compaction.language.claims import claim_of
from compaction.language.wording import as_sentence, durability, kind_of, sentences, whole_sentences
from compaction.model import Fact, FactKind, RenderedSentence, RenderedSummary, Segment, SegmentId, Seq
from compaction.summary.port import (
    CHAPTER_PARTS,
    MAX_FACT_CHARS,
    MAX_SUMMARY_CHARS,
    ChapterPart,
    ChapterRequest,
    KnownFact,
)
from compaction.summary.selection import Candidate, SentenceSelection, limit_similar, rank_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from compaction.language.claims import FactClaim
    from compaction.model import Chapter

# The newest batches, and their share of the summary: the present for somebody who comes back to the conversation.
_NEWEST_SEGMENTS = 2
_NEWEST_SHARE = 0.3
# How relevant a fact of each kind stays when it is old.
_STAYING_POWER = {
    FactKind.LASTING: 0.9,
    FactKind.DOING: 0.3,
    FactKind.OPEN: 0.3,
    FactKind.DECISION: 1.0,
    FactKind.OTHER: 0.5,
}
_KIND_ORDER = {kind: order for order, kind in enumerate(FactKind)}
_LENGTH_EXPONENT = 0.7
_VALUE_WEIGHT = 2.0
# Only this many old facts are compared with each other. About fifteen fit into the summary.
_SHORTLIST = 150
# A new batch may correct only about this many of the newest facts.
_KNOWN_FACTS = 200
_NOTHING = "Nothing was said that needs keeping."


@dataclass(frozen=True, slots=True)
class ChapterDue:
    """Eight closed, consecutive parts of one level that no chapter holds yet: turns `start <= seq < end`.

    `level`: of the chapter, 1 over segments. Times: when they were said, UTC epoch seconds.
    """

    level: int
    start: Seq
    end: Seq
    started_at: float
    ended_at: float


class SegmentLedger:
    """All segments of one session, prepared for rendering. Adding a segment processes only that segment.

    Owned by one session. A segment takes about a kilobyte, so ten thousand turns take about a megabyte.
    """

    def __init__(self, segments: Iterable[Segment] = (), chapters: Iterable[Chapter] = ()) -> None:
        self._segments: list[Segment] = []
        self._candidates: list[tuple[Candidate, ...]] = []
        # All candidates. Those that stay relevant longest come first.
        self._ranked: list[Candidate] = []
        # How many facts mention each concept.
        self._concept_counts: Counter[str] = Counter()
        self._superseded: set[str] = set()
        self._roster: set[str] = set()
        self._span: tuple[float, float] | None = None
        # For each sentence of the newest recursive paragraph, the segment in which it first appeared.
        self._first_seen: dict[str, Segment] = {}
        # Segments to repair, oldest first.
        self._degraded: tuple[Segment, ...] = ()
        # Ordered by `start`, then by `level`.
        self._chapters: tuple[Chapter, ...] = tuple(chapters)
        for segment in segments:
            self.add(segment)

    @property
    def chapters(self) -> tuple[Chapter, ...]:
        """Return the chapters, ordered by `start`, then by `level`."""
        return self._chapters

    @property
    def top_chapters(self) -> tuple[Chapter, ...]:
        """Return the chapters that no other chapter holds, oldest first."""
        return tuple(
            each
            for each in self._chapters
            if not any(above.level > each.level and above.start <= each.start < above.end for above in self._chapters)
        )

    def chapter_due(self) -> ChapterDue | None:
        """Return the next chapter to make, of the highest level that has one, the earliest first; None if none waits.

        The caller checks whether its segments are to be repaired first.
        """
        top = max((each.level for each in self._chapters), default=0) + 1
        for level in range(top, 0, -1):
            covered = max((each.end for each in self._chapters if each.level == level), default=0)
            waiting = [each for each in self._parts(level) if each.start >= covered]
            if len(waiting) >= CHAPTER_PARTS:
                first, last = waiting[0], waiting[CHAPTER_PARTS - 1]
                return ChapterDue(level, first.start, last.end, first.started_at, last.ended_at)
        return None

    def chapter_request(self, due: ChapterDue) -> ChapterRequest:
        """Return the request for this chapter."""
        known = self.known_facts()
        parts = [each for each in self._parts(due.level) if due.start <= each.start and each.end <= due.end]
        return ChapterRequest(
            level=due.level,
            parts=tuple(
                ChapterPart(
                    each.start,
                    each.end,
                    each.gist,
                    tuple(fact for fact in known if each.start <= fact.fact.turn_seq < each.end),
                )
                for each in parts
            ),
            chapters=tuple(each for each in self.top_chapters if each.end <= due.start),
            since=tuple(each.gist for each in self._segments if each.start >= due.end),
            known=known,
            roster=self.roster,
        )

    def with_chapter(self, chapter: Chapter) -> SegmentLedger:
        """Return a copy with this chapter."""
        other = self._copy()
        other._chapters = tuple(sorted((*self._chapters, chapter), key=lambda each: (each.start, each.level)))
        return other

    def _parts(self, level: int) -> list[Segment] | list[Chapter]:
        """Return what a chapter of this level is made of: segments of turns, or chapters of the level below."""
        if level == 1:
            return [each for each in self._segments if each.start < each.end]
        return [each for each in self._chapters if each.level == level - 1]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments in the order in which they were added."""
        return tuple(self._segments)

    @property
    def span(self) -> tuple[float, float] | None:
        """Return when the first and the last folded turn were said (UTC epoch seconds), or None if there are no
        segments.
        """
        return self._span

    def add(self, segment: Segment) -> None:
        """Add one segment. A closing segment is ignored, because its turns are not folded."""
        if segment.closing:
            return
        if segment.is_recursive:
            self._replace_paragraph(segment)
        candidates = _candidates(segment, len(self._segments))
        self._candidates.append(candidates)
        for each in candidates:
            insort(self._ranked, each, key=rank_key)
            self._concept_counts.update(each.all)
        self._segments.append(segment)
        if _can_be_repaired(segment):
            self._degraded = (*self._degraded, segment)
        first, last = (segment.started_at, segment.ended_at) if self._span is None else self._span
        self._span = (min(first, segment.started_at), max(last, segment.ended_at))
        for fact in segment.facts:
            self._superseded.update(fact.supersedes)
            self._roster.add(fact.speaker)

    def with_segment(self, segment: Segment) -> SegmentLedger:
        other = self._copy()
        other.add(segment)
        return other

    def _copy(self) -> SegmentLedger:
        other = SegmentLedger(chapters=self._chapters)
        other._segments = [*self._segments]
        other._candidates = [*self._candidates]
        other._ranked = [*self._ranked]
        other._concept_counts = self._concept_counts.copy()
        other._superseded = {*self._superseded}
        other._roster = {*self._roster}
        other._span = self._span
        other._first_seen = self._first_seen
        other._degraded = self._degraded
        return other

    @property
    def degraded(self) -> tuple[Segment, ...]:
        """Return the segments to repair: those with turns that were folded without the model and are not pruned."""
        return self._degraded

    def before(self, segment_id: SegmentId) -> SegmentLedger:
        """Return the ledger as it was before this segment was added. Don't call `add` on the result."""
        position = self._position(segment_id)
        start = self._segments[position].start
        other = SegmentLedger(chapters=(each for each in self._chapters if each.end <= start))
        other._segments = self._segments[:position]
        other._candidates = self._candidates[:position]
        other._ranked = [each for each in self._ranked if each.age_rank < position]
        # The current counts are used, because they say more than the counts at that time.
        other._concept_counts = self._concept_counts
        other._superseded = _superseded_by(other._segments)
        return other

    def claims_after(self, segment_id: SegmentId) -> tuple[FactClaim, ...]:
        """Return the claims of all facts in later segments, in order."""
        later = self._candidates[self._position(segment_id) + 1 :]
        return tuple(each.claim for group in later for each in group)

    def with_repaired(self, segment: Segment) -> SegmentLedger:
        """Return a copy in which this segment replaces the segment with the same id."""
        position = self._position(segment.id)
        gone, made = self._candidates[position], _candidates(segment, position)
        other = SegmentLedger(chapters=self._chapters)
        other._segments = [*self._segments[:position], segment, *self._segments[position + 1 :]]
        other._candidates = [*self._candidates[:position], made, *self._candidates[position + 1 :]]
        other._ranked = sorted((*(each for each in self._ranked if each not in gone), *made), key=rank_key)
        other._concept_counts = self._concept_counts.copy()
        for each in gone:
            other._concept_counts.subtract(each.all)
        for each in made:
            other._concept_counts.update(each.all)
        other._superseded = _superseded_by(other._segments)
        other._roster = self._roster | {fact.speaker for fact in segment.facts}
        other._span = self._span
        other._first_seen = self._first_seen
        other._degraded = tuple(each for each in self._degraded if each.id != segment.id)
        return other

    def _position(self, segment_id: SegmentId) -> int:
        return next(place for place, each in enumerate(self._segments) if each.id == segment_id)

    def _replace_paragraph(self, segment: Segment) -> None:
        """Drop the candidates of the previous paragraph, because the new paragraph replaces it."""
        if self._segments and self._segments[-1].is_recursive:
            gone = self._candidates[-1]
            self._candidates[-1] = ()
            self._ranked = [each for each in self._ranked if each not in gone]
            for each in gone:
                self._concept_counts.subtract(each.all)
        self._first_seen = {text: self._first_seen.get(text, segment) for text in sentences(segment.gist)}

    def known_facts(self) -> tuple[KnownFact, ...]:
        """Return the newest facts that are not superseded, newest last. A new batch may correct them."""
        found: list[KnownFact] = []
        for candidates in reversed(self._candidates):
            for candidate in reversed(candidates):
                (ref,) = candidate.sentence.refs
                if ref not in self._superseded:
                    found.append(KnownFact(ref, candidate.claim.fact))
            if len(found) >= _KNOWN_FACTS:
                break
        return tuple(_labelled(reversed(found)))

    @property
    def roster(self) -> frozenset[str]:
        """Return the names of all speakers of facts."""
        return frozenset(self._roster)

    def render(self, *, max_chars: int = MAX_SUMMARY_CHARS) -> RenderedSummary | None:
        """Return the summary of all segments, or None if there are no segments. Deterministic."""
        if not self._segments:
            return None
        if self._segments[-1].is_recursive:
            return self._paragraph(max_chars)
        newest_from = max(0, len(self._segments) - _NEWEST_SEGMENTS)
        newest = [each for group in self._candidates[newest_from:] for each in group if self._is_current(each)]
        lasting = [each for each in self._ranked if each.age_rank < newest_from and self._is_current(each)]
        choice = SentenceSelection(max_chars, self._concept_counts)
        newest.sort(key=lambda each: (-each.age_rank, -each.fresh, each.sentence.turn_seqs))
        for each in newest:
            if choice.length + each.length <= max_chars * _NEWEST_SHARE:
                choice.add(each)
        choice.add_best(list(islice(limit_similar(lasting), _SHORTLIST)))
        choice.add_best(newest)
        choice.add_best(lasting[:_SHORTLIST])
        if not choice.chosen:
            return _of_gist(self._segments[-1], max_chars)
        return _joined(choice.chosen)

    def _paragraph(self, max_chars: int) -> RenderedSummary:
        """Return the newest paragraph of the recursive strategy.

        The source of each sentence is the segment in which the sentence first appeared. No finer source is known.
        """
        newest = self._segments[-1]
        kept = whole_sentences(newest.gist, max_chars)
        if not kept:
            return _of_gist(newest, max_chars)
        found = [(text, self._first_seen.get(text, newest)) for text in sentences(kept)]
        rendered = tuple(
            RenderedSentence(
                text=text,
                segment_ids=(segment.id,),
                turn_seqs=tuple(Seq(seq) for seq in range(segment.start, segment.end)),
                kind=kind_of(text),
                speaker="",
                at=segment.ended_at,
            )
            for text, segment in found
        )
        return RenderedSummary(" ".join(each.text for each in rendered), rendered)

    def _is_current(self, candidate: Candidate) -> bool:
        return self._superseded.isdisjoint(candidate.sentence.refs)


def render_summary(
    segments: Iterable[Segment], chapters: Iterable[Chapter] = (), *, max_chars: int = MAX_SUMMARY_CHARS
) -> RenderedSummary | None:
    """Return the summary of these segments (in order), or None if there are no segments."""
    return SegmentLedger(segments, chapters).render(max_chars=max_chars)


def _labelled(known: Iterable[KnownFact]) -> Iterator[KnownFact]:
    """Yield the facts with their labels: the number of the turn, with a letter after the first fact of a turn."""
    counts: Counter[Seq] = Counter()
    for each in known:
        seq = each.fact.turn_seq
        letter = "" if counts[seq] == 0 else chr(ord("a") + counts[seq])
        counts[seq] += 1
        yield replace(each, label=f"{seq}{letter}")


def _can_be_repaired(segment: Segment) -> bool:
    return segment.degraded and not segment.pruned and not segment.is_recursive and segment.start < segment.end


def _superseded_by(segments: Iterable[Segment]) -> set[str]:
    return {ref for segment in segments for fact in segment.facts for ref in fact.supersedes}


def _candidates(segment: Segment, age_rank: int) -> tuple[Candidate, ...]:
    if segment.pruned or segment.is_recursive:
        return tuple(_gist_candidates(segment, age_rank))
    return tuple(
        _candidate(_fact_sentence(segment, index, fact), fact, age_rank) for index, fact in enumerate(segment.facts)
    )


def segment_sentences(segment: Segment) -> tuple[RenderedSentence, ...]:
    """Return every sentence that a summary could take from a segment, in the order of its facts."""
    return tuple(each.sentence for each in _candidates(segment, 0))


def _gist_candidates(segment: Segment, age_rank: int) -> Iterator[Candidate]:
    """Yield the sentences of a gist that has no facts, which is a recursive paragraph or the gist of a
    pruned segment.
    """
    for index, text in enumerate(sentences(segment.gist)):
        fact = Fact((segment.start,), kind_of(text), "", segment.ended_at, as_sentence(text, MAX_FACT_CHARS + 60))
        sentence = RenderedSentence(
            text=fact.text,
            segment_ids=(segment.id,),
            turn_seqs=tuple(Seq(seq) for seq in range(segment.start, segment.end)),
            kind=fact.kind,
            speaker="",
            at=fact.at,
            refs=(f"{segment.id}#gist{index}",),
        )
        yield _candidate(sentence, fact, age_rank)


def _fact_sentence(segment: Segment, index: int, fact: Fact) -> RenderedSentence:
    return RenderedSentence(
        text=as_sentence(fact.attributed_text, MAX_FACT_CHARS + 60),
        segment_ids=(segment.id,),
        turn_seqs=() if fact.note_id is not None else (fact.turn_seq,),
        kind=fact.kind,
        speaker=fact.speaker,
        at=fact.at,
        refs=(f"{segment.id}#{index}",),
    )


def _candidate(sentence: RenderedSentence, fact: Fact, age_rank: int) -> Candidate:
    claim = claim_of(fact)
    about = claim.about
    worth = len(about.topics) + _VALUE_WEIGHT * len(about.values)
    fresh = durability(fact.text) * worth / max(1, len(sentence.text)) ** _LENGTH_EXPONENT
    return Candidate(
        sentence=sentence,
        claim=claim,
        all=about.all,
        age_rank=age_rank,
        fresh=fresh,
        lasting=fresh * _STAYING_POWER[sentence.kind],
    )


def _of_gist(segment: Segment, max_chars: int) -> RenderedSummary:
    """Return the newest gist as the summary. Used if no fact is left."""
    rendered = RenderedSentence(
        text=whole_sentences(segment.gist, max_chars) or as_sentence(segment.gist, max_chars) or _NOTHING,
        segment_ids=(segment.id,),
        turn_seqs=tuple(Seq(seq) for seq in range(segment.start, segment.end)),
        kind=FactKind.OTHER,
        speaker="",
        at=segment.ended_at,
    )
    return RenderedSummary(rendered.text, (rendered,))


def _joined(chosen: Sequence[Candidate]) -> RenderedSummary:
    ordered = sorted(
        (each.sentence for each in chosen),
        key=lambda each: (_KIND_ORDER[each.kind], each.at, each.turn_seqs, each.refs),
    )
    return RenderedSummary(" ".join(each.text for each in ordered), tuple(ordered))
