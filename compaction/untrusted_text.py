"""Marks text from outside as data before a model reads it, so that none of it looks like our own instructions.

That alone does not stop prompt injection: what a tool may do is decided elsewhere, and no summary gives an order.
"""

from __future__ import annotations

import re

# The beginning of a tag or of a chat-template token, which some servers obey anywhere in a prompt. Its first character
# is replaced, not removed: removing it could join the text around it to another tag.
_MARKUP_START = re.compile(
    r"<(?=\s*/?\s*(?:data|system|assistant|user|developer|tool|function)(?:\b|_)|\||<?/?SYS>>)|\[(?=/?INST\])",
    re.IGNORECASE,
)
_SOURCE = re.compile(r"[^\w .:/-]+")
_SOURCE_CHARS = 80


def mark_as_data(source: str, text: str, *, max_chars: int | None = None) -> str:
    """Return `text` in `<data>` tags that name its `source`, cut to `max_chars`."""
    # Only the beginning of a huge text is cleaned, because cleaning blocks the event loop.
    scanned = len(text) if max_chars is None else 2 * max_chars
    clean = defuse(text[:scanned])
    left_out = 0 if max_chars is None else max(0, len(clean) - max_chars) + max(0, len(text) - scanned)
    if left_out:
        clean = f"{clean[:max_chars]}\n[… {left_out} more characters left out]"
    name = _SOURCE.sub(" ", source)[:_SOURCE_CHARS].strip()
    return f'<data from="{name}">\n{clean}\n</data>'


def defuse(text: str) -> str:
    """Return `text` with tags and chat-template tokens broken, and without control and invisible characters.

    Removed are all characters of Unicode's classes of control, format (tag characters too), private and unassigned
    ones, except line breaks and tabs; other white space becomes a space.
    """
    return _MARKUP_START.sub("‹", "".join(map(_visible, text)) if not text.isprintable() else text)


def _visible(char: str) -> str:
    if char.isprintable() or char in "\n\t":
        return char
    return " " if char.isspace() else ""
