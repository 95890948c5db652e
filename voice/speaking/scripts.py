"""Tells whether an embedded voice can read a text, by the script of its letters. Pure.

espeak reads some scripts in any language. Of others it names every letter: an English voice says 'Japanese letter' for
each sign of a Japanese sentence, which takes half a minute and tells nobody anything.
"""

from __future__ import annotations

import re
import unicodedata

from voice.errors import UnreadableTextError

# Tried with espeak-ng 1.52 (piper-tts 1.8) in the languages of the embedded voices. Scripts are the first words of
# Unicode's names for their letters.
_NAMED_BY_ALL = frozenset(
    {
        "ARABIC", "CHEROKEE", "CJK", "CYRILLIC", "ETHIOPIC", "HEBREW", "HIRAGANA", "KATAKANA", "KHMER", "LAO",
        "MONGOLIAN", "MYANMAR", "TELUGU", "THAI", "TIBETAN",
    }
)  # fmt: skip
# By language. A voice of another one, which somebody has put in the place of ours, may read all.
_NAMED = {"en": _NAMED_BY_ALL | {"GREEK"}, **dict.fromkeys(("de", "es", "fr", "it"), _NAMED_BY_ALL)}
_SCRIPT = re.compile(r"[A-Z]*")


def require_readable(text: str, language: str) -> None:
    """Raise `UnreadableTextError` if a voice would name most of the letters of `text` instead of reading them.

    `language`: the voice's, as espeak calls it, such as `en-us`.
    """
    named = _NAMED.get(language.partition("-")[0], frozenset())
    letters = [sign for sign in text if not sign.isascii() and sign.isalpha()]
    unreadable = sum(_script(sign) in named for sign in letters)
    if unreadable > sum(map(str.isalpha, text)) - unreadable:
        raise UnreadableTextError(
            "My voice cannot read this script, so I write. A voice at an endpoint can (speaking.base_url)."
        )


def _script(letter: str) -> str:
    found = _SCRIPT.match(unicodedata.name(letter, ""))
    return found.group() if found is not None else ""
