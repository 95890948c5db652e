"""The local embeddings server, tested with the real client library and the bot's own adapter."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import openai
import pytest

from bot.llm.openai_embeddings import OpenAIEmbeddings
from compaction.errors import EmbeddingError
from rehearsal.servers.embeddings import EmbeddingsBehaviour, EmbeddingsMode, LocalEmbeddingsServer
from rehearsal.servers.loopback import RequestRefusal
from tests.patience import PATIENCE_S
from voice.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Sequence


async def lengths(texts: Sequence[str]) -> list[list[float]]:
    """Return vectors whose length depends on the length of the text."""
    return [[3.0 * len(text), 4.0 * len(text)] for text in texts]


@pytest.mark.asyncio
async def test_texts_become_vectors_in_order() -> None:
    """Vectors are returned in order, as numbers or as base64, which is the library's default."""
    async with (
        LocalEmbeddingsServer(EmbeddingsBehaviour(lengths)) as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="none") as client,
    ):
        by_default = await client.embeddings.create(model="m", input=["a", "bb"])
        as_numbers = await client.embeddings.create(model="m", input="ccc", encoding_format="float")
        assert server.calls[0]["encoding_format"] == "base64"
    assert [each.embedding for each in by_default.data] == [[3.0, 4.0], [6.0, 8.0]]
    assert as_numbers.data[0].embedding == [9.0, 12.0]
    assert by_default.usage.total_tokens == 2


@pytest.mark.asyncio
@pytest.mark.parametrize("given", [[], [""], "", [3], None])
async def test_what_openai_refuses_is_refused(given: Any) -> None:
    """A request without a text is refused, as OpenAI refuses it."""
    async with (
        LocalEmbeddingsServer(EmbeddingsBehaviour(lengths)) as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client,
    ):
        with pytest.raises(openai.BadRequestError, match="input"):
            await client.embeddings.create(model="m", input=given)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        ({"mode": EmbeddingsMode.STALL}, "in time"),
        ({"mode": EmbeddingsMode.GARBAGE}, "cannot be read"),
        ({"mode": EmbeddingsMode.FEWER}, "sent 1 embeddings for 2 texts"),
        ({"refuses": RequestRefusal.WRONG_KEY}, "recall.api_key"),
        ({"refuses": RequestRefusal.BROKEN}, "status 500"),
    ],
)
async def test_each_conduct_is_what_the_adapter_calls_it(behaviour: dict[str, Any], told: str) -> None:
    """The bot's adapter recognises each fault of the server and says what it is."""
    # Only a server that stalls gets a short time limit, so that a busy machine does not fail the other cases.
    limit_s = 0.3 if behaviour.get("mode") is EmbeddingsMode.STALL else PATIENCE_S
    async with (
        LocalEmbeddingsServer(EmbeddingsBehaviour(lengths, **behaviour)) as server,
        OpenAIEmbeddings(Endpoint(server.base_url, "m", timeout_s=limit_s)) as embedder,
    ):
        with pytest.raises(EmbeddingError, match=told):
            await embedder.embed(["one", "two"])
        server.behaviour = EmbeddingsBehaviour(lengths)
        embedder._endpoint = replace(embedder._endpoint, timeout_s=PATIENCE_S)
        assert len(await embedder.embed(["one", "two"])) == 2
