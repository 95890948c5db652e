"""Turns a written reply into text that a voice can read aloud, numbers and signs into words: '5 %', '21:04'. Pure.

Models are asked to write plain words but still send markdown, links, emoji, code, tables and stage directions.
markdown-it parses the markdown. The patterns below handle what is not markdown (chat signs, HTML, stage directions),
and marks whose counterpart is in another sentence, because a reply is cut into sentences before it is cleaned.
`hidden_passages` leaves out passages that extend over many sentences, so use one `TextNormalizer` for each reply.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

from voice.speaking import english_symbols, german_symbols
from voice.speaking.hidden_passages import HiddenPassages
from voice.speaking.sentences import MAX_PIECE_CHARS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Spoken instead of a URL inside a sentence, which would be incomplete without it.
LINK, _GERMAN_LINK = "the link", "der Link"

# Disabled rules: blocks of several lines (the splitter has cut them apart), and `<...>`, which `_URL` and `_TAG` handle
# together with Discord's mentions.
_MARKDOWN = (
    MarkdownIt("commonmark")
    .enable("strikethrough")
    .disable(["code", "fence", "html_block", "html_inline", "autolink", "lheading", "reference"])
)
# Markers for the start and end of emphasis, which stage directions need: characters of Unicode's private use area.
_EMPHASIS_OPEN, _EMPHASIS_CLOSE = "\ue000", "\ue001"
_STRONG_OPEN, _STRONG_CLOSE = "\ue002", "\ue003"
_MARKERS = {
    "em_open": _EMPHASIS_OPEN,
    "em_close": _EMPHASIS_CLOSE,
    "strong_open": _STRONG_OPEN,
    "strong_close": _STRONG_CLOSE,
}
_OPENS, _CLOSES = _EMPHASIS_OPEN + _STRONG_OPEN, _EMPHASIS_CLOSE + _STRONG_CLOSE
_EMPHASIS = re.compile(f"[{_OPENS}{_CLOSES}]")

# The columns of a row have spaces around them, unlike '|x|'.
_TABLE_ROW = re.compile(r"\s*\||[^|]*\s\|(?!\S)[^|]*\s\|(?!\S)")
_RULE = re.compile(r"\s*(?:[-*_=|:+]\s*){3,}")
# Bullets and Discord's small text, which CommonMark does not know.
_LINE_START = re.compile(r"^\s*(?:-#\s+|[•‣◦–—]\s+(?=\S))+")
_SPOILER = re.compile(r"\|\|(.+?)\|\|")
# Without `://` a host has small letters: 'Node.js/React' is none.
_URL = re.compile(
    rf"<?(?:https?://|(?<![a-z0-9])[a-z][a-z0-9+.-]{{1,10}}://|(?<![a-z0-9])www\.)[^\s<>]*[^\s<>.,;:!?)\]'\"*_{_CLOSES}]>?"
    rf"|(?<![a-z0-9])(?-i:(?:[a-z0-9-]+\.)+[a-z]{{2,10}})/[^\s<>]*[^\s<>.,;:!?)\]'\"*_{_CLOSES}]",
    re.IGNORECASE,
)
# A run without spaces that is longer than any word and has figures or signs: a key, the data of a picture, or the rest
# of a long link.
_RUN = re.compile(r"(?:data:[\w/+.;=-]{0,60},)?(?=[!-+\--~]*[\d%&/=_+])[!-+\--~]{81,}", re.ASCII)
_TAG = re.compile(r"</?[a-z!@#:][^<>]{0,200}>", re.IGNORECASE)
_WORDS_ONLY = re.compile(r"[^\W_]+(?:[ '-][^\W_]+){0,3}")
_BRACKETED = re.compile(r"\[[^\[\]]*\]|\{\{[^{}]*\}\}")
_SHORTCODE = re.compile(r":[a-z][a-z0-9_+-]*:", re.IGNORECASE)
_EMOTICON = re.compile(r"(?<!\S)(?:[:;]['-]?[)(DPpOo/\\|*3]+|<3|[xX]D+|\^_*\^)(?=[\s.,!?]|$)")
# Verbs for what others hear or see of a speaker. In emphasis or brackets they are almost always stage directions.
_SEEN = "laugh|chuckle|giggle|smile|grin|smirk|sigh|nod|shrug|wink|gasp|groan|snort|yawn|blush"
_OF_PEOPLE = (
    f"{_SEEN}|whisper|pause|think|hum|blink|clap|bow|lean|glance|stare|sip|scratch|shake|tap|hug|sing|beam|mutter|sob|"
    "cry|crie|facepalm|rub|breathe|breath"
)
# Verbs for what things do too: '(takes 20 minutes)', '(cough, fever)'.
_OF_THINGS = "cough|wave|look|stretch|adjust|tilt|raise|roll|point|turn|lift|lower|take|clear"
_DONE = f"{_OF_PEOPLE}|{_OF_THINGS}"
_NEW_SENTENCE = r"(?-i:(?=\s*$|\s+[\"“(A-Z]))"
_THROAT = r"clear(?:s|ing)? (?:its|his|her|their|my) throat"
_TAIL = r"(?:,?\s+[\w'’,-]{1,20}){0,12}"
_STAGE = re.compile(
    rf"{_EMPHASIS_OPEN}+\s*(?:\w+ly\s+)?(?:(?:{_SEEN}|cough|wave)e?s|{_THROAT}){_TAIL}[.!…]*\s*{_EMPHASIS_CLOSE}+"
    # '**Waves** carry energy' and 'Are you *laughing* at me?' are sentences.
    rf"|[{_OPENS}]+\s*(?:\w+ly\s+)?(?:(?:{_SEEN}|cough|wave)(?:s|es|ing)|{_THROAT}){_TAIL}[.!…]*\s*[{_CLOSES}]+"
    rf"{_NEW_SENTENCE}"
    # In brackets these verbs cannot be stressed words. '(take bus 12)' is something to do.
    rf"|\(\s*(?:\w+ly\s+)?(?:(?:{_DONE})(?:s|es|ing)?|(?:(?:{_OF_PEOPLE})(?:s|es|ing)|{_SEEN}|{_THROAT}){_TAIL})"
    r"[.!…]*\s*\)"
    # What a thing does is said after its name, and with figures.
    rf"|^\s*\(\s*(?:\w+ly\s+)?(?:{_OF_THINGS})(?:s|es|ing)(?![^)]*\d){_TAIL}[.!…]*\s*\)",
    re.IGNORECASE,
)
# Emphasis before a new sentence is a stage direction if it tells what somebody does, or stands at the beginning. If the
# sentence continues, it is stress. Bold words are a heading or a step to take, and so is '*Turn off the router.*'.
_OPENING = re.compile(
    rf"(?:\s*{_EMPHASIS_OPEN}+(?i:\w+ly\s+)?(?i:{_DONE})(?i:s|es|ing)\b[^{_EMPHASIS_CLOSE}]*"
    rf"|^\s*{_EMPHASIS_OPEN}+(?:[a-z]\w*(?:\s+[^{_EMPHASIS_CLOSE}\s]+){{1,16}}|(?:{_DONE}|(?i:{_SEEN}|pause|hug))[.!…]*))"
    rf"{_EMPHASIS_CLOSE}+{_NEW_SENTENCE}"
)
# The end of a piece whose sentence goes on in the next one, and what stands for it there, so that no emphasis stands at
# the beginning. It is one of the invisible letters.
_CLAUSE_END = re.compile(r"[,;—–،؛，、；][\"'”’»)\]*_~]*$")
_CONTINUES = "\u2060"
# Our own transcript contains these marks, and models copy them.
_RECORDED = re.compile(r"\((?:interrupted|skips?|silence|no response|forgotten at somebody['’]s wish)\)", re.IGNORECASE)
_OUT_OF_ROLE = re.compile(r"\(\([^()]*\)\)")
# Markers of chat templates such as `<|im_end|>`. An opening marker is followed by a role.
_TEMPLATE = re.compile(r"<[|｜](?:im_start|start_header_id)[|｜]>\s*(?:assistant|system|user)?|<[|｜][^<>]{0,40}[|｜]>")
_ROLE = re.compile(r"^[*_\s]*(?:assistant|ai|bot|response|final answer)[*_]*\s*:[*_]*\s*(?=\S)", re.IGNORECASE)
_CITATION = re.compile(r"【[^】]*[†:][^】]*】")
_KAOMOJI = re.compile(r"¯\\?_\(ツ\)_/¯|\(\s*͡?° ͜ʖ ͡?°\s*\)|\(╯°□°\)╯︵ ┻━┻")
_MATHS = re.compile(r"\$\$?([^$]*[A-Za-z=\\][^$]*)\$\$?(?![\d])")
_FRAC = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
_MACRO = re.compile(r"\\(?:[()\[\]]|(?:left|right|text|mathrm|mathbf|cdot|times|quad)\b)")
_UNDERSCORES = re.compile(r"(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
_TIMES = re.compile(r"(?<=\d)\*(?=\d)")
# A star between numbers is a multiplication sign. Every other star is a remainder of emphasis.
_STARS = re.compile(r"(?<!\d\s)(?<!\d)\*+|\*+(?!\s?\d)")
_MARKS = re.compile(r"~~+|\|\||`+")
_MENTION = re.compile(r"(?<!\w)@(?=\w)")
_HASHTAG = re.compile(r"(?<!\w)#(?=[^\W\d])")
_SKIP = re.compile(r"\W*SKIP\W*")
# Unicode classifies these signs as symbols like emoji, but voices can read them.
_NAMED_SIGNS = frozenset("°©®™^")
_PICTURE_CATEGORIES = frozenset({"So", "Sk", "Cc", "Cn", "Co", "Cs"})
# Variation selectors and joiners of emoji.
_INVISIBLE = re.compile("[\ufe0e\ufe0f\u20e3\u200b\u200d\u2060\ufeff\U000e0020-\U000e007f]")
# Some voices would spell out the signs that are left, or fail on them.
_SILENT_SIGNS = frozenset("*_`~|<>{}[]^\\#=+@/&%$€£¥°")
_SILENT_CATEGORIES = _PICTURE_CATEGORIES - {"Sk"} | {"Sm", "Sc", "Cf"}
_SPACE_BEFORE_STOP = re.compile(r"\s+([,.;:!?…]+)(?=\s|$)")
_EMPTY_BRACKETS = re.compile(r"\(\s*\)|\"\s*\"|“\s*”")


@dataclass(frozen=True, slots=True)
class SpeakableText:
    """One piece of a reply. `text` is for readers (the transcript). `aloud` is passed to the voice."""

    text: str
    aloud: str


class TextNormalizer:
    """Processes the pieces of one reply in order. Use one instance for each reply.

    `pronunciations`: word -> how to say it; whole words match in any case. `own_names`: the bot's names; `Name:` at the
    start of a piece, as in a script, is left out. `language`: the code of the language in which the reply is read.
    """

    def __init__(
        self, pronunciations: Mapping[str, str] | None = None, *, own_names: Sequence[str] = (), language: str = ""
    ) -> None:
        self._language = language
        self._link = _GERMAN_LINK if language == "de" else LINK
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
        self._hidden = HiddenPassages()
        # Whether the last piece was a clause, and this one continues its sentence.
        self._continues = False
        # Whether the last piece ended within a run without spaces, because the run is longer than a piece.
        self._within_run = False

    def normalize(self, written: str) -> SpeakableText | None:
        """Return the next piece as the voice should say it, or None if nothing is left of it."""
        visible = self._without_rest_of_run(written, self._hidden.visible(written))
        text = strip_markup(
            self._label.sub("", visible, count=1) if self._labelled and self._label.match(visible) else visible,
            link=self._link,
            continues=self._continues,
        )
        self._continues = _CLAUSE_END.search(visible.rstrip()) is not None
        if not text:
            return None
        aloud = expand_symbols(self._pronounced(text), self._language)
        return SpeakableText(text, aloud) if _has_words(aloud) else None

    def _without_rest_of_run(self, written: str, visible: str) -> str:
        """Return what is visible of a piece, without the end of a run that began in an earlier piece."""
        end = written.partition(" ")[0] if self._within_run else ""
        # The splitter cuts within a run only if a piece has no space, apart from one at its beginning.
        is_cut = len(written) >= MAX_PIECE_CHARS - 1 and " " not in written
        self._within_run = is_cut and _RUN.search(written) is not None
        return visible.removeprefix(end)

    def _pronounced(self, text: str) -> str:
        if self._known is None:
            return text
        return self._known.sub(lambda found: self._pronunciations[found[0].casefold()], text)


def strip_markup(written: str, *, link: str = LINK, continues: bool = False) -> str:
    """Return the words of one piece without markup, links, pictures and stage directions. May be empty.

    `link`: the words that stand for a URL inside a sentence. `continues`: the piece continues the sentence before it.
    """
    text = _SPOILER.sub(r"\1", _ROLE.sub("", _TEMPLATE.sub(" ", written)))
    if _TABLE_ROW.match(text) or _RULE.fullmatch(text) or _SKIP.fullmatch(text):
        return ""
    text = _render(_TIMES.sub(r"\*", _unset(_KAOMOJI.sub(" ", text))))
    text = _RUN.sub(" ", _URL.sub(f" {link} ", _LINE_START.sub("", text)))
    text = f"{_CONTINUES}{text}" if continues else text
    text = _STAGE.sub(" ", _OPENING.sub(" ", _OUT_OF_ROLE.sub(" ", _RECORDED.sub(" ", text))))
    text = _EMOTICON.sub(" ", _EMPHASIS.sub("", text))
    text = _SHORTCODE.sub(" ", _BRACKETED.sub(" ", _CITATION.sub("", _TAG.sub(" ", text))))
    text = _STARS.sub("", _MARKS.sub("", text))
    text = _HASHTAG.sub("", _MENTION.sub("", _UNDERSCORES.sub("", text)))
    text = "".join(" " if _is_picture(letter) else letter for letter in _INVISIBLE.sub("", text))
    text = _SPACE_BEFORE_STOP.sub(r"\1", " ".join(_EMPTY_BRACKETS.sub(" ", text).split()))
    if not _has_words(text) or text.strip(" .,:;!?()").casefold() == link.casefold():
        return ""
    return text


def _render(written: str) -> str:
    """Return the text of one piece of markdown, with markers for emphasis and with the numbers of lists."""
    parts: list[str] = []
    for block in _MARKDOWN.parse(written):
        if block.type == "list_item_open" and block.info:
            parts.append(f"{block.info}. ")
        for token in block.children or ():
            match token.type:
                case "text":
                    parts.append(token.content)
                case "em_open" | "em_close" | "strong_open" | "strong_close":
                    parts.append(_MARKERS[token.type])
                case "code_inline":
                    # `main` can be spoken, but `x->y` cannot.
                    parts.append(f" {token.content} " if _WORDS_ONLY.fullmatch(token.content.strip()) else " ")
                case "image" | "softbreak" | "hardbreak":
                    parts.append(" ")
    return "".join(parts)


def _unset(text: str) -> str:
    """Return `text` with LaTeX formulae converted to plain text."""
    if "$" not in text and "\\" not in text:
        return text
    return _MACRO.sub(" ", _FRAC.sub(r" \1 over \2 ", _MATHS.sub(r" \1 ", text)))


def _is_picture(letter: str) -> bool:
    return letter not in _NAMED_SIGNS and unicodedata.category(letter) in _PICTURE_CATEGORIES


def _has_words(text: str) -> bool:
    return any(letter.isalnum() for letter in text)


def expand_symbols(text: str, language: str = "") -> str:
    """Return `text` with signs replaced by words. Signs without a word are removed.

    Voices differ in how they read signs, so they get words instead. espeak reads '5 %' and '10,000' as we do, but
    '1 €' as 'one euros', '50%ige' as two words, and nothing for '§§'. Digits remain, because every voice can read
    numbers. `language`: the code of the language in which it is read. The words are English in any but German.
    """
    for pattern, words in german_symbols.RULES if language == "de" else english_symbols.RULES:
        text = pattern.sub(words, text)
    speakable = "".join(" " if _is_silent(letter) else letter for letter in text)
    return _SPACE_BEFORE_STOP.sub(r"\1", " ".join(speakable.split()))


def _is_silent(letter: str) -> bool:
    return letter in _SILENT_SIGNS or unicodedata.category(letter) in _SILENT_CATEGORIES
