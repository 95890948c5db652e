"""Makes digests of stored sessions (`compaction.memory.digest`) for people who may read them, and says when somebody
was away.

A model is asked only if many of the newest turns are not folded, or any for somebody who was away; its calls count in
the server's hour. What it writes is dropped if somebody opted out or was forgotten meanwhile.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote

import structlog

from compaction.errors import CompletionError, SummaryRefusedError
from compaction.log_events import MemoryEvent
from compaction.memory.digest import Digest, DigestParts, digest_parts, make_digest, request_for_digest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bot.memory.session_views import SessionView, SessionViews
    from bot.store.history import SessionHistory
    from bot.store.sessions import StoredSession
    from bot.viewers import Stay, Viewer
    from compaction.model import Turn
    from compaction.summary.port import Fold, Summariser

log = structlog.get_logger()

# Somebody waits for the answer to their command.
MODEL_TIMEOUT_S = 15.0
# Discord connects anew within so many seconds.
LEAST_AWAY_S = 6.0
# Who was away for longer has missed something.
LONG_AWAY_S = 60.0


class Digests:
    """Digests of the sessions in one database. `summariser_of`: returns a server's summariser. `dashboard`: the address
    of the dashboard, empty if people cannot reach it.

    All methods raise `StoreError`.
    """

    def __init__(
        self,
        views: SessionViews,
        history: SessionHistory,
        *,
        summariser_of: Callable[[int], Awaitable[Summariser]],
        dashboard: str = "",
    ) -> None:
        self._views = views
        self._dashboard = dashboard.rstrip("/")
        self._history = history
        self._summariser_of = summariser_of

    async def of(
        self,
        session: StoredSession,
        viewer: Viewer | None = None,
        *,
        since: float = float("-inf"),
        until: float = float("inf"),
        catches_up: bool = False,
        model_timeout_s: float = MODEL_TIMEOUT_S,
    ) -> Digest:
        """Return the digest of what was said from `since` until `until` (UTC epoch seconds).

        `viewer`, `catches_up`: see `SessionViews.read`.
        `model_timeout_s` 0: no model is asked. It is empty if nobody said anything then that may be told.
        """
        assert session.guild_id is not None, "only sessions of a guild are read"
        summariser = await self._summariser_of(session.guild_id)
        needs_model = catches_up and bool(summariser.model)
        read = await self._views.read(session, viewer, catches_up=catches_up)
        parts, fold = await self._parts(read, since, until, needs_model=needs_model), None
        if summariser.model and model_timeout_s and parts.stale:
            fold = await self._fold(summariser, session, parts, model_timeout_s)
        if fold is not None:
            again = await self._views.read(session, viewer, catches_up=catches_up)
            if _within(again, since, until)[: len(parts.turns)] != _within(read, since, until):
                # Somebody opted out or was forgotten while the model read their words.
                parts, fold = await self._parts(again, since, until, needs_model=needs_model), None
        page = f"{self._dashboard}/#/history/{quote(session.id, safe='')}" if self._dashboard else ""
        name = "" if viewer is None else _name_of(viewer.person_id, read.recorded)
        return replace(await asyncio.to_thread(make_digest, parts, fold, reader=name), page=page)

    async def missed(
        self, session: StoredSession, viewer: Viewer, *, model_timeout_s: float = MODEL_TIMEOUT_S
    ) -> Digest | None:
        """Return the digest of what was said in a session while somebody was away; None if they were there all the
        time. `model_timeout_s`: see `of`.
        """
        # At the end of a session everybody's stay ends, a moment after the last words.
        ended_at = None if session.ended_at is None else session.last_turn_at
        away = last_absence(await self._views.stays(session, viewer), session.started_at, ended_at)
        if away is None:
            return None
        # Who is there and was never seen to come or leave has been there since the bot came.
        if away.until is None and not away.left and viewer.present_in == session.channel_id:
            return None
        until = float("inf") if away.until is None else away.until
        digest = await self.of(
            session, viewer, since=away.since, until=until, catches_up=True, model_timeout_s=model_timeout_s
        )
        # A session begins a moment before its first people are seen.
        return None if digest.is_empty and not away.left else digest

    async def _parts(self, read: SessionView, since: float, until: float, *, needs_model: bool) -> DigestParts:
        segments = read.viewing.segments(
            read.clean.segments(await self._history.segments(read.session.id)), read.recorded
        )
        return digest_parts(_within(read, since, until), segments, needs_model=needs_model)

    async def _fold(
        self, summariser: Summariser, session: StoredSession, parts: DigestParts, within_s: float
    ) -> Fold | None:
        """Return what the model makes of the stale turns; None if it fails."""
        try:
            async with asyncio.timeout(within_s):
                return await summariser.fold(request_for_digest(parts))
        except TimeoutError:
            log.warning(MemoryEvent.DIGEST_LATE, session_id=session.id, within_s=within_s)
        except (CompletionError, SummaryRefusedError) as error:
            log.warning(MemoryEvent.DIGEST_FAILED, session_id=session.id, problem=error)
        return None


def _within(read: SessionView, since: float, until: float) -> Sequence[Turn]:
    """Return the turns of a stretch of time; withheld ones are tombstones."""
    readable = {turn.seq: turn for turn in read.turns}
    return [
        readable.get(turn.seq, turn.without_words())
        for turn in read.recorded
        if turn.ended_at > since and turn.started_at < until
    ]


def _name_of(person_id: str, turns: Sequence[Turn]) -> str:
    """Return the last name of somebody in these turns; empty if they have not been there."""
    names = (part.speaker for turn in reversed(turns) for part in turn.parts if part.speaker_id == person_id)
    return next(names, "")


@dataclass(frozen=True, slots=True)
class Absence:
    """A time without somebody. `since`, `until`: UTC epoch seconds; `until` None: they have not come back.

    `left`: it began when they left; else they had never come.
    """

    since: float
    until: float | None = None
    left: bool = False

    def lasts(self, least_s: float) -> bool:
        """Return whether it goes on, or lasted at least so long."""
        return self.until is None or self.until - self.since >= least_s


def last_absence(stays: Sequence[Stay], began_at: float, ended_at: float | None = None) -> Absence | None:
    """Return a person's last long absence from a session, or the last one if none was long; None if they were there all
    the time. `began_at`, `ended_at`: of the session's talk (UTC epoch seconds); `stays`: theirs, in order.

    Who came later was away from the beginning on, and so was who never came.
    """
    over = float("inf") if ended_at is None else ended_at
    away, found = Absence(began_at), list[Absence]()
    for stay in stays:
        found.append(replace(away, until=stay.came_at))
        if stay.left_at is None or stay.left_at >= over:
            break
        away = Absence(stay.left_at, left=True)
    else:
        return away
    long = [each for each in found if each.lasts(LONG_AWAY_S)]
    return next(reversed(long or [each for each in found if each.lasts(LEAST_AWAY_S)]), None)
