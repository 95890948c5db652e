"""Removes what a person said, at their request, from turns, segments, notes, summaries, search and history.

A forgotten turn keeps its number and the words of other people in it. Turns of the bot are removed too if they answer
the person, name them or repeat their words. A forgotten fact leaves a blank in its segment, because other facts refer
to it by its position. Each session is one transaction; an open room then takes over the change. Raises `StoreError`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, select, update

from bot.store import rows
from bot.store.history import rerender_summary
from bot.store.indexing import index_source
from bot.store.prompts import forget_sent_texts
from bot.store.tables import chapters, landings, notes, person_facts, segment_tiers, segments, sessions, turns
from bot.store.tier_rows import record_values
from bot.store.tiers import mark_archived
from bot.store.wiping import wipe_deleted
from compaction.language.text import plain
from compaction.memory.forgetting import FORGOTTEN, forget_in_segment, remake_paragraph
from compaction.memory.quotations import names_any, repeats, runs_of
from compaction.memory.segment_record import make_record
from compaction.model import Seq, SessionId, Turn, TurnKind
from compaction.sentence_cache import clear_sentence_caches
from compaction.speaker_names import is_called
from compaction.summary.port import REACH_TURNS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.clock import Clock
    from bot.store.database import Database
    from compaction.memory.quotations import Runs
    from compaction.model import Segment, SegmentId


# The columns of a segment that forgetting changes.
_CLEANED = ("facts", "gist", "note_ids", "summariser", "degraded", "paragraph", "paragraph_problem")


@dataclass(frozen=True, slots=True)
class StoredSpeaker:
    """A person with stored turns. `names`: latest first. `last_at`: when they last spoke, UTC epoch seconds."""

    id: str
    names: tuple[str, ...]
    last_at: float
    turn_count: int
    sessions: tuple[SessionId, ...]


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """How much was forgotten: the person's turns, the bot's answers about them, facts in segments, screen notes, and
    facts about the person (`about`)."""

    turns: int = 0
    answers: int = 0
    facts: int = 0
    notes: int = 0
    about: int = 0
    sessions: tuple[SessionId, ...] = ()


class SpeechForgetter:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def find(self, name_or_id: str, *, session_id: SessionId | None = None) -> tuple[StoredSpeaker, ...]:
        """Return the speakers with that id, or that name in any capitalisation, the latest speaker first."""
        wanted = name_or_id.strip()
        async with self._database.reading() as connection:
            everybody = await _people(connection, _select_turns(session_id))
        if wanted in everybody:
            return (everybody[wanted],)
        named = [each for each in everybody.values() if any(is_called(name, wanted) for name in each.names)]
        return tuple(sorted(named, key=lambda each: -each.last_at))

    async def forget(
        self, person: StoredSpeaker, *, session_id: SessionId | None = None, seq: int | None = None
    ) -> ForgetReport:
        """Forget what a person said: everywhere, in one session, or in one turn.

        Without a session, the facts about the person are deleted too.
        """
        where = person.sessions if session_id is None else (session_id,)
        async with self._database.reading() as connection:
            forgotten = [turn for each in where for turn in await _turns_of_speaker(connection, each, person, seq)]
            runs = runs_of(part.text for turn in forgotten for part in turn.parts if part.speaker_id == person.id)
            if session_id is None:
                where = tuple(dict.fromkeys((*where, *await _sessions_that_repeat(connection, runs))))
        total = ForgetReport()
        for each in where:
            async with self._database.writing() as connection:
                done = await self._forget_in_session(connection, each, person, seq, runs)
            total = ForgetReport(
                total.turns + done.turns,
                total.answers + done.answers,
                total.facts + done.facts,
                total.notes + done.notes,
                total.about + done.about,
                (*total.sessions, *done.sessions),
            )
        await self._refresh_open_rooms(total.sessions)
        clear_sentence_caches()
        await wipe_deleted(self._database)
        return total

    async def _refresh_open_rooms(self, done: Collection[SessionId]) -> None:
        """Raise the revision of all other open sessions: their rooms may hold quotes or facts from the changed
        sessions.
        """
        async with self._database.reading() as connection:
            found = await connection.execute(select(sessions.c.id).where(sessions.c.ended_at.is_(None)))
            open_sessions = [SessionId(each) for each in found.scalars().all()]
        for session_id in open_sessions:
            if session_id not in done:
                async with self._database.writing() as connection:
                    await rerender_summary(connection, session_id, now=self._clock.now())

    async def _forget_in_session(
        self, connection: AsyncConnection, session_id: SessionId, person: StoredSpeaker, seq: int | None, runs: Runs
    ) -> ForgetReport:
        theirs = await _turns_of_speaker(connection, session_id, person, seq)
        names = {plain(part.speaker) for turn in theirs for part in turn.parts if part.speaker_id == person.id}
        answers = await _answers_about(connection, session_id, theirs, names if seq is None else (), runs)
        for turn in theirs:
            await _blank_turn(connection, session_id, turn, person.id)
        for turn in answers:
            await _blank_turn(connection, session_id, turn, turn.parts[0].speaker_id)
        gone = await _delete_notes(connection, session_id, {*names, *person.names}) if seq is None else frozenset()
        seqs = frozenset(turn.seq for turn in (*theirs, *answers))
        facts = await self._clean_segments(connection, session_id, seqs, gone, runs)
        about = await _delete_about(connection, session_id, person.id, seq)
        if theirs or answers or gone or facts:
            # Nothing in the text of an earlier summary shows whether it contains forgotten words.
            await connection.execute(update(landings).where(landings.c.session_id == session_id).values(summary=None))
        changed = theirs or answers or gone or facts or about
        if changed:
            await rerender_summary(connection, session_id, now=self._clock.now())
        await forget_sent_texts(connection)
        return ForgetReport(len(theirs), len(answers), facts, len(gone), about, (session_id,) if changed else ())

    async def _clean_segments(
        self,
        connection: AsyncConnection,
        session_id: SessionId,
        seqs: frozenset[Seq],
        gone_notes: frozenset[str],
        runs: Runs,
    ) -> int:
        """Remove forgotten text from the segments, and what was made of it or after it: paragraphs and chapters.

        Returns the number of removed facts.
        """
        found = await connection.execute(
            select(segments).where(segments.c.session_id == session_id).order_by(segments.c.start_seq)
        )
        stored = [rows.segment_from_row(row) for row in found]
        superseded = frozenset(ref for segment in stored for fact in segment.facts for ref in fact.supersedes)
        count = 0
        touched_ids: list[SegmentId] = []
        for place, segment in enumerate(stored):
            # A bare answer is folded with its question, which may come just before the batch.
            heard_from = segment.start - REACH_TURNS
            touched = any(heard_from <= seq < segment.end for seq in seqs) or gone_notes & set(segment.note_ids)
            if touched:
                touched_ids.append(segment.id)
            # A recursive summary may repeat text from earlier segments.
            elif not (touched_ids and segment.is_recursive):
                continue
            heard = await _turns(connection, _select_turns(session_id, heard_from, segment.end))
            said = [turn for turn in heard if turn.seq >= segment.start]
            left, went = forget_in_segment(segment, said, heard, seqs, gone_notes, runs)
            if segment.is_recursive:
                left = remake_paragraph(left, stored[:place], said)
            stored[place] = left
            count += went
            await _store_segment(connection, left)
            await self._rebuild_record(connection, left, superseded)
        if touched_ids:
            await _forget_what_followed(connection, stored, touched_ids)
        return count

    async def _rebuild_record(self, connection: AsyncConnection, segment: Segment, superseded: frozenset[str]) -> None:
        same = (segment_tiers.c.session_id == segment.session_id) & (segment_tiers.c.segment_id == segment.id)
        row = (await connection.execute(select(segment_tiers).where(same))).one_or_none()
        if row is None:
            return
        if row.archived_at is not None:
            await mark_archived(connection, segment.session_id, segment.id)
        if row.compressed_at is None:
            return
        blank = {f"{segment.id}#{index}" for index, fact in enumerate(segment.facts) if not fact.text}
        record = make_record(
            segment,
            superseded=superseded | blank,
            task_completed=bool(row.task_completed),
            at=row.compressed_at,
        )
        record = replace(record, original_tokens=row.original_tokens)
        await connection.execute(update(segment_tiers).where(same).values(record_values(record)))


def _select_turns(session_id: SessionId | None, start: int = 0, end: int | None = None) -> Select[Any]:
    wanted = select(turns).where(turns.c.tombstone.is_(False), turns.c.seq >= start)
    if session_id is not None:
        wanted = wanted.where(turns.c.session_id == session_id)
    if end is not None:
        wanted = wanted.where(turns.c.seq < end)
    return wanted.order_by(turns.c.started_at, turns.c.session_id, turns.c.seq)


async def _turns(connection: AsyncConnection, wanted: Select[Any]) -> list[Turn]:
    return [rows.turn_from_row(row) for row in await connection.execute(wanted)]


async def _turns_of_speaker(
    connection: AsyncConnection, session_id: SessionId, person: StoredSpeaker, seq: int | None
) -> list[Turn]:
    return [
        turn
        for turn in await _turns(connection, _select_turns(session_id))
        if (seq is None or turn.seq == seq) and any(part.speaker_id == person.id for part in turn.parts)
    ]


async def _answers_about(
    connection: AsyncConnection, session_id: SessionId, theirs: list[Turn], names: Collection[str], runs: Runs
) -> list[Turn]:
    """Return the bot's turns that answer one of these turns, contain a name, or repeat the forgotten words."""
    answered = {turn.seq + 1 for turn in theirs if turn.kind is TurnKind.SPEECH}
    seqs = {turn.seq for turn in theirs}
    return [
        turn
        for turn in await _turns(connection, _only_bot(_select_turns(session_id)))
        if turn.seq not in seqs
        and (
            (turn.seq in answered and turn.kind is TurnKind.ASSISTANT)
            or any(names_any(part.text, names) or repeats(part.text, runs) for part in turn.parts)
        )
    ]


