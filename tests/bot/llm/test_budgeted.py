"""Every call to a model is kept within its budget, counted and logged."""

from __future__ import annotations

import ast
import json
from collections.abc import AsyncGenerator, Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from structlog.typing import EventDict

from bot.llm.budgeted import Budget, BudgetedModel, offers_tokens, offers_within, to_message, to_part
from bot.llm.factory import open_model
from bot.llm.model_calls import OPERATOR, BilledModel
from bot.llm.port import (
    NO_TOOLS,
    ChatMessage,
    ChatModelError,
    ChatRole,
    EndpointItem,
    FinishReason,
    OfferedTools,
    StreamEnd,
    ToolOffer,
    Usage,
)
from bot.llm.settings import LlmSettings
from bot.settings import ModelsSettings
from compaction.budget.estimator import Estimator
from compaction.errors import CompletionError, ContextOverflowError
from compaction.payload import MessageToolCall, PartKind, make_part
from compaction.ports import CompletionAnswer, CompletionRequest
from compaction.settings import BudgetSettings
from compaction.tokens import MESSAGE_OVERHEAD_TOKENS, estimate_text_tokens, estimate_tokens
from rehearsal.servers.chat import ChatBehaviour, LocalChatServer
from tests.sources import ROOT, nodes

SMALL = BudgetSettings(max_context_tokens=1_024, reserved_output_tokens=324)
ROOM = 700


