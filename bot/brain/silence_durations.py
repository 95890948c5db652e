"""Reads for how long a spoken request wants something: 'for twenty minutes', 'eine halbe Stunde lang'. Pure.

Recognisers write short numbers as words and longer ones as figures. English and German only.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SMALL = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_GERMAN = {
    "eine": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7, "acht": 8, "neun": 9,
    "zehn": 10, "elf": 11, "zwölf": 12, "fünfzehn": 15, "zwanzig": 20, "fünfundzwanzig": 25, "dreißig": 30,
    "vierzig": 40, "fünfundvierzig": 45, "fünfzig": 50, "sechzig": 60, "neunzig": 90,
}  # fmt: skip
_NUMBERS = (
    {word: value for value, word in enumerate(_SMALL, 1)}
    | _TENS
    | {f"{tens} {word}": ten + value for tens, ten in _TENS.items() for value, word in enumerate(_SMALL[:9], 1)}
    | _GERMAN
    | {"a": 1, "an": 1, "another": 1, "the next": 1, "die nächste": 1, "a couple of": 2}
)
_HALVES = {
    "half an hour": 30, "half hour": 30, "a half hour": 30,
    "halbe stunde": 30, "eine halbe stunde": 30, "ne halbe stunde": 30,
}  # fmt: skip
_QUARTERS = {
    "quarter of an hour": 15,
    "a quarter of an hour": 15,
    "three quarters of an hour": 45,
    "viertelstunde": 15,
    "eine viertelstunde": 15,
    "dreiviertelstunde": 45,
    "eine dreiviertelstunde": 45,
}
_AND_A_HALF = {"an hour and a half": 90, "hour and a half": 90, "anderthalb stunden": 90, "eineinhalb stunden": 90}
_FIXED = _HALVES | _QUARTERS | _AND_A_HALF
_MINUTES_EACH = {"minute": 1.0, "hour": 60.0, "stunde": 60.0}


def _one_of(words: dict[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_DURATION = re.compile(
    r"\b(?:(?:for |für )?the next |(?:für )?die nächsten? |for |für )?"
    r"(?:another |about |around |at least |(?:noch )?weitere |noch |etwa |ungefähr )?"
    rf"(?:(?P<fixed>{_one_of(_FIXED)})"
    rf"|(?P<number>\d{{1,3}}|{_one_of(_NUMBERS)})(?P<half> and a half)?(?: more)? (?P<unit>minute|hour|stunde)[ns]?"
    # 'A second' is no duration.
    r"|(?P<seconds>\d{2,3}) (?:seconds|sekunden))\b(?: lang| länger| longer| long)?"
)


def split_duration(text: str) -> tuple[str, float | None]:
    """Return the words of `text` without a duration, and that in minutes; None if there is none. The first counts."""
    words = " ".join(word.casefold().replace("’", "'") for word in _WORD.findall(text))
    found = _DURATION.search(words)
    if found is None:
        return text, None
    rest = f"{words[: found.start()]} {words[found.end() :]}"
    if found["fixed"]:
        return rest, float(_FIXED[found["fixed"]])
    if found["seconds"]:
        return rest, int(found["seconds"]) / 60
    number = int(found["number"]) if found["number"].isdecimal() else _NUMBERS[found["number"]]
    return rest, (number + 0.5 * bool(found["half"])) * _MINUTES_EACH[found["unit"]]