async def _sessions_that_repeat(connection: AsyncConnection, runs: Runs) -> list[SessionId]:
    """Return the sessions in which the bot repeated any of these word sequences."""
    found = await connection.execute(_only_bot(_select_turns(None)))
    return [
        SessionId(row.session_id)
        for row in found
        if any(repeats(part.text, runs) for part in rows.turn_from_row(row).parts)
    ]


def _only_bot(wanted: Select[Any]) -> Select[Any]:
    """Narrow the query to the bot's replies and to effect turns."""
    return wanted.where(turns.c.kind.in_([TurnKind.ASSISTANT.value, TurnKind.EFFECT.value]))


async def _people(connection: AsyncConnection, wanted: Select[Any]) -> dict[str, StoredSpeaker]:
    found: dict[str, StoredSpeaker] = {}
    for row in await connection.execute(wanted):
        for speaker_id, speaker, _ in json.loads(row.parts):
            before = found.get(speaker_id) or StoredSpeaker(speaker_id, (), 0.0, 0, ())
            found[speaker_id] = StoredSpeaker(
                speaker_id,
                tuple(dict.fromkeys((speaker, *before.names))),
                max(before.last_at, row.started_at),
                before.turn_count + 1,
                tuple(dict.fromkeys((*before.sessions, SessionId(row.session_id)))),
            )
    return found


