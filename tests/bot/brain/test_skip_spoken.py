"""A spoken SKIP is held back until its words are something else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.skip import is_skip, unless_spoken_skip
from voice.realtime.port import ReplyPiece

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

SOUND = np.full(240, 7, np.int16)


def _heard(pieces: Sequence[ReplyPiece]) -> tuple[list[ReplyPiece], list[ReplyPiece] | None]:
    """Return what is heard of an answer, and what was unsaid instead."""
    unsaid: list[list[ReplyPiece]] = []

    async def come() -> AsyncGenerator[ReplyPiece, None]:
        for piece in pieces:
            yield piece

    async def listen() -> list[ReplyPiece]:
        return [piece async for piece in unless_spoken_skip(come(), on_skip=unsaid.append)]

    return asyncio.run(listen()), unsaid[0] if unsaid else None


@pytest.mark.parametrize("cut", range(1, 5))
def test_skip_is_not_heard_however_it_comes(cut: int) -> None:
    """In one piece or in several, each with its sound."""
    pieces = [ReplyPiece("i", SOUND, "SKIP"[:cut]), ReplyPiece("i", SOUND, "SKIP"[cut:] + ".")]
    assert _heard(pieces) == ([], pieces)


def test_words_are_heard_with_all_their_sound() -> None:
    """What was held back comes first, in its order."""
    pieces = [ReplyPiece("i", None, "S"), ReplyPiece("i", SOUND, "ki"), ReplyPiece("i", SOUND, "ing is fun.")]
    assert _heard(pieces) == (pieces, None)


def test_an_answer_without_anything_is_silence() -> None:
    """A model that says nothing at all."""
    assert _heard([]) == ([], [])


def test_sound_that_nobody_writes_down_is_heard() -> None:
    """Late, but heard."""
    pieces = [ReplyPiece("i", SOUND), ReplyPiece("i", SOUND)]
    assert _heard(pieces) == (pieces, None)


@given(st.text(alphabet="SKIPskip. abc", min_size=1, max_size=12), st.integers(1, 4))
def test_an_answer_is_heard_whole_or_not_at_all(text: str, step: int) -> None:
    """Whatever its words are and wherever they are cut; SKIP alone never is."""
    pieces = [ReplyPiece("i", SOUND, text[at : at + step]) for at in range(0, len(text), step)]
    heard, unsaid = _heard(pieces)
    assert heard in ([], pieces)
    assert (unsaid is None) is bool(heard)
    if is_skip(text):
        assert heard == []
