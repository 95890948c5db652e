"""Text from outside as a model reads it: bounded, and marked as data, so that nothing in it passes for our own words.

A mark alone stops no determined text from being obeyed; what may be done is decided in `permission`.
"""

from __future__ import annotations

import re

# How a tag begins, or a token of a chat template, which some servers read anywhere in a prompt. What begins it is made
# another character: cut out of the middle of another one, it would complete that.
_BEGINNING = re.compile(
    r"<(?=\s*/?\s*(?:data|system|assistant|user|tool)\b|\||<?/?SYS>>)|\[(?=/?INST\])", re.IGNORECASE
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
_SOURCE = re.compile(r"[^\w .:/-]+")
_SOURCE_CHARS = 80


def mark_as_data(source: str, text: str, *, max_chars: int) -> str:
    """Return `text` between marks that say it is data from `source`, at most `max_chars` of it."""
    # Of a text without end only the beginning is looked at: the whole would keep every room waiting.
    looked_at = 2 * max_chars
    clean = defuse(text[:looked_at])
    left_out = max(0, len(clean) - max_chars) + max(0, len(text) - looked_at)
    if left_out:
        clean = f"{clean[:max_chars]}\n[… {left_out} more characters left out]"
    name = _SOURCE.sub(" ", source)[:_SOURCE_CHARS].strip()
    return f'<data from="{name}">\n{clean}\n</data>'


def defuse(text: str) -> str:
    """Return `text` without what could end its marks, speak for another role, or hide."""
    return _BEGINNING.sub("‹", _CONTROL.sub("", text))
