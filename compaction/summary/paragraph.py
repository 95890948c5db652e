"""Makes the summary without a model: what came before, what holds, and what goes on, each with its share. Pure.

What came before is told by thirds of the time, so that no part of an evening is lost: the names and subjects of each
third, and the sentences that add most to them. What holds are the standing facts, the most important first. The newest
batches are what goes on. The sentences are in the order of time, and consecutive words of one person are one sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import log
from typing import TYPE_CHECKING

from compaction.language.meaning import meaning
from compaction.language.text import as_sentence, ends_a_sentence, words
from compaction.model import FactKind, RenderedSentence, RenderedSummary
from compaction.summary.density import VALUE_WEIGHT, cost, density
from compaction.summary.port import MAX_FACT_CHARS
from compaction.summary.subjects import language_of_texts, rank_weights, subjects_in, subjects_sentence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from compaction.model import Fact, Importance, SegmentId, Seq

# The shares of the newest batches and of the standing facts. The rest, and what these leave, tells what came before.
_NOW_SHARE = 0.15
_HOLDS_SHARE = 0.2
_PARTS_OF_THE_TIME = 3
# The share of a third's room for the names and subjects of that third.
_SUBJECTS_SHARE = 0.65
_WORTH_OF_IMPORTANCE: Mapping[Importance, float] = {3: 4.0, 2: 1.0, 1: 0.3}
_WORTH_OF_KIND = {
    FactKind.LASTING: 1.2,
    FactKind.DECISION: 1.1,
    FactKind.OPEN: 0.8,
    FactKind.DOING: 0.7,
    FactKind.OTHER: 0.6,
}
# One person's two sentences that share this much of what they are about say the same; the later one stays.
_SAME = 0.75
# Beside the speaker and the words: ' said: ""', and as much again for an answer.
_QUOTE_CHARS = 9
# So many facts of so many stretches tell the language.
_READ = 4
# How often the room that is left is filled again.
_FILLED_AGAIN = 4
# A question with its answer, or a statement with what somebody says to it, as the extractive summariser keeps them.
_TAKEN_UP = re.compile(r"(?P<before>.+(?:(?P<asks>[?？؟])|[.!…])) (?P<who>(?:[^:?.!]|\.(?=\w)){1,40}): (?P<after>.+)$")


# Compared by identity, because two facts may have the same text.
@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A sentence that the summary may take. `at`: when it was said, UTC epoch seconds. `worth`: per length.

    Of its meaning, `about` (topics, names and values, in order), `names`, `values`, `negated` and `asks`.
    """

    text: str
    speaker: str
    quoted: bool
    kind: FactKind
    importance: Importance
    names: frozenset[str]
    values: frozenset[str]
    negated: bool
    asks: bool
    at: float
    segment_id: SegmentId
    turn_seqs: tuple[Seq, ...]
    refs: tuple[str, ...]
    worth: float
    about: tuple[str, ...]
    chars: int  # in the summary, with the space after it


def fact_candidate(segment_id: SegmentId, fact: Fact, *, ref: str, worth: float) -> Candidate:
    """Return the candidate of a segment's fact. `ref`: others name it so. `worth`: of the fact (`fact_worth`)."""
    said = meaning(fact.text)
    importance = fact.importance
    text = as_sentence(fact.text, MAX_FACT_CHARS)
    quoted = fact.quoted and fact.note_id is None
    return Candidate(
        text=text,
        speaker=fact.speaker,
        quoted=quoted,
        kind=fact.kind,
        importance=importance,
        names=said.names,
        values=said.values,
        negated=said.negated,
        asks=said.asks,
        at=fact.at,
        segment_id=segment_id,
        turn_seqs=() if fact.note_id is not None else fact.turns,
        refs=(ref,),
        worth=worth,
        about=tuple(sorted(said.about)),
        chars=len(text) + 1 + (len(fact.speaker) + _QUOTE_CHARS if quoted else 0),
    )


def fact_worth(fact: Fact) -> float:
    """Return how much a fact is worth to a summary, per length."""
    dense = density(meaning(fact.text), fact.text)
    return dense * _WORTH_OF_IMPORTANCE[fact.importance] * _WORTH_OF_KIND[fact.kind]


