"""Memory's search port on the database: full text by FTS5, likeness by embeddings (`RecallIndex`, `VectorShelf`).

Reads only, but for `VectorShelf.store` and `purge`. The ranking of what is found is memory's business
(`compaction.memory.recall`); here is what SQLite is asked. FTS5's own rank is BM25, so that the best come first
without the rest being sorted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, select, text, tuple_

from bot.store import rows
from bot.store.schema import corrections, notes, passages, segments, turns
from bot.store.tags import clauses_of, match_expression
from compaction.memory.passage import Passage, PassageId, PassageKind, Source
from compaction.model import Seq, SessionId, Turn
from compaction.ports import Counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Row
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
        async with self._database.reading() as connection:
            total = (await connection.execute(text("SELECT max(id) FROM passages"))).scalar_one() or 0
            found = await connection.execute(_COUNTS, {"terms": list(terms)})
            return Counts({row.term: row.doc for row in found}, total)

    async def full_text(
        self,
        terms: Sequence[str],
        scope: Scope,
        *,
        limit: int,
        newest: int | None = None,
        announcing: bool = False,
    ) -> Sequence[PassageId]:
        """Return the best passages by BM25. See `RecallIndex.full_text`."""
        if not terms or scope.impossible:
            return ()
        match = match_expression(tuple(terms), clauses_of(scope, announcing=announcing))
        return await self._matching(match, scope, limit=limit, newest=newest, by_rank=True)

    async def newest(self, scope: Scope, *, limit: int) -> Sequence[PassageId]:
        """Return what was said last in the scope, newest first."""
        if scope.impossible:
            return ()
        return await self._matching(match_expression((), clauses_of(scope)), scope, limit=limit, newest=None)

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
        async with self._database.reading() as connection:
            found = (await connection.execute(select(passages).where(passages.c.id.in_(ids)))).all()
            around = await _turns_around(connection, found)
            others = await _others(connection, found)
            replaced = await _corrected(connection, found)
        by_id: dict[int, Passage] = {}
        for row in found:
            passage = _passage(row, around, others, replaced)
            if passage is not None:
                by_id[row.id] = passage
        return tuple(by_id[each] for each in dict.fromkeys(ids) if each in by_id)

    async def find_turns(self, session_id: SessionId, seqs: Sequence[Seq]) -> Sequence[PassageId]:
        """Return the passages of these turns, in order of seq."""
        wanted = (
            select(passages.c.id)
            .where(passages.c.session_id == session_id, passages.c.start_seq.in_(seqs))
            .where(passages.c.kind == PassageKind.TURN.value)
            .order_by(passages.c.start_seq)
        )
        async with self._database.reading() as connection:
            return tuple(PassageId(each) for each in (await connection.execute(wanted)).scalars())

    async def _matching(
        self, match: str, scope: Scope, *, limit: int, newest: int | None, by_rank: bool = False
    ) -> tuple[PassageId, ...]:
        """Ask the index. Conditions beyond its own are looked up only for as many of the ranked as are wanted."""
        conditions, values = _beyond_tags(scope, newest)
        if match:
            conditions.append("passage_index MATCH :match")
            values["match"] = match
        if by_rank:
            conditions.append(f"rank MATCH '{_RANK}'")
        source = "passage_index f JOIN passages p ON p.id = f.rowid" if match else "passages p"
        order = "f.rank" if by_rank else "f.rowid DESC" if match else "p.id DESC"
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        # Nothing in it is from outside: the words are parameters.
        asked = text(f"SELECT p.id FROM {source} {where}ORDER BY {order} LIMIT :limit")  # noqa: S608
        async with self._database.reading() as connection:
            found = await connection.execute(asked, values | {"limit": limit})
            return tuple(PassageId(each) for each in found.scalars())


_COUNTS = text("SELECT term, doc FROM passage_terms WHERE term IN :terms").bindparams(
    bindparam("terms", expanding=True)
)
_AROUND = """
    WITH found (session, first, last) AS (VALUES {values})
    SELECT DISTINCT turns.* FROM found
    JOIN turns ON turns.session_id = found.session AND turns.seq BETWEEN found.first AND found.last
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
    if newest is not None:
        conditions.append("p.id > (SELECT max(id) FROM passages) - :newest")
        values["newest"] = newest
    if scope.in_view is not None:
        conditions.append("NOT (p.session_id = :viewed AND p.start_seq IS NOT NULL AND p.start_seq >= :viewed_from)")
        values["viewed"], values["viewed_from"] = scope.in_view
    return conditions, values


async def _turns_around(connection: AsyncConnection, found: Sequence[Row[Any]]) -> dict[_Key, Turn]:
    """Return the turns that were found, with those about them, by session and seq."""
    ranges = [
        value
        for row in found
        if row.kind == PassageKind.TURN
        for value in (row.session_id, row.start_seq - _BEFORE, row.start_seq + _AFTER)
    ]
    if not ranges:
        return {}
    places = ", ".join(f"(:v{at}, :v{at + 1}, :v{at + 2})" for at in range(0, len(ranges), 3))
    asked = text(_AROUND.format(values=places)).columns(*turns.c)
    result = await connection.execute(asked, {f"v{at}": value for at, value in enumerate(ranges)})
    return {(row.session_id, row.seq): rows.turn_from_row(row) for row in result}


async def _others(connection: AsyncConnection, found: Sequence[Row[Any]]) -> dict[tuple[str, str, str], Source]:
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


async def _corrected(connection: AsyncConnection, found: Sequence[Row[Any]]) -> dict[_Key, Seq]:
    """Return which of the turns found are corrected, and by which turn."""
    keys = [(row.session_id, row.start_seq) for row in found if row.kind == PassageKind.TURN]
    if not keys:
        return {}
    wanted = select(corrections).where(tuple_(corrections.c.session_id, corrections.c.old_seq).in_(keys))
    return {(row.session_id, row.old_seq): Seq(row.new_seq) for row in await connection.execute(wanted)}


def _passage(
    row: Row[Any],
    around: Mapping[_Key, Turn],
    others: Mapping[tuple[str, str, str], Source],
    replaced: Mapping[_Key, Seq],
) -> Passage | None:
    near: tuple[Turn, ...] = ()
    source: Source | None
    if row.kind == PassageKind.TURN:
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
        replaced_by=replaced.get((row.session_id, row.start_seq)) if row.start_seq is not None else None,
    )
