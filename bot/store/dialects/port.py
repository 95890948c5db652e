"""What a database must offer to the store: connections, queries, plain sentences, and removal of deleted bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from bot.shards import Shards
    from compaction.errors import StoreError
    from compaction.memory.passage import Scope

T = TypeVar("T")

# How long removing the bytes of deleted rows may take. A database of a gigabyte takes about half a minute.
WIPE_TIMEOUT_S: Final = 120.0


class BotLock(Protocol):
    """Keeps other processes that serve the same servers away from a database."""

    @property
    def has_rival(self) -> bool:
        """Return whether one of them has come while the lock was lost, as the last look showed."""

    async def look(self) -> bool:
        """Look, and return `has_rival`. A process that was frozen learns here that another one has its servers."""

    async def taken_over(self) -> None:
        """Return once another process has the servers of this one."""


class PlainRows(Protocol):
    """The result of a plain query."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class PlainConnection(Protocol):
    """A read-only connection of the driver itself, for reads that somebody waits for. Parameters are named, `:name`."""

    def execute(self, sql: str, parameters: Mapping[str, Any] = ..., /) -> PlainRows: ...


class PlainQuery(NamedTuple):
    """A SELECT and its parameters."""

    sql: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class PlainSql:
    """The queries that each database writes in its own way. Lists among the parameters are JSON."""

    # `ids`: passages of facts. Returns each with the passage of the turn that the fact cites.
    cited_turns: str
    # `turns`: pairs of session and seq. Returns session, seq and terms of each fact that cites one of them.
    fact_terms: str
    # `ids`: passages. Returns id, session_id, kind, key, start_seq, own, preceding, following, the seq of the turn that
    # corrects it, and whether it is archived.
    passages: str
    # `ranges`: session, first and last seq. Returns the turns in them: session_id, seq, kind, started_at, ended_at,
    # parts, tombstone.
    around: str
    # `session`, `seqs`. Returns the ids of the turns' passages, by seq.
    turn_passages: str
    # `session`. Returns seq and the id of who speaks first, as JSON, of each turn that is not forgotten.
    first_speakers: str
    # `session`. Returns id and first name of each speaker, as JSON, as they first appeared.
    speakers: str
    # `guild`, `session`, `until` (UTC epoch seconds). Returns the id, as JSON, of everybody who spoke before that time
    # in the other sessions of that guild.
    speakers_elsewhere: str
    # Terms. Returns rows of (term, passages with it); the first row has the number of all passages, and no term.
    count_terms: Callable[[Sequence[str]], PlainQuery]
    # Terms, scope, limit, how many of the newest passages to look at. Returns ids, the best first.
    search_words: Callable[[Sequence[str], Scope, int, int | None], PlainQuery]
    # Scope, limit. Returns ids, the newest first.
    search_newest: Callable[[Scope, int], PlainQuery]


# What helps against other users of the server who can make the bot run functions of theirs.
STRANGERS_REMEDY: Final = (
    "Let an administrator do `REVOKE CREATE ON SCHEMA public FROM PUBLIC` in this database, and `REVOKE ALL ON "
    "DATABASE … FROM PUBLIC` (docs/operations.md)."
)


@dataclass(frozen=True, slots=True)
class DatabaseDescription:
    """What a database is, for `roomtone doctor`. `running`: the shards that processes serve now, for each total.
    `strangers`: how many other users of the server can make the bot run functions of theirs.
    """

    text: str
    running: tuple[Shards, ...]
    strangers: int = 0


class WorkLock(Protocol):
    """The lock for work that belongs to the whole database. A context manager that releases it at the end."""

    async def taken(self) -> bool:
        """Return whether this process has the lock, which it takes if nobody has it. Raises the driver's errors."""
        ...

    async def release(self) -> None:
        """Let other processes take the lock."""
        ...

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...


class Dialect(Protocol):
    """One open database of a kind. `place`: what sentences call it; it has no secret in it."""

    place: str
    sql: PlainSql
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
        ...

    async def lock_schema(self, connection: AsyncConnection) -> None:
        """Wait until no other process makes or changes the tables, in a write transaction."""
        ...

    async def is_held_by_bot(self, connection: AsyncConnection) -> bool:
        """Return whether a bot runs with the database, as far as the database knows."""
        ...

    def held_by_bot(self, shards: Shards, *, takes_over: bool = False) -> AbstractAsyncContextManager[BotLock]:
        """Keep other processes that serve the same servers away from the database meanwhile. `takes_over`: one that
        does so now has been given up, so its connections are ended.
        """
        ...

    def work_lock(self, work: str) -> WorkLock:
        """Return the lock for `work`, which only one process does at a time. It is not taken yet."""
        ...

    async def read(self, work: Callable[[PlainConnection], T]) -> T:
        """Run `work` on a plain connection in a thread."""
        ...

    def failure(self, error: BaseException) -> StoreError:
        """Return a plain sentence for an error of the driver."""
        ...

    def cause(self, error: BaseException) -> BaseException | None:
        """Return `error` if it may be shown as the cause of its sentence: it holds nothing that people said."""
        ...

    async def purge_index(self, writing: Callable[[], AbstractAsyncContextManager[AsyncConnection]]) -> None:
        """Remove deleted words from the pages of the search index, in short transactions made by `writing`."""
        ...

    async def wipe_within_s(self) -> float:
        """Return how long `wipe` may take, and `purge_index`."""
        ...

    async def wipe(self) -> bool:
        """Remove the bytes of deleted rows from the database's files, while nobody writes.

        Returns False if another connection was reading, so that some may be left.
        """
        ...

    async def aclose(self) -> None: ...
