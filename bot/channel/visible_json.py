"""Writes the arguments of a call so that people see all of them: what is shown is what is sent, character by character.

Shown as they are: letters, digits and signs that people of the room can read, each of which has a place of its own in
the line. Everything else is the number of its code point, as JSON writes it: what takes no place (variation selectors,
tags, fillers), stacks marks on a letter, turns the direction of the text, or looks like another spelling of it.
"""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    _Kind = Literal["letter", "mark", "sign", "other"]

_CJK_SIGNS = "、。〈〉《》「」『』【】〜・ー！？（），．：；％"
# Language -> how the names of its letters begin in Unicode, besides the Latin ones; and its signs. Arabic and Hebrew
# letters are not among them: they turn the direction of what stands beside them.
_SCRIPTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    **dict.fromkeys(("be", "bg", "kk", "mk", "ru", "sr", "uk"), (("CYRILLIC ",), "№")),
    **dict.fromkeys(("hi", "mr", "ne"), (("DEVANAGARI ",), "।॥")),
    "el": (("GREEK ",), ""),
    "ja": (("CJK UNIFIED IDEOGRAPH-", "HIRAGANA LETTER ", "KATAKANA LETTER "), _CJK_SIGNS),
    "ko": (("HANGUL SYLLABLE ",), _CJK_SIGNS),
    "th": (("THAI ",), "฿"),
    "zh": (("CJK UNIFIED IDEOGRAPH-",), _CJK_SIGNS),
}
# Of every room, and the line feeds of the indentation. A backtick would end a block of code on Discord.
_SIGNS = frozenset({"\n", *map(chr, range(0x20, 0x7F)), *"¡¢£¥§°±²³·½¿×÷–—‘’‚“”„…‹›«»•€"}) - {"`"}
# Up to Extended-B, and those with two marks, as Vietnamese writes them.
_LATIN = (range(0xC0, 0x250), range(0x1E00, 0x1F00))
# How many marks a letter may have, such as a vowel and a tone in Thai. More would run into other lines.
_MOST_MARKS = 2


def visible_json(value: object, languages: Collection[str] = ()) -> str:
    """Return a value as JSON, indented. `languages`: those of the room, as codes or Discord locales.

    Reading it gives the same value back. `value`: as read from JSON, without halves of characters.
    """
    codes = frozenset(each.partition("-")[0] for each in languages)
    shown: list[str] = []
    marks_left = 0
    for char in json.dumps(value, ensure_ascii=False, indent=2):
        kind = _kind(char, codes)
        is_shown = kind in {"letter", "sign"} or (kind == "mark" and marks_left > 0)
        shown.append(char if is_shown else _escaped(char))
        marks_left = _MOST_MARKS if kind == "letter" else marks_left - 1 if kind == "mark" else 0
    return "".join(shown)


@lru_cache(maxsize=4_096)
def _kind(char: str, codes: frozenset[str]) -> _Kind:
    """Return what a character is to people who write these languages. A mark belongs to the letter before it."""
    scripts = [_SCRIPTS[code] for code in codes if code in _SCRIPTS]
    if char in _SIGNS or any(char in signs for _, signs in scripts):
        return "sign"
    # Otherwise it is another way to write what looks the same.
    if unicodedata.normalize("NFC", char) != char:
        return "other"
    category = unicodedata.category(char)
    if any(ord(char) in block for block in _LATIN):
        # Not those that look like two letters: "ĳ" for "ij".
        is_one = category in {"Ll", "Lu"} and not unicodedata.decomposition(char).startswith("<")
        return "letter" if is_one else "other"
    if not unicodedata.name(char, "").startswith(tuple(name for names, _ in scripts for name in names)):
        return "other"
    return "letter" if category[0] == "L" else "mark" if category[0] == "M" else "sign" if category == "Nd" else "other"


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
