"""Adapter for endpoints with OpenAI's embeddings API: OpenAI, Ollama, vLLM, llama.cpp, LM Studio."""

from __future__ import annotations

import asyncio
import math
import re
from typing import TYPE_CHECKING, Any, Self

import openai
import structlog

from compaction.errors import EmbeddingError
from voice.endpoint import Endpoint, Remedies, describe_failure, is_retryable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType


# Texts in one call. Small servers accept no more.
MAX_TEXTS = 64
# Seconds that one call may take.
TIMEOUT_S = 10.0
# Small models read 512 tokens, and some servers refuse longer texts instead of cutting them. English has four
# characters a token, German three and Chinese one or fewer.
MAX_CHARS = 1_500
# What is refused is cut in half, to no fewer bytes than these. In UTF-8 the languages have about as many bytes a token;
# in characters, a Chinese text would cut English ones to a quarter.
LEAST_BYTES = 150
# Of a character.
_MOST_BYTES = 4
# How llama.cpp, text-embeddings-inference, vLLM and OpenAI refuse a text that is too long: all of them name its tokens.
_TOO_LONG = frozenset({400, 413, 422, 500})
_NAMES_TOKENS = re.compile(r"\btokens?\b", re.IGNORECASE)
# Numbers in one vector, which is stored for each passage. The largest known models make 8,192.
MAX_NUMBERS = 16_384


_REMEDIES = Remedies(section="recall", refused="recall.model")

log = structlog.get_logger()


class OpenAIEmbeddings:
    """One endpoint and one model (`compaction.ports.Embedder`).

    *Ownership*: an async context manager; it owns the HTTP connections. *Cancellation* ends the call in progress.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        # The name under which vectors are stored.
        self.model = endpoint.model
        # What the model may take of a text, as far as is known.
        self._most_bytes = _MOST_BYTES * MAX_CHARS
        # Its first use imports little (5 ms), so nothing is loaded before.
        # No retries: the indexer has its own, and a reply must not wait for them.
        self._client = endpoint.open()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector per text, in order. Raises `EmbeddingError`. `urgent` has no effect."""
        vectors: list[Sequence[float]] = []
        for start in range(0, len(texts), MAX_TEXTS):
            vectors += await self._embed(texts[start : start + MAX_TEXTS])
        return vectors

    async def _embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        try:
            async with asyncio.timeout(self._endpoint.timeout_s):
                answer = await self._ask(texts)
            in_order = sorted(answer.data, key=lambda each: each.index)
            vectors: list[Sequence[float]] = [_unit(each.embedding) for each in in_order]
        except EmbeddingError:
            raise
        except Exception as error:
            raise translate_error(error, self._endpoint) from error
        if len(vectors) != len(texts) or len({len(vector) for vector in vectors}) != 1:
            raise EmbeddingError(
                f"{self._endpoint.where} sent {len(vectors)} embeddings for {len(texts)} texts. "
                "Choose another recall.model.",
                retryable=False,
            )
        if len(vectors[0]) > MAX_NUMBERS:
            raise EmbeddingError(
                f"{self._endpoint.where} sent an embedding of {len(vectors[0]):,} numbers, more than any model makes. "
                "Choose another recall.model.",
                retryable=False,
            )
        return vectors

    async def _ask(self, texts: Sequence[str]) -> Any:
        """Return the endpoint's answer, for so much of each text as the model takes."""
        while True:
            sent = [_sendable(text, self._most_bytes) for text in texts]
            try:
                return await self._client.embeddings.create(
                    model=self._endpoint.model, input=sent, encoding_format="float"
                )
            except openai.APIStatusError as error:
                longest = max(len(text.encode()) for text in sent)
                shorter = longest // 2
                if shorter < LEAST_BYTES or error.status_code not in _TOO_LONG or not _NAMES_TOKENS.search(str(error)):
                    raise
                self._most_bytes = min(self._most_bytes, shorter)
                log.info("embedded_text_too_long", model=self.model, status=error.status_code, text_bytes=longest)


def _sendable(text: str, most_bytes: int) -> str:
    """Return the beginning of a text. Servers may refuse an empty one, and JSON can't hold a lone surrogate."""
    encoded = text[:MAX_CHARS].encode("utf-8", "replace")
    return encoded[:most_bytes].decode("utf-8", "ignore").strip() or "-"


def translate_error(error: Exception, endpoint: Endpoint) -> EmbeddingError:
    """Return `error` as a sentence with the remedy, without any key or text."""
    sentence = f"The embedding model {endpoint.model} at {endpoint.where} {describe_failure(error, _REMEDIES)}."
    return EmbeddingError(sentence, retryable=is_retryable(error))


def _unit(values: Sequence[float]) -> list[float]:
    length = math.sqrt(math.fsum(value * value for value in values))
    if not values or not math.isfinite(length) or length == 0.0:
        raise EmbeddingError("The embeddings endpoint sent a vector of length zero.", retryable=True)
    return [value / length for value in values]
