"""Which segments were asked for: noted with each search, written with the next occasion.

What is retrieved counts as spoken of, so that it doesn't go cold while people ask for it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.clock import Clock
    from bot.store.tiers import TierStore
    from compaction.memory.recall import RecallHit
    from compaction.model import SessionId

# Beyond so many ranges the oldest notes are dropped: counts are a measure, not a ledger.
MOST_NOTED = 1_000


class AccessLog:
    """Retrievals that are not written yet. One for the process; not thread-safe."""

    def __init__(self, shelf: TierStore, clock: Clock) -> None:
        self._shelf = shelf
        self._clock = clock
        self._noted: list[tuple[SessionId, int, int]] = []
        self._last_at = 0.0

    def note(self, found: Iterable[RecallHit]) -> None:
        """Note what a search found: the turn itself, not its neighbours; or a segment's range. Returns at once."""
        self._last_at = self._clock.now()
        for each in found:
            first, last = (each.seq, each.seq) if each.seq is not None else (each.seq_from, each.seq_to)
            if first is not None and last is not None:
                self._noted.append((each.session_id, first, last))
        del self._noted[:-MOST_NOTED]

    async def write(self) -> None:
        """Write what was noted. Raises `StoreError`; what was noted then waits on."""
        if not self._noted:
            return
        noted = list(self._noted)
        ranges: defaultdict[SessionId, list[tuple[int, int]]] = defaultdict(list)
        for session_id, first, last in noted:
            ranges[session_id].append((first, last))
        await self._shelf.count_accesses(ranges, self._last_at)
        del self._noted[: len(noted)]
