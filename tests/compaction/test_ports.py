"""The in-memory store that the other tests use keeps the contract of the port."""

from __future__ import annotations

import pytest

from tests.compaction.turn_store_contract import TurnStoreContract
from tests.fakes.turn_store import InMemoryTurnStore


class TestInMemoryTurnStore(TurnStoreContract):
    """The fake, held to what the database is held to."""

    @pytest.fixture
    def store(self) -> InMemoryTurnStore:
        return InMemoryTurnStore()
