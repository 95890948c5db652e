"""The right of a speech-to-speech model to say nothing: its SKIP is heard by nobody.

Sound comes with the words that it says, or after them, so both are held back until the words are more than the
beginning of SKIP. That costs an answer its first word's length at most, and only where the model may skip.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from bot.brain.skip import begins_with_skip, may_become_skip

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from voice.realtime.port import ReplyPiece


async def unless_silent(
    pieces: AsyncGenerator[ReplyPiece, None], *, on_silence: Callable[[list[ReplyPiece]], None]
) -> AsyncGenerator[ReplyPiece, None]:
    """Yield an answer's pieces; none of them, and hand those that came to `on_silence`, where it says SKIP.

    So does an answer without words and sound. Sound of which no words are told is yielded, late: an endpoint need not
    write its answers down. *Ownership*: it closes `pieces`.
    """
    held: list[ReplyPiece] = []
    words, begun = "", False
    async with aclosing(pieces):
        async for piece in pieces:
            held.append(piece)
            words += piece.words
            if not may_become_skip(words):
                begun = True
                break
        sounds = any(piece.pcm is not None for piece in held)
        if begins_with_skip(words) if begun else bool(words.strip()) or not sounds:
            on_silence(held)
            return
        for piece in held:
            yield piece
        async for piece in pieces:
            yield piece
