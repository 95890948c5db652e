"""Replaces signs by English words: '5 %' becomes '5 percent'. Pure.

Times and dates stay: English voices read them, or have them written out (`hibari.written_out`).
"""

from __future__ import annotations

import re

from voice.speaking.sign_rules import SignRule, SignWords, sign_rules

_MONEY = {"$": ("dollar", "dollars"), "€": ("euro", "euros"), "£": ("pound", "pounds"), "¥": ("yen", "yen")}
_SCALES = {"k": "thousand", "m": "million", "bn": "billion", "b": "billion"}
_UNITS = {
    "km/h": "kilometres an hour", "mph": "miles an hour", "km": "kilometres", "cm": "centimetres",
    "mm": "millimetres", "kg": "kilograms", "mg": "milligrams", "ml": "millilitres", "kB": "kilobytes",
    "KB": "kilobytes", "MB": "megabytes", "GB": "gigabytes", "TB": "terabytes", "ms": "milliseconds",
    "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz", "fps": "frames a second",
    "m/s": "metres per second", "Mbit/s": "megabits per second", "Gbit/s": "gigabits per second",
    "°": "degrees", "°C": "degrees Celsius", "° C": "degrees Celsius", "°F": "degrees Fahrenheit",
    "° F": "degrees Fahrenheit",
}  # fmt: skip
# The first one of a name: 'metres per second'. 'kilohertz' has none.
_PLURAL = re.compile(r"s\b")
_SHORT = {"e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus", "approx.": "about"}

_WORDS = SignWords(
    decimal=".", at="at", dot="dot", percent="percent", per="per", to="to", out_of="out of",
    minus="minus", about="about", number="number", power="to the power of", and_or=("and", "or"),
    scales=("thousand", "million", "billion"), money=[name for names in _MONEY.values() for name in names],
    units=_UNITS,
    one_unit={unit: _PLURAL.sub("", name, count=1) for unit, name in _UNITS.items()},
    units_behind_per={
        "s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "mo": "month", "yr": "year",
        "l": "litre",
    },
    fractions={
        "1/2": "one half", "1/3": "one third", "2/3": "two thirds", "1/4": "one quarter", "3/4": "three quarters",
    },
    signs={
        "+": "plus", "=": "equals", "×": "times", "*": "times", "÷": "divided by", "±": "plus or minus", "≈": "about",
        "≥": "at least", "≤": "at most", "≠": "is not", "<": "less than", ">": "more than", "→": "to", "&": "and",
    },
)  # fmt: skip
_NUMBER = r"\d+(?:\.\d+)?"


def _money(sign: str, amount: str, scale: str | None) -> str:
    one, many = _MONEY[sign]
    if scale:
        return f"{amount} {_SCALES.get(scale.lower(), scale)} {many}"
    return f"{amount} {one if amount == '1' else many}"


# The order matters: longer patterns come before patterns that match a part of them.
RULES: tuple[SignRule, ...] = (
    (re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(short) for short in _SHORT)})", re.IGNORECASE),
     lambda m: _SHORT[m[0].lower()]),
    (re.compile(r"(?<![\d:])(\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\b\.?)?)\s?[-–]\s?(?=\d{1,2}(?![\d-]))",
                re.IGNORECASE),
     lambda m: f"{m[1]} to "),
    (re.compile(r"(?<=\d),(?=\d{3}(?!\d))"), lambda _: ""),
    (re.compile(rf"([$€£¥])\s?({_NUMBER})(?:\s?(k|m|bn|b|thousand|million|billion)\b)?", re.IGNORECASE),
     lambda m: _money(m[1], m[2], m[3])),
    (re.compile(rf"({_NUMBER})\s?([€£¥$])(?!\d)"), lambda m: _money(m[2], m[1], None)),
    (re.compile(r"(?<!\S)w/o(?!\w)", re.IGNORECASE), lambda _: "without"),
    (re.compile(r"(?<!\S)w/(?=\s?\S)", re.IGNORECASE), lambda _: "with "),
    (re.compile(r"(?<=[\w)])\^2(?!\d)"), lambda _: " squared"),
    (re.compile(r"(?<=[\w)])\^3(?!\d)"), lambda _: " cubed"),
    *sign_rules(_WORDS),
)  # fmt: skip
