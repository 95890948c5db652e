"""Collects the sentences of a payload as evidence, and finds the one that answers a question best. Pure.

Speakers and times come from the session behind the payload. Sentences come only from the payload's text, so an answer
has nothing in it that a model would not have seen.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.brain.first_sentences import meaning_as_said
from bot.brain.wakeword import use_of_name
from compaction.language.languages import LANGUAGES
from compaction.language.terms import normalized_words, terms
from compaction.language.text import is_question, sentences, words
from compaction.memory.passage import PassageKind
from compaction.model import SAID
from compaction.payload import PartKind
from compaction.summary.folded import summary_texts
from compaction.untrusted_text import inline, without_marks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bot.brain.context import ModelContext

# 'Think', 'say', 'machen': words that a question has whatever it is about.
_LIGHT = frozenset(form for each in LANGUAGES for word in each.light for form in (word, each.stem(word)))
_SMALL = frozenset(word for each in LANGUAGES for word in each.stopwords)
_FIRST_PERSON = frozenset(word for each in LANGUAGES for word in each.first_person)
_ADDRESSED = re.compile(r"^\s*\w+,\s")
# The share of the question's words, weighted by rarity, that an answer must have.
ENOUGH = 0.35
# A sentence's share is multiplied by this if the question names a person and the sentence is neither by nor about them.
ELSE_SHARE = 0.6
# The share that somebody's words to the bot must have: 'remember that the code is 4711'.
ENOUGH_TOLD = 0.6
# What the question's words add if the sentence has all of them as they were said, and not only their stems.
LITERAL_SHARE = 0.3
# What each word adds that the question does not have, for so many words: an answer tells something, and a question that
# was misheard as a statement repeats what it asked for.
NEW_WORD_SHARE, MOST_NEW_WORDS = 0.05, 3
# Among answers with at least this share of the best score the newest is chosen, because people correct themselves.
TIE_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sentence of the payload. `since`, `until`: when it was said, as a range in UTC epoch seconds.

    `origin`: the kind of part that it comes from: a turn, the summary or a note. `speaker` is None if the payload
    does not name one. `to_bot`: it was said to the bot.
    """

    text: str
    origin: PartKind
    speaker: str | None = None
    since: float | None = None
    until: float | None = None
    to_bot: bool = False


def collect_evidence(context: ModelContext) -> Iterator[Evidence]:
    """Yield what people said and what screens showed, oldest first.

    Leaves out the current turn and the bot's own words.
    """
    session = context.session
    turns = {turn.seq: turn for turn in session.window if turn.kind in SAID}
    # Recalled quotes come after the window in the payload, but they are older.
    yield from _recalled(context)
    for part in context.parts:
        if part.kind is PartKind.PARTICIPANTS:
            # One line for each person after the heading.
            for line in without_marks(part.content).splitlines()[1:]:
                speaker, _, facts = line.partition(": ")
                yield from _said(facts, speaker)
        elif part.kind is PartKind.SUMMARY and session.summary and inline(session.summary) in part.content:
            since, until = session.summary_started_at, session.summary_ended_at
            for speaker, sentence in summary_texts(session.summary):
                if speaker not in context.names:
                    yield Evidence(sentence, PartKind.SUMMARY, speaker or None, since, until)
        elif part.kind is PartKind.NOTE:
            seen = without_marks(part.content)
            # Behind the clock time.
            text = seen.split("] ", 1)[-1] if seen.startswith("[") else seen
            yield Evidence(text, PartKind.NOTE, None, part.timestamp, part.timestamp)
        elif part.kind is PartKind.TURN and part.seq_from in turns:
            turn = turns[part.seq_from]
            for said in turn.parts:
                found = _said(said.text, said.speaker, turn.started_at, turn.ended_at, to_bot=turn.is_with_bot)
                yield from (each for each in found if each.text in part.content)


def _said(
    text: str,
    speaker: str,
    since: float | None = None,
    until: float | None = None,
    *,
    to_bot: bool = False,
) -> Iterator[Evidence]:
    for sentence in sentences(text):
        yield Evidence(sentence, PartKind.TURN, speaker, since, until, to_bot=to_bot)


def _recalled(context: ModelContext) -> Iterator[Evidence]:
    """Yield the sentences of the quotes in the payload, oldest first."""
    sent = {ref for part in context.parts if part.kind is PartKind.RECALL for ref in part.refs}
    for quote in context.quotes:
        recalled = quote.recalled
        if quote.refs[0] not in sent:
            continue
        if recalled.kind is PassageKind.NOTE:
            yield Evidence(quote.text, PartKind.NOTE, None, recalled.at, recalled.at)
        else:
            for said in quote.said:
                text = said.text.removeprefix("… ")
                yield from _said(text, said.speaker, recalled.at, recalled.at, to_bot=recalled.is_with_bot)


