"""Escapes control characters, which a terminal obeys, in names, speech and what other servers write. Pure."""

from __future__ import annotations

import re

# Control characters but line feeds and tabs, and those that turn the direction of what follows.
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    """Return a text with an escape, as in JSON, for each character that a terminal would obey."""
    return OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
