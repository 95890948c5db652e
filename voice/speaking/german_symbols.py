"""Replaces numbers and signs by German words: '5 %' becomes '5 Prozent', and '21:04' '21 Uhr 4'. Pure.

German writes a comma in decimals, dots between thousands, and a full stop after ordinals. German voices read '3,5' as
people do, but '3.' before a capital letter as the end of a sentence.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from voice.speaking.german_ordinals import MONTHS, is_ordinal, ordinal_ending
from voice.speaking.sign_rules import SignWords, sign_rules

if TYPE_CHECKING:
    from voice.speaking.sign_rules import SignRule

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
    "Gbit/s": "Gigabit pro Sekunde", "°": "Grad", "°C": "Grad Celsius", "° C": "Grad Celsius",
    "°F": "Grad Fahrenheit", "° F": "Grad Fahrenheit",
}  # fmt: skip
# Written without spaces here: 'z. B.' is the same as 'z.B.'.
_SHORT = {
    "z.b.": "zum Beispiel", "d.h.": "das heißt", "u.a.": "unter anderem", "usw.": "und so weiter",
    "bzw.": "beziehungsweise", "ca.": "circa", "evtl.": "eventuell", "ggf.": "gegebenenfalls", "inkl.": "inklusive",
    "nr.": "Nummer", "mio.": "Millionen", "mrd.": "Milliarden",
}  # fmt: skip

_WORDS = SignWords(
    decimal=",", at="ät", dot="Punkt", percent="Prozent", per="pro", to="bis", out_of="von",
    minus="minus", about="etwa", number="Nummer", power="hoch", and_or=("und", "oder"),
    scales=("Millionen", "Milliarden"), money=_MONEY.values(),
    units=_UNITS,
    one_unit=_UNITS | {"ms": "Millisekunde", "fps": "Bild pro Sekunde"},
    units_behind_per={"s": "Sekunde", "min": "Minute", "h": "Stunde", "l": "Liter"},
    fractions={
        "1/2": "ein halb", "1/3": "ein Drittel", "2/3": "zwei Drittel", "1/4": "ein Viertel", "3/4": "drei Viertel",
    },
    signs={
        "+": "plus", "=": "gleich", "×": "mal", "*": "mal", "÷": "geteilt durch", "±": "plus minus", "≈": "ungefähr",
        "≥": "mindestens", "≤": "höchstens", "≠": "ungleich", "<": "kleiner als", ">": "größer als", "→": "zu",
        "&": "und",
    },
)  # fmt: skip
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
RULES: tuple[SignRule, ...] = (
    (re.compile(r"(?<!\w)(?:z\. ?B|d\. ?h|u\. ?a|usw|bzw|ca|evtl|ggf|inkl|nr|mio|mrd)\.", re.IGNORECASE),
     lambda m: _SHORT[m[0].lower().replace(" ", "")]),
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
    (re.compile(r"§+\s?(?=\d)"), lambda _: "Paragraf "),
    *sign_rules(_WORDS),
)  # fmt: skip
