"""What people mean by the first sentences that they say to a bot: the examples in the files of the languages. Pure.

`bot.brain.embedded.chat` answers them, and compares other sentences with them. A reminder has a time and words of its
own, so the files have the forms in which people ask for one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from bot.texts.catalogue import catalogue, languages
from compaction.language.text import words

# A longer text is no such request.
_MOST_CHARS = 400


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


def reminder_in(text: str) -> dict[str, str] | None:
    """Return when (`at`) and of what (`what`) somebody wants to be reminded who asks in a form of a language; None:
    nobody does. The time is as they said it.
    """
    found = next(filter(None, (form.search(text[:_MOST_CHARS]) for form in _reminder_forms())), None)
    return None if found is None else {name: said.strip(" ,.!?") for name, said in found.groupdict().items()}


@lru_cache(maxsize=1)
def _reminder_forms() -> tuple[re.Pattern[str], ...]:
    return tuple(_pattern(form) for code in languages() for form in catalogue(code).reminders)


def _pattern(form: str) -> re.Pattern[str]:
    slots = {"{at}": "(?P<at>.+?)", "{what}": "(?P<what>.+)"}
    parts = [slots.get(each) or f"(?:{each})" for each in form.split()]
    said = r"[\s,]+".join(parts)
    return re.compile(rf"\b{said}[\s.!?]*$", re.IGNORECASE)
