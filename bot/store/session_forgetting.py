"""Forgets a person in one session: in its turns, its notes, and everything that was made of them.

`bot.store.speech_forgetting` does this for each session.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, select, update

from bot.store import rows
from bot.store.forget_report import ForgetReport
from bot.store.forgotten_facts import delete_facts_about, delete_facts_made_of
from bot.store.forgotten_hashes import list_session
from bot.store.history import rerender_summary
from bot.store.inserts import execute_for_each
from bot.store.rebuilding import rebuild_segments
from bot.store.search.indexing import index_source
from bot.store.speakers import is_screen_of, may_have_part_of
from bot.store.tables import landings, notes, sessions, turns
from bot.store.thread_work import in_thread
from bot.store.wiping import mark_deleted
from compaction.memory.forgotten_turns import answers_to_forget, has_part_of, without_part_of, words_in_session

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from sqlalchemy import ColumnElement, Row, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.memory.restating import ForgottenWords
    from compaction.model import Seq, SessionId, Turn


@dataclass(frozen=True, slots=True)
class _Found:
    """What a session has that is to be forgotten.

    `theirs`: the turns in which the person spoke. `answers`: the bot's turns that tell of it. `shown`: the rows of the
    notes of their screen. `words`: those to look for elsewhere in the session.
    """

    theirs: list[Turn]
    answers: list[Turn]
    shown: list[Row[Any]]
    words: ForgottenWords

    @property
    def seqs(self) -> frozenset[Seq]:
        return frozenset(turn.seq for turn in (*self.theirs, *self.answers))

    def blanked(self, person_id: str) -> list[Turn]:
        """Return the turns as they are without it."""
        return [
            *(without_part_of(turn, person_id) for turn in self.theirs),
            *(without_part_of(turn, turn.parts[0].speaker_id) for turn in self.answers),
        ]


async def forget_in_session(
    connection: AsyncConnection,
    session_id: SessionId,
    person_id: str,
    *,
    seq: int | None,
    words: ForgottenWords,
    now: float,
) -> ForgetReport:
    """Forget what a person said in a session, inside a write transaction. `seq`: in this turn only. `words`: those that
    are forgotten everywhere. `now`: UTC epoch seconds.
    """
    found = await _find(connection, session_id, person_id, seq, words)
    await _blank_turns(connection, session_id, found.blanked(person_id))
    gone = await _delete_notes(connection, session_id, found.shown)
    left = await _read_turns(connection, session_id)
    remade = await rebuild_segments(
        connection, session_id, left, seqs=found.seqs, gone_notes=gone, words=found.words, now=now
    )
    from_seq = min([*found.seqs, *([] if remade.from_seq is None else [remade.from_seq])], default=None)
    about = await delete_facts_about(connection, session_id, person_id, seq)
    about += await delete_facts_made_of(connection, session_id, remade, left, found.words, from_seq=from_seq)
    changed = bool(found.seqs or gone or about or remade.from_seq is not None)
    if changed:
        await _mark_changed(connection, session_id, from_seq=from_seq or 0, now=now)
        await mark_deleted(connection, now=now)
    return ForgetReport(
        len(found.theirs),
        len(found.answers),
        len(remade.blanked),
        len(gone),
        about,
        sessions=(session_id,) if changed else (),
    )


async def _find(
    connection: AsyncConnection,
    session_id: SessionId,
    person_id: str,
    seq: int | None,
    words: ForgottenWords,
) -> _Found:
    before = await _read_turns(connection, session_id)
    theirs = [turn for turn in before if (seq is None or turn.seq == seq) and has_part_of(turn, person_id)]
    own_names = {part.speaker for turn in theirs for part in turn.parts if part.speaker_id == person_id}
    here = await in_thread(connection, lambda: words_in_session(words, before, person_id, spoke=bool(theirs)))
    shown = await notes_of_person(connection, session_id, person_id, own_names) if seq is None else []
    shown_at = min((row.at for row in shown), default=inf)
    answers = await in_thread(
        connection,
        lambda: answers_to_forget(before, theirs, person_id, here, shown_at=shown_at),
    )
    return _Found(theirs, answers, shown, here)


async def _mark_changed(connection: AsyncConnection, session_id: SessionId, *, from_seq: int, now: float) -> None:
    """Render the summary anew, have the recap renewed, and list the session for everybody who holds what was made of
    its turns from `from_seq` on.
    """
    # Nothing in the text of an earlier summary shows whether it contains forgotten words.
    await connection.execute(update(landings).where(landings.c.session_id == session_id).values(summary=None))
    await connection.execute(update(sessions).where(sessions.c.id == session_id).values(recap_stale_at=now))
    await rerender_summary(connection, session_id, now=now)
    await list_session(connection, session_id, from_seq=from_seq, at=now)


def select_turns(session_id: SessionId | None) -> Select[Any]:
    """Select the turns that are not forgotten, of all sessions or of one."""
    wanted = select(turns).where(turns.c.tombstone.is_(False))
    return wanted if session_id is None else wanted.where(turns.c.session_id == session_id)


async def turns_of_person(
    connection: AsyncConnection, session_id: SessionId, person_id: str, seq: int | None
) -> list[Turn]:
    """Return the turns in which a person spoke, or turn `seq` alone if they did in it."""
    return [
        turn
        for turn in await _read_turns(connection, session_id, may_have_part_of(person_id))
        if (seq is None or turn.seq == seq) and has_part_of(turn, person_id)
    ]


async def notes_of_person(
    connection: AsyncConnection, session_id: SessionId, person_id: str, names: Collection[str]
) -> list[Row[Any]]:
    """Return the rows of the notes of a person's screen. `names`: theirs in the session."""
    found = await connection.execute(select(notes).where(notes.c.session_id == session_id))
    return [row for row in found if is_screen_of(row, person_id, names)]


async def _read_turns(connection: AsyncConnection, session_id: SessionId, *where: ColumnElement[bool]) -> list[Turn]:
    """Return the turns of a session in order, which their times tell only until a clock is set back. `where`: only
    these.
    """
    found = (await connection.execute(select_turns(session_id).where(*where).order_by(turns.c.seq))).all()
    # In a thread: a long session has thousands.
    return await in_thread(connection, lambda: [rows.turn_from_row(row) for row in found])


async def _blank_turns(connection: AsyncConnection, session_id: SessionId, blanked: Sequence[Turn]) -> None:
    """Store the turns without what was forgotten, in one statement: a long session has thousands."""
    if not blanked:
        return
    same = (turns.c.session_id == session_id) & (turns.c.seq == bindparam("numbered"))
    new: dict[str, object] = {"parts": bindparam("new_parts"), "tombstone": bindparam("new_tombstone")}
    values = await in_thread(connection, lambda: [rows.turn_values(session_id, turn) for turn in blanked])
    # Triggers remove the turns from the index.
    await execute_for_each(
        connection,
        update(turns).where(same).values(new),
        [{"numbered": each["seq"], "new_parts": each["parts"], "new_tombstone": each["tombstone"]} for each in values],
    )
    for turn in blanked:
        if turn.parts:
            await index_source(connection, session_id, turn)


async def _delete_notes(
    connection: AsyncConnection, session_id: SessionId, shown: Iterable[Row[Any]]
) -> frozenset[str]:
    gone = frozenset(row.id for row in shown)
    for note_id in gone:
        await connection.execute(delete(notes).where(notes.c.session_id == session_id, notes.c.id == note_id))
    return gone
