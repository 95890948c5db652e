"""The summary a session has in the store, made anew when its segments changed there: pruned, or words forgotten.

The revision moves, so that a room that is open on the session takes the change over with its next landing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from bot.store import rows
from bot.store.kept import landings
from bot.store.schema import add_once, segments, sessions
from compaction.summary.ledger import render

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from compaction.model import SessionId


async def render_anew(connection: AsyncConnection, session_id: SessionId, *, now: float) -> None:
    """Store the summary of a session's segments as they are now, inside a write transaction. `now`: epoch seconds."""
    session = (await connection.execute(select(sessions).where(sessions.c.id == session_id))).one()
    found = await connection.execute(
        select(segments).where(segments.c.session_id == session_id).order_by(segments.c.start_seq, segments.c.position)
    )
    stored = [rows.segment_from_row(row) for row in found]
    # A long session's takes half a second, and the voices of other rooms go through the loop meanwhile.
    rendered = await asyncio.to_thread(render, stored)
    summary = None if rendered is None else rendered.text
    revision = session.revision + 1
    await connection.execute(
        update(sessions).where(sessions.c.id == session_id).values(summary=summary, revision=revision)
    )
    values: dict[str, object] = {
        "session_id": session_id,
        "revision": revision,
        "cursor": session.cursor,
        "landed_at": now,
        "segment_id": None,
        "summary": summary,
    }
    await add_once(connection, landings, values)
