"""The settings decide which embedder is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bot.embedding.factory import open_embedder
from bot.errors import ModelError
from bot.llm.openai_embeddings import OpenAIEmbeddings
from bot.llm.settings import LlmSettings
from bot.settings import ModelsSettings, RecallSettings

if TYPE_CHECKING:
    from pathlib import Path

    from compaction.ports import Embedder

URL = "http://127.0.0.1:9/v1"


async def chosen(folder: Path, **settings: object) -> Embedder | None:
    """Return the embedder that these settings choose."""
    recall = RecallSettings.model_validate(settings)
    models = ModelsSettings(directory=folder)
    async with open_embedder(recall, models=models, llm=LlmSettings()) as embedder:
        return embedder


@pytest.mark.asyncio
async def test_without_a_model_full_text_serves(tmp_path: Path) -> None:
    """By default a missing model means no embedder. If the settings name the model, an error says how to
    download it.
    """
    assert await chosen(tmp_path) is None
    assert await chosen(tmp_path, embedder="off", base_url=URL) is None
    with pytest.raises(ModelError, match="roomtone models pull embed"):
        await chosen(tmp_path, embedder="minilm")


@pytest.mark.asyncio
@pytest.mark.parametrize("settings", [{"base_url": URL}, {"embedder": "endpoint", "base_url": URL}])
async def test_an_endpoint_is_taken_where_one_is_set(tmp_path: Path, settings: dict[str, object]) -> None:
    """A `base_url` chooses an endpoint as embedder, with or without naming the kind."""
    embedder = await chosen(tmp_path, model="nomic", **settings)
    assert isinstance(embedder, OpenAIEmbeddings)
    assert embedder.model == "nomic"
