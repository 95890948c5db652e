"""Finds names in recognised speech, and tells whether the bot is called, only spoken of, or silenced. Pure.

A recogniser writes an unusual name as it sounds: 'Roomtone' becomes 'room tone', 'Rumtone' or 'Rome tone'. So up to
three words together are compared with each name by their letters. What is only near a name counts where a call would
stand: after a pause or a greeting, and before a pause or a word of asking. As it is spelled, a name is found anywhere.

The lists of words are for what recognisers leave out, which is the comma after a call. They are English; in other
languages a call needs its comma or a greeting.

Other people's names count only as they are spelled and set off from the sentence: 'Ben, what …', 'hey Ben, …', '… don't
you think, Ben?'. Without the commas nobody is called, so an ordinary word may be a name ('Will', 'May'), and a hundred
hostile names cost no more than one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING
from unicodedata import category

from rapidfuzz import fuzz

from bot.texts.text import catalogue, languages
from compaction.language.text import is_question
from compaction.sentence_cache import sentence_cache
from voice.asr.unspaced import UNSPACED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

# A silence that somebody asks for aloud always lapses. /quiet has longer ones.
SILENT_MINUTES = 10
# A recogniser writes a name as at most this many words, unless its own spelling has more.
MOST_WORDS = 3
# A near miss has at least this share of its letters in common with the name, begins with the same letter, and is at
# most so many letters longer or shorter: 'rumpton' is near, 'ringtone' and 'room' are not. Fitted on the tuning half of
# the scripted talks; nothing in 3,239 minutes of real talk among people is near the usual name.
NEAR_PERCENT = 65.0
MOST_LETTERS_MORE = 2
# 'Rent on' is as near, and so is 'Ramon': what is that near calls the bot only before what people say to a bot.
FAR_PERCENT = 55.0
# Shorter names are too near to other words: 'Martin' is to 'Marvin', 'Alex' to 'Alexa'.
FEWEST_LETTERS = 7
# Words and places that are looked at in one text. Half a minute of talk has a hundred words.
MOST_LOOKED_AT, MOST_PLACES = 400, 16
# A call may follow one of these without a comma. Without them 85.7 % of the questions of the held-out half are answered
# instead of 97.6 %.
GREETINGS = frozenset(
    {
        "hey", "hi", "hello", "thanks", "alright", "ok", "okay", "so", "and", "but", "well", "oh", "yo", "hallo",
        "please", "hola", "oye", "salut", "bonjour", "dis", "ciao", "olá", "oi", "hé", "hej", "mal", "эй", "привет",
        "слушай", "ねえ", "ねぇ", "おい", "嘿", "喂", "你好",
    }
)  # fmt: skip
# Words after a call without its comma. Without them 12 of 57 misheard calls of the tuning half are missed instead of 9.
_AFTER_CALL = frozenset(
    {
        "what", "who", "where", "when", "why", "how", "which", "whose", "can", "could", "would", "will", "do", "does",
        "did", "are", "you", "tell", "please", "say", "remind", "explain", "give", "stop", "shut", "be", "what's",
        "who's", "where's", "how's", "is",
    }
)  # fmt: skip
# Words after a mere mention: 'Roomtone got it wrong'. Without them 4 of 29 mentions of the held-out half are answered.
_AFTER_MENTION = frozenset(
    {
        "isn't", "was", "wasn't", "has", "hasn't", "had", "doesn't", "didn't", "won't", "wouldn't", "can't", "couldn't",
        "should", "might", "may", "must", "never", "always", "also", "just", "really", "already", "still", "only",
        "even", "got", "said", "told", "knew", "knows", "thinks", "thought", "heard", "hears", "made", "makes", "came",
        "comes", "went", "goes", "gave", "gives", "took", "wrote", "writes", "ran", "keeps", "kept", "and", "or",
        "that", "stopped", "answered", "answers", "likes", "needs", "wants", "works", "worked", "seems", "sounds",
        "talks", "talked", "runs", "itself",
    }
)  # fmt: skip
# 'Roomtone is it raining' is a question to the bot, 'Roomtone is useful' is none. Without the verbs the second would be
# answered too; without the subjects 7 of 111 calls of the tuning half are missed.
_QUESTION_VERBS = frozenset({"is", "does", "did", "will", "would", "can", "could"})
_QUESTION_SUBJECTS = frozenset(
    {"it", "there", "that", "this", "he", "she", "they", "we", "you", "i", "the", "a", "my", "anybody"}
)
_GLUED = "|".join(word for word in sorted(GREETINGS) if re.fullmatch(f"[{UNSPACED}]+", word))
# A name has at least two letters, as in 'Al' and 'Bo'. A single letter is not taken for a name.
_SHORTEST_NAME = 2
# 'And Ben?' is a question about Ben; it does not call Ben.
_CONJUNCTIONS = frozenset({"and", "or", "but"})
# Those of the scripts that people write today. Rarer ones, beyond U+FFFF, would make each search much slower.
_MARKS = "".join(each for each in map(chr, range(0x300, 0x10000)) if category(each)[0] == "M")
# Letters with the marks on them, which are vowels in many scripts. 'Roomtone's' is one word.
_LETTERS = rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*"
_WORD = re.compile(rf"({_LETTERS}(?:['’]{_LETTERS})?)")
_PAUSE = re.compile(r"[,.;:!?…–—、。，．！？；：،؛؟।۔]")
_UNSPACED = re.compile(f"[{UNSPACED}]")
# Marks beside a name that go with it.
_BESIDE_NAME = " ,.;:!?…-–—"


class SpokenWords:
    """The words of one text. `texts`: casefolded. `bare`: the same without apostrophes and possessive endings.
    `pauses`: whether punctuation separates each word from the next.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = parts = _WORD.split(text)
        written, gaps = parts[1::2], parts[2::2]
        self.texts = "\n".join(written).casefold().replace("’", "'").split("\n") if written else []
        self.bare = [word.removesuffix("'s").replace("'", "") if "'" in word else word for word in self.texts]
        paused = {gap: _PAUSE.search(gap) is not None for gap in set(gaps)}
        self.pauses = [paused[gap] for gap in gaps]

    @property
    def spoken_count(self) -> int:
        """Return how many words were said. In scripts without spaces two characters count as one word."""
        unspaced = len(_UNSPACED.findall(self.text))
        return sum(_UNSPACED.search(word) is None for word in self.texts) + (unspaced + 1) // 2

    def around(self, first: int, last: int) -> tuple[str, str]:
        """Return the text before the word `first`, and that after the word `last`."""
        return "".join(self._parts[: 2 * first + 1]), "".join(self._parts[2 * last + 2 :])


