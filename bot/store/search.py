"""Memory's search port on the database: full text by FTS5, likeness by embeddings (`RecallIndex`, `VectorShelf`).

Reads only, but for `VectorShelf.store` and `purge`. The ranking of what is found is memory's business
(`compaction.memory.recall`); here is what SQLite is asked. FTS5's own rank is BM25, so that the best come first
without the rest being sorted.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select, tuple_

from bot.store import rows
from bot.store.schema import notes, segments
from bot.store.tags import ARCHIVED_TAG, all_of, any_of, clauses_of, match_expression, place_tags
from compaction.memory.passage import Passage, PassageId, PassageKind, Source
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.ports import Counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database
    from bot.store.vectorshelf import VectorShelf
    from compaction.memory.passage import Scope

# A turn's own words count whole, its neighbours' half, and what it is filtered by not at all.
_RANK = "bm25(1.0, 0.5, 0.5, 0.0)"
# What surrounds a turn that is found: the one before it, and the few after it in which it may be taken back.
_BEFORE, _AFTER = 1, 3


class SqlRecallIndex:
    """`compaction.ports.RecallIndex` on an open `Database`. Safe for all tasks of one loop."""

    def __init__(self, database: Database, vectors: VectorShelf) -> None:
        self._database = database
        self._vectors = vectors

    async def count(self, terms: Sequence[str]) -> Counts:
        """Return how many passages have each term. See `RecallIndex.count`."""
        places, values = _listed(terms)
        asked = _COUNTS.format(places=places)
        (_, total), *found = await self._database.rows(asked, values)
        return Counts(dict(found), total or 0)

    async def full_text(
        self, terms: Sequence[str], scope: Scope, *, limit: int, newest: int | None = None
    ) -> Sequence[PassageId]:
        """Return the best passages by BM25. See `RecallIndex.full_text`."""
        if not terms or scope.impossible:
            return ()
        # BM25 counts every word of the query, so a tag that half the passages have is better looked up in the row.
        conditions, values = _beyond_tags(scope, newest)
        narrow = replace(scope, guild_id=None, channel_id=None)
        values["match"] = match_expression(any_of(terms), clauses_of(narrow))
        conditions += ["passage_index MATCH :match", f"rank MATCH '{_RANK}'"]
        for tag in place_tags(scope):
            conditions.append(f"instr(p.tags, :{tag[0]}) > 0")
            values[tag[0]] = f"{tag} "
        return await self._found(
            "passage_index f JOIN passages p ON p.id = f.rowid", conditions, values, "f.rank", limit
        )

    async def newest(
        self, scope: Scope, *, limit: int, terms: Sequence[str] = (), announcing: bool = False
    ) -> Sequence[PassageId]:
        """Return what was said last in the scope, newest first. See `RecallIndex.newest`."""
        if scope.impossible:
            return ()
        conditions, values = _beyond_tags(scope, None)
        match = match_expression(all_of(terms), clauses_of(scope, announcing=announcing))
        if not match:
            return await self._found("passages p", conditions, values, "p.id DESC", limit)
        values["match"] = match
        conditions.append("passage_index MATCH :match")
        source = "passage_index f JOIN passages p ON p.id = f.rowid"
        return await self._found(source, conditions, values, "f.rowid DESC", limit)

    async def alike(
        self, vector: Sequence[float], scope: Scope, *, model: str, limit: int
    ) -> Sequence[tuple[PassageId, float]]:
        """Return the passages whose embeddings are most like `vector`. See `RecallIndex.alike`."""
        if scope.impossible:
            return ()
        return await self._vectors.nearest(vector, scope, model=model, limit=limit)

    async def passages(self, ids: Sequence[PassageId]) -> Sequence[Passage]:
        """Return these passages in this order, with what they were made of; those that are gone are missing."""
        if not ids:
            return ()
        places, values = _listed(ids)
        found = [
            _Row(*row)
            for row in await self._database.rows(_PASSAGES.format(places=places, archived=ARCHIVED_TAG), values)
        ]
        turns = [row for row in found if row.kind == PassageKind.TURN]
        around = await _turns_around(self._database, turns)
        others: dict[tuple[str, str, str], Source] = {}
        if len(turns) < len(found):
            async with self._database.reading() as connection:
                others = await _others(connection, found)
        by_id: dict[int, Passage] = {}
        for row in found:
            passage = _passage(row, around, others)
            if passage is not None:
                by_id[row.id] = passage
        return tuple(by_id[each] for each in dict.fromkeys(ids) if each in by_id)

    async def find_turns(self, session_id: SessionId, seqs: Sequence[Seq]) -> Sequence[PassageId]:
        """Return the passages of these turns, in order of seq."""
        places, values = _listed(seqs)
        conditions = ["p.session_id = :session", "p.kind = 'turn'", f"p.start_seq IN ({places})"]
        return await self._found("passages p", conditions, values | {"session": session_id}, "p.start_seq", len(seqs))

    async def _found(
        self, source: str, conditions: Sequence[str], values: Mapping[str, object], order: str, limit: int
    ) -> tuple[PassageId, ...]:
        """Ask for passages. What the index doesn't filter is looked up for as many of the ordered as are wanted."""
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        # Nothing in it is from outside: the words are parameters.
        asked = f"SELECT p.id FROM {source} {where}ORDER BY {order} LIMIT :limit"  # noqa: S608
        found = await self._database.rows(asked, {**values, "limit": limit})
        return tuple(PassageId(row[0]) for row in found)


