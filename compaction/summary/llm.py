"""The summariser that asks a text model: for gist, facts and the paragraph in one call, or for the paragraph alone.

The model says what matters; `checks` and `paragraph_checks` refuse what it certainly invented or turned round. What it
left out stays out. A paragraph with a fault is asked for once more; if that fails too, the fold has none and says why.
If it answers time and again with nothing but a turn's own words, code chooses the facts of such a batch.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING

from compaction.errors import SummaryRefusedError
from compaction.language.meaning import meaning
from compaction.language.text import as_sentence, plain, sentences, whole_sentences
from compaction.model import Strategy, TurnKind
from compaction.notes import condense_notes
from compaction.summary.answer import parse_answer
from compaction.summary.checks import checked_facts, clauses, gives_orders, may_deny
from compaction.summary.copied_facts import CopiedFacts
from compaction.summary.day import (
    Recorded,
    day_at,
    last_day,
    periods_of,
    periods_of_records,
    sayings_of_day,
    weekdays_of_records,
)
from compaction.summary.extractive import ExtractiveSummariser, extract_chapter, extract_facts, make_gist
from compaction.summary.fold_prompts import (
    ChapterPrompts,
    LedgerPrompts,
    RecursivePrompts,
    chapter_sections,
    fold_sections,
)
from compaction.summary.paragraph_checks import ParagraphCheck, is_transcript
from compaction.summary.paragraph_writer import Calls, Paragraph, ParagraphWriter
from compaction.summary.port import (
    CHAPTER_FACTS,
    MAX_CHAPTER_GIST_CHARS,
    MAX_GIST_CHARS,
    ChapterFold,
    Fold,
    FoldRequest,
)
from compaction.summary.prompt_data import shown_since
from compaction.summary.prompt_texts import PromptTexts
from compaction.summary.required_facts import required_after_fold, required_facts
from compaction.summary.sources import sources_of, unfounded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import date, tzinfo
    from pathlib import Path

    from compaction.model import Chapter, Fact, Turn
    from compaction.ports import Completion
    from compaction.summary.answer import ModelAnswer
    from compaction.summary.dates import Period
    from compaction.summary.port import ChapterPart, ChapterRequest, KnownFact
    from compaction.summary.sources import Sources

_ONLY_COPIED = "The model repeats turns instead of writing facts."


class LlmSummariser:
    """The summariser behind any `Completion`.

    Between folds it keeps whether to ask this endpoint for JSON or for lines, and whether its last answers only
    repeated turns. `within_s`: the caller's deadline for one fold; a second call is left out if it would not end
    before. `zone`: of the days and times that it reads.
    """

    def __init__(
        self,
        completion: Completion,
        *,
        max_output_tokens: int,
        prompts_dir: Path | None = None,
        within_s: float | None = None,
        zone: tzinfo = UTC,
    ) -> None:
        texts = PromptTexts(prompts_dir)
        self._zone = zone
        self._completion = completion
        self._max_output_tokens = max_output_tokens
        self._within_s = within_s
        self._prompts = LedgerPrompts(texts, zone)
        self._recursive_prompts = RecursivePrompts(texts)
        self._chapter_prompts = ChapterPrompts(texts)
        self._structured = True
        self._copied = CopiedFacts()

    @property
    def name(self) -> str:
        """Return the kind of summariser."""
        return "llm"

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""
        return self._completion.model

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the fold of one batch. Raises CompletionError and SummaryRefusedError."""
        calls = Calls(self._completion, within_s=self._within_s)
        if request.strategy is Strategy.RECURSIVE:
            return await self._recursive(calls, request)
        prompt = self._prompts.write(request, structured=self._structured, max_output_tokens=self._max_output_tokens)
        answer = await calls.ask(prompt.request)
        sources = _sources(request, self._zone)
        try:
            parsed = parse_answer(answer, request.turns, labels=self._prompts.labels)
            if self._copied.note(parsed.facts, (*request.before, *request.turns)):
                return await self._without_model(request, calls)
            labels = {each.label: each.ref for each in prompt.shown}
            facts = checked_facts(parsed.facts, request.turns, sources, labels)
            gist = _checked_gist(parsed.gist, request.turns, sources, MAX_GIST_CHARS)
            if not gist and not facts:
                raise SummaryRefusedError("Nothing of the model's answer has a source in what was said.")
        except SummaryRefusedError:
            # A deterministic model would give the same answer again, so the retry asks for the other form. Some
            # endpoints also do better with lines than with JSON.
            self._structured = not self._structured
            raise
        superseded = {ref for fact in facts for ref in fact.supersedes}
        paragraph = Paragraph("")
        if request.wants_paragraph:
            paragraph = await self._settled(calls, request, parsed, facts, superseded, sources)
        return Fold(
            gist=gist or make_gist(facts, request.turns),
            facts=facts,
            prompt_tokens=calls.prompt_tokens,
            completion_tokens=calls.completion_tokens,
            form=self._prompts.version,
            paragraph=paragraph.text,
            paragraph_problem=paragraph.problem,
        )

    async def _without_model(self, request: FoldRequest, calls: Calls) -> Fold:
        """Return the fold that code makes. It says why, and is no failure: the model would answer no better again."""
        by_code = ExtractiveSummariser()
        return replace(
            await by_code.fold(request),
            made_by=by_code.name,
            prompt_tokens=calls.prompt_tokens,
            completion_tokens=calls.completion_tokens,
            paragraph_problem=_ONLY_COPIED if request.wants_paragraph else "",
        )

    async def _settled(
        self,
        calls: Calls,
        request: FoldRequest,
        parsed: ModelAnswer,
        facts: tuple[Fact, ...],
        superseded: set[str],
        sources: Sources,
    ) -> Paragraph:
        """Return the checked paragraph of a fold with these facts."""
        standing = [each.fact for each in request.known if each.ref not in superseded]
        shown = required_facts([each.fact for each in request.known])
        check = ParagraphCheck(
            sources,
            standing=(*standing, *facts),
            musts=required_after_fold([each for each in shown if each in standing], facts),
            turns=request.turns,
            previous=request.previous or "",
            adds=any(each.importance > 1 for each in facts),
            people=request.roster,
        )
        sections = partial(fold_sections, request, self._zone, added=facts, superseded=superseded)
        return await self._writer(calls, sections, request.turns).settle(
            parsed.paragraph, parsed.paragraph_problem, check
        )

    async def _recursive(self, calls: Calls, request: FoldRequest) -> Fold:
        facts = extract_facts(request.turns, request.notes, start=request.start, before=request.before)
        check = ParagraphCheck(
            _sources(request, self._zone),
            standing=_said_of_themselves(facts, request.turns),
            turns=request.turns,
            previous=request.previous or "",
            adds=_says_something(request.turns),
            people=request.roster,
        )
        paragraph = await self._writer(calls, partial(fold_sections, request, self._zone), request.turns).write(check)
        return Fold(
            gist=make_gist(facts, request.turns),
            facts=(),
            prompt_tokens=calls.prompt_tokens,
            completion_tokens=calls.completion_tokens,
            form=self._recursive_prompts.version,
            paragraph=paragraph.text,
        )

    async def fold_chapter(self, request: ChapterRequest) -> ChapterFold:
        """Return one chapter. Raises CompletionError and SummaryRefusedError."""
        calls = Calls(self._completion, within_s=self._within_s)
        prompt = self._chapter_prompts.write(
            request, structured=self._structured, max_output_tokens=self._max_output_tokens
        )
        answer = await calls.ask(prompt.request)
        parsed = parse_answer(answer, (), labels=self._chapter_prompts.labels)
        sources = _sources_of_chapter(request, self._zone)
        extracted = extract_chapter(request)
        refs = {each.label: each.ref for each in prompt.shown}
        chosen = tuple(dict.fromkeys(refs[label] for label in parsed.refs if label in refs))[:CHAPTER_FACTS]
        standing = tuple(each.fact for each in request.known)
        check = ParagraphCheck(sources, standing=standing, musts=required_facts(standing), people=request.roster)
        writer = self._writer(calls, partial(chapter_sections, request), ())
        paragraph = await writer.settle(parsed.paragraph, parsed.paragraph_problem, check)
        return ChapterFold(
            gist=_checked_gist(parsed.gist, (), sources, MAX_CHAPTER_GIST_CHARS) or extracted.gist,
            refs=chosen or extracted.refs,
            prompt_tokens=calls.prompt_tokens,
            completion_tokens=calls.completion_tokens,
            form=self._chapter_prompts.version,
            paragraph=paragraph.text,
            paragraph_problem=paragraph.problem,
        )

    def _writer(
        self, calls: Calls, sections: Callable[[], Mapping[str, str]], turns: Sequence[Turn]
    ) -> ParagraphWriter:
        return ParagraphWriter(
            calls, self._recursive_prompts, sections, turns, max_output_tokens=self._max_output_tokens
        )


