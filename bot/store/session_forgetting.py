"""Forgets a person in one session: in its turns, its notes, and everything that was made of them.

`bot.store.speech_forgetting` does this for each session. All is found by the ids of people, turns and notes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, bindparam, delete, select, update

from bot.store import rows
from bot.store.history import rerender_summary, segments_of, turns_where
from bot.store.inserts import execute_for_each
from bot.store.own_rows import empty_words_by_models, forget_own_rows
from bot.store.posted_transcripts import mark_stale
from bot.store.search.passages import index_segments_again, index_source
from bot.store.tables import notes, person_facts, segment_tiers, segments, sessions, turns
from bot.store.tiers import drop_record, mark_archived
from compaction.memory.forgetting import forget_in_segments, has_part_of, turns_of_bot, without_part_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.model import Segment, Seq, SessionId, Turn


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """How much was forgotten: the person's turns, the bot's answers about them, facts in segments, screen notes,
    facts about the person (`about`), servers whose settings named them (`rules`), and what models were sent there
    (`prompts`).
    """

    turns: int = 0
    answers: int = 0
    facts: int = 0
    notes: int = 0
    about: int = 0
    rules: int = 0
    prompts: int = 0
    sessions: tuple[SessionId, ...] = ()

    @classmethod
    def of_sessions(cls, reports: Iterable[ForgetReport]) -> ForgetReport:
        """Return the sum of what was forgotten in single sessions."""
        made = tuple(reports)
        counts = {name: sum(getattr(each, name) for each in made) for name in _COUNTED}
        return cls(**counts, sessions=tuple(each for report in made for each in report.sessions))


_COUNTED = ("turns", "answers", "facts", "notes", "about")


async def forget_in_session(
    connection: AsyncConnection,
    session_id: SessionId,
    person_id: str,
    *,
    from_seq: int,
    seq: int | None,
    now: float,
) -> ForgetReport:
    """Forget what a person said and showed in a session, inside a write transaction.

    `from_seq`: the first turn that may tell of it; what the bot says from there on goes
    too. `seq`: what they said in this turn only. `now`: UTC epoch seconds.
    """
    said = await turns_where(connection, turns.c.session_id == session_id, turns.c.tombstone.is_(False))
    theirs = [turn for turn in said if (seq is None or turn.seq == seq) and has_part_of(turn, person_id)]
    answers = turns_of_bot(said, from_seq=from_seq)
    await _store_turns(
        connection,
        session_id,
        [without_part_of(turn, person_id) for turn in theirs]
        + [without_part_of(turn, turn.parts[0].speaker_id) for turn in answers],
    )
    gone = await _delete_notes(connection, session_id, person_id) if seq is None else frozenset()
    seqs = frozenset(turn.seq for turn in (*theirs, *answers))
    facts = await _forget_in_segments(connection, session_id, seqs=seqs, gone_notes=gone, now=now)
    about = await _delete_facts(connection, session_id, None if seq is not None else person_id, seqs, facts)
    changed = bool(seqs or gone or facts or about)
    if changed:
        if seq is None:
            await forget_own_rows(connection, person_id, session_id=session_id)
        await empty_words_by_models(connection, session_id)
        await mark_stale(connection, session_id, seqs, now=now)
        await rerender_summary(connection, session_id)
        more = update(sessions).where(sessions.c.id == session_id).values(forgettings=sessions.c.forgettings + 1)
        await connection.execute(more)
    return ForgetReport(
        len(theirs), len(answers), len(facts), len(gone), about, sessions=(session_id,) if changed else ()
    )


def select_turns(session_id: SessionId | None) -> Select[Any]:
    """Select the turns that are not forgotten, of all sessions or of one."""
    wanted = select(turns).where(turns.c.tombstone.is_(False))
    return wanted if session_id is None else wanted.where(turns.c.session_id == session_id)


# The columns of a turn of which some may be taken out.
_LEFT = ("parts", "tombstone", "told_to", "sources")


async def _store_turns(connection: AsyncConnection, session_id: SessionId, left: Sequence[Turn]) -> None:
    """Store what is left of these turns, in few statements: a long session has thousands."""
    same = (turns.c.session_id == session_id) & (turns.c.seq == bindparam("numbered"))
    new: dict[str, object] = {each: bindparam(f"new_{each}") for each in _LEFT}
    values = await asyncio.to_thread(lambda: [rows.turn_values(session_id, turn) for turn in left])
    # Triggers remove the turns from the index.
    await execute_for_each(
        connection,
        update(turns).where(same).values(new),
        [{"numbered": each["seq"]} | {f"new_{name}": each[name] for name in _LEFT} for each in values],
    )
    for turn in left:
        if turn.parts:
            await index_source(connection, session_id, turn)


async def _delete_notes(connection: AsyncConnection, session_id: SessionId, person_id: str) -> frozenset[str]:
    """Delete the notes of a person's screens, and return their ids."""
    theirs = (notes.c.session_id == session_id) & (notes.c.person_id == person_id)
    gone = frozenset(await connection.scalars(select(notes.c.id).where(theirs)))
    await connection.execute(delete(notes).where(theirs))
    return gone