class _Row(NamedTuple):
    id: int
    session_id: str
    kind: str
    key: str
    start_seq: int | None
    own: str
    preceding: str
    following: str
    replaced_by: int | None
    archived: int


_COUNTS = """
    SELECT NULL, max(id) FROM passages
    UNION ALL SELECT term, doc FROM passage_terms WHERE term IN ({places})
"""
_PASSAGES = """
    SELECT p.id, p.session_id, p.kind, p."key", p.start_seq, p.own, p.preceding, p.following, c.new_seq,
    instr(p.tags, '{archived}') > 0
    FROM passages p LEFT JOIN corrections c
    ON p.kind = 'turn' AND c.session_id = p.session_id AND c.old_seq = p.start_seq
    WHERE p.id IN ({places})
"""
_AROUND = """
    WITH found (session, first, last) AS (VALUES {places})
    SELECT DISTINCT t.session_id, t.seq, t.kind, t.started_at, t.ended_at, t.parts, t.tombstone FROM found
    JOIN turns t ON t.session_id = found.session AND t.seq BETWEEN found.first AND found.last
"""

_Key = tuple[str, int]


def _beyond_tags(scope: Scope, newest: int | None) -> tuple[list[str], dict[str, object]]:
    """Return the conditions that are no tags. A time is given to the index as a range of its own numbers too."""
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


async def _turns_around(database: Database, found: Sequence[_Row]) -> dict[_Key, Turn]:
    """Return the turns that were found, with those about them, by session and seq."""
    ranges = [
        value
        for row in found
        if row.start_seq is not None
        for value in (row.session_id, row.start_seq - _BEFORE, row.start_seq + _AFTER)
    ]
    if not ranges:
        return {}
    places = ", ".join(f"(:v{at}, :v{at + 1}, :v{at + 2})" for at in range(0, len(ranges), 3))
    values = {f"v{at}": value for at, value in enumerate(ranges)}
    return {
        (session_id, seq): Turn(
            Seq(seq),
            TurnKind(kind),
            started_at,
            ended_at,
            tuple(TurnPart(*part) for part in json.loads(parts)),
            tombstone=bool(tombstone),
        )
        for session_id, seq, kind, started_at, ended_at, parts, tombstone in await database.rows(
            _AROUND.format(places=places), values
        )
    }


async def _others(connection: AsyncConnection, found: Sequence[_Row]) -> dict[tuple[str, str, str], Source]:
    """Return the notes and segments that were found, by session, kind and id."""
    others: dict[tuple[str, str, str], Source] = {}
    for kind, table, read in (
        (PassageKind.NOTE, notes, rows.note_from_row),
        (PassageKind.SEGMENT, segments, rows.segment_from_row),
    ):
        keys = [(row.session_id, row.key) for row in found if row.kind == kind]
        if keys:
            result = await connection.execute(select(table).where(tuple_(table.c.session_id, table.c.id).in_(keys)))
            others.update({(row.session_id, kind.value, row.id): read(row) for row in result})
    return others


def _passage(row: _Row, around: Mapping[_Key, Turn], others: Mapping[tuple[str, str, str], Source]) -> Passage | None:
    near: tuple[Turn, ...] = ()
    source: Source | None
    if row.kind == PassageKind.TURN:
        assert row.start_seq is not None, "a turn's passage has its seq"
        seq = row.start_seq
        source = around.get((row.session_id, seq))
        beside = (around.get((row.session_id, each)) for each in range(seq - _BEFORE, seq + _AFTER + 1))
        near = tuple(turn for turn in beside if turn is not None)
    else:
        source = others.get((row.session_id, row.kind, row.key))
    if source is None or (isinstance(source, Turn) and source.tombstone):
        return None
    return Passage(
        id=PassageId(row.id),
        session_id=SessionId(row.session_id),
        source=source,
        own=frozenset(row.own.split()),
        near=frozenset(row.preceding.split()) | frozenset(row.following.split()),
        around=near,
        replaced_by=None if row.replaced_by is None else Seq(row.replaced_by),
        archived=bool(row.archived),
    )


def _listed(values: Sequence[object]) -> tuple[str, dict[str, object]]:
    """Return the parameters of a list, and the places where they stand."""
    named = {f"i{at}": value for at, value in enumerate(values)}
    return ", ".join(f":{name}" for name in named), named
