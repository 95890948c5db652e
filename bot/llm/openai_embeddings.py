"""The adapter for every endpoint that speaks OpenAI's embeddings: OpenAI, Ollama, vLLM, llama.cpp, LM Studio.

It sets the deadlines, checks what comes back, and turns each of the library's errors into one plain sentence.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import httpx
import openai

from compaction.errors import EmbeddingError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

# A TCP connection that takes longer is a wrong address or a dead host.
CONNECT_TIMEOUT_S = 5.0
# Texts of one call; small servers take no more, and a turn is short.
MAX_TEXTS = 64
# Small models read 512 word pieces and some servers refuse more instead of cutting.
MAX_CHARS = 1_500
OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class EmbeddingsEndpoint:
    """Which endpoint and model. `base_url` empty is OpenAI itself; `timeout_s` is for one call."""

    base_url: str
    model: str
    api_key: str = ""
    timeout_s: float = 10.0


class OpenAIEmbeddings:
    """One endpoint and one model (`compaction.ports.Embedder`).

    *Ownership*: an async context manager; it owns the HTTP connections. *Cancellation* hangs up the running call.
    """

    def __init__(self, endpoint: EmbeddingsEndpoint) -> None:
        self._endpoint = endpoint
        self._where = endpoint.base_url or OPENAI_URL
        self._client = openai.AsyncOpenAI(
            # The library insists on some key; servers without keys ignore it.
            api_key=endpoint.api_key or "none",
            base_url=self._where,
            timeout=httpx.Timeout(endpoint.timeout_s, connect=CONNECT_TIMEOUT_S),
            # The indexer tries again by itself, and a reply does not wait for a second try.
            max_retries=0,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    @property
    def model(self) -> str:
        """Return the name that vectors are stored under; the same model elsewhere is the same."""
        return self._endpoint.model

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector a text, in order. Raises `EmbeddingError`. Urgent or not is the server's business."""
        del urgent
        vectors: list[Sequence[float]] = []
        for start in range(0, len(texts), MAX_TEXTS):
            vectors += await self._embed(texts[start : start + MAX_TEXTS])
        return vectors

    async def _embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        # A server may refuse an empty text, and no JSON holds a lone surrogate.
        sent = [text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8").strip() or "-" for text in texts]
        try:
            async with asyncio.timeout(self._endpoint.timeout_s):
                answer = await self._client.embeddings.create(
                    model=self._endpoint.model, input=sent, encoding_format="float"
                )
            in_order = sorted(answer.data, key=lambda each: each.index)
            vectors: list[Sequence[float]] = [_unit(each.embedding) for each in in_order]
        except EmbeddingError:
            raise
        except Exception as error:
            raise translated(error, model=self._endpoint.model, where=self._where) from error
        if len(vectors) != len(sent) or len({len(vector) for vector in vectors}) != 1:
            raise EmbeddingError(
                f"{self._where} sent {len(vectors)} embeddings for {len(sent)} texts. Choose another recall.model.",
                retryable=False,
            )
        return vectors


def translated(error: Exception, *, model: str, where: str) -> EmbeddingError:
    """Return `error` as a sentence with the remedy. Keys and texts never enter it."""
    match error:
        case openai.APITimeoutError() | TimeoutError() | httpx.TimeoutException():
            told, retryable = "did not answer in time. Check that it is running, or raise recall.timeout_s", True
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            told, retryable = "refused the key. Set recall.api_key to one that may use it", False
        case openai.NotFoundError():
            told, retryable = (
                "is not known there. Check recall.model and recall.base_url (it mostly ends in /v1)",
                False,
            )
        case openai.RateLimitError():
            told, retryable = "is over its rate limit or quota. It is tried again later", True
        case openai.InternalServerError():
            told, retryable = f"failed inside (status {error.status_code}). Look at its server's log", True
        case openai.APIStatusError():
            told, retryable = f"refused the request (status {error.status_code}). Check recall.model", False
        case openai.APIConnectionError() | httpx.HTTPError():
            told, retryable = "cannot be reached. Check recall.base_url and that the server is running", True
        case _:
            told, retryable = "sent something that is no embedding. Check recall.base_url", True
    return EmbeddingError(f"The embedding model {model} at {where} {told}.", retryable=retryable)


def _unit(values: Sequence[float]) -> list[float]:
    length = math.sqrt(math.fsum(value * value for value in values))
    if not values or not math.isfinite(length) or length == 0.0:
        raise EmbeddingError("The embeddings endpoint sent a vector without direction.", retryable=True)
    return [value / length for value in values]
