"""What people mean by the first sentences that they say to a bot: the examples in the files of the languages. Pure.

`bot.brain.embedded.chat` answers them, and compares other sentences with them. In an example 'somebody' stands for a
person, and 'something' for what a request is about.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from bot.texts.text import catalogue, languages
from compaction.language.languages import LANGUAGES
from compaction.language.text import words

# What stands for the name of a person in the examples, and for what a request is about.
SOMEBODY: Final = "somebody"
_SOMETHING: Final = "something"
# The requests that the bot fulfils with such words.
_FULFILLED: Final = frozenset({"remind", "cancel"})
# Examples of what is asked of the memory, and of what is only told. They mean nothing that the bot does.
OF_THE_TALK: Final = frozenset({"ask", "told"})
# The most words of a name.
_MOST_NAME_WORDS: Final = 3
_SMALL: Final = frozenset(word for each in LANGUAGES for word in each.stopwords)
# A longer text is no such request.
_MOST_WORDS: Final = 60


class Request(NamedTuple):
    """What a request means, with the words that stand for somebody and for something."""

    meaning: str | None
    whom: str = ""
    what: str = ""


@lru_cache(maxsize=1)
def first_sentences() -> tuple[tuple[str, str], ...]:
    """Return the examples of all languages, each with its meaning before it."""
    return tuple(
        (meaning, sentence)
        for code in languages()
        for meaning, sentences in catalogue(code).meanings.items()
        for sentence in sentences
    )


@lru_cache(maxsize=1)
def _by_words() -> dict[tuple[str, ...], str]:
    return {tuple(words(said)): meaning for meaning, said in first_sentences() if meaning not in OF_THE_TALK}


def meaning_as_said(text: str) -> str | None:
    """Return what a text means if it has the words of an example, and no others."""
    return _by_words().get(tuple(words(text)))


def request_in(text: str) -> Request | None:
    """Return the request that a text ends with, if it has the words of an example, and words for somebody and
    something where the example has these. Of several it is the first of the files.
    """
    said = text.split()[:_MOST_WORDS]
    for meaning, sentence in first_sentences():
        if meaning not in _FULFILLED:
            continue
        for first in range(len(said)):
            if (found := _found(words(sentence), said[first:])) is not None:
                return Request(meaning, found.get(SOMEBODY, ""), found.get(_SOMETHING, ""))
    return None


def _found(example: list[str], said: list[str]) -> dict[str, str] | None:
    """Return what `_stands_for` does if the first word of both is the same."""
    return _stands_for(example[1:], said[1:], begun=True) if words(said[0]) == example[:1] else None


def _stands_for(example: list[str], said: list[str], *, begun: bool = False) -> dict[str, str] | None:
    """Return the words of `said` that stand for somebody and something in an example; None: it has other words.

    Up to the first of these, words that carry no meaning may be others, or more: 'stell mir doch einen Timer'.
    """
    if not example or not said:
        return None if example or said else {}
    word, *rest = example
    if word not in {SOMEBODY, _SOMETHING}:
        if words(said[0]) == [word]:
            return _stands_for(rest, said[1:], begun=begun)
        if not begun or not _SMALL.issuperset(words(said[0])):
            return None
        found = _stands_for(rest, said[1:], begun=True) if word in _SMALL else None
        return _stands_for(example, said[1:], begun=True) if found is None else found
    most = _MOST_NAME_WORDS if word == SOMEBODY else len(said)
    for count in range(1, min(most, len(said)) + 1):
        if (found := _stands_for(rest, said[count:])) is not None:
            return {word: " ".join(said[:count]).strip(" ,.!?"), **found}
    return None
