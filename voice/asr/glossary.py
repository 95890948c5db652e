"""Chooses names and words for the recogniser's prompt, such as usernames and game terms that Whisper does not know.

With a glossary 53 of 59 rare words were recognised, without it 40. It costs prompt tokens for every utterance, so it is
short and starts with the likeliest words.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LONGEST_TERM_CHARS = 40
# Maximum length of the glossary in UTF-8: about 80 tokens of English, which every utterance costs, and about 120 of
# most other scripts. Whisper and its servers take 223 tokens, and of more only the last, without the bot's names.
GLOSSARY_MAX_BYTES = 300
# Of a crowded channel, the people's share of what the bot's names leave: words of the guild are said too.
PEOPLE_SHARE = 0.7
# Words of a topic or title that are taken: longer ones with a capital. 'The Curse of Strahd' has two.
SHORTEST_UNUSUAL_CHARS = 4
MOST_UNUSUAL = 8
LONGEST_OCCASION_CHARS = 300
# Everything except letters, digits and signs inside names. Nobody speaks the emoji and decoration of display names.
_UNSPOKEN = re.compile(r"[^\w\s'’.&-]|_")
# Marks of no script, by the beginnings of their names: piled on letters as decoration, or part of an emoji.
_DECORATION = ("COMBINING ", "VARIATION ")
_TITLE_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_PROMPT_BEGINS = "Glossary: "
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"\w+")


def spoken_form(name: str) -> str:
    """Return `name` as people say it: without emoji, decoration and line breaks; empty if nothing is left."""
    letters = _UNSPOKEN.sub(_in_place_of, unicodedata.normalize("NFC", name))
    # Letters that only look different, as in '𝓐𝓭𝓪', are plain ones.
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", letters)).strip(" .-'’&")


def _in_place_of(found: re.Match[str]) -> str:
    """Return what stands for a sign that is no letter: a space, or for a mark on a letter the mark or nothing."""
    sign = found.group()
    if unicodedata.category(sign)[0] != "M":
        return " "
    # Vowel signs, as in Hindi or Thai, are as much of a word as its letters.
    return "" if unicodedata.name(sign, "").startswith(_DECORATION) else sign


def choose_glossary(
    *,
    wake_names: Iterable[str],
    display_names: Iterable[str],
    words: Iterable[str],
    occasions: Iterable[str] = (),
    max_bytes: int = GLOSSARY_MAX_BYTES,
) -> tuple[str, ...]:
    """Return the terms, most important first: the bot's names, the people here, the guild's words, then the unusual
    words of `occasions` (topics, titles of events), which people speak of.

    Of what the bot's names leave, people take at most `PEOPLE_SHARE` as long as words of the guild would be left out.
    All terms and separators together have at most `max_bytes` in UTF-8. Terms that differ only in case are listed once.
    """
    own, people = _terms(wake_names), _terms(display_names)
    others = _terms((*words, *(word for occasion in occasions for word in unusual_words(occasion))))
    chosen: dict[str, str] = {}
    _add(chosen, own, max_bytes)
    left = max_bytes - _length(chosen)
    _add(chosen, people, max_bytes - min(int((1 - PEOPLE_SHARE) * left), _length(others) + 2))
    _add(chosen, others, max_bytes)
    _add(chosen, people, max_bytes)
    return tuple(chosen.values())


def unusual_words(text: str) -> list[str]:
    """Return the words of `text` that a recogniser may not know: names, with a capital, and words with digits."""
    words = _TITLE_WORD.findall(spoken_form(text[:LONGEST_OCCASION_CHARS]))
    return [
        word
        for word in words
        if len(word) >= SHORTEST_UNUSUAL_CHARS and (word[0].isupper() or any(c.isdigit() for c in word))
    ][:MOST_UNUSUAL]


def _terms(names: Iterable[str]) -> dict[str, str]:
    """Return the usable terms by what they are when only case differs."""
    terms: dict[str, str] = {}
    for name in names:
        term = spoken_form(name)
        if term and len(term) <= LONGEST_TERM_CHARS and any(c.isalpha() for c in term):
            terms.setdefault(term.casefold(), term)
    return terms


def _length(terms: Mapping[str, str]) -> int:
    """Return how many bytes the terms have, with the separators between them."""
    return sum(len(term.encode()) + 2 for term in terms.values()) - 2 if terms else 0


def _add(chosen: dict[str, str], terms: Mapping[str, str], max_bytes: int) -> None:
    """Add the terms that fit."""
    length = _length(chosen)
    for key, term in terms.items():
        cost = len(term.encode()) + (2 if chosen else 0)
        if key not in chosen and length + cost <= max_bytes:
            chosen[key] = term
            length += cost


def repeats_alone(text: str, terms: tuple[str, ...]) -> bool:
    """Return whether `text` is made of `terms` alone, however often, and has more than one word."""
    words = _as_words(text).split()
    # A longer term first: 'Ada' may begin another one.
    phrases = sorted((_as_words(term).split() for term in terms), key=len, reverse=True)
    at = 0
    while at < len(words):
        found = next((term for term in phrases if term and words[at : at + len(term)] == term), None)
        if found is None:
            return False
        at += len(found)
    return at > 1


def _as_words(text: str) -> str:
    """Return the words of `text` in small letters, with a space before, between and behind them. Vowel signs and other
    marks, which `\\w` takes for the end of a word, are left out.
    """
    letters = "".join(sign for sign in text.casefold() if unicodedata.category(sign)[0] != "M")
    return f" {' '.join(_WORD.findall(letters))} "


def glossary_prompt(terms: tuple[str, ...]) -> str:
    """Return the text to put before an utterance in Whisper's context; empty without terms."""
    return f"{_PROMPT_BEGINS}{', '.join(terms)}." if terms else ""


def prompt_glossary(prompt: str) -> tuple[str, ...]:
    """Return the terms of a prompt that came from outside, within the limits of `choose_glossary`.

    The reverse of `glossary_prompt`; of any other prompt, what stands between its commas.
    """
    terms = prompt.removeprefix(_PROMPT_BEGINS).removesuffix(".").split(", ")
    return choose_glossary(wake_names=terms, display_names=(), words=())
