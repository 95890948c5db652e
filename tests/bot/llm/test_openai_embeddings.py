"""The embeddings adapter through the real client against a local server: requests, answers and failures."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from bot.llm.openai_embeddings import LEAST_BYTES, MAX_CHARS, MAX_NUMBERS, MAX_TEXTS, OpenAIEmbeddings
from compaction.errors import EmbeddingError
from rehearsal.servers.loopback import LoopbackServer
from tests.patience import PATIENCE_S
from voice.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

KEY = "sk-secret"


class Server:
    """A server that returns embeddings as the test wants, and records the requests."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.answer: Handler = self.vectors

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Record the request and answer it."""
        self.bodies.append(await request.json())
        self.keys.append(request.headers["Authorization"])
        return await self.answer(request)

    async def vectors(self, request: web.Request) -> web.StreamResponse:
        """Answer with one vector for each text, in reverse order, which the API allows."""
        texts = self.bodies[-1]["input"]
        data = [
            {"object": "embedding", "index": at, "embedding": [3.0 + len(text), 4.0]} for at, text in enumerate(texts)
        ]
        return web.json_response({"object": "list", "model": "m", "data": data[::-1], "usage": None})


def status(code: int) -> Handler:
    """Return a handler that answers with this error status."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({"error": {"message": f"no {KEY}"}}, status=code)

    return answer


def body(content: object) -> Handler:
    """Return a handler that answers with this content."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(
            text=content if isinstance(content, str) else json.dumps(content), content_type="application/json"
        )

    return answer


@asynccontextmanager
async def endpoint(*, timeout_s: float = PATIENCE_S) -> AsyncIterator[tuple[OpenAIEmbeddings, Server]]:
    """Start a server and an adapter that uses it."""
    server = Server()
    async with (
        LoopbackServer([web.post("/v1/embeddings", server.handle)], cancels_abandoned=True) as loopback,
        OpenAIEmbeddings(Endpoint(loopback.base_url, "local-embed", KEY, timeout_s)) as embedder,
    ):
        yield embedder, server


async def test_texts_become_unit_vectors_in_order() -> None:
    """The vectors have length one and the order of the texts. The request contains the model and the key."""
    async with endpoint() as (embedder, server):
        first, second = await embedder.embed(["", "abcdefgh"])
        assert first == pytest.approx([0.7071, 0.7071], abs=1e-3)
        assert second == pytest.approx([11 / (121 + 16) ** 0.5, 4 / (121 + 16) ** 0.5])
        assert server.bodies[0]["model"] == "local-embed"
        assert server.keys == [f"Bearer {KEY}"]
        assert embedder.model == "local-embed"
        assert await embedder.embed([]) == []


async def test_long_and_odd_texts_are_sent_as_servers_take_them() -> None:
    """Long texts are cut, empty texts and lone surrogates replaced, and a request has at most `MAX_TEXTS` texts."""
    async with endpoint() as (embedder, server):
        await embedder.embed(["x" * 9_000, "  ", "half \ud83d", *["y"] * MAX_TEXTS])
        sent = server.bodies[0]["input"]
        assert len(sent) == MAX_TEXTS
        assert (len(sent[0]), sent[1], sent[2]) == (MAX_CHARS, "-", "half ?")
        assert len(server.bodies) == 2


def takes(chars: int, code: int, refusal: str) -> Callable[[Server], Handler]:
    """Return what makes a handler that refuses longer texts."""

    def of(server: Server) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            if max(map(len, server.bodies[-1]["input"])) > chars:
                return web.json_response({"error": {"code": code, "message": refusal}}, status=code)
            return await server.vectors(request)

        return answer

    return of


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        (500, "input (612 tokens) is too large to process. increase the physical batch size (current batch size: 512)"),
        (413, "Input validation error: `inputs` must have less than 512 tokens. Given: 612"),
        (400, "This model's maximum context length is 512 tokens. However, you requested 612 tokens."),
    ],
    ids=["llama.cpp", "text-embeddings-inference", "vllm"],
)
async def test_a_text_that_is_too_long_for_the_model_is_cut_further(code: int, refusal: str) -> None:
    """A German or a Chinese one has more tokens than an English one. Refused, it would be sent again for ever, and
    nothing after it. What the model takes is learnt once.
    """
    async with endpoint() as (embedder, server):
        server.answer = takes(400, code, refusal)(server)
        for _ in range(2):
            assert len(await embedder.embed(["ü" * 9_000, "short"])) == 2
        assert [len(each["input"][0]) for each in server.bodies] == [MAX_CHARS, MAX_CHARS // 2, 375, 375]
        server.answer = takes(0, code, refusal)(server)
        with pytest.raises(EmbeddingError):
            await embedder.embed(["ü" * 9_000])
        assert LEAST_BYTES <= len(server.bodies[-1]["input"][0].encode()) < 2 * LEAST_BYTES


FAILURES = [
    (status(401), False, "recall.api_key"),
    (status(413), False, "status 413"),
    (body("<html>"), True, "recall.base_url"),
    (body({"data": None}), True, "recall.base_url"),
    (body({"data": [{"index": 0, "embedding": "oops"}]}), True, "recall.base_url"),
    (body({"data": [{"index": 0, "embedding": [0.0, 0.0]}]}), True, "of length zero"),
    (body({"data": [{"index": 0, "embedding": []}]}), True, "of length zero"),
    (body({"data": [{"index": 0, "embedding": [1.0] * (MAX_NUMBERS + 1)}]}), False, "more than any model makes"),
    (body({"data": []}), False, "sent 0 embeddings for 1 texts"),
]


@pytest.mark.parametrize(("answer", "retryable", "remedy"), FAILURES)
async def test_every_failure_is_a_sentence(answer: Handler, retryable: bool, remedy: str) -> None:
    """Each failure becomes a sentence with a remedy but without the key and the text, and says whether
    retrying helps.
    """
    async with endpoint() as (embedder, server):
        server.answer = answer
        with pytest.raises(EmbeddingError) as failed:
            await embedder.embed(["some words"])
    assert remedy in str(failed.value)
    assert failed.value.retryable is retryable
    assert KEY not in str(failed.value)
    assert "some words" not in str(failed.value)


async def test_a_silent_server_is_given_up() -> None:
    """A server that does not answer within the timeout gives a retryable error."""
    async with endpoint(timeout_s=0.05) as (embedder, server):
        server.answer = lambda _: asyncio.get_running_loop().create_future()
        with pytest.raises(EmbeddingError, match="in time") as failed:
            await embedder.embed(["some words"])
        assert failed.value.retryable
