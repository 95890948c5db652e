"""The queue of a reply's pieces between the connection and the room."""

from __future__ import annotations

import asyncio
from collections import deque

import numpy as np

from voice.realtime.effects import ResponseEnded, ResponseStatus
from voice.realtime.port import REALTIME_RATE_HZ, ReplyPiece

# Pieces that may wait: many minutes of speech. A reply that is longer ends at this point.
REPLY_PIECES = 4_096
# Maximum samples returned at once: two seconds, so that playback has enough sound while the event loop is busy.
MOST_AT_ONCE = 2 * REALTIME_RATE_HZ


class ReplyQueue:
    """The pieces of one reply, in order. Read by one task."""

    def __init__(self) -> None:
        self._waiting: deque[ReplyPiece | ResponseEnded] = deque()
        self._arrived = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Return how many pieces wait."""
        return len(self._waiting)

    def put(self, piece: ReplyPiece | ResponseEnded) -> bool:
        """Add a piece. When the queue is full, the reply ends, and it returns False."""
        has_room = len(self._waiting) < REPLY_PIECES
        if has_room:
            self._waiting.append(piece)
        else:
            self._waiting[-1] = ResponseEnded(ResponseStatus.COMPLETE)
        self._arrived.set()
        return has_room

    async def take(self) -> ReplyPiece | ResponseEnded:
        """Wait for the next piece; return it merged with the following pieces of the same item."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        first = self._waiting.popleft()
        if isinstance(first, ResponseEnded):
            return first
        chunks, words, length = [], "", 0
        piece = first
        while True:
            words += piece.words
            if piece.pcm is not None:
                chunks.append(piece.pcm)
                length += len(piece.pcm)
            following = self._waiting[0] if self._waiting else None
            if not isinstance(following, ReplyPiece) or following.item_id != first.item_id or length >= MOST_AT_ONCE:
                return ReplyPiece(first.item_id, np.concatenate(chunks) if chunks else None, words)
            piece = following
            self._waiting.popleft()
