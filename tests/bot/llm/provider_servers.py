"""Local servers that behave as providers' OpenAI-compatible endpoints, where they differ from OpenAI's.

Anthropic: https://platform.claude.com/docs/en/api/openai-sdk. Gemini: https://ai.google.dev/gemini-api/docs/openai and
https://ai.google.dev/gemini-api/docs/thought-signatures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from rehearsal.servers.loopback import LoopbackServer

KEY = "key-of-the-provider"
SIGNATURE = {"google": {"thought_signature": "c2lnbmVk"}}
SCHEMA_WORDS = ("additionalProperties", "const", "$schema")


class ProviderServer:
    """One endpoint on 127.0.0.1. `bodies`: every request that was accepted.

    *Ownership*: an async context manager that owns its socket.
    """

    path = "/v1"
    # Whose endpoint it behaves as; empty: a server of one's own.
    host = ""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self._loopback = LoopbackServer(
            [web.post(f"{self.path}/chat/completions", self._chat), web.get(f"{self.path}/models", self._models)]
        )

    @property
    def base_url(self) -> str:
        return self._loopback.base_url.removesuffix("/v1") + self.path

    async def __aenter__(self) -> Self:
        await self._loopback.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._loopback.__aexit__(exc_type, exc, tb)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        if (refusal := self.refusal(body)) is not None:
            return refusal
        self.bodies.append(body)
        if not body.get("stream"):
            return web.json_response(self.whole(body))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in self.chunks(body):
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _models(self, request: web.Request) -> web.Response:
        if request.headers["Authorization"] != f"Bearer {KEY}":
            return web.json_response({"error": {"message": "Incorrect API key provided"}}, status=401)
        served = self.models()
        return web.json_response({"data": None if served is None else [{"id": each} for each in served]})

    def models(self) -> Iterable[str] | None:
        raise NotImplementedError

    def refusal(self, body: dict[str, Any]) -> web.Response | None:
        raise NotImplementedError

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def chunks(self, body: dict[str, Any]) -> Iterable[dict[str, Any]]:
        raise NotImplementedError


def _chunk(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"} | {
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
        **more,
    }


def _keywords(value: Any) -> set[str]:
    """Return the words of JSON schema in a value, without the names of properties."""
    if isinstance(value, list):
        return {word for each in value for word in _keywords(each)}
    if not isinstance(value, dict):
        return set()
    inner = [list(each.values()) if name == "properties" else each for name, each in value.items()]
    return set(value) | _keywords(inner)


def _completion(text: str) -> dict[str, Any]:
    # Without `usage`: not every provider tells it.
    message = {"role": "assistant", "content": text}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


class AnthropicServer(ProviderServer):
    """Ignores `response_format`, refuses `temperature`, and sends tool calls with an index and ids of its own."""

    host = "api.anthropic.com"

    def models(self) -> Iterable[str]:
        return ["claude-haiku-4-5"]

    def refusal(self, body: dict[str, Any]) -> web.Response | None:
        if "temperature" in body:
            error = {"type": "invalid_request_error", "message": "`temperature` is deprecated for this model."}
            return web.json_response({"error": error}, status=400)
        return None

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        return _completion('Here it is:\n```json\n{"gist": "Bo brings the lantern."}\n```')

    def chunks(self, body: dict[str, Any]) -> Iterable[dict[str, Any]]:
        if body["messages"][-1]["role"] == "tool" or not body.get("tools"):
            yield _chunk({"role": "assistant", "content": "Bo brings"})
            yield _chunk({"content": " the lantern."})
            yield _chunk({}, "stop")
            return
        yield _chunk({"role": "assistant", "content": "Let me look. "})
        own = {"id": "toolu_01", "type": "function"}
        yield _chunk({"tool_calls": [{"index": 0, **own, "function": {"name": "memory_search", "arguments": ""}}]})
        for part in ('{"query": ', '"lantern"}'):
            yield _chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
        yield _chunk({}, "tool_calls")


class GeminiServer(ProviderServer):
    """Knows a part of JSON schema, sends whole calls without index, the second without id, and wants its signature
    back with the first. Its errors are in a list.
    """

    path = "/v1beta/openai"
    host = "generativelanguage.googleapis.com"

    def models(self) -> Iterable[str]:
        return ["models/gemini-2.5-flash", "models/gemini-3-flash-preview"]

    def refusal(self, body: dict[str, Any]) -> web.Response | None:
        problem = ""
        for word in SCHEMA_WORDS:
            if word in _keywords(body.get("tools", [])):
                problem = f"Invalid JSON payload received. Unknown name \"{word}\" at 'tools[0]': Cannot find field."
        asked = [call for message in body["messages"] for call in message.get("tool_calls", ())]
        if asked and asked[0].get("extra_content") != SIGNATURE:
            problem = "Function call is missing a thought_signature in functionCall parts."
        if len(asked) != sum(message["role"] == "tool" for message in body["messages"]):
            problem = "The number of function response parts is not equal to the number of function call parts."
        if not problem:
            return None
        return web.json_response(
            [{"error": {"code": 400, "message": problem, "status": "INVALID_ARGUMENT"}}], status=400
        )

    def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        return _completion('{"gist": "Bo brings the lantern."}')

    def chunks(self, body: dict[str, Any]) -> Iterable[dict[str, Any]]:
        usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        if body["messages"][-1]["role"] == "tool" or not body.get("tools"):
            yield _chunk({"role": "assistant", "content": "Bo brings the lantern."}, "stop", usage=usage)
            return
        calls = [
            {
                "id": "call_297140",
                "type": "function",
                "function": {"name": "memory_search", "arguments": '{"query":"lantern"}'},
                "extra_content": SIGNATURE,
            },
            {"id": "", "type": "function", "function": {"name": "recall_turns", "arguments": '{"from":1,"to":2}'}},
        ]
        yield _chunk({"role": "assistant", "tool_calls": calls[:1]}, usage=usage)
        yield _chunk({"role": "assistant", "tool_calls": calls[1:]}, "stop", usage=usage)
