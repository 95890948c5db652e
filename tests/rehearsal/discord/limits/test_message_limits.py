"""What of a message people see and are called by: what an edit leaves of it, its embeds and mentions, and its files."""

from __future__ import annotations

import pytest

from rehearsal.discord.guild.payloads import Json, message
from rehearsal.discord.guild.spec import GuildSpec
from rehearsal.discord.limits import MAX_ATTACHMENT_BYTES, RefusedError, edit_message, new_message_fields


def file(size: int, number: str = "1") -> Json:
    """Return a file that came with a request."""
    return {"id": number, "filename": "a.txt", "size": size, "url": "http://x/a.txt", "proxy_url": "http://x/a.txt"}


def test_an_edit_changes_what_it_names() -> None:
    """A part that is null is taken away, a part that is not named stays, and something must be left."""
    kept, gone = file(1), file(2, "2")
    edited: Json = {
        "content": "old",
        "flags": 0,
        "embeds": [],
        "components": [{"type": 1}],
        "attachments": [kept, gone],
    }
    edit_message(edited, {"components": [], "embeds": [{"title": "Card", "url": None}]})
    assert (edited["content"], edited["components"]) == ("old", [])
    assert edited["embeds"] == [{"title": "Card", "type": "rich"}]
    edit_message(edited, {"content": None, "attachments": [{"id": "1"}, file(3, "3")]})
    assert (edited["content"], edited["attachments"]) == ("", [kept, file(3, "3")])
    with pytest.raises(RefusedError, match="empty message"):
        edit_message(edited, {"embeds": None, "attachments": None})
    assert edited["embeds"] != []


def test_a_link_unfolds_unless_the_message_hides_embeds() -> None:
    """What hides them hides the bot's own too, until an edit shows them again."""
    link = {"content": "See https://x.de/a."}
    assert new_message_fields(link)["embeds"] == [{"type": "link", "url": "https://x.de/a."}]
    hidden: Json = {"content": "", "flags": 4, "embeds": [], "components": [], "attachments": []}
    assert new_message_fields({**link, "flags": 4})["embeds"] == []
    edit_message(hidden, {**link, "embeds": [{"title": "Card"}]})
    assert hidden["embeds"] == []
    edit_message(hidden, {"embeds": [{"title": "Card"}], "flags": 0})
    assert (hidden["embeds"], hidden["flags"]) == ([{"title": "Card", "type": "rich"}], 0)


@pytest.mark.parametrize(
    ("allowed", "people", "roles", "everyone"),
    [
        (None, ["2001", "2002"], ["7"], True),
        ({}, [], [], False),
        ({"parse": ["users"]}, ["2001"], [], False),
        ({"parse": [], "users": [2001], "roles": ["8"], "replied_user": True}, ["2001", "2002"], [], False),
        ({"parse": ["everyone", "roles"]}, [], ["7"], True),
    ],
)
def test_a_message_calls_only_whom_it_may(
    allowed: Json | None, people: list[str], roles: list[str], everyone: bool
) -> None:
    """By default everybody whom it names, and who wrote what it answers; nobody who is no member."""
    told = message(
        GuildSpec(),
        message_id=1,
        channel_id=601,
        author_id=1001,
        content="<@2001> <@9> <@&7> @everyone",
        replies_to={"id": "5", "author": {"id": "2002"}},
        allowed=allowed,
    )
    assert [each["id"] for each in told["mentions"]] == people
    assert (told["mention_roles"], told["mention_everyone"]) == (roles, everyone)


def test_files_have_a_limit_together() -> None:
    """The limit is that of a server without boosts."""
    assert new_message_fields({"attachments": [file(MAX_ATTACHMENT_BYTES)]})
    with pytest.raises(RefusedError, match="too large"):
        new_message_fields({"attachments": [file(MAX_ATTACHMENT_BYTES), file(1)]})
