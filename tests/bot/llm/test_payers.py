"""Who pays: every way to a model that is billed in tokens ends with the payer that was named, and there is no other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from bot.brain.responder import ModelResponder
from bot.llm.budgeted import Budget, BudgetedModel
from bot.llm.factory import try_model
from bot.llm.model_calls import UNMETERED, Payer
from bot.llm.openai_vision import OpenAIVision
from bot.llm.port import ChatModelError
from bot.llm.settings import LlmSettings
from bot.participation.guild_state import GuildStates
from bot.participation.settings import ParticipationSettings
from bot.posts.translation import CaptionTranslator
from bot.posts.words import WrittenLine
from bot.realtime.port import session_factory
from bot.server_settings import no_server_settings
from bot.wiring.memory import summarisers_by_guild
from compaction.model import Seq
from compaction.settings import BudgetSettings, SummariserKind
from compaction.summary.port import FoldRequest
from rehearsal.servers.chat import ChatBehaviour, ChatMode, LocalChatServer
from tests.bot.brain.thinker import CONTEXT
from tests.compaction.turn_store_contract import turn
from tests.fakes.billed import BilledEndpoint
from tests.fakes.choices import FakeOptOuts
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import FakeRoomChannel
from tests.patience import PATIENCE_S, settle
from tests.rehearsal.servers.realtime_client import FakeModel, report_usage, served
from tests.sources import ROOT, imports_of, nodes
from voice.endpoint import Endpoint
from voice.realtime.port import Briefing
from voice.realtime.settings import RealtimeSettings
from voice.screen.port import VisionRequest

FOLDED = json.dumps({"gist": "Ada hides parcels.", "facts": [], "paragraph": "Ada hides parcels."})
SERVER = 7


async def _answer(_: GuildStates, payer: Payer) -> None:
    responder = ModelResponder(BilledEndpoint().paid_by(payer), max_output_tokens=50)
    assert [piece async for piece in responder.respond(CONTEXT)]


async def _fold(participation: GuildStates, _: Payer) -> None:
    """Facts are a part of a fold, and a recap that asks a model folds with the same summariser."""
    model = BudgetedModel(BilledEndpoint(FOLDED), Budget(BudgetSettings()))
    summariser = await summarisers_by_guild(SummariserKind.LLM, model, participation)(SERVER)
    turns = tuple(turn(seq, f"We decided to hide parcel {seq} in the cabin.") for seq in range(10))
    await summariser.fold(FoldRequest(Seq(0), turns, notes=(), previous=None))


async def _translation(_: GuildStates, payer: Payer) -> None:
    """Of captions."""
    model = BilledEndpoint('{"lines": ["Guten Morgen."]}').paid_by(payer)
    translator = CaptionTranslator(model, "de", FakeRoomChannel(), clock=FakeClock())
    assert await translator.translate([WrittenLine(Seq(0), 0.0, 0.0, "1", "Ada", "Good morning.", "en")])


async def _vision(_: GuildStates, payer: Payer) -> None:
    async with LocalChatServer(ChatBehaviour(answer=lambda _: "A map.", prompt_tokens=640)) as server:
        endpoint = Endpoint(server.base_url, "eyes", "", PATIENCE_S)
        async with OpenAIVision(endpoint, Budget(BudgetSettings())) as vision:
            await vision.read(lambda: VisionRequest(b"\xff\xd8picture", who="Ada"), payer=payer)


async def _speech_to_speech(_: GuildStates, payer: Payer) -> None:
    async with served(FakeModel()) as server:
        settings = RealtimeSettings.model_validate({"model": "gpt-realtime", "base_url": server.base_url})
        open_session = session_factory(settings, api_key="k", clock=FakeClock(), meter=UNMETERED)
        session, run = open_session(lambda: Briefing("Be kind."), lambda _: None, _no_tool, payer)
        living = asyncio.create_task(run(), name="session-under-test")
        await settle(lambda: bool(server.of("session.update")))
        assert [piece async for piece in session.reply()]
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)


async def _no_tool(call: object) -> str:
    raise AssertionError(call)


@pytest.mark.parametrize("call", [_answer, _fold, _translation, _vision, _speech_to_speech])
async def test_every_call_is_paid_by_its_server(
    call: Callable[[GuildStates, Payer], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever task makes it, and in whatever context that runs. The log has the server too."""
    report_usage(monkeypatch, {"input_tokens": 600, "output_tokens": 50})
    participation = GuildStates(
        no_server_settings(), FakeOptOuts(), ParticipationSettings(), wake_names=(), clock=FakeClock()
    )
    guild = await participation.of_guild(SERVER)
    with capture_logs() as logs:
        await call(participation, guild)
    assert guild.costs.total.calls == 1
    assert (await participation.of_guild(SERVER + 1)).costs.total.calls == 0
    assert guild.costs.total.tokens >= 600
    assert [line["guild_id"] for line in logs if line["event"] == "model_call_finished"] == [SERVER]


async def test_the_operator_pays_for_a_trial() -> None:
    """Of `roomtone setup`. The log names no server, and a model that does not answer is told with its remedy."""
    async with LocalChatServer(ChatBehaviour(answer=lambda _: "Ready.")) as server:
        there = LlmSettings(base_url=server.base_url, model="local-chat")
        with capture_logs() as logs:
            await try_model(there)
        server.behaviour.mode = ChatMode.EMPTY
        with pytest.raises(ChatModelError, match="empty answer"):
            await try_model(there)
    assert [line["guild_id"] for line in logs if line["event"] == "model_call_finished"] == [None]


# What makes, finishes or opens such a call, and the operator, who pays for what no server has asked: the modules that
# import it. A new one needs its way above. Recognition, voices, embeddings and moderation are not billed like these.
IMPORTERS = {
    "bot.llm.model_calls.CountedCall": {"bot.llm.budgeted", "bot.llm.openai_vision"},
    "bot.llm.model_calls.finish_call": {"bot.realtime.port"},
    "bot.llm.chat_client.ChatClient": {"bot.llm.openai_chat", "bot.llm.openai_vision"},
    "bot.llm.openai_chat.OpenAIChat": {"bot.llm.factory"},
    "bot.llm.model_calls.OPERATOR": {"bot.llm.factory", "bot.wiring.memory"},
}


def test_no_other_code_calls_a_model() -> None:
    """So the ways above are all that there are."""
    modules = list((ROOT / "bot").rglob("*.py"))
    imports = [each for path in modules for each in imports_of(path) if not each.typing_only]
    assert {name: {each.module for each in imports if each.target == name} for name in IMPORTERS} == IMPORTERS
    asks = [path.name for path in modules if any(getattr(node, "attr", "") == "completions" for node in nodes(path))]
    assert asks == ["chat_client.py"]
