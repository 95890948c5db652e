"""Makes what people said harmless where Discord would read it as formatting or as a mention."""

from __future__ import annotations

import re

# Discord takes a backslash before each of these as: show this sign itself.
_SIGNS = re.compile(r"([\\*_~`|>#\[\]()<])")


def escape_markdown(text: str) -> str:
    """Return a text on one line that Discord shows as it is. It mentions nobody, whatever is in it."""
    line = " ".join(text.split())
    return _SIGNS.sub(r"\\\1", line).replace("@", "@\u200b")
