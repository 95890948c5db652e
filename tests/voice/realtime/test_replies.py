"""The parts of a reply wait in a bounded queue, and each response has an end and a bill."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from voice.realtime import reply_queue
from voice.realtime.effects import ResponseEnded, ResponseStatus
from voice.realtime.port import REALTIME_RATE_HZ, ReplyPiece
from voice.realtime.reply_queue import (
    MOST_AT_ONCE,
    MOST_CHARS,
    MOST_OPEN,
    MOST_SOUND_S,
    FinishedResponse,
    OpenResponses,
    ReplyQueue,
)


def sound(item_id: str, samples: int, words: str = "") -> ReplyPiece:
    return ReplyPiece(item_id, np.full(samples, 7, np.int16), words)


@pytest.fixture
def pieces() -> ReplyQueue:
    """A queue in which nothing waits."""
    return ReplyQueue()


async def test_what_has_come_of_one_item_is_taken_at_once(pieces: ReplyQueue) -> None:
    """The waiting sound and words of one item are taken together. Another item and the end are taken separately."""
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


async def test_not_more_is_taken_than_playback_wants(pieces: ReplyQueue) -> None:
    """A long reply is taken in parts of a few seconds, so that it can be broken off."""
    for _ in range(10):
        pieces.put(sound("a", MOST_AT_ONCE // 2))
    first = await pieces.take()
    assert isinstance(first, ReplyPiece)
    assert first.pcm is not None
    assert len(first.pcm) == MOST_AT_ONCE


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


def test_words_without_sound_are_bounded_too(pieces: ReplyQueue) -> None:
    """An endpoint that sends words without end does not fill the memory."""
    assert pieces.put(ReplyPiece("a", words="x" * MOST_CHARS))
    assert not pieces.put(ReplyPiece("a", words="x"))


async def test_crumbs_do_not_fill_the_queue(pieces: ReplyQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service may send each sample alone, and of two items in turn, so that none are joined."""
    monkeypatch.setattr(reply_queue, "MOST_PIECES", 100)
    assert all(pieces.put(sound("ab"[number % 2], 1)) for number in range(100))
    assert not pieces.put(sound("a", 1))


USAGE = {"total_tokens": 47, "input_tokens": 40, "output_tokens": 7}


def _created(response: str = "resp_1") -> dict[str, Any]:
    return {"type": "response.created", "response": {"id": response}}


def _done(status: str = "completed", *, response: str = "resp_1", usage: object = USAGE) -> dict[str, Any]:
    return {"type": "response.done", "response": {"id": response, "status": status, "usage": usage}}


@pytest.fixture
def responses() -> OpenResponses:
    """No open response."""
    return OpenResponses()


@pytest.mark.parametrize(
    ("status", "usage", "expected", "tokens"),
    [
        ("completed", USAGE, ResponseStatus.COMPLETE, (40, 7)),
        # Cut off at its longest: it was answered.
        ("incomplete", USAGE, ResponseStatus.COMPLETE, (40, 7)),
        ("cancelled", USAGE, ResponseStatus.CANCELLED, (40, 7)),
        ("failed", USAGE, ResponseStatus.FAILED, (40, 7)),
        # An endpoint need not report tokens.
        ("completed", None, ResponseStatus.COMPLETE, (None, None)),
        ("completed", "7", ResponseStatus.COMPLETE, (None, None)),
        ("completed", {}, ResponseStatus.COMPLETE, (None, None)),
        ("completed", {"input_tokens": "40", "output_tokens": True}, ResponseStatus.COMPLETE, (None, None)),
    ],
)
def test_a_response_has_an_end_and_a_bill(
    responses: OpenResponses,
    status: str,
    usage: object,
    expected: ResponseStatus,
    tokens: tuple[int | None, int | None],
) -> None:
    """Its duration counts from when the server began it. It ends once."""
    assert responses.receive(_created(), 10.0) is None
    assert responses.receive(_done(status, usage=usage), 12.5) == FinishedResponse(expected, *tokens, 2.5)
    assert responses.receive(_done(status, usage=usage), 13.0) is None


def test_responses_whose_connection_ends_are_over(responses: OpenResponses) -> None:
    """Nobody says any more what they cost. A late event of one has no effect."""
    responses.receive(_created("resp_1"), 0.0)
    responses.receive(_created("resp_2"), 1.0)
    assert responses.end_all(ResponseStatus.FAILED, 3.0) == [
        FinishedResponse(ResponseStatus.FAILED, None, None, 3.0),
        FinishedResponse(ResponseStatus.FAILED, None, None, 2.0),
    ]
    assert responses.receive(_done(), 4.0) is None
    assert responses.end_all(ResponseStatus.FAILED, 4.0) == []


def test_responses_that_never_end_are_not_kept_for_ever(responses: OpenResponses) -> None:
    """A server may begin as many as it likes. The newest are known when they end."""
    for number in range(MOST_OPEN + 1):
        responses.receive(_created(f"resp_{number}"), 0.0)
    assert responses.receive(_done(response="resp_0"), 1.0) is None
    assert responses.receive(_done(response="resp_1"), 1.0) is not None
    assert len(responses.end_all(ResponseStatus.FAILED, 1.0)) == MOST_OPEN - 1


@pytest.mark.parametrize("event", [{"type": "response.done"}, {"type": "response.created", "response": "resp_1"}, {}])
def test_what_is_no_response_is_ignored(responses: OpenResponses, event: dict[str, Any]) -> None:
    assert responses.receive(event, 0.0) is None
    assert responses.end_all(ResponseStatus.FAILED, 0.0) == []
