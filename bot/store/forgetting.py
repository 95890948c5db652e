"""Removes what a person said, at their request, from turns, segments, notes, summaries, search and history.

A forgotten turn keeps its number and the words of other people in it. Turns of the bot are removed too if they answer
the person, name them or say their words again. A forgotten fact leaves a blank in its segment, because other facts
refer to it by its position. Everything made of forgotten text or after it is made anew (`bot.store.rebuilding`). Each
session is one transaction; an open room then takes over the change. Raises `StoreError`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, select, update

from bot.store import rows
from bot.store.forgotten import NOTHING_MADE, list_session, list_words
from bot.store.history import rerender_summary
from bot.store.indexing import index_source
from bot.store.inserts import execute_for_each
from bot.store.prompts import forget_sent_texts
from bot.store.rebuilding import rebuild_segments
from bot.store.servers import drop_person, servers_that_name
from bot.store.speakers import StoredSpeaker, read_speakers
from bot.store.tables import (
    chapters,
    guild_settings,
    landings,
    notes,
    person_facts,
    person_forgets,
    segments,
    sessions,
    turns,
)
from bot.store.wiping import wipe_deleted
from compaction.language.terms import terms
from compaction.language.text import plain
from compaction.memory.forgotten_turns import answers_to_forget, has_part_of, without_part_of, words_in_session
from compaction.memory.restating import ForgottenWords, forgotten_words
from compaction.model import SessionId, Turn, TurnKind
from compaction.sentence_cache import clear_sentence_caches
from compaction.speaker_names import is_called

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from sqlalchemy import Row, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.clock import Clock
    from bot.store.database import Database

# The kinds of the bot's own turns.
_OF_BOT = (TurnKind.ASSISTANT, TurnKind.EFFECT)


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """How much was forgotten: the person's turns, the bot's answers about them, facts in segments, screen notes,
    facts about the person (`about`), and servers whose settings named them (`rules`). `wiped`: no byte of it is left in
    the database's index and journal.
    """

    turns: int = 0
    answers: int = 0
    facts: int = 0
    notes: int = 0
    about: int = 0
    rules: int = 0
    sessions: tuple[SessionId, ...] = ()
    wiped: bool = True


class SpeechForgetter:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def find(self, name_or_id: str, *, session_id: SessionId | None = None) -> tuple[StoredSpeaker, ...]:
        """Return the speakers with that id, or that name in any capitalisation, the latest speaker first."""
        wanted = name_or_id.strip()
        if (known := await self.find_by_id(wanted, session_id=session_id)) is not None:
            return (known,)
        async with self._database.reading() as connection:
            everybody = await read_speakers(connection, _select_turns(session_id))
        named = [each for each in everybody.values() if any(is_called(name, wanted) for name in each.names)]
        return tuple(sorted(named, key=lambda each: -each.last_at))

    async def find_by_id(self, person_id: str, *, session_id: SessionId | None = None) -> StoredSpeaker | None:
        """Return the speaker with that id, or who has it in a server's settings, or None."""
        theirs = _select_turns(session_id).where(turns.c.parts.contains(f'"{person_id}"', autoescape=True))
        async with self._database.reading() as connection:
            known = (await read_speakers(connection, theirs)).get(person_id)
            if known is None and session_id is None and (number := _discord_id(person_id)) is not None:
                named = await servers_that_name(connection, number)
                known = StoredSpeaker(person_id, (), 0.0, 0, ()) if named else None
        return known

    async def words_of(
        self, person: StoredSpeaker, *, session_id: SessionId | None = None, seq: int | None = None
    ) -> ForgottenWords:
        """Return the words that `forget` would remove. Unless it is one turn, the person's names and the notes of their
        screen are among them: a model or the bot may have told what it showed.
        """
        where = person.sessions if session_id is None else (session_id,)
        texts: list[str] = []
        names: set[str] = set() if seq is not None else set(person.names)
        async with self._database.reading() as connection:
            for each in where:
                theirs = await _turns_of_speaker(connection, each, person, seq)
                said = [part for turn in theirs for part in turn.parts if part.speaker_id == person.id]
                texts += [part.text for part in said]
                if seq is None:
                    own_names = {part.speaker for part in said}
                    names |= own_names
                    texts += [row.what for row in await _notes_of(connection, each, own_names)]
        return await asyncio.to_thread(forgotten_words, texts, names)

    async def forget(
        self, person: StoredSpeaker, *, session_id: SessionId | None = None, seq: int | None = None
    ) -> ForgetReport:
        """Forget what a person said: everywhere, in one session, or in one turn.

        Without a session, everything else that is kept about the person goes too, also what is told of them in sessions
        in which they did not speak.
        """
        where = person.sessions if session_id is None else (session_id,)
        words = await self.words_of(person, session_id=session_id, seq=seq)
        async with self._database.reading() as connection:
            if session_id is None and (words.names or words.runs.runs):
                where = (*where, *await _sessions_that_tell(connection, words, besides=where))
        total = ForgetReport()
        for each in where:
            async with self._database.writing() as connection:
                done = await self._forget_in_session(connection, each, person, seq, words)
            total = ForgetReport(
                total.turns + done.turns,
                total.answers + done.answers,
                total.facts + done.facts,
                total.notes + done.notes,
                total.about + done.about,
                sessions=(*total.sessions, *done.sessions),
            )
        # Before the sent texts are deleted: a room whose revision is older stores none.
        await self._refresh_open_rooms(total.sessions)
        async with self._database.writing() as connection:
            await list_words(connection, words.runs)
            await forget_sent_texts(connection)
            if session_id is None:
                about, rules = await _delete_traces(connection, person.id)
                total = replace(total, about=total.about + about, rules=rules)
        clear_sentence_caches()
        return replace(total, wiped=await wipe_deleted(self._database))

    async def _refresh_open_rooms(self, done: Collection[SessionId]) -> None:
        """Raise the revision of all other open sessions: their rooms may hold quotes or facts from the changed
        sessions. Replies in progress on the same servers may hold quotes too, so these sessions are listed.
        """
        async with self._database.reading() as connection:
            found = await connection.execute(
                select(sessions.c.id, sessions.c.guild_id).where(sessions.c.ended_at.is_(None))
            )
            open_sessions = found.all()
            of_done = select(sessions.c.guild_id).distinct().where(sessions.c.id.in_(list(done)))
            guilds = set((await connection.scalars(of_done)).all())
        for row in open_sessions:
            if row.id not in done:
                async with self._database.writing() as connection:
                    now = self._clock.now()
                    await rerender_summary(connection, row.id, now=now)
                    if row.guild_id in guilds:
                        await list_session(connection, row.id, from_seq=NOTHING_MADE, at=now)

    async def _forget_in_session(
        self,
        connection: AsyncConnection,
        session_id: SessionId,
        person: StoredSpeaker,
        seq: int | None,
        words: ForgottenWords,
    ) -> ForgetReport:
        now = self._clock.now()
        before = await _turns(connection, _select_turns(session_id))
        theirs = [turn for turn in before if (seq is None or turn.seq == seq) and has_part_of(turn, person.id)]
        own_names = {part.speaker for turn in theirs for part in turn.parts if part.speaker_id == person.id}
        words = words_in_session(words, before, person.id, spoke=bool(theirs))
        answers = await asyncio.to_thread(answers_to_forget, before, theirs, person.id, words)
        blanked = [without_part_of(turn, person.id) for turn in theirs]
        blanked += [without_part_of(turn, turn.parts[0].speaker_id) for turn in answers]
        await _blank_turns(connection, session_id, blanked)
        gone = await _delete_notes(connection, session_id, own_names) if seq is None else frozenset()
        seqs = frozenset(turn.seq for turn in (*theirs, *answers))
        left = await _turns(connection, _select_turns(session_id))
        remade = await rebuild_segments(connection, session_id, left, seqs=seqs, gone_notes=gone, words=words, now=now)
        about = await _delete_about(connection, session_id, person.id, seq)
        about += await _delete_facts_made_of(connection, session_id, remade.blanked, left, words)
        changed = bool(theirs or answers or gone or about or remade.from_seq is not None)
        if changed:
            # Nothing in the text of an earlier summary shows whether it contains forgotten words.
            await connection.execute(update(landings).where(landings.c.session_id == session_id).values(summary=None))
            await connection.execute(update(sessions).where(sessions.c.id == session_id).values(recap_stale_at=now))
            await rerender_summary(connection, session_id, now=now)
            from_seq = min([*seqs, *([] if remade.from_seq is None else [remade.from_seq])], default=0)
            await list_session(connection, session_id, from_seq=from_seq, at=now)
        return ForgetReport(
            len(theirs),
            len(answers),
            len(remade.blanked),
            len(gone),
            about,
            sessions=(session_id,) if changed else (),
        )


