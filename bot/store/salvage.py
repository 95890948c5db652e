"""Reads what can be read of rows that are damaged or that a newer Roomtone wrote.

Forgetting and retention need it: one row that nobody can read must not keep anybody's words. Nor shall it keep a room
from beginning, or the others from being found. A kind that this version does not know is read as another one. A fact
that cannot be read leaves a blank in its place, because other facts refer to facts by their index.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from bot.store import rows
from bot.store.rows import UNREADABLE, UnreadableRowError
from compaction.model import Fact, FactKind, Segment, Seq, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Row


T = TypeVar("T")

# JSON writes everything that is not ASCII, and some signs, in this way.
_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")


@dataclass(frozen=True, slots=True)
class Salvaged(Generic[T]):
    """What could be read of a row. `lost`: the text of the columns of which something could not be read, or None."""

    thing: T
    lost: str | None = None


def read_or_none(read: Callable[[Any], T], row: Any) -> T | None:
    """Return what `read` makes of a row; None if it cannot be read."""
    try:
        return read(row)
    except UnreadableRowError:
        return None


def salvage_turn(row: Row[Any]) -> Salvaged[Turn]:
    """Return a turn. One whose parts cannot be read has none. An unknown kind is read as an effect, which may be the
    bot's or a person's.
    """
    try:
        return Salvaged(rows.turn_from_row(row))
    except UnreadableRowError:
        pass
    turn = rows.turn_from_row(_with(row, kind=TurnKind.EFFECT.value, parts="[]"))
    try:
        return Salvaged(replace(turn, parts=rows.parts_of(row.parts)))
    except UNREADABLE:
        return Salvaged(turn, readable_text(row.parts))


def salvage_segment(row: Row[Any]) -> Salvaged[Segment]:
    """Return a segment, with blanks for the facts that cannot be read. The kind of a fact may be unknown."""
    try:
        return Salvaged(rows.segment_from_row(row))
    except UnreadableRowError:
        pass
    facts, some_lost = _facts(row)
    note_ids = _read(rows.note_ids_of, row.note_ids)
    segment = replace(
        rows.segment_from_row(_with(row, facts="[]", note_ids="[]")), facts=facts, note_ids=note_ids or ()
    )
    if not some_lost and note_ids is not None:
        return Salvaged(segment)
    return Salvaged(segment, f"{readable_text(row.facts)} {readable_text(row.note_ids)}")


def _facts(row: Row[Any]) -> tuple[tuple[Fact, ...], bool]:
    """Return the facts of a segment, and whether some of them could not be read."""
    stored = _read(json.loads, row.facts)
    if not isinstance(stored, list):
        return (), True
    read = [_read(rows.fact_of, each) or _read(_of_unknown_kind, each) for each in stored]
    return tuple(_blank(row) if fact is None else fact for fact in read), None in read


def _of_unknown_kind(fields: dict[str, Any]) -> Fact:
    return rows.fact_of({**fields, "kind": FactKind.OTHER.value})


def _blank(row: Row[Any]) -> Fact:
    return Fact((Seq(row.start_seq),), "", at=row.started_at)


def _read(read: Callable[[Any], T], stored: object) -> T | None:
    try:
        return read(stored)
    except UNREADABLE:
        return None


def _with(row: Row[Any], **columns: str) -> Row[Any]:
    """Return a row with other values in some columns."""
    return cast("Row[Any]", SimpleNamespace(**{**row._mapping, **columns}))


def readable_text(stored: object) -> str:
    """Return the text in damaged JSON, without its escapes, so that words can be looked for in it."""
    text = stored.decode("utf-8", "replace") if isinstance(stored, bytes) else str(stored)
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else " ", text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
