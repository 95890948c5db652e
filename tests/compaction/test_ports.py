"""The in-memory store that the other tests use passes the contract tests of the port."""

from __future__ import annotations

import pytest

from tests.compaction.turn_store_contract import TurnStoreContract
from tests.fakes.turn_store import InMemoryTurnStore


class TestInMemoryTurnStore(TurnStoreContract):
    """The in-memory store passes the same tests as the database."""

    @pytest.fixture
    def store(self) -> InMemoryTurnStore:
        return InMemoryTurnStore()