async def _delete_facts(
    connection: AsyncConnection,
    session_id: SessionId,
    person_id: str | None,
    seqs: Collection[int],
    lost: Collection[str],
) -> int:
    """Delete the facts about a person, and those made of forgotten turns or facts. `lost`: the refs of such facts."""
    of_session = select(person_facts).where(person_facts.c.session_id == session_id)
    gone = [
        {"gone": row.id}
        for row in await connection.execute(of_session)
        if row.person_id == person_id or row.turn_seq in seqs or row.id in lost
    ]
    await execute_for_each(connection, delete(person_facts).where(person_facts.c.id == bindparam("gone")), gone)
    return len(gone)


# The columns of a segment that are made anew.
_REMADE = ("facts", "heading", "gist", "note_ids", "created_at", "paragraph")


async def _forget_in_segments(
    connection: AsyncConnection, session_id: SessionId, *, seqs: frozenset[Seq], gone_notes: frozenset[str], now: float
) -> frozenset[str]:
    """Take out what was made of these turns and notes, inside a write transaction. Returns the refs of lost facts.

    `now`: UTC epoch seconds.

    The records of changed segments go too; they are made again when they are next asked for.
    """
    before = await segments_of(connection, session_id)
    # In a thread: a long session has a thousand.
    after = await asyncio.to_thread(forget_in_segments, before, seqs, gone_notes)
    changed = [replace(made, created_at=now) for old, made in zip(before, after, strict=True) if made != old]
    await _store_segments(connection, session_id, changed)
    await _drop_records(connection, session_id, {each.id for each in changed})
    return frozenset(
        f"{old.id}#{index}"
        for old, made in zip(before, after, strict=True)
        for index, (was, left) in enumerate(zip(old.facts, made.facts, strict=True))
        if was.text and not left.text
    )


async def _store_segments(connection: AsyncConnection, session_id: SessionId, made: Sequence[Segment]) -> None:
    """Store and index the segments, with few statements: a long session has a thousand, and turns wait meanwhile."""
    same = (segments.c.session_id == session_id) & (segments.c.id == bindparam("named"))
    values = await asyncio.to_thread(lambda: [rows.segment_values(session_id, each) for each in made])
    columns: dict[str, object] = {key: bindparam(f"new_{key}") for key in _REMADE}
    await execute_for_each(
        connection,
        update(segments).where(same).values(columns),
        [{"named": each["id"]} | {f"new_{key}": each[key] for key in _REMADE} for each in values],
    )
    # Triggers have removed the old text from the index.
    await index_segments_again(connection, session_id, made)


async def _drop_records(connection: AsyncConnection, session_id: SessionId, ids: Collection[str]) -> None:
    theirs = (segment_tiers.c.session_id == session_id) & segment_tiers.c.segment_id.in_(sorted(ids))
    for row in (await connection.execute(select(segment_tiers).where(theirs))).all():
        await drop_record(connection, session_id, row.segment_id)
        if row.archived_at is not None:
            await mark_archived(connection, session_id, row.segment_id)