def _same_name(name: str, wanted: str) -> bool:
    return plain(name).casefold() == plain(wanted).casefold()


async def _blank_turn(connection: AsyncConnection, session_id: SessionId, turn: Turn, person_id: str) -> None:
    left = tuple(part for part in turn.parts if part.speaker_id != person_id)
    blanked = replace(turn, parts=left, tombstone=not left)
    values = rows.turn_values(session_id, blanked)
    same = (turns.c.session_id == session_id) & (turns.c.seq == turn.seq)
    # Triggers remove the turn from the index.
    await connection.execute(update(turns).where(same).values(parts=values["parts"], tombstone=values["tombstone"]))
    if left:
        await index_source(connection, session_id, blanked)


async def _delete_notes(connection: AsyncConnection, session_id: SessionId, names: Collection[str]) -> frozenset[str]:
    found = await connection.execute(select(notes.c.id, notes.c.who).where(notes.c.session_id == session_id))
    gone = frozenset(row.id for row in found if any(_same_name(row.who, name) for name in names))
    for note_id in gone:
        await connection.execute(delete(notes).where(notes.c.session_id == session_id, notes.c.id == note_id))
    return gone


async def _delete_about(connection: AsyncConnection, session_id: SessionId, person_id: str, seq: int | None) -> int:
    theirs = (person_facts.c.session_id == session_id) & (person_facts.c.person_id == person_id)
    if seq is not None:
        theirs &= person_facts.c.turn_seq == seq
    return (await connection.execute(delete(person_facts).where(theirs))).rowcount


async def _forget_what_followed(
    connection: AsyncConnection, stored: Sequence[Segment], touched_ids: Sequence[SegmentId]
) -> None:
    """Clear the paragraphs and delete the chapters that were made of the touched segments, or later.

    A model wrote them, and it had read the forgotten words or a text made of them. Chapters are made again by the
    runs of an open session. Recursive paragraphs have been made again already.
    """
    session_id = stored[0].session_id
    touched = [each for each in stored if each.id in touched_ids]
    first = min(each.start for each in touched)
    # A repair gives a segment a later time; the landings have the first one.
    landed = await connection.scalar(
        select(func.min(landings.c.landed_at)).where(
            landings.c.session_id == session_id, landings.c.segment_id.in_(touched_ids)
        )
    )
    since = min([*(each.created_at for each in touched), *([] if landed is None else [landed])])
    for each in stored:
        if each.paragraph and not each.is_recursive and (each.end > first or each.created_at >= since):
            same = (segments.c.session_id == session_id) & (segments.c.id == each.id)
            await connection.execute(update(segments).where(same).values(paragraph="", paragraph_problem=FORGOTTEN))
    followed = (chapters.c.end_seq > first) | (chapters.c.created_at >= since)
    await connection.execute(delete(chapters).where(chapters.c.session_id == session_id, followed))


async def _store_segment(connection: AsyncConnection, segment: Segment) -> None:
    same = (segments.c.session_id == segment.session_id) & (segments.c.id == segment.id)
    values = rows.segment_values(segment.session_id, segment)
    await connection.execute(update(segments).where(same).values({key: values[key] for key in _CLEANED}))
    await index_source(connection, segment.session_id, segment)
