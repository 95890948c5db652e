"""The extractive summariser: selects the sentences of a batch that are worth keeping. No model, deterministic.

The score of a sentence is the number of its concepts that no chosen sentence has yet; figures and names count twice.
Cues of a decision or of something personal raise the score, and a question lowers it. The score is divided by length **
0.7, so that short and dense sentences win. Sentences are chosen greedily until the segment is full, and kept word for
word with their speakers. Source: design note 'summaries and recall', method 5. A batch takes about 2 ms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compaction.language.claims import FactClaim, claim_of, corrects, with_reference
from compaction.language.elliptic import SpokenSentence, find_reference
from compaction.language.wording import (
    Concepts,
    as_sentence,
    asks,
    asks_for_a_nod,
    base,
    concepts,
    durability,
    is_passing,
    kind_of,
    plain,
    sentences,
    without_preamble,
    words,
)
from compaction.model import Fact, FactKind, Segment, SegmentId, SessionId, Strategy, TurnKind
from compaction.notes import condense_notes
from compaction.summary.assistant_facts import PeopleClaims, supersede_own_facts
from compaction.summary.ledger import SegmentLedger
from compaction.summary.port import (
    CHAPTER_FACTS,
    MAX_CHAPTER_GIST_CHARS,
    MAX_FACT_CHARS,
    MAX_FACTS,
    MAX_GIST_CHARS,
    ChapterFold,
    Fold,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compaction.model import Note, Seq, Turn, TurnPart
from compaction.summary.port import ChapterRequest, FoldRequest, KnownFact

# The most characters of facts per batch. A transcript of ten turns has about a thousand, so everything but filler fits.
FACTS_CHARS = 1_000
# Long sentences carry more information, but less than in proportion to their length. Measured in the design note.
_LENGTH_EXPONENT = 0.7
# The bot's sentences count half, because they mostly repeat what people said to the bot.
_ASSISTANT_WEIGHT = 0.5
_VALUE_WEIGHT = 2.0
# The `Fold.form` of a paragraph that was made without a model.
_PARAGRAPH = Strategy.RECURSIVE.value
# The most characters of a quoted earlier sentence that explains what a sentence without a subject is about.
_REFERENCE_CHARS = 120
# A sentence with a lower value than this is filler. Each meaningful word counts 1, each figure or name counts 2.
_LEAST_WORTH = 2.0
_LEAST_WORTH_WITHOUT_CUES = 3.0


@dataclass(frozen=True, slots=True)
class _Candidate:
    claim: FactClaim
    weight: float
    # Position in the batch. It keeps the order of talk and breaks ties.
    position: int
    by_bot: bool = False


class ExtractiveSummariser:
    """The summariser that needs no model. It is used while the model fails."""

    @property
    def name(self) -> str:
        """Return the kind of summariser."""
        return "extractive"

    @property
    def model(self) -> str:
        """Return an empty string, because no model is used."""
        return ""

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the batch's best sentences as facts, and the best of these as its gist. Never fails."""
        if request.strategy is Strategy.RECURSIVE:
            return extract_paragraph(request)
        facts = extract_facts(
            request.turns, request.notes, start=request.start, known=request.known, before=request.before
        )
        return Fold(gist=make_gist(facts, request.turns), facts=facts)

    async def fold_chapter(self, request: ChapterRequest) -> ChapterFold:
        """Return the chapter that `extract_chapter` makes. Never fails."""
        return extract_chapter(request)


def extract_chapter(request: ChapterRequest) -> ChapterFold:
    """Return a chapter without a model: each part's first sentence in an equal share, and the weightiest facts."""
    share = MAX_CHAPTER_GIST_CHARS // len(request.parts)
    beginnings = [as_sentence(next(iter(sentences(part.gist)), part.gist), share - 1) for part in request.parts]
    weightiest = sorted((fact for part in request.parts for fact in part.facts), key=lambda each: -each.fact.importance)
    return ChapterFold(
        gist=" ".join(dict.fromkeys(beginnings)),
        refs=tuple(each.ref for each in weightiest[:CHAPTER_FACTS]),
    )


def extract_paragraph(request: FoldRequest) -> Fold:
    """Return a paragraph made of the previous summary and the batch. Used by the recursive strategy while the model
    fails.

    The sentences are chosen among the previous sentences and the batch's facts, as the ledger chooses among segments.
    """
    before = [] if request.previous is None else [_temporary_segment(request, request.previous, (), form=_PARAGRAPH)]
    known = SegmentLedger(before)
    facts = extract_facts(
        request.turns, request.notes, start=request.start, known=known.known_facts(), before=request.before
    )
    rendered = known.with_segment(_temporary_segment(request, empty_gist(request.turns), facts)).render()
    assert rendered is not None, "it has a segment"
    return Fold(gist=rendered.text, facts=(), form=_PARAGRAPH)


