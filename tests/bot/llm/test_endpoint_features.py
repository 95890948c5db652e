"""Which parameters an endpoint takes is learnt once from its refusals; other errors teach nothing."""

from __future__ import annotations

import pytest

from bot.llm.endpoint_features import EndpointFeatures
from bot.llm.message_order import MessageOrder
from bot.llm.thoughts import Thoughts

LIMIT = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."


def test_each_refusal_is_learnt_once() -> None:
    """The call is repeated after the refusal of a parameter that it had, and so is one that was sent at the same time.
    A refusal of what a call did not have is another fault.
    """
    features = EndpointFeatures()
    limit, usage, temperature = features.limits(9), {"stream_options": True}, {"temperature": 0}
    for _ in range(2):
        assert features.renames_limit(400, LIMIT, sent=limit)
        assert features.limit_name == "max_completion_tokens"
        assert features.refuses_usage(422, "stream_options: extra fields not permitted", sent=usage)
        assert not features.reports_usage
        assert features.refuses_schema_words(400, 'Unknown name "const"', sent_plain=False)
        assert features.plain_schemas
        assert features.refuses_temperature(400, "temperature does not support 0", sent=temperature)
        assert not features.takes_temperature
    assert not features.renames_limit(400, LIMIT, sent=features.limits(9))
    assert not features.refuses_usage(422, "stream_options", sent={})
    assert not features.refuses_schema_words(400, "Unknown name", sent_plain=True)
    assert not features.refuses_temperature(400, "temperature", sent={})


@pytest.mark.parametrize(
    ("status", "message"), [(401, "max_completion_tokens, stream_options, tools, temperature"), (400, "no such model")]
)
def test_other_errors_teach_nothing(status: int, message: str) -> None:
    """A status that is no refusal, or a message about something else, is not repeated."""
    features = EndpointFeatures()
    assert not features.renames_limit(status, message, sent=features.limits(9))
    assert not features.refuses_usage(status, message, sent={"stream_options": {}})
    assert not features.refuses_order(status, message, sent=MessageOrder.ANY)
    assert not features.refuses_temperature(status, message, sent={"temperature": 0})
    assert not features.refuses_tools(status, message, callable_now=True)
    assert features.supports_tools


UNNAMED = "The context is too long."
NAMED = "Unknown parameter: 'reasoning_effort'."
# The fields of a call without any effort.
UNTOLD = {"max_tokens": 9}
FILTERED = "Error code: 400 - {'error': {'message': 'No.', 'code': 'content_filter'}}"


def thinking() -> EndpointFeatures:
    """Return what is known of a model that has thought for too long, and no more."""
    features = EndpointFeatures()
    # Twice: another call was sent at the same time.
    assert features.thought_too_long(UNTOLD)
    assert features.thought_too_long(UNTOLD)
    assert features.limits(9) == {"max_tokens": 9, "reasoning_effort": "none"}
    assert not features.thought_too_long(features.limits(9))
    return features


def refused(features: EndpointFeatures, message: str, status: int = 400, *, by_name: bool = False) -> bool:
    """Refuse a call that is sent now. Return whether it is to be repeated."""
    return features.refuses_effort(status, message, sent=features.limits(9), by_name=by_name)


def test_a_refusal_of_something_else_takes_no_effort_away_that_has_worked() -> None:
    """Before, a refusal may mean the effort: a server need not name what it does not know."""
    features = EndpointFeatures()
    assert not refused(features, NAMED)
    assert features.thought_too_long(UNTOLD)
    assert refused(features, NAMED)
    features.takes_effort(features.limits(9))
    assert not refused(features, UNNAMED)
    assert features.effort == "minimal"
    assert refused(features, NAMED)
    assert refused(features, NAMED)
    assert features.limits(9) == {"max_tokens": 9}
    assert not refused(features, NAMED)
    assert not features.thought_too_long(UNTOLD)


