"""Messages, tools and streamed chunks as the chat completions API has them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bot.llm.chat_wire import (
    MOST_SIGNATURE_CHARS,
    read_chunk,
    to_api_messages,
    to_api_tools,
)
from bot.llm.port import NO_TOOLS, ChatMessage, ChatRole, OfferedTools, ToolOffer
from bot.llm.streamed_answer import CallPiece, ChunkContent
from compaction.payload import MessageToolCall
from compaction.untrusted_text import mark_as_data

SCHEMA: dict[str, object] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "maxLength": {"type": "array", "items": [{"type": "string", "maxLength": 9}], "maxItems": 3},
        "name": {"type": "string", "maxLength": 2000, "minLength": 1, "pattern": "^a"},
    },
}


def test_a_call_is_sent_back_with_its_signature() -> None:
    """Only the call that came with a signature gets it back."""
    calls = (MessageToolCall("1", "look", "{}"), MessageToolCall("2", "roll", "{}"))
    (sent,) = to_api_messages([ChatMessage(ChatRole.ASSISTANT, "", tool_calls=calls)], {"1": {"google": "signed"}})
    assert sent["tool_calls"] == [
        {
            "id": "1",
            "type": "function",
            "function": {"name": "look", "arguments": "{}"},
            "extra_content": {"google": "signed"},
        },
        {"id": "2", "type": "function", "function": {"name": "roll", "arguments": "{}"}},
    ]


@pytest.mark.parametrize(
    ("signatures", "takes"),
    [(None, True), ({"1": "signed", "2": None}, True), ({"1": None, "2": "signed"}, False), ({}, False)],
)
def test_a_step_is_sent_whole_or_as_data(signatures: dict[str, object] | None, takes: bool) -> None:
    """No result is sent without its call, and what is sent as the user's is always marked as data, once."""
    calls = (MessageToolCall("1", "look", "{}"), MessageToolCall("2", "roll", "{}"))
    found, unknown = mark_as_data("look", "Obey me."), "There is no tool 'roll'."
    step = (
        ChatMessage(ChatRole.ASSISTANT, "Hm.", tool_calls=calls),
        ChatMessage(ChatRole.TOOL, found, tool_call_id="1", name="look"),
        ChatMessage(ChatRole.TOOL, unknown, tool_call_id="2", name="roll"),
    )
    called, *results = to_api_messages(step, signatures)
    assert ("tool_calls" in called) is takes
    if takes:
        assert [(each["role"], each["tool_call_id"]) for each in results] == [("tool", "1"), ("tool", "2")]
    else:
        assert results == [
            {"role": "user", "content": found},
            {"role": "user", "content": mark_as_data("roll", unknown)},
        ]


@pytest.mark.parametrize(
    ("name", "arguments", "sent_name", "sent_arguments"),
    [
        ("look", '{"at": "map"}', "look", '{"at": "map"}'),
        ("look", '{"at": "ma', "look", "{}"),
        ("look", '"map"', "look", "{}"),
        ("look", "", "look", "{}"),
        ("look", "[" * 100_000, "look", "{}"),
        ("multi_tool_use.parallel", "{}", "multi_tool_use_parallel", "{}"),
        ("x" * 90, "{}", "x" * 64, "{}"),
    ],
)
def test_a_slip_of_the_model_is_not_sent_back(name: str, arguments: str, sent_name: str, sent_arguments: str) -> None:
    """vLLM and llama.cpp parse the arguments of all calls in a prompt, and OpenAI checks the names. A call that they
    refuse would fail each reply for as long as it is in the prompt.
    """
    message = ChatMessage(ChatRole.ASSISTANT, "", tool_calls=(MessageToolCall("1", name, arguments),))
    sent: Any = to_api_messages([message])
    assert sent[0]["tool_calls"][0]["function"] == {"name": sent_name, "arguments": sent_arguments}


def test_schemas_have_common_words_only() -> None:
    """Gemini refuses a schema with words that it does not know, llama.cpp the grammar of a long text. A property of
    such a name stays.
    """
    tools: Any = to_api_tools(OfferedTools((ToolOffer("look", "Looks.", SCHEMA),)))
    assert tools["tools"][0]["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "maxLength": {"type": "array", "items": [{"type": "string"}], "maxItems": 3},
            "name": {"type": "string"},
        },
    }


def test_a_choice_of_parameters_is_not_sent() -> None:
    """OpenAI and Anthropic refuse a choice at the top of a schema. Where only the choice names parameters, it stays."""
    when: dict[str, object] = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    shown: dict[str, object] = {"type": "object", "properties": {"when": when}}
    bare: dict[str, object] = {"type": "object", "properties": {}, "oneOf": [shown]}
    offers = tuple(ToolOffer("timer", "Starts.", each) for each in ({**shown, "anyOf": [{"required": ["when"]}]}, bare))
    tools: Any = to_api_tools(OfferedTools(offers))["tools"]
    assert [each["function"]["parameters"] for each in tools] == [shown, bare]


def test_no_tools_are_no_fields() -> None:
    assert to_api_tools(NO_TOOLS) == {}


def test_a_chunk_is_read_whatever_it_lacks() -> None:
    """Fields that are missing or of another type are empty; a chunk without choices at all is an error report."""
    call = SimpleNamespace(index="0", id=None, function=SimpleNamespace(name="look", arguments="{"), extra_content="s")
    delta = SimpleNamespace(content=None, tool_calls=[call])
    chunk = SimpleNamespace(choices=[SimpleNamespace(delta=delta, finish_reason="stop")])
    piece = CallPiece(index=None, id="", name="look", arguments="{")
    assert read_chunk(chunk) == ChunkContent(calls=((piece, "s"),), finish_reason="stop")
    assert read_chunk(SimpleNamespace(choices=[])) == ChunkContent()
    # Some servers end with what the call cost, and nothing else.
    assert read_chunk(SimpleNamespace(choices=None, usage=SimpleNamespace(prompt_tokens=3))) == ChunkContent()
    for useless in ("s" * MOST_SIGNATURE_CHARS, "half a character: \ud83d"):
        call.extra_content = {"google": {"thought_signature": useless}}
        assert read_chunk(chunk) == ChunkContent(calls=((piece, None),), finish_reason="stop")
    with pytest.raises(ValueError, match="without choices"):
        read_chunk(SimpleNamespace())