def _temporary_segment(request: FoldRequest, gist: str, facts: tuple[Fact, ...], *, form: str = "") -> Segment:
    """Return a segment that is only rendered and never stored. It has the time of the batch."""
    at = min((turn.started_at for turn in request.turns), default=0.0)
    return Segment(
        id=SegmentId(form or "batch"),
        session_id=SessionId(""),
        start=request.start,
        end=request.start,
        started_at=at,
        ended_at=at,
        gist=gist,
        facts=facts,
        note_ids=(),
        summariser=form,
    )


def extract_facts(
    turns: Sequence[Turn],
    notes: Sequence[Note] = (),
    *,
    start: Seq,
    known: Sequence[KnownFact] = (),
    before: Sequence[Turn] = (),
) -> tuple[Fact, ...]:
    """Return the facts of a batch in the order of talk, at most 1,000 characters and 16 facts.

    `start`: the batch's first seq, used for facts from notes. A fact that corrects one of `known` names it in
    `supersedes`. If two facts of the batch contradict each other, only the later one is kept. `before`: the turns just
    before the batch, to which a correction in the batch may refer.
    """
    spoken = tuple(_spoken(turns, before))
    stated = _people_claims(spoken, known, turns)
    candidates = [each for each in spoken if not each.by_bot or stated.is_new(each.claim.fact)]
    candidates += _seen(notes, start)
    chosen = sorted(_best(candidates), key=lambda each: each.position)
    return tuple(_superseding(each, known) for each in chosen)


def people_claims(turns: Sequence[Turn], known: Sequence[KnownFact], before: Sequence[Turn]) -> PeopleClaims:
    """Return the claims of the people in a batch and the claims known from earlier batches."""
    return _people_claims(tuple(_spoken(turns, before)), known, turns)


def _people_claims(spoken: Iterable[_Candidate], known: Iterable[KnownFact], turns: Iterable[Turn]) -> PeopleClaims:
    claims = (*(each.claim for each in known), *(each.claim for each in spoken if not each.by_bot))
    speakers = {claim.fact.speaker for claim in claims} | {part.speaker for turn in turns for part in turn.parts}
    return PeopleClaims(claims, name_words(speakers))


def make_gist(facts: Sequence[Fact], turns: Sequence[Turn]) -> str:
    """Return the most important facts of a batch in at most 300 characters, or who spoke if there are no facts."""
    ranked = sorted(facts, key=lambda fact: -durability(fact.text) * _worth(concepts(fact.text)) / _cost(fact.text))
    chosen: list[Fact] = []
    room = MAX_GIST_CHARS
    for fact in ranked:
        length = len(fact.attributed_text) + 1
        if length <= room:
            chosen.append(fact)
            room -= length
    if chosen:
        return " ".join(fact.attributed_text for fact in facts if fact in chosen)
    return empty_gist(turns)


def empty_gist(turns: Sequence[Turn]) -> str:
    """Return the gist of turns without facts. It says who spoke."""
    speakers = list(dict.fromkeys(part.speaker for turn in turns for part in turn.parts))
    who = ", ".join(speakers[:8])
    return as_sentence(f"{who} talked; nothing in it needs keeping" if who else "Nothing was said", MAX_GIST_CHARS)


def _spoken(turns: Iterable[Turn], before: Iterable[Turn]) -> Iterable[_Candidate]:
    """Yield the sentences that are not filler, in order.

    A sentence that can't be understood alone ('No, it's Friday now') is joined with the earlier sentence that it is
    about. If that earlier sentence is a question, the question is not yielded separately.
    """
    earlier = list(_sentences(before))
    said = [*earlier, *_sentences(turns)]
    roster = name_words(part.speaker for _, part, _ in said)
    references = _references(said)
    answered = {position for position in references.values() if asks(said[position][2])}
    for position in range(len(earlier), len(said)):
        turn, part, sentence = said[position]
        text = as_sentence(sentence, MAX_FACT_CHARS)
        about = references.get(position)
        if about is not None:
            subject = as_sentence(said[about][2], _REFERENCE_CHARS)
            text = with_reference(text, subject, max_chars=MAX_FACT_CHARS)
        if not text or position in answered or _is_filler(text, roster):
            continue
        by_bot = turn.kind is TurnKind.ASSISTANT
        weight = durability(text) * (_ASSISTANT_WEIGHT if by_bot else 1.0)
        kind = FactKind.LASTING if turn.kind is TurnKind.MEMBERSHIP else kind_of(text)
        fact = Fact(turns=(turn.seq,), kind=kind, speaker=plain(part.speaker), at=turn.started_at, text=text)
        yield _Candidate(claim_of(fact), weight, position, by_bot)


