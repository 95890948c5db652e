"""The in-memory recall index passes the contract tests of all recall indexes."""

from __future__ import annotations

import pytest

from compaction.memory.passage import PassageSource
from compaction.model import SessionId
from tests.compaction.memory.recall_index_contract import (
    PLACES,
    LetterEmbedder,
    RecallIndexContract,
    SimilarityContract,
)
from tests.fakes.recall_index import InMemoryRecallIndex


class _FakeRoom:
    def __init__(self) -> None:
        self.index = InMemoryRecallIndex()

    async def add(self, session_id: SessionId, *sources: PassageSource) -> None:
        guild_id, channel_id = PLACES[session_id]
        for source in sources:
            self.index.add(session_id, source, guild_id=guild_id, channel_id=channel_id)

    async def forget(self, session_id: SessionId, seq: int) -> None:
        self.index.forget(session_id, seq)

    async def embed(self) -> None:
        await self.index.embed(LetterEmbedder())


class TestInMemoryRecallIndex(RecallIndexContract, SimilarityContract):
    """The in-memory index that searches all passages passes the contract tests."""

    @pytest.fixture
    def room(self) -> _FakeRoom:
        """Return a room with an empty index."""
        return _FakeRoom()
