"""The summariser that asks a text model for a gist and facts (ledger, one call) or for a paragraph (`recursive`).

A model is good at saying briefly what matters, and bad at names, numbers and who said what. Therefore each fact of the
model cites a turn, and its speaker and time are taken from that turn. A fact with a name or number that has no source
is dropped. If the model left out sentences that the extractive summariser would keep, they are added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.errors import SummaryRefusedError
from compaction.language.claims import claim_of, corrects
from compaction.language.wording import as_sentence, concepts, plain, sentences, whole_sentences, words
from compaction.model import Fact, Seq, Strategy, TurnKind
from compaction.summary.answer import parse_answer
from compaction.summary.assistant_facts import supersede_own_facts
from compaction.summary.extractive import (
    FACTS_CHARS,
    extract_chapter,
    extract_facts,
    has_content,
    make_gist,
    name_words,
    people_claims,
)
from compaction.summary.fold_prompts import MODEL_FACTS, LedgerPrompts, RecursivePrompts
from compaction.summary.grounding import Ground, best_matching_part, ground_of, strip_speaker, turn_ground, ungrounded
from compaction.summary.port import MAX_FACT_CHARS, MAX_FACTS, MAX_GIST_CHARS, Fold
from compaction.summary.prompt_texts import PromptTexts
from compaction.summary.recursive import RecursiveFold, is_transcript

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from compaction.model import Turn
    from compaction.ports import Completion
    from compaction.summary.answer import ModelFact
    from compaction.summary.port import ChapterFold, ChapterRequest, FoldRequest, KnownFact

# An extracted fact is left out if a fact of the model has at least this share of its concepts and all of its values.
_COVERED_SHARE = 0.5
# A fact is dropped if its turn has less than this share of its concepts. A good paraphrase keeps names, numbers and
# things.
_SAID_SHARE = 0.34
_BEGINNING = 4


class LlmSummariser:
    """The summariser that uses a `Completion`.

    Between folds it remembers only whether to ask this endpoint for JSON or for plain lines.
    """

    def __init__(self, completion: Completion, *, max_output_tokens: int, prompts_dir: Path | None = None) -> None:
        texts = PromptTexts(prompts_dir)
        self._completion = completion
        self._max_output_tokens = max_output_tokens
        self._prompts = LedgerPrompts(texts)
        self._recursive_prompts = RecursivePrompts(texts)
        self._structured = True

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
        if request.strategy is Strategy.RECURSIVE:
            recursive = RecursiveFold(
                self._completion, self._recursive_prompts, request, max_output_tokens=self._max_output_tokens
            )
            return await recursive.fold()
        prompt = self._prompts.write(request, structured=self._structured, max_output_tokens=self._max_output_tokens)
        answer = await self._completion.complete(prompt.request)
        try:
            parsed = parse_answer(answer, request.turns, labels=self._prompts.labels)
            checked = _checked(parsed.facts, request, prompt.offered)
            gist = _checked_gist(parsed.gist, request)
            if not gist and not checked:
                raise SummaryRefusedError("Nothing of the model's answer has a source in what was said.")
        except SummaryRefusedError:
            # A deterministic model would give the same answer again, so the retry asks for the other format. Some
            # endpoints also answer better in lines than in JSON.
            self._structured = not self._structured
            raise
        facts = _joined(checked, request)
        return Fold(
            gist=gist or make_gist(facts, request.turns),
            facts=facts,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            form=self._prompts.version,
        )

    async def fold_chapter(self, request: ChapterRequest) -> ChapterFold:
        """Return one chapter. Raises CompletionError and SummaryRefusedError."""
        return extract_chapter(request)


def _checked(facts_of_model: Iterable[ModelFact], request: FoldRequest, offered: Sequence[KnownFact]) -> list[Fact]:
    """Return those of the model's facts that have a source. Speaker and time are taken from the turns."""
    turns = {turn.seq: turn for turn in request.turns}
    around = _common_ground(request)
    by_people = people_claims(request.turns, request.known, request.before)
    facts: list[Fact] = []
    for each in facts_of_model:
        turn = turns.get(Seq(each.turn_seq))
        if turn is None:
            continue
        fact = _fact(each, turn, request, around, offered)
        if fact is not None and turn.kind is TurnKind.ASSISTANT:
            fact = supersede_own_facts(fact, request.known) if by_people.is_new(fact) else None
        if fact is not None and all(fact.text != known.text for known in facts):
            facts.append(fact)
    return facts[:MODEL_FACTS]


