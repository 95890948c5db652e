"""Tells whether recognised speech calls the bot by its name, or only mentions it. Pure.

`bot.brain.name_search` finds the name, also misheard. This module judges the words around it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bot.brain.name_search import (
    GREETINGS,
    MOST_WORDS,
    NamePosition,
    SpokenName,
    call_edges,
    find_each,
    prepare,
    shortest,
)
from bot.brain.spoken_words import spoken_words
from compaction.sentence_cache import sentence_cache
from voice.asr.unspaced import UNSPACED

if TYPE_CHECKING:
    from bot.brain.name_search import CallEdges
    from bot.brain.spoken_words import SpokenWords

# Words after which a name in mid-sentence is a call: 'thank you Roomtone'.
_OPENERS = GREETINGS | frozenset(
    {
        "thanks", "thank", "you", "yes", "no", "yeah", "yep", "nope", "right", "alright", "sorry", "listen", "wait",
        "morning", "evening", "night", "afternoon", "bye", "goodbye", "welcome", "there", "now", "then", "dear",
        "excuse", "look", "stop", "quiet", "up",
    }
)  # fmt: skip
_GLUED = "|".join(word for word in sorted(GREETINGS) if re.fullmatch(f"[{UNSPACED}]+", word))
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_CONJUNCTIONS = frozenset({"and", "or", "but", "so"})
# Words before a mere mention: 'tell Roomtone', 'about Roomtone', 'it was Roomtone'.
_BEFORE_MENTION = frozenset(
    {
        "ask", "asks", "asked", "asking", "tell", "tells", "told", "telling", "let", "lets", "letting", "about", "to",
        "with", "without", "from", "by", "for", "like", "than", "via", "at", "on", "is", "was", "use", "uses", "used",
        "using", "call", "called", "calls", "kick", "mute", "unmute", "invite", "add", "love", "hate", "see", "hear",
        "heard", "saw", "seen", "made", "make", "makes", "says", "said", "what", "if", "that", "not",
        "because", "when", "while", "does", "did", "has", "have", "had", "can", "could", "will", "would", "should",
    }
)  # fmt: skip
# Words after a mere mention: 'Roomtone got it wrong', 'Roomtone is quite useful'.
_AFTER_MENTION = frozenset(
    {
        "is", "isn't", "was", "wasn't", "has", "hasn't", "had", "does", "doesn't", "did", "didn't", "will", "won't",
        "would", "wouldn't", "can", "can't", "could", "couldn't", "should", "might", "may", "must", "never", "always",
        "also", "just", "really", "already", "still", "only", "even", "got", "said", "told", "knew", "knows", "thinks",
        "thought", "heard", "hears", "made", "makes", "came", "comes", "went", "goes", "gave", "gives", "took",
        "wrote", "writes", "ran", "keeps", "kept", "and", "or", "that", "stopped", "answered",
        "answers", "likes", "needs", "wants", "works", "worked", "seems", "sounds", "talks", "talked", "runs", "itself",
    }
)  # fmt: skip
# A question verb and one of these words after the name make it a question to the bot: 'Roomtone is it raining'.
_QUESTION_SUBJECTS = frozenset(
    {"it", "there", "that", "this", "he", "she", "they", "we", "you", "i", "the", "a", "my", "anybody"}
)
_QUESTION_VERBS = frozenset(
    {
        "is", "was", "has", "does", "did", "will", "would", "can", "could", "should", "isn't", "doesn't", "didn't",
        "can't", "couldn't", "won't", "wouldn't", "wasn't", "may", "must",
    }
)  # fmt: skip
# 'Need' and 'feed' are not past tenses.
_SHORTEST_PAST = 4


def mentions_name(text: str, wake_names: tuple[str, ...]) -> bool:
    """Return whether `text` contains one of `wake_names`, exactly or misheard."""
    return bool(_places(respaced(text, wake_names), wake_names))


def calls_name(text: str, wake_names: tuple[str, ...]) -> bool:
    """Return whether `text` calls one of `wake_names`. A mere mention ('I asked Roomtone yesterday') is not a call."""
    text = respaced(text, wake_names)
    words = spoken_words(text)
    return any(is_call(words, place) for place in _places(text, wake_names))


def strip_call(text: str, wake_names: tuple[str, ...]) -> str:
    """Return `text` without a call at its beginning: 'Hey Roomtone, who …' becomes 'who …'."""
    words, places = spoken_words(text), _places(text, wake_names)
    if not places or places[0].first > 1 or (places[0].first and words.texts[0] not in GREETINGS):
        return text
    return text[words.end(places[0].last) :].lstrip(" ,.;:!?…-–—")


def strip_name(text: str, wake_names: tuple[str, ...]) -> str:
    """Return `text` without the first name in it: 'be quiet, Roomtone' becomes 'be quiet'."""
    words, places = spoken_words(text), _places(text, wake_names)
    if not places:
        return text
    before, after = text[: words.begin(places[0].first)], text[words.end(places[0].last) :]
    return f"{before.rstrip(' ,;:-–—')} {after.lstrip(' ,;:-–—')}".strip()


def without_name(text: str, wake_names: tuple[str, ...]) -> str:
    """Return `text` without a call at its beginning, or else without the first name in it."""
    called = strip_call(text, wake_names)
    return called if called != text else strip_name(text, wake_names)


def is_call(words: SpokenWords, place: NamePosition) -> bool:
    """Return whether the name at this place is called, not only mentioned."""
    texts, pauses, first, last = words.texts, words.pauses, place.first, place.last
    before = texts[first - 1] if first else ""
    begins = first == 0 or pauses[first - 1]
    after = texts[last + 1] if last + 1 < len(words) else ""
    ends = not after or pauses[last]
    if not begins and before in _BEFORE_MENTION and not (before in {"ask", "tell"} and after and ends):
        return False
    if ends:
        return True
    # 'And Roomtone, …' begins a call; 'Ben and Roomtone …' does not.
    joined = before in _CONJUNCTIONS and first > 1 and not pauses[first - 2]
    if begins or (before in _OPENERS and not (joined and texts[first - 2] not in GREETINGS)):
        behind = texts[last + 2] if last + 2 < len(words) else ""
        is_question = after in _QUESTION_VERBS and behind in _QUESTION_SUBJECTS
        past = after.endswith("ed") and len(after) > _SHORTEST_PAST
        return is_question or not (after in _AFTER_MENTION or past)
    return False


def edges_of_calls(words: SpokenWords) -> CallEdges:
    """Return where a name may begin or end that `is_call` takes for a call."""
    return call_edges(words, _OPENERS, frozenset())


@sentence_cache(most=256)
def respaced(text: str, names: tuple[str, ...]) -> str:
    """Return `text` with spaces around names in scripts that write none."""
    for name in names:
        if is_unspaced(name):
            text = re.sub(rf"(^|[\W_]|{_GLUED}){re.escape(name)}", rf"\1 {name} ", text)
    return text


def is_unspaced(name: str) -> bool:
    """Return whether a name is written in a script without spaces."""
    return _UNSPACED.fullmatch(name) is not None


@sentence_cache(most=256)
def _places(text: str, wake_names: tuple[str, ...]) -> tuple[NamePosition, ...]:
    """Return the places of the names, in order. If several begin at a word, the shortest counts."""
    names = _prepared(wake_names)
    most = max((MOST_WORDS, *(name.words for name in names)))
    found = find_each(spoken_words(text), names, most_words=most)
    return shortest(place for places in found.places for place in places)


@sentence_cache(most=256)
def _prepared(wake_names: tuple[str, ...]) -> tuple[SpokenName, ...]:
    return tuple(dict.fromkeys(name for name in map(prepare, wake_names) if name is not None))
