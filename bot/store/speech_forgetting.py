"""Removes what a person said, at their request, from turns, segments, notes, summaries, search and history.

A forgotten turn keeps its number and the words of other people in it. Turns of the bot are removed too if they answer
the person, name them or say their words again. A forgotten fact leaves a blank in its segment, because other facts
refer to it by its position. Everything made of forgotten text or after it is made anew (`bot.store.rebuilding`). Each
session is one transaction (`bot.store.session_forgetting`); an open room then takes over the change. Where words count
as the person's, `bot.store.words_to_forget` says. Raises `StoreError`.

If a session fails, for example because a row in it is damaged, the others go on, and the first failure is raised at the
end.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import delete, select, update

from bot.store.claims import lock_server, wait_for_writes
from bot.store.each_session import write_each
from bot.store.forget_report import ForgetReport
from bot.store.forgettings import record_forgetting
from bot.store.forgotten_hashes import NOTHING_MADE, list_session, list_words
from bot.store.history import rerender_summary
from bot.store.number_range import LARGEST_NUMBER
from bot.store.prompts import forget_prompts, forget_sent_texts
from bot.store.rows import segment_from_row, turn_from_row
from bot.store.servers import drop_person, servers_that_name
from bot.store.session_forgetting import forget_in_session, notes_of_person, select_turns, turns_of_person
from bot.store.speakers import StoredSpeaker, may_have_part_of, read_speakers, with_sharers
from bot.store.tables import (
    guild_settings,
    person_facts,
    person_forgets,
    segment_tiers,
    segments,
    sessions,
    turns,
)
from bot.store.tier_rows import text_of_record
from bot.store.wiping import WIPE_PAUSE_S, mark_deleted, wipe_if_due
from bot.store.words_to_forget import WordsToForget, of_servers, servers_of_person
from compaction.errors import StoreError
from compaction.memory.restating import forgotten_words
from compaction.model import SessionId, TurnKind
from compaction.sentence_cache import clear_sentence_caches
from compaction.speaker_names import is_called

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from sqlalchemy import ColumnElement, Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.clock import Clock
    from bot.store.database import Database
    from bot.store.each_session import SessionResults
    from compaction.memory.restating import ForgottenWords

log = structlog.get_logger()

# The kinds of the bot's own turns.
_OF_BOT = (TurnKind.ASSISTANT, TurnKind.EFFECT)


class SpeechForgetter:
    """Finds people in the database and removes what they said. To forget somebody, call `begin`, `words_to_forget` and
    `forget` in this order. All methods raise `StoreError`.

    `wipe_pause_s`: the least time from one wipe to the next, whoever is forgotten.
    """

    def __init__(self, database: Database, clock: Clock, *, wipe_pause_s: float = WIPE_PAUSE_S) -> None:
        self._database = database
        self._clock = clock
        self._wipe_pause_s = wipe_pause_s

    async def find(self, name_or_id: str, *, session_id: SessionId | None = None) -> tuple[StoredSpeaker, ...]:
        """Return the speakers with that id, or that name in any capitalisation, the latest speaker first."""
        wanted = name_or_id.strip()
        if (known := await self.find_by_id(wanted, session_id=session_id)) is not None:
            return (known,)
        everybody = await self.everybody(session_id=session_id)
        named = [person for person in everybody if any(is_called(name, wanted) for name in person.names)]
        return tuple(sorted(named, key=lambda each: -each.last_at))

    async def everybody(self, *, session_id: SessionId | None = None) -> tuple[StoredSpeaker, ...]:
        """Return all who spoke or shared a screen, in all sessions or in one."""
        in_order = select(sessions.c.id).order_by(sessions.c.started_at)
        if session_id is not None:
            in_order = in_order.where(sessions.c.id == session_id)
        async with self._database.reading() as connection:
            where = [SessionId(each) for each in await connection.scalars(in_order)]
        everybody: dict[str, StoredSpeaker] = {}
        for each in where:
            # In a transaction of its own, as in `words_to_forget`.
            async with self._database.reading() as connection:
                theirs = select_turns(each).order_by(turns.c.started_at)
                everybody = await read_speakers(connection, theirs, known=everybody)
        async with self._database.reading() as connection:
            return tuple((await with_sharers(connection, everybody, session_id=session_id)).values())

    async def find_by_id(self, person_id: str, *, session_id: SessionId | None = None) -> StoredSpeaker | None:
        """Return who spoke or shared a screen with that id, or has it in a server's settings, or None."""
        theirs = select_turns(session_id).where(may_have_part_of(person_id))
        async with self._database.reading() as connection:
            spoke = await read_speakers(connection, theirs.order_by(turns.c.started_at), of=person_id)
            known = (await with_sharers(connection, spoke, session_id=session_id, of=person_id)).get(person_id)
            if known is None and session_id is None and (number := _discord_id(person_id)) is not None:
                named = await servers_that_name(connection, number)
                known = StoredSpeaker(person_id, (), 0.0, 0, ()) if named else None
        return known

    async def begin(
        self, person: StoredSpeaker, *, session_id: SessionId | None = None, seq: int | None = None
    ) -> StoredSpeaker:
        """Let all open rooms know that a person is forgotten: from now on, none of them stores what it had of them.

        Returns the person with what is stored of them by then. Call it before `words_to_forget` and `forget`.
        """
        async with self._database.writing() as connection:
            await lock_server(connection, None)
            await record_forgetting(connection, person.id, session_id=session_id, seq=seq)
        # What a room is storing now may not have seen it.
        await wait_for_writes(self._database)
        stored = await self.find_by_id(person.id)
        if stored is None:
            return person
        names = dict.fromkeys((*stored.names, *person.names))
        return replace(stored, names=tuple(names), sessions=tuple(dict.fromkeys((*stored.sessions, *person.sessions))))

    async def words_to_forget(
        self, person: StoredSpeaker, *, session_id: SessionId | None = None, seq: int | None = None
    ) -> WordsToForget:
        """Return the words that `forget` would remove. Unless it is one turn, the person's names and the notes of their
        screen are among them: a model or the bot may have told what it showed.
        """
        where = person.sessions if session_id is None else (session_id,)
        texts: list[str] = []
        names: set[str] = set() if seq is not None else set(person.names)
        async with self._database.reading() as connection:
            among = None if session_id is None else where
            servers = await servers_of_person(connection, person.id, among)
        for each in where:
            # In a transaction of its own: what somebody has said in years takes longer than one may take.
            async with self._database.reading() as connection:
                theirs = await turns_of_person(connection, each, person.id, seq)
                said = [part for turn in theirs for part in turn.parts if part.speaker_id == person.id]
                texts += [part.text for part in said]
                if seq is None:
                    own_names = {part.speaker for part in said}
                    names |= own_names
                    texts += [row.what for row in await notes_of_person(connection, each, person.id, own_names)]
        return WordsToForget(await asyncio.to_thread(forgotten_words, texts, names), servers)

    async def forget(
        self,
        person: StoredSpeaker,
        *,
        session_id: SessionId | None = None,
        seq: int | None = None,
        words: WordsToForget | None = None,
        on_changed: Callable[[SessionId], object] = lambda _: None,
    ) -> ForgetReport:
        """Forget what a person said: everywhere, in one session, or in one turn.

        Without a session, everything else that is kept about the person goes too, also what is told of them in sessions
        in which they did not speak.

        `words`: what `words_to_forget` returned, also before an attempt that failed: the store may have lost some of
        them since. `on_changed`: gets each session that has changed, also if the attempt fails later.
        """
        if words is None:
            words = await self.words_to_forget(person, session_id=session_id, seq=seq)
        said, servers = words.words, words.servers
        # First of all: if it is interrupted now, no import brings the words back. What models were sent goes now too:
        # should the process end before it has finished, nobody knows any more where the person was and what they said.
        await list_words(self._database, said.runs)
        if servers:
            async with self._database.writing() as connection:
                if await _forget_sent(connection, words):
                    await mark_deleted(connection, now=self._clock.now())
        where = person.sessions if session_id is None else (session_id,)
        elsewhere = session_id is None and bool(servers) and bool(said.names or said.runs.runs)
        if elsewhere:
            # The person's own sessions come last: as long as they are there, so are the words to look for elsewhere.
            where = (*await _sessions_that_tell(self._database, words, besides=where), *where)

        async def forget_in(connection: AsyncConnection, each: SessionId) -> ForgetReport:
            now = self._clock.now()
            return await forget_in_session(connection, each, person.id, seq=seq, words=said, now=now)

        def forgotten_in(report: ForgetReport) -> None:
            for each in report.sessions:
                on_changed(each)

        outcome = await write_each(self._database, where, forget_in, on_done=forgotten_in)
        total = ForgetReport.of_sessions(outcome.results)
        failure: StoreError | None = None
        if servers:
            # Before the sent texts are deleted: a room whose revision is older stores none. Its fold under way is
            # refused, so this is done on the person's servers alone: anybody could hold up the summaries of others.
            refreshed = await self._refresh_open_rooms(servers, done=total.sessions)
            failure = refreshed.failure
            if elsewhere:
                # Such a room may have stored an answer or a segment since it was searched.
                late = await _sessions_that_tell(self._database, words, besides=total.sessions, among=refreshed.results)
                again = await write_each(self._database, late, forget_in, on_done=forgotten_in)
                total = ForgetReport.of_sessions((total, *again.results))
                failure = failure or again.failure
        async with self._database.writing() as connection:
            gone = await _forget_sent(connection, words) if servers else 0
            if session_id is None:
                about, rules = await _delete_traces(connection, person.id)
                total = replace(total, about=total.about + about, rules=total.rules + rules)
                gone += about + rules
            if gone:
                await mark_deleted(connection, now=self._clock.now())
        clear_sentence_caches()
        wiped = await self._wipe()
        if failure := outcome.failure or failure:
            raise failure
        return replace(total, wiped=wiped)

    async def _wipe(self) -> bool:
        # All is deleted, and the mark is stored: a wipe that fails is no reason to stop before the logs.
        try:
            return await wipe_if_due(self._database, now=self._clock.now(), pause_s=self._wipe_pause_s)
        except StoreError as error:
            log.warning("wipe_failed", problem=error)
            return False

    async def _refresh_open_rooms(
        self, servers: Collection[int | None], *, done: Collection[SessionId]
    ) -> SessionResults[SessionId]:
        """Raise the revision of the other open sessions of these servers, and list them: their rooms may hold quotes or
        facts from the changed sessions, and so may their replies in progress. Returns which these are.
        """
        async with self._database.reading() as connection:
            found = await connection.scalars(
                select(sessions.c.id).where(sessions.c.ended_at.is_(None), of_servers(servers))
            )
            waiting = [SessionId(each) for each in found if each not in done]

        async def refresh(connection: AsyncConnection, session_id: SessionId) -> SessionId:
            now = self._clock.now()
            await rerender_summary(connection, session_id, now=now)
            await list_session(connection, session_id, from_seq=NOTHING_MADE, at=now)
            return session_id

        return await write_each(self._database, waiting, refresh)


