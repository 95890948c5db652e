"""The API's objects as a bot gets them."""

from __future__ import annotations

import pytest

from rehearsal.discord.guild.intents import UNPRIVILEGED, Intent
from rehearsal.discord.guild.payloads import readable

BOT = 1001


@pytest.mark.parametrize(
    ("author", "content", "intents", "expected"),
    [
        ("2001", "a secret", UNPRIVILEGED, ""),
        ("2001", "a secret", int(Intent.MESSAGE_CONTENT), "a secret"),
        ("2001", "<@1001> hello", 0, "<@1001> hello"),
        ("1001", "my own", 0, "my own"),
    ],
)
def test_texts_need_an_intent(author: str, content: str, intents: int, expected: str) -> None:
    """A bot always reads what it wrote, and what mentions it. The message itself is not changed."""
    mentions = [{"id": str(BOT)}] if f"<@{BOT}>" in content else []
    message = {"author": {"id": author}, "content": content, "mentions": mentions, "attachments": [{"id": "0"}]}
    seen = readable(message, user_id=BOT, intents=intents)
    assert (seen["content"], bool(seen["attachments"])) == (expected, bool(expected))
    assert message["content"] == content