def _fact(
    model_fact: ModelFact, turn: Turn, request: FoldRequest, around: Ground, offered: Sequence[KnownFact]
) -> Fact | None:
    part = best_matching_part(model_fact.text, turn)
    if part is None:
        return None
    bare = strip_speaker(model_fact.text, part, request.roster)
    if bare is None:
        return None
    if not has_content(part.text, name_words(request.roster)):
        # Small models make a fact of every turn, even of 'She was fine, really', so turns without content are skipped.
        return None
    text = as_sentence(bare, MAX_FACT_CHARS)
    if not _is_said_in(text, turn) or ungrounded(text, around | turn_ground([turn])):
        return None
    fact = Fact((turn.seq,), model_fact.kind, plain(part.speaker), turn.started_at, text)
    claim = claim_of(fact)
    named = {
        offered[number - 1].ref
        for number in model_fact.supersedes
        # The model may have invented the number. A real correction shares concepts with the fact it replaces.
        if 0 < number <= len(offered) and claim.about.all & offered[number - 1].claim.about.all
    }
    recognised = {known.ref for known in request.known if corrects(claim, known.claim)}
    return Fact((fact.turn_seq,), fact.kind, fact.speaker, fact.at, text, tuple(sorted(named | recognised)))


def _is_said_in(text: str, turn: Turn) -> bool:
    """Return whether the cited turn contains enough of a fact's concepts.

    Small models make lists of names and key words and cite any turn for them. Words are compared by their first four
    letters, in any language.
    """
    about = {word[:_BEGINNING] for word in concepts(text).all}
    said = {word[:_BEGINNING] for part in turn.parts for word in words(part.text)}
    if " " not in text and text.isascii():
        # A single word is not a statement.
        return False
    # Some scripts have no spaces between words, so their words can't be compared.
    return bool(about) and (" " not in text or len(about & said) >= _SAID_SHARE * len(about))


def _checked_gist(gist: str, request: FoldRequest) -> str:
    """Return the sentences of the gist that have a source, at most 300 characters. Returns an empty text for a
    transcript.
    """
    if is_transcript(gist, request):
        return ""
    ground = _common_ground(request) | turn_ground(request.turns)
    kept = " ".join(as_sentence(each, MAX_GIST_CHARS) for each in sentences(gist) if not ungrounded(each, ground))
    return whole_sentences(kept, MAX_GIST_CHARS)


def _common_ground(request: FoldRequest) -> Ground:
    said = [request.previous or "", *request.roster]
    said += [text for note in request.notes for text in (note.who, note.what)]
    return ground_of(said)


def _joined(checked: list[Fact], request: FoldRequest) -> tuple[Fact, ...]:
    """Return the model's facts and the extracted facts that they don't cover, in the order of talk."""
    chosen = list(checked)
    room = FACTS_CHARS - sum(len(fact.attributed_text) + 1 for fact in chosen)
    extracted = extract_facts(
        request.turns, request.notes, start=request.start, known=request.known, before=request.before
    )
    for fact in extracted:
        length = len(fact.attributed_text) + 1
        if len(chosen) < MAX_FACTS and length <= room and not any(_covers(one, fact) for one in checked):
            chosen.append(fact)
            room -= length
    return tuple(sorted(chosen, key=lambda fact: (fact.note_id is not None, fact.turn_seq)))


def _covers(fact: Fact, extracted: Fact) -> bool:
    if fact.turn_seq != extracted.turn_seq or extracted.note_id is not None:
        return False
    one, other = concepts(fact.text), concepts(extracted.text)
    shared = len(one.all & other.all) / max(1, len(other.all))
    return other.values <= one.values and shared >= _COVERED_SHARE
