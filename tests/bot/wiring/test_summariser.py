"""Which summariser a server gets, and that no model that misbehaves loses a turn."""

from __future__ import annotations

import json
from datetime import UTC

import pytest

from bot.errors import SetupError
from bot.llm.settings import LlmSettings
from bot.memory.replay import replay
from bot.memory.transcript import SaidLine
from bot.wiring.memory import choose_summariser, open_summariser
from compaction.model import Mode
from compaction.settings import SummariserKind
from rehearsal.servers.chat import ChatBehaviour, ChatMode, LocalChatServer
from tests.fakes.turn_store import InMemoryTurnStore


@pytest.mark.parametrize(
    "mode",
    [
        ChatMode.STALL,
        ChatMode.GARBAGE,
        ChatMode.BROKEN,
        ChatMode.EMPTY,
        ChatMode.WRONG_KEY,
        ChatMode.FILTERED,
    ],
)
async def test_a_model_that_misbehaves_loses_nothing(mode: ChatMode) -> None:
    """However the model fails, every turn is in the window or in the summary, and the reason is reported."""
    good = json.dumps({"gist": "Ada hides a parcel.", "facts": [], "paragraph": "Ada hides parcels."})
    talk = [SaidLine("Ada", f"We decided to hide parcel {n} in cabin {n % 9}.", 1e9 + 4 * n) for n in range(80)]
    async with (
        LocalChatServer(ChatBehaviour(answer=lambda call: good, mode=mode)) as server,
        open_summariser(LlmSettings(base_url=server.base_url, model="local"), SummariserKind.LLM) as summariser,
    ):
        result = await replay(
            talk,
            store=InMemoryTurnStore(),
            summariser=summariser,
            timeout_s=0.1,
            mode=Mode.SUMMARY,
            system=[],
            max_input_tokens=30_000,
            zone=UTC,
            on_event=lambda event: None,
            on_line=lambda: None,
        )
    assert result.failed
    assert all(each.error for each in result.failed)
    assert result.covered is not None
    assert result.covered.missing == ()


async def test_the_kind_decides() -> None:
    """`auto` chooses the language model if one is configured. Asking for a model without one is an error."""
    nothing = LlmSettings()
    assert choose_summariser(SummariserKind.AUTO, None).name == "extractive"
    assert choose_summariser(SummariserKind.EXTRACTIVE, None).name == "extractive"
    with pytest.raises(SetupError, match=r"llm\.base_url"):
        choose_summariser(SummariserKind.LLM, None)
    async with open_summariser(nothing, SummariserKind.AUTO) as summariser:
        assert summariser.name == "extractive"
    there = LlmSettings(base_url="http://127.0.0.1:9/v1", model="local-chat")
    async with open_summariser(there, SummariserKind.AUTO) as summariser:
        assert (summariser.name, summariser.model) == ("llm", "local-chat")