def _sources(request: FoldRequest, zone: tzinfo) -> Sources:
    """Return all that a fold of this batch may be made of: what its prompt shows, and every known fact."""
    texts = [request.previous or "", *(each.gist for each in request.chapters)]
    texts += [part.text for turn in (*request.before, *request.turns) for part in turn.parts]
    notes = condense_notes(request.notes)
    texts += [note.what for note in notes]
    texts += sayings_of_day(request.turns, zone)
    people = {part.speaker for turn in (*request.before, *request.turns) for part in turn.parts}
    people |= request.roster | {note.who for note in notes}
    periods = periods_of((*request.before, *request.turns), zone)
    return _sources_of_known(texts, request.known, frozenset(people), periods, last_day(request.turns, zone))


def _sources_of_chapter(request: ChapterRequest, zone: tzinfo) -> Sources:
    """Return all that a chapter may be made of: what its prompt shows, every known fact, and the days of both.

    The prompt names no day, but writers know it from facts, and tell it.
    """
    facts = (*request.known, *(each for part in request.parts for each in part.facts))
    stretches: list[Chapter | ChapterPart] = [*request.chapters, *request.parts]
    texts = [*(each.gist for each in stretches), *shown_since(request)]
    records = [Recorded(each.fact.text, each.fact.at) for each in facts]
    records += [Recorded(each.gist, at) for each in stretches for at in (each.started_at, each.ended_at)]
    texts += weekdays_of_records(records, zone)
    last = max((day_at(each.at, zone) for each in records), default=None)
    return _sources_of_known(texts, facts, request.roster, periods_of_records(records, zone), last)