class Recorder:
    """An endpoint that records what it is sent, and reports the tokens that `bill` computes."""

    model = "recorder"

    def __init__(self, *, bill: Callable[[int], int] = lambda cost: cost, error: Exception | None = None) -> None:
        self.sent: list[Sequence[ChatMessage]] = []
        self.offered: list[OfferedTools] = []
        self.requests: list[CompletionRequest] = []
        self._bill = bill
        self._error = error

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        tools: OfferedTools = NO_TOOLS,
    ) -> AsyncGenerator[EndpointItem, None]:
        """Stream an answer of two words."""
        self.sent.append(messages)
        self.offered.append(tools)
        yield "Two "
        if self._error is not None:
            raise self._error
        yield "words."
        yield Usage(self._bill(estimate_tokens(messages)), 2)
        yield StreamEnd(FinishReason.STOP)

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return an answer of two words."""
        self.requests.append(request)
        if self._error is not None:
            raise self._error
        return CompletionAnswer("Two words.", "stop", 321, 2)


def said(count: int) -> list[ChatMessage]:
    """Return a system prompt and `count` messages."""
    talk = [ChatMessage(ChatRole.USER, f"turn {number} {'word ' * 20}") for number in range(count)]
    return [ChatMessage(ChatRole.SYSTEM, "You take part."), *talk]


async def heard(model: BilledModel, messages: list[ChatMessage], *, enforce: bool | None = None) -> str:
    """Return the whole answer."""
    stream = model.stream(messages, max_output_tokens=100, enforce_budget=enforce, payer=OPERATOR)
    return "".join([piece async for piece in stream if isinstance(piece, str)])


@pytest.fixture
def endpoint() -> Recorder:
    """An endpoint that was asked nothing."""
    return Recorder()


async def test_what_fits_is_sent_as_it_is(endpoint: Recorder) -> None:
    """A prompt that fits is sent unchanged."""
    call = MessageToolCall("c-1", "look", "{}")
    messages = [
        *said(2),
        ChatMessage(ChatRole.ASSISTANT, "", tool_calls=(call,)),
        ChatMessage(ChatRole.TOOL, "A map.", tool_call_id="c-1", name="look"),
        to_message(make_part("user", PartKind.CURRENT, "And now?", timestamp=5.0)),
    ]
    assert await heard(BudgetedModel(endpoint, Budget(SMALL)), messages) == "Two words."
    assert list(endpoint.sent[0]) == [
        *said(2),
        ChatMessage(ChatRole.ASSISTANT, "", tool_calls=(call,)),
        ChatMessage(ChatRole.TOOL, "A map.", tool_call_id="c-1", name="look"),
        ChatMessage(ChatRole.USER, "And now?"),
    ]


@pytest.mark.covers("4.1")
async def test_what_does_not_fit_is_trimmed_and_told(endpoint: Recorder, logs: list[EventDict]) -> None:
    """A prompt that does not fit is trimmed to the budget; it gets one note about that, and the log a warning."""
    await heard(BudgetedModel(endpoint, Budget(SMALL)), said(60))
    sent = endpoint.sent[0]
    assert estimate_tokens(sent) <= ROOM
    assert "messages evicted" in sent[1].content
    assert [line["event"] for line in logs] == ["context_truncated", "model_call_finished"]
    assert logs[0]["dropped_count"] + len(sent) - 1 == 61


@pytest.mark.covers("4.5")
async def test_what_cannot_fit_never_leaves(endpoint: Recorder) -> None:
    """A prompt that cannot be trimmed enough is not sent: a reply tells the person what to do, a summary fails for
    good.
    """
    model = BudgetedModel(endpoint, Budget(SMALL))
    with pytest.raises(ContextOverflowError, match="less"):
        await heard(model, [ChatMessage(ChatRole.USER, "word " * 2_000)])
    with pytest.raises(CompletionError, match="too long") as refused:
        await model.complete(CompletionRequest("Summarise.", "word " * 2_000, 100), payer=OPERATOR)
    assert not refused.value.retryable
    assert (endpoint.sent, endpoint.requests) == ([], [])


async def test_a_longer_answer_leaves_less_room(endpoint: Recorder) -> None:
    """An answer limit above the reserved tokens reduces the room for the prompt."""
    model = BudgetedModel(endpoint, Budget(SMALL))
    stream = model.stream(said(60), max_output_tokens=624, payer=OPERATOR)
    assert [piece async for piece in stream]
    assert estimate_tokens(endpoint.sent[0]) <= ROOM - 300


@pytest.mark.parametrize(("words", "asked", "left"), [(20, 9_000, 900), (20, 100, 100), (490, 9_000, 324)])
async def test_the_answer_to_a_fold_has_the_room_beside_its_request(
    endpoint: Recorder, words: int, asked: int, left: int
) -> None:
    """The longest answer of a script is more than a small model has. It has never less than what is reserved."""
    request = CompletionRequest("Summarise.", "word " * words, asked)
    await BudgetedModel(endpoint, Budget(SMALL)).complete(request, payer=OPERATOR)
    assert left <= endpoint.requests[0].max_output_tokens <= left + 150


async def test_disabled_everything_is_sent() -> None:
    """If the settings or the call disable the budget, the whole prompt is sent, and the log says that it
    was too long.
    """
    off = SMALL.model_copy(update={"enabled": False})
    for budget, enforce in ((Budget(off), None), (Budget(SMALL), False)):
        endpoint = Recorder()
        with capture_logs() as logs:
            await heard(BudgetedModel(endpoint, budget), said(60), enforce=enforce)
        assert list(endpoint.sent[0]) == said(60)
        assert logs[-1]["within_budget"] is False


@pytest.mark.covers("4.2", "4.10")
async def test_every_call_logs_what_it_cost(logs: list[EventDict]) -> None:
    """Replies and summaries log their estimated and billed tokens, but no words."""
    model = BudgetedModel(Recorder(), Budget(SMALL))
    await heard(model, said(3))
    await model.complete(CompletionRequest("Summarise.", "Ada: hello.", 100), payer=OPERATOR)
    reply, summary = (line for line in logs if line["event"] == "model_call_finished")
    expected = estimate_tokens(said(3))
    assert (reply["purpose"], reply["estimated_prompt_tokens"], reply["prompt_tokens"]) == ("reply", expected, expected)
    assert (reply["completion_tokens"], reply["outcome"], reply["message_count"]) == (2, "answered", 4)
    assert (summary["purpose"], summary["prompt_tokens"], summary["completion_tokens"]) == ("summary", 321, 2)
    assert (reply["finish_reason"], summary["finish_reason"]) == ("stop", "stop")
    assert "turn 0" not in str(logs)
    assert "Ada" not in str(logs)


@pytest.mark.covers("4.2")
async def test_a_call_is_counted_as_its_model_counts(logs: list[EventDict]) -> None:
    """By the model's own tokeniser, the same as its prompt was trimmed by."""

    class Letters:
        def count(self, text: str) -> int:
            return len(text)

    model = BudgetedModel(Recorder(), Budget(BudgetSettings(), Estimator(Letters())))
    await heard(model, said(3))
    expected = sum(MESSAGE_OVERHEAD_TOKENS + len(message.content) for message in said(3))
    assert logs[0]["estimated_prompt_tokens"] == expected


async def test_a_call_that_fails_or_is_broken_off_is_logged_too(logs: list[EventDict]) -> None:
    """A failed or cancelled call is logged with its outcome."""
    model = BudgetedModel(Recorder(error=ChatModelError("It broke.", retryable=True)), Budget(SMALL))
    with pytest.raises(ChatModelError):
        await heard(model, said(1))
    stream = model.stream(said(1), max_output_tokens=9, payer=OPERATOR)
    await anext(stream)
    await stream.aclose()
    failing = BudgetedModel(Recorder(error=CompletionError("It broke.", retryable=True)), Budget(SMALL))
    with pytest.raises(CompletionError):
        await failing.complete(CompletionRequest("s", "p", 9), payer=OPERATOR)
    assert [line["outcome"] for line in logs] == ["failed", "cancelled", "failed"]


