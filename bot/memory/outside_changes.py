"""Changes of a session in the store that others made, for example `roomtone memory forget` in another process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.store.tiers import TierStore
    from compaction.model import SessionId
    from compaction.session import SessionMemory

log = structlog.get_logger()


class OutsideChanges:
    """The changes by others in one open session. `on_change`: called when its memory has taken one over."""

    def __init__(
        self, session_id: SessionId, memory: SessionMemory, tiers: TierStore, *, on_change: Callable[[], None]
    ) -> None:
        self._session_id = session_id
        self._memory = memory
        self._tiers = tiers
        self._on_change = on_change
        self._taken_over = memory.external_changes

    async def take_over(self) -> None:
        """Reload the memory if others have changed the session in the store. Raises `StoreError`, and
        `StaleOwnerError` if another process has taken the session over.
        """
        if await self._tiers.revision(self._session_id) > self._memory.state.revision:
            await self._memory.refresh()
        # The memory may have noticed the change first, when the store refused a fold.
        if self._memory.external_changes == self._taken_over:
            return
        self._taken_over = self._memory.external_changes
        log.info("memory_refreshed", session_id=self._session_id, revision=self._memory.state.revision)
        self._on_change()

    def none_since_now(self) -> Callable[[int], bool]:
        """Return a function that tells of a stored revision whether nobody but this session has changed it since."""
        changes = self._memory.external_changes
        return lambda revision: revision <= self._memory.state.revision and self._memory.external_changes == changes
