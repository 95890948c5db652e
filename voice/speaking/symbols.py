"""Replaces numbers and signs by words: '5 %' becomes '5 percent', and '21:04' is read as a time. Pure.

Voices differ in how they read signs, so they get words instead. Digits remain, because every voice can read numbers.
The words are English, like the voice that comes with Roomtone, or German (`german_symbols`).
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from voice.speaking import german_symbols
from voice.speaking.number_pairs import fraction_words, range_words

if TYPE_CHECKING:
    from collections.abc import Callable

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_MONEY = {"$": ("dollar", "dollars"), "€": ("euro", "euros"), "£": ("pound", "pounds"), "¥": ("yen", "yen")}
_SCALES = {"k": "thousand", "m": "million", "bn": "billion", "b": "billion"}
_UNITS = {
    "km/h": "kilometres an hour", "mph": "miles an hour", "km": "kilometres", "cm": "centimetres",
    "mm": "millimetres", "kg": "kilograms", "mg": "milligrams", "ml": "millilitres", "kB": "kilobytes",
    "KB": "kilobytes", "MB": "megabytes", "GB": "gigabytes", "TB": "terabytes", "ms": "milliseconds",
    "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz", "fps": "frames a second",
    "m/s": "metres per second", "Mbit/s": "megabits per second", "Gbit/s": "gigabits per second",
}  # fmt: skip
# What follows a slash in '100 MB/s'.
_PER = {
    "s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "mo": "month", "yr": "year",
    "l": "litre",
} | {unit: name.removesuffix("s") for unit, name in _UNITS.items()}  # fmt: skip
_FRACTIONS = {"1/2": "one half", "1/3": "one third", "2/3": "two thirds", "1/4": "one quarter", "3/4": "three quarters"}
_SIGNS = {
    "+": "plus", "=": "equals", "×": "times", "*": "times", "÷": "divided by", "±": "plus or minus", "≈": "about",
    "≥": "at least", "≤": "at most", "≠": "is not", "<": "less than", ">": "more than", "→": "to", "&": "and",
}  # fmt: skip
_SHORT = {"e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus", "approx.": "about"}

_MEASURES = "|".join([*(name for names in _MONEY.values() for name in names[::-1]), *_UNITS.values(), "percent"])
_NUMBER = r"\d+(?:\.\d+)?"


def _date(found: re.Match[str]) -> str:
    month, day = int(found[2]), int(found[3])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return f"{found[1]} {found[2]} {found[3]}"
    return f"{day} {_MONTHS[month - 1]} {found[1]}"


def _clock(found: re.Match[str]) -> str:
    hour, minute = int(found[1]), int(found[2])
    if hour > 24 or minute > 59:
        return f"{found[1]} to {found[2]}"
    half = f" {found[3]}" if found[3] else ""
    if minute == 0:
        return f"{hour}{half}" if half else f"{hour} o'clock"
    return f"{hour} oh {minute}{half}" if minute < 10 else f"{hour} {minute}{half}"


def _money(sign: str, amount: str, scale: str | None) -> str:
    one, many = _MONEY[sign]
    if scale:
        return f"{amount} {_SCALES.get(scale.lower(), scale)} {many}"
    return f"{amount} {one if amount == '1' else many}"


_Rule = tuple[re.Pattern[str], "Callable[[re.Match[str]], str]"]

# The order matters: longer patterns come before patterns that match a part of them.
_RULES: tuple[_Rule, ...] = (
    (re.compile("|".join(re.escape(short) for short in _SHORT), re.IGNORECASE), lambda m: _SHORT[m[0].lower()]),
    (re.compile(r"\b([\w.+-]+)@([\w-]+(?:\.[\w-]+)+)\b"), lambda m: f"{m[1]} at {m[2].replace('.', ' dot ')}"),
    (re.compile(r"(?<![\d-])(\d{4})-(\d{2})-(\d{2})(?![\d-])"), _date),
    (re.compile(r"(?<![\d:])(\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\b\.?)?)\s?[-–]\s?(?=\d{1,2}(?![\d-]))",
                re.IGNORECASE),
     lambda m: f"{m[1]} to "),
    (re.compile(r"(?<![\d:])(\d{1,2}):(\d{2})(?::\d{2})?(?:\s?([ap])\.?m\b\.?)?(?![\d:])", re.IGNORECASE),
     lambda m: _clock(m) + ("m" if m[3] else "")),
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), lambda _: ""),
    (re.compile(rf"([$€£¥])\s?({_NUMBER})(?:\s?(k|m|bn|b|thousand|million|billion)\b)?", re.IGNORECASE),
     lambda m: _money(m[1], m[2], m[3])),
    (re.compile(rf"({_NUMBER})\s?([€£¥$])(?!\d)"), lambda m: _money(m[2], m[1], None)),
    (re.compile(rf"({_NUMBER})\s?%"), lambda m: f"{m[1]} percent"),
    (re.compile(rf"({_NUMBER})\s?°\s?([CF])\b"),
     lambda m: f"{m[1]} degrees {'Celsius' if m[2] == 'C' else 'Fahrenheit'}"),
    (re.compile(rf"({_NUMBER})\s?°"), lambda m: f"{m[1]} degrees"),
    (re.compile(rf"({_NUMBER})\s?({'|'.join(sorted(_UNITS, key=len, reverse=True))})(?!\w)"),
     lambda m: f"{m[1]} {_UNITS[m[2]]}"),
    (re.compile(rf"((?:\d|thousand|million|billion) (?:{_MEASURES}))/([^\W\d_]+)(?![\w/])"),
     lambda m: f"{m[1]} per {_PER.get(m[2], m[2])}"),
    (re.compile(r"(?<![\w/])(\d+)/(\d+)(?![\w/])"), lambda m: fraction_words(m, _FRACTIONS, "out of")),
    (re.compile(r"(?<![\d.-])(\d{1,4})\s?([-–])\s?(\d{1,4})(?![\d-])"), lambda m: range_words(m, "to")),
    (re.compile(r"(?<!\S)[-−](?=\d)"), lambda _: "minus "),
    (re.compile(r"~(?=\d)"), lambda _: "about "),
    (re.compile(r"#(?=\d)"), lambda _: "number "),
    (re.compile(r"\band/or\b", re.IGNORECASE), lambda _: "and or"),
    (re.compile(r"(?<!\S)w/o(?!\w)", re.IGNORECASE), lambda _: "without"),
    (re.compile(r"(?<!\S)w/(?=\s?\w)", re.IGNORECASE), lambda _: "with "),
    # Match only a single slash, because a path has several.
    (re.compile(r"(?<![\w/.~])([^\W\d_]+)/([^\W\d_]+)(?![\w/])"), lambda m: f"{m[1]} or {m[2]}"),
    (re.compile(r"(?<!\w)([CcFf])#(?!\w)"), lambda m: f"{m[1]} sharp"),
    (re.compile(r"(?<!\w)([Cc])\+\+"), lambda m: f"{m[1]} plus plus"),
    (re.compile(r"(?<=[\w)])\^2(?!\d)"), lambda _: " squared"),
    (re.compile(r"(?<=[\w)])\^3(?!\d)"), lambda _: " cubed"),
    (re.compile(r"(?<=[\w)])\^(?=[\w(-])"), lambda _: " to the power of "),
    (re.compile(rf"(?<=\s)([{re.escape(''.join(_SIGNS))}])(?=\s)"), lambda m: _SIGNS[m[1]]),
    (re.compile(r"(?<=\d)([+×=÷≈≥≤])(?=\d)"), lambda m: f" {_SIGNS[m[1]]} "),
    (re.compile(r"([≈≥≤±])(?=\d)"), lambda m: f"{_SIGNS[m[1]]} "),
    (re.compile(r"(?<=\w)&(?=\w)"), lambda _: " and "),
)  # fmt: skip

# Some voices would spell out the remaining signs or fail on them.
_SILENT_SIGNS = frozenset("*_`~|<>{}[]^\\#=+@/&%$€£¥°")
_SILENT_CATEGORIES = frozenset({"So", "Sk", "Sm", "Sc", "Cc", "Cf", "Cn", "Co", "Cs"})
_SPACE_BEFORE_STOP = re.compile(r"\s+([,.;:!?…]+)(?=\s|$)")


def expand_symbols(text: str, language: str = "") -> str:
    """Return `text` with signs replaced by words. Signs without a word are removed.

    `language`: the code of the language in which it is read. The words are English in any but German.
    """
    for pattern, words in german_symbols.RULES if language == "de" else _RULES:
        text = pattern.sub(words, text)
    speakable = "".join(" " if _is_silent(letter) else letter for letter in text)
    return _SPACE_BEFORE_STOP.sub(r"\1", " ".join(speakable.split()))


def _is_silent(letter: str) -> bool:
    return letter in _SILENT_SIGNS or unicodedata.category(letter) in _SILENT_CATEGORIES
