"""Finds the bot's name in recognised speech, misheard names included. Pure.

A recogniser writes an unusual name as it sounds: 'Roomtone' becomes 'room tone', 'Rumtone' or 'Rome tone'. So names are
compared by their phonemes. Ordinary words that only sound like the name together ('we roamed on', 'room ten is free')
count only in the position of a call: separated from the rest of the sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING

from bot.brain.lexicon import UNSPACED
from bot.brain.phonetics import phonetic_distance, to_phonemes

if TYPE_CHECKING:
    from collections.abc import Iterator

# 'Roomtone's' is one word.
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_PAUSE = re.compile(r"[,.;:!?…–—、。，．！？；：،؛؟।۔]")
GREETINGS = frozenset(
    {
        "hey", "hi", "hello", "ok", "okay", "so", "and", "but", "well", "oh", "yo", "hallo", "please", "hola", "oye",
        "salut", "bonjour", "dis", "ciao", "olá", "oi", "hé", "hej", "mal", "эй", "привет", "слушай", "ねえ", "ねぇ",
        "おい", "嘿", "喂", "你好",
    }
)  # fmt: skip
# Words after which a name in mid-sentence is a call: 'thank you Roomtone'.
_OPENERS = GREETINGS | frozenset(
    {
        "thanks", "thank", "you", "yes", "no", "yeah", "yep", "nope", "right", "alright", "sorry", "listen", "wait",
        "morning", "evening", "night", "afternoon", "bye", "goodbye", "welcome", "there", "now", "then", "dear",
        "excuse", "look", "stop", "quiet", "up",
    }
)  # fmt: skip
_GLUED = "|".join(word for word in sorted(GREETINGS) if re.fullmatch(f"[{UNSPACED}]+", word))
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
# Words after a call where the recogniser wrote no comma.
_AFTER_CALL = frozenset(
    {
        "what", "who", "where", "when", "why", "how", "which", "whose", "can", "could", "would", "will", "do", "does",
        "did", "are", "you", "tell", "please", "say", "remind", "explain", "give", "stop", "shut", "be", "what's",
        "who's", "where's", "how's", "is",
    }
)  # fmt: skip
# No name follows these: 'the room tone' is the sound of a room.
_DETERMINERS = frozenset(
    {
        "a", "an", "the", "this", "that", "these", "those", "some", "any", "no", "each", "every", "my", "your", "our",
        "his", "her", "its", "their", "more", "of", "in", "one",
    }
)  # fmt: skip
# 'Room two' and 'room ten' are rooms.
_NUMBERS = frozenset({"one", "two", "to", "too", "ten", "twelve"})
# A recogniser writes a name as at most this many words.
MOST_WORDS = 3
# Shorter names ('Ada', 'Otto') have too few phonemes to tell a misheard name from another word.
FEWEST_PHONEMES = 5
# 'Need' and 'feed' are not past tenses.
_SHORTEST_PAST = 4
# Distance allowed for each phoneme of the name. For a whole name that is half a vowel, or a little more than a similar
# consonant. In the position of a call ('room time, …') one different vowel more is allowed.
MOST_DISTANCE = 0.11
MOST_DISTANCE_IN_CALL = 0.16


@dataclass(frozen=True, slots=True)
class _Word:
    """One word of a text, casefolded, with its character offsets."""

    text: str
    begin: int
    end: int

    @property
    def bare(self) -> str:
        """The word without a possessive ending."""
        return self.text.removesuffix("'s").replace("'", "")


@dataclass(frozen=True, slots=True)
class _Name:
    """A name joined to one word, its phonemes, and the number of words in its spelling."""

    joined: str
    phonemes: str
    words: int


@dataclass(frozen=True, slots=True)
class _Call:
    """The position of the name in a text: character offsets, and the index of its first word."""

    begin: int
    end: int
    first: int


def mentions_name(text: str, wake_names: tuple[str, ...]) -> bool:
    """Return whether `text` contains one of `wake_names`, exactly or misheard."""
    return _find_call(_spaced(text, wake_names), wake_names) is not None


def calls_name(text: str, wake_names: tuple[str, ...]) -> bool:
    """Return whether `text` calls one of `wake_names`. A mere mention ('I asked Roomtone yesterday') is not a call."""
    text, names = _spaced(text, wake_names), _names(wake_names)
    words = _words(text)
    return any(not _is_mention(text, words, *place) for place in _find_names(text, words, names))


def strip_call(text: str, wake_names: tuple[str, ...]) -> str:
    """Return `text` without a call at its beginning: 'Hey Roomtone, who …' becomes 'who …'."""
    call = _find_call(text, wake_names)
    if call is None or call.first > 1 or (call.first and _words(text)[0].text not in GREETINGS):
        return text
    return text[call.end :].lstrip(" ,.;:!?…-–—")


def strip_name(text: str, wake_names: tuple[str, ...]) -> str:
    """Return `text` without the first name in it: 'be quiet, Roomtone' becomes 'be quiet'."""
    call = _find_call(text, wake_names)
    if call is None:
        return text
    return f"{text[: call.begin].rstrip(' ,;:-–—')} {text[call.end :].lstrip(' ,;:-–—')}".strip()


def _find_call(text: str, wake_names: tuple[str, ...]) -> _Call | None:
    words = _words(text)
    for first, last in _find_names(text, words, _names(wake_names)):
        return _Call(words[first].begin, words[last].end, first)
    return None


def _find_names(text: str, words: tuple[_Word, ...], names: tuple[_Name, ...]) -> Iterator[tuple[int, int]]:
    """Yield the first and last word index of each name in `text`. If several begin at a word, the shortest wins."""
    most = max((MOST_WORDS, *(name.words for name in names)))
    for first in range(len(words)):
        for last in range(first, min(first + most, len(words))):
            if any(_matches(text, words, first, last, name) for name in names):
                yield first, last
                break


def _is_mention(text: str, words: tuple[_Word, ...], first: int, last: int) -> bool:
    """Return whether the name at these words is only mentioned, not called."""
    before = words[first - 1].text if first else ""
    begins = first == 0 or _pause(text, words, first - 1)
    after = words[last + 1].text if last + 1 < len(words) else ""
    ends = not after or _pause(text, words, last)
    if not begins and before in _BEFORE_MENTION and not (before in {"ask", "tell"} and after and ends):
        return True
    if ends:
        return False
    # 'And Roomtone, …' begins a call; 'Ben and Roomtone …' does not.
    joined = before in _CONJUNCTIONS and first > 1 and not _pause(text, words, first - 2)
    if begins or (before in _OPENERS and not (joined and words[first - 2].text not in GREETINGS)):
        behind = words[last + 2].text if last + 2 < len(words) else ""
        is_question = after in _QUESTION_VERBS and behind in _QUESTION_SUBJECTS
        return not is_question and (after in _AFTER_MENTION or (after.endswith("ed") and len(after) > _SHORTEST_PAST))
    return True


def _matches(text: str, words: tuple[_Word, ...], first: int, last: int, name: _Name) -> bool:
    stretch = words[first : last + 1]
    if any("'" in word.text for word in stretch[:-1]):
        return False  # 'the room's tone'
    determined = first > 0 and words[first - 1].text in _DETERMINERS and not _pause(text, words, first - 1)
    if "".join(word.bare for word in stretch) == name.joined:
        return first == last or not determined
    if determined or any(_pause(text, words, at) for at in range(first, last)):
        return False
    distance = _distance(tuple(word.bare for word in stretch), name)
    if first == last and distance <= MOST_DISTANCE:
        return True
    return (
        distance <= MOST_DISTANCE_IN_CALL
        and _NUMBERS.isdisjoint(w.text for w in stretch)
        and _stands_as_call(text, words, first, last)
    )


def _stands_as_call(text: str, words: tuple[_Word, ...], first: int, last: int) -> bool:
    """Return whether these words follow the beginning or a pause, and precede a pause or the end, as a call does."""
    begins = first == 0 or words[first - 1].text in GREETINGS or _pause(text, words, first - 1)
    ends = last + 1 == len(words) or words[last + 1].text in _AFTER_CALL or _pause(text, words, last)
    return begins and ends


def _pause(text: str, words: tuple[_Word, ...], at: int) -> bool:
    """Return whether punctuation separates a word from the next."""
    return _PAUSE.search(text[words[at].end : words[at + 1].begin]) is not None


@lru_cache(maxsize=256)
def _spaced(text: str, wake_names: tuple[str, ...]) -> str:
    """Return `text` with spaces around names in scripts that write none."""
    for name in wake_names:
        if re.fullmatch(f"[{UNSPACED}]+", name):
            text = re.sub(rf"(^|[\W_]|{_GLUED}){re.escape(name)}", rf"\1 {name} ", text)
    return text


@lru_cache(maxsize=256)
def _words(text: str) -> tuple[_Word, ...]:
    return tuple(
        _Word(found.group().casefold().replace("’", "'"), found.start(), found.end()) for found in _WORD.finditer(text)
    )


@lru_cache(maxsize=256)
def _names(wake_names: tuple[str, ...]) -> tuple[_Name, ...]:
    names = (tuple(word.bare for word in _words(name)) for name in wake_names)
    return tuple(
        dict.fromkeys(_Name("".join(words), "".join(map(to_phonemes, words)), len(words)) for words in names if words)
    )


@lru_cache(maxsize=8192)
def _distance(spoken: tuple[str, ...], name: _Name) -> float:
    """Return the phonetic distance of these words from the name, divided by the phonemes of the name."""
    if spoken == (name.joined + "s",):  # a possessive without its apostrophe
        return 0.0
    if len(name.phonemes) < FEWEST_PHONEMES:
        return inf
    return phonetic_distance("".join(map(to_phonemes, spoken)), name.phonemes) / len(name.phonemes)
