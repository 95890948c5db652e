"""Removes forgotten words from a segment: from its facts, from its gist, and from later recursive paragraphs.

A forgotten fact is replaced by a blank one, because other facts refer to facts by their index.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.language.terms import terms
from compaction.language.text import plain
from compaction.memory.forgotten_turns import is_of_bot
from compaction.memory.quotations import Runs, is_quotation, names_any, quoted_in, repeats
from compaction.memory.restating import NOTHING_FORGOTTEN
from compaction.summary.extractive import extract_facts, extract_paragraph, make_gist
from compaction.summary.ledger import render_summary
from compaction.summary.port import FoldRequest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from compaction.memory.restating import ForgottenWords
    from compaction.model import Fact, Segment, Seq, Turn

# The reason why code makes the summary in place of a paragraph that may hold forgotten words.
FORGOTTEN = "Words in it were forgotten."


@dataclass(frozen=True, slots=True)
class RemainingWords:
    """The search terms of what people say in a session's remaining turns: in each turn, and in all of them.

    The bot's words are left out: it may have taken them from whoever is forgotten.
    """

    by_turn: Mapping[Seq, frozenset[str]]
    anywhere: frozenset[str]

    @classmethod
    def of(cls, turns: Iterable[Turn]) -> RemainingWords:
        """Return the words of these turns. It takes time for each turn."""
        by_turn = {
            turn.seq: frozenset(term for part in turn.parts for term in terms(part.text))
            for turn in turns
            if not is_of_bot(turn)
        }
        return cls(by_turn, frozenset().union(*by_turn.values()))

    def in_turns(self, turns: Iterable[Turn]) -> frozenset[str]:
        """Return the terms of some of the turns."""
        return frozenset().union(*(self.by_turn.get(turn.seq, frozenset()) for turn in turns))


def forget_in_segment(
    segment: Segment,
    said: Sequence[Turn],
    heard: Sequence[Turn],
    seqs: frozenset[Seq],
    gone_notes: frozenset[str],
    left: RemainingWords,
    words: ForgottenWords = NOTHING_FORGOTTEN,
) -> tuple[Segment, int]:
    """Return the segment without the forgotten facts and with a new gist. Also returns how many facts were removed.

    `said`: the remaining turns of the segment. `heard`: these turns and the remaining turns just before them. `seqs`:
    the turns of which something was forgotten. `left`: of the whole session. `words`: the forgotten text. A fact that
    says it again is removed too, because a model may have cited another person's turn for that fact.
    """
    left_by_turn = {turn.seq: {plain(part.speaker) for part in turn.parts} for turn in heard}
    told = [plain(part.text) for turn in heard for part in turn.parts]
    facts: list[Fact] = []
    count = 0
    for index, fact in enumerate(segment.facts):
        forgotten = (
            (_was_said_there(fact, seqs, left_by_turn) or _says_again(fact, words, told, heard, left))
            if fact.note_id is None
            else (fact.note_id in gone_notes)
        )
        if forgotten and fact.text:
            count += 1
            # The blank fact supersedes itself, so it is never shown. It also still supersedes the facts that it had
            # corrected.
            itself = f"{segment.id}#{index}"
            superseding = tuple(dict.fromkeys((*fact.supersedes, itself)))
            facts.append(fact.blanked(superseding))
        else:
            facts.append(fact)
    standing = [fact for fact in facts if fact.text]
    if segment.pruned:
        standing = list(extract_facts(said, start=segment.start))
    return (
        replace(
            segment,
            facts=tuple(facts),
            gist=make_gist(standing, said),
            paragraph="",
            paragraph_problem=FORGOTTEN if segment.paragraph else segment.paragraph_problem,
            note_ids=tuple(note_id for note_id in segment.note_ids if note_id not in gone_notes),
        ),
        count,
    )


def _says_again(
    fact: Fact, words: ForgottenWords, told: list[str], heard: Sequence[Turn], left: RemainingWords
) -> bool:
    """Return whether a fact has forgotten words or names that are in no remaining turn. `told`: what is `heard`.

    A model words facts anew, with words that the person has said of something else, too. So one word of theirs counts
    only if nobody else has said it in the session, or if the fact names the person and nobody near it has. Without the
    name, two or three words in a row ('The third time.') are no quotation either. One word of a longer name ('Ada')
    names the person too.
    """
    if any(fact.text in said for said in told):
        return False
    of_whom = f"{fact.subject}. {fact.text}"
    named = [name for name in words.names if names_any(of_whom, {name})]
    named = named or [word for word in words.name_words if names_any(of_whom, {word})]
    quoted = [run for run in quoted_in(fact.text, words.runs) if named or is_quotation(run)]
    return (
        any(not any(names_any(said, {name}) for said in told) for name in named)
        or any(not any(repeats(said, Runs(frozenset({run}))) for said in told) for run in quoted)
        or words.has_rare_word(fact.text, left.in_turns(heard) if named else left.anywhere)
    )


def _was_said_there(fact: Fact, seqs: frozenset[Seq], left_by_turn: Mapping[Seq, Collection[str]]) -> bool:
    """Return whether a fact is made of forgotten words.

    `left_by_turn`: who still has words in each turn. A fact of one turn stays if its speaker is one of them. The words
    of several turns can't be told apart in a fact, so it goes if any of them was forgotten.
    """
    if seqs.isdisjoint(fact.turns):
        return False
    return len(fact.turns) > 1 or fact.speaker not in left_by_turn.get(fact.turn_seq, ())


def remake_paragraph(segment: Segment, before: list[Segment], said: list[Turn]) -> Segment:
    """Rebuild the paragraph of a recursive segment from its remaining turns and the earlier segments,
    without a model.
    """
    rendered = render_summary(before[-1:] if before and before[-1].is_recursive else before)
    previous = None if rendered is None else rendered.text
    fold = extract_paragraph(FoldRequest(start=segment.start, turns=tuple(said), notes=(), previous=previous))
    return replace(
        segment,
        gist=fold.gist,
        paragraph=fold.paragraph,
        paragraph_problem="",
        summariser=f"extractive {fold.form}",
        degraded=True,
    )