@pytest.mark.parametrize(
    ("status", "message", "by_name"),
    [
        (429, "Rate limit reached.", False),
        (500, "The engine died.", False),
        (501, "Not implemented.", False),
        (400, FILTERED, False),
        (400, "Invalid value: 'response_format'.", True),
    ],
)
def test_what_cannot_be_about_the_effort_takes_none_away(status: int, message: str, by_name: bool) -> None:
    """Not even before one has worked. Such a call is not repeated."""
    features = thinking()
    assert not refused(features, message, status, by_name=by_name)
    assert features.effort == "none"


def test_a_server_that_fails_at_an_effort_names_it() -> None:
    features = thinking()
    assert refused(features, NAMED, 500)
    assert features.effort == "minimal"


def test_a_call_that_fails_without_any_effort_too_takes_none_away() -> None:
    """It was refused for another reason, and is repeated once. What was refused by name stays refused."""
    features = thinking()
    assert refused(features, "'reasoning_effort' does not support 'none'. Supported values are: 'minimal', 'low'.")
    assert features.effort == "minimal"
    for last in (UNNAMED, "Rate limit reached."):
        assert refused(features, UNNAMED)
        assert features.effort == ""
        # It is sent without tools or in another form first.
        assert not refused(features, UNNAMED, by_name=True)
        assert features.effort == ""
        assert not refused(features, last)
        assert features.effort == "minimal"


@pytest.mark.parametrize(
    "message",
    [
        NAMED,
        "Budget 0 is invalid. This model only works in thinking mode.",
        "Reasoning is mandatory for this endpoint and cannot be disabled.",
    ],
)
def test_what_names_the_effort_is_about_no_other_one(message: str) -> None:
    """It is dropped at once, and the next one is sent."""
    features = thinking()
    assert refused(features, message, by_name=True)
    assert features.effort == "minimal"


def test_a_call_that_works_without_any_effort_ends_the_use_of_the_one_that_was_refused() -> None:
    """None is sent while the model has words without. Once it thinks for too long, it is told the next one."""
    features = thinking()
    for following in ("minimal", "low", ""):
        assert refused(features, UNNAMED)
        for _ in range(2):
            assert features.limits(9) == UNTOLD
            features.takes_effort(UNTOLD)
            assert not refused(features, UNNAMED)
        assert features.thought_too_long(UNTOLD) == bool(following)
        assert features.effort == following


def test_calls_at_once_teach_only_what_was_sent() -> None:
    """The second of two calls is repeated with what the first has taught, and takes nothing more away."""
    features = EndpointFeatures()
    sent = features.limits(9)
    for _ in range(2):
        assert features.renames_limit(400, LIMIT, sent=sent)
        assert features.limits(9) == {"max_completion_tokens": 9, "reasoning_effort": "none"}
    assert not features.refuses_effort(400, LIMIT, sent=sent)
    sent = features.limits(9)
    for message in (NAMED, NAMED, UNNAMED):
        assert features.refuses_effort(400, message, sent=sent)
        assert features.effort == "minimal"
    # What an answer to a call with another effort says of this one is nothing.
    features.takes_effort(sent)
    features.takes_effort(UNTOLD)
    assert refused(features, UNNAMED)
    assert features.refuses_effort(400, UNNAMED, sent=sent)
    features.takes_effort({"max_tokens": 9, "reasoning_effort": "minimal"})
    assert features.effort == ""


ANY, ONE_SYSTEM, NO_SYSTEM = MessageOrder


