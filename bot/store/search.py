"""Searches stored passages by full text (SQLite FTS5) and by embeddings.

This module only runs queries; `compaction.memory.recall` ranks the results. FTS5 ranks by BM25 itself, so the best
passages come first without sorting the rest.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.store.fact_passages import KIND as FACT_KIND
from bot.store.fact_passages import cited_turns
from bot.store.passage_rows import read_passages
from bot.store.tags import ARCHIVED_TAG, any_term_query, match_expression, place_tags, tag_clauses
from compaction.memory.passage import PassageId, TermCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bot.store.database import Database
    from bot.store.vector_store import VectorStore
    from compaction.memory.passage import Passage, Scope
    from compaction.model import Seq, SessionId

# Column weights: a turn's own words 1, its neighbours' words 0.5, tags 0.
_RANK = "bm25(1.0, 0.5, 0.5, 0.0)"


class SqlRecallIndex:
    """Implements `compaction.memory.passage.RecallIndex`. Safe for all tasks of one event loop."""

    def __init__(self, database: Database, vectors: VectorStore) -> None:
        self._database = database
        self._vectors = vectors

    async def count(self, terms: Sequence[str]) -> TermCounts:
        encoded = json.dumps(list(terms))
        (_, total), *found = await self._database.rows(_COUNTS, {"terms": encoded})
        return TermCounts(dict(found), total or 0)

    async def full_text(
        self, terms: Sequence[str], scope: Scope, *, limit: int, newest: int | None = None
    ) -> Sequence[PassageId]:
        if not terms or scope.is_empty:
            return ()
        # BM25 scores every word of the query, so tags that half the passages have are checked in the row instead.
        conditions, values = _row_conditions(scope, newest)
        narrow = replace(scope, guild_id=None, channels=None)
        values["match"] = match_expression(any_term_query(terms), tag_clauses(narrow))
        conditions += ["passage_index MATCH :match", f"rank MATCH '{_RANK}'"]
        for tags in place_tags(scope):
            # With a space on both sides: a name's tag may end like the tag of a channel.
            conditions.append("(" + " OR ".join(f"instr(' ' || p.tags, :{tag}) > 0" for tag in tags) + ")")
            values |= {tag: f" {tag} " for tag in tags}
        found = await self._select_ids(
            "passage_index f JOIN passages p ON p.id = f.rowid", conditions, values, "f.rank", limit
        )
        return tuple(dict.fromkeys((await self._turns_of(found)).values()))

    async def newest(self, scope: Scope, *, limit: int) -> Sequence[PassageId]:
        if scope.is_empty:
            return ()
        conditions, values = _row_conditions(scope, None)
        conditions.append(f"p.kind <> '{FACT_KIND}'")
        match = match_expression("", tag_clauses(scope))
        if not match:
            return await self._select_ids("passages p", conditions, values, "p.id DESC", limit)
        values["match"] = match
        conditions.append("passage_index MATCH :match")
        source = "passage_index f JOIN passages p ON p.id = f.rowid"
        return await self._select_ids(source, conditions, values, "f.rowid DESC", limit)

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
        cited = await self._database.read(lambda connection: cited_turns(connection, ids)) if ids else {}
        return {each: cited.get(each, each) for each in ids}

    async def passages(self, ids: Sequence[PassageId]) -> Sequence[Passage]:
        return await self._database.read(lambda connection: read_passages(connection, ids))

    async def find_turns(self, session_id: SessionId, seqs: Sequence[Seq]) -> Sequence[PassageId]:
        conditions = ["p.session_id = :session", "p.kind = 'turn'"]
        conditions.append("p.start_seq IN (SELECT value FROM json_each(:seqs))")
        values = {"session": session_id, "seqs": json.dumps(list(seqs))}
        return await self._select_ids("passages p", conditions, values, "p.start_seq", len(seqs))

    async def _select_ids(
        self, source: str, conditions: Sequence[str], values: Mapping[str, object], order: str, limit: int
    ) -> tuple[PassageId, ...]:
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        # No outside text is in the SQL: words are parameters.
        sql = f"SELECT p.id FROM {source} {where}ORDER BY {order} LIMIT :limit"  # noqa: S608
        found = await self._database.rows(sql, {**values, "limit": limit})
        return tuple(PassageId(row[0]) for row in found)


_COUNTS = """
    SELECT NULL, max(id) FROM passages
    UNION ALL SELECT term, doc FROM passage_terms WHERE term IN (SELECT value FROM json_each(:terms))
"""


def _row_conditions(scope: Scope, newest: int | None) -> tuple[list[str], dict[str, object]]:
    """Return the conditions that are not tags. Times also become a range of row ids, which the index can use."""
    conditions: list[str] = []
    values: dict[str, object] = {}
    within: list[str] = []
    if scope.since is not None:
        within.append("at >= :since")
        values["since"] = scope.since
    if scope.until is not None:
        within.append("at < :until")
        values["until"] = scope.until
    if within:
        of_time = f"FROM passages WHERE {' AND '.join(within)}"
        conditions += [f"p.{each}" for each in within]
        conditions.append(f"p.id BETWEEN (SELECT min(id) {of_time}) AND (SELECT max(id) {of_time})")
    if not scope.archived:
        conditions.append("p.tags NOT LIKE :archived")
        values["archived"] = f"%{ARCHIVED_TAG}%"
    if newest is not None:
        conditions.append("p.id > (SELECT max(id) FROM passages) - :newest")
        values["newest"] = newest
    if scope.in_view is not None:
        conditions.append("NOT (p.session_id = :viewed AND p.start_seq IS NOT NULL AND p.start_seq >= :viewed_from)")
        values["viewed"], values["viewed_from"] = scope.in_view
    return conditions, values
