"""An index and a store with the turns of one evening."""

from __future__ import annotations

from compaction.model import SessionId, Turn
from tests.compaction.memory.recall_index_contract import EVENING
from tests.fakes.recall_index import InMemoryRecallIndex
from tests.fakes.turn_store import InMemoryTurnStore


async def recalled_evening(
    *turns: Turn, session_id: SessionId = EVENING
) -> tuple[InMemoryRecallIndex, InMemoryTurnStore]:
    """Return an index and a store with these turns."""
    index, store = InMemoryRecallIndex(), InMemoryTurnStore()
    for each in turns:
        index.add(session_id, each, guild_id=1, channel_id=10)
        await store.append_turn(session_id, each)
    return index, store
