"""Explaining a reply: every message that the model was sent, and where its summary comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bot.brain.context import build_context_messages
from bot.brain.responder import ModelResponder
from bot.brain.tools.tool import RoomTool, anybody
from bot.brain.tools.toolbox import Toolbox
from bot.llm.factory import open_model
from bot.llm.model_calls import OPERATOR, PaidModel
from bot.llm.settings import LlmSettings
from bot.memory.explain import Explainer
from compaction.payload import PartKind
from compaction.settings import BudgetSettings
from rehearsal.servers.chat import ChatBehaviour, ChatCall, LocalChatServer, ScriptedToolCall, ToolCallAnswer
from tests.bot.brain.tools.calls import for_all
from tests.bot.conftest import Place
from tests.bot.evening import Evening
from tests.bot.memory.explained import EAST, SYSTEM, Replies, explained_evening, send


async def kinds_shown(evening: Evening, replies: Replies) -> set[PartKind]:
    """Check that every prompt is shown as it was sent, and return the kinds of its parts."""
    explainer = Explainer(evening.database, evening.store)
    for sent in replies.sent:
        explained = await explainer.explain(evening.session_id, sent.current.seq)
        assert explained is not None
        assert [each.parts for each in explained.sent] == [sent.parts]
        assert explained.sent[-1].figures.total_tokens == sum(part.tokens for part in sent.parts)
    overview = await explainer.replies(evening.session_id)
    assert [each.answer_to for each in overview] == [each.current.seq for each in replies.sent]
    return {part.kind for sent in replies.sent for part in sent.parts}


@pytest.mark.slow
async def test_an_evening_is_explained(place: Place) -> None:
    """Every prompt is shown with all kinds of parts, although the memory has changed since. Each fact behind the
    summaries that were sent, and behind the current one, leads to who said it.
    """
    async with Evening(place) as evening:
        replies = await explained_evening(evening)
        kinds = await kinds_shown(evening, replies)
        assert {PartKind.SYSTEM, PartKind.TURN, PartKind.CURRENT, PartKind.SUMMARY} <= kinds
        assert PartKind.EVICTION_NOTE not in kinds
        explainer = Explainer(evening.database, evening.store)
        explained = await explainer.explain(evening.session_id, replies.sent[-1].current.seq)
        assert explained is not None
        assert explained.facts
        for traced in explained.facts:
            (turn,) = traced.turns
            (said,) = turn.parts
            assert traced.segment.start <= turn.seq < traced.segment.end
            assert traced.fact.text.startswith(f'{said.speaker}: "')
        assert [traced.turns[0].seq for traced in explained.facts if "4411" in traced.fact.text] == [0]
        assert len(await explainer.facts(evening.session_id)) >= len(explained.facts)
        assert "4411" in (await explainer.chapters(evening.session_id))[0].whole


@pytest.mark.slow
async def test_a_prompt_from_which_turns_were_evicted_is_shown(file: Path) -> None:
    """With the note that stands for them."""
    async with Evening(file, max_input_tokens=900) as evening:
        assert PartKind.EVICTION_NOTE in await kinds_shown(evening, await explained_evening(evening))


async def test_each_call_is_shown_as_the_server_got_it(evening: Evening) -> None:
    """Every message that the server received is shown: also the tool's output in the second call, and what the budget
    cut to fit a small model.
    """

    async def read(_: Mapping[str, object]) -> str:
        return "The parcel is blue. " * 400

    toolbox = Toolbox(
        [
            RoomTool(
                "read_attachment",
                "Reads.",
                {"type": "object", "properties": {}},
                for_all(read),
                asks=False,
                permits=anybody,
            )
        ]
    )

    def answer(call: ChatCall) -> ToolCallAnswer | str:
        last = call.messages[-1]
        return "It is blue." if last["role"] != "user" else ToolCallAnswer((ScriptedToolCall("read_attachment"),))

    limits = BudgetSettings(max_context_tokens=3_000, reserved_output_tokens=100)
    async with (
        LocalChatServer(ChatBehaviour(answer=answer)) as server,
        open_model(LlmSettings(base_url=server.base_url, model="local-chat"), limits) as model,
    ):
        for number in range(30):
            await evening.say(f"The gate code of house number {number} is {4_000 + number}.", "Cy")
        question = await evening.say("What does the file say?", "Bob")
        built = build_context_messages(
            evening.timeline,
            question,
            system=SYSTEM,
            max_input_tokens=2_900,
            now=evening.clock.now(),
            zone=EAST,
            toolbox=toolbox,
        )
        context = replace(built, on_sent=lambda parts: send(evening, built, parts))
        said = [
            piece async for piece in ModelResponder(PaidModel(model, OPERATOR), max_output_tokens=50).respond(context)
        ]
        assert "".join(said).endswith("It is blue.")
        await evening.upkeep.run_once()
        explained = await Explainer(evening.database, evening.store).explain(evening.session_id, question.seq)
        assert explained is not None
        assert len(explained.sent) == 2
        for sent, got in zip(explained.sent, server.calls, strict=True):
            assert [(each.role, each.content) for each in sent.parts] == [
                (each["role"], each.get("content") or "") for each in got.messages
            ]
        assert any("characters left out" in part.content for part in explained.sent[1].parts), "it was cut"