def _select_turns(session_id: SessionId | None, start: int = 0, end: int | None = None) -> Select[Any]:
    wanted = select(turns).where(turns.c.tombstone.is_(False), turns.c.seq >= start)
    if session_id is not None:
        wanted = wanted.where(turns.c.session_id == session_id)
    if end is not None:
        wanted = wanted.where(turns.c.seq < end)
    return wanted.order_by(turns.c.started_at, turns.c.session_id, turns.c.seq)


async def _turns(connection: AsyncConnection, wanted: Select[Any]) -> list[Turn]:
    found = (await connection.execute(wanted)).all()
    # In a thread: a long session has thousands.
    return await asyncio.to_thread(lambda: list(map(rows.turn_from_row, found)))


async def _turns_of_speaker(
    connection: AsyncConnection, session_id: SessionId, person: StoredSpeaker, seq: int | None
) -> list[Turn]:
    return [
        turn
        for turn in await _turns(connection, _select_turns(session_id))
        if (seq is None or turn.seq == seq) and has_part_of(turn, person.id)
    ]


async def _sessions_that_tell(
    connection: AsyncConnection, words: ForgottenWords, *, besides: Collection[SessionId]
) -> list[SessionId]:
    """Return the other sessions in which the bot's turns, segments or chapters may tell of what was forgotten."""
    found: list[SessionId] = []
    for name in (await connection.execute(select(sessions.c.id))).scalars().all():
        session_id = SessionId(name)
        if session_id in besides:
            continue
        spoken = await _turns(connection, _of_bot(_select_turns(session_id)))
        texts = [part.text for turn in spoken for part in turn.parts]
        made = (await connection.execute(select(segments).where(segments.c.session_id == session_id))).all()
        for segment in await asyncio.to_thread(lambda found: list(map(rows.segment_from_row, found)), made):
            texts += [segment.gist, segment.paragraph, *(fact.text for fact in segment.facts)]
        over = await connection.execute(select(chapters).where(chapters.c.session_id == session_id))
        texts += [f"{row.gist} {row.paragraph}" for row in over]
        if await asyncio.to_thread(_any_tells, texts, words):
            found.append(session_id)
    return found


