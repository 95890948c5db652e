"""OpenAI's chat completions API as JSON: what a call sends, and what one streamed chunk says. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from bot.llm.model_calls import plausible_tokens
from bot.llm.port import ChatMessage, ChatRole, OfferedTools, Usage
from bot.llm.streamed_answer import CallPiece, ChunkContent, is_json_object
from compaction.untrusted_text import mark_as_data, without_marks

if TYPE_CHECKING:
    from compaction.payload import MessageToolCall

# Words of JSON schema that are never sent, and checked when the arguments come. Gemini does not know most of them.
# llama.cpp makes a grammar of a schema, and refuses it (some versions end) if a text may have some 2,000 characters:
# https://github.com/ggml-org/llama.cpp/issues/27087.
_UNSENT_WORDS = frozenset(
    {"additionalProperties", "const", "$schema", "$defs", "pattern", "exclusiveMinimum", "maxLength", "minLength"}
)
# OpenAI and Anthropic refuse a schema with one of these at its top (https://github.com/BerriAI/litellm/pull/38839).
_NOT_AT_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
# Endpoints refuse other names of tools.
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
_MOST_NAME_CHARS = 64
# Gemini's signatures have some thousand.
MOST_SIGNATURE_CHARS = 64_000
# Half a character, as servers send that cut an emoji in two. No request can have one, so an answer with one in it could
# never be sent back.
_HALF = re.compile("[\ud800-\udfff]")


def to_api_messages(
    messages: Iterable[ChatMessage], signatures: Mapping[str, object] | None = None
) -> list[dict[str, object]]:
    """Return the messages of a call.

    `signatures`: what an endpoint that signs its tool calls sent with them, by their ids (Gemini 3 signs the first of a
    step). Steps that it has not signed, it refuses: what their calls found is sent as the user's, marked as data. None:
    the endpoint takes calls without.
    """
    sent: list[dict[str, object]] = []
    # The calls of the step whose results follow, if they are sent.
    taken: frozenset[str] = frozenset()
    for message in messages:
        if calls := message.tool_calls:
            takes = signatures is None or signatures.get(calls[0].id) is not None
            taken = frozenset(call.id for call in calls if takes)
            if not takes:
                sent += [{"role": ChatRole.ASSISTANT.value, "content": message.content}] * bool(message.content)
                continue
        if message.tool_call_id is not None and message.tool_call_id not in taken:
            # Sentences about a failure are our own and bear no marks yet.
            found = mark_as_data(message.name or "a tool", without_marks(message.content))
            sent.append({"role": ChatRole.USER.value, "content": found})
            continue
        sent.append(_to_api_message(message, signatures or {}))
    return sent


def _to_api_message(message: ChatMessage, signatures: Mapping[str, object]) -> dict[str, object]:
    """Return one message. A tool call with a name or arguments that endpoints refuse is sent with such as they take.
    Otherwise one slip of a model would fail all replies for as long as the call is in the prompt.
    """
    sent: dict[str, object] = {"role": message.role.value, "content": message.content}
    if message.tool_calls:
        sent["tool_calls"] = [
            {"id": call.id, "type": "function", "function": _function(call)}
            | ({} if (signature := signatures.get(call.id)) is None else {"extra_content": signature})
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


def _function(call: MessageToolCall) -> dict[str, str]:
    """Return the name and the arguments of a call; an empty object if the arguments are none. Its result says why."""
    name = _NOT_IN_NAMES.sub("_", call.name)[:_MOST_NAME_CHARS]
    return {"name": name, "arguments": call.arguments if is_json_object(call.arguments) else "{}"}


def to_api_tools(tools: OfferedTools) -> dict[str, object]:
    """Return the fields that offer tools, with schemas of common words only."""
    if not tools.offers:
        return {}
    functions = [
        {
            "type": "function",
            "function": {
                "name": offer.name,
                "description": offer.description,
                "parameters": _in_common_words(_without_choice_at_top(offer.parameters)),
            },
        }
        for offer in tools.offers
    ]
    return {"tools": functions, "tool_choice": "auto" if tools.callable_now else "none"}


def _without_choice_at_top(schema: Mapping[str, object]) -> Mapping[str, object]:
    """Return a schema without a choice among its parameters, unless the choice alone names them."""
    if not schema.get("properties"):
        return schema
    return {word: each for word, each in schema.items() if word not in _NOT_AT_TOP}


def _in_common_words(schema: object) -> object:
    if isinstance(schema, Mapping):
        return {
            # A property may have such a name; then its value is a schema, and no number.
            name: {key: _in_common_words(each) for key, each in value.items()}
            if name == "properties" and isinstance(value, Mapping)
            else _in_common_words(value)
            for name, value in schema.items()
            if name not in _UNSENT_WORDS
        }
    return [_in_common_words(each) for each in schema] if isinstance(schema, list | tuple) else schema


def read_chunk(chunk: object) -> ChunkContent:
    """Read one streamed chunk. Raises ValueError if it is an error report of the server."""
    choices = getattr(chunk, "choices", None)
    if choices is None and getattr(chunk, "usage", None) is None:
        raise ValueError("a streamed chunk without choices")
    if not choices:
        return ChunkContent()
    delta = choices[0].delta
    calls = getattr(delta, "tool_calls", None) or ()
    return ChunkContent(
        text=_text(getattr(delta, "content", None)),
        calls=tuple((_call_piece(call), _signature_of(call)) for call in calls),
        finish_reason=_text(getattr(choices[0], "finish_reason", None)),
    )


def read_usage(usage: object) -> Usage:
    """Read what an endpoint says that a call cost. What is no plausible number of tokens counts as not told."""
    return Usage(
        plausible_tokens(getattr(usage, "prompt_tokens", None)),
        plausible_tokens(getattr(usage, "completion_tokens", None)),
    )


def _signature_of(call: object) -> object:
    """Return what the endpoint sent beside a call, which is kept for as long as the call; None if it is too long or
    cannot be sent back.
    """
    signature = getattr(call, "extra_content", None)
    if signature is None:
        return None
    written = json.dumps(signature, ensure_ascii=False)
    return signature if len(written) <= MOST_SIGNATURE_CHARS and not _HALF.search(written) else None


def _call_piece(call: object) -> CallPiece:
    index, function = getattr(call, "index", None), getattr(call, "function", None)
    return CallPiece(
        index=index if isinstance(index, int) else None,
        id=_text(getattr(call, "id", None)),
        name=_text(getattr(function, "name", None)),
        arguments=_text(getattr(function, "arguments", None)),
    )


def _text(value: object) -> str:
    return whole_characters(value) if isinstance(value, str) else ""


def whole_characters(text: str) -> str:
    """Return a text with the replacement character for each half of one."""
    return text if text.isascii() else _HALF.sub("\N{REPLACEMENT CHARACTER}", text)
