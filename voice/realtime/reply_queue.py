"""The queue of a reply's pieces between the connection and the room, bounded by how much sound and text waits, and
what each of its responses has cost.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from voice.realtime.effects import ResponseEnded, ResponseStatus, status_of
from voice.realtime.port import REALTIME_RATE_HZ, ReplyPiece, ReplyResumed
from voice.realtime.wire import id_of, object_of

if TYPE_CHECKING:
    from collections.abc import Mapping


# A server makes one at a time. Those that were cancelled end within moments.
MOST_OPEN = 64


@dataclass(frozen=True, slots=True)
class FinishedResponse:
    """A response that is over. The tokens are as the endpoint reports them, or None. `duration_s`: since the server
    began it.
    """

    status: ResponseStatus
    input_tokens: int | None
    output_tokens: int | None
    duration_s: float


class OpenResponses:
    """The responses of one connection that the server has begun and not ended. `now`: monotonic seconds.

    The room may have given up a response by then, as after a barge-in. It is billed all the same.
    """

    def __init__(self) -> None:
        self._begun_at: dict[str, float] = {}

    def receive(self, event: Mapping[str, Any], now: float) -> FinishedResponse | None:
        """Take an event of the server. Returns the response that it ends, if it ends one."""
        response = event.get("response")
        if not isinstance(response, dict):
            return None
        response_id = id_of(response.get("id"))
        match event.get("type"):
            case "response.created":
                self._begun_at[response_id] = now
                while len(self._begun_at) > MOST_OPEN:
                    del self._begun_at[next(iter(self._begun_at))]
            case "response.done" if (begun_at := self._begun_at.pop(response_id, None)) is not None:
                return _finished(response, now - begun_at)
        return None

    def end_all(self, status: ResponseStatus, now: float) -> list[FinishedResponse]:
        """Return all that are open, ended without an event: nobody says any more what they cost."""
        ended = [FinishedResponse(status, None, None, now - begun_at) for begun_at in self._begun_at.values()]
        self._begun_at.clear()
        return ended


def _finished(response: Mapping[str, Any], duration_s: float) -> FinishedResponse:
    tokens = object_of(response.get("usage"))
    return FinishedResponse(
        status_of(response), _count(tokens, "input_tokens"), _count(tokens, "output_tokens"), duration_s
    )


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    count = usage.get(name)
    return count if isinstance(count, int) and not isinstance(count, bool) else None


# Seconds of sound that may wait to be played, 14 MB. OpenAI's longest replies have three and a half minutes.
MOST_SOUND_S = 300
# Characters that may wait: words come before their sound, and an endpoint may send words alone. This is ten times what
# is said in five minutes.
MOST_CHARS = 50_000
# Pieces that may wait. Each has some 50 ms of sound or a word.
MOST_PIECES = 20_000
# Maximum samples returned at once: two seconds, so that playback has enough sound while the event loop is busy.
MOST_AT_ONCE = 2 * REALTIME_RATE_HZ


class ReplyQueue:
    """The pieces of one reply, in order. Read by one task. `patience_s`: the longest wait for a piece."""

    def __init__(self, patience_s: float | None = None) -> None:
        self._patience_s = patience_s
        self._waiting: deque[ReplyPiece | ReplyResumed | ResponseEnded] = deque()
        self._arrived = asyncio.Event()
        # Of the pieces that wait.
        self._samples = 0
        self._chars = 0
        # The time limit of who waits for the next piece.
        self._patience: asyncio.Timeout | None = None
        # Whether the end of the reply is in the queue, or was taken.
        self._ended = False

    @property
    def waiting_s(self) -> float:
        """Return how many seconds of sound wait."""
        return self._samples / REALTIME_RATE_HZ

    def put(self, piece: ReplyPiece | ReplyResumed | ResponseEnded) -> bool:
        """Add a piece. Returns False if it has no room: then the reply ends before it, and later pieces are ignored."""
        if self._ended:
            return True
        fits = not isinstance(piece, ReplyPiece) or self._has_room(piece)
        self._append(piece if fits else ResponseEnded(ResponseStatus.COMPLETE))
        return fits

    def wait_anew(self) -> None:
        """Let the next piece take as long again, from now on: the time of a tool is not the model's."""
        if self._patience is not None and not self._patience.expired() and self._patience_s is not None:
            self._patience.reschedule(asyncio.get_running_loop().time() + self._patience_s)

    async def take(self) -> ReplyPiece | ReplyResumed | ResponseEnded:
        """Wait for the next piece; return it merged with the following pieces of the same item. Raises
        `TimeoutError`.
        """
        try:
            async with asyncio.timeout(self._patience_s) as self._patience:
                while not self._waiting:
                    self._arrived.clear()
                    await self._arrived.wait()
        finally:
            self._patience = None
        first = self._pop()
        if not isinstance(first, ReplyPiece):
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
            self._pop()
            piece = following

    def _has_room(self, piece: ReplyPiece) -> bool:
        sound = self._samples + _samples(piece) <= MOST_SOUND_S * REALTIME_RATE_HZ
        return len(self._waiting) < MOST_PIECES and sound and self._chars + len(piece.words) <= MOST_CHARS

    def _append(self, piece: ReplyPiece | ReplyResumed | ResponseEnded) -> None:
        self._waiting.append(piece)
        self._count(piece, 1)
        self._ended = isinstance(piece, ResponseEnded)
        self._arrived.set()

    def _pop(self) -> ReplyPiece | ReplyResumed | ResponseEnded:
        piece = self._waiting.popleft()
        self._count(piece, -1)
        return piece

    def _count(self, piece: ReplyPiece | ReplyResumed | ResponseEnded, sign: int) -> None:
        if isinstance(piece, ReplyPiece):
            self._samples += sign * _samples(piece)
            self._chars += sign * len(piece.words)


def _samples(piece: ReplyPiece) -> int:
    return 0 if piece.pcm is None else len(piece.pcm)
