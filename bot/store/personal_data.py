"""Reads everything that is stored of one person, by their id, so that they can see it. Raises `StoreError`.

Times are ISO 8601 in UTC. What other people said about the person is theirs and is left out. So is a reply of the bot
that may repeat somebody else who has opted out: nothing is quoted from them in a prompt or in `/transcript` either
(`WithheldPeople`), and a file that lasts is no way round that. It says how many.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from bot.store import rows
from bot.store.own_rows import iso, own_rows
from bot.store.prompts import sessions_that_name
from bot.store.servers import servers_that_name
from bot.store.speakers import may_have_part_of, quotable_speakers, was_told
from bot.store.tables import (
    hearing_opt_outs,
    notes,
    person_facts,
    person_forgets,
    server_settings,
    sessions,
    turns,
)
from compaction.language.text import plain
from compaction.model import Seq, Turn, TurnKind
from compaction.withheld import WithheldPeople

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.database import Database


class PersonalDataStore:
    """What an open database has of each person. Safe for all tasks of one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, person_id: str) -> dict[str, object]:
        """Return what is stored of a person, ready for JSON: sessions with their turns, facts, and opt-outs."""
        async with self._database.reading() as connection:
            names = (await connection.execute(select(sessions).order_by(sessions.c.started_at))).all()
            out = await _others_out(connection, person_id)
        found: list[dict[str, object] | None] = []
        for row in names:
            # In a transaction of its own: all sessions of some years take longer than one may take.
            async with self._database.reading() as connection:
                found.append(await self._of_session(connection, row, person_id, out.get(row.guild_id, set())))
        async with self._database.reading() as connection:
            about = await connection.execute(
                select(person_facts).where(person_facts.c.person_id == person_id).order_by(person_facts.c.at)
            )
            facts = [
                {
                    "text": row.text,
                    "at": iso(row.at),
                    "session": row.session_id,
                    "turn": row.turn_seq,
                    "still_holds": row.superseded_at is None,
                }
                for row in about
            ]
            elsewhere = await _elsewhere(connection, person_id, out)
        return {
            "person_id": person_id,
            "sessions": [each for each in found if each is not None],
            "facts_about_you": facts,
            **elsewhere,
        }

    async def _of_session(
        self, connection: AsyncConnection, session: Any, person_id: str, hidden: Collection[str]
    ) -> dict[str, object] | None:
        """`hidden`: the other people who opted out on its server."""
        # The id is searched for as text first: few sessions have it, and reading turns takes time.
        mentioned = may_have_part_of(person_id) | was_told(person_id)
        in_session = (
            select(turns, mentioned.label("mentioned")).where(turns.c.session_id == session.id).order_by(turns.c.seq)
        )
        wanted = in_session.where(mentioned | (turns.c.kind == TurnKind.ASSISTANT.value))
        stored = (await connection.execute(wanted)).all()
        of_notes = select(notes).where(notes.c.session_id == session.id).order_by(notes.c.at)
        seen = (await connection.execute(of_notes)).all()
        quotable: Collection[str] = ()
        if hidden and any(row.mentioned for row in stored):
            # From when on each of them could be repeated.
            stored = (await connection.execute(in_session)).all()
            quotable = await quotable_speakers(connection, self._database.sql, session.id, among=hidden)
        # In a thread: a long session has thousands of turns.
        work = partial(_describe, session, stored, seen, person_id, hidden=frozenset(hidden), quotable=quotable)
        return await asyncio.to_thread(work)


def _describe(
    session: Any,
    stored: Sequence[Any],
    seen: Sequence[Any],
    person_id: str,
    *,
    hidden: frozenset[str],
    quotable: Collection[str],
) -> dict[str, object] | None:
    spoken = [rows.turn_from_row(row) for row in stored]
    theirs = [turn for turn in spoken if any(part.speaker_id == person_id for part in turn.parts)]
    own_names = {plain(part.speaker) for turn in theirs for part in turn.parts if part.speaker_id == person_id}
    shown = [row for row in seen if row.person_id == person_id]
    replies = [turn for turn in spoken if person_id in turn.told_to]
    if not (theirs or shown or replies):
        return None
    unrepeated = _without_repeated(replies, spoken, hidden=hidden, quotable=quotable)
    return {
        "id": session.id,
        "server_id": None if session.guild_id is None else str(session.guild_id),
        "channel_id": None if session.channel_id is None else str(session.channel_id),
        "started_at": iso(session.started_at),
        "names": sorted(own_names | {plain(row.who) for row in shown}),
        "what_you_said": [_line(turn, person_id) for turn in theirs],
        "my_replies_to_you": [_line(turn) for turn in unrepeated],
        # They may repeat somebody who has opted out since.
        "my_replies_left_out": len(replies) - len(unrepeated),
        "notes_of_your_screen": [{"at": iso(row.at), "text": row.what} for row in shown],
    }


def _without_repeated(
    replies: Sequence[Turn], spoken: Iterable[Turn], *, hidden: frozenset[str], quotable: Collection[str]
) -> list[Turn]:
    """Return the replies in which the bot cannot have repeated the `hidden` people of the session."""
    clean = WithheldPeople(quotable=quotable)
    end = 0
    for turn in spoken:
        clean.note_turn(turn)
        end = turn.seq + 1
    clean.withhold(lambda: hidden)
    clean.update(said_until=Seq(end), folded_until=Seq(end))
    return [turn for turn in replies if clean.turn(turn) is turn]


def _line(turn: Turn, person_id: str | None = None) -> dict[str, object]:
    said = [part.text for part in turn.parts if person_id is None or part.speaker_id == person_id]
    return {"turn": turn.seq, "at": iso(turn.started_at), "kind": turn.kind.value, "text": " ".join(said)}


async def _elsewhere(connection: AsyncConnection, person_id: str, out: Mapping[int, set[str]]) -> dict[str, object]:
    """Return where the id of a person stands beside what they said and showed. `out`: see `_others_out`."""
    # An imported session may have any text for an id. Those of Discord are numbers.
    number = int(person_id) if person_id.isdecimal() else -1
    forgets = select(person_forgets.c.session_id).where(person_forgets.c.person_id == person_id)
    opt_outs = select(hearing_opt_outs.c.guild_id).where(hearing_opt_outs.c.person_id == number)
    chosen = select(server_settings.c.guild_id).where(server_settings.c.changed_by == number)
    return {
        **await own_rows(connection, person_id, hidden=out),
        "sessions_whose_prompts_name_you": list(await connection.scalars(sessions_that_name(person_id))),
        "sessions_where_you_deleted_facts": list(
            await connection.scalars(forgets.order_by(person_forgets.c.session_id))
        ),
        "servers_that_do_not_hear_you": [str(each) for each in await connection.scalars(opt_outs)],
        "servers_where_i_join_you": [str(each) for each in await servers_that_name(connection, number)],
        # By any command.
        "servers_where_you_chose_last": [str(each) for each in await connection.scalars(chosen)],
    }


async def _others_out(connection: AsyncConnection, person_id: str) -> dict[int, set[str]]:
    """Return the other people who have opted out of being heard, by server."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for row in await connection.execute(select(hearing_opt_outs)):
        if str(row.person_id) != person_id:
            found[row.guild_id].add(str(row.person_id))
    return found
