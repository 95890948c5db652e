"""A local server with OpenAI's chat completions API that can also misbehave on request.

It replaces OpenAI, Ollama, vLLM or llama.cpp in tests, and in scenarios about a model that is slow, unavailable or
sends garbage. The server has no language model: its owner passes a function that answers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from aiohttp import web

from rehearsal.servers import chat_wire as wire
from rehearsal.servers.chat_wire import Payload
from rehearsal.servers.loopback import LoopbackServer, error_response, refusal_response

MODEL = "local-chat"


class ChatMode(StrEnum):
    """How the server behaves."""

    ANSWER = "answer"
    STALL = "stall"  # accepts the request and never answers
    STALL_AFTER_FIRST = "stall_after_first"  # one piece, then silence
    CUT = "cut"  # one piece, then the connection drops
    EMPTY = "empty"  # a valid answer without text
    GARBAGE = "garbage"  # 200 with something that is not JSON
    GARBAGE_STREAM = "garbage_stream"  # an event stream of something that is not JSON
    ERROR_IN_STREAM = "error_in_stream"  # a valid piece, then an error event, as vLLM sends it
    WRONG_KEY = "wrong_key"
    UNKNOWN_MODEL = "unknown_model"
    RATE_LIMITED = "rate_limited"
    BROKEN = "broken"  # 500
    FILTERED = "filtered"  # the prompt is refused for what it says, as by Azure
    TOO_LONG = "too_long"  # the prompt is refused for its length, in words of its own
    LENGTH = "length"  # cut off by its token limit


class ToolCallFormat(StrEnum):
    """How the server streams tool calls."""

    OPENAI = "openai"  # id and name once, then the arguments bit by bit
    REPEATING = "repeating"  # id and name in each piece, as llama-cpp-python does
    WHOLE = "whole"  # each call in one piece, all of them with index 0, as some gateways do
    NAMELESS = "nameless"  # arguments without a name, as from a broken parser
    BARE = "bare"  # no ids


@dataclass(frozen=True, slots=True)
class ChatCall:
    """One request to the server."""

    messages: tuple[Mapping[str, Any], ...]
    stream: bool
    body: Mapping[str, Any]

    @property
    def offered(self) -> tuple[str, ...]:
        if self.body.get("tool_choice") == "none":
            return ()
        return tuple(tool["function"]["name"] for tool in self.body.get("tools", ()))

    @property
    def tool_results(self) -> tuple[str, ...]:
        """Return the results of tools in the request, in order."""
        return tuple(str(each["content"]) for each in self.messages if each.get("role") == "tool")


@dataclass(frozen=True, slots=True)
class ScriptedToolCall:
    """One tool call of the model. `arguments`: an object, or any text."""

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict)

    @property
    def written(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class ToolCallAnswer:
    """An answer with tool calls, which may have text before them."""

    wanted: tuple[ScriptedToolCall, ...]
    words: str = ""


ChatAnswer: TypeAlias = "str | ToolCallAnswer"


@dataclass(slots=True)
class ChatBehaviour:
    """How the server answers. The values may be changed while the server runs.

    - `answer` makes the text from the request.
    - `first_token_delay_s`: the wait before the first token.
    - `formats`: the accepted `response_format` shapes (`json_object_schema`, `json_schema`, `json_object`). Other
      shapes get status 400.
    - `efforts`: the model thinks for all of its tokens unless the request has one of these efforts. Others get status
      400. None: it does not think, and ignores the field.
    - `prompt_tokens`: the reported size of each prompt.
    - `takes_stream_options`: whether a stream may ask for its token usage.
    - `takes_tools`: whether requests may offer tools. Ollama refuses them for models that cannot use tools.
    - `call_style`: how tool calls are streamed.
    """

    answer: Callable[[ChatCall], ChatAnswer]
    mode: ChatMode = ChatMode.ANSWER
    first_token_delay_s: float = 0.0
    formats: frozenset[str] = field(
        default_factory=lambda: frozenset({"json_object_schema", "json_schema", "json_object"})
    )
    efforts: tuple[str, ...] | None = None
    prompt_tokens: int = 11
    takes_stream_options: bool = True
    takes_tools: bool = True
    call_style: ToolCallFormat = ToolCallFormat.OPENAI


def _say_hello(call: ChatCall) -> str:
    return "Hello from the local model."


class LocalChatServer(LoopbackServer):
    """The chat completions server. When a client disconnects, its answer ends. `calls`: every request to it."""

    def __init__(self, behaviour: ChatBehaviour | None = None) -> None:
        routes = [web.post("/v1/chat/completions", self._complete), web.get("/v1/models", self._models)]
        super().__init__(routes, cancels_abandoned=True)
        self.behaviour = behaviour or ChatBehaviour(answer=_say_hello)
        self.calls: list[ChatCall] = []

    async def _models(self, request: web.Request) -> web.Response:
        if (refusal := refusal_of(self.behaviour, ChatCall((), False, {}))) is not None:
            return refusal
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model"}]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        call = ChatCall(tuple(body.get("messages", ())), bool(body.get("stream")), body)
        self.calls.append(call)
        refusal = refusal_of(self.behaviour, call)
        if refusal is not None:
            return refusal
        if self.behaviour.mode is ChatMode.STALL:
            await self.stall()
        if self.behaviour.first_token_delay_s:
            await asyncio.sleep(self.behaviour.first_token_delay_s)
        if self.behaviour.mode is ChatMode.GARBAGE:
            return web.Response(text="<html><body>It works!</body></html>", content_type="text/html")
        try:
            return await self._stream(request, call) if call.stream else self._complete_answer(call)
        except ConnectionResetError:
            # The client has disconnected, for example because it does not need the answer any more.
            return web.Response(status=499)

    def _complete_answer(self, call: ChatCall) -> web.Response:
        words, _ = self._scripted_answer(call)
        payload = wire.complete(MODEL, words, wire.usage_of(words, prompt_tokens=self.behaviour.prompt_tokens))
        return web.json_response(wire.mark_cut_off(payload) if self._cuts_off(call) else payload)

    async def _stream(self, request: web.Request, call: ChatCall) -> web.StreamResponse:
        words, wanted = self._scripted_answer(call)
        chunks = _scripted(words, wanted, self.behaviour, reports_usage="stream_options" in call.body)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if self.behaviour.mode is ChatMode.GARBAGE_STREAM:
            await response.write(b"data: {not json at all\n\n")
        else:
            await self._send(request, response, chunks, cut=self._cuts_off(call))
        return response

    def _thinks(self, call: ChatCall) -> bool:
        """Return whether the model thinks for all of its tokens."""
        return self.behaviour.efforts is not None and "reasoning_effort" not in call.body

    def _cuts_off(self, call: ChatCall) -> bool:
        return self.behaviour.mode is ChatMode.LENGTH or self._thinks(call)

    async def _send(
        self, request: web.Request, response: web.StreamResponse, chunks: Iterable[Payload], *, cut: bool
    ) -> None:
        """Send an answer to its end. `cut`: that is its token limit. Some modes break it off after its first piece."""
        begun = False
        for payload in chunks:
            await response.write(wire.event(wire.mark_cut_off(payload) if cut else payload))
            if begun or not wire.has_content(payload):
                continue
            begun = True
            match self.behaviour.mode:
                case ChatMode.STALL_AFTER_FIRST:
                    await self.stall()
                case ChatMode.CUT:
                    assert request.transport is not None
                    request.transport.abort()
                    return
                case ChatMode.ERROR_IN_STREAM:
                    await response.write(wire.event({"error": {"message": "the engine died", "code": 500}}))
                    return
        await response.write(wire.END)

    def _scripted_answer(self, call: ChatCall) -> tuple[str, tuple[ScriptedToolCall, ...]]:
        """Return the text and the tool calls of an answer that this server makes itself."""
        if self.behaviour.mode is ChatMode.EMPTY or self._thinks(call):
            return "", ()
        made = self.behaviour.answer(call)
        return (made, ()) if isinstance(made, str) else (made.words, made.wanted)


def refusal_of(behaviour: ChatBehaviour, call: ChatCall) -> web.Response | None:
    """Return the error response if this behaviour refuses the request, or None."""
    if (refusal := refusal_response(behaviour.mode)) is not None:
        return refusal
    if behaviour.mode is ChatMode.FILTERED:
        return error_response(400, "The response was filtered.", code="content_filter")
    if behaviour.mode is ChatMode.TOO_LONG:
        return error_response(400, "The request exceeds the available context size.")
    effort = call.body.get("reasoning_effort")
    if behaviour.efforts is not None and effort is not None and effort not in behaviour.efforts:
        taken = ", ".join(map(repr, behaviour.efforts))
        problem = f"'reasoning_effort' does not support '{effort}' with this model. Supported values are: {taken}."
        return error_response(400, f"Unsupported value: {problem}")
    if "stream_options" in call.body and not behaviour.takes_stream_options:
        return error_response(400, "Unknown parameter: 'stream_options'.")
    if "tools" in call.body and not behaviour.takes_tools:
        return error_response(400, f"{call.body.get('model')} does not support tools")
    wanted = call.body.get("response_format")
    if isinstance(wanted, dict) and _format_name(wanted) not in behaviour.formats:
        return error_response(400, "Invalid value: 'response_format'.")
    return None


def _format_name(wanted: Mapping[str, Any]) -> str:
    return "json_object_schema" if "schema" in wanted else str(wanted.get("type"))


def _scripted(
    words: str, wanted: Sequence[ScriptedToolCall], behaviour: ChatBehaviour, *, reports_usage: bool
) -> Iterator[Payload]:
    """Yield the chunks of an answer that this server made itself."""
    for piece in wire.pieces(words) if words or not wanted else []:
        yield wire.chunk(MODEL, piece)
    for delta in _call_deltas(wanted, behaviour.call_style):
        yield wire.chunk(MODEL, "", calls=[delta])
    yield wire.chunk(MODEL, "", finish_reason="tool_calls" if wanted else "stop")
    if reports_usage:
        yield wire.usage_chunk(MODEL, wire.usage_of(words, prompt_tokens=behaviour.prompt_tokens))


def _call_deltas(wanted: Sequence[ScriptedToolCall], style: ToolCallFormat) -> Iterator[dict[str, object]]:
    """Yield the pieces in which tool calls are streamed."""
    for index, call in enumerate(wanted):
        own = {"id": f"call_{index}_{call.name}", "type": "function"}
        half = len(call.written) // 2
        halves = (call.written[:half], call.written[half:])
        match style:
            case ToolCallFormat.OPENAI:
                yield {"index": index, **own, "function": {"name": call.name, "arguments": ""}}
                yield from ({"index": index, "function": {"arguments": part}} for part in halves)
            case ToolCallFormat.REPEATING:
                for part in halves:
                    yield {"index": index, **own, "function": {"name": call.name, "arguments": part}}
            case ToolCallFormat.WHOLE:
                yield {"index": 0, **own, "function": {"name": call.name, "arguments": call.written}}
            case ToolCallFormat.NAMELESS:
                yield {"index": index, **own, "function": {"arguments": call.written}}
            case ToolCallFormat.BARE:
                yield {"index": index, "function": {"name": call.name, "arguments": call.written}}
