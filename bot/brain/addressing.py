"""Classifies speech by whom it addresses: a follow-up to the bot's reply, a call to somebody else, or no question.
Pure.
"""

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
from compaction.language.languages import STOPWORDS
from compaction.language.text import QUESTION_MARKS
from voice.speaking.backchannel import OverlapIntent, classify_overlap

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_UNSPACED = re.compile(f"[{UNSPACED}]")
# A name has at least two letters, as in 'Al' and 'Bo'. A single letter is not taken for a name.
SHORTEST_NAME = 2
# People say these when they have the answer they wanted. They expect no reply.
_CLOSINGS = frozenset(
    {
        "thanks", "thank you", "thanks a lot", "thank you very much", "thank you so much", "many thanks", "cheers",
        "okay thanks", "ok thanks", "okay thank you", "great thanks", "cool thanks", "perfect", "never mind",
        "nevermind", "good to know", "perfect thanks", "ah okay thanks", "ah thanks", "oh thanks",
    }
)  # fmt: skip

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
_ORDINARY = STOPWORDS | ASKING_VERBS | NUMBER_WORDS | TIME_WORDS | _FOLLOW_UPS
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
    words = [word.group().casefold().replace("’", "'") for word in _WORD.finditer(text)]
    while len(words) > 1 and words[0] in _OPENINGS:
        del words[0]
    return bool(words) and (words[0] in _FOLLOW_UPS or " ".join(words[:2]) in _FOLLOW_UPS)


def calls_any(text: str, names: Sequence[str]) -> bool:
    """Return whether `text` calls one of `names`: 'Ben, what …', 'hey Ben what …', '… don't you think, Ben?'.

    A mere mention ('Ben said that …', 'and Ben?') is not a call. `names`: display names; the first word of each counts
    as a name too. A name that is also an ordinary word ('Will', 'Okay') counts only where it must be a name.
    """
    words = words_of(text)
    if len(words) == 2 and words[0] in _CONJUNCTIONS:
        return False
    distinct = set(words)
    for name in _spoken_names(names):
        # `calls_name` is slow, and in a large channel most names do not occur in the text.
        if distinct.isdisjoint(words_of(name)) or not calls_name(text, (name,)):
            continue
        if name not in _ORDINARY and name not in _OPENINGS:
            return True
        if name not in _OPENINGS and re.search(rf"(?:^|,)\W*{re.escape(name)}\W*(?:,|$)", text, re.IGNORECASE):
            return True
    return False


def needs_no_reply(text: str) -> bool:
    """Return whether `text` only shows attention ('mm-hm', 'oh really') or ends the subject ('thank you')."""
    if any(mark in text for mark in QUESTION_MARKS):
        return False
    words = " ".join(word.group().casefold() for word in _WORD.finditer(text))
    return words in _CLOSINGS or classify_overlap(text) is OverlapIntent.CONTINUE


def word_count(text: str) -> int:
    """Return how many words `text` has. In scripts without spaces two characters count as one word."""
    unspaced = len(_UNSPACED.findall(text))
    return len(_WORD.findall(_UNSPACED.sub(" ", text))) + (unspaced + 1) // 2


def _spoken_names(names: Sequence[str]) -> list[str]:
    spoken_names: dict[str, None] = {}
    for name in names:
        words = [word.casefold() for word in _WORD.findall(name)]
        for spoken in (" ".join(words), *words[:1]):
            if len(spoken) >= SHORTEST_NAME:
                spoken_names[spoken] = None
    return list(spoken_names)
