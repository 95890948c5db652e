"""Posting a link: only http(s) links and text, and only on behalf of the person who asked for it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.tools.built_in import link_tool, post_text
from bot.brain.tools.tool import NOBODY, Asker, ToolError
from bot.brain.tools.toolbox import Toolbox
from bot.channel.port import ChatError
from compaction.payload import MessageToolCall
from tests.bot.brain.tools.calls import told
from tests.fakes.chat import FakeChat

ADA = Asker(1, "Ada", present=True)
MAP = json.dumps({"url": "https://maps.example/lisbon?q=1", "text": "The map:"})


async def posted(chat: FakeChat, asker: Asker, arguments: str = MAP) -> str:
    """Return what the model reads after a call on behalf of `asker`."""
    return await told(Toolbox([link_tool(chat)]).for_asker(asker), MessageToolCall("c", "post_link", arguments))


async def test_who_asks_gets_it_posted() -> None:
    """A link with its text is posted for the person who asked for it."""
    chat = FakeChat()
    assert "is posted in the channel's chat" in await posted(chat, ADA)
    assert chat.posted == ["The map:\nhttps://maps.example/lisbon?q=1"]


async def test_nobody_else_does() -> None:
    """Nothing is posted without an asker, or for a person who has left."""
    chat = FakeChat()
    for asker in (NOBODY, Asker(1, "Ada")):
        assert "is posted" not in await posted(chat, asker)
    assert chat.posted == []


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("", ""),
        ("javascript:alert(1)", ""),
        ("file:///etc/passwd", ""),
        ("discord://invite", "x"),
        ("//evil.example", ""),
        ("https://", ""),
        ("https://bank.example@evil.example", ""),
        ("https://evil.example/a b", ""),
        ("https://bank.example/](https://evil.example)", "[Your bank"),
        ("https://evil.example/\nhttps://other.example", ""),
        ("https://[::1", ""),
        ("https://evil.example:99999999", ""),
        ("", "see ftp://evil.example"),
        ("", "see https://bank.example@evil.example."),
        ("", "see [https://bank.example](https://evil.example)"),
        ("https://evil.example", "[the bank]("),
    ],
)
def test_only_web_addresses(url: str, text: str) -> None:
    """Anything but a single http(s) address with a plain host is refused, in the link and in the text."""
    with pytest.raises(ToolError):
        post_text(url, text)


def test_words_alone_may_be_posted() -> None:
    """Text without a link may be posted, and is put on one line."""
    assert post_text("", "Bread,\n milk") == "Bread, milk"
    assert post_text(" https://a.example ", "") == "https://a.example"
    assert post_text("", "It is here (https://a.example/b).") == "It is here (https://a.example/b)."


@given(url=st.text(max_size=60), text=st.text(max_size=60))
def test_whatever_is_posted_is_a_web_address_or_words(url: str, text: str) -> None:
    """For any arguments of the model, the last line of a posted link is an http(s) address."""
    try:
        message = post_text(url, text)
    except ToolError:
        message = "https://refused.example"
    *_, last = message.split("\n")
    assert not url.strip() or last.startswith(("http://", "https://"))


async def test_a_refusal_of_discord_is_told() -> None:
    """If Discord refuses the post, the model reads why."""
    chat = FakeChat()
    chat.error = ChatError("I may not write here. Give me the right Send Messages there.")
    assert "Send Messages" in await posted(chat, ADA)
