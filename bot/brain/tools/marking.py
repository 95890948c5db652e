"""Text from outside as a model reads it: bounded, and marked as data, so that nothing in it passes for our own words.

A mark alone stops no determined text from being obeyed; what may be done is decided in `permission`.
"""

from __future__ import annotations

import re

_TAG = re.compile(r"<\s*/?\s*(?:data|system|assistant|user|tool)\b", re.IGNORECASE)
# Tokens of chat templates: some servers read them anywhere in a prompt.
_TEMPLATE = re.compile(r"<\|[^|<>]{0,40}\|>|\[/?INST\]|<</?SYS>>")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
_SOURCE = re.compile(r"[^\w .:/-]+")
_SOURCE_CHARS = 80


def as_data(source: str, text: str, *, max_chars: int) -> str:
    """Return `text` between marks that say it is data from `source`, at most `max_chars` of it."""
    clean = defused(text)
    if len(clean) > max_chars:
        left_out = len(clean) - max_chars
        clean = f"{clean[:max_chars]}\n[… {left_out} more characters left out]"
    name = _SOURCE.sub(" ", source)[:_SOURCE_CHARS].strip()
    return f'<data from="{name}">\n{clean}\n</data>'


def defused(text: str) -> str:
    """Return `text` without what could end its marks, speak for another role, or hide."""
    text = _CONTROL.sub("", text)
    text = _TEMPLATE.sub("", text)
    return _TAG.sub(lambda found: "‹" + found.group()[1:], text)