async def _forget_sent(connection: AsyncConnection, words: WordsToForget) -> int:
    """Delete what models were sent that may tell of it, inside a write transaction. Returns how many texts."""
    texts = await forget_sent_texts(connection, words.servers)
    return texts + await forget_prompts(connection, words.words, words.servers)


async def _sessions_that_tell(
    database: Database,
    words: WordsToForget,
    *,
    besides: Collection[SessionId],
    among: Collection[SessionId] | None = None,
) -> list[SessionId]:
    """Return the other sessions in which the bot's turns and segments may tell of what was forgotten.

    `among`: only these are searched.
    """
    async with database.reading() as connection:
        candidates = (await connection.scalars(select(sessions.c.id).where(of_servers(words.servers)))).all()
    found: list[SessionId] = []
    for session_id in candidates:
        if session_id in besides or not (among is None or session_id in among):
            continue
        of_bot = select(turns).where(turns.c.session_id == session_id, _maybe_of_bot())
        async with database.reading() as connection:
            spoken = (await connection.execute(of_bot)).all()
            made, records = [
                (await connection.execute(select(each).where(each.c.session_id == session_id))).all()
                for each in (segments, segment_tiers)
            ]
        if await asyncio.to_thread(_any_tells, spoken, made, records, words.words):
            found.append(SessionId(session_id))
    return found


def _any_tells(
    spoken: Iterable[Row[Any]],
    made: Iterable[Row[Any]],
    records: Iterable[Row[Any]],
    words: ForgottenWords,
) -> bool:
    texts = [*map(text_of_record, records)]
    for said in map(turn_from_row, spoken):
        texts += [part.text for part in said.parts]
    for segment in map(segment_from_row, made):
        texts += [segment.gist, segment.paragraph, *(fact.text for fact in segment.facts)]
    return any(words.quoted_or_named_in(text) for text in texts)


def _maybe_of_bot() -> ColumnElement[bool]:
    """Return the condition that a turn is not forgotten, and the bot's."""
    return turns.c.tombstone.is_(False) & turns.c.kind.in_([kind.value for kind in _OF_BOT])


def _discord_id(person_id: str) -> int | None:
    # What an operator types may be any text.
    number = int(person_id) if person_id.isascii() and person_id.isdecimal() and len(person_id) < 20 else None
    return None if number is None or number > LARGEST_NUMBER else number


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
