"""Whom words are meant for besides the bot: somebody called by name, or nobody, for they show attention only. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bot.brain.lexicon import (
    ASKING_VERBS,
    NUMBER_WORDS,
    TIME_WORDS,
    UNSPACED,
    is_question,
    words_of,
)
from bot.brain.wakeword import calls_name
from compaction.language.lexicon import STOPWORDS
from compaction.language.wording import QUESTION_MARKS
from voice.speaking.backchannel import Meaning, meaning_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_UNSPACED = re.compile(f"[{UNSPACED}]")
# 'Al' and 'Bo' are names, 'J' is an initial that turns up in sentences of its own.
SHORTEST_NAME = 2
# What people say when they have got what they wanted; nobody waits for an answer to it.
_CLOSINGS = frozenset(
    {
        "thanks", "thank you", "thanks a lot", "thank you very much", "thank you so much", "many thanks", "cheers",
        "okay thanks", "ok thanks", "okay thank you", "great thanks", "cool thanks", "perfect", "never mind",
        "nevermind", "good to know", "perfect thanks", "ah okay thanks", "ah thanks", "oh thanks",
    }
)  # fmt: skip

# How one goes on with somebody who has just answered: 'and on Sunday', 'no, the other one', 'you left out the price'.
_GOES_ON = frozenset(
    {
        "and", "but", "or", "nope", "not", "also", "then", "because", "that", "it", "those", "these", "again", "more",
        "another", "repeat", "continue", "explain", "summarise", "summarize", "translate", "elaborate", "go", "say",
        "tell", "remind", "read", "write", "post", "add", "remember", "forget", "list", "name", "describe", "compare",
        "check", "count", "show", "give", "once", "i meant", "i said", "i asked", "i thought", "you didn't",
        "you forgot", "you missed", "you said", "you left", "you mean", "you meant", "you skipped", "you mentioned",
        "you haven't", "you can't", "you don't",
    }
)  # fmt: skip
# Words that are names too: 'May I …', 'Will you …', 'Show me …'.
_ORDINARY = STOPWORDS | ASKING_VERBS | NUMBER_WORDS | TIME_WORDS | _GOES_ON
# 'I like this song, who is it?' begins something new.
_NEWLY_BEGUN = re.compile(r"\W*(?:i|i['’]\w+|we|we['’]\w+|my|our)\b[^,.;!?]*[,.;!]", re.IGNORECASE)
_OPENINGS = frozenset(
    {"okay", "ok", "well", "hm", "hmm", "ah", "oh", "uh", "um", "sorry", "please", "yes", "yeah", "so"}
)
# 'And Ben?' asks about him.
_CONJUNCTIONS = frozenset({"and", "or", "but"})
# 'No, the other one' and 'I mean the other one' object; 'no spoilers' and 'I mean, sure' do not.
_OBJECTS = re.compile(r"\W*(?:no\b\s*[,.;:!–—-]|i mean\b(?!\s*,))", re.IGNORECASE)


def is_follow_up(text: str) -> bool:
    """Return whether `text` goes on with what was just answered: asks, objects, corrects, or wants more of it."""
    if _OBJECTS.match(text) or (is_question(text) and not _NEWLY_BEGUN.match(text)):
        return True
    words = [word.group().casefold().replace("’", "'") for word in _WORD.finditer(text)]
    while len(words) > 1 and words[0] in _OPENINGS:
        del words[0]
    return bool(words) and (words[0] in _GOES_ON or " ".join(words[:2]) in _GOES_ON)


def calls_any(text: str, names: Sequence[str]) -> bool:
    """Return whether `text` calls somebody of `names`: 'Ben, what …', 'hey Ben what …', '… don't you think, Ben?'.

    Who is only spoken of ('Ben said that …', 'and Ben?') is not called. `names`: display names; their first words
    count too. A name that is an ordinary word ('Will', 'Okay') counts only where it can be nothing else.
    """
    words = words_of(text)
    if len(words) == 2 and words[0] in _CONJUNCTIONS:
        return False
    said = set(words)
    for name in _called(names):
        # The recogniser knows everybody's name; and in a large channel most of them are not said.
        if said.isdisjoint(words_of(name)) or not calls_name(text, (name,)):
            continue
        if name not in _ORDINARY and name not in _OPENINGS:
            return True
        if name not in _OPENINGS and re.search(rf"(?:^|,)\W*{re.escape(name)}\W*(?:,|$)", text, re.IGNORECASE):
            return True
    return False


def needs_no_reply(text: str) -> bool:
    """Return whether `text` only shows attention ('mm-hm', 'oh really') or closes the matter ('thank you')."""
    if any(mark in text for mark in QUESTION_MARKS):
        return False
    words = " ".join(word.group().casefold() for word in _WORD.finditer(text))
    return words in _CLOSINGS or meaning_of(text) is Meaning.GO_ON


def word_count(text: str) -> int:
    """Return how many words `text` has; in writing without spaces two characters are about one."""
    unspaced = len(_UNSPACED.findall(text))
    return len(_WORD.findall(_UNSPACED.sub(" ", text))) + (unspaced + 1) // 2


def _called(names: Sequence[str]) -> list[str]:
    """Return what each of these people may be called."""
    called: dict[str, None] = {}
    for name in names:
        words = [word.casefold() for word in _WORD.findall(name)]
        for spoken in (" ".join(words), *words[:1]):
            if len(spoken) >= SHORTEST_NAME:
                called[spoken] = None
    return list(called)
