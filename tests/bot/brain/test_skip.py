"""SKIP is never spoken, not even in part, nor in speech-to-speech. Every other answer is passed on unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.brain.decider import Reason
from bot.brain.reply import Reply
from bot.brain.skip import SKIP, SpokenSkip, drop_skipped, skip_instruction, unless_spoken_skip
from bot.words import SESSION, Words
from tests.bot.brain.replying import FIRST
from voice.realtime.port import ReplyPiece, ReplyResumed


def is_skip(text: str) -> bool:
    """Return whether the whole answer is SKIP, in any case and with punctuation."""
    return text.strip(" .!*\n").casefold() == SKIP.casefold()


async def stream(pieces: Sequence[str]) -> AsyncGenerator[str, None]:
    for piece in pieces:
        yield piece


async def through(pieces: Sequence[str]) -> tuple[str, bool]:
    """Return the text that is passed on, and whether the reply was skipped."""
    reply = Reply(FIRST, 0.0, Words().lease({SESSION}, since=None))
    said = [piece async for piece in drop_skipped(stream(pieces), reply)]
    assert all(said)
    return "".join(said), reply.skipped


@pytest.mark.parametrize(
    "answer",
    [
        "SKIP", "SKIP.", " skip", "Skip", "skip.", "**SKIP**", '"SKIP"', "(SKIP)", "[SKIP]", "SKIP\n", "\n SKIP !",
        "SKIP. They are talking to each other.", "SKIP - nothing to add", "SKIP\nSKIP", "", "  ", "S", "SK", "SKI",
        "ski", "“Skip.”", "SKIP…", "<think>Not me.\n</think>\n\nSKIP", "<think>SKIP?</think>SKIP. They talk to Ben.",
        "◁think▷No.◁/think▷skip", "<thinking>Never closed. SKIP", "<think>One.</think><think>Two.</think> SKIP", "<thi",
    ],
)  # fmt: skip
async def test_a_skip_is_never_spoken(answer: str) -> None:
    """SKIP is recognised in one piece, letter by letter, or split at any place."""
    assert await through([answer] if answer else []) == ("", 1)
    assert await through(list(answer)) == ("", 1)
    for at in range(1, len(answer)):
        assert await through([answer[:at], answer[at:]]) == ("", 1)


@pytest.mark.parametrize(
    "answer",
    [
        "Skip the intro, he said.", "Skipper, it is.", "SKIPPER is a rank.", "So it is.", "S is the letter.",
        "Skiing is fun.", "It is green.", "They SKIP school.", "Is it a Ski?", "Plan S", "[21:04] It is green.",
        "<3 it is green.", "<b>It</b> is green.", "It <think>is</think> green.",
        "<think>They ask the room.</think>\n<think>I know.</think>It is green.",
    ],
)  # fmt: skip
async def test_everything_else_comes_through(answer: str) -> None:
    """Every other answer is passed on unchanged, in one piece or letter by letter."""
    assert await through([answer]) == (answer, 0)
    assert await through(list(answer)) == (answer, 0)


async def test_a_skip_at_the_end_is_left_out() -> None:
    """A SKIP at the end is removed, and the text before it is spoken."""
    assert await through(["I have nothing to add. ", "SK", "IP."]) == ("I have nothing to add. ", 0)


@given(st.lists(st.text(st.sampled_from("SKIPskip .!*abc\n"), min_size=1, max_size=6), max_size=12))
def test_no_piece_ends_in_the_word(pieces: list[str]) -> None:
    """For any stream, the spoken text is the beginning of the model's text and is never SKIP."""
    outcome: list[tuple[str, bool]] = []
    running = through(pieces)
    with pytest.raises(StopIteration) as ended:
        running.send(None)
    outcome.append(ended.value.value)
    said, skips = outcome[0]
    whole = "".join(pieces)
    assert whole.startswith(said)
    assert not is_skip(said)
    assert not (said and skips)
    if is_skip(whole):
        assert (said, skips) == ("", 1)


def test_only_doubtful_answers_are_told_of_it() -> None:
    """Only a reply that may be skipped gets the instruction about SKIP."""
    doubtful = {Reason.ENGAGED, Reason.ROOM_QUESTION, Reason.SCREEN, Reason.QUIET_ROOM}
    assert {reason for reason in Reason if skip_instruction(reason)} == doubtful
    assert all(SKIP in skip_instruction(reason) for reason in doubtful)


SOUND = np.full(240, 7, np.int16)

Piece: TypeAlias = ReplyPiece | ReplyResumed


def _heard(pieces: Sequence[Piece]) -> list[Piece | SpokenSkip]:
    """Return the pieces that are heard, or the skip."""

    async def come() -> AsyncGenerator[Piece, None]:
        for piece in pieces:
            yield piece

    async def listen() -> list[Piece | SpokenSkip]:
        return [piece async for piece in unless_spoken_skip(come())]

    return asyncio.run(listen())


def test_words_are_heard_with_all_their_sound() -> None:
    """The pieces that were held back are played first and in order."""
    pieces = [ReplyPiece("i", None, "S"), ReplyPiece("i", SOUND, "ki"), ReplyPiece("i", SOUND, "ing is fun.")]
    assert _heard(pieces) == pieces


def test_skip_is_not_heard_after_a_lost_connection() -> None:
    """Words that lost their sound do not count: the model says SKIP anew on the next connection."""
    pieces: list[Piece] = [ReplyPiece("i", None, "SK"), ReplyResumed(""), ReplyPiece("j", None, "SKIP.")]
    assert _heard(pieces) == [SpokenSkip(pieces)]


def test_an_answer_without_anything_is_silence() -> None:
    """A reply without any pieces counts as skipped."""
    assert _heard([]) == [SpokenSkip([])]


def test_sound_that_nobody_writes_down_is_heard() -> None:
    """Sound without any words is played, though late."""
    pieces = [ReplyPiece("i", SOUND), ReplyPiece("i", SOUND)]
    assert _heard(pieces) == pieces


@example(".SKIP", 1)
@example("SKIP.", 2)
@given(st.text(alphabet="SKIPskip. abc", min_size=1, max_size=12), st.integers(1, 4))
def test_an_answer_is_heard_whole_or_not_at_all(text: str, step: int) -> None:
    """A reply is heard whole or not at all, wherever its words are split, and SKIP is never heard."""
    pieces = [ReplyPiece("i", SOUND, text[at : at + step]) for at in range(0, len(text), step)]
    heard = _heard(pieces)
    skipped = [SpokenSkip(pieces)]
    assert heard in (skipped, pieces)
    if is_skip(text):
        assert heard == skipped
