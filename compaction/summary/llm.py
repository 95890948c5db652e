"""Folds a batch with a text model. Under `ledger` with one call: its gist and facts, checked, joined with the
extractor's. Under `recursive` the model retells the summary, see `summarisers.recursive`.

The model is good at saying what matters in few words and bad at names, numbers and who said what. So every fact
is tied to a turn, takes its speaker and time from there, and is dropped when it uses a name or a number that has
no source; and the sentences that the extractor would have kept are added where the model left them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compaction.errors import SummaryRefusedError
from compaction.language.claims import claim_of, corrects
from compaction.language.wording import as_sentence, concepts, plain, sentences, whole_sentences, words
from compaction.model import Fact, Strategy, TurnKind
from compaction.summary.answer import parse_answer
from compaction.summary.assistant_facts import supersede_own_facts
from compaction.summary.extractive import (
    FACTS_CHARS,
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
    from compaction.summary.port import FoldRequest, KnownFact

# A fact of the extractor is left out when one of the model's says so much of it, with all of its values.
_TOLD_ALREADY = 0.5
# Of what a fact is about, what its turn must say. A good paraphrase keeps names, numbers and things.
_SAID_SHARE = 0.34
_BEGINNING = 4


class LlmSummariser:
    """The summariser behind any `Completion`. One fold at a time a session; holds nothing between folds but whether
    this endpoint keeps to JSON."""

    def __init__(self, completion: Completion, *, max_output_tokens: int, prompts_dir: Path | None = None) -> None:
        texts = PromptTexts(prompts_dir)
        self._completion = completion
        self._max_output_tokens = max_output_tokens
        self._prompts = LedgerPrompts(texts)
        self._retelling = RecursivePrompts(texts)
        self._structured = True

    @property
    def name(self) -> str:
        """Return the kind."""
        return "llm"

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""
        return self._completion.model

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the fold of one batch. Raises CompletionError and SummaryRefusedError."""
        if request.strategy is Strategy.RECURSIVE:
            retelling = RecursiveFold(
                self._completion, self._retelling, request, max_output_tokens=self._max_output_tokens
            )
            return await retelling.fold()
        prompt = self._prompts.write(request, structured=self._structured, max_output_tokens=self._max_output_tokens)
        answer = await self._completion.complete(prompt.request)
        try:
            told = parse_answer(answer, request.turns, labels=self._prompts.labels)
            checked = _checked(told.facts, request, prompt.offered)
            gist = _checked_gist(told.gist, request)
            if not gist and not checked:
                raise SummaryRefusedError("Nothing of the model's answer has a source in what was said.")
        except SummaryRefusedError:
            # Asked the same again, a model without chance in it answers the same. An endpoint without structured output
            # may do better with lines, too, and the other way round.
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


def _checked(told: Iterable[ModelFact], request: FoldRequest, offered: Sequence[KnownFact]) -> list[Fact]:
    """Return the model's facts that stand on what was said, with speaker and time from their turns."""
    turns = {turn.seq: turn for turn in request.turns}
    around = _common_ground(request)
    by_people = people_claims(request.turns, request.known, request.before)
    facts: list[Fact] = []
    for each in told:
        turn = next((turn for seq, turn in turns.items() if seq == each.turn_seq), None)
        if turn is None:
            continue
        fact = _fact(each, turn, request, around, offered)
        if fact is not None and turn.kind is TurnKind.ASSISTANT:
            fact = supersede_own_facts(fact, request.known) if by_people.is_new(fact) else None
        if fact is not None and all(fact.text != known.text for known in facts):
            facts.append(fact)
    return facts[:MODEL_FACTS]


def _fact(
    told: ModelFact, turn: Turn, request: FoldRequest, around: Ground, offered: Sequence[KnownFact]
) -> Fact | None:
    part = best_matching_part(told.text, turn)
    if part is None:
        return None
    bare = strip_speaker(told.text, part, request.roster)
    if bare is None:
        return None
    if not has_content(part.text, name_words(request.roster)):
        # Small models make a fact of every turn, also of 'She was fine, really'.
        return None
    text = as_sentence(bare, MAX_FACT_CHARS)
    if not _is_said_in(text, turn) or ungrounded(text, around | turn_ground([turn])):
        return None
    fact = Fact(turn.seq, told.slot, plain(part.speaker), turn.started_at, text)
    claim = claim_of(fact)
    named = {
        offered[number - 1].ref
        for number in told.supersedes
        # A number alone is easily invented; what replaces a fact speaks of the same thing.
        if 0 < number <= len(offered) and claim.about.all & offered[number - 1].claim.about.all
    }
    recognised = {known.ref for known in request.known if corrects(claim, known.claim)}
    return Fact(fact.turn_seq, fact.slot, fact.speaker, fact.at, text, tuple(sorted(named | recognised)))


def _is_said_in(text: str, turn: Turn) -> bool:
    """Return whether enough of what a fact is about was said in the turn that it cites: small models make lists of
    names and key words, and cite any turn for them. Words are compared by how they begin, in any language."""
    about = {word[:_BEGINNING] for word in concepts(text).all}
    said = {word[:_BEGINNING] for part in turn.parts for word in words(part.text)}
    if " " not in text and text.isascii():
        # One word states nothing.
        return False
    # Some writings have no spaces between words, so nothing can be compared.
    return bool(about) and (" " not in text or len(about & said) >= _SAID_SHARE * len(about))


def _checked_gist(gist: str, request: FoldRequest) -> str:
    """Return the sentences of the gist that have a source, at most 300 characters; empty when none has, or when it
    only repeats the turns."""
    if is_transcript(gist, request):
        return ""
    ground = _common_ground(request) | turn_ground(request.turns)
    kept = " ".join(as_sentence(each, MAX_GIST_CHARS) for each in sentences(gist) if not ungrounded(each, ground))
    return whole_sentences(kept, MAX_GIST_CHARS)


def _common_ground(request: FoldRequest) -> Ground:
    said = [request.previous or "", *request.roster]
    said += [text for note in request.notes for text in (note.who, note.what)]
    return ground_of(said)


def _joined(told: list[Fact], request: FoldRequest) -> tuple[Fact, ...]:
    """Return the model's facts and those of the extractor's that they lack, in the order of talk."""
    chosen = list(told)
    room = FACTS_CHARS - sum(len(fact.attributed_text) + 1 for fact in chosen)
    extracted = extract_facts(
        request.turns, request.notes, start=request.start, known=request.known, before=request.before
    )
    for fact in extracted:
        length = len(fact.attributed_text) + 1
        if len(chosen) < MAX_FACTS and length <= room and not any(_covers(one, fact) for one in told):
            chosen.append(fact)
            room -= length
    return tuple(sorted(chosen, key=lambda fact: (fact.note_id is not None, fact.turn_seq)))


def _covers(told: Fact, extracted: Fact) -> bool:
    if told.turn_seq != extracted.turn_seq or extracted.note_id is not None:
        return False
    one, other = concepts(told.text), concepts(extracted.text)
    shared = len(one.all & other.all) / max(1, len(other.all))
    return other.values <= one.values and shared >= _TOLD_ALREADY
