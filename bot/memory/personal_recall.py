"""Memory search for one person, who alone sees what is found.

It finds what `recall.scope` lets a room find, but with the person as the only audience: with `guild`, what they may
read of all voice channels; with `channel`, of the one that they are in or type in; with `session`, of its newest
session.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.memory.recall import readable_hits, without_withheld
from bot.readers import NOTHING
from compaction.memory.passage import PassageKind, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.memory.access_log import AccessLog
    from bot.memory.digests import Digests
    from bot.memory.recall import Recall
    from bot.memory.session_reader import SessionReader
    from bot.readers import Reader
    from compaction.memory.recall import RecallHit

MOST_FOUND = 20
# Gists repeat what turns say, and nobody said them.
_KINDS = frozenset({PassageKind.TURN, PassageKind.NOTE})


class PersonalRecall:
    """Searches for members of a server. `reach`: as in `recall.scope`; None: search is switched off.

    `accesses` counts what is shown.
    """

    def __init__(
        self, recall: Recall, reader: SessionReader, *, reach: str | None, accesses: AccessLog | None = None
    ) -> None:
        self._recall = recall
        self._reader = reader
        self._reach = reach
        self._accesses = accesses

    @property
    def enabled(self) -> bool:
        """Return whether there is memory search."""
        return self._reach is not None

    async def search(
        self,
        words: str,
        reader: Reader,
        *,
        nearest: Iterable[int],
        speaker: str | None = None,
        since: float | None = None,
        until: float | None = None,
    ) -> tuple[RecallHit, ...]:
        """Return at most 20 hits that the person may read, best first. Raises `StoreError`.

        `nearest`: the channels that they most likely mean. `speaker`: a name or an id. Times: UTC epoch seconds.
        """
        scope = await self._scope(reader, nearest, speaker=speaker, since=since, until=until)
        if scope is None:
            return ()
        found = await self._recall.search(words, scope, limit=MOST_FOUND)
        # Asked after the search, so that who opts out meanwhile is left out.
        allowed = without_withheld(found, await self._reader.withheld_on(reader.guild_id))
        readings = await self._reader.readings(reader, {hit.session_id for hit in allowed})
        allowed = readable_hits(allowed, lambda session_id: [readings.get(session_id, NOTHING)])
        if self._accesses is not None:
            self._accesses.note_hits(allowed)
        return allowed

    async def _scope(
        self,
        reader: Reader,
        nearest: Iterable[int],
        *,
        speaker: str | None,
        since: float | None,
        until: float | None,
    ) -> Scope | None:
        """Return where the person may search; None: nowhere."""
        if self._reach is None:
            return None
        # Whoever attended little would else find nothing among the best hits.
        attended = None if reader.opened else await self._reader.attended(reader)
        everywhere = Scope(
            guild_id=reader.guild_id, sessions=attended, speaker=speaker, since=since, until=until, kinds=_KINDS
        )
        if self._reach == "guild":
            return replace(everywhere, channels=reader.told)
        newest = await self._reader.find(reader, nearest=nearest)
        if newest is None or newest.channel_id is None:
            return None
        if self._reach == "session":
            return replace(everywhere, session_id=newest.id)
        return replace(everywhere, channels=frozenset({newest.channel_id}))


@dataclass(frozen=True, slots=True)
class ReadableMemory:
    """What people may read of one process's memory by commands."""

    reader: SessionReader
    digests: Digests
    recall: PersonalRecall
