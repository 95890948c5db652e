"""Classes of English words that tell who is addressed: question words, numbers and words of time. Pure."""

from __future__ import annotations

import re
from itertools import islice

from compaction.language.text import QUESTION_MARKS

WORD = re.compile(r"\d+(?:[.:,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NUMBER_WORDS = _set(
    """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand half quarter dozen noon
    midnight first second third"""
)
TIME_WORDS = _set(
    """monday tuesday wednesday thursday friday saturday sunday weekend january february march april june july august
    september october november december today tonight tomorrow yesterday morning afternoon evening night noon midnight
    o'clock week month year spring summer autumn winter christmas easter birthday"""
)
ASKING_WORDS = _set("who whom whose what which when where why how")
ASKING_VERBS = _set(
    """is are was were do does did can could will would should shall have has had may might isn't aren't wasn't
    weren't don't doesn't didn't can't couldn't won't wouldn't shouldn't haven't hasn't hadn't"""
)
FILLERS = _set("and so but well okay ok hey please now then um uh")
# Requests, which end without a question mark.
REQUESTS = frozenset({"tell me", "tell us", "remind me", "remind us", "let's hear", "say what", "say who"})


def words_of(text: str) -> list[str]:
    """Return the words and numbers of `text` in lower case, in order."""
    return [word.casefold().replace("’", "'") for word in WORD.findall(text)]


def is_question(text: str) -> bool:
    """Return whether `text` is a question, with or without a question mark: recognisers often lose it."""
    stripped = text.strip()
    if stripped.endswith(QUESTION_MARKS):
        return True
    words = [word.group().casefold().replace("’", "'") for word in islice(WORD.finditer(stripped), 6)]
    if not words:
        return False
    # 'So what time …': skip a filler before the asking word.
    opening = words[1:] if words[0] in FILLERS else words
    if not opening:
        return False
    if opening[0] in ASKING_VERBS or " ".join(opening[:2]) in REQUESTS:
        return True
    if opening[0].endswith("'s") and opening[0].removesuffix("'s") in ASKING_WORDS:
        return True
    return opening[0] in ASKING_WORDS and len(opening) > 1 and not _tells_after_asking_word(opening)


def _tells_after_asking_word(words: list[str]) -> bool:
    """Return whether an opening asking word begins a statement ('When I was young …', 'What I want is …')."""
    return words[1] in {"i", "we", "you", "he", "she", "they", "it", "the", "a", "my", "our"} and words[0] != "how"
