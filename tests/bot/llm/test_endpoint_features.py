"""What an endpoint takes: what the table says, less what it has refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from bot.llm.endpoint_features import EndpointFeatures

LOCAL = "http://127.0.0.1:8080/v1"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai/"
ANTHROPIC = "https://api.anthropic.com/v1/"
SCHEMA = {"type": "object"}
ALL: Mapping[str, object] = {"temperature": 0, "stream_options": {}, "tools": [1], "tool_choice": "auto"}


@pytest.mark.parametrize(
    ("base_url", "model", "fields"),
    [
        ("", "gpt-4.1-mini", {"max_completion_tokens": 9, "temperature": 0}),
        ("", "gpt-5-mini", {"max_completion_tokens": 9, "temperature": 0, "reasoning_effort": "none"}),
        ("", "gpt-5-chat-latest", {"max_completion_tokens": 9, "temperature": 0}),
        ("", "o4-mini", {"max_completion_tokens": 9, "temperature": 0, "reasoning_effort": "none"}),
        (ANTHROPIC, "claude-haiku-4-5", {"max_tokens": 9}),
        (GEMINI, "gemini-2.5-flash", {"max_tokens": 9, "temperature": 0, "reasoning_effort": "none"}),
        (LOCAL, "qwen3", {"max_tokens": 9, "temperature": 0}),
    ],
)
def test_the_table_says_what_known_endpoints_need(base_url: str, model: str, fields: dict[str, object]) -> None:
    assert EndpointFeatures(base_url, model).fields(9, optional={"temperature": 0}) == fields


@pytest.fixture
def features() -> EndpointFeatures:
    """What an unknown endpoint takes."""
    return EndpointFeatures(LOCAL, "m")


@pytest.mark.parametrize(
    ("status", "message", "field"),
    [
        (400, "Unknown parameter: 'stream_options'.", "stream_options"),
        (400, "`temperature` is deprecated for this model.", "temperature"),
        (400, "gemma:2b does not support tools", "tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice', "tools"),
        (422, "Invalid schema for function 'hub_put': tools[3] has no type", "tools"),
    ],
)
def test_a_field_that_is_refused_by_name_is_left_out(
    features: EndpointFeatures, status: int, message: str, field: str
) -> None:
    assert features.learn(status, message, sent=features.fields(9, optional=ALL), in_turn=False) == field
    left = features.fields(9, optional=ALL)
    assert field not in left
    assert ("tool_choice" in left) is (field != "tools") is features.takes_tools


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "temperature"),
        (400, "The request exceeds the available context size."),
        (400, "reasoning_effort and response_format, which were not sent"),
        (500, "error parsing tool call"),
    ],
)
def test_other_failures_teach_nothing(features: EndpointFeatures, status: int, message: str) -> None:
    """A server that could not read a call of its model may read the next."""
    sent = features.fields(9, optional=ALL)
    assert features.learn(status, message, sent=sent, in_turn=False) is None
    assert features.fields(9, optional=ALL) == sent


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        ("'reasoning_effort' does not support 'none' with this model.", ["none", "minimal", "low", None]),
        ("Budget 0 is invalid. This model only works in thinking mode.", ["none", "minimal", "low", None]),
    ],
)
def test_the_least_effort_that_a_model_takes_is_found(
    features: EndpointFeatures, message: str, sent: list[str | None]
) -> None:
    """A model that is not known to think is told nothing until it has thought for the whole of an answer."""
    assert "reasoning_effort" not in features.fields(9)
    assert features.thought_too_long(features.fields(9))
    for effort in sent:
        fields = features.fields(9)
        assert fields.get("reasoning_effort") == effort
        assert not features.thought_too_long(fields)
        features.learn(400, message, sent=fields, in_turn=False)


def test_forms_of_an_answer_are_tried_in_turn(features: EndpointFeatures) -> None:
    """llama-cpp-python's server takes only the second. The last way is the prompt alone."""
    types = []
    for _ in range(3):
        sent: dict[str, Any] = features.fields(9, schema=SCHEMA)
        types.append(sent.get("response_format", {}).get("type"))
        features.learn(422, "Input should be 'text', 'json_object': response_format.type", sent=sent, in_turn=False)
    assert types == ["json_schema", "json_object", None]


@pytest.mark.parametrize(
    "message",
    [
        "Jinja Exception: System message must be at the beginning.",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Unexpected role 'user' after role 'tool'",
    ],
)
def test_a_strict_template_gets_its_order(features: EndpointFeatures, message: str) -> None:
    """Its refusal says nothing about tools, though it may name them. The strict order is not learnt twice."""
    sent = features.fields(9, optional={"temperature": 0})
    assert features.learn(500, message, sent=sent, in_turn=False) == "messages"
    assert features.in_turn
    assert features.learn(500, message, sent=sent, in_turn=True) is None
