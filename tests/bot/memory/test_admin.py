"""File names of sessions, finding a session by the beginning of its id, and clearing an archive while a room is open.

The commands are tested in `cli`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event
from sqlalchemy.util.concurrency import await_

from bot.memory.admin import MemoryAdmin, MemoryAdminError, file_name
from bot.store import tiers
from compaction.model import Turn
from tests.bot.evening import Evening


@given(st.text(min_size=1))
def test_no_id_leads_out_of_its_folder(name: str) -> None:
    """The file name of a session never leaves its folder, whatever the id, and the id can be read back from
    the name.
    """
    written = file_name(name)
    assert not {"/", "\\", "\0"} & set(written)
    assert not written.startswith(".")
    if all(ord(char) < 0x80 or 0xE000 > ord(char) > 0xFF for char in name):
        assert unquote(written) == name


async def test_a_session_is_found_by_how_it_begins(file: Path) -> None:
    """Without an id the last session is found. If several ids begin with the given text, the error lists them."""
    async with Evening(file, name="20260101-one") as first:
        await first.say("Hello.")
        await first.timeline.end()
        clock = first.clock
    clock.advance(60.0)
    async with Evening(file, name="20260101-two", clock=clock) as second:
        admin = MemoryAdmin(second.database, clock)
        assert await admin.find_session(None) == "20260101-two"
        assert await admin.find_session("20260101-o") == "20260101-one"
        with pytest.raises(MemoryAdminError, match="20260101-two, 20260101-one"):
            await admin.find_session("2026")
        with pytest.raises(MemoryAdminError, match="no session"):
            await admin.find_session("x")


async def test_turns_are_stored_while_an_archive_is_pruned(evening: Evening, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive of years is pruned in small transactions: whoever speaks meanwhile is not kept waiting for all."""
    monkeypatch.setattr(tiers, "PRUNED_AT_ONCE", 1)
    await evening.talk(71)
    folded = [segment.id for segment in evening.timeline.compactor.segments]
    await evening.tier_store.archive(evening.session_id, folded, now=evening.clock.now())
    said: list[asyncio.Task[Turn]] = []
    unstored: list[int] = []

    def on_execute(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith("UPDATE segments "):
            return
        unstored.append(evening.timeline.store_queue.waiting)
        if not said:
            said.append(asyncio.create_task(evening.say("Am I kept waiting?")))
            # Until it waits for the database.
            await_(asyncio.sleep(0))

    event.listen(evening.database.dialect.writers.sync_engine, "before_cursor_execute", on_execute)
    admin = MemoryAdmin(evening.database, evening.clock)
    assert await admin.clear_archive(None) == len(folded) == 2
    assert unstored == [0, 0]
    await asyncio.gather(*said)
