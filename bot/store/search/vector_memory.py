"""Searches the embeddings in a copy in memory.

The newest vectors are loaded at the first search, and new ones are added later. After any deletion they are loaded
again, so that nothing forgotten stays in memory.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from bot.store.search.vectors import StoredVector, VectorSet
from bot.store.tables import passage_vectors, passages, search_marks
from compaction.memory.passage import PassageId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Row, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from compaction.memory.passage import Scope

# Rows read at once: they block the event loop for about 2 ms.
_PAGE_ROWS = 1_000


class MemoryVectorSearch:
    """A copy of the stored vectors. `most`: how many are held."""

    def __init__(self, database: Database, *, most: int) -> None:
        self._database = database
        self._most = most
        self._model: str | None = None
        self._vectors = VectorSet(most)
        self._searching = asyncio.Lock()

    def __len__(self) -> int:
        """Return how many vectors are in memory."""
        return len(self._vectors)

    async def nearest(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        """Return the passages whose embeddings by `model` are nearest to `vector` (unit length), with their cosine,
        nearest first. Raises `StoreError`.
        """
        async with self._searching:
            async with self._database.reading() as connection:
                await self._refresh(connection, model)
            # A search takes ten milliseconds; in a thread it does not delay audio.
            found = await asyncio.to_thread(self._vectors.nearest, vector, scope, limit)
        return tuple((PassageId(passage_id), score) for passage_id, score in found)

    async def _refresh(self, connection: AsyncConnection, model: str) -> None:
        """Read new vectors, or all of them if anything was deleted."""
        of_generation = select(search_marks.c.value).where(search_marks.c.name == "generation")
        generation = int(await connection.scalar(of_generation) or 0)
        newest = int(await connection.scalar(select(func.max(passage_vectors.c.id))) or 0)
        if self._model != model or self._vectors.generation != generation:
            self._model = model
            # It stays if whoever searches gives up waiting: the next search goes on where this one was.
            self._vectors = VectorSet(self._most, generation=generation, seen_id=newest, unread_below=newest + 1)
        await self._load_older(connection, self._vectors, _of_model(model))
        await self._load_newer(connection, self._vectors, _of_model(model), newest)

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
    seq = -1 if row.start_seq is None else row.start_seq
    return StoredVector(row.passage_id, row.session_id, seq, row.at, row.tags, row.scale, row.vector)


def _of_model(model: str) -> Select[Any]:
    wanted = select(
        passage_vectors.c.id,
        passage_vectors.c.passage_id,
        passages.c.session_id,
        passages.c.start_seq,
        passages.c.at,
        passages.c.tags,
        passage_vectors.c.scale,
        passage_vectors.c.vector,
    )
    same = passages.c.id == passage_vectors.c.passage_id
    return wanted.join(passages, same).where(passage_vectors.c.model == model)
