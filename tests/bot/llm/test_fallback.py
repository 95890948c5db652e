"""Failover between models through the real client: the next model answers, and no text is spoken twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from structlog.typing import EventDict

from bot.cli.run import who_answers
from bot.llm.factory import open_model
from bot.llm.fallback import FIRST_OPEN_S, FallbackModel
from bot.llm.model_calls import OPERATOR
from bot.llm.port import NO_TOOLS, ChatMessage, ChatModelError, ChatRole, OfferedTools, StreamEnd
from bot.llm.settings import LlmSettings
from compaction.errors import CompletionError, ContextOverflowError
from compaction.ports import CompletionRequest
from compaction.settings import BudgetSettings
from rehearsal.servers.chat import ChatBehaviour, ChatMode, LocalChatServer, ScriptedToolCall, ToolCallAnswer
from tests.bot.llm.offers import LOOK
from tests.fakes.brain import until
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import pass_loop_time
from tests.patience import PATIENCE_S

FIRST, SECOND = "The first one answers. It says more.", "The second one answers."
QUESTION = [ChatMessage(ChatRole.USER, "Well?")]
BUDGET = BudgetSettings()


class Pair:
    """Two servers, and a model that uses the second as fallback for the first."""

    def __init__(self, first: LocalChatServer, second: LocalChatServer, model: FallbackModel, clock: FakeClock) -> None:
        self.first, self.second, self.model, self.clock = first, second, model, clock

    async def answer(self, tools: OfferedTools = NO_TOOLS) -> str:
        """Return the text of an answer."""
        stream = self.model.stream(QUESTION, max_output_tokens=50, tools=tools, payer=OPERATOR)
        return "".join([piece async for piece in stream if isinstance(piece, str)])

    @property
    def asked(self) -> tuple[int, int]:
        """Return how many calls each server received."""
        return len(self.first.calls), len(self.second.calls)


@asynccontextmanager
async def pair(mode: ChatMode = ChatMode.ANSWER, *, within_s: float = PATIENCE_S) -> AsyncIterator[Pair]:
    """Start two servers, of which the first behaves as `mode` says."""
    async with AsyncExitStack() as stack:
        first, second = [
            await stack.enter_async_context(LocalChatServer(ChatBehaviour(answer=lambda call, words=words: words)))  # type: ignore[misc]
            for words in (FIRST, SECOND)
        ]
        first.behaviour.mode = mode
        settings = LlmSettings.model_validate(
            {
                "base_url": first.base_url,
                "model": "first",
                "fallback_models": [{"model": "second", "base_url": second.base_url}],
            }
        )
        clock = FakeClock()
        model = await stack.enter_async_context(open_model(settings, BUDGET, within_s=within_s, clock=clock))
        yield Pair(first, second, model, clock)


@pytest.mark.parametrize(
    "mode",
    [
        ChatMode.STALL,
        ChatMode.STALL_AFTER_FIRST,
        ChatMode.CUT,
        ChatMode.EMPTY,
        ChatMode.GARBAGE,
        ChatMode.GARBAGE_STREAM,
        ChatMode.ERROR_IN_STREAM,
        ChatMode.WRONG_KEY,
        ChatMode.UNKNOWN_MODEL,
        ChatMode.RATE_LIMITED,
        ChatMode.BROKEN,
    ],
)
async def test_whatever_the_first_does_the_second_answers(
    mode: ChatMode, monkeypatch: pytest.MonkeyPatch, logs: list[EventDict]
) -> None:
    """However the first model fails, the second gives the whole answer, and the log says so."""
    async with pair(mode) as models:
        answering = asyncio.create_task(models.answer())
        if mode in {ChatMode.STALL, ChatMode.STALL_AFTER_FIRST}:
            await until(lambda: models.asked[0] == 1)
            pass_loop_time(monkeypatch, PATIENCE_S)
        assert await answering == SECOND
    told = next(line for line in logs if line["event"] == "model_failed_over")
    assert (told["model"], told["next_model"]) == ("first", "second")
    assert told["problem"]


async def test_one_that_is_well_is_asked_alone() -> None:
    """While the first model works, only that model is called; its text and tool calls are passed on."""
    async with pair(within_s=PATIENCE_S) as models:
        assert await models.answer() == FIRST
        models.first.behaviour.answer = lambda call: ToolCallAnswer(
            (ScriptedToolCall("memory_search", {"query": "x"}),)
        )
        pieces = [
            piece async for piece in models.model.stream(QUESTION, max_output_tokens=9, tools=LOOK, payer=OPERATOR)
        ]
        assert isinstance(pieces[-1], StreamEnd)
        assert [call.name for call in pieces[-1].calls] == ["memory_search"]
        assert models.asked == (2, 0)
        assert models.model.model == "first"


async def test_one_that_fails_rests_and_comes_back(logs: list[EventDict]) -> None:
    """After two failures a model is skipped; after a pause the next question tries that model again."""
    async with pair(ChatMode.BROKEN, within_s=PATIENCE_S) as models:
        for _ in range(4):
            assert await models.answer() == SECOND
        assert models.asked == (2, 4)
        models.first.behaviour.mode = ChatMode.ANSWER
        models.clock.advance(FIRST_OPEN_S)
        assert await models.answer() == FIRST
        assert await models.answer() == FIRST
        assert models.asked == (4, 4)
        events = [line["event"] for line in logs]
        assert events.count("model_circuit_opened") == 1
        assert events.count("model_recovered") == 1


async def test_when_all_fail_it_is_told() -> None:
    """If all models fail, the last one's error is raised. If all are skipped, the first is tried anyway."""
    async with pair(ChatMode.BROKEN, within_s=PATIENCE_S) as models:
        models.second.behaviour.mode = ChatMode.UNKNOWN_MODEL
        with pytest.raises(ChatModelError, match="second"):
            await models.answer()
        for _ in range(2):
            with pytest.raises(ChatModelError, match="status 500"):
                await models.answer()
        assert models.asked == (3, 1)


