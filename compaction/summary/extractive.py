"""The summariser without a model: it quotes the densest sentences of each person. Deterministic; about 2 ms a batch.

A quote is one person's consecutive words of one turn, `Ada: "…"`; nothing is joined or rewritten. A quote is worth the
names of the session and the figures in it, for its length. It is worth more if it has the length of a clause, if it
answers a question, or if somebody takes it up with a word or two, as people do with decisions and promises. Quotes are
chosen by maximal marginal relevance (Carbonell and Goldstein, 1998), with a share for each stretch of the evening. The
only rules about language are what words and sentences are.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log, sqrt
from typing import TYPE_CHECKING

from compaction.language.terms import terms
from compaction.language.text import (
    as_sentence,
    count_words,
    ends_a_sentence,
    is_question,
    names_in,
    plain,
    sentences,
    whole_words,
    words,
)
from compaction.model import EXTRACTIVE, Fact, FactKind, Turn
from compaction.notes import condense_notes, describe_note
from compaction.summary.port import (
    MAX_FACT_CHARS,
    MAX_GIST_CHARS,
    MAX_HEADING_CHARS,
    MAX_SUMMARY_CHARS,
    NOTHING_KEPT,
    Fold,
    FoldRequest,
)
from compaction.window import BATCH_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# Quotes of one batch. A paragraph takes about one of them, so that the best ones of the evening can be chosen.
_QUOTES = 3
_MAX_QUOTE_CHARS = 180
# Words of a clause: shorter sentences lack who or what, longer ones wander.
_CLAUSE = range(6, 26)
_LEAST_WORTH = 0.06
_FIGURE = 1.5  # as hard to guess as a name that nobody has said twice
_ANSWERS = 1.3
_TAKEN_UP = 1.3
_QUESTION = 0.6
# A turn of so few words takes up what was said before.
_SHORT_TURN = 4
# How much a likeness to a chosen quote takes from another one.
_LIKENESS = 0.8
# Sentences and clauses of one turn that are looked at. A turn of a minute has 20.
_MOST_PIECES = 80
# Only the best so many are compared with each other.
_SHORTLIST = 60
# The evening falls into so many stretches, each with an equal share of the paragraph.
_STRETCHES = 6
# A batch whose words are at least so near to those of the turns before it goes on with their chapter: cosine (Hearst,
# TextTiling, 1997). Of two evenings of a game a fifth of the batches begins one, of four meetings a twentieth.
_LEAST_COHESION = 0.06
# Of what a heading may be made, the best first: nothing that people told of themselves, or in confidence, or showed.
_HEADED = (FactKind.DOING, FactKind.DECISION, FactKind.OPEN, FactKind.OTHER)
_CLAUSES = re.compile(r"[^,;:–—、，；：،؛]+[,;:–—、，；：،؛]*\s*")


class ExtractiveSummariser:
    """The summariser that needs no model."""

    name = EXTRACTIVE
    model = ""

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the batch's best quotes as facts, and a paragraph of the best of all. Never fails."""
        # Of a long evening it may take a tenth of a second, in which nobody would be heard.
        return await asyncio.to_thread(_fold, request)


def _fold(request: FoldRequest) -> Fold:
    quotes = extract_quotes(request)
    known = [each.fact for each in request.known]
    return Fold(make_gist(quotes), quotes, compose_paragraph([*known, *quotes]), EXTRACTIVE)


def extract_quotes(request: FoldRequest) -> tuple[Fact, ...]:
    """Return the best quotes of a batch in the order of talk, and what its notes show."""
    # What people say to the bot is no part of the talk.
    said = [turn for turn in (*request.before, *request.turns) if turn.is_talk and turn.parts]
    speakers = {part.speaker for turn in said for part in turn.parts}
    weights = _Weights([*(turn.text for turn in said), *(each.fact.text for each in request.known)], speakers)
    factors = _factors(said)
    own = (turn for turn in said if turn.seq >= request.start)
    found = [each for turn in own for each in _candidates(turn, weights, factors[turn.seq])]
    chosen = _choose([each for each in found if each.worth >= _LEAST_WORTH], most=_QUOTES)
    best = max((each.worth for each in chosen), default=0.0)
    quotes = (
        replace(each.fact, importance=3 if each.worth > 0.8 * best else 2 if each.worth > 0.5 * best else 1)
        for each in sorted(chosen, key=lambda each: each.place)
    )
    seen = (
        Fact(
            turns=(request.start,),
            text=as_sentence(f"On {describe_note(note, new)}", MAX_FACT_CHARS),
            kind=FactKind.DOING,
            importance=1,
            speaker=note.who,
            at=note.at,
            note_id=note.id,
        )
        for note, new in condense_notes(request.notes)
        if new
    )
    return (*quotes, *seen)