@sentence_cache(most=64)
def spoken_words(text: str) -> SpokenWords:
    """Return the words of a text. The same text is looked at several times while it is decided on."""
    return SpokenWords(text)


@dataclass(frozen=True, slots=True)
class NameUse:
    """How a text uses the bot's names. `mentioned`: one of them is in it. `called`: somebody calls the bot by it.

    `greeting`: what stands before a name at the beginning, which may be nothing; None: no name stands there. `rest`:
    the text without the first name, and without that greeting. `words`: those of the text.
    """

    mentioned: bool
    called: bool
    greeting: str | None
    rest: str
    words: SpokenWords


@sentence_cache(most=256)
def use_of_name(text: str, wake_names: tuple[str, ...]) -> NameUse:
    """Find the bot's names in a text, and tell what they are used for."""
    text = _respaced(text, wake_names)
    words, names = spoken_words(text), _prepared(wake_names)
    places = list(islice(_places(words, names), MOST_PLACES))
    if not places:
        return NameUse(mentioned=False, called=False, greeting=None, rest=text, words=words)
    first, last = places[0]
    leads = first == 0 or (first == 1 and words.texts[0] in GREETINGS)
    before, after = words.around(first, last)
    rest = f"{'' if leads else before.rstrip(_BESIDE_NAME)} {after.lstrip(_BESIDE_NAME)}".strip()
    called = any(_is_call(words, *place) for place in places)
    return NameUse(mentioned=True, called=called, greeting=before if leads else None, rest=rest, words=words)


def strip_call(text: str, wake_names: tuple[str, ...]) -> str:
    """Return `text` without a call at its beginning: 'Hey Roomtone, who …' becomes 'who …'."""
    use = use_of_name(text, wake_names)
    return text if use.greeting is None else use.rest


