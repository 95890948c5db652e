"""Makes segments, the stored records of folded batches. A segment's id is made from its range, so a retry gives the
same id.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compaction.language.meaning import meaning, replaces
from compaction.model import Chapter, ChapterId, Segment, SegmentId, Seq
from compaction.summary.extractive import extract_facts, make_gist
from compaction.tokens import estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compaction.model import Fact, Note, SessionId, Turn
    from compaction.summary.chapters import ChapterDue
    from compaction.summary.port import ChapterFold, Fold, FoldRequest, KnownFact


def make_segment(
    request: FoldRequest,
    fold: Fold,
    *,
    session_id: SessionId,
    revision: int,
    summariser: str,
    degraded: bool,
    at: float,
) -> Segment:
    """Return the segment of one run. `revision`: the revision of the state before the run. `at`: now, in UTC epoch
    seconds.

    A run that folds only notes covers no turn, so its segment's id contains the revision instead of the range.
    """
    end = Seq(request.start + len(request.turns))
    covers = f"{request.start}-{end}" if request.turns else f"{request.start}+{revision}"
    made = _record(
        SegmentId(f"{session_id}:{covers}"),
        session_id,
        request.start,
        request.turns,
        request.notes,
        gist=fold.gist,
        facts=fold.facts,
        summariser=summariser,
        degraded=degraded,
        closing=False,
        at=at,
    )
    return replace(made, paragraph=fold.paragraph, paragraph_problem=fold.paragraph_problem)


def make_chapter(due: ChapterDue, fold: ChapterFold, *, session_id: SessionId, summariser: str, at: float) -> Chapter:
    """Return the chapter of one run. `at`: now, in UTC epoch seconds."""
    return Chapter(
        id=ChapterId(f"{session_id}:{due.start}-{due.end}@{due.level}"),
        session_id=session_id,
        level=due.level,
        start=due.start,
        end=due.end,
        started_at=due.started_at,
        ended_at=due.ended_at,
        gist=fold.gist,
        refs=fold.refs,
        summariser=summariser,
        created_at=at,
        paragraph=fold.paragraph,
        paragraph_problem=fold.paragraph_problem,
    )


def make_repaired_segment(old: Segment, fold: Fold, *, later: Sequence[Fact], summariser: str, at: float) -> Segment:
    """Return the repaired segment that replaces `old`. `later`: all facts of later segments.

    No number of a fact changes its meaning, because later corrections and what is stored about people name facts by
    number. Facts that later ones supersede, facts from notes and blank ones are kept. Of the others, those that the
    fold has too stay in place, and the rest become blank. A new fact that a later fact corrects is left out, because
    nothing would mark it as superseded.
    """
    superseded = {ref for fact in later for ref in fact.supersedes}
    kept = {
        number: fact
        for number, fact in enumerate(old.facts)
        if fact.note_id is not None or not fact.text or f"{old.id}#{number}" in superseded
    }
    known = {(fact.speaker, fact.text) for fact in kept.values()}
    fresh = [
        fact
        for fact in fold.facts
        if (fact.speaker, fact.text) not in known and not any(_corrects(each, fact) for each in later)
    ]
    facts = _numbered(kept, fresh, old)
    return replace(
        old,
        gist=fold.gist,
        facts=facts,
        summariser=summariser,
        degraded=False,
        created_at=at,
        compressed_tokens=_tokens(facts, fold.gist),
    )


def _tokens(facts: Sequence[Fact], gist: str) -> int:
    """Return how many tokens the facts have, or the gist if there are none."""
    return sum(estimate_text_tokens(fact.attributed_text) for fact in facts if fact.text) or estimate_text_tokens(gist)


def _corrects(later: Fact, fact: Fact) -> bool:
    return replaces(meaning(later.text), meaning(fact.text), same_speaker=later.speaker == fact.speaker)


def _numbered(kept: Mapping[int, Fact], fresh: Sequence[Fact], old: Segment) -> tuple[Fact, ...]:
    """Return the facts with the numbers of `old`, followed by the new ones in the order of talk.

    A new fact supersedes the blank ones that the same person said in the same turns.
    """
    new = {(fact.speaker, fact.text): fact for fact in fresh}
    facts: list[Fact] = []
    gone: list[tuple[str, Fact]] = []
    for number, fact in enumerate(old.facts):
        if number in kept:
            facts.append(fact)
        elif (again := new.pop((fact.speaker, fact.text), None)) is not None:
            facts.append(again)
        else:
            ref = f"{old.id}#{number}"
            gone.append((ref, fact))
            facts.append(fact.blanked((ref,)))
    for fact in new.values():
        replaced = [ref for ref, each in gone if each.speaker == fact.speaker and {*each.turns} & {*fact.turns}]
        facts.append(replace(fact, supersedes=tuple(dict.fromkeys((*fact.supersedes, *replaced)))))
    return tuple(facts)


def make_closing_segment(
    turns: Sequence[Turn],
    notes: Sequence[Note],
    *,
    session_id: SessionId,
    known: Sequence[KnownFact],
    before: Sequence[Turn] = (),
    degraded: bool,
    at: float,
) -> Segment | None:
    """Return the segment of the turns that were not folded when the session ended, or None if there are none.

    The facts are extracted without a model, because the end of the session must not wait for a model. `before`: the
    turns just before. `degraded`: a model is configured, so the segment could be better.
    """
    if not turns:
        return None
    start, end = turns[0].seq, Seq(turns[-1].seq + 1)
    facts = extract_facts(turns, notes, start=start, known=known, before=before)
    return _record(
        SegmentId(f"{session_id}:{start}-{end}-closing"),
        session_id,
        start,
        turns,
        notes,
        gist=make_gist(facts, turns),
        facts=facts,
        summariser="extractive",
        degraded=degraded,
        closing=True,
        at=at,
    )


def _record(
    segment_id: SegmentId,
    session_id: SessionId,
    start: Seq,
    turns: Sequence[Turn],
    notes: Sequence[Note],
    *,
    gist: str,
    facts: tuple[Fact, ...],
    summariser: str,
    degraded: bool,
    closing: bool,
    at: float,
) -> Segment:
    said = [f"{part.speaker}: {part.text}" for turn in turns for part in turn.parts]
    said += [note.what for note in notes]
    times = [*(turn.started_at for turn in turns), *(note.at for note in notes)]
    ends = [*(turn.ended_at for turn in turns), *(note.at for note in notes)]
    return Segment(
        id=segment_id,
        session_id=session_id,
        start=start,
        end=Seq(start + len(turns)),
        started_at=min(times, default=at),
        ended_at=max(ends, default=at),
        gist=gist,
        facts=facts,
        note_ids=tuple(note.id for note in notes),
        summariser=summariser,
        degraded=degraded,
        closing=closing,
        created_at=at,
        original_tokens=sum(map(estimate_text_tokens, said)),
        compressed_tokens=_tokens(facts, gist),
    )
