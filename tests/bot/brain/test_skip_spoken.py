"""A speech-to-speech reply is held back until its words can no longer be SKIP."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.brain.skip import unless_spoken_skip
from tests.bot.brain.test_skip import is_skip
from voice.realtime.port import ReplyPiece, ReplyResumed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

SOUND = np.full(240, 7, np.int16)

Piece: TypeAlias = ReplyPiece | ReplyResumed


def _heard(pieces: Sequence[Piece]) -> tuple[list[Piece], list[Piece] | None]:
    """Return the pieces that are heard, and those passed to `on_skip`, if it was called."""
    unsaid: list[list[Piece]] = []

    async def come() -> AsyncGenerator[Piece, None]:
        for piece in pieces:
            yield piece

    async def listen() -> list[Piece]:
        return [piece async for piece in unless_spoken_skip(come(), on_skip=unsaid.append)]

    return asyncio.run(listen()), unsaid[0] if unsaid else None


@pytest.mark.parametrize("cut", range(1, 5))
def test_skip_is_not_heard_however_it_comes(cut: int) -> None:
    """SKIP is not heard, however it is split into pieces."""
    pieces = [ReplyPiece("i", SOUND, "SKIP"[:cut]), ReplyPiece("i", SOUND, "SKIP"[cut:] + ".")]
    assert _heard(pieces) == ([], pieces)


def test_words_are_heard_with_all_their_sound() -> None:
    """The pieces that were held back are played first and in order."""
    pieces = [ReplyPiece("i", None, "S"), ReplyPiece("i", SOUND, "ki"), ReplyPiece("i", SOUND, "ing is fun.")]
    assert _heard(pieces) == (pieces, None)


def test_skip_is_not_heard_after_a_lost_connection() -> None:
    """Words that lost their sound do not count: the model says SKIP anew on the next connection."""
    pieces: list[Piece] = [ReplyPiece("i", None, "SK"), ReplyResumed(""), ReplyPiece("j", None, "SKIP.")]
    assert _heard(pieces) == ([], pieces)


def test_an_answer_without_anything_is_silence() -> None:
    """A reply without any pieces counts as skipped."""
    assert _heard([]) == ([], [])


def test_sound_that_nobody_writes_down_is_heard() -> None:
    """Sound without any words is played, though late."""
    pieces = [ReplyPiece("i", SOUND), ReplyPiece("i", SOUND)]
    assert _heard(pieces) == (pieces, None)


@example(".SKIP", 1)
@given(st.text(alphabet="SKIPskip. abc", min_size=1, max_size=12), st.integers(1, 4))
def test_an_answer_is_heard_whole_or_not_at_all(text: str, step: int) -> None:
    """A reply is heard whole or not at all, wherever its words are split, and SKIP is never heard."""
    pieces = [ReplyPiece("i", SOUND, text[at : at + step]) for at in range(0, len(text), step)]
    heard, unsaid = _heard(pieces)
    assert heard in ([], pieces)
    assert (unsaid is None) is bool(heard)
    if is_skip(text):
        assert heard == []
