"""Whether a session is only written down, also after a crash."""

from __future__ import annotations

import pytest

from bot.channel.port import ListenRequest
from bot.room.listen_only import remembered_request
from bot.server_settings import ListenOnly, ServerSettings, no_server_settings
from compaction.model import SessionId

GUILD = 10
FIRST, SECOND = SessionId("first"), SessionId("second")
THREAD, FILE = ListenRequest("thread", 601), ListenRequest("file", 601)


@pytest.mark.asyncio
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