@pytest.mark.parametrize(
    ("message", "learnt"),
    [
        ("Jinja Exception: System message must be at the beginning.", [ONE_SYSTEM, NO_SYSTEM]),
        ("Conversation roles must alternate user/assistant/user/assistant/...", [ONE_SYSTEM, NO_SYSTEM]),
        ("System role not supported", [NO_SYSTEM]),
        ("Only user and assistant roles are supported!", [NO_SYSTEM]),
        ("Developer instruction is not enabled for models/gemma-3-27b-it", [NO_SYSTEM]),
    ],
)
def test_the_order_of_messages_is_learnt_step_by_step(message: str, learnt: list[MessageOrder]) -> None:
    """Each refusal teaches a stricter order, and the strictest is not repeated. A call that was sent before another
    one was refused is repeated in the order that is known by now.
    """
    features, sent = EndpointFeatures(), ANY
    for order in learnt:
        assert features.refuses_order(500, message, sent=sent)
        assert features.order is order
        assert features.refuses_order(500, message, sent=sent)
        assert features.order is order
        sent = order
    assert not features.refuses_order(500, message, sent=NO_SYSTEM)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "this model does not support Tools"),
        (404, "No endpoints found that support tool use. To learn more about provider routing, visit: https://x"),
        (404, "No endpoints found that support the provided 'tool_choice' value."),
        (400, "`tool calling` is not supported with this model"),
        (400, "Unsupported parameter: 'tools' is not supported with this model."),
    ],
    ids=["ollama", "openrouter", "openrouter-choice", "groq", "openai"],
)
def test_model_without_tool_support_gets_none_any_more(status: int, message: str) -> None:
    features = EndpointFeatures()
    assert features.refuses_tools(status, message, callable_now=True)
    assert not features.supports_tools


def test_a_model_that_is_not_known_says_nothing_about_tools() -> None:
    """Also if its own name does."""
    features = EndpointFeatures()
    for told in ("The model 'toolace' does not exist.", "The model 'toolace' does not exist. Write to our support."):
        assert not features.refuses_tools(404, told, callable_now=True)
    assert features.supports_tools


def test_what_a_model_wrote_says_nothing_about_tools() -> None:
    """Groq quotes a malformed call in its refusal. Somebody who asks what the support said does not end their use."""
    features = EndpointFeatures()
    quoted = "{'code': 'tool_use_failed', 'failed_generation': '<function=memory_search>{\"query\": \"support\"'}"
    assert features.refuses_tools(400, f"Failed to call a function. {quoted}", callable_now=True)
    assert features.supports_tools


def test_other_refusals_of_tools_count_with_misuse() -> None:
    """One refusal or one answer that was none may be an accident; the third ends the use of tools."""
    features = EndpointFeatures()
    assert features.refuses_tools(500, "tool parser failed", callable_now=True)
    features.misused_tools()
    assert features.supports_tools
    features.misused_tools()
    assert not features.supports_tools


def test_a_model_that_calls_tools_keeps_them() -> None:
    """Accidents of an evening are no reason to take the tools away: a proper call in between forgives those before."""
    features = EndpointFeatures()
    for _ in range(5):
        features.misused_tools()
        features.misused_tools()
        features.used_tools()
    assert features.supports_tools


@pytest.mark.parametrize(
    ("model", "guessed"),
    [
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", True),
        ("deepseek-r1:8b", True),
        ("QwQ-32B", True),
        ("gpt-4.1-mini", False),
        ("gemma3r1x", False),
    ],
)
def test_what_thinks_unopened_is_guessed_and_learnt(model: str, guessed: bool) -> None:
    """The model's name is a first guess. An answer shows what is so, and the next one may show otherwise."""
    features = EndpointFeatures(model)
    assert features.thinks_unopened == guessed
    for text, unopened in (("I think. </think> Yes.", True), ("No thoughts.", False)):
        thoughts = Thoughts(unopened=features.thinks_unopened)
        thoughts.feed(text)
        thoughts.end(cut_off=False)
        features.learn_thoughts(thoughts)
        assert features.thinks_unopened == unopened


def test_tools_that_were_only_shown_teach_nothing() -> None:
    """A refusal of tools that could not be called is no sign that they are unknown; the call is repeated without."""
    features = EndpointFeatures()
    for _ in range(5):
        assert features.refuses_tools(400, "tool_choice none is not supported", callable_now=False)
    assert features.supports_tools
