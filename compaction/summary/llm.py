"""The summariser that asks a text model: heading, gist, facts and paragraph in one structured answer.

The model alone says what matters. Of a fact, its turns are checked, and speaker and time are taken from them. Nothing
else about its prose is judged: figures and names that the request does not hold are only counted.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, tzinfo
from operator import itemgetter
from typing import TYPE_CHECKING

from compaction.errors import CompletionError, SummaryRefusedError
from compaction.language.statements import speaks_of_self, values_in
from compaction.language.terms import name_terms, terms
from compaction.language.text import (
    as_sentence,
    is_question,
    names_in,
    plain,
    scripts_in,
    sentences,
    whole_sentences,
    words,
)
from compaction.model import Fact, FoldFlaw, Seq, Turn
from compaction.summary.answer import ModelAnswer, ModelFact, answer_text, parse_answer
from compaction.summary.extractive import as_heading, compose_paragraph
from compaction.summary.port import MAX_FACT_CHARS, MAX_FACTS, MAX_GIST_CHARS, MAX_SUMMARY_CHARS, Fold, FoldRequest
from compaction.summary.prompt import MOST_READ_CHARS, PROMPT_VERSION, SummaryPrompt, shortening_request, write_prompt
from compaction.untrusted_text import without_copied_marks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compaction.ports import Completion, CompletionAnswer

# A second call is made only if the first took less than this share of the time.
_SHARE_OF_FIRST_CALL = 0.5
# Of what was said, less than this share is in the script of a summary in another one. People name things in theirs.
_LEAST_OF_SCRIPT = 0.05
_FIGURE = re.compile(r"\d[\d.,:]*\d|\d")


class LlmSummariser:
    """The summariser behind any `Completion`.

    `within_s`: the caller's deadline for one fold; a paragraph is not shortened by the model if half of it is over.
    `zone`: of the days and times in the prompt.
    """

    name = "llm"

    def __init__(self, completion: Completion, *, within_s: float | None = None, zone: tzinfo = UTC) -> None:
        self._completion = completion
        self._within_s = within_s
        self._zone = zone

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""
        return self._completion.model

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the fold of one batch. Raises CompletionError and SummaryRefusedError."""
        began_at = asyncio.get_running_loop().time()
        prompt = write_prompt(request, zone=self._zone)
        answers = [await self._completion.complete(prompt.request)]
        parsed = parse_answer(answers[0], request.turns)
        facts = _facts(parsed.facts, request, prompt)
        paragraph = cut_to_sentence(parsed.paragraph, MOST_READ_CHARS) or _with_facts(request, facts)
        flaws = tuple(_flaws(answers[0], parsed, facts, paragraph, request))
        took_s = asyncio.get_running_loop().time() - began_at
        if len(paragraph) > MAX_SUMMARY_CHARS and (
            self._within_s is None or took_s < _SHARE_OF_FIRST_CALL * self._within_s
        ):
            paragraph = await self._shortened(paragraph, answers)
        paragraph = cut_to_sentence(paragraph, MAX_SUMMARY_CHARS)
        gist = cut_to_sentence(parsed.gist or sentences(paragraph)[-1], MAX_GIST_CHARS)
        return Fold(
            gist=gist,
            facts=facts,
            paragraph=paragraph,
            prompt_version=PROMPT_VERSION,
            prompt_tokens=_sum([each.prompt_tokens for each in answers]),
            completion_tokens=_sum([each.completion_tokens for each in answers]),
            unsourced=count_unsourced(paragraph, prompt.request.prompt),
            heading=as_heading(parsed.heading),
            flaws=flaws,
        )

    async def _shortened(self, paragraph: str, answers: list[CompletionAnswer]) -> str:
        """Return the paragraph as the model shortens it, or as it was if the model does not."""
        try:
            answer = await self._completion.complete(shortening_request(paragraph))
            answers.append(answer)
            shorter = plain(without_copied_marks(answer_text(answer)))
            # Of a paragraph that was cut off the whole sentences are good.
            shorter = whole_sentences(shorter, MAX_SUMMARY_CHARS) if answer.finish_reason == "length" else shorter
        except (CompletionError, SummaryRefusedError):
            return paragraph
        return shorter if 0 < len(shorter) < len(paragraph) else paragraph


