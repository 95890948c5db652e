"""An answer on its way to the room: what has come of it and was not taken yet."""

from __future__ import annotations

import asyncio
from collections import deque

import numpy as np

from voice.realtime.effects import ResponseEnded, ResponseStatus
from voice.realtime.port import REALTIME_RATE_HZ, ReplyPiece

# Pieces of an answer that may wait for the room: many minutes of it. A longer answer ends there.
REPLY_PIECES = 4_096
# Sound handed on at once, in samples: two seconds, so that playback has something to play however busy we are.
MOST_AT_ONCE = 2 * REALTIME_RATE_HZ


class ReplyQueue:
    """The pieces of one answer, in order. Taken by one task."""

    def __init__(self) -> None:
        self._waiting: deque[ReplyPiece | ResponseEnded] = deque()
        self._came = asyncio.Event()

    def put(self, piece: ReplyPiece | ResponseEnded) -> None:
        """Add a piece. An answer longer than anybody listens to ends where it is."""
        if len(self._waiting) < REPLY_PIECES:
            self._waiting.append(piece)
        else:
            self._waiting[-1] = ResponseEnded(ResponseStatus.COMPLETE)
        self._came.set()

    async def take(self) -> ReplyPiece | ResponseEnded:
        """Return the next piece, with what else of its item has come."""
        while not self._waiting:
            self._came.clear()
            await self._came.wait()
        first = self._waiting.popleft()
        if isinstance(first, ResponseEnded):
            return first
        sound, words, length = [], "", 0
        piece = first
        while True:
            words += piece.words
            if piece.pcm is not None:
                sound.append(piece.pcm)
                length += len(piece.pcm)
            following = self._waiting[0] if self._waiting else None
            if not isinstance(following, ReplyPiece) or following.item_id != first.item_id or length >= MOST_AT_ONCE:
                return ReplyPiece(first.item_id, np.concatenate(sound) if sound else None, words)
            piece = following
            self._waiting.popleft()
