"""Searches stored passages by full text and by embeddings.

This module only runs the queries of `bot.store.dialects`; `compaction.memory.recall` ranks the results.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bot.store.dialects.port import PlainQuery
from bot.store.search.fact_passages import cited_turns
from bot.store.search.passage_rows import read_passages
from compaction.memory.passage import PassageId, TermCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.store.database import Database
    from bot.store.search.vector_store import VectorStore
    from compaction.memory.passage import Passage, Scope
    from compaction.model import Seq, SessionId


class SqlRecallIndex:
    """Implements `compaction.memory.passage.RecallIndex`. Safe for all tasks of one event loop."""

    def __init__(self, database: Database, vectors: VectorStore) -> None:
        self._database = database
        self._vectors = vectors

    async def count(self, terms: Sequence[str]) -> TermCounts:
        (_, total), *found = await self._rows(self._database.sql.count_terms(terms))
        return TermCounts(dict(found), total or 0)

    async def full_text(
        self, terms: Sequence[str], scope: Scope, *, limit: int, newest: int | None = None
    ) -> Sequence[PassageId]:
        if not terms or scope.is_empty:
            return ()
        found = await self._ids(self._database.sql.search_words(terms, scope, limit, newest))
        return tuple(dict.fromkeys((await self._turns_of(found)).values()))

    async def newest(self, scope: Scope, *, limit: int) -> Sequence[PassageId]:
        if scope.is_empty:
            return ()
        return await self._ids(self._database.sql.search_newest(scope, limit))

    async def find_similar(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        if scope.is_empty:
            return ()
        found = await self._vectors.nearest(vector, scope, model=model, limit=limit)
        turns = await self._turns_of([passage_id for passage_id, _ in found])
        alike: dict[PassageId, float] = {}
        for passage_id, cosine in found:
            alike.setdefault(turns[passage_id], cosine)
        return tuple(alike.items())

    async def _turns_of(self, ids: Sequence[PassageId]) -> Mapping[PassageId, PassageId]:
        """Return each id with itself, and a fact's with the turn that the fact cites, in this order."""
        sql = self._database.sql
        cited = await self._database.read(lambda connection: cited_turns(connection, sql, ids)) if ids else {}
        return {each: cited.get(each, each) for each in ids}

    async def passages(self, ids: Sequence[PassageId]) -> Sequence[Passage]:
        sql = self._database.sql
        return await self._database.read(lambda connection: read_passages(connection, sql, ids))

    async def find_turns(self, session_id: SessionId, seqs: Sequence[Seq]) -> Sequence[PassageId]:
        values = {"session": session_id, "seqs": json.dumps(list(seqs))}
        return await self._ids(PlainQuery(self._database.sql.turn_passages, values))

    async def _ids(self, query: PlainQuery) -> tuple[PassageId, ...]:
        return tuple(PassageId(row[0]) for row in await self._rows(query))

    async def _rows(self, query: PlainQuery) -> list[tuple[Any, ...]]:
        return await self._database.rows(query.sql, query.values)
