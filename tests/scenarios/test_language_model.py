"""A small complete run with a language model behind the real client library.

The scenarios `model-trouble` and `second-model` have models that stall, fail and are away.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rehearsal.servers.chat import ChatBehaviour, LocalChatServer
from tests.scenarios.program import Program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.rehearsal

ANSWER = "You bought a green one. I would ride it every day."


async def test_the_models_words_are_spoken_and_heard(tmp_path: Path) -> None:
    """Another participant hears the text that the model streams, and the model was sent what people had said."""
    async with LocalChatServer(ChatBehaviour(answer=lambda call: ANSWER)) as server:
        settings = (f"llm.base_url={server.base_url}", "llm.model=local-chat")
        options = [word for setting in settings for word in ("--set", setting)]
        played = await asyncio.to_thread(Program.rehearse(tmp_path, "hello", *options).wait)
    assert played.status == 0, played.printed
    assert "bought a green one" in played.report["bot_turns"][-1]["heard_by_others"].lower()
    asked = [call for call in server.calls if call.stream][-1]
    assert "green bicycle at the market" in str(asked.messages)
