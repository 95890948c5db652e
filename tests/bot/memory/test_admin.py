"""File names of sessions, and finding a session by the beginning of its id. The commands are tested in `cli`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.admin import MemoryAdmin, MemoryAdminError, file_name
from tests.bot.evening import Evening

if TYPE_CHECKING:
    from tests.bot.conftest import Place


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


@pytest.mark.asyncio
async def test_a_session_is_found_by_how_it_begins(place: Place) -> None:
    """Without an id the last session is found. If several ids begin with the given text, the error lists them."""
    async with Evening(place, name="20260101-one") as first:
        await first.say("Hello.")
        await first.memory.end()
        clock = first.clock
    clock.advance(60.0)
    async with Evening(place, name="20260101-two", clock=clock) as second:
        tending = MemoryAdmin(second.database, clock)
        assert await tending.find_session(None) == "20260101-two"
        assert await tending.find_session("20260101-o") == "20260101-one"
        with pytest.raises(MemoryAdminError, match="2 sessions begin with 2026: 20260101-two, 20260101-one"):
            await tending.find_session("2026")
        with pytest.raises(MemoryAdminError, match="There is no session x"):
            await tending.find_session("x")
