"""The local chat server itself. Its answers are tested through the real client in tests/bot/llm."""

from __future__ import annotations

import pytest

from rehearsal.errors import RehearsalError
from rehearsal.servers.chat import LocalChatServer


@pytest.mark.asyncio
async def test_a_busy_port_is_a_plain_sentence() -> None:
    """The error for a port that is in use says so and what to do."""
    async with LocalChatServer() as first:
        port = int(first.base_url.rsplit(":", 1)[1].split("/")[0])
        with pytest.raises(RehearsalError, match=f"port {port}.*Choose another"):
            await LocalChatServer(port=port).__aenter__()