def _sources_of_known(
    texts: Sequence[str],
    known: Iterable[KnownFact],
    people: frozenset[str],
    periods: frozenset[Period],
    today: date | None,
) -> Sources:
    facts = [each.fact for each in known]
    said = [text for fact in facts for text in (fact.text, fact.subject)]
    return sources_of([*texts, *said], people | {fact.speaker for fact in facts}, periods, today)


def _checked_gist(gist: str, turns: Sequence[Turn], sources: Sources, most: int) -> str:
    """Return the sentences of the gist that pass, at most `most` characters; empty if it only repeats the turns."""
    if is_transcript(gist, turns, ""):
        return ""
    kept = [each for each in sentences(gist) if not unfounded(each, sources) and not gives_orders(each)]
    return whole_sentences(" ".join(as_sentence(each, most) for each in kept), most)


def _said_of_themselves(facts: Iterable[Fact], turns: Sequence[Turn]) -> tuple[Fact, ...]:
    """Return what people said of themselves, unless they deny something in a later turn: it may have been that."""
    denied_in = {
        plain(part.speaker): turn.seq
        for turn in turns
        for part in turn.parts
        if any(may_deny(said) for _, said in clauses(part.text))
    }
    return tuple(
        each
        for each in facts
        if each.note_id is None and each.subject == each.speaker and each.turns[-1] >= denied_in.get(each.speaker, 0)
    )


def _says_something(turns: Sequence[Turn]) -> bool:
    """Return whether anybody says something in these turns that asks to be kept."""
    spoken = [part.text for turn in turns if turn.kind is not TurnKind.ASSISTANT for part in turn.parts]
    return any(meaning(each).weight > 1.0 for text in spoken for each in sentences(text))
