"""Chooses who searches the embeddings: the database where it can (PostgreSQL with pgvector), else a copy in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from bot.store.search.vector_memory import MemoryVectorSearch
from compaction.memory.passage import PassageId

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bot.store.database import Database
    from bot.store.dialects.port import PlainQuery
    from compaction.memory.passage import Scope

    SearchQuery = Callable[[Sequence[float], Scope, str, int], PlainQuery]


class VectorSearch(Protocol):
    """Finds stored embeddings."""

    async def nearest(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        """Return the passages whose embeddings by `model` are nearest to `vector` (unit length), with their cosine,
        nearest first. Raises `StoreError`.
        """
        ...


class DatabaseVectorSearch:
    """Asks the database. Implements `VectorSearch`."""

    def __init__(self, database: Database, query: SearchQuery) -> None:
        self._database = database
        self._query = query

    async def nearest(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        """See `VectorSearch`."""
        query = self._query(vector, scope, model, limit)
        found = await self._database.rows(query.sql, query.values)
        return tuple((PassageId(passage_id), cosine) for passage_id, cosine in found)


def vector_search(database: Database, *, most: int) -> VectorSearch:
    """Return the search for an open database. `most`: how many embeddings may be held in memory, if that is needed."""
    query = database.sql.search_vectors
    return MemoryVectorSearch(database, most=most) if query is None else DatabaseVectorSearch(database, query)
