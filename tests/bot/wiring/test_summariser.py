"""Which summariser a server gets, in whose hour its calls count, and that no model that misbehaves loses a turn."""

from __future__ import annotations

import json
import re
from datetime import UTC

import pytest

from bot.errors import SetupError
from bot.llm.settings import LlmSettings
from bot.memory.replay import Replay, replay
from bot.memory.transcript import SaidLine
from bot.participation.all_guilds import GuildParticipations
from bot.participation.settings import ParticipationSettings
from bot.server_settings import no_server_settings
from bot.wiring.memory import choose_summariser, open_summariser, summarisers_by_guild
from compaction.errors import CompletionError
from compaction.model import Mode, Seq
from compaction.settings import CompactionSettings, SummariserKind
from compaction.summary.port import FoldRequest
from rehearsal.servers.chat import ChatBehaviour, ChatCall, ChatMode, LocalChatServer
from tests.compaction.turn_store_contract import turn
from tests.fakes.choices import FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.completion import MoodyModel
from tests.fakes.turn_store import InMemoryTurnStore
from tests.patience import PATIENCE_S

TURNS = 80
TALK = [SaidLine("Ada", f"We decided to hide parcel {n} in cabin {n % 9}.", 1e9 + 4 * n) for n in range(TURNS)]
PREVIOUS = re.compile(r'<data from="previous summary">\n(.+)\n</data>')
NUMBERED = re.compile(r"^\[(\d+)\] \d\d:\d\d Ada: (.+)$", re.MULTILINE)


def told(prompt: str) -> tuple[int, str, str]:
    """Return the first turn of the batch with its number, and a summary that goes on from the one in the prompt."""
    turns = prompt[prompt.rindex('<data from="new turns">') :]
    seq, said = NUMBERED.findall(turns)[0]
    fact = said.replace("We", "Ada")
    previous = PREVIOUS.search(prompt)
    return int(seq), fact, f"{previous[1]} {fact}" if previous is not None else fact


def keeps_record(call: ChatCall) -> str:
    """Answer as a good model does: one fact from the first turn of the batch and the summary, in JSON."""
    seq, fact, summary = told(call.messages[-1]["content"])
    written = {"turns": [seq], "kind": "decision", "text": fact, "importance": 2, "closes": [], "owner": "Ada"}
    return json.dumps({"gist": f"Ada hides a parcel: {fact}", "facts": [written], "paragraph": summary})


async def fold_all(server: LocalChatServer, *, timeout_s: float = PATIENCE_S) -> Replay:
    """Replay the transcript with the server's model as summariser."""
    llm = LlmSettings(base_url=server.base_url, model="local-chat")
    settings = CompactionSettings(retry_base_s=0.001, retry_max_s=0.001, timeout_s=timeout_s)
    async with open_summariser(llm, SummariserKind.LLM) as summariser:
        return await replay(
            TALK,
            store=InMemoryTurnStore(),
            summariser=summariser,
            settings=settings,
            mode=Mode.SUMMARY,
            system=[],
            max_input_tokens=30_000,
            zone=UTC,
            on_event=lambda event: None,
            on_line=lambda: None,
        )


@pytest.mark.parametrize(
    "mode",
    [
        ChatMode.STALL,
        ChatMode.GARBAGE,
        ChatMode.BROKEN,
        ChatMode.EMPTY,
        ChatMode.WRONG_KEY,
        ChatMode.LENGTH,
        ChatMode.FILTERED,
    ],
)
async def test_a_model_that_misbehaves_loses_nothing(mode: ChatMode) -> None:
    """However the model fails, every turn is in the window or in the summary, and the reason is reported."""
    async with LocalChatServer(ChatBehaviour(answer=keeps_record, mode=mode)) as server:
        result = await fold_all(server, timeout_s=0.1)
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


async def test_a_summary_counts_in_the_hour_of_its_server() -> None:
    """A server's summaries count in its own hour and stop at its ceiling; another server is not affected."""
    model, clock = MoodyModel(), FakeClock()
    participation = GuildParticipations(
        no_server_settings(), FakeOptOuts(), ParticipationSettings(max_calls_per_hour=1), wake_names=(), clock=clock
    )
    summariser_of = summarisers_by_guild(SummariserKind.LLM, model, participation, clock)
    turns = tuple(turn(seq, f"We decided to hide parcel {seq} in the cabin.") for seq in range(10))
    request = FoldRequest(Seq(0), turns, notes=(), previous=None)
    summariser = await summariser_of(7)
    await summariser.fold(request)
    assert (await participation.of_guild(7)).costs.last_hour(clock.monotonic()).calls == 1
    with pytest.raises(CompletionError, match="max_calls_per_hour"):
        await summariser.fold(request)
    await (await summariser_of(8)).fold(request)
    rules = summarisers_by_guild(SummariserKind.AUTO, None, participation, clock)
    assert (await rules(7)).name == "extractive"
