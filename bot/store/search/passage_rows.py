"""Reads passages with their sources and surrounding turns, on a plain connection."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.store import rows
from bot.store.search.fact_passages import terms_of_facts
from bot.store.tables import notes, segments
from compaction.memory.passage import Passage, PassageId, PassageKind, PassageSource
from compaction.model import Seq, SessionId, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import Table

    from bot.store.dialects.port import PlainConnection, PlainSql

# Turns read around a found turn: one before it, and a few after it in which it may be corrected.
_BEFORE, _AFTER = 1, 3
_Key = tuple[str, int]


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


def read_passages(connection: PlainConnection, sql: PlainSql, ids: Sequence[PassageId]) -> tuple[Passage, ...]:
    """Return these passages in this order; deleted ones are missing. A turn has the terms of the facts that cite it."""
    if not ids:
        return ()
    found = [_Row(*row) for row in connection.execute(sql.passages, {"ids": json.dumps(list(ids))})]
    turn_rows = [row for row in found if row.kind == PassageKind.TURN]
    around = _turns_around(connection, sql, turn_rows)
    told = terms_of_facts(
        connection, sql, [(row.session_id, row.start_seq) for row in turn_rows if row.start_seq is not None]
    )
    others = _others(connection, [row for row in found if row.kind != PassageKind.TURN])
    by_id: dict[int, Passage] = {}
    for row in found:
        passage = _passage(row, around, others, told)
        if passage is not None:
            by_id[row.id] = passage
    return tuple(by_id[each] for each in dict.fromkeys(ids) if each in by_id)


def _turns_around(connection: PlainConnection, sql: PlainSql, found: Sequence[_Row]) -> dict[_Key, Turn]:
    """Return the found turns and those around them, by session and seq."""
    ranges = [
        (row.session_id, row.start_seq - _BEFORE, row.start_seq + _AFTER) for row in found if row.start_seq is not None
    ]
    if not ranges:
        return {}
    around: dict[_Key, Turn] = {}
    for session_id, seq, kind, started_at, ended_at, parts, tombstone in connection.execute(
        sql.around, {"ranges": json.dumps(ranges)}
    ):
        said = rows.parts_of(parts)
        around[session_id, seq] = Turn(Seq(seq), TurnKind(kind), started_at, ended_at, said, tombstone=bool(tombstone))
    return around


def _others(connection: PlainConnection, found: Sequence[_Row]) -> dict[tuple[str, str, str], PassageSource]:
    others: dict[tuple[str, str, str], PassageSource] = {}
    for row in found:
        table = notes if row.kind == PassageKind.NOTE else segments
        read: Callable[[Any], PassageSource] = (
            rows.note_from_row if row.kind == PassageKind.NOTE else rows.segment_from_row
        )
        stored = _row(connection, table, row)
        source = None if stored is None else read(stored)
        if source is not None:
            others[row.session_id, row.kind, row.key] = source
    return others


def _row(connection: PlainConnection, table: Table, row: _Row) -> Any:
    names = [column.name for column in table.columns]
    listed = ", ".join(f'"{name}"' for name in names)
    # No outside text is in the SQL.
    sql = f'SELECT {listed} FROM {table.name} WHERE session_id = :session AND "id" = :key'  # noqa: S608
    stored = connection.execute(sql, {"session": row.session_id, "key": row.key}).fetchone()
    return None if stored is None else SimpleNamespace(**dict(zip(names, stored, strict=True)))


def _passage(
    row: _Row,
    around: Mapping[_Key, Turn],
    others: Mapping[tuple[str, str, str], PassageSource],
    told: Mapping[_Key, frozenset[str]],
) -> Passage | None:
    near: tuple[Turn, ...] = ()
    own = frozenset(row.own.split())
    source: PassageSource | None
    if row.kind == PassageKind.TURN:
        assert row.start_seq is not None, "the passage of a turn has a seq"
        seq = row.start_seq
        own |= told.get((row.session_id, seq), frozenset())
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
        own_terms=own,
        nearby_terms=frozenset(row.preceding.split()) | frozenset(row.following.split()),
        around=near,
        replaced_by=None if row.replaced_by is None else Seq(row.replaced_by),
        archived=bool(row.archived),
    )
