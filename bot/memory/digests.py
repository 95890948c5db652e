"""Makes digests of stored sessions (`compaction.memory.digest`) for people who may read them, and says when somebody
was away, as the turns about comings and goings tell.

A model is asked only if many of the newest turns are not folded, and its calls count in the server's hour. What it
writes is dropped if somebody opted out or was forgotten meanwhile.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import structlog

from compaction.errors import CompletionError, SummaryRefusedError
from compaction.memory.digest import digest_parts, make_digest, request_for_digest
from compaction.model import TurnKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bot.memory.session_reader import ReadSession, SessionReader
    from bot.readers import Reader
    from bot.store.history import SessionHistory
    from bot.store.sessions import StoredSession
    from compaction.memory.digest import Digest, DigestParts
    from compaction.model import Turn
    from compaction.summary.port import Fold, Summariser

log = structlog.get_logger()

# Somebody waits for the answer to their command.
MODEL_TIMEOUT_S = 15.0
# How a turn about coming and going goes on behind the name (`bot.room.conversation.membership`). Others of its kind are
# about a shared screen, and quote it.
_COMES_OR_GOES = re.compile(r" (?:left|joined) the channel\b")
# The last of these words in it tells where it left the person.
_MOVES = re.compile(r"\b(left|joined|came back)\b")
_AWAY = "left"


class Digests:
    """Digests of the sessions in one database. `summariser_of`: returns a server's summariser. `dashboard`: the address
    of the dashboard, empty if people cannot reach it.

    All methods raise `StoreError`.
    """

    def __init__(
        self,
        reader: SessionReader,
        history: SessionHistory,
        *,
        summariser_of: Callable[[int], Awaitable[Summariser]],
        dashboard: str = "",
    ) -> None:
        self._reader = reader
        self._dashboard = dashboard.rstrip("/")
        self._history = history
        self._summariser_of = summariser_of

    async def of(
        self,
        session: StoredSession,
        reader: Reader | None = None,
        *,
        since: float = float("-inf"),
        until: float = float("inf"),
        catches_up: bool = False,
        model_timeout_s: float = MODEL_TIMEOUT_S,
    ) -> Digest:
        """Return the digest of what was said from `since` until `until` (UTC epoch seconds).

        `reader`, `catches_up`: see `SessionReader.read`.
        `model_timeout_s` 0: no model is asked. It is empty if nobody said anything then that may be told.
        """
        read = await self._reader.read(session, reader, catches_up=catches_up)
        parts = await self._parts(read, since, until)
        fold = await self._fold(session, parts, model_timeout_s) if model_timeout_s and parts.stale else None
        if fold is not None:
            again = await self._reader.read(session, reader, catches_up=catches_up)
            if _within(again, since, until)[: len(parts.turns)] != _within(read, since, until):
                # Somebody opted out or was forgotten while the model read their words.
                parts, fold = await self._parts(again, since, until), None
        made = await asyncio.to_thread(make_digest, parts, fold)
        page = f"{self._dashboard}/#/history/{quote(session.id, safe='')}" if self._dashboard else ""
        return replace(made, page=page)

    async def _parts(self, read: ReadSession, since: float, until: float) -> DigestParts:
        segments = read.clean.segments(await self._history.segments(read.session.id))
        return digest_parts(_within(read, since, until), read.reading.segments(segments, read.recorded))

    async def _fold(self, session: StoredSession, parts: DigestParts, within_s: float) -> Fold | None:
        """Return what the model makes of the stale turns; None if it fails or there is none."""
        assert session.guild_id is not None, "only sessions of a guild are read"
        summariser = await self._summariser_of(session.guild_id)
        if not summariser.model:
            return None
        try:
            async with asyncio.timeout(within_s):
                return await summariser.fold(request_for_digest(parts))
        except TimeoutError:
            log.warning("digest_model_late", session_id=session.id, within_s=within_s)
        except (CompletionError, SummaryRefusedError) as error:
            log.warning("digest_model_failed", session_id=session.id, problem=error)
        return None


def _within(read: ReadSession, since: float, until: float) -> Sequence[Turn]:
    """Return the turns of a stretch of time; withheld ones are tombstones."""
    told = {turn.seq: turn for turn in read.turns}
    return [
        told.get(turn.seq, replace(turn, parts=(), tombstone=True))
        for turn in read.recorded
        if turn.ended_at > since and turn.started_at < until
    ]


@dataclass(frozen=True, slots=True)
class Absence:
    """A time without somebody. `since`, `until`: UTC epoch seconds; `until` None: they have not come back.

    `left`: it began when they left; else they had never come.
    """

    since: float
    until: float | None
    left: bool = field(default=False, compare=False)


def last_absence(turns: Sequence[Turn], person_id: str) -> Absence | None:
    """Return a person's last absence from the session with these turns; None if they were there from the beginning.

    Who came later was away from the beginning on, and so was who never came.
    """
    if not turns:
        return None
    found: Absence | None = Absence(turns[0].started_at, None)
    seen = False
    for turn in turns:
        part = next((each for each in turn.parts if each.speaker_id == person_id), None)
        if part is None:
            continue
        what = part.text.removeprefix(part.speaker)
        is_move = turn.kind is TurnKind.MEMBERSHIP and _COMES_OR_GOES.match(what) is not None
        moves = _MOVES.findall(what) if is_move else []
        if not seen and (not moves or moves[0] == _AWAY):
            # Who speaks, or leaves, without having come was there.
            found = None
        seen = True
        if moves and moves[-1] == _AWAY:
            found = Absence(turn.started_at, None, left=True)
        elif found is not None and found.until is None and turn.started_at >= found.since:
            # Words that began before the person left may be recorded after it.
            found = replace(found, until=turn.started_at)
    return found
