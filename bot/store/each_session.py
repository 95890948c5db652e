"""Works on many sessions, each in a transaction of its own, so that one that fails does not stop the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import structlog

from bot.store.claims import writing_session
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.model import SessionId

log = structlog.get_logger()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SessionResults(Generic[T]):
    """What the work returned for each session in which it did not fail, and the first failure."""

    results: tuple[T, ...]
    failure: StoreError | None


async def write_each(
    database: Database,
    session_ids: Iterable[SessionId],
    work: Callable[[AsyncConnection, SessionId], Awaitable[T]],
    *,
    on_done: Callable[[T], object] = lambda _: None,
) -> SessionResults[T]:
    """Run `work` for each session in a write transaction of its server; a failure is logged, and the next one goes on.

    `on_done`: gets each result once it is committed. Raises `StoreError` at once if the database takes no writes any
    more: the other sessions would fail too, each after a long wait.
    """
    results: list[T] = []
    failure: StoreError | None = None
    for session_id in session_ids:
        try:
            async with writing_session(database, session_id) as connection:
                result = await work(connection, session_id)
        except StoreError as error:
            log.warning("session_not_changed", session_id=session_id, problem=error)
            failure = failure or error
            async with database.writing():
                pass
            continue
        results.append(result)
        on_done(result)
    return SessionResults(tuple(results), failure)