def _any_tells(texts: Iterable[str], words: ForgottenWords) -> bool:
    return any(words.quoted_or_named_in(text) for text in texts)


def _of_bot(wanted: Select[Any]) -> Select[Any]:
    return wanted.where(turns.c.kind.in_([kind.value for kind in _OF_BOT]))


def _same_name(name: str, wanted: str) -> bool:
    return plain(name).casefold() == plain(wanted).casefold()


async def _blank_turns(connection: AsyncConnection, session_id: SessionId, blanked: Sequence[Turn]) -> None:
    """Store the turns without what was forgotten, in one statement: a long session has thousands."""
    if not blanked:
        return
    same = (turns.c.session_id == session_id) & (turns.c.seq == bindparam("numbered"))
    new: dict[str, object] = {"parts": bindparam("new_parts"), "tombstone": bindparam("new_tombstone")}
    values = await asyncio.to_thread(lambda: [rows.turn_values(session_id, turn) for turn in blanked])
    # Triggers remove the turns from the index.
    await execute_for_each(
        connection,
        update(turns).where(same).values(new),
        [{"numbered": each["seq"], "new_parts": each["parts"], "new_tombstone": each["tombstone"]} for each in values],
    )
    for turn in blanked:
        if turn.parts:
            await index_source(connection, session_id, turn)


