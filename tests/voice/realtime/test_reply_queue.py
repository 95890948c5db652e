"""The parts of a reply wait in a bounded queue, and parts of the same item are joined."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from voice.realtime.effects import ResponseEnded, ResponseStatus
from voice.realtime.port import ReplyPiece
from voice.realtime.reply_queue import MOST_AT_ONCE, REPLY_PIECES, ReplyQueue


def sound(item_id: str, samples: int, words: str = "") -> ReplyPiece:
    """Return a part of a reply."""
    return ReplyPiece(item_id, np.full(samples, 7, np.int16), words)


@pytest.mark.asyncio
async def test_what_has_come_of_one_item_is_taken_at_once() -> None:
    """The waiting sound and words of one item are taken together. Another item and the end are taken separately."""
    pieces = ReplyQueue()
    for piece in (sound("a", 10, "It "), ReplyPiece("a", words="was"), sound("a", 5), sound("b", 3, "Yes.")):
        pieces.put(piece)
    pieces.put(ResponseEnded(ResponseStatus.COMPLETE))
    first = await pieces.take()
    assert isinstance(first, ReplyPiece)
    assert first.pcm is not None
    assert (first.item_id, len(first.pcm), first.words) == ("a", 15, "It was")
    second = await pieces.take()
    assert isinstance(second, ReplyPiece)
    assert (second.item_id, second.words) == ("b", "Yes.")
    assert await pieces.take() == ResponseEnded(ResponseStatus.COMPLETE)


@pytest.mark.asyncio
async def test_not_more_is_taken_than_playback_wants() -> None:
    """A long reply is taken in parts of a few seconds, so that it can be broken off."""
    pieces = ReplyQueue()
    for _ in range(10):
        pieces.put(sound("a", MOST_AT_ONCE // 2))
    first = await pieces.take()
    assert isinstance(first, ReplyPiece)
    assert first.pcm is not None
    assert len(first.pcm) == MOST_AT_ONCE


@pytest.mark.asyncio
async def test_who_takes_waits_for_what_comes() -> None:
    """Taking waits for the next part, and a reply that nobody takes ends when the queue is full."""
    pieces = ReplyQueue()
    taking = asyncio.create_task(pieces.take())
    await asyncio.sleep(0)
    assert not taking.done()
    pieces.put(sound("a", 4))
    assert isinstance(await taking, ReplyPiece)
    for number in range(REPLY_PIECES + 3):
        pieces.put(ReplyPiece(f"item {number}", words="x"))
    taken = [await pieces.take() for _ in range(REPLY_PIECES)]
    assert taken[-1] == ResponseEnded(ResponseStatus.COMPLETE)
