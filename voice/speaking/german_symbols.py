"""Replaces numbers and signs by German words: '5 %' becomes '5 Prozent', and '21:04' '21 Uhr 4'. Pure.

German writes a comma in decimals, dots between thousands, and a full stop after ordinals. German voices read '3,5' as
people do, but '3.' before a capital letter as the end of a sentence.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from voice.speaking.german_ordinals import MONTHS, is_ordinal, ordinal_ending
from voice.speaking.number_pairs import fraction_words, range_words

if TYPE_CHECKING:
    from collections.abc import Callable

_ORDINALS = (
    "", "erst", "zweit", "dritt", "viert", "fünft", "sechst", "siebt", "acht", "neunt", "zehnt", "elft", "zwölft",
    "dreizehnt", "vierzehnt", "fünfzehnt", "sechzehnt", "siebzehnt", "achtzehnt", "neunzehnt",
)  # fmt: skip
_ONES = ("", "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
_TENS = ("", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")
_MONEY = {"$": "Dollar", "€": "Euro", "£": "Pfund", "¥": "Yen"}
_UNITS = {
    "km/h": "Kilometer pro Stunde", "km": "Kilometer", "cm": "Zentimeter", "mm": "Millimeter", "kg": "Kilogramm",
    "mg": "Milligramm", "ml": "Milliliter", "kB": "Kilobyte", "KB": "Kilobyte", "MB": "Megabyte", "GB": "Gigabyte",
    "TB": "Terabyte", "ms": "Millisekunden", "kHz": "Kilohertz", "MHz": "Megahertz", "GHz": "Gigahertz",
    "fps": "Bilder pro Sekunde", "m/s": "Meter pro Sekunde", "Mbit/s": "Megabit pro Sekunde",
    "Gbit/s": "Gigabit pro Sekunde",
}  # fmt: skip
# What follows a slash in '100 MB/s'.
_PER = {"s": "Sekunde", "min": "Minute", "h": "Stunde", "l": "Liter"} | _UNITS
_FRACTIONS = {
    "1/2": "ein halb",
    "1/3": "ein Drittel",
    "2/3": "zwei Drittel",
    "1/4": "ein Viertel",
    "3/4": "drei Viertel",
}
_SIGNS = {
    "+": "plus", "=": "gleich", "×": "mal", "*": "mal", "÷": "geteilt durch", "±": "plus minus", "≈": "ungefähr",
    "≥": "mindestens", "≤": "höchstens", "≠": "ungleich", "<": "kleiner als", ">": "größer als", "→": "zu", "&": "und",
}  # fmt: skip
# Written without spaces here: 'z. B.' is the same as 'z.B.'.
_SHORT = {
    "z.b.": "zum Beispiel", "d.h.": "das heißt", "u.a.": "unter anderem", "usw.": "und so weiter",
    "bzw.": "beziehungsweise", "ca.": "circa", "evtl.": "eventuell", "ggf.": "gegebenenfalls", "inkl.": "inklusive",
    "nr.": "Nummer", "mio.": "Millionen", "mrd.": "Milliarden",
}  # fmt: skip

_MEASURES = "|".join([*_MONEY.values(), *_UNITS.values(), "Prozent"])
_NUMBER = r"\d+(?:[.,]\d+)*"


def _date(day: str, month: str, year: str, written: str) -> str:
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31):
        return written
    return f"{int(day)}. {MONTHS[int(month) - 1]} {year}"


def _ordinal(number: str, ending: str) -> str:
    tens, ones = divmod(int(number), 10)
    if tens < 2:
        return f"{_ORDINALS[int(number)]}{ending}" if int(number) else f"nullt{ending}"
    return f"{_ONES[ones]}{'und' if ones else ''}{_TENS[tens]}st{ending}"


def _ordinal_in_sentence(found: re.Match[str]) -> str:
    before, following = found.string[: found.end() - 1], found.string[found.end() :]
    ending = ordinal_ending(before, following) if is_ordinal(before, following) else None
    return _ordinal(found[0][:-1], ending) if ending else found[0]


def _day_in_sentence(found: re.Match[str]) -> str:
    before, following = found.string[: found.end() - 1], found.string[found.end() :]
    if not is_ordinal(before, following):
        return found[0]
    date = _date(found[1], found[2], "", found[0])
    return date.rstrip()


def _clock(found: re.Match[str]) -> str:
    hour, minute = int(found[1]), int(found[2])
    if hour > 24 or minute > 59:
        return f"{found[1]} zu {found[2]}"
    return f"{hour} Uhr {minute}" if minute else f"{hour} Uhr"


def _money(sign: str, amount: str) -> str:
    whole, _, cents = amount.partition(",")
    # '3,50 €' is read as '3 Euro 50'; '2,5 €' is not.
    if len(cents) != 2 or not whole.isdigit():
        return f"{amount} {_MONEY[sign]}"
    return f"{whole} {_MONEY[sign]}" + ("" if cents == "00" else f" {int(cents)}")


# The order matters: longer patterns come before patterns that match a part of them.
RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<!\w)(?:z\. ?B|d\. ?h|u\. ?a|usw|bzw|ca|evtl|ggf|inkl|nr|mio|mrd)\.", re.IGNORECASE),
     lambda m: _SHORT[m[0].lower().replace(" ", "")]),
    (re.compile(r"\b([\w.+-]+)@([\w-]+(?:\.[\w-]+)+)\b"), lambda m: f"{m[1]} ät {m[2].replace('.', ' Punkt ')}"),
    (re.compile(r"(?<![\d-])(\d{4})-(\d{2})-(\d{2})(?![\d-])"), lambda m: _date(m[3], m[2], m[1], m[0])),
    (re.compile(r"(?<![\d.])(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})(?!\d)"), lambda m: _date(m[1], m[2], m[3], m[0])),
    (re.compile(r"(?<![\w.,])(\d{1,2})\.\s?(\d{1,2})\.(?= [^\W\d_])"), _day_in_sentence),
    (re.compile(r"(?<![\w.,])\d{1,2}\.(?= [^\W\d_])"), _ordinal_in_sentence),
    (re.compile(rf"(?<![\w.,])(\d{{1,2}})\.(?= (?:{'|'.join(MONTHS)})\b)"), lambda m: _ordinal(m[1], "er")),
    (re.compile(r"(?<![\d:])(\d{1,2}:\d{2}(?::\d{2})?(?:\s?Uhr)?)\s?[-–]\s?(?=\d{1,2}(?![\d-]))"),
     lambda m: f"{m[1]} bis "),
    (re.compile(r"(?<![\d.])(\d{1,2}\.\d{2})(?:\s?Uhr)?\s?[-–]\s?(?=\d{1,2}\.\d{2}\s?Uhr\b)"),
     lambda m: f"{m[1]} Uhr bis "),
    (re.compile(r"(?<![\d:])(\d{1,2}):(\d{2})(?::\d{2})?(?:\s?Uhr\b)?(?![\d:])"), _clock),
    (re.compile(r"(?<![\d.])(\d{1,2})\.(\d{2})\s?Uhr\b"), _clock),
    (re.compile(r"(?<=\d):(?=\d)"), lambda _: " zu "),
    (re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{3})+(?!\d|\.\d)"), lambda m: m[0].replace(".", "")),
    (re.compile(rf"([$€£¥])\s?({_NUMBER})"), lambda m: _money(m[1], m[2])),
    (re.compile(rf"({_NUMBER})\s?([$€£¥])"), lambda m: _money(m[2], m[1])),
    (re.compile(r"\s?([$€£¥])"), lambda m: f" {_MONEY[m[1]]}"),
    (re.compile(r"(?<=\d)\s?%"), lambda _: " Prozent"),
    (re.compile(r"(?<=\d)\s?°\s?([CF])\b"), lambda m: " Grad" + (" Fahrenheit" if m[1] == "F" else " Celsius")),
    (re.compile(r"(?<=\d)\s?°"), lambda _: " Grad"),
    (re.compile(rf"({_NUMBER})\s?({'|'.join(sorted(_UNITS, key=len, reverse=True))})(?!\w)"),
     lambda m: f"{m[1]} {_UNITS[m[2]]}"),
    (re.compile(rf"((?:\d|Millionen|Milliarden) (?:{_MEASURES})(?: \d\d?)?)/([^\W\d_]+)(?![\w/])"),
     lambda m: f"{m[1]} pro {_PER.get(m[2], m[2])}"),
    (re.compile(r"(?<![\w/])(\d+)/(\d+)(?![\w/])"), lambda m: fraction_words(m, _FRACTIONS, "von")),
    (re.compile(r"(?<![\d.,-])(\d{1,4})\s?([-–])\s?(\d{1,4})(?![\d-])"), lambda m: range_words(m, "bis")),
    (re.compile(r"(?<!\S)[-−](?=\d)"), lambda _: "minus "),
    (re.compile(r"~(?=\d)"), lambda _: "etwa "),
    (re.compile(r"#(?=\d)"), lambda _: "Nummer "),
    (re.compile(r"§+\s?(?=\d)"), lambda _: "Paragraf "),
    (re.compile(r"\bund/oder\b", re.IGNORECASE), lambda _: "und oder"),
    # Match only a single slash, because a path has several.
    (re.compile(r"(?<![\w/.~])([^\W\d_]+)/([^\W\d_]+)(?![\w/])"), lambda m: f"{m[1]} oder {m[2]}"),
    (re.compile(r"(?<!\w)([CcFf])#(?!\w)"), lambda m: f"{m[1]} sharp"),
    (re.compile(r"(?<!\w)([Cc])\+\+"), lambda m: f"{m[1]} plus plus"),
    (re.compile(r"(?<=[\w)])\^(?=[\w(-])"), lambda _: " hoch "),
    (re.compile(rf"(?<=\s)([{re.escape(''.join(_SIGNS))}])(?=\s)"), lambda m: _SIGNS[m[1]]),
    (re.compile(r"(?<=\d)([+×=÷≈≥≤])(?=\d)"), lambda m: f" {_SIGNS[m[1]]} "),
    (re.compile(r"([≈≥≤±])(?=\d)"), lambda m: f"{_SIGNS[m[1]]} "),
    (re.compile(r"(?<=\w)&(?=\w)"), lambda _: " und "),
)  # fmt: skip
