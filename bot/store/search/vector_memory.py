"""Searches the embeddings in a copy in memory.

A guild's vectors are loaded at its first search, and new ones are added later. After any deletion they are loaded
again, so that nothing forgotten stays in memory. The number of vectors in memory is limited; the guild that was
searched longest ago is dropped first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from bot.store.search.tags import tag_clauses
from bot.store.search.vectors import StoredVector, VectorFilter, VectorSet
from bot.store.tables import passage_vectors, passages, search_marks, sessions
from compaction.memory.passage import PassageId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Row, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from bot.store.dialects.port import PlainConnection
    from compaction.memory.passage import Scope

# Rows read at once: they block the event loop for about 2 ms.
_PAGE_ROWS = 1_000


class MemoryVectorSearch:
    """A copy of the stored vectors. `most`: how many are held."""

    def __init__(self, database: Database, *, most: int) -> None:
        self._database = database
        self._most = most
        self._model: str | None = None
        # Least recently searched guild first. None: the vectors of all guilds.
        self._sets: dict[int | None, VectorSet] = {}
        self._searching = asyncio.Lock()

    def __len__(self) -> int:
        """Return how many vectors are in memory."""
        return sum(map(len, self._sets.values()))

    async def nearest(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        """Return the passages whose embeddings by `model` are nearest to `vector` (unit length), with their cosine,
        nearest first. Raises `StoreError`.
        """
        wanted = VectorFilter(tag_clauses(scope), scope.since, scope.until, scope.in_view, scope.sessions)
        async with self._searching:
            vectors = await self._loaded(scope.guild_id, model)
            # A search takes ten milliseconds; in a thread it does not delay audio.
            found = await asyncio.to_thread(vectors.nearest, vector, wanted, limit)
        return tuple((PassageId(passage_id), score) for passage_id, score in found)

    async def _loaded(self, guild_id: int | None, model: str) -> VectorSet:
        (generation, newest) = await self._database.read(_read_marks)
        vectors = self._sets.get(guild_id)
        kept = self._model == model and all(each.generation == generation for each in self._sets.values())
        if kept and vectors is not None and vectors.seen_id >= newest and vectors.unread_below is None:
            self._sets[guild_id] = self._sets.pop(guild_id)
            return vectors
        return await self._refreshed(guild_id, model)

    async def _refreshed(self, guild_id: int | None, model: str) -> VectorSet:
        """Return the guild's vectors after reading new ones, or all of them if anything was deleted."""
        async with self._database.reading() as connection:
            of_generation = select(search_marks.c.value).where(search_marks.c.name == "generation")
            generation = int(await connection.scalar(of_generation) or 0)
            newest = int(await connection.scalar(select(func.max(passage_vectors.c.id))) or 0)
            if self._model != model or any(each.generation != generation for each in self._sets.values()):
                self._sets.clear()
                self._model = model
            vectors = self._sets.pop(guild_id, None)
            if vectors is None:
                vectors = VectorSet(self._most, generation=generation, seen_id=newest, unread_below=newest + 1)
            # It stays if whoever searches gives up waiting: the next search goes on where this one was.
            self._sets[guild_id] = vectors
            try:
                await self._load_older(connection, vectors, _of_guild(guild_id, model))
                await self._load_newer(connection, vectors, _of_guild(guild_id, model), newest)
            finally:
                while len(self) > self._most and len(self._sets) > 1:
                    del self._sets[next(iter(self._sets))]
        return vectors

    async def _load_older(self, connection: AsyncConnection, vectors: VectorSet, wanted: Select[Any]) -> None:
        """Add the vectors that are not read yet, newest first, page by page, until the limit."""
        while vectors.unread_below is not None:
            page = min(_PAGE_ROWS, self._most - len(vectors))
            older = wanted.where(passage_vectors.c.id < vectors.unread_below).order_by(passage_vectors.c.id.desc())
            found = (await connection.execute(older.limit(page))).all() if page > 0 else []
            vectors.add(map(_vector, found))
            vectors.unread_below = found[-1].id if found else None

    async def _load_newer(
        self, connection: AsyncConnection, vectors: VectorSet, wanted: Select[Any], newest: int
    ) -> None:
        """Add the vectors up to `newest` that were stored since the set was begun, oldest first, page by page."""
        while vectors.seen_id < newest:
            newer = wanted.where(passage_vectors.c.id > vectors.seen_id).order_by(passage_vectors.c.id)
            found = (await connection.execute(newer.limit(_PAGE_ROWS))).all()
            vectors.add(map(_vector, found))
            vectors.seen_id = found[-1].id if found else newest


def _vector(row: Row[Any]) -> StoredVector:
    return StoredVector(
        row.passage_id,
        row.session_id,
        -1 if row.start_seq is None else row.start_seq,
        row.at,
        row.tags,
        row.scale,
        row.vector,
    )


def _of_guild(guild_id: int | None, model: str) -> Select[Any]:
    wanted = (
        select(
            passage_vectors.c.id,
            passage_vectors.c.passage_id,
            passages.c.session_id,
            passages.c.start_seq,
            passages.c.at,
            passages.c.tags,
            passage_vectors.c.scale,
            passage_vectors.c.vector,
        )
        .join(passages, passages.c.id == passage_vectors.c.passage_id)
        .where(passage_vectors.c.model == model)
    )
    if guild_id is None:
        return wanted
    return wanted.join(sessions, sessions.c.id == passages.c.session_id).where(sessions.c.guild_id == guild_id)


def _read_marks(connection: PlainConnection) -> tuple[int, int]:
    """Return the generation and the newest vector id. If both are unchanged, nothing was stored or deleted."""
    generation, newest = connection.execute(
        "SELECT (SELECT value FROM search_marks WHERE name = 'generation'), (SELECT max(id) FROM passage_vectors)"
    ).fetchone()
    return generation or 0, newest or 0
