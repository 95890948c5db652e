"""Whether a session is only written down, also after a crash."""

from __future__ import annotations

import pytest

from bot.channel.port import ListenRequest
from bot.room.transcript_writer import remembered_request, store_thread, stored_thread
from bot.server_settings import ListenOnly, ServerSettings, no_server_settings
from compaction.model import SessionId

GUILD = 10
FIRST, SECOND = SessionId("first"), SessionId("second")
THREAD, FILE = ListenRequest("thread", 601), ListenRequest("file", 601)


@pytest.mark.parametrize(
    ("stored", "wanted", "session_id", "expected"),
    [
        (None, None, FIRST, None),
        (None, THREAD, FIRST, THREAD),
        (ListenOnly(FIRST, "thread", 601), None, FIRST, THREAD),
        (ListenOnly(FIRST, "thread", 601), FILE, FIRST, FILE),
        (ListenOnly(FIRST, "thread", 601), None, SECOND, None),
    ],
)
async def test_a_request_holds_for_its_session(
    stored: ListenOnly | None, wanted: ListenRequest | None, session_id: SessionId, expected: ListenRequest | None
) -> None:
    """A room that resumes a session goes on as its first one was asked to; another session begins without a request.
    The server's other choices stay.
    """
    servers = no_server_settings()
    await servers.change(GUILD, lambda _: ServerSettings(live_message=False, listen_only=stored), by=1)
    assert await remembered_request(wanted, session_id, GUILD, servers) == expected
    kept = None if expected is None else ListenOnly(session_id, expected.target, expected.channel_id)
    assert servers.of(GUILD) == ServerSettings(live_message=False, listen_only=kept)


async def test_a_thread_is_kept_as_long_as_its_session() -> None:
    """The next room goes on with it, also one that was asked the same; another session or channel begins another."""
    servers = no_server_settings()
    await remembered_request(THREAD, FIRST, GUILD, servers)
    await store_thread(700, FIRST, GUILD, servers)
    for wanted in (None, THREAD):
        await remembered_request(wanted, FIRST, GUILD, servers)
        assert stored_thread(FIRST, GUILD, servers) == 700
    assert stored_thread(SECOND, GUILD, servers) is None
    await store_thread(701, SECOND, GUILD, servers)
    assert stored_thread(FIRST, GUILD, servers) == 700
    await remembered_request(ListenRequest("thread", 602), FIRST, GUILD, servers)
    assert stored_thread(FIRST, GUILD, servers) is None