def quote_turns(turns: tuple[Turn, ...], *, max_chars: int) -> str:
    """Return the best quotes of these turns that fit, in the order of talk; empty if nothing is worth quoting."""
    batches = (turns[start : start + BATCH_SIZE] for start in range(0, len(turns), BATCH_SIZE))
    quotes = [fact for batch in batches for fact in extract_quotes(FoldRequest(batch[0].seq, batch))]
    return compose_paragraph(quotes, max_chars=max_chars) if quotes else ""


def compose_paragraph(facts: Sequence[Fact], *, max_chars: int = MAX_SUMMARY_CHARS) -> str:
    """Return the best facts as they stand, in the order of talk, with a share for each stretch of the evening."""
    ordered = sorted((fact for fact in facts if fact.text), key=lambda fact: (fact.turn_seq, fact.at))
    if not ordered:
        return NOTHING_KEPT
    weights = _Weights([fact.text for fact in ordered], {fact.speaker for fact in ordered})
    left = [
        _Candidate((at, 0), fact, frozenset(words(fact.text)), weights.worth(fact.text) * fact.importance)
        for at, fact in enumerate(ordered)
    ]
    first, last = ordered[0].turn_seq, ordered[-1].turn_seq + 1
    stretch = (last - first) / _STRETCHES
    chosen: list[_Candidate] = []
    # The newest stretch first. What is left of the shares goes to the best of all.
    for shares in range(_STRETCHES, -1, -1):
        begins, ends = (first + (shares - 1) * stretch, first + shares * stretch) if shares else (first, last)
        within = [each for each in left if begins <= each.fact.turn_seq < ends]
        room = max_chars - sum(len(each.fact.text) + 1 for each in chosen)
        taken = _choose(within, chars=room // max(1, shares), beside=chosen)
        chosen += taken
        left = [each for each in left if each not in taken]
    return " ".join(each.fact.text for each in sorted(chosen, key=lambda each: each.place)) or NOTHING_KEPT


def make_gist(facts: Iterable[Fact]) -> str:
    """Return as many of these facts as fit into a gist, the most important first, in the order of talk."""
    kept: list[Fact] = []
    for fact in sorted(facts, key=lambda fact: (-fact.importance, fact.turn_seq)):
        if fact.text and sum(len(each.text) + 1 for each in kept) + len(fact.text) <= MAX_GIST_CHARS:
            kept.append(fact)
    return " ".join(fact.text for fact in sorted(kept, key=lambda fact: fact.turn_seq)) or NOTHING_KEPT


def tells_of_people(facts: Iterable[Fact]) -> bool:
    """Return whether what was made of these facts may tell what people said of themselves, or in confidence."""
    return any(fact.kind in {FactKind.LASTING, FactKind.CONFIDED} for fact in facts)


def make_heading(facts: Iterable[Fact], gist: str) -> str:
    """Return a heading for what has these facts and this gist, the beginning of one; empty if there is nothing."""
    known = list(facts)
    told = [fact for fact in known if fact.text and fact.kind in _HEADED and fact.note_id is None]
    best = min(told, key=lambda fact: (-fact.importance, _HEADED.index(fact.kind), fact.turn_seq), default=None)
    return as_heading(best.text if best is not None else "" if tells_of_people(known) or gist == NOTHING_KEPT else gist)


def as_heading(text: str) -> str:
    """Return a text in one line of at most 80 characters, without the stop at its end. A quote is closed."""
    cut = as_sentence(text, MAX_HEADING_CHARS - 2).rstrip(".…") if text else ""
    return f'{cut}…"' if cut.count('"') % 2 else cut


def goes_on(request: FoldRequest) -> bool:
    """Return whether a batch goes on with the chapter so far, by its words."""
    before, now = (
        Counter(term for turn in turns for term in terms(turn.text)) for turns in (request.before, request.turns)
    )
    shared = sum(count * before[term] for term, count in now.items())
    length = sqrt(sum(each**2 for each in before.values()) * sum(each**2 for each in now.values()))
    return bool(request.heading) and shared >= _LEAST_COHESION * length


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Something that may be chosen. `place`: two of the same turn's part are never chosen together."""

    place: tuple[int, int]
    fact: Fact
    words: frozenset[str]
    worth: float


def _factors(said: Sequence[Turn]) -> dict[int, float]:
    """Return what its neighbours make each turn worth: it answers a question, or somebody takes it up."""
    factors = {int(turn.seq): 1.0 for turn in said}
    for turn, after in pairwise(said):
        if turn.parts[-1].speaker_id == after.parts[0].speaker_id:
            continue
        if is_question(turn.text):
            factors[after.seq] *= _ANSWERS
        elif count_words(after.text) <= _SHORT_TURN and not is_question(after.text):
            factors[turn.seq] *= _TAKEN_UP
    return factors


def _candidates(turn: Turn, weights: _Weights, factor: float) -> list[_Candidate]:
    """Return each run of whole sentences, or of clauses of a long one, that is short enough for a quote."""
    found: list[_Candidate] = []
    for number, part in enumerate(turn.parts):
        pieces = [
            # One without a stop or a comma for so long is quoted from its beginning.
            whole_words(piece.strip(), _MAX_QUOTE_CHARS)
            for sentence in sentences(part.text)
            for piece in ([sentence] if len(sentence) <= _MAX_QUOTE_CHARS else _CLAUSES.findall(sentence))
        ][:_MOST_PIECES]
        for first in range(len(pieces)):
            quote = ""
            for piece in pieces[first:]:
                quote = f"{quote} {piece}".strip()
                if len(quote) > _MAX_QUOTE_CHARS:
                    break
                worth = weights.worth(quote) * factor * (_QUESTION if is_question(quote) else 1.0)
                text = _quoted(part.speaker, quote)
                fact = Fact((turn.seq,), text, FactKind.OTHER, 1, (), part.speaker, turn.started_at)
                found.append(_Candidate((turn.seq, number), fact, frozenset(words(quote)), worth))
    return found


def _quoted(speaker: str, quote: str) -> str:
    """Return a quote with its speaker. Within it, quotation marks are single ones."""
    inner = re.sub(r"[\"“”„«»]", "'", quote).rstrip(",;:–— ")
    return f'{plain(speaker)}: "{inner}"' if ends_a_sentence(inner) else f'{plain(speaker)}: "{inner}".'


class _Weights:
    """What words are worth in these texts. Names are words that stand with a capital letter within a sentence, but not
    those of the speakers, which people say in greeting.
    """

    def __init__(self, texts: Sequence[str], speakers: Iterable[str]) -> None:
        self._speakers = tuple(name.casefold() for name in speakers)
        self._names = Counter(name.casefold() for text in texts for name in names_in(text))
        self._said_in = Counter(word for text in texts for word in set(words(text)))
        self._texts = len(texts)

    def worth(self, text: str) -> float:
        """Return how much a text says for its length."""
        length = count_words(text)
        clause = min(1.0, length / _CLAUSE.start) ** 2 * min(1.0, _CLAUSE.stop / max(1, length))
        return float(sum(map(self._weight, dict.fromkeys(words(text)))) / max(len(text), 30) ** 0.7 * clause)

    def _weight(self, word: str) -> float:
        if any(map(str.isdigit, word)):
            return _FIGURE
        count = self._names[word]
        if count * 2 > self._said_in[word] and not any(name.startswith(word) for name in self._speakers):
            return 1.0 + log(1 + count)
        # A word that many texts have tells little.
        return 0.25 * log((1 + self._texts) / (1 + self._said_in[word]))


def _choose(
    found: Iterable[_Candidate], *, most: int | None = None, chars: int | None = None, beside: Sequence[_Candidate] = ()
) -> list[_Candidate]:
    """Return the best candidates that fit, each the least like those chosen before and `beside` them."""
    chosen: list[_Candidate] = []
    shortlist = sorted(found, key=lambda each: (-each.worth, each.place, each.fact.text))[:_SHORTLIST]
    left = [(each, max((_likeness(each, other) for other in beside), default=0.0)) for each in shortlist]
    while left and (most is None or len(chosen) < most):
        best, _ = max(left, key=lambda each: each[0].worth * (1.0 - _LIKENESS * each[1]))
        left = [each for each in left if each[0] is not best]
        if chars is not None and len(best.fact.text) > chars:
            continue
        chosen.append(best)
        chars = None if chars is None else chars - len(best.fact.text) - 1
        left = [(each, max(near, _likeness(each, best))) for each, near in left if each.place != best.place]
        # What was said again in the same words takes no room twice.
        left = [(each, near) for each, near in left if near < 1.0]
    return chosen


def _likeness(one: _Candidate, other: _Candidate) -> float:
    return len(one.words & other.words) / max(1, min(len(one.words), len(other.words)))