async def test_several_that_hang_end_before_the_reply_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a share of its time. While all of them rest nobody waits, until one is tried again."""
    async with pair(ChatMode.STALL, within_s=PATIENCE_S) as models:
        models.second.behaviour.mode = ChatMode.STALL
        for tries in (1, 2):
            answering = asyncio.create_task(models.answer(), name="question")
            for asked in ((tries, tries - 1), (tries, tries)):
                await until(lambda asked=asked: models.asked == asked)  # type: ignore[misc]
                pass_loop_time(monkeypatch, PATIENCE_S / 2)
            with pytest.raises(ChatModelError, match="said nothing within"):
                await answering
        with pytest.raises(ChatModelError, match="first said nothing within"):
            await models.answer()
        assert models.asked == (2, 2)
        first, second = models.model.faults()
        assert "I answer from memory. I try it again" in first.what
        assert (models.model.answering, first.blocks, second.blocks) == (None, True, True)
        models.first.behaviour.mode = ChatMode.ANSWER
        models.clock.advance(FIRST_OPEN_S)
        assert await models.answer() == FIRST


async def test_what_was_heard_is_not_said_again() -> None:
    """If a model fails after its first sentence was passed on, no other model is asked."""
    async with pair(ChatMode.ERROR_IN_STREAM, within_s=PATIENCE_S) as models:
        models.first.behaviour.answer = lambda call: "Yes. "
        stream = models.model.stream(QUESTION, max_output_tokens=50, payer=OPERATOR)
        assert await anext(stream) == "Yes. "
        with pytest.raises(ChatModelError, match="engine"):
            await anext(stream)
        assert models.asked == (1, 0)


async def test_a_question_that_is_too_much_is_nobodys_failure() -> None:
    """A prompt that is too long is sent to no model and does not count as a model's failure."""
    async with pair(within_s=PATIENCE_S) as models:
        stream = models.model.stream(
            [ChatMessage(ChatRole.USER, "word " * 90_000)], max_output_tokens=9, payer=OPERATOR
        )
        with pytest.raises(ContextOverflowError):
            await anext(stream)
        assert models.asked == (0, 0)
        assert await models.answer() == FIRST
        assert models.model.budget.settings == BUDGET


SUMMARY = CompletionRequest("s", "p", 20)


async def test_summaries_are_asked_of_the_next_too(logs: list[EventDict]) -> None:
    """Summaries fall back to the second model in the same way. If all models fail, the first one's error is raised."""
    async with pair(within_s=PATIENCE_S) as models:
        assert (await models.model.complete(SUMMARY, payer=OPERATOR)).text == FIRST
        models.first.behaviour.mode = ChatMode.BROKEN
        for _ in range(3):
            assert (await models.model.complete(SUMMARY, payer=OPERATOR)).text == SECOND
        assert [line["next_model"] for line in logs if line["event"] == "summary_failed_over"] == ["second"] * 2
        assert models.asked == (3, 3)
        assert models.model.faults() == []
        models.second.behaviour.mode = ChatMode.WRONG_KEY
        models.clock.advance(FIRST_OPEN_S)
        with pytest.raises(CompletionError, match="status 500") as caught:
            await models.model.complete(SUMMARY, payer=OPERATOR)
        assert caught.value.retryable
        models.clock.advance(10 * FIRST_OPEN_S)
        models.first.behaviour.mode = ChatMode.ANSWER
        assert (await models.model.complete(SUMMARY, payer=OPERATOR)).text == FIRST


