"""Classifies speech by whom it addresses: a follow-up to the bot's reply, a call to somebody else, or no question.
Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from bot.brain.lexicon import (
    ASKING_VERBS,
    NUMBER_WORDS,
    TIME_WORDS,
    is_question,
    words_of,
)
from bot.brain.name_search import SpokenName, find_each, prepare
from bot.brain.spoken_words import LETTERS, spoken_words
from bot.brain.wakeword import calls_name, edges_of_calls, is_call, is_unspaced
from compaction.language.languages import ENGLISH
from compaction.language.text import QUESTION_MARKS
from compaction.sentence_cache import sentence_cache
from voice.asr.unspaced import UNSPACED
from voice.speaking.backchannel import OverlapIntent, classify_overlap

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD = re.compile(rf"{LETTERS}(?:['’]{LETTERS})*")
_UNSPACED = re.compile(f"[{UNSPACED}]")
# A name has at least two letters, as in 'Al' and 'Bo'. A single letter is not taken for a name.
SHORTEST_NAME = 2
# Most names in scripts without spaces that are searched for, times the words of the text: each has the text split anew.
MOST_RESPACED = 400
# Other people's names are searched for in so many words at each end of a text. Nobody says 200 words in an utterance of
# 30 s, so this bounds what a long written message can cost.
EDGE_WORDS = 100
# What stands between commas, from its first letter to its last.
_CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)
# People say these when they have the answer they wanted. They expect no reply.
_CLOSINGS = frozenset(
    {
        "thanks", "thank you", "thanks a lot", "thank you very much", "thank you so much", "many thanks", "cheers",
        "okay thanks", "ok thanks", "okay thank you", "great thanks", "cool thanks", "perfect", "never mind",
        "nevermind", "good to know", "perfect thanks", "ah okay thanks", "ah thanks", "oh thanks",
        "danke", "danke schön", "dankeschön", "danke dir", "vielen dank", "okay danke", "super danke",
        "alles klar danke", "ach so danke", "perfekt", "perfekt danke", "gut zu wissen", "schon gut",
    }
)  # fmt: skip
_LONGEST_CLOSING = max(len(phrase.split()) for phrase in _CLOSINGS)

# Beginnings of a follow-up to the bot's reply: 'and on Sunday', 'no, the other one', 'you left out the price'.
_FOLLOW_UPS = frozenset(
    {
        "and", "but", "or", "nope", "not", "also", "then", "because", "that", "it", "those", "these", "again", "more",
        "another", "repeat", "continue", "explain", "summarise", "summarize", "translate", "elaborate", "go", "say",
        "tell", "remind", "read", "write", "post", "add", "remember", "forget", "list", "name", "describe", "compare",
        "check", "count", "show", "give", "once", "i meant", "i said", "i asked", "i thought", "you didn't",
        "you forgot", "you missed", "you said", "you left", "you mean", "you meant", "you skipped", "you mentioned",
        "you haven't", "you can't", "you don't",
    }
)  # fmt: skip
# Ordinary words that may also be names: 'May I …', 'Will you …', 'Show me …'.
_ORDINARY = ENGLISH.stopwords | ENGLISH.light | ASKING_VERBS | NUMBER_WORDS | TIME_WORDS | _FOLLOW_UPS
# 'I like this song, who is it?' starts a new subject.
_NEW_SUBJECT = re.compile(r"\W*(?:i|i['’]\w+|we|we['’]\w+|my|our)\b[^,.;!?]*[,.;!]", re.IGNORECASE)
_OPENINGS = frozenset(
    {"okay", "ok", "well", "hm", "hmm", "ah", "oh", "uh", "um", "sorry", "please", "yes", "yeah", "so"}
)
# 'And Ben?' is a question about Ben; it does not call Ben.
_CONJUNCTIONS = frozenset({"and", "or", "but"})
# 'No, the other one' and 'I mean the other one' are objections; 'no spoilers' and 'I mean, sure' are not.
_OBJECTION = re.compile(r"\W*(?:no\b\s*[,.;:!–—-]|i mean\b(?!\s*,))", re.IGNORECASE)


def is_follow_up(text: str) -> bool:
    """Return whether `text` follows up on the bot's last reply: asks, objects, corrects or wants more."""
    if _OBJECTION.match(text) or (is_question(text) and not _NEW_SUBJECT.match(text)):
        return True
    words = (word.group().casefold().replace("’", "'") for word in _WORD.finditer(text))
    first = next((word for word in words if word not in _OPENINGS), "")
    return first in _FOLLOW_UPS or f"{first} {next(words, '')}" in _FOLLOW_UPS


