"""A small local server that speaks OpenAI's chat completions, well or badly as asked.

It stands for OpenAI, Ollama, vLLM or llama.cpp where none is: in tests, and in scenarios about a model that is
slow, down or talks garbage. It has no language model inside; whoever starts it says what is answered.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from aiohttp import web

from rehearsal.servers.loopback import Loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

MODEL = "local-chat"
# Words a minute of a fast local model do not matter here: pieces leave as fast as the client reads them.
PIECE_WORDS = 2


class ChatMode(StrEnum):
    """How the server behaves, until told otherwise."""

    ANSWER = "answer"
    STALL = "stall"  # accepts the request and never answers
    STALL_AFTER_FIRST = "stall_after_first"  # one piece, then silence
    CUT = "cut"  # one piece, then the connection drops
    EMPTY = "empty"  # a proper answer without words
    GARBAGE = "garbage"  # 200 with something that is not JSON
    GARBAGE_STREAM = "garbage_stream"  # an event stream of something that is not JSON
    ERROR_IN_STREAM = "error_in_stream"  # a proper piece, then an error event, as vLLM sends it
    WRONG_KEY = "wrong_key"
    UNKNOWN_MODEL = "unknown_model"
    RATE_LIMITED = "rate_limited"
    BROKEN = "broken"  # 500
    LENGTH = "length"  # cut off by its own cap


class CallStyle(StrEnum):
    """How the server cuts calls of tools into pieces."""

    OPENAI = "openai"  # id and name once, then the arguments bit by bit
    REPEATING = "repeating"  # id and name in each piece, as llama-cpp-python does
    WHOLE = "whole"  # each call in one piece, all of them with index 0, as some gateways do
    NAMELESS = "nameless"  # arguments without a name: a parser that lost its way
    BARE = "bare"  # no ids


@dataclass(frozen=True, slots=True)
class ChatCall:
    """One request as it arrived."""

    messages: tuple[Mapping[str, Any], ...]
    stream: bool
    body: Mapping[str, Any]

    @property
    def offered(self) -> tuple[str, ...]:
        """Return the names of the tools that may be called."""
        if self.body.get("tool_choice") == "none":
            return ()
        return tuple(tool["function"]["name"] for tool in self.body.get("tools", ()))

    @property
    def tool_results(self) -> tuple[str, ...]:
        """Return what tools answered, in order."""
        return tuple(str(each["content"]) for each in self.messages if each.get("role") == "tool")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One tool that the model wants called. `arguments`: what it writes, an object or any text."""

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict)

    @property
    def written(self) -> str:
        """Return the arguments as they are sent."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class Asking:
    """An answer that wants tools called, after some words or none."""

    wanted: tuple[Wanted, ...]
    words: str = ""


Answer: TypeAlias = "str | Asking"


@dataclass(slots=True)
class ChatConduct:
    """How the server answers; may be changed while it runs.

    `answer`: makes the words out of the request. `first_token_delay_s`: how long it thinks. `formats`: the
    `response_format` shapes it takes (`json_object_schema`, `json_schema`, `json_object`); another one is
    refused with 400. `cap_name`: what it wants the token cap called; the other name is refused. `prompt_tokens`: what
    it says each prompt cost. `takes_stream_options`: it tells what a stream cost when asked; else it refuses that.
    `takes_tools`: else it refuses a request that offers any, as Ollama does for models without. `minds_tools`: it
    finds something wrong with those offered. `call_style`: how it streams calls of tools.
    """

    answer: Callable[[ChatCall], Answer]
    mode: ChatMode = ChatMode.ANSWER
    first_token_delay_s: float = 0.0
    formats: frozenset[str] = field(
        default_factory=lambda: frozenset({"json_object_schema", "json_schema", "json_object"})
    )
    cap_name: str = "max_tokens"
    prompt_tokens: int = 11
    takes_stream_options: bool = True
    takes_tools: bool = True
    minds_tools: bool = False
    call_style: CallStyle = CallStyle.OPENAI


def _say_hello(call: ChatCall) -> str:
    return "Hello from the local model."


class LocalChatServer:
    """The server on 127.0.0.1.

    *Ownership*: an async context manager; it owns its socket and the running answers, and ends both on exit.
    `calls` holds every request since the start.
    """

    def __init__(self, conduct: ChatConduct | None = None, *, port: int = 0) -> None:
        self.conduct = conduct or ChatConduct(answer=_say_hello)
        self.calls: list[ChatCall] = []
        self._loopback = Loopback("chat", port=port)

    @property
    def base_url(self) -> str:
        """Return what `llm.base_url` must be to reach it."""
        return self._loopback.base_url

    async def __aenter__(self) -> Self:
        await self._loopback.open(
            [web.post("/v1/chat/completions", self._complete), web.get("/v1/models", self._models)]
        )
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._loopback.close()

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        call = ChatCall(tuple(body.get("messages", ())), bool(body.get("stream")), body)
        self.calls.append(call)
        refusal = _refusal(self.conduct, call)
        if refusal is not None:
            return refusal
        if self.conduct.mode is ChatMode.STALL:
            await self._loopback.stall()
        if self.conduct.first_token_delay_s:
            await asyncio.sleep(self.conduct.first_token_delay_s)
        if self.conduct.mode is ChatMode.GARBAGE:
            return web.Response(text="<html><body>It works!</body></html>", content_type="text/html")
        answer = "" if self.conduct.mode is ChatMode.EMPTY else self.conduct.answer(call)
        if call.stream:
            try:
                return await self._stream(request, answer, tells_usage="stream_options" in body)
            except ConnectionResetError:
                # The client has hung up, as it does when nobody wants the answer any more.
                return web.Response(status=499)
        return web.json_response(_whole(answer if isinstance(answer, str) else answer.words, self.conduct))

    async def _stream(self, request: web.Request, answer: Answer, *, tells_usage: bool) -> web.StreamResponse:
        words, wanted = (answer, ()) if isinstance(answer, str) else (answer.words, answer.wanted)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        pieces = _pieces(words) if words or not wanted else []
        if self.conduct.mode is ChatMode.GARBAGE_STREAM:
            await response.write(b"data: {not json at all\n\n")
            return response
        for number, piece in enumerate(pieces):
            await response.write(_event(_chunk(piece)))
            if number > 0:
                continue
            match self.conduct.mode:
                case ChatMode.STALL_AFTER_FIRST:
                    await self._loopback.stall()
                case ChatMode.CUT:
                    assert request.transport is not None
                    request.transport.abort()
                    return response
                case ChatMode.ERROR_IN_STREAM:
                    await response.write(_event({"error": {"message": "the engine died", "code": 500}}))
                    return response
                case _:
                    pass
        for delta in _call_deltas(wanted, self.conduct.call_style):
            await response.write(_event(_chunk("", calls=[delta])))
        reason = "length" if self.conduct.mode is ChatMode.LENGTH else "tool_calls" if wanted else "stop"
        await response.write(_event(_chunk("", finish_reason=reason)))
        if tells_usage:
            await response.write(_event(_chunk("") | {"choices": [], "usage": _usage(words, self.conduct)}))
        await response.write(b"data: [DONE]\n\n")
        return response


def _refusal(conduct: ChatConduct, call: ChatCall) -> web.Response | None:
    """Return the error this conduct answers with before any word, or None."""
    match conduct.mode:
        case ChatMode.WRONG_KEY:
            return _error(401, "Incorrect API key provided.")
        case ChatMode.UNKNOWN_MODEL:
            return _error(404, f"The model {call.body.get('model')} does not exist.")
        case ChatMode.RATE_LIMITED:
            return _error(429, "Rate limit reached.")
        case ChatMode.BROKEN:
            return _error(500, "The engine died.")
        case _:
            pass
    for name in ("max_tokens", "max_completion_tokens"):
        if name in call.body and name != conduct.cap_name:
            return _error(400, f"Unsupported parameter: '{name}'. Use '{conduct.cap_name}' instead.")
    if "stream_options" in call.body and not conduct.takes_stream_options:
        return _error(400, "Unknown parameter: 'stream_options'.")
    if "tools" in call.body and conduct.minds_tools:
        return _error(400, "Invalid schema for tools[0].function.")
    if "tools" in call.body and not conduct.takes_tools:
        return _error(400, f"{call.body.get('model')} does not support tools")
    wanted = call.body.get("response_format")
    if isinstance(wanted, dict) and _format_name(wanted) not in conduct.formats:
        return _error(400, "Invalid value: 'response_format'.")
    return None


def _format_name(wanted: Mapping[str, Any]) -> str:
    return "json_object_schema" if "schema" in wanted else str(wanted.get("type"))


def _error(status: int, message: str) -> web.Response:
    return web.json_response(
        {"error": {"message": message, "type": "error", "param": None, "code": None}}, status=status
    )


def _pieces(words: str) -> list[str]:
    """Cut the answer as a model streams it; joined again it is unchanged."""
    parts = words.split(" ")
    groups = [" ".join(parts[at : at + PIECE_WORDS]) for at in range(0, len(parts), PIECE_WORDS)]
    return [group if number == 0 else " " + group for number, group in enumerate(groups)]


def _event(payload: object) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def _call_deltas(wanted: Sequence[Wanted], style: CallStyle) -> Iterator[dict[str, object]]:
    """Yield the pieces in which calls of tools are streamed."""
    for index, call in enumerate(wanted):
        own = {"id": f"call_{index}_{call.name}", "type": "function"}
        half = len(call.written) // 2
        halves = (call.written[:half], call.written[half:])
        match style:
            case CallStyle.OPENAI:
                yield {"index": index, **own, "function": {"name": call.name, "arguments": ""}}
                yield from ({"index": index, "function": {"arguments": part}} for part in halves)
            case CallStyle.REPEATING:
                for part in halves:
                    yield {"index": index, **own, "function": {"name": call.name, "arguments": part}}
            case CallStyle.WHOLE:
                yield {"index": 0, **own, "function": {"name": call.name, "arguments": call.written}}
            case CallStyle.NAMELESS:
                yield {"index": index, **own, "function": {"arguments": call.written}}
            case CallStyle.BARE:
                yield {"index": index, "function": {"name": call.name, "arguments": call.written}}


def _chunk(
    piece: str, *, finish_reason: str | None = None, calls: Sequence[Mapping[str, object]] = ()
) -> dict[str, object]:
    delta: dict[str, object] = {"content": None, "tool_calls": list(calls)} if calls else {"content": piece}
    return {
        "id": "chatcmpl-local",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


def _usage(words: str, conduct: ChatConduct) -> dict[str, int]:
    answered = len(words.split())
    asked = conduct.prompt_tokens
    return {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}


def _whole(words: str, conduct: ChatConduct) -> dict[str, object]:
    return {
        "id": "chatcmpl-local",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": words},
                "finish_reason": "length" if conduct.mode is ChatMode.LENGTH else "stop",
            }
        ],
        "usage": _usage(words, conduct),
    }
