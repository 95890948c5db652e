"""What the analysis of sentences must know of one language: its stemmer, word lists and cues, as one value.

Lists are written as words with spaces between them; a phrase has underscores ('call_me').
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from compaction.language.sentence_cache import sentence_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class WordStemmer(Protocol):
    """A Snowball stemmer."""

    def stemWord(self, word: str) -> str:  # noqa: N802 - the name is snowballstemmer's
        """Return the stem of a lower-case word."""


# The fields of `LanguageWords` that are phrases.
CUES = (
    "negations",
    "own",
    "group",
    "echoing",
    "asking",
    "changing",
    "ending",
    "lasting",
    "secrets",
    "deciding",
    "doing",
    "unsettled",
    "passing",
    "references",
    "reporting",
)
# The fields that are words looked up as they are.
_PLAIN_LISTS = ("ambiguous", "fillers", "openers", "joints")
# Forms of words as short as this are told apart: 'us' and 'use', 'no' and 'nos'.
_SHORT_STEM = 2
_TEN = 10


@dataclass(frozen=True, slots=True)
class LanguageWords:
    """The word lists of one language, as text.

    `stopwords`: carry no meaning. `light`: too common to search for, but part of what a sentence says. `numbers`: lines
    of a value and its words. `named_values`: weekdays, months and times; `ambiguous` ones count only with a capital
    letter. `negations`; `own`, `group`: first person, one and several. `echoing`: like what somebody else
    said of themselves. `asking`: phrases that open a question. `changing`: say that something is
    no longer as it was. `ending`: say that something is over. `lasting`: what people say of their own lives.
    `secrets`: lasting, whoever says it ('password'). `deciding`, `doing`, `unsettled`: cues of those kinds.
    `passing`: chatter. `references`: need what was said before. `reporting`: frames of what others said. `fillers` and
    `openers` (before a comma) say nothing at the start; `joints` begin a clause. `number_joint`: between units and tens
    of one word ('fünfundzwanzig'). `capital_nouns`: every noun has a capital letter.
    """

    code: str
    stemmer: Callable[[], WordStemmer]
    stopwords: str
    light: str
    numbers: str
    named_values: str
    ambiguous: str
    negations: str
    own: str
    group: str
    echoing: str
    asking: str
    changing: str
    ending: str
    lasting: str
    secrets: str
    deciding: str
    doing: str
    unsettled: str
    passing: str
    references: str
    reporting: str
    fillers: str
    openers: str
    joints: str
    number_joint: str = ""
    # How a summary quotes somebody, names what was talked about, and joins the last of a list.
    said: str = "said"
    talked_about: str = "They talked about {}."
    conjunction: str = "and"
    capital_nouns: bool = False
    # A negation may stand after what it denies ('ich komme nicht').
    negation_follows: bool = False


class _StemmersOfThread(threading.local):
    """One stemmer of each language for each thread, because a stemmer keeps the word at hand in itself."""

    def __init__(self) -> None:
        self.by_code: dict[str, WordStemmer] = {}


_stemmers = _StemmersOfThread()


@dataclass(frozen=True, slots=True)
class _Phrase:
    """One phrase of a cue."""

    cue: str
    words: tuple[str, ...]
    stems: tuple[str, ...]

    def stands(self, words: Sequence[str], stems: Sequence[str], at: int) -> bool:
        """Return whether it stands at `at`: a single word in all its forms unless it is short, a phrase as written."""
        if len(self.words) == 1:
            word = self.words[0]
            return word == words[at] or ("'" not in word and len(self.stems[0]) > _SHORT_STEM)
        return self.words == tuple(words[at : at + len(self.words)])


@dataclass(frozen=True, slots=True)
class Language:
    """One language: `words` and what is made of them once."""

    words: LanguageWords
    stopwords: frozenset[str] = field(init=False)
    light: frozenset[str] = field(init=False)
    ambiguous: frozenset[str] = field(init=False)
    fillers: frozenset[str] = field(init=False)
    openers: frozenset[str] = field(init=False)
    joints: frozenset[str] = field(init=False)
    vocabulary: frozenset[str] = field(init=False, repr=False)
    numbers: Mapping[str, str] = field(init=False)
    named_values: Mapping[str, str] = field(init=False)
    _by_stem: Mapping[str, tuple[_Phrase, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        stopwords = frozenset(self.words.stopwords.split())
        light = frozenset(self.words.light.split())
        listed = [line.split() for line in self.words.numbers.splitlines()]
        numbers = {word: line[0] for line in listed for word in line[1:]}
        if self.words.number_joint:
            numbers |= _joined_numbers(numbers, self.words.number_joint)
        named = {
            word: value or word for word, _, value in (each.partition("=") for each in self.words.named_values.split())
        }
        made = {
            "stopwords": stopwords,
            "light": light,
            **{name: frozenset(getattr(self.words, name).split()) for name in _PLAIN_LISTS},
            "numbers": numbers,
            "named_values": named,
            "vocabulary": stopwords | light | numbers.keys() | named.keys(),
            "_by_stem": self._phrases(),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def stem(self, word: str) -> str:
        """Return the stem of a lower-case word with straight apostrophes, without its possessive ending."""
        return _stem(self.words.code, self.words.stemmer, word)

    def _phrases(self) -> Mapping[str, tuple[_Phrase, ...]]:
        found: dict[str, tuple[_Phrase, ...]] = {}
        for cue in CUES:
            for each in getattr(self.words, cue).split():
                words = tuple(each.split("_"))
                phrase = _Phrase(cue, words, tuple(self.stem(word) for word in words))
                found[phrase.stems[0]] = (*found.get(phrase.stems[0], ()), phrase)
        return found

    def cue_places(self, words: Sequence[str], stems: Sequence[str]) -> Mapping[str, frozenset[int]]:
        """Return for each kind of cue the positions of the words that belong to its phrases."""
        found: dict[str, set[int]] = {cue: set() for cue in CUES}
        for at, stem in enumerate(stems):
            for phrase in self._by_stem.get(stem, ()):
                if phrase.stands(words, stems, at):
                    found[phrase.cue].update(range(at, at + len(phrase.words)))
        return {cue: frozenset(places) for cue, places in found.items()}


def _joined_numbers(numbers: Mapping[str, str], joint: str) -> dict[str, str]:
    units = {word: int(value) for word, value in numbers.items() if int(value) < _TEN}
    tens = {word: int(value) for word, value in numbers.items() if int(value) in range(2 * _TEN, _TEN * _TEN, _TEN)}
    return {f"{unit}{joint}{ten}": str(one + more) for unit, one in units.items() for ten, more in tens.items()}


@sentence_cache(most=16_384)
def _stem(code: str, stemmer: Callable[[], WordStemmer], word: str) -> str:
    bare = word.removesuffix("'s").removesuffix("'")
    if not bare.isalpha():
        return bare
    if code not in _stemmers.by_code:
        _stemmers.by_code[code] = stemmer()
    return _stemmers.by_code[code].stemWord(bare)
