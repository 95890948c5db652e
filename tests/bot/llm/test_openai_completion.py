"""Whole answers for the compactor, through the real client against a local server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.llm.settings import AnswerLimits
from compaction.errors import CompletionError
from compaction.ports import CompletionRequest
from rehearsal.servers import chat_wire
from rehearsal.servers.chat import ChatMode
from tests.bot.llm.test_openai_chat import FAILURES, REQUEST, WORDS, endpoint
from tests.patience import PATIENCE_S

SCHEMA: dict[str, object] = {"type": "object", "properties": {"gist": {"type": "string"}}, "required": ["gist"]}


@pytest.mark.parametrize(("mode", "retryable", "too_slow", "remedy"), [FAILURES[0], FAILURES[4]])
async def test_completion_failures_are_told_to_the_compactor(
    mode: ChatMode, retryable: bool, too_slow: bool, remedy: str
) -> None:
    """A failed summary raises a CompletionError that says whether retrying helps."""
    async with endpoint(mode, limits=AnswerLimits(completion_s=0.3 if too_slow else PATIENCE_S)) as (chat, _):
        with pytest.raises(CompletionError, match=remedy) as caught:
            await chat.complete(REQUEST)
    assert (caught.value.retryable, caught.value.timeout) == (retryable, too_slow)


async def test_a_whole_answer_tells_its_cost_and_ending() -> None:
    """A completion returns text, finish reason and token counts; the finish reason of a cut-off answer is `length`."""
    async with endpoint() as (chat, server):
        answer = await chat.complete(REQUEST)
        assert (answer.text, answer.finish_reason, answer.prompt_tokens) == (WORDS, "stop", 11)
        server.behaviour.mode = ChatMode.LENGTH
        assert (await chat.complete(REQUEST)).finish_reason == "length"


@pytest.mark.parametrize(("taken", "tries"), [({"json_schema"}, 1), ({"json_object_schema"}, 2), (set[str](), 3)])
async def test_structured_output_falls_back_to_what_the_endpoint_takes(taken: set[str], tries: int) -> None:
    """If the endpoint refuses one form of structured output, the next is tried. What works is used from then on."""
    request = CompletionRequest(system="s", prompt="p", max_output_tokens=9, schema=SCHEMA)
    async with endpoint() as (chat, server):
        server.behaviour.answer = lambda call: json.dumps({"gist": "x"})
        server.behaviour.formats = frozenset(taken)
        assert json.loads((await chat.complete(request)).text) == {"gist": "x"}
        assert len(server.calls) == tries
        await chat.complete(request)
        assert len(server.calls) == tries + 1


@pytest.mark.parametrize("written", ["<think>Who? Bo.</think>" + WORDS, "Who? Bo.</think>" + WORDS])
async def test_thoughts_are_no_part_of_a_summary(written: str) -> None:
    """Servers without a parser for them send them as part of the answer."""
    async with endpoint() as (chat, server):
        server.behaviour.answer = lambda call: written
        assert (await chat.complete(REQUEST)).text == WORDS


async def test_a_summary_that_ends_within_the_thoughts_is_asked_for_again() -> None:
    """The model is told to think less, as one whose thoughts the server leaves out."""
    async with endpoint(ChatMode.LENGTH) as (chat, server):
        server.behaviour.answer = lambda call: WORDS if "reasoning_effort" in call.body else "<think>Who? Perhaps"
        assert (await chat.complete(REQUEST)).text == WORDS


@pytest.mark.parametrize("content", [["Bo"], {"text": "Bo"}, 7], ids=["list", "object", "number"])
async def test_a_whole_answer_that_is_no_text_is_none(content: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    complete = chat_wire.complete
    monkeypatch.setattr(chat_wire, "complete", lambda model, _, usage: complete(model, content, usage))
    monkeypatch.setattr(chat_wire, "usage_of", lambda *_, **__: {})
    async with endpoint() as (chat, _):
        with pytest.raises(CompletionError, match="not a chat answer"):
            await chat.complete(REQUEST)
