"""Makes a session's segments anew after something was forgotten.

A model that wrote a later segment had read the summary of the earlier ones, and may have said any of it again. So every
segment made of forgotten words, or after them, loses its paragraph, gets a gist of the facts that are left, and so do
their records. The next fold of an open session writes the summary anew.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, select, update

from bot.store import rows
from bot.store.inserts import execute_for_each
from bot.store.search.indexing import index_segments_again
from bot.store.stored_memory import segment_rows
from bot.store.tables import landings, segment_tiers, segments
from bot.store.thread_work import in_thread
from bot.store.tier_rows import record_values, text_of_record
from bot.store.tiers import mark_archived
from compaction.language.terms import terms
from compaction.memory.forgotten_turns import is_of_bot
from compaction.memory.quotations import is_quotation, names_any, quoted_in
from compaction.memory.segment_forgetting import forget_in_segment
from compaction.memory.segment_record import make_record
from compaction.summary.extractive import make_gist
from compaction.summary.port import REACH_TURNS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.memory.restating import ForgottenWords
    from compaction.model import Segment, Seq, SessionId, Turn

# The columns of a segment that are made anew.
_REMADE = ("facts", "gist", "note_ids", "created_at", "paragraph")


@dataclass(frozen=True, slots=True)
class Remade:
    """What was made anew. `blanked`: the refs of removed facts. `from_seq`: the first turn of the first segment.
    `segments`: the ids of all.
    """

    blanked: tuple[str, ...] = ()
    from_seq: int | None = None
    segments: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is stored of a session's folds. `recorded`: the words of each segment's record."""

    segments: list[Segment]
    recorded: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The segments to store, and the refs of the facts that they have lost."""

    changed: tuple[Segment, ...]
    blanked: tuple[str, ...]


async def rebuild_segments(
    connection: AsyncConnection,
    session_id: SessionId,
    left: Sequence[Turn],
    *,
    seqs: frozenset[Seq],
    gone_notes: frozenset[str],
    words: ForgottenWords,
    now: float,
) -> Remade:
    """Make everything anew that was made of forgotten text or after it, inside a write transaction.

    `left`: the session's remaining turns. `seqs`: the turns of which something was forgotten. `now`: UTC epoch
    seconds.
    """
    stored = await _read_stored(connection, session_id)
    touched = await in_thread(connection, lambda: _touched(stored, left, seqs, gone_notes, words))
    if not touched:
        return Remade()
    first = min(each.start for each in touched)
    since = await _made_since(connection, session_id, touched)
    affected = {each.id for each in touched} | {
        each.id for each in stored.segments if each.end > first or each.created_at >= since
    }
    plan = await in_thread(
        connection,
        lambda: _remake(stored.segments, affected, left, seqs=seqs, gone_notes=gone_notes, words=words, now=now),
    )
    superseded = frozenset(ref for segment in stored.segments for fact in segment.facts for ref in fact.closes)
    await store_segments(connection, session_id, plan.changed)
    await rebuild_records(connection, session_id, plan.changed, superseded, now=now)
    return Remade(plan.blanked, first, frozenset(affected))


async def _read_stored(connection: AsyncConnection, session_id: SessionId) -> _Stored:
    found = await segment_rows(connection, session_id)
    read = await in_thread(connection, lambda: list(map(rows.segment_from_row, found)))
    records = await connection.execute(select(segment_tiers).where(segment_tiers.c.session_id == session_id))
    return _Stored(
        segments=read,
        recorded={row.segment_id: text_of_record(row) for row in records},
    )


def _touched(
    stored: _Stored,
    left: Sequence[Turn],
    seqs: frozenset[Seq],
    gone_notes: frozenset[str],
    words: ForgottenWords,
) -> list[Segment]:
    """Return the segments that were made of forgotten text, or that say it again."""
    # Both may have thousands, and turns of other rooms wait meanwhile.
    ordered = sorted(seqs)
    return [
        each
        for each in stored.segments
        # A bare answer is folded with its question, which may come just before the batch.
        if bisect_left(ordered, each.start - REACH_TURNS) < bisect_left(ordered, each.end)
        or gone_notes & set(each.note_ids)
        or _says_again(each, left, words, stored.recorded.get(each.id, ""))
    ]


async def _made_since(connection: AsyncConnection, session_id: SessionId, touched: Sequence[Segment]) -> float:
    """Return when the first of these segments was made, UTC epoch seconds: a model may have said its words
    again in everything that it made afterwards.
    """
    since = min(each.created_at for each in touched)
    # A segment that was made anew has a later time; the landings have the first one.
    landed = await connection.scalar(
        select(func.min(landings.c.landed_at)).where(
            landings.c.session_id == session_id, landings.c.segment_id.in_([each.id for each in touched])
        )
    )
    return since if landed is None else min(since, landed)


def _says_again(segment: Segment, left: Sequence[Turn], words: ForgottenWords, record: str) -> bool:
    facts = (fact.text for fact in segment.facts if segment.is_by_model)
    # A record is made of the facts, but an imported segment has none, and its record those of before.
    told = " ".join((segment.gist, segment.paragraph, *facts, "" if segment.facts else record))
    if words.quoted_or_named_in(told):
        said = [part.text for turn in heard_in(left, segment) for part in turn.parts]
        # What others say of the person, or said as the person did, is theirs.
        named = {name for name in words.names if not any(names_any(text, {name}) for text in said)}
        quoted = quoted_in(told, words.runs).difference(*(quoted_in(text, words.runs) for text in said))
        return any(map(is_quotation, quoted)) or names_any(told, named)
    return False


def heard_in(left: Sequence[Turn], segment: Segment) -> Sequence[Turn]:
    """Return those of the turns, which are in order, that a segment is made of, and those just before it."""
    first, end = (
        bisect_left(left, seq, key=lambda turn: turn.seq) for seq in (segment.start - REACH_TURNS, segment.end)
    )
    return left[first:end]


def _remake(
    stored: Sequence[Segment],
    affected: Collection[str],
    left: Sequence[Turn],
    *,
    seqs: frozenset[Seq],
    gone_notes: frozenset[str],
    words: ForgottenWords,
    now: float,
) -> _Plan:
    changed: list[Segment] = []
    blanked: list[str] = []
    said = frozenset(term for turn in left if not is_of_bot(turn) for part in turn.parts for term in terms(part.text))
    for before in stored:
        if before.id not in affected:
            continue
        made, _ = forget_in_segment(before, seqs, gone_notes)
        if made.is_by_model:
            # A model that had read the words may have told them again, and cited others' turns for it.
            told = [words.quoted_or_named_in(fact.text) or words.has_rare_word(fact.text, said) for fact in made.facts]
            facts = tuple(fact.blanked() if again else fact for fact, again in zip(made.facts, told, strict=True))
            made = replace(made, facts=facts, gist=make_gist(facts))
        made = replace(made, paragraph="", created_at=now)
        blanked += blanked_refs(before, made)
        changed.append(made)
    return _Plan(tuple(changed), tuple(blanked))


def blanked_refs(before: Segment, made: Segment) -> list[str]:
    """Return the refs of the facts that a segment has lost."""
    pairs = enumerate(zip(before.facts, made.facts, strict=True))
    return [f"{before.id}#{index}" for index, (old, new) in pairs if old.text and not new.text]


async def store_segments(connection: AsyncConnection, session_id: SessionId, made: Sequence[Segment]) -> None:
    """Store and index the segments, with few statements: a long session has a thousand, and turns wait meanwhile."""
    if not made:
        return
    same = (segments.c.session_id == session_id) & (segments.c.id == bindparam("named"))
    values = await in_thread(connection, lambda: [rows.segment_values(session_id, each) for each in made])
    columns: dict[str, object] = {key: bindparam(f"new_{key}") for key in _REMADE}
    await execute_for_each(
        connection,
        update(segments).where(same).values(columns),
        [{"named": each["id"]} | {f"new_{key}": each[key] for key in _REMADE} for each in values],
    )
    # Triggers have removed the old text from the index.
    await index_segments_again(connection, session_id, made)


async def rebuild_records(
    connection: AsyncConnection,
    session_id: SessionId,
    made: Sequence[Segment],
    superseded: frozenset[str],
    *,
    now: float,
) -> None:
    """Make the archive records of these segments anew, inside a write transaction. `superseded`: refs of facts."""
    of_session = select(segment_tiers).where(segment_tiers.c.session_id == session_id)
    stored = {row.segment_id: row for row in await connection.execute(of_session)}
    for segment in made:
        row = stored.get(segment.id)
        if row is None:
            continue
        if row.archived_at is not None:
            await mark_archived(connection, session_id, segment.id)
        if row.compressed_at is None:
            continue
        blank = {f"{segment.id}#{index}" for index, fact in enumerate(segment.facts) if not fact.text}
        record = make_record(segment, superseded=superseded | blank, task_completed=bool(row.task_completed), at=now)
        record = replace(record, original_tokens=row.original_tokens)
        same = (segment_tiers.c.session_id == session_id) & (segment_tiers.c.segment_id == segment.id)
        await connection.execute(update(segment_tiers).where(same).values(record_values(record)))