async def test_a_dearer_bill_tightens_the_next_call(logs: list[EventDict]) -> None:
    """If the provider twice bills more tokens than estimated, later estimates are raised."""
    endpoint = Recorder(bill=lambda cost: cost * 3 // 2)
    budget = Budget(BudgetSettings(max_context_tokens=4_096, reserved_output_tokens=96))
    model = BudgetedModel(endpoint, budget)
    await heard(model, said(60))
    await heard(model, said(60))
    await heard(model, said(200))
    await heard(model, said(1))
    assert estimate_tokens(endpoint.sent[2]) * 1.5 <= 4_000
    assert [line["event"] for line in logs].count("token_count_corrected") == 1
    assert logs[-1]["estimated_prompt_tokens"] >= 1.5 * estimate_tokens(said(1)) - 1


async def test_the_form_of_an_answer_is_no_dearer_bill(logs: list[EventDict]) -> None:
    """Some providers bill the schema of an answer with the prompt. That makes no later prompt smaller."""
    schema: dict[str, object] = {"type": "string", "enum": [f"turn {number}" for number in range(100)]}

    class Billing(Recorder):
        async def complete(self, request: CompletionRequest) -> CompletionAnswer:
            told = [ChatMessage(ChatRole.SYSTEM, request.system), ChatMessage(ChatRole.USER, request.prompt)]
            tokens = estimate_tokens(told) + estimate_text_tokens(json.dumps(request.schema))
            return CompletionAnswer("Two words.", "stop", tokens, 2)

    budget = Budget(BudgetSettings())
    model = BudgetedModel(Billing(), budget)
    room = budget.room()
    for _ in range(2):
        await model.complete(CompletionRequest("Say two words.", "word " * 2_000, 100, schema), payer=OPERATOR)
    assert budget.room() == room
    (one, other) = [line for line in logs if line["event"] == "model_call_finished"]
    assert one["prompt_tokens"] == one["estimated_prompt_tokens"] == other["estimated_prompt_tokens"]


@pytest.mark.covers("4.2")
async def test_the_configured_model_is_opened_behind_its_budget() -> None:
    """The configured model counts exactly if the tokenizer for its name is installed and the settings allow it."""
    async with LocalChatServer(ChatBehaviour(answer=lambda call: "Two words.")) as server:
        llm = LlmSettings(base_url=server.base_url, model="qwen2.5-coder-1.5b")
        models = ModelsSettings(directory=ROOT / "data" / "models")
        async with open_model(llm, SMALL, models) as model:
            assert model.budget.estimator.exact
            assert await heard(model, said(60)) == "Two words."
            assert sum(model.budget.count(str(each["content"])) + 6 for each in server.calls[0].messages) <= ROOM
        async with open_model(llm, SMALL.model_copy(update={"token_estimator": "fallback"}), models) as model:
            assert not model.budget.estimator.exact
        async with open_model(llm, SMALL) as model:
            assert not model.budget.estimator.exact


@pytest.mark.covers("4.1")
@pytest.mark.slow
def test_nobody_goes_around_it() -> None:
    """Inside bot, only `bot.llm` imports the adapters that talk to endpoints."""
    around = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "bot").rglob("*.py"))
        if path.parent != ROOT / "bot" / "llm"
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module in {"bot.llm.openai_chat", "bot.llm.chat_client"}
    ]
    assert around == []


async def test_tools_take_of_the_prompts_room(endpoint: Recorder, logs: list[EventDict]) -> None:
    """Tool descriptions reduce the room for the prompt. If memory can be searched, the note about evicted messages says
    so.
    """
    offer = ToolOffer("memory_search", "Finds what was said. " * 10, {"type": "object", "properties": {}})
    budget = Budget(SMALL)
    tools = OfferedTools((offer,))
    model = BudgetedModel(endpoint, budget)
    stream = model.stream(said(60), max_output_tokens=100, tools=tools, payer=OPERATOR)
    assert [piece async for piece in stream]
    assert offers_tokens(tools.offers, budget.count) > 50
    assert estimate_tokens(endpoint.sent[0]) <= ROOM - offers_tokens(tools.offers, budget.count)
    assert "memory_search" in endpoint.sent[0][1].content
    assert logs[-1]["estimated_prompt_tokens"] == estimate_tokens(endpoint.sent[0]) + offers_tokens(
        tools.offers, budget.count
    )
    assert (logs[-1]["finish_reason"], logs[-1]["tool_call_count"]) == ("stop", 0)


