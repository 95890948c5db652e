"""What the segments of a session say together: its summary, the facts that hold, what a fold asks about. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.language.text import sentences
from compaction.model import EXTRACTIVE, Fact, Note, Segment, SegmentId, Seq, SessionId, Turn
from compaction.notes import condense_notes
from compaction.summary.extractive import compose_paragraph, extract_quotes, goes_on, make_gist, make_heading
from compaction.summary.port import Fold, FoldRequest, KnownFact
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# Every eighth paragraph is written without the one before, so that drift can't add up.
ANEW_EVERY = 8
# What code quotes in a summary: 'Ada: "We rent the cabin."'
_QUOTE = re.compile(r'([^":.!?]{1,60}): "([^"]+)"\.?')


def closed_refs(segments: Iterable[Segment]) -> frozenset[str]:
    """Return the refs (`segment_id#index`) of the facts that later ones replaced, answered or finished."""
    return frozenset(ref for segment in segments for fact in segment.facts for ref in fact.closes)


def known_facts_of(segment: Segment) -> tuple[KnownFact, ...]:
    """Return the facts of a segment that have a text, each with its ref."""
    return tuple(KnownFact(f"{segment.id}#{at}", fact) for at, fact in enumerate(segment.facts) if fact.text)


def standing_facts(segments: Sequence[Segment]) -> tuple[KnownFact, ...]:
    """Return the facts that hold, oldest first."""
    closed = closed_refs(segments)
    return tuple(each for segment in segments for each in known_facts_of(segment) if each.ref not in closed)


def summary_of(segments: Sequence[Segment], *, newest: Segment | None) -> str | None:
    """Return the summary of a session: the newest paragraph; None before the first fold.

    `segments`: those that may be told, in order. `newest`: the newest of all. If its paragraph may not be told, because
    words in it were forgotten or withheld, the summary is composed of the facts that are left, until the next fold.
    """
    folded = [each for each in segments if not each.closing]
    if newest is None:
        return None
    if folded and folded[-1].id == newest.id and newest.paragraph:
        return newest.paragraph
    return compose_paragraph([each.fact for each in standing_facts(folded)])


def summary_texts(summary: str) -> list[tuple[str, str]]:
    """Return what a summary says, as (speaker, sentence): its quotes, then the rest, whose speaker is empty."""
    quoted = [(quote[1].strip(), each) for quote in _QUOTE.finditer(summary) for each in sentences(quote[2])]
    return quoted + [("", each) for each in sentences(_QUOTE.sub(" ", summary))]


def span_of(segments: Sequence[Segment]) -> tuple[float, float] | None:
    """Return when the first and the last folded turn were said (UTC epoch seconds), None before the first fold."""
    folded = [each for each in segments if not each.closing]
    return (min(each.started_at for each in folded), max(each.ended_at for each in folded)) if folded else None


def fold_request(
    start: Seq,
    turns: Sequence[Turn],
    notes: Sequence[Note],
    before: Sequence[Turn],
    segments: Sequence[Segment],
    *,
    newest: Segment | None,
    chapters: Sequence[str] = (),
) -> FoldRequest:
    """Return the request to fold a batch, with those of the notes that the fold will tell of.

    `segments`, `newest`: as in `summary_of`. `chapters`: as in `FoldRequest`.
    """
    folded = [each for each in segments if not each.closing]
    previous = None
    # After a fold by quotes the facts and chapters that a model wrote tell more than its paragraph.
    is_told = folded and newest is not None and folded[-1].id == newest.id and newest.prompt_version != EXTRACTIVE
    if newest is not None and is_told and (len(folded) + 1) % ANEW_EVERY:
        previous = newest.paragraph or None
    return FoldRequest(
        start=start,
        turns=tuple(turns),
        notes=tuple(each.note for each in condense_notes(notes)),
        previous=previous,
        known=standing_facts(folded),
        chapters=tuple(chapters),
        before=tuple(before),
        heading=folded[-1].heading if folded else "",
    )


def make_segment(request: FoldRequest, fold: Fold, *, session_id: SessionId, revision: int, at: float) -> Segment:
    """Return the segment of one run. Its id is made from its range, so a retry gives the same id.

    `revision`: of the state before the run; it names a segment of notes alone, whose range is empty. `at`: now, UTC
    epoch seconds.
    """
    end = request.start + len(request.turns)
    covers = f"{request.start}-{end}" if request.turns else f"{request.start}+{revision}"
    made = _segment(SegmentId(f"{session_id}:{covers}"), session_id, request, fold.gist, fold.facts, at=at)
    # Others go on with a heading, so it tells nothing that was told in confidence.
    heading = "" if made.is_confided else fold.heading or made.heading
    return replace(made, paragraph=fold.paragraph, prompt_version=fold.prompt_version, heading=heading)


def closing_segment(request: FoldRequest, *, session_id: SessionId, at: float) -> Segment | None:
    """Return the segment of the turns that were not folded when the session ended; None if there are none.

    It has quotes and no paragraph, because the end of the session must not wait for a model.
    """
    if not request.turns:
        return None
    facts = extract_quotes(request)
    covers = f"{request.start}-{request.start + len(request.turns)}-closing"
    made = _segment(SegmentId(f"{session_id}:{covers}"), session_id, request, make_gist(facts), facts, at=at)
    return replace(made, closing=True)


def _segment(
    segment_id: SegmentId, session_id: SessionId, request: FoldRequest, gist: str, facts: tuple[Fact, ...], *, at: float
) -> Segment:
    turns, notes = request.turns, request.notes
    said = [f"{part.speaker}: {part.text}" for turn in turns for part in turn.parts]
    said += [note.what for note in notes]
    return Segment(
        id=segment_id,
        session_id=session_id,
        start=request.start,
        end=Seq(request.start + len(turns)),
        started_at=min((*(turn.started_at for turn in turns), *(note.at for note in notes)), default=at),
        ended_at=max((*(turn.ended_at for turn in turns), *(note.at for note in notes)), default=at),
        gist=gist,
        facts=facts,
        note_ids=tuple(note.id for note in notes),
        prompt_version=EXTRACTIVE,
        heading=request.heading if goes_on(request) else make_heading(facts, gist),
        created_at=at,
        original_tokens=sum(map(estimate_text_tokens, said)),
        compressed_tokens=sum(estimate_text_tokens(fact.text) for fact in facts) or estimate_text_tokens(gist),
    )
