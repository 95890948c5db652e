"""Removes what a person said, at their request, from turns, segments, notes, summaries, search and history.

All is found by ids, and no words are compared. A forgotten turn keeps its number and the words of other people in it.
What was made of it goes: facts, gists and paragraphs of the segments that cover it, facts about people, and all that
the bot said in the session from the person's first turn on. A session in which the person was quoted counts as one in
which they spoke there (`bot.store.quoted_turns`). What other people said about them stays theirs.

Each session is one transaction (`bot.store.session_forgetting`); an open room then takes over the change. An attempt
that fails is finished by the next one. The last bytes go with the next `Database.wipe`. Raises `StoreError`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from bot.store.claims import lock_server, wait_for_writes, writing_session
from bot.store.forgettings import record_forgetting
from bot.store.history import rerender_summary
from bot.store.own_rows import forget_own_rows
from bot.store.prompts import forget_prompts, sessions_that_name
from bot.store.quoted_turns import first_turns_about
from bot.store.reminders import forget_in_reminders
from bot.store.servers import drop_person, servers_that_name
from bot.store.session_forgetting import ForgetReport, forget_in_session, select_turns
from bot.store.speakers import StoredSpeaker, may_have_part_of, read_speakers, with_sharers
from bot.store.tables import LARGEST_NUMBER, person_facts, person_forgets, sessions, turns
from compaction.model import SessionId
from compaction.sentence_cache import clear_sentence_caches
from compaction.speaker_names import is_called

if TYPE_CHECKING:
    from collections.abc import Collection

    from bot.clock import Clock
    from bot.store.database import Database


class SpeechForgetter:
    """Finds people in the database and removes what they said. To forget somebody, call `begin` and then `forget`. All
    methods raise `StoreError`.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

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
        where = [SessionId(each) for each in await self._database.values(in_order)]
        everybody: dict[str, StoredSpeaker] = {}
        for each in where:
            # In a transaction of its own: years of turns take longer than one may take.
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

        Returns the person with what is stored of them by then. Call it before `forget`.
        """
        async with self._database.writing() as connection:
            await lock_server(connection, None)
            await record_forgetting(connection, self._database.key, person.id, session_id=session_id, seq=seq)
        # What a room is storing now may not have seen it.
        await wait_for_writes(self._database)
        stored = await self.find_by_id(person.id)
        if stored is None:
            return person
        names = dict.fromkeys((*stored.names, *person.names))
        return replace(stored, names=tuple(names), sessions=tuple(dict.fromkeys((*stored.sessions, *person.sessions))))

    async def forget(
        self,
        person: StoredSpeaker,
        *,
        session_id: SessionId | None = None,
        seq: int | None = None,
        changed: list[SessionId] | None = None,
    ) -> ForgetReport:
        """Forget what a person said: everywhere, in one session, or in one turn.

        Without a session, everything else that is kept about the person goes too. `changed`: gets each session that
        has changed, also if the attempt fails later.
        """
        where = person.sessions if session_id is None else (session_id,)
        first = await first_turns_about(self._database, person.id, where, seq=seq)
        servers = await self._servers_of(person.id, first)
        # Now and at the end: a process that ends before it has finished leaves none of it.
        prompts = await self._forget_sent(servers)

        # Those that quote the person come first: as long as the quoted turns are there, they are found.
        reports: list[ForgetReport] = []
        for each in first:
            async with writing_session(self._database, each) as connection:
                report = await forget_in_session(
                    connection,
                    each,
                    person.id,
                    from_seq=first[each],
                    seq=seq,
                    now=self._clock.now(),
                )
            reports.append(report)
            if changed is not None:
                changed += report.sessions
        total = ForgetReport.of_sessions(reports)
        # Before the prompts are deleted: a room whose revision is older stores none. Its fold under way is refused,
        # so this is done on the person's servers alone: anybody could hold up the summaries of others.
        await self._refresh_open_rooms(servers, done=total.sessions)
        total = replace(total, prompts=prompts + await self._forget_sent(servers))
        if seq is None:
            async with self._database.writing() as connection:
                await forget_own_rows(connection, person.id, session_id=session_id)
        if session_id is None:
            about, rules = await self._delete_traces(person.id)
            total = replace(total, about=total.about + about, rules=rules)
        clear_sentence_caches()
        return total

    async def _servers_of(self, person_id: str, where: Collection[SessionId]) -> frozenset[int | None]:
        """Return the servers of these sessions, of facts about a person, and of prompts that name them. None: there are
        some of no server.
        """
        about = sessions.join(person_facts, person_facts.c.session_id == sessions.c.id)
        facts = select(sessions.c.guild_id).select_from(about).where(person_facts.c.person_id == person_id)
        found = await self._database.rows(select(sessions.c.id, sessions.c.guild_id))
        here = {row.guild_id for row in found if row.id in where}
        named = {row.guild_id for row in await self._database.rows(sessions_that_name(person_id))}
        return frozenset(here.union(named, await self._database.values(facts)))

    async def _forget_sent(self, servers: Collection[int | None]) -> int:
        """Delete what models were sent on these servers: nobody can tell whose words it has. Returns how much."""
        if not servers:
            return 0
        async with self._database.writing() as connection:
            return await forget_prompts(connection, servers)

    async def _delete_traces(self, person_id: str) -> tuple[int, int]:
        """Delete all facts about a person, and their id where it stands for itself. Returns the number of facts, and of
        servers whose settings named them.

        Their opt-out from being heard stays: without it the bot would hear them again.
        """
        async with self._database.writing() as connection:
            await forget_in_reminders(connection, person_id)
            await connection.execute(delete(person_forgets).where(person_forgets.c.person_id == person_id))
            rules = 0
            if (number := _discord_id(person_id)) is not None:
                rules = await drop_person(connection, number)
            about = await connection.execute(delete(person_facts).where(person_facts.c.person_id == person_id))
        return about.rowcount, rules

    async def _refresh_open_rooms(self, servers: Collection[int | None], *, done: Collection[SessionId]) -> None:
        """Raise the revision of the other open sessions of these servers: their rooms may hold quotes or facts from the
        changed sessions, and so may their replies in progress.
        """
        here = sessions.c.ended_at.is_(None) & sessions.c.guild_id.in_(list(filter(None, servers)))
        found = await self._database.values(select(sessions.c.id).where(here))
        waiting = [SessionId(each) for each in found if each not in done]
        for session_id in waiting:
            async with writing_session(self._database, session_id) as connection:
                await rerender_summary(connection, session_id)


def _discord_id(person_id: str) -> int | None:
    # What an operator types may be any text.
    number = int(person_id) if person_id.isascii() and person_id.isdecimal() and len(person_id) < 20 else None
    return None if number is None or number > LARGEST_NUMBER else number
