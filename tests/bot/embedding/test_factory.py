"""The settings decide which embedder is opened."""

from __future__ import annotations

from pathlib import Path

from bot.embedding.factory import open_embedder
from bot.llm.openai_embeddings import OpenAIEmbeddings
from bot.llm.settings import LlmSettings
from bot.settings import ModelsSettings, RecallSettings
from compaction.ports import Embedder

URL = "http://127.0.0.1:9/v1"


async def chosen(folder: Path, **settings: object) -> Embedder | None:
    """Return the embedder that these settings choose."""
    recall = RecallSettings.model_validate(settings)
    models = ModelsSettings(directory=folder)
    async with open_embedder(recall, models=models, llm=LlmSettings()) as embedder:
        return embedder


async def test_an_endpoint_is_taken_where_one_is_set(tmp_path: Path) -> None:
    """A `base_url` chooses an endpoint as embedder."""
    embedder = await chosen(tmp_path, model="nomic", base_url=URL)
    assert isinstance(embedder, OpenAIEmbeddings)
    assert embedder.model == "nomic"