def _places(words: SpokenWords, names: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last word of each name, in order; of those that begin at the same word the shortest."""
    bare = words.bare[:MOST_LOOKED_AT]
    most = max((MOST_WORDS, *names.values()))
    for first in range(len(bare)):
        joined = ""
        for last in range(first, min(first + most, len(bare))):
            joined += bare[last]
            # With an s for a possessive without its apostrophe.
            is_named = joined in names or joined.removesuffix("s") in names
            is_set_off = _begins(words, first) and (_ends(words, last) or words.texts[last + 1] in _AFTER_CALL)
            if is_named or (is_set_off and _is_near(joined, names)):
                yield first, last
                break
            if words.pauses[last]:
                break


def _is_near(joined: str, names: Mapping[str, int], percent: float = NEAR_PERCENT) -> bool:
    return any(
        len(name) >= FEWEST_LETTERS
        and joined[0] == name[0]
        and abs(len(joined) - len(name)) <= MOST_LETTERS_MORE
        and fuzz.ratio(joined, name) >= percent
        for name in names
    )


@dataclass(frozen=True, slots=True)
class Vocative:
    """A few words that are set off at the beginning or the end of a text and may call somebody. `name`: these words
    joined to one. `rest`: the text without them.
    """

    name: str
    rest: str

    def is_misheard(self, wake_names: tuple[str, ...], others: Set[str]) -> bool:
        """Return whether it may be one of the bot's names, and is none of those of `others`."""
        return self.name not in others and _is_near(self.name, _prepared(wake_names), FAR_PERCENT)


def vocatives(text: str) -> tuple[Vocative, ...]:
    """Return what may be a call at the beginning and at the end of a text."""
    words = spoken_words(text)
    breaks = [at for at, pause in enumerate(words.pauses[:-1]) if pause]
    if not breaks:
        return ()
    found: list[Vocative] = []
    for first, last in ((0, breaks[0]), (breaks[-1] + 1, len(words.texts) - 1)):
        before, after = words.around(first, last)
        name = words.bare[first + (words.texts[first] in GREETINGS and first < last) : last + 1]
        if len(name) <= MOST_WORDS:
            rest = f"{before.rstrip(_BESIDE_NAME)}{after.lstrip()}" if first else after.lstrip(_BESIDE_NAME)
            found.append(Vocative("".join(name), rest))
    return tuple(found)


def _is_call(words: SpokenWords, first: int, last: int) -> bool:
    """Return whether the name at this place is called: set off from what stands before it, and not told about."""
    if not _begins(words, first):
        return False
    if _ends(words, last):
        return True
    after, behind = words.texts[last + 1], "".join(words.texts[last + 2 : last + 3])
    return behind in _QUESTION_SUBJECTS if after in _QUESTION_VERBS else after not in _AFTER_MENTION


def _begins(words: SpokenWords, first: int) -> bool:
    """Return whether a call may begin at a word: after a pause or a greeting."""
    return first == 0 or words.pauses[first - 1] or words.texts[first - 1] in GREETINGS


def _ends(words: SpokenWords, last: int) -> bool:
    return words.pauses[last] or last + 1 == len(words.texts)


def _respaced(text: str, names: tuple[str, ...]) -> str:
    """Return `text` with spaces around names in scripts that write none."""
    for name in names:
        if re.fullmatch(f"[{UNSPACED}]+", name):
            text = re.sub(rf"(^|[\W_]|{_GLUED}){re.escape(name)}", rf"\1 {name} ", text)
    return text


@sentence_cache(most=64)
def _prepared(wake_names: tuple[str, ...]) -> dict[str, int]:
    """Return the names, each joined to one word, with the number of words in its spelling."""
    words = (spoken_words(name).bare for name in wake_names)
    return {"".join(bare): len(bare) for bare in words if bare}


@sentence_cache(most=1_024)
def call_names(display_name: str) -> frozenset[str]:
    """Return what a person may be called, as `calls_any` compares it: their name, and its first word."""
    words = spoken_words(display_name).bare
    return frozenset(
        name for name in ("".join(words), *words[:1]) if len(name) >= _SHORTEST_NAME and name not in GREETINGS
    )


def calls_any(words: SpokenWords, names: Set[str]) -> bool:
    """Return whether one of `names` stands alone between pauses, apart from greetings before it."""
    if len(words.texts) == 2 and words.texts[0] in _CONJUNCTIONS:
        return False
    alone: list[str] = []
    for text, bare, pause in zip(words.texts, words.bare, words.pauses, strict=True):
        if alone or text not in GREETINGS:
            alone.append(bare)
        if pause:
            if "".join(alone) in names:
                return True
            alone = []
    return "".join(alone) in names


def asks_for_silence(text: str, wake_names: tuple[str, ...], *, to_bot: bool = False) -> bool:
    """Return whether `text` is one of the bot's names and a phrase of any language, because people mix them; a handful
    of phrases is in each language's file. Whatever else people say only interrupts the reply in progress. `to_bot`: it
    needs no name.
    """
    name = use_of_name(text, wake_names)
    said = tuple(SpokenWords(name.rest).texts)
    return (to_bot or name.mentioned) and not is_question(text) and said in _quiet()


@lru_cache(maxsize=1)
def _quiet() -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(SpokenWords(phrase).texts) for code in languages() for phrase in catalogue(code).quiet)
