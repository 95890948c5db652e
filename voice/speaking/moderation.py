"""Words that a server forbids the bot to say, and the interface of a moderation service (`bot` implements it)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from voice.errors import VoiceError

if TYPE_CHECKING:
    from collections.abc import Iterable


class ModerationError(VoiceError):
    """The text could not be checked, so it is not spoken. The message is a plain sentence with the remedy."""


class ForbiddenWordsError(VoiceError):
    """A speech-to-speech model is about to say words that the server forbids."""


class Moderator(Protocol):
    """Checks text before it is spoken."""

    async def objection(self, text: str) -> str | None:
        """Return in a word or two why `text` must not be spoken, or None if it may. Raises `ModerationError`."""


class WordList:
    """Forbidden words and phrases. They match whole words in any case. `*` stands for any letters."""

    def __init__(self, words: Iterable[str]) -> None:
        patterns = [r"\w*".join(map(re.escape, word.split("*"))) for word in words if word.strip("* ")]
        self._forbidden = re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)", re.IGNORECASE) if patterns else None

    def forbids(self, text: str) -> bool:
        """Return whether `text` contains one of the words."""
        return self._forbidden is not None and self._forbidden.search(text) is not None
