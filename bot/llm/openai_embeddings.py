"""The adapter for every endpoint that speaks OpenAI's embeddings: OpenAI, Ollama, vLLM, llama.cpp, LM Studio.

It sets the deadlines, checks what comes back, and turns each of the library's errors into one plain sentence.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Self

from compaction.errors import EmbeddingError
from voice.endpoint import Remedies, describe_failure, is_retryable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from voice.endpoint import Endpoint

# Texts of one call; small servers take no more, and a turn is short.
MAX_TEXTS = 64
# Small models read 512 word pieces and some servers refuse more instead of cutting.
MAX_CHARS = 1_500


_REMEDIES = Remedies(section="recall", answer="embedding", refused="recall.model", timeout="recall.timeout_s")


class OpenAIEmbeddings:
    """One endpoint and one model (`compaction.ports.Embedder`).

    *Ownership*: an async context manager; it owns the HTTP connections. *Cancellation* hangs up the running call.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        # The indexer tries again by itself, and a reply does not wait for a second try.
        self._client = endpoint.open()

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
            raise translate_error(error, self._endpoint) from error
        if len(vectors) != len(sent) or len({len(vector) for vector in vectors}) != 1:
            raise EmbeddingError(
                f"{self._endpoint.where} sent {len(vectors)} embeddings for {len(sent)} texts. "
                "Choose another recall.model.",
                retryable=False,
            )
        return vectors


def translate_error(error: Exception, endpoint: Endpoint) -> EmbeddingError:
    """Return `error` as a sentence with the remedy. Keys and texts never enter it."""
    sentence = f"The embedding model {endpoint.model} at {endpoint.where} {describe_failure(error, _REMEDIES)}."
    return EmbeddingError(sentence, retryable=is_retryable(error))


def _unit(values: Sequence[float]) -> list[float]:
    length = math.sqrt(math.fsum(value * value for value in values))
    if not values or not math.isfinite(length) or length == 0.0:
        raise EmbeddingError("The embeddings endpoint sent a vector without direction.", retryable=True)
    return [value / length for value in values]