async def _notes_of(connection: AsyncConnection, session_id: SessionId, names: Collection[str]) -> list[Row[Any]]:
    """Return the rows of the notes of these people's screens."""
    found = await connection.execute(select(notes).where(notes.c.session_id == session_id))
    return [row for row in found if any(_same_name(row.who, name) for name in names)]


async def _delete_notes(connection: AsyncConnection, session_id: SessionId, names: Collection[str]) -> frozenset[str]:
    gone = frozenset(row.id for row in await _notes_of(connection, session_id, names))
    for note_id in gone:
        await connection.execute(delete(notes).where(notes.c.session_id == session_id, notes.c.id == note_id))
    return gone


async def _delete_about(connection: AsyncConnection, session_id: SessionId, person_id: str, seq: int | None) -> int:
    theirs = (person_facts.c.session_id == session_id) & (person_facts.c.person_id == person_id)
    if seq is not None:
        theirs &= person_facts.c.turn_seq == seq
    return (await connection.execute(delete(person_facts).where(theirs))).rowcount


async def _delete_facts_made_of(
    connection: AsyncConnection,
    session_id: SessionId,
    blanked: Collection[str],
    left: Sequence[Turn],
    words: ForgottenWords,
) -> int:
    """Delete the facts about other people that were made of removed facts, or that tell of the person."""
    found = (await connection.execute(select(person_facts).where(person_facts.c.session_id == session_id))).all()
    gone = await asyncio.to_thread(_facts_to_forget, found, blanked, left, words)
    for fact_id in gone:
        await connection.execute(delete(person_facts).where(person_facts.c.id == fact_id))
    return len(gone)


def _facts_to_forget(
    found: Sequence[Any], blanked: Collection[str], left: Sequence[Turn], words: ForgottenWords
) -> list[str]:
    said = {turn.seq: " ".join(part.text for part in turn.parts) for turn in left}
    explained: set[str] | None = None
    gone: list[str] = []
    for row in found:
        if row.id not in blanked:
            if plain(row.text) in plain(said.get(row.turn_seq, "")):
                continue
            if explained is None:
                explained = {term for text in said.values() for term in terms(text)}
            if not (words.quoted_or_named_in(row.text) or words.has_rare_word(row.text, explained)):
                continue
        gone.append(row.id)
    return gone


def _discord_id(person_id: str) -> int | None:
    # An id of Discord has 64 bits; what an operator types may be any text.
    return int(person_id) if person_id.isascii() and person_id.isdecimal() and len(person_id) < 20 else None


async def _delete_traces(connection: AsyncConnection, person_id: str) -> tuple[int, int]:
    """Delete all facts about a person, and their id where it stands for itself. Returns the number of facts, and of
    servers whose settings named them.

    Their opt-out from being heard stays: without it the bot would hear them again.
    """
    await connection.execute(delete(person_forgets).where(person_forgets.c.person_id == person_id))
    rules = 0
    if (number := _discord_id(person_id)) is not None:
        by_them = guild_settings.c.changed_by == number
        await connection.execute(update(guild_settings).where(by_them).values(changed_by=None))
        rules = await drop_person(connection, number)
    about = await connection.execute(delete(person_facts).where(person_facts.c.person_id == person_id))
    return about.rowcount, rules
