"""What people mean by the first sentences that they say to a bot: the examples in the files of the languages. Pure.

`bot.brain.embedded.chat` answers them, and compares other sentences with them.
"""

from __future__ import annotations

from functools import lru_cache

from bot.texts.catalogue import catalogue, languages
from compaction.language.text import words


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
    return {tuple(words(sentence)): meaning for meaning, sentence in first_sentences()}


def meaning_as_said(text: str) -> str | None:
    """Return what a text means if it has the words of an example, and no others."""
    return _by_words().get(tuple(words(text)))