@dataclass(frozen=True, slots=True)
class _Form:
    """One way in which a person may be called, casefolded, as words and as a name to search for."""

    text: str
    words: frozenset[str]
    name: SpokenName
    unspaced: bool


@dataclass(frozen=True, slots=True)
class PersonName:
    """A prepared display name. Preparing costs more than comparing, so prepare a name once, when somebody comes."""

    forms: tuple[_Form, ...]

    @classmethod
    def prepare(cls, display_name: str) -> PersonName:
        """Prepare a display name. Its first word counts as a name too."""
        words = [word.casefold() for word in _WORD.findall(display_name)]
        spoken = dict.fromkeys(text for text in (" ".join(words), *words[:1]) if len(text) >= SHORTEST_NAME)
        return cls(
            tuple(
                _Form(text, frozenset(words_of(text)), name, is_unspaced(text))
                for text in spoken
                if (name := prepare(text)) is not None
            )
        )


def calls_any(text: str, names: Iterable[PersonName]) -> bool:
    """Return whether `text` calls one of `names`: 'Ben, what …', 'hey Ben what …', '… don't you think, Ben?'.

    A mere mention ('Ben said that …', 'and Ben?') is not a call. A name that is also an ordinary word ('Will', 'Okay')
    counts only where it must be a name. Of names that are written without spaces, only so many are searched for that
    their number times the words of the text is at most `MOST_RESPACED`. In the middle of a text of more than twice
    `EDGE_WORDS` nobody is called.
    """
    words = spoken_words(text).edges(EDGE_WORDS)
    if len(words) == 2 and words.texts[0] in _CONJUNCTIONS:
        return False
    distinct = set(words.texts)
    # 'Ben2' and 'Ben' have a word in common.
    distinct.update(words_of(" ".join(word for word in distinct if not word.isalpha())))
    # Most names of a large channel have no word in common with the text.
    forms = {form.text: form for name in names for form in name.forms if not distinct.isdisjoint(form.words)}.values()
    if not forms:
        return False
    spaced = [form for form in forms if not form.unspaced]
    text = words.text
    found = find_each(words, [form.name for form in spaced], within=edges_of_calls(words)).places
    for form, places in zip(spaced, found, strict=True):
        if any(is_call(words, place) for place in places) and _must_be_name(form.text, text):
            return True
    unspaced = [form.text for form in forms if form.unspaced][: MOST_RESPACED // max(1, len(words))]
    return any(calls_name(text, (name,)) and _must_be_name(name, text) for name in unspaced)


def _must_be_name(name: str, text: str) -> bool:
    """Return whether a name that may be called in `text` is no ordinary word there: it stands alone between commas."""
    return name not in _OPENINGS and (name not in _ORDINARY or name in _clauses(text))


@sentence_cache(most=1)
def _clauses(text: str) -> frozenset[str]:
    """Return what stands between commas in `text`, casefolded, without other punctuation around it."""
    return frozenset(
        core.group().casefold() for clause in text.split(",") if (core := _CORE.search(clause)) is not None
    )


def needs_no_reply(text: str) -> bool:
    """Return whether `text` only shows attention ('mm-hm'), ends the subject ('thank you') or the reply ('stop')."""
    if any(mark in text for mark in QUESTION_MARKS):
        return False
    words = " ".join(word.group().casefold() for word in islice(_WORD.finditer(text), _LONGEST_CLOSING + 1))
    return words in _CLOSINGS or classify_overlap(text) is not OverlapIntent.YIELD


def word_count(text: str) -> int:
    """Return how many words `text` has. In scripts without spaces two characters count as one word."""
    unspaced = len(_UNSPACED.findall(text))
    return len(_WORD.findall(_UNSPACED.sub(" ", text))) + (unspaced + 1) // 2
