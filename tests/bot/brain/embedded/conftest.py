"""The examples of what people first say to a bot, with the real embedder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from bot.brain.embedded.chat import FirstSentences
from bot.embedding.sentence_encoder import ThreadedEmbedder
from bot.models.catalogue import EMBED_SENTENCES
from bot.models.directory import ModelDirectory
from tests.fakes.clock import FakeClock

MODELS = Path(__file__).parents[4] / "data" / "models"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sentences() -> AsyncIterator[FirstSentences]:
    """The examples of all languages, read by the model that memory search has."""
    async with ThreadedEmbedder(ModelDirectory(MODELS).path(EMBED_SENTENCES)) as embedder:
        found = FirstSentences(embedder)
        await found.read_examples(FakeClock())
        yield found
