"""What a terminal obeys instead of showing it. Names, what was said, and what other servers write may hold it. Pure."""

from __future__ import annotations

import re

# Control characters but line feeds and tabs, and those that turn the direction of what follows.
OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    """Return a text with an escape, as in JSON, for each character that a terminal would obey."""
    return OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
