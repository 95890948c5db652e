"""The rules that read signs in the same way in every language, given its words: '5 %', '8/10', '100 MB/s'. Pure.

How a language writes dates, times, amounts of money and ordinal numbers is in its own module (`english_symbols`,
`german_symbols`), which puts those rules before these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# What is replaced, and the words for what was found.
SignRule: TypeAlias = "tuple[re.Pattern[str], Callable[[re.Match[str]], str]]"

# As keyboards have them.
_COMPARISONS = {"<=": "≤", ">=": "≥", "!=": "≠"}
# '8/10' is a rating, but '24/7' is not.
_RATING_SCALES = frozenset({"5", "10", "20", "100"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SignWords:
    """One language's words.

    `decimal`: the sign before decimals. `at`, `dot`: in an e-mail address. `to`: in a range, '8 to 10'. `out_of`: in a
    rating. `power`: 'x to the power of'. `and_or`: its two words. `scales`: words between a number and its unit.
    `money`: the names of currencies as they stand behind a number. `units`: by their signs, as several of them are
    called; `one_unit`: as one is. `units_behind_per`: those besides that follow `per`. `fractions`: those that have
    words of their own. `signs`: single signs between words or numbers, '&' among them.
    """

    decimal: str
    at: str
    dot: str
    percent: str
    per: str
    to: str
    out_of: str
    minus: str
    about: str
    number: str
    power: str
    and_or: tuple[str, str]
    scales: Iterable[str]
    money: Iterable[str]
    units: Mapping[str, str]
    one_unit: Mapping[str, str]
    units_behind_per: Mapping[str, str]
    fractions: Mapping[str, str]
    signs: Mapping[str, str]


def sign_rules(words: SignWords) -> tuple[SignRule, ...]:
    """Return the rules in their order: longer patterns come before patterns that match a part of them."""
    both, either = words.and_or
    scales = "|".join(words.scales)
    units = rf"({'|'.join(sorted(words.units, key=len, reverse=True))})(?!\w)"
    # Longer names first: 'dollar' is a part of 'dollars'.
    names = {*words.money, *words.units.values(), *words.one_unit.values(), words.percent}
    measures = "|".join(sorted(names, key=len, reverse=True))
    behind_per = {**words.one_unit, **words.units_behind_per}
    return (
        (re.compile(r"\b([\w.+-]+)@([\w-]+(?:\.[\w-]+)+)\b"),
         lambda m: f"{m[1]} {words.at} {m[2].replace('.', f' {words.dot} ')}"),
        (re.compile(r"(?<=\d)\s?%"), lambda _: f" {words.percent}"),
        # '20°Celsius', '38°N'
        (re.compile(r"(?<=°)(?=\w)(?![CF]\b)"), lambda _: " "),
        (re.compile(rf"(?<![\d.,])1\s?{units}"), lambda m: f"1 {words.one_unit[m[1]]}"),
        (re.compile(rf"(?<=\d)\s?{units}"), lambda m: f" {words.units[m[1]]}"),
        # Cents may stand between the currency and the slash.
        (re.compile(rf"((?:\d|{scales}) (?:{measures})(?: \d\d?)?)/([^\W\d_]+)(?![\w/])"),
         lambda m: f"{m[1]} {words.per} {behind_per.get(m[2], m[2])}"),
        (re.compile(r"(?<![\w/])(\d+)/(\d+)(?![\w/])"), lambda m: _fraction(m, words)),
        (re.compile(rf"(?<![\d.{words.decimal}-])(\d{{1,4}})\s?([-–])\s?(\d{{1,4}})(?![\d-])"),
         lambda m: _range(m, words.to)),
        (re.compile(r"(?<!\S)[-−](?=\d)"), lambda _: f"{words.minus} "),
        (re.compile(r"~(?=\d)"), lambda _: f"{words.about} "),
        (re.compile(r"#(?=\d)"), lambda _: f"{words.number} "),
        (re.compile(rf"\b{both}/{either}\b", re.IGNORECASE), lambda _: f"{both} {either}"),
        # Match only a single slash, because a path has several.
        (re.compile(r"(?<![\w/.~])([^\W\d_]+)/([^\W\d_]+)(?![\w/])"), lambda m: f"{m[1]} {either} {m[2]}"),
        (re.compile(r"(?<!\w)([CcFf])#(?!\w)"), lambda m: f"{m[1]} sharp"),
        (re.compile(r"(?<!\w)([Cc])\+\+"), lambda m: f"{m[1]} plus plus"),
        (re.compile(r" ?([<>!]=) ?(?=[\w(.-])"), lambda m: f" {_COMPARISONS[m[1]]} "),
        (re.compile(r"(?<=[\w)])\^(?=[\w(-])"), lambda _: f" {words.power} "),
        (re.compile(rf"(?<=\s)([{re.escape(''.join(words.signs))}])(?=\s)"), lambda m: words.signs[m[1]]),
        (re.compile(r"(?<=\d)([+×*=÷≈≥≤≠])(?=\d)"), lambda m: f" {words.signs[m[1]]} "),
        (re.compile(r"([≈≥≤±])(?=\d)"), lambda m: f"{words.signs[m[1]]} "),
        (re.compile(r"(?<=\w)&(?=\w)"), lambda _: f" {words.signs['&']} "),
    )  # fmt: skip


def _range(found: re.Match[str], to: str) -> str:
    low, sign, high = found[1], found[2], found[3]
    # A hyphen between two numbers is a range only if the second is larger. Phone numbers and scores have hyphens too.
    return f"{low} {to} {high}" if sign == "–" or int(low) < int(high) else f"{low} {high}"


def _fraction(found: re.Match[str], words: SignWords) -> str:
    if (known := words.fractions.get(found[0])) is not None:
        return known
    return f"{found[1]} {words.out_of} {found[2]}" if found[2] in _RATING_SCALES else f"{found[1]} {found[2]}"