def _flaws(
    answer: CompletionAnswer, parsed: ModelAnswer, facts: Sequence[Fact], paragraph: str, request: FoldRequest
) -> Iterator[FoldFlaw]:
    """Yield what is wrong with a usable answer. `facts`: those of it that are taken."""
    if answer.finish_reason == "length":
        yield FoldFlaw.CUT_OFF
    if len(facts) < min(len(parsed.facts), MAX_FACTS):
        yield FoldFlaw.ABSENT_TURNS
    said = scripts_in("".join((request.previous or "", *(turn.text for turn in request.turns))))
    if any(said[script] < _LEAST_OF_SCRIPT * said.total() for script, _ in scripts_in(paragraph).most_common(1)):
        yield FoldFlaw.OTHER_SCRIPT


def _with_facts(request: FoldRequest, facts: Sequence[Fact]) -> str:
    """Return the summary so far with new facts behind it, for an answer that was cut off before its paragraph."""
    new = cut_to_sentence(" ".join(fact.text for fact in facts), MAX_SUMMARY_CHARS)
    before = request.previous or compose_paragraph([each.fact for each in request.known])
    return f"{whole_sentences(before, MAX_SUMMARY_CHARS - len(new) - 1)} {new}".strip()


def cut_to_sentence(text: str, max_chars: int) -> str:
    """Return a text of at most `max_chars` that ends with a sentence: as many whole ones as fit."""
    if len(text) < max_chars:
        return as_sentence(text, max_chars)
    return whole_sentences(text, max_chars) or as_sentence(text, max_chars)


def count_unsourced(paragraph: str, prompt: str) -> int:
    """Return how many figures and names of a paragraph stand nowhere in the prompt that it was written from."""
    known = set(words(prompt))
    found = {each for sentence in sentences(paragraph) for each in (*_FIGURE.findall(sentence), *names_in(sentence))}
    return sum(1 for each in found if not set(words(each)) <= known)


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _facts(written: list[ModelFact], request: FoldRequest, prompt: SummaryPrompt) -> tuple[Fact, ...]:
    """Return the facts whose turns lie in the batch, or are those of facts that they close."""
    said = {turn.seq: turn for turn in request.turns if turn.parts}
    facts: list[Fact] = []
    for each in written:
        closes = [prompt.facts[label] for label in each.closes if label in prompt.facts]
        cited = {Seq(int(label)) for label in each.turns if label.isascii() and label.isdigit() and len(label) < 10}
        turns = sorted(cited & said.keys())
        note = next((prompt.notes[label] for label in each.turns if label in prompt.notes), None)
        if not turns and note is None:
            continue
        speaker, at = _who_said([said[seq] for seq in turns], each) if note is None or turns else (note.who, note.at)
        before = sorted(cited & {seq for known in closes for seq in known.fact.turns})
        facts.append(
            Fact(
                turns=(*(seq for seq in before if seq < request.start), *(turns or [request.start])),
                text=as_sentence(each.text, MAX_FACT_CHARS),
                kind=each.kind,
                importance=each.importance,
                closes=tuple(known.ref for known in closes),
                speaker=speaker,
                at=at,
                owner=each.owner,
                until=each.until,
                note_id=None if turns or note is None else note.id,
            )
        )
    return tuple(facts[:MAX_FACTS])


def _who_said(turns: Sequence[Turn], written: ModelFact) -> tuple[str, float]:
    """Return who said a fact in these turns, and when, UTC epoch seconds.

    It is who says it of themselves: 'I will bring it'. Else who states its figures, then who states most of its words;
    of equal ones the later, who corrected the earlier, or added to it. If nobody states any, it is the fact's owner,
    who said yes to somebody's question; else the first.
    """
    wanted, owner = frozenset(terms(written.text)), written.owner.casefold()
    known: set[str] = set()
    claims: list[tuple[tuple[bool, bool, int, int, bool], tuple[str, float]]] = []
    for turn in turns:
        for part in turn.parts:
            said = [each for each in sentences(part.text) if not is_question(each)]
            stated = wanted.intersection(term for each in said for term in terms(each))
            own = wanted.issuperset(name_terms(part.speaker)) and any(
                speaks_of_self(each) and not wanted.isdisjoint(terms(each)) for each in said
            )
            place = -1 if stated <= known else len(claims)
            claim = (own, bool(values_in(stated)), len(stated), place, part.speaker.casefold() == owner)
            claims.append((claim, (part.speaker, turn.started_at)))
            known |= stated
    return max(claims, key=itemgetter(0))[1]
