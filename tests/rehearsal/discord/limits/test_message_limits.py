"""Messages that Discord would refuse are refused, and edits change what they name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rehearsal.discord.limits import (
    MAX_ATTACHMENT_BYTES,
    RefusedError,
    check_choices,
    check_message,
    edit_message,
)

if TYPE_CHECKING:
    from rehearsal.discord.guild.payloads import Json


def buttons(*given: Json) -> Json:
    """Return one row of buttons."""
    return {"type": 1, "components": [{"type": 2, "style": 1, **each} for each in given]}


def named(*ids: str) -> Json:
    """Return one row of buttons with these custom ids."""
    return buttons(*({"custom_id": each, "label": each} for each in ids))


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        ({"content": "x" * 2000}, ""),
        ({"content": "x" * 2001}, "content.*2000"),
        ({"embeds": [{"title": "x" * 256, "footer": {"text": "x" * 2048}, "author": {"name": "x" * 256}}]}, ""),
        ({"embeds": [{"footer": {"text": "x" * 2049}}]}, "footer.*2048"),
        ({"embeds": [{"author": {"name": "x" * 257}}]}, "author.*256"),
        ({"embeds": [{"fields": [{"name": "x", "value": "x" * 1025}]}]}, "value.*1024"),
        ({"embeds": [{"fields": [{"name": "x", "value": ""}]}]}, "a name and"),
        ({"embeds": [{"description": "x" * 4096}, {"footer": {"text": "x" * 1905}}]}, "exceed 6000"),
        ({"embeds": [{}] * 11}, "embeds.*10"),
        ({"components": [named(*"abcde")]}, ""),
        ({"components": [named(*"abcdef")]}, "1 to 5"),
        ({"components": [buttons()]}, "1 to 5"),
        ({"components": [named(each) for each in "abcdef"]}, "components.*5"),
        ({"components": [named("a"), named("a")]}, "duplicated"),
        ({"components": [buttons({"custom_id": "a", "label": "x" * 80})]}, ""),
        ({"components": [buttons({"custom_id": "a", "label": "x" * 81})]}, "label.*80"),
        ({"components": [buttons({"custom_id": "a" * 101})]}, "custom_id"),
        ({"components": [buttons({"url": "https://example.org", "label": "Page"})]}, ""),
        ({"attachments": [{"size": MAX_ATTACHMENT_BYTES}]}, ""),
        ({"attachments": [{"size": MAX_ATTACHMENT_BYTES}, {"size": 1}]}, "too large"),
    ],
)
def test_what_is_too_long_or_too_many_is_refused(data: Json, refused: str) -> None:
    """Each part of a message has Discord's limits."""
    if not refused:
        check_message(data)
        return
    with pytest.raises(RefusedError, match=refused):
        check_message(data)


def test_an_edit_changes_what_it_names() -> None:
    """A part that is null is taken away, a part that is not named stays, and something must be left."""
    message: Json = {"content": "old", "embeds": [{"title": "Card"}], "components": [named("a")], "attachments": []}
    edit_message(message, {"components": []})
    assert (message["content"], message["components"]) == ("old", [])
    edit_message(message, {"content": None})
    assert (message["content"], message["embeds"]) == ("", [{"title": "Card"}])
    with pytest.raises(RefusedError, match="empty message"):
        edit_message(message, {"embeds": None})
    assert message["embeds"] == [{"title": "Card"}]


@pytest.mark.parametrize(
    ("name", "value", "fits"),
    [("x" * 100, "x" * 100, True), ("x" * 101, "x", False), ("x", "x" * 101, False), ("", "x", False), ("x", 7, True)],
)
def test_suggestions_have_limits(name: str, value: object, fits: bool) -> None:
    """The name of a suggestion has 1 to 100 characters, and so has a value that is a text."""
    choices = [{"name": name, "value": value}]
    if fits:
        assert check_choices(choices) == choices
        return
    with pytest.raises(RefusedError, match="1 to 100"):
        check_choices(choices)