def gist_candidate(segment_id: SegmentId, turn_seqs: tuple[Seq, ...], at: float, text: str) -> Candidate:
    """Return the candidate of one sentence of a segment's or chapter's gist."""
    said = meaning(text)
    return Candidate(
        text=text,
        speaker="",
        quoted=False,
        kind=FactKind.OTHER,
        importance=2,
        names=said.names,
        values=said.values,
        negated=said.negated,
        asks=said.asks,
        at=at,
        segment_id=segment_id,
        turn_seqs=turn_seqs,
        refs=(),
        worth=density(said, text),
        about=tuple(sorted(said.about)),
        chars=len(text) + 1,
    )


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the time before the newest batches: a chapter, or a segment that no chapter holds yet.

    `told`: the sentences of its gist if a model wrote it; else there are none, and its facts and `subjects` tell of it.
    `batches`: how many batches it covers.
    """

    started_at: float
    ended_at: float
    told: tuple[Candidate, ...]
    facts: tuple[Candidate, ...]
    subjects: tuple[str, ...] = ()
    batches: int = 1


def compose(
    stretches: Sequence[Stretch], standing: Iterable[Candidate], newest: Sequence[Candidate], *, max_chars: int
) -> RenderedSummary | None:
    """Return the summary, or None if there is nothing to say. Deterministic.

    `stretches`: in the order of time. `standing`: facts that hold, the worthiest first, without those of `newest`.
    """
    choice = _Choice()
    choice.fill(sorted(newest, key=lambda each: (-each.worth, -each.at)), max_chars * _NOW_SHARE)
    holding = list(standing)
    choice.fill(holding, choice.chars + max_chars * _HOLDS_SHARE)
    room = max_chars - choice.chars
    parts = _by_time(stretches)
    named: set[str] = set()
    for part in parts:
        subjects = _subjects(part, named, int(room / len(parts) * _SUBJECTS_SHARE))
        weights = _weights(part)
        left = room / len(parts) - (len(subjects.text) + 1 if subjects is not None else 0)
        if subjects is not None:
            choice.add(subjects)
        told = [each for stretch in part for each in (stretch.told or stretch.facts)]
        choice.cover(told, choice.chars + left, weights)
    return _filled(choice, [*holding, *newest], max_chars) if choice.chosen else None


def _filled(choice: _Choice, more: Sequence[Candidate], max_chars: int) -> RenderedSummary:
    """Return the summary of the choice, with as many more sentences as fit.

    Words of one person that become one sentence take less room than counted, so the room that is left is counted anew.
    A sentence that comes between them takes more; then it is left out again.
    """
    rendered = _rendered(choice.chosen)
    for _ in range(_FILLED_AGAIN):
        choice.chars, before = len(rendered.text), len(choice.chosen)
        choice.fill(more, max_chars)
        fuller = _rendered(choice.chosen)
        while len(fuller.text) > max_chars:
            choice.chosen.pop()
            fuller = _rendered(choice.chosen)
        if len(choice.chosen) <= before:
            break
        rendered = fuller
    return rendered if len(rendered.text) <= max_chars else fuller


class _Choice:
    """The sentences chosen so far."""

    def __init__(self) -> None:
        self.chosen: list[Candidate] = []
        self.chars = -1  # The last sentence has no space after it.
        self._covered: set[str] = set()

    def add(self, candidate: Candidate) -> None:
        self.chosen.append(candidate)
        self.chars += candidate.chars
        self._covered.update(candidate.about)

    def fill(self, candidates: Iterable[Candidate], most_chars: float) -> None:
        """Take the candidates in their order, as far as they fit and say something new."""
        for each in candidates:
            if each.about and self.chars + each.chars <= most_chars and not self._said(each):
                self.add(each)

    def cover(self, candidates: Sequence[Candidate], most_chars: float, weights: Mapping[str, float]) -> None:
        """Take those that add most of what a part of the time was about, while they fit."""
        # Gains only shrink as sentences are chosen, so one that still leads after being computed again is the best.
        left = [(-self._gain(each, weights), each.at, place) for place, each in enumerate(candidates)]
        heapify(left)
        while left:
            _, at, place = heappop(left)
            best = candidates[place]
            if self.chars + best.chars > most_chars:
                continue
            now = -self._gain(best, weights)
            if now >= 0.0:
                return
            if left and now > left[0][0]:
                heappush(left, (now, at, place))
            elif not self._said(best):
                self.add(best)

    def _gain(self, candidate: Candidate, weights: Mapping[str, float]) -> float:
        new = sum(weights.get(each, 0.0) for each in candidate.about if each not in self._covered)
        return new * _WORTH_OF_IMPORTANCE[candidate.importance] / cost(candidate.chars)

    def _said(self, candidate: Candidate) -> bool:
        return any(_same(candidate, each) for each in self.chosen)


def _same(one: Candidate, other: Candidate) -> bool:
    """Return whether one sentence says nothing beside the other. What different people say of themselves is never the
    same.

    A sentence that isn't quoted names whom it is about, so both must have the same names.
    """
    if one.quoted != other.quoted or (one.quoted and one.speaker != other.speaker):
        return False
    if one.text == other.text:
        return True
    if (one.values, one.negated, one.asks) != (other.values, other.negated, other.asks):
        return False
    if not one.about or not other.about:
        return False
    if one.quoted and one.names != other.names:
        return False
    shared = len(frozenset(one.about).intersection(other.about))
    if one.quoted:
        return shared / (len(one.about) + len(other.about) - shared) >= _SAME
    named = _openers(one) | one.names == _openers(other) | other.names
    return named and shared / len(one.about) >= _SAME


def _openers(candidate: Candidate) -> frozenset[str]:
    """Return the first word of a sentence, which may be a name."""
    return frozenset(word.removesuffix("'s") for word in words(candidate.text)[:1])


def _by_time(stretches: Sequence[Stretch]) -> list[list[Stretch]]:
    """Return the stretches by thirds of the time that they cover; a third without any is left out."""
    if not stretches:
        return []
    begin, end = stretches[0].started_at, max(each.ended_at for each in stretches)
    parts: list[list[Stretch]] = [[] for _ in range(_PARTS_OF_THE_TIME)]
    for each in stretches:
        middle = (each.started_at + each.ended_at) / 2
        place = int((middle - begin) / max(1e-9, end - begin) * _PARTS_OF_THE_TIME)
        parts[min(place, _PARTS_OF_THE_TIME - 1)].append(each)
    return [part for part in parts if part]


def _weights(part: Sequence[Stretch]) -> dict[str, float]:
    """Return how much each name, value and topic of a part of the time counts: what is spoken of often counts more."""
    counts = Counter(concept for stretch in part for each in (*stretch.told, *stretch.facts) for concept in each.about)
    names = {name for stretch in part for each in (*stretch.told, *stretch.facts) for name in each.names}
    return {each: log(1.0 + count) * (VALUE_WEIGHT if each in names else 0.5) for each, count in counts.items()}


def _subjects(part: Sequence[Stretch], named: set[str], max_chars: int) -> Candidate | None:
    """Return a sentence that names what a part of the time was about, as far as no model has told of it.

    `named`: what earlier sentences of this kind name; it is not named again, and what this one names is added.
    """
    untold = [stretch for stretch in part if not stretch.told and stretch.facts]
    weights = rank_weights((stretch.subjects, stretch.batches) for stretch in untold)
    weights = {name: weight for name, weight in weights.items() if name not in named}
    if not weights:
        return None
    first = untold[0].facts[0]
    language = language_of_texts([each.text for stretch in untold[:_READ] for each in stretch.facts[:_READ]])
    text = subjects_sentence(weights, language=language, max_chars=max_chars)
    named.update(subjects_in(text))
    return gist_candidate(first.segment_id, (), part[0].started_at, text) if text else None


def _rendered(chosen: Sequence[Candidate]) -> RenderedSummary:
    ordered = sorted(chosen, key=lambda each: (each.at, each.turn_seqs, each.refs))
    groups: list[list[Candidate]] = []
    for each in ordered:
        before = groups[-1][-1] if groups else None
        if before is not None and _joins(before, each):
            groups[-1].append(each)
        else:
            groups.append([each])
    speakers = frozenset(each.speaker for each in ordered)
    said = language_of_texts([each.text for each in ordered]).said
    rendered: list[RenderedSentence] = []
    asked: tuple[str, str] | None = None
    for group in groups:
        quotes = _quotes(group, speakers)
        # A question that several people answer is told once.
        told = quotes[1:] if len(quotes) > 1 and quotes[0] == asked else quotes
        asked = quotes[0] if len(quotes) > 1 else None
        rendered.append(_sentence(group, [f'{speaker} {said}: "{_quotable(text)}"' for speaker, text in told]))
    return RenderedSummary(" ".join(each.text for each in rendered), tuple(rendered))


def _joins(before: Candidate, each: Candidate) -> bool:
    """Return whether two quotes become one. A question with its answer stays alone; a statement that somebody takes up
    goes on as it began.
    """
    if not (each.quoted and before.quoted and each.speaker == before.speaker) or len(before.turn_seqs) > 1:
        return False
    return len(each.turn_seqs) == 1 or each.text.startswith(before.text)


def _quotes(group: Sequence[Candidate], speakers: Collection[str]) -> list[tuple[str, str]]:
    """Return whose words the group has, and the words: of two people if somebody takes up what another one said."""
    first, last = group[0], group[-1]
    if not first.quoted:
        return []
    text = " ".join(each.text for each in group if each is last or not last.text.startswith(each.text))
    taken_up = _TAKEN_UP.match(text) if len(last.turn_seqs) > 1 else None
    # A colon may stand in somebody's own words, too.
    if taken_up is not None and (taken_up["asks"] or taken_up["who"] in speakers):
        return [(first.speaker, taken_up["before"]), (taken_up["who"], taken_up["after"])]
    return [(first.speaker, text)]


def _sentence(group: Sequence[Candidate], quotes: Sequence[str]) -> RenderedSentence:
    first = group[0]
    return RenderedSentence(
        text=" ".join(quotes) or first.text,
        segment_ids=tuple(dict.fromkeys(each.segment_id for each in group)),
        turn_seqs=tuple(dict.fromkeys(seq for each in group for seq in each.turn_seqs)),
        kind=first.kind,
        speaker=first.speaker,
        at=first.at,
        refs=tuple(ref for each in group for ref in each.refs),
    )


def _quotable(text: str) -> str:
    """Return words as they can stand between double quotes."""
    bare = text.strip('"“”„').replace('"', "'").replace("“", "'").replace("”", "'").replace("„", "'")
    return bare if ends_a_sentence(bare) else f"{bare}."
