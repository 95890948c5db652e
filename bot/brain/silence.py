"""Tells whether somebody sends the bot into silence aloud: its name and a fixed phrase, and nothing else. Pure.

The phrases are in the languages' files (`bot/texts/*.toml`), a handful in each. Whatever else people say only
interrupts the reply in progress (`voice.speaking.barge_in`). Models have the tool `be_quiet` for other words.
"""

from __future__ import annotations

from functools import lru_cache

from bot.brain.spoken_words import SpokenWords
from bot.brain.wakeword import use_of_name
from bot.texts.catalogue import catalogue, languages
from compaction.language.text import QUESTION_MARKS

# A silence that somebody asks for aloud always lapses. /quiet has longer ones.
SILENT_MINUTES = 10


def asks_for_silence(text: str, wake_names: tuple[str, ...]) -> bool:
    """Return whether `text` is one of the bot's names and a phrase of any language: people mix them."""
    name = use_of_name(text, wake_names)
    return name.mentioned and not text.rstrip().endswith(QUESTION_MARKS) and _words(name.rest) in _phrases()


@lru_cache(maxsize=1)
def _phrases() -> frozenset[tuple[str, ...]]:
    return frozenset(_words(phrase) for code in languages() for phrase in catalogue(code).quiet)


def _words(text: str) -> tuple[str, ...]:
    return tuple(SpokenWords(text).texts)
