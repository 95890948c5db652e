"""The parts of a reply wait in a bounded queue, and parts of the same item are joined."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from voice.realtime import reply_queue
from voice.realtime.effects import ResponseEnded, ResponseStatus
from voice.realtime.port import REALTIME_RATE_HZ, ReplyPiece
from voice.realtime.reply_queue import MOST_AT_ONCE, MOST_CHARS, MOST_SOUND_S, ReplyQueue


def sound(item_id: str, samples: int, words: str = "") -> ReplyPiece:
    """Return a part of a reply."""
    return ReplyPiece(item_id, np.full(samples, 7, np.int16), words)


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


async def test_not_more_is_taken_than_playback_wants() -> None:
    """A long reply is taken in parts of a few seconds, so that it can be broken off."""
    pieces = ReplyQueue()
    for _ in range(10):
        pieces.put(sound("a", MOST_AT_ONCE // 2))
    first = await pieces.take()
    assert isinstance(first, ReplyPiece)
    assert first.pcm is not None
    assert len(first.pcm) == MOST_AT_ONCE


async def test_who_takes_waits_for_what_comes() -> None:
    """Taking waits for the next part."""
    pieces = ReplyQueue()
    taking = asyncio.create_task(pieces.take())
    await asyncio.sleep(0)
    assert not taking.done()
    pieces.put(sound("a", 4))
    assert isinstance(await taking, ReplyPiece)


@pytest.mark.parametrize("piece_s", [0.1, 1.0, 100.0])
async def test_a_reply_that_nobody_takes_ends_after_minutes_of_sound(piece_s: float) -> None:
    """However large the parts are, as much sound waits as is allowed. The reply ends there, and the rest is ignored."""
    pieces, part = ReplyQueue(), sound("a", round(piece_s * REALTIME_RATE_HZ))
    for _ in range(round(MOST_SOUND_S / piece_s)):
        assert pieces.put(part)
    assert pieces.waiting_s == MOST_SOUND_S
    assert not pieces.put(part)
    assert pieces.put(part), "the reply is cut off once"
    assert pieces.put(ResponseEnded(ResponseStatus.FAILED))
    samples, taken = 0, await pieces.take()
    while isinstance(taken, ReplyPiece):
        assert taken.pcm is not None
        samples += len(taken.pcm)
        taken = await pieces.take()
    assert (samples, taken) == (MOST_SOUND_S * REALTIME_RATE_HZ, ResponseEnded(ResponseStatus.COMPLETE))
    assert pieces.waiting_s == 0


async def test_what_is_played_makes_room() -> None:
    """A reply that is played as it comes may last as long as it likes."""
    pieces, part = ReplyQueue(), sound("a", 100 * REALTIME_RATE_HZ, "a hundred seconds")
    for _ in range(10):
        assert pieces.put(part)
        assert isinstance(await pieces.take(), ReplyPiece)


def test_words_without_sound_are_bounded_too() -> None:
    """An endpoint that sends words without end does not fill the memory."""
    pieces = ReplyQueue()
    assert pieces.put(ReplyPiece("a", words="x" * MOST_CHARS))
    assert not pieces.put(ReplyPiece("a", words="x"))


async def test_crumbs_do_not_fill_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service may send each sample alone, and of two items in turn, so that none are joined."""
    monkeypatch.setattr(reply_queue, "MOST_PIECES", 100)
    pieces = ReplyQueue()
    assert all(pieces.put(sound("ab"[number % 2], 1)) for number in range(100))
    assert not pieces.put(sound("a", 1))
