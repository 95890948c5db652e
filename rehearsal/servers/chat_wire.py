"""OpenAI's chat completions as JSON: chunks, stream events, and whole answers. The functions are pure."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

# The JSON of one `chat.completion.chunk` or of a whole answer.
Payload: TypeAlias = "dict[str, Any]"

# Pieces are sent as fast as the client reads them.
PIECE_WORDS = 2
END = b"data: [DONE]\n\n"


def pieces(words: str) -> list[str]:
    """Split an answer into pieces. Joined again, the pieces give the answer."""
    parts = words.split(" ")
    groups = [" ".join(parts[at : at + PIECE_WORDS]) for at in range(0, len(parts), PIECE_WORDS)]
    return [group if number == 0 else " " + group for number, group in enumerate(groups)]


def event(payload: object) -> bytes:
    """Return one event of a stream."""
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def chunk(
    model: str, piece: str, *, finish_reason: str | None = None, calls: Sequence[Mapping[str, object]] = ()
) -> Payload:
    """Return one chunk of a streamed answer."""
    delta: dict[str, object] = {"content": None, "tool_calls": list(calls)} if calls else {"content": piece}
    return {
        "id": "chatcmpl-local",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


def usage_chunk(model: str, usage: Mapping[str, int]) -> Payload:
    """Return the last chunk of a stream, which has the token counts."""
    return chunk(model, "") | {"choices": [], "usage": dict(usage)}


def usage_of(words: str, *, prompt_tokens: int) -> dict[str, int]:
    """Return the token counts of an answer. Each word counts as one token."""
    answered = len(words.split())
    return {"prompt_tokens": prompt_tokens, "completion_tokens": answered, "total_tokens": prompt_tokens + answered}


def complete(model: str, words: str, usage: Mapping[str, int]) -> Payload:
    """Return an answer that is not streamed."""
    return {
        "id": "chatcmpl-local",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": words}, "finish_reason": "stop"}],
        "usage": dict(usage),
    }


def has_content(payload: Payload) -> bool:
    """Return whether a chunk has text or part of a tool call.

    Many servers first send a chunk that has only the role.
    """
    deltas = [choice.get("delta") or {} for choice in payload.get("choices") or ()]
    return any(delta.get("content") is not None or delta.get("tool_calls") for delta in deltas)


def mark_cut_off(payload: Payload) -> Payload:
    """Return the payload with its finish reason, if it has one, replaced by `length`."""
    choices = [
        {**choice, "finish_reason": "length"} if choice.get("finish_reason") else choice
        for choice in payload.get("choices") or ()
    ]
    return {**payload, "choices": choices}
