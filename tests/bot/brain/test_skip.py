"""SKIP is never spoken, not even in part; everything else is passed on unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.decider import Reason
from bot.brain.skip import SKIP, drop_skipped, is_skip, skip_instruction

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence


async def stream(pieces: Sequence[str]) -> AsyncGenerator[str, None]:
    """Yield the pieces."""
    for piece in pieces:
        yield piece


async def through(pieces: Sequence[str]) -> tuple[str, int]:
    """Return what comes through, and how often it was told that the answer is SKIP."""
    skips: list[int] = []
    said = [piece async for piece in drop_skipped(stream(pieces), on_skip=lambda: skips.append(1))]
    assert all(said)
    return "".join(said), len(skips)


@pytest.mark.asyncio
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
    """Whole, letter by letter, or cut in two anywhere."""
    assert await through([answer] if answer else []) == ("", 1)
    assert await through(list(answer)) == ("", 1)
    for at in range(1, len(answer)):
        assert await through([answer[:at], answer[at:]]) == ("", 1)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "answer",
    [
        "Skip the intro, he said.", "Skipper, it is.", "SKIPPER is a rank.", "So it is.", "S is the letter.",
        "Skiing is fun.", "It is green.", "They SKIP school.", "Is it a Ski?", "Plan S", "[21:04] It is green.",
        "<3 it is green.", "<b>It</b> is green.", "<thinking of you>", "It <think>is</think> green.",
    ],
)  # fmt: skip
async def test_everything_else_comes_through(answer: str) -> None:
    """To the letter, however it is cut."""
    assert await through([answer]) == (answer, 0)
    assert await through(list(answer)) == (answer, 0)


@pytest.mark.asyncio
async def test_what_a_model_thinks_first_is_no_part_of_its_answer() -> None:
    """However it is cut."""
    answer = "<think>They ask the room.</think>\n<think>I know.</think>It is green."
    assert await through([answer]) == ("It is green.", 0)
    for at in range(1, len(answer)):
        assert await through([answer[:at], answer[at:]]) == ("It is green.", 0)
    assert await through(list(answer)) == ("It is green.", 0)


@pytest.mark.asyncio
async def test_a_skip_at_the_end_is_left_out() -> None:
    """What was said before it stands."""
    assert await through(["I have nothing to add. ", "SK", "IP."]) == ("I have nothing to add. ", 0)


@given(st.lists(st.text(st.sampled_from("SKIPskip .!*abc\n"), min_size=1, max_size=6), max_size=12))
def test_no_piece_ends_in_the_word(pieces: list[str]) -> None:
    """Whatever a model writes and however it is cut: no answer is SKIP, and what is said is what it wrote."""
    outcome: list[tuple[str, int]] = []
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
    """Each with what the doubt is about."""
    doubtful = {Reason.ENGAGED, Reason.ROOM_QUESTION, Reason.SCREEN, Reason.QUIET_ROOM}
    assert {reason for reason in Reason if skip_instruction(reason)} == doubtful
    assert all(SKIP in skip_instruction(reason) for reason in doubtful)
