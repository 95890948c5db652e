"""A small complete run with a language model behind the real client library.

The model answers, stalls, fails, or is unreachable.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rehearsal.servers.chat import ChatBehaviour, ChatMode, LocalChatServer
from tests.scenarios.program import Program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.program import Outcome

pytestmark = pytest.mark.rehearsal

ANSWER = "You bought a green one. I would ride it every day."


async def hello_with(base_url: str, folder: Path, *more: str) -> Outcome:
    """Play the scenario `hello` with a language model at `base_url`. `more`: further settings."""
    settings = (f"llm.base_url={base_url}", "llm.model=local-chat", "llm.first_token_timeout_s=3.0", *more)
    options = [word for setting in settings for word in ("--set", setting)]
    return await asyncio.to_thread(Program.rehearse(folder, "hello", *options).wait)


def assert_nobody_was_lost(played: Outcome) -> None:
    """Check that every line was heard under its speaker and every frame was decrypted, whatever the model did."""
    for name in ("reached_the_end", "every_utterance_heard_once", "attributed", "dave_failures"):
        assert played.expectation(name)["passed"], played.printed
    assert "Traceback" not in played.printed


@pytest.mark.asyncio
async def test_the_models_words_are_spoken_and_heard(tmp_path: Path) -> None:
    """Another participant hears the text that the model streams, and the model was sent what people had said."""
    async with LocalChatServer(ChatBehaviour(answer=lambda call: ANSWER)) as server:
        played = await hello_with(server.base_url, tmp_path)
    assert_nobody_was_lost(played)
    assert played.status == 0, played.printed
    assert "bought a green one" in played.report["bot_turns"][-1]["heard_by_others"].lower()
    asked = [call for call in server.calls if call.stream][-1]
    assert "green bicycle at the market" in str(asked.messages)


@pytest.mark.asyncio
async def test_the_next_model_answers_for_one_that_stalls(tmp_path: Path) -> None:
    """If the first model stalls, the second answers in the same reply, and no failure is spoken."""
    stalling = ChatBehaviour(answer=lambda call: ANSWER, mode=ChatMode.STALL)
    async with LocalChatServer(stalling) as first, LocalChatServer(ChatBehaviour(answer=lambda call: ANSWER)) as second:
        behind = f'llm.fallback_models=[{{ model = "second", base_url = "{second.base_url}" }}]'
        played = await hello_with(first.base_url, tmp_path, behind)
        asked = len(first.calls)
    assert_nobody_was_lost(played)
    assert played.status == 0, played.printed
    assert "bought a green one" in played.report["bot_turns"][-1]["heard_by_others"].lower()
    assert "did not answer" not in str(played.report["bot_turns"])
    assert 2 <= asked <= 3, "it rests after two failures, and may be tried once more"


@pytest.mark.asyncio
async def test_a_failing_model_is_told_and_nobody_is_lost(tmp_path: Path) -> None:
    """If the model fails from the first word on, only its answers are missing, and the room is told.

    The scenario `model-trouble` has a model that is slow, stalls, writes nonsense and recovers during the talk.
    """
    async with LocalChatServer(ChatBehaviour(answer=lambda call: ANSWER, mode=ChatMode.BROKEN)) as server:
        played = await hello_with(server.base_url, tmp_path)
    assert_nobody_was_lost(played)
    assert_apologised(played)


@pytest.mark.asyncio
async def test_a_model_that_is_away_is_told_and_nobody_is_lost(tmp_path: Path) -> None:
    """If the model is unreachable, only its answers are missing, and the room is told."""
    async with LocalChatServer() as server:
        gone = server.base_url
    played = await hello_with(gone, tmp_path)
    assert_nobody_was_lost(played)
    assert_apologised(played)


def assert_apologised(played: Outcome) -> None:
    """Check that the failure was spoken, or written if it could not be spoken."""
    told = [turn["text"] for turn in played.report["bot_turns"]] + [str(one) for one in played.report["messages"][1:]]
    assert told, played.printed
    assert not any("ride it every day" in text for text in told)
