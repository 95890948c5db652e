"""The word with which people take a choice of their server back."""

from __future__ import annotations

from bot.texts.catalogue import catalogue

DEFAULT = "default"


def means_default(written: str, language: str) -> bool:
    """Return whether what somebody typed is this word, as the code has it or as their Discord shows it as a choice.

    `language`: of the person's Discord.
    """
    return written.strip().casefold() in {DEFAULT, catalogue(language).commands.get(DEFAULT, DEFAULT)}
