"""Finds the sentence of a payload that answers a question best. Pure and deterministic."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bot.brain.lexicon import (
    NUMBER_WORDS,
    PLACE_WORDS,
    content_stems,
    is_empty,
    is_question,
    meaning_stem,
    tells_a_time,
    words_of,
)
from bot.brain.wakeword import strip_call

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CAPITALISED = re.compile(r"\b[A-Z][\w'’]+")
_DIGIT = re.compile(r"\d")

# The share of the question's words, weighted by rarity, that an answer must have.
ENOUGH = 0.4
# A sentence's share is multiplied by this if the question names a person and the sentence is neither by nor about them.
ELSE_SHARE = 0.6
# Among answers with at least this share of the best score the newest is chosen, because people correct themselves.
TIE_SHARE = 0.9


class EvidenceOrigin(StrEnum):
    """The part of the payload that a sentence comes from."""

    TURN = "turn"
    SUMMARY = "summary"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sentence of the payload. `since`, `until`: when it was said, as a range in UTC epoch seconds.

    `speaker` is None if the payload does not name one. `order` is higher for newer sentences.
    """

    text: str
    origin: EvidenceOrigin
    order: int
    speaker: str | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    """What a question asks for: the stems of its words, the speakers it names, and the kind of answer."""

    stems: frozenset[str]
    speakers: frozenset[str]
    number: bool
    time: bool
    place: bool
    person: bool


def best_match(
    question: str, evidence: Sequence[Evidence], *, ignore: Iterable[str] = (), asker: str | None = None
) -> Evidence | None:
    """Return the sentence that answers `question` best, or None if none is about it.

    `ignore`: words to ignore, such as the bot's names. `asker`: the person that 'I' means in the question. Questions in
    the evidence are skipped. Of nearly equal sentences the newest wins.
    """
    names = tuple(ignore)
    candidates = [sentence for sentence in evidence if not is_question(strip_call(sentence.text, names))]
    asked_for = _parse_question(question, {item.speaker for item in candidates if item.speaker}, names, asker)
    if not asked_for.stems or not candidates:
        return None
    held = [content_stems(candidate.text) for candidate in candidates]
    # The speaker's name counts as a word of the sentence: 'what did Bo say about …'.
    known = [stems | _name_stems(item.speaker) for item, stems in zip(candidates, held, strict=True)]
    rarity = _rarity(known, asked_for.stems)
    whole = sum(rarity.values())
    scored: list[tuple[float, Evidence]] = []
    for candidate, stems, all_stems in zip(candidates, held, known, strict=True):
        share = sum(rarity[one] for one in sorted(asked_for.stems & all_stems)) / whole
        if asked_for.speakers and not _concerns(candidate, all_stems, asked_for.speakers):
            share *= ELSE_SHARE
        if share >= ENOUGH and asked_for.stems & stems:
            scored.append((share + _bonus(asked_for, candidate, stems - asked_for.stems), candidate))
    if not scored:
        return None
    top = max(score for score, _ in scored)
    near = [candidate for score, candidate in scored if score >= TIE_SHARE * top]
    return max(near, key=lambda candidate: candidate.order)


def asks_about_something(question: str, *, ignore: Iterable[str] = ()) -> bool:
    """Return whether `question` has any word to search for; 'how are you' has none."""
    return bool(_parse_question(question, set(), ignore, None).stems)


def _concerns(candidate: Evidence, stems: frozenset[str], speakers: frozenset[str]) -> bool:
    """Return whether one of `speakers` said the sentence or is named in it."""
    return any(candidate.speaker == speaker or _name_stems(speaker) <= stems for speaker in speakers)


def _parse_question(question: str, speakers: set[str], ignore: Iterable[str], asker: str | None) -> _Question:
    words = words_of(question)
    ignored = {meaning_stem(word) for name in ignore for word in words_of(name)}
    if "time" in words and "what" in words:
        ignored.add(meaning_stem("time"))
    stems = frozenset(meaning_stem(word) for word in words if not is_empty(word) and len(word) > 1) - ignored
    text = " ".join(words)
    named = {name for name in speakers if _name_stems(name) & stems}
    if asker is not None and not named and {"i", "my", "me", "mine"} & set(words):
        named = {asker}
    return _Question(
        stems=stems,
        speakers=frozenset(named),
        number=any(asked in text for asked in ("how many", "how much", "how long", "how old", "how far")),
        time="when" in words or "what time" in text or "what day" in text,
        place="where" in words,
        person=bool({"who", "whose", "whom"} & set(words)),
    )


def _name_stems(speaker: str | None) -> frozenset[str]:
    return frozenset(meaning_stem(word) for word in words_of(speaker)) if speaker else frozenset()


def _rarity(known: Sequence[frozenset[str]], wanted: frozenset[str]) -> dict[str, float]:
    """Return the weight of each stem: rare ones among the sentences weigh most (inverse document frequency)."""
    counts = Counter(one for stems in known for one in stems & wanted)
    # A word that nobody said weighs as much as one said once; otherwise one misrecognised word would rule out all
    # answers.
    return {one: math.log(1 + len(known) / max(1, counts[one])) for one in sorted(wanted)}


def _bonus(asked_for: _Question, candidate: Evidence, rest: frozenset[str]) -> float:
    """Return the score that a sentence gets in addition to the words that it shares with the question."""
    if not rest:
        # The sentence only repeats the question's words, so it is no answer.
        return -0.5
    bonus = 0.0
    if candidate.speaker in asked_for.speakers:
        bonus += 0.3
    words = set(words_of(candidate.text))
    if asked_for.number and (_DIGIT.search(candidate.text) or words & NUMBER_WORDS):
        bonus += 0.3
    if asked_for.time and tells_a_time(candidate.text):
        bonus += 0.3
    if asked_for.place and PLACE_WORDS & words:
        bonus += 0.15
    if asked_for.person and len(_CAPITALISED.findall(candidate.text)) > 1:
        bonus += 0.1
    return bonus
