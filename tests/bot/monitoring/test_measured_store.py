"""The measured store does what every store of turns does, and tells how long it took."""

from __future__ import annotations

import pytest

from bot.monitoring.measured_store import MeasuredTurnStore
from compaction.errors import StoreError
from compaction.ports import TurnStore
from tests.compaction.turn_store_contract import EVENING, TurnStoreContract, turn
from tests.fakes.turn_store import InMemoryTurnStore


def ignore(operation: str, seconds: float, *, failed: bool) -> None:
    """Ignore the measurement."""


class TestMeasuredTurnStore(TurnStoreContract):
    """The contract, on the measured in-memory store."""

    @pytest.fixture
    def store(self) -> TurnStore:
        """Return a fresh store."""
        return MeasuredTurnStore(InMemoryTurnStore(), ignore)


async def test_each_operation_is_told_with_its_time_and_its_failure() -> None:
    """A failure is passed on, and counted with its time."""
    told: list[tuple[str, float, bool]] = []
    times = iter([1.0, 1.5, 2.0, 2.25, 3.0, 6.0])

    def record(operation: str, seconds: float, *, failed: bool) -> None:
        told.append((operation, seconds, failed))

    store = MeasuredTurnStore(InMemoryTurnStore(), record, monotonic=lambda: next(times))
    await store.append_turn(EVENING, turn(0))
    await store.load(EVENING)
    with pytest.raises(StoreError):
        await store.append_turn(EVENING, turn(0, "Something else."))
    assert told == [("append_turn", 0.5, False), ("load", 0.25, False), ("append_turn", 3.0, True)]
