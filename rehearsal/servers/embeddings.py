"""A local server with OpenAI's `/v1/embeddings` API that can also misbehave on request.

The server has no model: its owner passes a function that embeds texts.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from aiohttp import web

from rehearsal.servers.loopback import LoopbackServer, RequestRefusal, error_response, refusal_response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from types import TracebackType

MODEL = "local-embeddings"
# OpenAI's own limit on the number of texts in one request.
MAX_TEXTS = 2_048

# Returns one vector per text, in order. All vectors have the same length.
EmbeddingEngine: TypeAlias = "Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]"


class EmbeddingsMode(StrEnum):
    """How the server behaves when it does not refuse the request."""

    ANSWER = "answer"
    STALL = "stall"  # accepts the request and never answers
    GARBAGE = "garbage"  # 200 with a web page
    FEWER = "fewer"  # a valid answer without the last text


@dataclass(slots=True)
class EmbeddingsBehaviour:
    """How the server answers. The values may be changed while the server runs.

    `refuses`: refuse every request for this reason.
    """

    engine: EmbeddingEngine
    mode: EmbeddingsMode = EmbeddingsMode.ANSWER
    refuses: RequestRefusal | None = None


class LocalEmbeddingsServer:
    """The embeddings server on 127.0.0.1.

    *Ownership*: an async context manager. It owns its socket and the running answers, and ends both on exit.
    `calls` holds the body of every request since the start.
    """

    def __init__(self, behaviour: EmbeddingsBehaviour, *, port: int = 0) -> None:
        """`port`: 0 takes a free port."""
        self.behaviour = behaviour
        self.calls: list[Mapping[str, Any]] = []
        self._loopback = LoopbackServer("embeddings", port=port)

    @property
    def base_url(self) -> str:
        """Return the value for `recall.base_url`."""
        return self._loopback.base_url

    async def __aenter__(self) -> Self:
        await self._loopback.open([web.post("/v1/embeddings", self._embed)])
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._loopback.close()

    async def _embed(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.calls.append(body)
        if self.behaviour.refuses is not None:
            return refusal_response(self.behaviour.refuses)
        if self.behaviour.mode is EmbeddingsMode.STALL:
            await self._loopback.stall()
        if self.behaviour.mode is EmbeddingsMode.GARBAGE:
            return web.Response(text="<html><body>It works!</body></html>", content_type="text/html")
        texts = _texts(body.get("input"))
        if texts is None:
            return error_response(
                400, f"'input' must be a text, or a list of 1 to {MAX_TEXTS} texts that are not empty."
            )
        vectors = list(await self.behaviour.engine(texts))
        if self.behaviour.mode is EmbeddingsMode.FEWER:
            del vectors[-1]
        words = sum(len(text.split()) for text in texts)
        return web.json_response(
            {
                "object": "list",
                "model": body.get("model", MODEL),
                "data": [
                    {"object": "embedding", "index": at, "embedding": _encoded(vector, body.get("encoding_format"))}
                    for at, vector in enumerate(vectors)
                ],
                "usage": {"prompt_tokens": words, "total_tokens": words},
            }
        )


def _texts(given: object) -> list[str] | None:
    """Return the texts to embed, or None for input that OpenAI refuses."""
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not 1 <= len(texts) <= MAX_TEXTS:
        return None
    return texts if all(isinstance(text, str) and text for text in texts) else None


def _encoded(vector: Sequence[float], encoding: object) -> str | list[float]:
    """Return a vector in the requested encoding. OpenAI's client library requests base64 by default."""
    if encoding == "base64":
        return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode("ascii")
    return [float(value) for value in vector]
