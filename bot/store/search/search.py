"""Searches stored passages by full text and by embeddings.

This module only runs the queries of `bot.store.dialects`; `compaction.memory.recall` ranks the results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, select

from bot.store.search.passages import read_passages
from bot.store.search.tags import FACT_KIND
from bot.store.tables import passages
from compaction.memory.passage import Passage, PassageId, PassageKind, Readable, Scope, TermCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from bot.store.dialects.search_sql import Query
    from bot.store.search.vector_store import VectorStore
    from compaction.model import Seq, SessionId


class SqlRecallIndex:
    """Implements `compaction.memory.passage.RecallIndex`. Safe for all tasks of one event loop."""

    def __init__(self, database: Database, vectors: VectorStore) -> None:
        self._database = database
        self._vectors = vectors

    async def count(self, terms: Sequence[str], scope: Scope) -> TermCounts:
        found = dict(await self._database.rows(*self._database.sql.search.count_terms(terms, scope)))
        return TermCounts({term: found[at] for at, term in enumerate(terms) if found[at]}, found[-1])

    async def full_text(self, weights: Mapping[str, float], scope: Scope, *, limit: int) -> Sequence[PassageId]:
        if not weights:
            return ()
        found = await self._ids(self._database.sql.search.search_words(weights, scope, limit))
        return tuple(dict.fromkeys((await self._turns_of(found)).values()))

    async def newest(self, scope: Scope, *, limit: int) -> Sequence[PassageId]:
        return await self._ids(self._database.sql.search.search_newest(scope, limit))

    async def find_similar(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        found = await self._vectors.nearest(vector, scope, model=model, limit=limit)
        cited = await self._turns_of([passage_id for passage_id, _ in found])
        alike: dict[PassageId, float] = {}
        for passage_id, cosine in found:
            alike.setdefault(cited[passage_id], cosine)
        return tuple(alike.items())

    async def _turns_of(self, ids: Sequence[PassageId]) -> Mapping[PassageId, PassageId]:
        """Return each id with itself, and a fact's with the turn that the fact cites, in this order."""
        if not ids:
            return {}
        async with self._database.reading() as connection:
            cited = await _cited_turns(connection, ids)
        return {each: cited.get(each, each) for each in ids}

    async def passages(self, ids: Sequence[PassageId], readable: Readable) -> Sequence[Passage]:
        async with self._database.reading() as connection:
            return await read_passages(connection, ids, readable)

    async def find_turns(self, session_id: SessionId, seqs: Sequence[Seq]) -> Sequence[PassageId]:
        of_turns = (passages.c.session_id == session_id) & (passages.c.kind == PassageKind.TURN.value)
        wanted = select(passages.c.id).where(of_turns, passages.c.start_seq.in_(seqs)).order_by(passages.c.start_seq)
        return tuple(map(PassageId, await self._database.values(wanted)))

    async def _ids(self, query: Query) -> tuple[PassageId, ...]:
        return tuple(PassageId(row[0]) for row in await self._database.rows(*query))


async def _cited_turns(connection: AsyncConnection, ids: Sequence[PassageId]) -> dict[PassageId, PassageId]:
    """Return the passages of the cited turns, by the facts among `ids`."""
    turn = passages.alias()
    same = and_(
        turn.c.session_id == passages.c.session_id,
        turn.c.kind == PassageKind.TURN.value,
        turn.c.start_seq == passages.c.start_seq,
    )
    facts = passages.c.id.in_(ids) & (passages.c.kind == FACT_KIND)
    found = await connection.execute(select(passages.c.id, turn.c.id.label("turn")).join(turn, same).where(facts))
    return {PassageId(row.id): PassageId(row.turn) for row in found}
