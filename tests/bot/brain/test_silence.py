"""Which words send the bot into silence."""

from __future__ import annotations

import pytest

from bot.brain.wakeword import asks_for_silence
from bot.texts.catalogue import catalogue, languages

NAMES = ("Roomtone", "Room tone")


@pytest.mark.parametrize("code", languages())
def test_the_name_with_a_phrase_of_any_language(code: str) -> None:
    """Before it or after it, and misheard."""
    assert catalogue(code).quiet
    for phrase in catalogue(code).quiet:
        for text in (f"Roomtone, {phrase}.", f"{phrase.capitalize()}, Roomtone!", f"Hey room tone {phrase}"):
            assert asks_for_silence(text, NAMES), text


@pytest.mark.parametrize(
    "text",
    [
        "Be quiet.", "Ben, be quiet.", "Stop, stop, stop!", "Roomtone, stop.", "Quiet tonight?", "no silence please",
        "Roomtone, no silence please.", "Roomtone, be quiet?", "Roomtone, be quiet and listen to this.",
        "I told Roomtone to be quiet.", "Roomtone, could you be quiet about the party?", "Roomtone", "",
    ],
)  # fmt: skip
def test_nothing_else_does(text: str) -> None:
    """Neither without its name nor with other words around the phrase."""
    assert not asks_for_silence(text, NAMES)