def best_match(
    question: str, evidence: Sequence[Evidence], *, ignore: tuple[str, ...] = (), asker: str | None = None
) -> Evidence | None:
    """Return the sentence that answers `question` best, or None if none is about it. `evidence`: oldest first.

    `ignore`: words to ignore, such as the bot's names. `asker`: the person that 'I' means in the question. Questions in
    the evidence are skipped, and so is who asked the same. Of nearly equal sentences the newest wins. What was said to
    the bot answers only if it has more of the question than what people said among themselves.
    """
    asked = use_of_name(question, ignore).rest
    wanted, same = _wanted(asked, ignore), normalized_words(asked)
    # A recogniser may end a question with a full stop: nobody's 'who brings the tent' answers it. What people ask of a
    # bot ('delete my data') answers nothing either.
    said = (
        (sentence, use_of_name(sentence.text, ignore).rest) for sentence in evidence if not is_question(sentence.text)
    )
    candidates = [each for each in said if normalized_words(each[1]) != same and meaning_as_said(each[1]) is None]
    # 'Ton, we're just …': a single word before a comma is whom a sentence is for, or a call that was misheard.
    held = [content_stems(_ADDRESSED.sub("", text)) for _, text in candidates]
    # The speaker's name counts as a word of the sentence: 'what did Bo say about …'.
    known = [stems | name_stems(item.speaker) for (item, _), stems in zip(candidates, held, strict=True)]
    # Rare words among the sentences weigh most (inverse document frequency). One that nobody said weighs as much as one
    # said once; otherwise one misrecognised word would rule out all answers.
    counts = Counter(one for stems in known for one in stems & wanted)
    rarity = {one: math.log(1 + len(known) / max(1, counts[one])) for one in sorted(wanted)}
    people = {item.speaker for item, _ in candidates if item.speaker and name_stems(item.speaker) & wanted}
    if asker is not None and not people and not _FIRST_PERSON.isdisjoint(words(asked)):
        people = {asker}
    scored: list[tuple[float, float, Evidence]] = []
    for (candidate, _), stems, all_stems in zip(candidates, held, known, strict=True):
        if not wanted & stems:
            continue
        share = sum(rarity[one] for one in sorted(wanted & all_stems)) / sum(rarity.values())
        concerns = any(candidate.speaker == each or name_stems(each) <= all_stems for each in people)
        share *= ELSE_SHARE if people and not concerns else 1.0
        score = share + _bonus(asked, candidate.text, stems - wanted, speaks=candidate.speaker in people)
        # A sentence that repeats less than half of the question has less than nothing.
        if share >= (ENOUGH_TOLD if candidate.to_bot else ENOUGH) and score > 0:
            scored.append((score, share, candidate))
    talked = max((share for _, share, each in scored if not each.to_bot), default=0.0)
    scored = [each for each in scored if not each[2].to_bot or each[1] > talked]
    top = max((score for score, _, _ in scored), default=0.0)
    near = [candidate for score, _, candidate in scored if score >= TIE_SHARE * top]
    return near[-1] if near else None


def _bonus(asked: str, said: str, rest: frozenset[str], *, speaks: bool) -> float:
    """Return the score that a sentence gets in addition to the words that it shares with the question. `rest`: its
    stems that the question does not have. `speaks`: it is by somebody who is asked about.
    """
    if not rest:
        # The sentence only repeats the question's words, so it is no answer.
        return -0.5
    # 'On the fifteenth' and 'parcel 15' have the same value; the word itself is nearer.
    literal = frozenset(normalized_words(asked)) - _SMALL
    as_said = len(literal.intersection(normalized_words(said))) / max(1, len(literal))
    added = 0.3 * speaks + 0.2 * any(stem.isdigit() for stem in rest)
    return added + NEW_WORD_SHARE * min(len(rest), MOST_NEW_WORDS) + LITERAL_SHARE * as_said


def asks_about_something(question: str, *, ignore: tuple[str, ...] = ()) -> bool:
    """Return whether `question` has any word to search for; 'how are you' has none."""
    return bool(_wanted(use_of_name(question, ignore).rest, ignore))


def _wanted(asked: str, names: tuple[str, ...]) -> frozenset[str]:
    return content_stems(asked).difference(*map(name_stems, names))


def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words that say what a text is about, with its numbers as digits."""
    return frozenset(terms(text)) - _LIGHT


def name_stems(speaker: str | None) -> frozenset[str]:
    """Return the words of a name as they may stand among the stems of a text."""
    return frozenset((*normalized_words(speaker), *terms(speaker))) if speaker else frozenset()
