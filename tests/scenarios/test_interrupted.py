"""People speak over the bot in a real call: a listener's "mhm" does not interrupt the bot, words silence it at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.program import Program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.rehearsal, pytest.mark.timed]


async def test_the_bot_gives_way_to_words_and_not_to_a_backchannel(tmp_path: Path) -> None:
    """Another participant hears the bot stop for words and continue through a backchannel.

    An interrupted reply is remembered as far as it was spoken.
    """
    played = await asyncio.to_thread(Program.rehearse(tmp_path, "interrupted").wait)
    assert played.expectation("interrupted ask-train")["passed"], played.printed
    assert played.expectation("interrupted ask-again")["passed"], played.printed
    assert played.status == 0, played.printed
    whole, broken_off = played.report["bot_turns"][:2]
    assert len(broken_off["text"]) < len(whole["text"]) / 2
    assert "soup" not in broken_off["heard_by_others"]


async def test_people_may_finish_what_they_say(tmp_path: Path) -> None:
    """A question and a story with pauses are each one utterance, and every question gets the answer to all of it."""
    played = await asyncio.to_thread(Program.rehearse(tmp_path, "second-thoughts").wait)
    assert played.expectation("every_utterance_heard_once")["passed"], played.printed
    assert played.status == 0, played.printed