@given(st.lists(st.integers(0, 200), max_size=8), st.integers(0, 600))
def test_the_offered_tools_fit_together(sizes: list[int], room: int) -> None:
    """Each that fits beside those before it is offered, and one that is too large keeps no later one out."""
    offers = [ToolOffer(f"tool {number}", "x" * size, {}) for number, size in enumerate(sizes)]
    kept = offers_within(offers, room, len)
    assert offers_tokens(kept, len) <= room
    for number, each in enumerate(offers):
        before = [other for other in offers[:number] if other in kept]
        assert (each in kept) is (offers_tokens([*before, each], len) <= room)


async def test_a_small_model_is_offered_what_it_can_take(endpoint: Recorder) -> None:
    """Tools are chosen for the first model's prompt. A model that stands in for it, and takes less, gets those that
    need a quarter of its room at most; beside all of them no prompt might fit.
    """
    look = ToolOffer("look", "Looks.", {"type": "object"})
    tools = OfferedTools((look, ToolOffer("hub_all", "Does everything. " * 300, {"type": "object"})))
    model = BudgetedModel(endpoint, Budget(SMALL))
    assert offers_tokens(tools.offers, Budget(SMALL).count) > ROOM
    for enforce in (True, False):
        stream = model.stream(said(2), max_output_tokens=100, tools=tools, enforce_budget=enforce, payer=OPERATOR)
        assert [piece async for piece in stream]
    assert [each.offers for each in endpoint.offered] == [(look,), tools.offers]


TALK = [
    ChatMessage(ChatRole.SYSTEM, f"You take part. {'rule ' * 250}"),
    to_message(make_part("user", PartKind.PARTICIPANTS, f"About Ada. {'word ' * 40}")),
    *(ChatMessage(ChatRole.USER, f"turn {number} {'word ' * 20}") for number in range(13)),
]
RULES = [ChatMessage(ChatRole.SYSTEM, f"You take part. {'rule ' * 700}"), ChatMessage(ChatRole.USER, "turn 0")]
READ = [
    ChatMessage(ChatRole.ASSISTANT, "", tool_calls=(MessageToolCall("c-1", "read_file", '{"path": "plan.md"}'),)),
    ChatMessage(ChatRole.TOOL, "one door and one key\n" * 40, tool_call_id="c-1", name="read_file"),
    *(ChatMessage(ChatRole.ASSISTANT, f"answer {number}") for number in range(7)),
    ChatMessage(ChatRole.USER, "And plan.md?"),
]
UNREAD = [*READ[:-1], ChatMessage(ChatRole.USER, "And now?")]


@pytest.mark.covers("4.8")
@pytest.mark.parametrize(
    ("option", "messages", "kept", "lost"),
    [
        ({}, TALK, "You take part.", "turn 0"),
        ({"max_context_tokens": 8_192}, TALK, "turn 0", None),
        ({"reserved_output_tokens": 64}, TALK, "turn 0", None),
        ({"preserve_system_prompt": False}, RULES, "turn 0", "You take part."),
        ({"preserve_recent_turns": 0}, TALK, "About Ada.", "turn 6"),
        ({"preserve_recent_turns": 10}, TALK, "turn 6", "About Ada."),
        ({"preserve_recent_turns": 0, "target_utilization": 1.0}, TALK, "turn 6", None),
        ({"preserve_recent_turns": 0, "trim_strategy": "oldest-first"}, TALK, "turn 6", "About Ada."),
        ({"preserve_recent_files": True}, READ, "one door", None),
        ({"preserve_recent_files": False}, READ, "Output of read_file", "one door"),
        ({"max_tool_output_age": 5}, UNREAD, "Output of read_file", "one door"),
        ({"max_tool_output_age": 9}, UNREAD, "one door", None),
        ({"max_tool_output_tokens": 50}, READ, "characters left out", "one door and one key\n" * 30),
    ],
)
def test_every_option_holds_for_the_call(
    option: dict[str, object], messages: list[ChatMessage], kept: str, lost: str | None
) -> None:
    """What the settings say about which messages and outputs outlive others holds for what is sent."""
    budget = Budget(BudgetSettings.model_validate(SMALL.model_dump() | option))
    parts = [to_part(each, budget.count) for each in messages]
    sent = "".join(each.content for each in budget.final_prompt(parts, max_output_tokens=64).messages)
    assert kept in sent
    assert lost is None or lost not in sent
