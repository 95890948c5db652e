"""Finds where each sentence of a summary comes from: the facts, segments and turns behind it. Pure.

Code makes its sentences out of facts, so their sources are known. A model's sentence is found by its names and numbers,
and by most of what else it is about; where that finds nothing, it has no source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.language.meaning import meaning
from compaction.language.text import sentences, words
from compaction.model import RenderedSentence
from compaction.summary.ledger import SegmentLedger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.language.meaning import Meaning
    from compaction.model import Chapter, Segment
    from compaction.summary.paragraph import Candidate

# A sentence tells a fact if it has so much of what the fact is about, and at least so many words of it.
_SHARED = 0.5
_LEAST_SHARED = 2
# A sentence of a summary rarely holds more facts.
_MOST_SOURCES = 4


@dataclass(frozen=True, slots=True)
class SentenceSource:
    """One sentence of a summary and its source.

    `sentence` has the segments and turns it comes from. It is None if none can be found.
    """

    text: str
    sentence: RenderedSentence | None


def trace_sentences(
    summary: str, segments: Sequence[Segment], chapters: Sequence[Chapter] = ()
) -> tuple[SentenceSource, ...]:
    """Return the sentences of a summary in order, each with its source.

    `segments`, `chapters`: those that the summary was made of, or more.
    """
    ledger = SegmentLedger(segments, chapters)
    rendered = ledger.render()
    made = {} if rendered is None else {each.text: each for each in rendered.sentences if each.segment_ids}
    if rendered is not None and rendered.text == summary and len(made) == len(rendered.sentences):
        return tuple(SentenceSource(each.text, each) for each in rendered.sentences)
    known = ledger.candidates()
    return tuple(SentenceSource(text, made.get(text) or _found(text, known)) for text in sentences(summary))


def _found(text: str, known: Sequence[Candidate]) -> RenderedSentence | None:
    """Return the sentence with the facts that it tells, the best first; None without any."""
    told = meaning(text)
    spoken = {word.removesuffix("'s") for word in words(text)}
    scored = [(_share(told, spoken, each), each) for each in known]
    best = sorted((entry for entry in scored if entry[0] >= _SHARED), key=lambda entry: -entry[0])[:_MOST_SOURCES]
    if not best:
        return None
    sources = sorted((each for _, each in best), key=lambda each: each.turn_seqs)
    first = best[0][1]
    return RenderedSentence(
        text=text,
        segment_ids=tuple(dict.fromkeys(each.segment_id for each in sources)),
        turn_seqs=tuple(dict.fromkeys(seq for each in sources for seq in each.turn_seqs)),
        kind=first.kind,
        speaker=first.speaker if first.quoted else "",
        at=first.at,
        refs=tuple(ref for each in sources for ref in each.refs),
    )


def _share(told: Meaning, spoken: set[str], fact: Candidate) -> float:
    """Return how much of a fact a sentence tells, 0.0 to 1.0; none if a value or the quoted speaker is missing."""
    speaker = fact.speaker if fact.quoted else ""
    if not fact.values <= told.values or (speaker and not spoken & {speaker.casefold(), speaker.split()[0].casefold()}):
        return 0.0
    topics = {*fact.about} - fact.names - fact.values
    shared = (topics & told.topics) | (fact.values & told.values) | {name for name in fact.names if name in spoken}
    return len(shared) / len(fact.about) if len(shared) >= min(_LEAST_SHARED, len(fact.about)) and fact.about else 0.0
