"""What a setting of a server is: how it is chosen, and what people may write in it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bot.brain.wakeword import MOST_WORDS
from bot.errors import BotError
from bot.server_settings import MOST_NAMES
from bot.texts.text import Text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from bot.discord.commands.setting_sentences import Here, OperatorSettings, SettingStores

    Changes = Mapping[str, Any]

AT_ONCE = Text("This takes effect at once.")
MOST_NAME_CHARS = 32
# At least two letters in a row, and no signs with which it could look like another part of a prompt.
_SPEAKABLE = re.compile(r"(?=.*[^\W\d_]{2})[\w .'’*-]+")


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these is chosen. `options`: of a server, by what is stored. `now`: the one that holds."""

    options: Callable[[SettingStores, int], Mapping[str, Text]]
    now: Callable[[Here], str]


@dataclass(frozen=True, slots=True)
class SomeOf:
    """Some channels, roles or people are chosen, `most` of them at most. `now`: those that hold."""

    kind: Literal["channels", "text channels", "roles", "people"]
    most: int
    now: Callable[[Here], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Written:
    """Something is written. Nothing written: the default."""

    most_chars: int
    now: Callable[[Here], str]


@dataclass(frozen=True, slots=True)
class ServerSetting:
    """One setting. `about`: at most 100 characters, as Discord shows it beside the name.

    `control`: how it is chosen. `changes`: what to store for what was chosen: ids or keys of options, or the one text
    that was written; raises `SettingError`. `told`: what holds. `prepare`: done before it is stored; raises `BotError`.
    """

    key: str
    name: Text
    about: Text
    control: OneOf | SomeOf | Written
    changes: Callable[[list[str], OperatorSettings], Changes]
    told: Callable[[Here], Text]
    effect: Text = AT_ONCE
    prepare: Callable[[Changes, SettingStores, Callable[[Text], Awaitable[None]]], Awaitable[None]] | None = None


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