async def test_a_summary_that_was_waited_for_in_vain_goes_to_the_next_the_next_time() -> None:
    """A summary that its caller cancelled after a long wait counts as a failure, so the second model gets
    the next one.
    """
    async with pair(ChatMode.STALL, within_s=PATIENCE_S) as models:
        for tries, waited_s in enumerate((1.0, 30.0), start=1):
            trying = asyncio.create_task(models.model.complete(SUMMARY, payer=OPERATOR), name="summary")
            await until(lambda tries=tries: models.asked == (tries, 0))  # type: ignore[misc]
            models.clock.advance(waited_s)
            trying.cancel()
            await asyncio.wait([trying])
            assert trying.cancelled()
        assert (await models.model.complete(SUMMARY, payer=OPERATOR)).text == SECOND
        assert models.asked == (2, 1)


async def test_what_rests_is_told() -> None:
    """Health reports from the first failure on since when a model fails, which one answers instead, and what to do."""
    async with pair(ChatMode.BROKEN, within_s=PATIENCE_S) as models:
        await models.answer()
        (fault,) = models.model.faults()
        assert "first does not work, so I try it again with the next question." in fault.what
        models.clock.advance(5.0)
        await models.answer()
        (fault,) = models.model.faults()
        told = fault.status(models.clock.monotonic())
        assert not fault.blocks
        for part in ("The language model first does not work, so second answers", "5 seconds", "(status 500)"):
            assert part in told
        models.second.behaviour.mode = ChatMode.WRONG_KEY
        with pytest.raises(ChatModelError):
            await models.answer()
        first, second = models.model.faults()
        assert "I answer from memory and try it again with each question" in first.what
        assert "I answer from memory. I try it again" in second.what
        assert first.blocks
        assert second.blocks
        models.first.behaviour.mode = models.second.behaviour.mode = ChatMode.ANSWER
        assert await models.answer() == FIRST
        (fault,) = models.model.faults()
        assert "The language model second" in fault.what
        assert not fault.blocks


async def test_a_model_that_need_not_be_asked_keeps_its_trial() -> None:
    """The network was away for both. The first is back and answers everything; the second is there when it is needed,
    for a summary too.
    """
    async with pair(ChatMode.BROKEN, within_s=PATIENCE_S) as models:
        models.second.behaviour.mode = ChatMode.BROKEN
        for _ in range(2):
            with pytest.raises(ChatModelError):
                await models.answer()
        models.first.behaviour.mode = models.second.behaviour.mode = ChatMode.ANSWER
        models.clock.advance(FIRST_OPEN_S)
        assert [await models.answer() for _ in range(3)] == [FIRST] * 3
        models.first.behaviour.mode = ChatMode.BROKEN
        assert await models.answer() == SECOND
        assert (await models.model.complete(SUMMARY, payer=OPERATOR)).text == SECOND


async def test_a_trial_that_nobody_waits_for_is_made_again() -> None:
    """Somebody speaks on while the first model is tried again: the next question tries it, too. Until then it is asked
    nothing else.
    """
    async with pair(ChatMode.BROKEN, within_s=PATIENCE_S) as models:
        for _ in range(2):
            await models.answer()
        models.first.behaviour.mode = ChatMode.STALL
        models.clock.advance(FIRST_OPEN_S)
        asked = len(models.first.calls)
        trying = asyncio.create_task(models.answer(), name="question")
        await until(lambda: len(models.first.calls) == asked + 1)
        models.first.behaviour.mode = ChatMode.ANSWER
        assert await models.answer() == SECOND
        trying.cancel()
        await asyncio.wait([trying])
        assert await models.answer() == FIRST


@pytest.mark.parametrize(
    ("mode", "told"), [(ChatMode.ANSWER, "local-chat at "), (ChatMode.WRONG_KEY, "refused the key")]
)
async def test_a_start_asks_once_who_answers(mode: ChatMode, told: str) -> None:
    """A model that refuses is one of the bot's faults from then on, and the first question tries it all the same."""
    async with LocalChatServer(ChatBehaviour(answer=lambda call: FIRST)) as server:
        server.behaviour.mode = mode
        settings = LlmSettings.model_validate({"base_url": server.base_url, "model": "local-chat"})
        async with open_model(settings, BUDGET, clock=FakeClock()) as model:
            assert told in await who_answers(settings, model)
            assert [fault.blocks for fault in model.faults()] == [True] * (mode is ChatMode.WRONG_KEY)
            server.behaviour.mode = ChatMode.ANSWER
            stream = model.stream(QUESTION, max_output_tokens=50, payer=OPERATOR)
            assert "".join([piece async for piece in stream if isinstance(piece, str)]) == FIRST
            assert model.faults() == []


async def test_a_start_without_a_model_says_so() -> None:
    """Nobody is asked."""
    assert "quotes only" in await who_answers(LlmSettings(), None)
