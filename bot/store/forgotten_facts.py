"""Deletes the facts about people that were made of forgotten words, inside the transaction that forgets a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select

from bot.store.tables import person_facts
from bot.store.thread_work import in_thread
from compaction.language.terms import terms
from compaction.language.text import plain
from compaction.memory.forgotten_turns import is_of_bot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from bot.store.rebuilding import Remade
    from compaction.memory.restating import ForgottenWords
    from compaction.model import SessionId, Turn


async def delete_facts_about(
    connection: AsyncConnection, session_id: SessionId, person_id: str, seq: int | None
) -> int:
    """Delete the facts that a person stated about themselves in a session, or in one turn of it. Returns how many."""
    theirs = (person_facts.c.session_id == session_id) & (person_facts.c.person_id == person_id)
    if seq is not None:
        theirs &= person_facts.c.turn_seq == seq
    return (await connection.execute(delete(person_facts).where(theirs))).rowcount


async def delete_facts_made_of(
    connection: AsyncConnection,
    session_id: SessionId,
    remade: Remade,
    left: Sequence[Turn],
    words: ForgottenWords,
    *,
    from_seq: int | None,
) -> int:
    """Delete the facts about other people that were made of removed facts, or that tell of the person.

    `left`: the turns of the session without what was forgotten. `from_seq`: the first turn of which
    something was forgotten or made anew; None: there is none. Returns how many.
    """
    found = (await connection.execute(select(person_facts).where(person_facts.c.session_id == session_id))).all()
    gone = await in_thread(connection, lambda: _facts_to_forget(found, remade, left, words, from_seq))
    for fact_id in gone:
        await connection.execute(delete(person_facts).where(person_facts.c.id == fact_id))
    return len(gone)


def _facts_to_forget(
    found: Sequence[Any],
    remade: Remade,
    left: Sequence[Turn],
    words: ForgottenWords,
    from_seq: int | None,
) -> list[str]:
    said = {turn.seq: turn.text for turn in left}
    explained: set[str] | None = None
    gone: list[str] = []
    for row in found:
        segment_id = row.id.rpartition("#")[0]
        if row.id not in remade.blanked:
            if plain(row.text) in plain(said.get(row.turn_seq, "")):
                continue
            if explained is None:
                # Not of the bot, which may have taken its words from the person.
                explained = {term for turn in left if not is_of_bot(turn) for term in terms(turn.text)}
            # One word tells of the person only where a model had their words. Elsewhere it is anybody's.
            after = from_seq is not None and (row.turn_seq >= from_seq or segment_id in remade.segments)
            if not (words.quoted_or_named_in(row.text) or (after and words.has_rare_word(row.text, explained))):
                continue
        gone.append(row.id)
    return gone
