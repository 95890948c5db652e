"""Reads what people write in the settings of a server: text, numbers, names."""

from __future__ import annotations

import re
import unicodedata

from bot.brain.wakeword import MOST_WORDS
from bot.errors import BotError
from bot.server_settings import MOST_NAMES
from bot.texts.text import Text

MOST_NAME_CHARS = 32
# At least two letters in a row, and no signs with which it could look like another part of a prompt.
_SPEAKABLE = re.compile(r"(?=.*[^\W\d_]{2})[\w .'’*-]+")


class SettingError(BotError):
    """What somebody chose cannot be. The message says what can."""


def written_text(written: list[str]) -> str | None:
    return "".join(written).strip() or None


def written_number(written: list[str], least: float, most: float) -> float | None:
    """Return what somebody wrote as a number; None if they wrote nothing. A comma may be the decimal sign."""
    text = written_text(written)
    if text is None:
        return None
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise SettingError(Text("Write a number from {least} to {most}, or nothing.", least=least, most=most))
    return number


def written_names(written: list[str]) -> tuple[str, ...] | None:
    """Return the names that somebody wrote, with commas between them; None if they wrote nothing."""
    text = written_text(written)
    names = None if text is None else parse_names(text)
    if names == ():
        raise SettingError(
            Text(
                "Give me one to {most} names of two letters or more, with commas between them, each of at most {words} "
                "words and {chars} characters.",
                most=MOST_NAMES,
                words=MOST_WORDS,
                chars=MOST_NAME_CHARS,
            )
        )
    return names


def parse_names(names: str) -> tuple[str, ...]:
    """Parse a list of names; empty if it is not usable."""
    # As the recogniser writes them.
    composed = unicodedata.normalize("NFC", names)
    wanted = tuple(dict.fromkeys(" ".join(name.split()) for name in composed.split(",") if name.strip()))
    usable = all(
        len(name) <= MOST_NAME_CHARS and len(name.split()) <= MOST_WORDS and _SPEAKABLE.fullmatch(_without_marks(name))
        for name in wanted
    )
    return wanted if usable and len(wanted) <= MOST_NAMES else ()


def _without_marks(name: str) -> str:
    """Return the letters of a name without the signs at them, which are vowels in many scripts."""
    return "".join(sign for sign in name if unicodedata.category(sign)[0] != "M")
