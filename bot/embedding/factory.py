"""Opens the embedder that the settings choose: an endpoint, the local model, or none."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from bot.embedding.sentence_encoder import ThreadedEmbedder
from bot.models.catalogue import EMBED_SENTENCES
from bot.models.directory import ModelDirectory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.llm.settings import LlmSettings
    from bot.settings import ModelsSettings, RecallSettings
    from compaction.ports import Embedder

log = structlog.get_logger()


@asynccontextmanager
async def open_embedder(
    settings: RecallSettings, *, models: ModelsSettings, llm: LlmSettings
) -> AsyncIterator[Embedder | None]:
    """Open the embedder that the settings choose; None means that search uses full text only."""
    if settings.base_url:
        # Imported here, because the library takes a second to load.
        from bot.llm.openai_embeddings import TIMEOUT_S, OpenAIEmbeddings
        from voice.endpoint import Endpoint

        key = llm.key_for(settings.base_url, settings.api_key)
        endpoint = Endpoint(settings.base_url, settings.model, key, TIMEOUT_S)
        async with OpenAIEmbeddings(endpoint) as remote:
            yield remote
        return
    model_directory = ModelDirectory(models.directory)
    if not model_directory.holds(EMBED_SENTENCES):
        log.info("embedder_absent", search="full text only")
        yield None
        return
    async with ThreadedEmbedder(model_directory.path(EMBED_SENTENCES)) as local:
        yield local
