"""What of a written reply may be read aloud. Pure.

Models are told to write plain words and still send markdown, links, emoji, code, tables and stage directions.
None of it is read out: what carries words keeps them, what does not is left out. Between the sentence splitter and
the voice; hidden passages (`hidden`) go over many sentences, so one `Spoken` goes with one reply.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING

from voice.speaking.hidden import Hidden
from voice.speaking.symbols import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Said where a link stood in the middle of a sentence, which would be lame without it.
LINK = "the link"

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
# What is heard or seen of a person who speaks: told in the middle of a sentence it is a direction, too.
_SEEN = "laugh|chuckle|giggle|smile|grin|smirk|sigh|nod|shrug|wink|cough|gasp|groan|snort|yawn|wave|blush"
_DONE = (
    f"{_SEEN}|whisper|pause|think|hum|blink|clap|bow|lean|look|glance|stare|sip|stretch|adjust|tilt|raise|roll|scratch|"
    "shake|tap|point|turn|hug|sing|beam|mutter|sob|cry|crie|facepalm|rub|lift|lower|take|clear|breathe|breath"
)
_TAIL = r"(?:,?\s+[\w'’,-]{1,20}){0,12}"
_STAGE = re.compile(
    rf"([*_]{{1,3}}|\()\s*(?:\w+ly\s+)?(?:(?:{_SEEN})(?:s|es|ing)|clear(?:s|ing)? (?:its|his|her|their|my) throat)"
    rf"{_TAIL}[.!…]*\s*(?:\1|\))"
    # In brackets, a word for what one does is never a word that is stressed.
    rf"|\(\s*(?:\w+ly\s+)?(?:{_DONE})(?:s|es|ing)?{_TAIL}[.!…]*\s*\)",
    re.IGNORECASE,
)
# A stage direction at the beginning tells what somebody does; words that are stressed go on in the same sentence.
_OPENING = re.compile(
    rf"\s*([*_]{{1,3}})(?:(?i:\w+ly\s+)?(?i:{_DONE})(?i:s|es|ing)?\b[^*_]*|[a-z]\w*(?:\s+[^*_\s]+){{1,16}})\1(?=\s*$|\s+[\"“(A-Z])"
)
# What this very program writes into a record, and models write after it.
_RECORDED = re.compile(r"\((?:interrupted|skips?|silence|no response)\)", re.IGNORECASE)
_OUT_OF_ROLE = re.compile(r"\(\([^()]*\)\)")
# `<|im_end|>` and the like: marks of chat templates, with the role that follows the opening ones.
_TEMPLATE = re.compile(r"<[|｜](?:im_start|start_header_id)[|｜]>\s*(?:assistant|system|user)?|<[|｜][^<>]{0,40}[|｜]>")
_ROLE = re.compile(r"\s*(?:assistant|ai|bot|response|final answer)\s*:\s*(?=\S)", re.IGNORECASE)
_CITATION = re.compile(r"【[^】]*[†:][^】]*】")
_KAOMOJI = re.compile(r"¯\\?_\(ツ\)_/¯|\(\s*͡?° ͜ʖ ͡?°\s*\)|\(╯°□°\)╯︵ ┻━┻")
_MATHS = re.compile(r"\$\$?([^$]*[A-Za-z=\\][^$]*)\$\$?(?![\d])")
_FRAC = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
_MACRO = re.compile(r"\\(?:[()\[\]]|(?:left|right|text|mathrm|mathbf|cdot|times|quad)\b)")
_UNDERSCORES = re.compile(r"(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
# A star between numbers is a sign, every other one is markdown.
_STARS = re.compile(r"(?<!\d\s)(?<!\d)\*+|\*+(?!\s?\d)")
_MARKS = re.compile(r"~~+|\|\||`+")
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_HASHTAG = re.compile(r"(?<!\w)#(?=[^\W\d])")
_SKIP = re.compile(r"\W*SKIP\W*")
# These are signs with a name, no pictures.
_NAMED_SIGNS = frozenset("°©®™^")
_PICTURE_CATEGORIES = frozenset({"So", "Sk", "Cc", "Cn", "Co", "Cs"})
# What makes pictures out of signs and joins pictures to others.
_INVISIBLE = re.compile("[\ufe0e\ufe0f\u20e3\u200b\u200d\u2060\ufeff\U000e0020-\U000e007f]")
_SPACE_BEFORE_STOP = re.compile(r"\s+([,.;:!?…]+)(?=\s|$)")
_EMPTY_BRACKETS = re.compile(r"\(\s*\)|\"\s*\"|“\s*”")


@dataclass(frozen=True, slots=True)
class Sayable:
    """One piece of a reply. `text` is what it says, as people read it; `aloud` is what the voice is given."""

    text: str
    aloud: str


class Spoken:
    """Takes the pieces of one reply in order. One instance a reply.

    `pronunciations`: word -> how it is said, matched as whole words whatever their case. `own_names`: whose words
    they are; a name before them, as in a script, is not said.
    """

    def __init__(self, pronunciations: Mapping[str, str] | None = None, *, own_names: Sequence[str] = ()) -> None:
        self._pronunciations = {word.casefold(): said for word, said in (pronunciations or {}).items()}
        longest_first = sorted(filter(None, self._pronunciations), key=len, reverse=True)
        self._known = (
            re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)
            if longest_first
            else None
        )
        names = "|".join(map(re.escape, filter(None, own_names)))
        self._label = re.compile(rf"[*_\s]*(?:{names})(?:\s*\([^()]*\))?[*_]*\s*:[*_]*\s*(?=\S)", re.IGNORECASE)
        self._labelled = bool(names)
        self._hidden = Hidden()

    def piece(self, written: str) -> Sayable | None:
        """Return what of the next piece is said, or None if nothing is."""
        visible = self._hidden.visible(written)
        text = plain(
            self._label.sub("", visible, count=1) if self._labelled and self._label.match(visible) else visible
        )
        if not text:
            return None
        aloud = in_words(self._pronounced(text))
        return Sayable(text, aloud) if _has_words(aloud) else None

    def _pronounced(self, text: str) -> str:
        if self._known is None:
            return text
        return self._known.sub(lambda found: self._pronunciations[found[0].casefold()], text)


def plain(written: str) -> str:
    """Return the words of one piece without markup, links, pictures and directions; empty if it has none."""
    text = _TEMPLATE.sub(" ", unescape(written))
    text = _SPOILER.sub(r"\1", _ROLE.sub("", text, count=1))
    if _TABLE_ROW.match(text) or _RULE.fullmatch(text) or _SKIP.fullmatch(text):
        return ""
    text = _without_line_start(text)
    text = _NAMED_LINK.sub(r"\1", _IMAGE.sub(" ", text))
    text = _URL.sub(f" {LINK} ", text)
    text = _INLINE_CODE.sub(_code_words, _KAOMOJI.sub(" ", _unset(text)))
    text = _STAGE.sub(" ", _OPENING.sub(" ", _OUT_OF_ROLE.sub(" ", _RECORDED.sub(" ", text))))
    text = _EMOTICON.sub(" ", text)
    text = _SHORTCODE.sub(" ", _BRACKETED.sub(" ", _CITATION.sub("", _TAG.sub(" ", text))))
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
    return _NUMBERED.sub(r"\1. ", text, count=1) if _NUMBERED.match(text) else text


def _unset(text: str) -> str:
    """Return `text` with formulae as they are typed rather than set."""
    if "$" not in text and "\\" not in text:
        return text
    return _MACRO.sub(" ", _FRAC.sub(r" \1 over \2 ", _MATHS.sub(r" \1 ", text)))


def _code_words(found: re.Match[str]) -> str:
    """Return the words of inline code if it is nothing but words: `main` can be said, `x->y` cannot."""
    return f" {found[1]} " if _WORDS_ONLY.fullmatch(found[1].strip()) else " "


def _is_picture(letter: str) -> bool:
    return letter not in _NAMED_SIGNS and unicodedata.category(letter) in _PICTURE_CATEGORIES


def _has_words(text: str) -> bool:
    return any(letter.isalnum() for letter in text)