def name_words(names: Iterable[str]) -> frozenset[str]:
    """Return the words of these names in their base form."""
    return frozenset(base(word) for name in names for word in words(name))


def has_content(text: str, roster: frozenset[str]) -> bool:
    """Return whether a text has a sentence that is not filler. `roster`: words of the names of the people present."""
    # Some scripts have no spaces between words, so their words can't be counted.
    return (" " not in text and not text.isascii()) or any(
        not _is_filler(without_preamble(sentence), roster) for sentence in sentences(text)
    )


def _is_filler(text: str, roster: frozenset[str]) -> bool:
    """Return whether a sentence has too few meaningful words, not counting the names of the people present.

    A sentence without figures, names or cues needs more meaningful words.
    """
    about = concepts(text)
    values = about.values - roster
    worth = len(about.topics - roster) + _VALUE_WEIGHT * len(values)
    open_question = asks(text) and not is_passing(text)
    least = _LEAST_WORTH if values or open_question or durability(text) > 1.0 else _LEAST_WORTH_WITHOUT_CUES
    return worth < least or (not values and asks_for_a_nod(text))


def _sentences(turns: Iterable[Turn]) -> Iterable[tuple[Turn, TurnPart, str]]:
    for turn in turns:
        if turn.kind is not TurnKind.EFFECT:
            for part in turn.parts:
                for sentence in sentences(part.text):
                    yield turn, part, without_preamble(sentence)


def _references(said: Sequence[tuple[Turn, TurnPart, str]]) -> dict[int, int]:
    """Return which earlier sentence each sentence without a subject is about. Both are given by position."""
    sayings = [SpokenSentence(turn.seq, part.speaker_id, sentence) for turn, part, sentence in said]
    found: dict[int, int] = {}
    for position in range(len(sayings)):
        about = find_reference(sayings, position)
        if about is not None:
            # A correction of a correction is about the same sentence as the first correction.
            found[position] = found.get(about, about)
    return found


def _seen(notes: Sequence[Note], start: Seq) -> Iterable[_Candidate]:
    for position, note in enumerate(condense_notes(notes)):
        text = as_sentence(f"On {plain(note.who)}'s screen: {plain(note.what)}", MAX_FACT_CHARS)
        fact = Fact(
            turns=(start,),
            kind=FactKind.DOING,
            speaker=plain(note.who),
            at=note.at,
            text=text,
            note_id=note.id,
        )
        yield _Candidate(claim_of(fact), 1.0, 1_000_000 + position)


def _best(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Choose the candidates that add most, one after the other, within the limits of a segment."""
    left = list(candidates)
    chosen: list[_Candidate] = []
    covered: set[str] = set()
    room = FACTS_CHARS
    while left and len(chosen) < MAX_FACTS:
        gain, _, best = max((_gain(each, covered), -each.position, each) for each in left)
        if gain <= 0:
            break
        left.remove(best)
        length = len(best.claim.fact.attributed_text) + 1
        if length > room or any(
            later.position > best.position and (best.by_bot or not later.by_bot) and corrects(later.claim, best.claim)
            for later in candidates
        ):
            continue
        chosen.append(best)
        covered |= best.claim.about.all
        room -= length
    return chosen


def _gain(candidate: _Candidate, covered: set[str]) -> float:
    about = candidate.claim.about
    new = Concepts(about.topics - covered, about.figures - covered, about.names - covered)
    return candidate.weight * _worth(new) / _cost(candidate.claim.fact.text)


def _worth(about: Concepts) -> float:
    return len(about.topics) + _VALUE_WEIGHT * len(about.values)


def _cost(text: str) -> float:
    return float(max(len(text), 12) ** _LENGTH_EXPONENT)


def _superseding(candidate: _Candidate, known: Sequence[KnownFact]) -> Fact:
    fact = candidate.claim.fact
    refs = tuple(each.ref for each in known if corrects(candidate.claim, each.claim))
    if not refs:
        return fact
    superseding = replace(fact, supersedes=refs)
    return supersede_own_facts(superseding, known) if candidate.by_bot else superseding
