"""What the analysis of sentences must know of one language: its stemmer, word lists and cues, as one value."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from compaction.sentence_cache import MOST_STEMS, sentence_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Forms of words as short as this are told apart: 'us' and 'use', 'no' and 'nos'.
_SHORT_STEM = 2


class WordStemmer(Protocol):
    """A Snowball stemmer."""

    def stemWord(self, word: str) -> str:  # noqa: N802 - the name is snowballstemmer's
        """Return the stem of a lower-case word."""


@dataclass(frozen=True)
class Language:
    """One language.

    `stopwords` carry no meaning. `light` words are too common to search for, but part of what a sentence says.
    `numbers`: number words with their digits. `named_values`: weekdays, months and times; `ambiguous` ones count only
    with a capital letter. `times`: units, seasons, what stands beside them ('last', 'ago'), and days from today (+2).
    `fillers` and `openers` (before a comma) say nothing at the start of a sentence; `joints` begin a clause.
    `thoughts`: verbs of what is only thought or wanted. `capital_nouns`: every noun has a capital letter.
    `negation_follows`: a negation may stand after what it denies ('ich komme nicht'). `said`, `talked_about`,
    `conjunction`: how a summary quotes somebody, names what was talked about, and joins the last of a list.

    `cues`: for each sort its words, and phrases with underscores ('call_me'):
    `negations`; `own`, `group`: first person, one and several; `echoing`: like what somebody else said of themselves;
    `asking`: opens a question; `changing`: no longer as it was; `ending`: over; `lasting`: of people's own lives;
    `secrets`: lasting, whoever says it; `deciding`, `doing`, `unsettled`: of these kinds; `passing`: chatter;
    `references`: need what was said before; `reporting`: frames of what others said; `being`: open how somebody is;
    `supposing`: open a condition; `limiting`: more words for what another clause depends on, or an alternative to it.
    """

    code: str
    stemmer: Callable[[], WordStemmer]
    stopwords: frozenset[str]
    light: frozenset[str]
    numbers: Mapping[str, str]
    named_values: Mapping[str, str]
    ambiguous: frozenset[str]
    times: Mapping[str, str]
    fillers: frozenset[str]
    openers: frozenset[str]
    joints: frozenset[str]
    thoughts: frozenset[str]
    cues: Mapping[str, str] = field(repr=False)
    said: str
    talked_about: str
    conjunction: str
    capital_nouns: bool = False
    negation_follows: bool = False

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Return the words that tell the language of a text."""
        return self.stopwords | self.light | self.numbers.keys() | self.named_values.keys()

    def stem(self, word: str) -> str:
        """Return the stem of a lower-case word with straight apostrophes, without its possessive ending."""
        return _stem(self.code, self.stemmer, word)

    def cue_places(self, words: Sequence[str], stems: Sequence[str]) -> Mapping[str, frozenset[int]]:
        """Return for each sort of cue the positions of the words that belong to its phrases."""
        found: dict[str, set[int]] = {cue: set() for cue in self.cues}
        for at, stem in enumerate(stems):
            for cue, phrase in self._phrases.get(stem, ()):
                if _stands(phrase, stem, words, at):
                    found[cue].update(range(at, at + len(phrase)))
        return {cue: frozenset(places) for cue, places in found.items()}

    @cached_property
    def _phrases(self) -> Mapping[str, Sequence[tuple[str, tuple[str, ...]]]]:
        """Return the phrases with their cues, by the stem of their first word."""
        found: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for cue, listed in self.cues.items():
            for each in listed.casefold().split():
                phrase = tuple(each.split("_"))
                found.setdefault(self.stem(phrase[0]), []).append((cue, phrase))
        return found


def _stands(phrase: tuple[str, ...], stem: str, words: Sequence[str], at: int) -> bool:
    """Return whether a phrase stands at `at`: one word in all its forms unless it is short, several as written."""
    if len(phrase) == 1:
        return phrase[0] == words[at] or ("'" not in phrase[0] and len(stem) > _SHORT_STEM)
    return phrase == tuple(words[at : at + len(phrase)])


def word_set(listed: str) -> frozenset[str]:
    """Return the words as `text.words` yields them: 'weiß' is 'weiss'."""
    return frozenset(listed.casefold().split())


def number_words(listed: str, *, joint: str = "") -> dict[str, str]:
    """Return number words with their digits, which stand before them. `joint`: 'und' in 'fünfundzwanzig'."""
    found: dict[str, str] = {}
    value = ""
    for word in listed.casefold().split():
        if word.isdigit():
            value = word
        else:
            found[word] = value
    if joint:
        units = {word: int(value) for word, value in found.items() if int(value) < 10}
        tens = {word: int(value) for word, value in found.items() if int(value) in range(20, 100, 10)}
        found |= {f"{unit}{joint}{ten}": str(one + more) for unit, one in units.items() for ten, more in tens.items()}
    return found


def value_words(listed: str) -> dict[str, str]:
    """Return words with the value that each stands for: itself, or what follows its equals sign."""
    return {word: value or word for word, _, value in (each.partition("=") for each in listed.casefold().split())}


# One stemmer of each language for each thread, because a stemmer keeps the word at hand in itself.
_stemmers = threading.local()


@sentence_cache(most=MOST_STEMS)
def _stem(code: str, stemmer: Callable[[], WordStemmer], word: str) -> str:
    bare = word.removesuffix("'s").removesuffix("'")
    if not bare.isalpha():
        return bare
    of_thread: dict[str, WordStemmer] = _stemmers.__dict__
    if code not in of_thread:
        of_thread[code] = stemmer()
    return of_thread[code].stemWord(bare)
