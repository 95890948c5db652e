"""Deletes embeddings that a search must not go by while somebody has opted out, and has them made again afterwards.

What is found is shown without their words in any case (`bot.memory.recall`). But a fact leads to a turn of somebody
else, and takes a place among the nearest, whatever it was made of. So the embeddings of what a person said go, and
those of all that may repeat it: what the bot said, facts, segments and notes from their first words in the server until
their opt-out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, exists, false, func, not_, or_, select, update

from bot.store.search.tags import speaker_tag
from bot.store.tables import hearing_opt_outs, passage_vectors, passages, search_marks, sessions, turns
from compaction.memory.passage import PassageKind
from compaction.model import TurnKind

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    # Of each opt-out the server, the person and since when, UTC epoch seconds.
    OptOuts: TypeAlias = Sequence[tuple[int, int, float]]

# Stands in `passages.embedded_by` of a passage that gets no embedding while somebody has opted out. No model has it.
WITHHELD = "(withheld)"
_AT_ONCE = 500


async def read_opt_outs(connection: AsyncConnection) -> OptOuts:
    """Return who has opted out of being heard, in all servers."""
    wanted = select(hearing_opt_outs).order_by(hearing_opt_outs.c.guild_id, hearing_opt_outs.c.person_id)
    return [(row.guild_id, row.person_id, row.since) for row in await connection.execute(wanted)]


async def withhold_embeddings(connection: AsyncConnection, out: OptOuts) -> bool:
    """Delete some embeddings that must not be searched, and let some be made that were. Returns whether any were left.

    Call it inside a write transaction, again until it returns False: each is short, because new turns wait for it.
    """
    withheld = or_(false(), *[await _of_person(connection, *each) for each in out])
    made = passages.c.embedded_by.is_not(None) & (passages.c.embedded_by != WITHHELD)
    gone = await _some(connection, made & withheld)
    await connection.execute(delete(passage_vectors).where(passage_vectors.c.passage_id.in_(gone)))
    await connection.execute(update(passages).where(passages.c.id.in_(gone)).values(embedded_by=WITHHELD))
    back = await _some(connection, (passages.c.embedded_by == WITHHELD) & not_(withheld))
    await connection.execute(update(passages).where(passages.c.id.in_(back)).values(embedded_by=None))
    if gone:
        # Every process drops what it holds in memory.
        generation = search_marks.c.name == "generation"
        await connection.execute(update(search_marks).where(generation).values(value=search_marks.c.value + 1))
    return bool(gone or back)


async def _some(connection: AsyncConnection, wanted: ColumnElement[bool]) -> Sequence[int]:
    return (await connection.scalars(select(passages.c.id).where(wanted).limit(_AT_ONCE))).all()


async def _of_person(connection: AsyncConnection, guild_id: int, person_id: int, since: float) -> ColumnElement[bool]:
    """Return the condition for what a person said in a server, and for what may repeat it."""
    there = passages.c.session_id.in_(select(sessions.c.id).where(sessions.c.guild_id == guild_id))
    theirs = and_(there, passages.c.tags.contains(speaker_tag(str(person_id))))
    first = await connection.scalar(select(func.min(passages.c.at)).where(theirs))
    if first is None:
        return false()
    by_bot = exists().where(
        turns.c.session_id == passages.c.session_id,
        turns.c.seq == passages.c.start_seq,
        turns.c.kind == TurnKind.ASSISTANT.value,
    )
    repeats = or_(passages.c.kind != PassageKind.TURN.value, by_bot)
    return or_(theirs, and_(there, repeats, passages.c.at >= first, passages.c.at < since))
