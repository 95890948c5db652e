"""Removes the time and the name that a model may write before its answer.

Prompts show turns as `[21:04] Ada: …`, and small models imitate that.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import TYPE_CHECKING

from bot.llm.port import StreamEnd

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bot.llm.port import StreamItem

_HEADING = re.compile(r"\s*\[\d{1,2}:\d{2}\]\s*(?:[^:\n]{1,60}:\s*)?")
# Longer beginnings are not a heading; holding them back would only delay the first word.
_HEADING_CHARS = 80


async def without_heading(stream: AsyncGenerator[StreamItem, None]) -> AsyncGenerator[StreamItem, None]:
    """Yield the items of an answer, without a heading. The first words are held back while they may be one."""
    opening, is_open = "", True
    async with aclosing(stream):
        async for item in stream:
            if not is_open:
                yield item
                continue
            if not isinstance(item, StreamEnd):
                opening += item
                if _may_be_heading(opening):
                    continue
            is_open = False
            if words := _strip_heading(opening):
                yield words
            if isinstance(item, StreamEnd):
                yield item
    if is_open and (words := _strip_heading(opening)):
        yield words


def _strip_heading(text: str) -> str:
    return text[heading.end() :] if (heading := _HEADING.match(text)) else text


def _may_be_heading(opening: str) -> bool:
    """Return whether `opening` may still become a heading, so that more of the stream is needed to decide."""
    start = opening.lstrip()
    if not start:
        return True
    return start[0] == "[" and ": " not in start and len(start) < _HEADING_CHARS
