"""What a database must offer to the store: connections, queries, plain sentences, and removal of deleted bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bot.texts.text import Text

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from bot.shards import Shards, Succession
    from bot.store.dialects.search_sql import SearchSql
    from compaction.errors import StoreError


# What people read of a failure. The log and `doctor` have the database's address and the remedy.
AWAY = Text("The database does not answer at the moment.")
UNWRITABLE = Text("I cannot write into the database at the moment.")
FULL = Text("The disk of the database is full.")
BROKEN = Text("The database does not work at the moment.")


class BotLock(Protocol):
    """Keeps other processes that serve the same servers away from a database."""

    @property
    def has_rival(self) -> bool:
        """Return whether one of them has come while the lock was lost, as the last look showed."""

    async def look(self) -> bool:
        """Look, and return `has_rival`. A process that was frozen learns here that another one has its servers."""

    async def taken_over(self) -> None:
        """Return once another process has the servers of this one."""


@dataclass(frozen=True, slots=True)
class DialectSql:
    """The queries that each database writes in its own way."""

    # `session`. Returns seq and the id of who speaks first, as JSON, of each turn that is not forgotten.
    first_speakers: str
    # `session`. Returns id and first name of each speaker, as JSON, as they first appeared.
    speakers: str
    # `guild`, `session`, `until` (UTC epoch seconds). Returns the id, as JSON, of everybody who spoke before that time
    # in the other sessions of that guild.
    speakers_elsewhere: str
    search: SearchSql


@dataclass(frozen=True, slots=True)
class DatabaseDescription:
    """What a database is, for `roomtone doctor`. `running`: the shards that processes serve now, for each total."""

    text: str
    running: tuple[Shards, ...]


class Dialect(Protocol):
    """One open database of a kind. `place`: what sentences call it; it has no secret in it."""

    place: str
    sql: DialectSql
    # What connections raise because of something outside of the code.
    failures: tuple[type[BaseException], ...]
    # How many connections of one process may write at a time.
    writers_at_once: int
    # Transactions of `readers` see one snapshot.
    readers: AsyncEngine
    writers: AsyncEngine

    async def begin_writing(self, connection: AsyncConnection, step_s: float) -> None:
        """Prepare a write transaction. Called first in each.

        `step_s`: if nothing comes for so long, because this process hangs or is lost, it is ended.
        """

    async def lock_schema(self, connection: AsyncConnection) -> None:
        """Wait until no other process makes or changes the tables, in a write transaction."""

    def held_by_bot(self, shards: Shards, succession: Succession) -> AbstractAsyncContextManager[BotLock]:
        """Keep other processes that serve the same servers away from the database meanwhile. `succession`: what
        becomes of one that does so now.
        """

    def failure(self, error: BaseException) -> StoreError:
        """Return a plain sentence for an error of the driver."""

    def cause(self, error: BaseException) -> BaseException | None:
        """Return `error` if it may be shown as the cause of its sentence: it holds nothing that people said."""

    async def wipe(self) -> bool:
        """Remove the bytes of deleted rows from the database's files, while nobody writes.

        Returns False if another connection was reading, so that some may be left.
        """
