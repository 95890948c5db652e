"""What of a written reply may be read aloud. Pure.

Models are told to write plain words and still send markdown, links, emoji, code, tables and stage directions.
None of it is read out: what carries words keeps them, what does not is left out. Between the sentence splitter and
the voice; code and hidden thoughts go over many sentences, so one `Spoken` goes with one reply.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from voice.speaking.symbols import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

# Said where a link stood in the middle of a sentence, which would be lame without it.
LINK = "the link"

# Where text begins or ends that is never spoken: code, and what reasoning models think to themselves.
_HIDDEN = re.compile(
    r"(?P<fence>```+|~~~+)|<(?P<close>/?)(?P<thought>think|thinking|reasoning|thought)>", re.IGNORECASE
)
_TABLE_ROW = re.compile(r"\s*\||[^|]*\|[^|]*\|")
_RULE = re.compile(r"\s*(?:[-*_=|:+]\s*){3,}")
_LINE_START = re.compile(r"\s*(?:#{1,6}\s+|-#\s+|(?:>+\s*)+|[-*+•‣◦–—]\s+(?=\S))")
_NUMBERED = re.compile(r"\s*(\d{1,3})\)\s+")
_SPOILER = re.compile(r"\|\|(.+?)\|\|")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_NAMED_LINK = re.compile(r"\[([^\[\]]+)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_URL = re.compile(
    r"<?(?:(?<![a-z0-9])[a-z][a-z0-9+.-]{1,10}://|(?<![a-z0-9])www\.)[^\s<>]*[^\s<>.,;:!?)\]'\"*_]>?"
    r"|(?<![a-z0-9])(?:[a-z0-9-]+\.)+[a-z]{2,10}/[^\s<>]*[^\s<>.,;:!?)\]'\"*_]",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-z!@#:][^<>]{0,200}>", re.IGNORECASE)
_INLINE_CODE = re.compile(r"`+([^`]*)`+")
_WORDS_ONLY = re.compile(r"[^\W_]+(?:[ '-][^\W_]+){0,3}")
_BRACKETED = re.compile(r"\[[^\[\]]*\]|\{\{[^{}]*\}\}")
_SHORTCODE = re.compile(r":[a-z][a-z0-9_+-]*:", re.IGNORECASE)
_EMOTICON = re.compile(r"(?<!\S)(?:[:;]['-]?[)(DPpOo/\\|*3]+|<3|[xX]D+|\^_*\^)(?=[\s.,!?]|$)")
_STAGE_VERBS = (
    "laugh|chuckle|giggle|smile|grin|smirk|sigh|nod|shrug|wink|cough|gasp|groan|whisper|pause|think|yawn|snort|"
    "hum|blink|wave|clap|clear(?:s|ing)? (?:its |his |her |their |my )?throat"
)
_STAGE = re.compile(
    rf"([*_]{{1,3}}|\()\s*(?:\w+ly\s+)?(?:{_STAGE_VERBS})(?:s|es|ing)?(?:\s+[\w' -]{{1,30}})?\s*(?:\1|\))",
    re.IGNORECASE,
)
_UNDERSCORES = re.compile(r"(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
# A star between numbers is a sign, every other one is markdown.
_STARS = re.compile(r"(?<!\d\s)(?<!\d)\*+|\*+(?!\s?\d)")
_MARKS = re.compile(r"~~+|\|\||`+")
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_HASHTAG = re.compile(r"(?<!\w)#(?=[^\W\d])")
_SKIP = re.compile(r"\W*SKIP\W*")
# These are signs with a name, no pictures.
_NAMED_SIGNS = frozenset("°©®™")
_PICTURE_CATEGORIES = frozenset({"So", "Sk", "Cc", "Cn", "Co", "Cs"})
# What makes pictures out of signs and joins pictures to others.
_INVISIBLE = re.compile("[\ufe0e\ufe0f\u20e3\u200b\u200d\u2060\ufeff\U000e0020-\U000e007f]")
_SPACE_BEFORE_STOP = re.compile(r"\s+([,.;:!?…])")
_EMPTY_BRACKETS = re.compile(r"\(\s*\)|\"\s*\"|“\s*”")


@dataclass(frozen=True, slots=True)
class Sayable:
    """One piece of a reply. `text` is what it says, as people read it; `aloud` is what the voice is given."""

    text: str
    aloud: str


class Spoken:
    """Takes the pieces of one reply in order. One instance a reply.

    `pronunciations`: word -> how it is said, matched as whole words whatever their case.
    """

    def __init__(self, pronunciations: Mapping[str, str] | None = None) -> None:
        self._pronunciations = {word.casefold(): said for word, said in (pronunciations or {}).items()}
        longest_first = sorted(filter(None, self._pronunciations), key=len, reverse=True)
        self._known = (
            re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
            if longest_first
            else None
        )
        self._fence = ""
        self._thinking = False

    def piece(self, written: str) -> Sayable | None:
        """Return what of the next piece is said, or None if nothing is."""
        text = plain(self._unhidden(written))
        if not text:
            return None
        aloud = in_words(self._pronounced(text))
        return Sayable(text, aloud) if _has_words(aloud) else None

    def _unhidden(self, written: str) -> str:
        """Return `written` without code and thoughts, and remember which of them goes on."""
        kept: list[str] = []
        at = 0
        for mark in _HIDDEN.finditer(written):
            if not self._hidden:
                kept.append(written[at : mark.start()])
            at = mark.end()
            if mark["thought"]:
                self._thinking = not mark["close"]
            elif not self._thinking:
                self._fence = "" if self._fence == mark["fence"][0] else self._fence or mark["fence"][0]
        if not self._hidden:
            kept.append(written[at:])
        return " ".join(kept)

    @property
    def _hidden(self) -> bool:
        return bool(self._fence) or self._thinking

    def _pronounced(self, text: str) -> str:
        if self._known is None:
            return text
        return self._known.sub(lambda found: self._pronunciations[found[0].casefold()], text)


def plain(written: str) -> str:
    """Return the words of one piece without markup, links, pictures and directions; empty if it has none."""
    text = _SPOILER.sub(r"\1", written)
    if _TABLE_ROW.match(text) or _RULE.fullmatch(text) or _SKIP.fullmatch(text):
        return ""
    text = _without_line_start(text)
    text = _NAMED_LINK.sub(r"\1", _IMAGE.sub(" ", text))
    text = _URL.sub(f" {LINK} ", text)
    text = _EMOTICON.sub(" ", _STAGE.sub(" ", _INLINE_CODE.sub(_code_words, text)))
    text = _SHORTCODE.sub(" ", _BRACKETED.sub(" ", _TAG.sub(" ", text)))
    text = _STARS.sub("", _MARKS.sub("", text))
    text = _HASHTAG.sub("", _MENTION.sub("", _UNDERSCORES.sub("", text)))
    text = "".join(" " if _is_picture(letter) else letter for letter in _INVISIBLE.sub("", text))
    text = _SPACE_BEFORE_STOP.sub(r"\1", " ".join(_EMPTY_BRACKETS.sub(" ", text).split()))
    if not _has_words(text) or text.strip(" .,:;!?()").casefold() == LINK:
        return ""
    return text


def _without_line_start(text: str) -> str:
    while (mark := _LINE_START.match(text)) is not None:
        text = text[mark.end() :]
    return _NUMBERED.sub(r"\1. ", text) if _NUMBERED.match(text) else text


def _code_words(found: re.Match[str]) -> str:
    """Return the words of inline code if it is nothing but words: `main` can be said, `x->y` cannot."""
    return f" {found[1]} " if _WORDS_ONLY.fullmatch(found[1].strip()) else " "


def _is_picture(letter: str) -> bool:
    return letter not in _NAMED_SIGNS and unicodedata.category(letter) in _PICTURE_CATEGORIES


def _has_words(text: str) -> bool:
    return any(letter.isalnum() for letter in text)
