"""Which sentence of what the room remembers answers a question best. Pure.

It reads only what a language model would have been sent, so it can answer nothing that the payload does not hold.
Deterministic: the same sentences and question give the same answer.
"""

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

# The share of what is asked about, weighted by rarity, that a sentence must speak of, or it is another subject.
ENOUGH = 0.4
# What is left of that share when the question names a person, and the sentence is neither theirs nor about them.
ELSE_SHARE = 0.6
# Of answers within this share of the best one the newest counts: people correct themselves.
TIE_SHARE = 0.9


class EvidenceOrigin(StrEnum):
    """Which part of the payload a sentence stands in."""

    TURN = "turn"
    SUMMARY = "summary"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sentence of the payload. Times are UTC epoch seconds: a moment, or the range it was said in.

    `speaker` is None where the payload does not say whose words they are. `order` grows with recency.
    """

    text: str
    origin: EvidenceOrigin
    order: int
    speaker: str | None = None
    since: float | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a question asks for: its content words, the speakers it names, and the kind of answer."""

    stems: frozenset[str]
    speakers: frozenset[str]
    number: bool
    time: bool
    place: bool
    person: bool


def best_match(
    question: str, evidence: Sequence[Evidence], *, ignore: Iterable[str] = (), asker: str | None = None
) -> Evidence | None:
    """Return the sentence that answers `question` best, or None when none is about it.

    `ignore`: words that carry no meaning here, such as the bot's name. `asker`: who 'I' is in the question.
    Questions among the evidence are no answers. Of nearly equal sentences the newest wins.
    """
    names = tuple(ignore)
    candidates = [sentence for sentence in evidence if not is_question(strip_call(sentence.text, names))]
    wanted = _wanted(question, {item.speaker for item in candidates if item.speaker}, names, asker)
    if not wanted.stems or not candidates:
        return None
    held = [content_stems(candidate.text) for candidate in candidates]
    # Whose words they are belongs to what is asked: 'what did Bo say about …'.
    known = [stems | _name_stems(item.speaker) for item, stems in zip(candidates, held, strict=True)]
    rarity = _rarity(known, wanted.stems)
    whole = sum(rarity.values())
    scored: list[tuple[float, Evidence]] = []
    for candidate, stems, all_stems in zip(candidates, held, known, strict=True):
        share = sum(rarity[one] for one in sorted(wanted.stems & all_stems)) / whole
        if wanted.speakers and not _concerns(candidate, all_stems, wanted.speakers):
            share *= ELSE_SHARE
        if share >= ENOUGH and wanted.stems & stems:
            scored.append((share + _fit(wanted, candidate, stems - wanted.stems), candidate))
    if not scored:
        return None
    top = max(score for score, _ in scored)
    near = [candidate for score, candidate in scored if score >= TIE_SHARE * top]
    return max(near, key=lambda candidate: candidate.order)


def asks_about_something(question: str, *, ignore: Iterable[str] = ()) -> bool:
    """Return whether `question` has any word to look for; 'how are you' has none."""
    return bool(_wanted(question, set(), ignore, None).stems)


def _concerns(candidate: Evidence, stems: frozenset[str], speakers: frozenset[str]) -> bool:
    """Return whether one of `speakers` said the sentence or is named in it."""
    return any(candidate.speaker == speaker or _name_stems(speaker) <= stems for speaker in speakers)


def _wanted(question: str, speakers: set[str], ignore: Iterable[str], asker: str | None) -> _Wanted:
    words = words_of(question)
    ignored = {meaning_stem(word) for name in ignore for word in words_of(name)}
    if "time" in words and "what" in words:
        ignored.add(meaning_stem("time"))
    stems = frozenset(meaning_stem(word) for word in words if not is_empty(word) and len(word) > 1) - ignored
    text = " ".join(words)
    named = {name for name in speakers if _name_stems(name) & stems}
    if asker is not None and not named and {"i", "my", "me", "mine"} & set(words):
        named = {asker}
    return _Wanted(
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
    """Return how telling each wanted stem is: rare ones among the sentences count most (idf)."""
    counts = Counter(one for stems in known for one in stems & wanted)
    # A word that nobody said weighs no more than one said once, or one slip of the recogniser sinks the question.
    return {one: math.log(1 + len(known) / max(1, counts[one])) for one in sorted(wanted)}


def _fit(wanted: _Wanted, candidate: Evidence, rest: frozenset[str]) -> float:
    """Return what speaks for a sentence besides the words it shares with the question."""
    if not rest:
        # It says nothing new about the subject, so it does not answer.
        return -0.5
    bonus = 0.0
    if candidate.speaker in wanted.speakers:
        bonus += 0.3
    words = set(words_of(candidate.text))
    if wanted.number and (_DIGIT.search(candidate.text) or words & NUMBER_WORDS):
        bonus += 0.3
    if wanted.time and tells_a_time(candidate.text):
        bonus += 0.3
    if wanted.place and PLACE_WORDS & words:
        bonus += 0.15
    if wanted.person and len(_CAPITALISED.findall(candidate.text)) > 1:
        bonus += 0.1
    return bonus
