"""Collects the sentences of a payload, with speakers and times, as evidence for answers. Pure.

Speakers and times come from the session behind the payload. Sentences come only from the payload's text, so an answer
contains nothing that a model would not have seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.embedded.evidence import Evidence, EvidenceOrigin
from compaction.language.text import sentences
from compaction.memory.passage import PassageKind
from compaction.model import SAID
from compaction.payload import PartKind
from compaction.summary.folded import summary_texts
from compaction.untrusted_text import inline, without_marks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from bot.brain.context import ModelContext


def collect_evidence(context: ModelContext, *, own_names: Collection[str]) -> list[Evidence]:
    """Return what people said and what screens showed, oldest first.

    Leaves out the current turn and the bot's own words (speakers in `own_names`).
    """
    found: list[Evidence] = []
    for text, origin, speaker, since, until in _payload_sentences(context, own_names):
        found.append(Evidence(text, origin, len(found), speaker, since, until))
    return found


_Found = tuple[str, EvidenceOrigin, str | None, float | None, float | None]


def _payload_sentences(context: ModelContext, own_names: Collection[str]) -> Iterator[_Found]:
    turns = {turn.seq: turn for turn in context.session.window}
    # Recalled quotes come after the window in the payload, but they are older.
    yield from _recalled(context)
    for part in context.parts:
        if part.kind is PartKind.PARTICIPANTS:
            yield from _facts_about_people(part.content)
        elif part.kind is PartKind.SUMMARY:
            yield from _summarised(context, part.content, own_names)
        elif part.kind is PartKind.NOTE:
            yield _after_clock(without_marks(part.content)), EvidenceOrigin.NOTE, None, part.timestamp, part.timestamp
        elif part.kind is PartKind.TURN and part.seq_from is not None and part.seq_from in turns:
            turn = turns[part.seq_from]
            if turn.kind in SAID:
                for said in turn.parts:
                    for sentence in sentences(said.text):
                        if sentence in part.content:
                            yield sentence, EvidenceOrigin.TURN, said.speaker, turn.started_at, turn.ended_at


def _facts_about_people(content: str) -> Iterator[_Found]:
    """Yield the facts about the people present: one line per person after the heading."""
    for line in without_marks(content).splitlines()[1:]:
        speaker, _, said = line.partition(": ")
        for sentence in sentences(said):
            yield sentence, EvidenceOrigin.TURN, speaker, None, None


def _recalled(context: ModelContext) -> Iterator[_Found]:
    """Yield the sentences of the quotes in the payload, oldest first, without corrected ones."""
    sent = {part.content for part in context.parts if part.kind is PartKind.RECALL}
    for quote in sorted(context.quotes, key=lambda each: each.recalled.at):
        recalled = quote.recalled
        if quote.part.content not in sent or recalled.superseded_by is not None:
            continue
        if recalled.kind is PassageKind.NOTE:
            yield quote.text, EvidenceOrigin.NOTE, None, recalled.at, recalled.at
            continue
        for said in quote.said:
            for sentence in sentences(said.text):
                yield sentence.removeprefix("… "), EvidenceOrigin.TURN, said.speaker, recalled.at, recalled.at


def _summarised(context: ModelContext, content: str, own_names: Collection[str]) -> Iterator[_Found]:
    """Yield the summary's sentences; all have the time range of the summary."""
    session = context.session
    if session.summary is None or inline(session.summary) not in content:
        return
    for speaker, sentence in summary_texts(session.summary):
        if speaker not in own_names:
            yield (
                sentence,
                EvidenceOrigin.SUMMARY,
                speaker or None,
                session.summary_started_at,
                session.summary_ended_at,
            )


def _after_clock(content: str) -> str:
    return content.split("] ", 1)[-1] if content.startswith("[") else content
