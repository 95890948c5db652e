"""Memory search for one person, who alone sees what is found.

It finds what `recall.scope` lets a room find, but with the person as the only audience: with `server`, what they may
read of all voice channels; with `channel`, of the one that they are in or type in; with `session`, of its newest
session.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.memory.recall import Recall, readable_by
from compaction.memory.passage import PassageKind, Readable, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.memory.access_log import AccessLog
    from bot.memory.digests import Digests
    from bot.memory.session_views import SessionViews
    from bot.store.attendance import AttendanceStore
    from bot.viewers import Viewer
    from compaction.memory.digest import Digest
    from compaction.memory.recall import RecallHit
    from compaction.model import SessionId

MOST_FOUND = 20
# Gists repeat what turns say, and nobody said them.
_KINDS = frozenset({PassageKind.TURN, PassageKind.NOTE})


class PersonalRecall:
    """Searches for members of a server. `reach`: as in `recall.scope`; None: search is switched off, and nobody calls
    `search`. `accesses` counts what is shown.
    """

    def __init__(
        self,
        recall: Recall,
        views: SessionViews,
        attendance: AttendanceStore,
        *,
        reach: str | None,
        accesses: AccessLog,
    ) -> None:
        self._recall = recall
        self._views = views
        self._attendance = attendance
        self._reach = reach
        self._accesses = accesses

    @property
    def enabled(self) -> bool:
        """Return whether there is memory search."""
        return self._reach is not None

    async def search(
        self,
        words: str,
        viewer: Viewer,
        *,
        nearest: Iterable[int],
        speaker: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> tuple[RecallHit, ...]:
        """Return at most 20 hits that the person may read, best first. Raises `StoreError`.

        `nearest`: the channels that they most likely mean. `speaker`: a name or an id. Times: UTC epoch seconds.
        """
        scope = Scope(guild_id=viewer.guild_id, speaker=speaker, since=since, until=until, kinds=_KINDS)
        if self._reach == "server":
            scope = replace(scope, channels=viewer.allowed)
        else:
            newest = await self._views.find(viewer, nearest=nearest)
            if newest is None or newest.channel_id is None:
                return ()
            scope = replace(scope, channels=frozenset({newest.channel_id}))
            if self._reach == "session":
                scope = replace(scope, session_id=newest.id)

        async def readable() -> Readable:
            readable = await readable_by([viewer], scope, self._attendance)
            return replace(readable, withheld=await self._views.withheld(viewer.guild_id))

        found = await self._recall.search_for(readable, words, scope, limit=MOST_FOUND)
        self._accesses.note_hits(found)
        return found


@dataclass(frozen=True, slots=True)
class MemoryReaders:
    """What people may read of one process's memory by commands."""

    views: SessionViews
    digests: Digests
    recall: PersonalRecall

    async def missed(self, session_id: SessionId, viewer: Viewer) -> Digest | None:
        """Return the digest of what somebody missed of a session, without asking a model; None if they missed nothing
        of it, or may not read it.
        """
        session = await self.views.find(viewer, session_id=session_id, catches_up=True)
        return None if session is None else await self.digests.missed(session, viewer, model_timeout_s=0.0)
