"""What an edit leaves of a message, and files that are too large."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rehearsal.discord.limits import MAX_ATTACHMENT_BYTES, RefusedError, edit_message, new_message_fields

if TYPE_CHECKING:
    from rehearsal.discord.guild.payloads import Json


def file(size: int, number: str = "1") -> Json:
    """Return a file that came with a request."""
    return {"id": number, "filename": "a.txt", "size": size, "url": "http://x/a.txt", "proxy_url": "http://x/a.txt"}


def test_an_edit_changes_what_it_names() -> None:
    """A part that is null is taken away, a part that is not named stays, and something must be left."""
    kept, gone = file(1), file(2, "2")
    message: Json = {"content": "old", "embeds": [], "components": [{"type": 1}], "attachments": [kept, gone]}
    edit_message(message, {"components": [], "embeds": [{"title": "Card", "url": None}]})
    assert (message["content"], message["components"]) == ("old", [])
    assert message["embeds"] == [{"title": "Card", "type": "rich"}]
    edit_message(message, {"content": None, "attachments": [{"id": "1"}, file(3, "3")]})
    assert (message["content"], message["attachments"]) == ("", [kept, file(3, "3")])
    with pytest.raises(RefusedError, match="empty message"):
        edit_message(message, {"embeds": None, "attachments": None})
    assert message["embeds"] != []


def test_files_have_a_limit_together() -> None:
    """The limit is that of a server without boosts."""
    assert new_message_fields({"attachments": [file(MAX_ATTACHMENT_BYTES)]})
    with pytest.raises(RefusedError, match="too large"):
        new_message_fields({"attachments": [file(MAX_ATTACHMENT_BYTES), file(1)]})
