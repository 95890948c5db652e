"""A room's text chat on Discord: files newest first, errors with their remedy, and posts that mention nobody."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import discord
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.channel.port import ChatError
from bot.discord.chat import DiscordChat
from bot.discord.client import connected
from rehearsal.discord import payloads
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.test_client import ADA, FakeHousehold, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FORBIDDEN = discord.Forbidden(SimpleNamespace(status=403, reason="no"), "Missing Permissions")  # type: ignore[arg-type]


@dataclass
class Attachment:
    """A file of a message. `claims`: the size that Discord reports, if it differs from the real one."""

    id: int
    filename: str
    content: bytes
    content_type: str | None = None
    claims: int | None = None

    @property
    def size(self) -> int:
        """Return the size that Discord reports."""
        return len(self.content) if self.claims is None else self.claims

    async def read(self) -> bytes:
        """Return the content."""
        return self.content


@dataclass
class Channel:
    """A text channel with messages, newest first, that records what is sent."""

    messages: list[Any] = field(default_factory=list)
    sent: list[tuple[str, discord.AllowedMentions]] = field(default_factory=list)
    error: Exception | None = None

    async def history(self, *, limit: int) -> AsyncIterator[Any]:
        """Yield the newest messages."""
        if self.error is not None:
            raise self.error
        for message in self.messages[:limit]:
            yield message

    async def send(self, text: str, *, allowed_mentions: discord.AllowedMentions) -> None:
        """Record what is sent."""
        if self.error is not None:
            raise self.error
        self.sent.append((text, allowed_mentions))


def message(minute: int, *attachments: Attachment) -> Any:
    """Return a message by Ada."""
    return SimpleNamespace(
        attachments=attachments,
        author=SimpleNamespace(display_name="Ada"),
        created_at=datetime(2025, 10, 9, 9, minute, tzinfo=UTC),
    )


def chat(voice: Channel, text: Channel | None = None) -> DiscordChat:
    """Return the chat of these channels."""
    return DiscordChat(voice, text or voice)  # type: ignore[arg-type]


@pytest.mark.asyncio
async def test_files_of_both_channels_newest_first() -> None:
    """The files of the voice and the text channel are listed newest first. If both are the same channel, each is listed
    once.
    """
    voice = Channel([message(5, Attachment(1, "b.txt", b"bb", "text/plain")), message(1, Attachment(2, "a.txt", b"a"))])
    text = Channel([message(3, Attachment(3, "c.txt", b"ccc"))])
    both = chat(voice, text)
    files = await both.files(most=2)
    assert [(file.name, file.size_bytes, file.content_type, file.by) for file in files] == [
        ("b.txt", 2, "text/plain", "Ada"),
        ("c.txt", 3, "", "Ada"),
    ]
    assert files[0].at == datetime(2025, 10, 9, 9, 5, tzinfo=UTC).timestamp()
    assert await both.fetch(files[1], max_bytes=10) == b"ccc"
    assert len(await chat(voice).files(most=9)) == 2


@pytest.mark.asyncio
async def test_what_is_too_large_is_not_read() -> None:
    """A file is refused if its reported size or its real size is too large."""
    voice = Channel([message(1, Attachment(1, "big.txt", b"x" * 99), Attachment(2, "liar.txt", b"x" * 99, claims=1))])
    own = chat(voice)
    for file in await own.files(most=9):
        with pytest.raises(ChatError):
            await own.fetch(file, max_bytes=10)


@pytest.mark.asyncio
async def test_refusals_name_the_right() -> None:
    """If Discord forbids an action, the error names the missing permission; other errors say to try again."""
    channel = Channel(error=FORBIDDEN)
    own = chat(channel)
    with pytest.raises(ChatError, match="Read Message History"):
        await own.files(most=1)
    with pytest.raises(ChatError, match="Send Messages"):
        await own.post("x")
    channel.error = OSError("the network is gone")
    with pytest.raises(ChatError, match="Try again"):
        await own.post("x")


@pytest.mark.asyncio
async def test_a_post_mentions_nobody() -> None:
    """A post never mentions anybody and is cut to Discord's limit of 2,000 characters."""
    voice, text = Channel(), Channel()
    await chat(voice, text).post("@everyone " + "x" * 3_000)
    ((sent, mentions),) = text.sent
    assert len(sent) == 2_000
    assert (mentions.everyone, mentions.users, mentions.roles) == (False, False, False)
    assert voice.sent == []


@pytest.mark.asyncio
async def test_over_the_wire() -> None:
    """With the real discord.py, a file from the voice channel's chat can be read, and a post can be sent."""

    async def notes(request: web.Request) -> web.Response:
        return web.Response(body=b"The gate code is 4411.")

    files = TestServer(_app(notes))
    async with (
        files,
        LocalDiscord() as local,
        connected(settings_for(local), FakeHousehold()) as client,
    ):
        channel = local.guild.voice_channels[0]
        dropped = {"id": "77", "filename": "notes.txt", "size": 22, "url": str(files.make_url("/notes.txt"))}
        local._state.add_message(
            payloads.message(
                local.guild,
                message_id=local._state.snowflake(),
                channel_id=channel.id,
                author_id=ADA,
                content="Look!",
                extra={"attachments": [dropped | {"proxy_url": "", "content_type": "text/plain; charset=utf-8"}]},
            )
        )
        place = client.place(local.guild.id, channel.id)
        assert place is not None
        own = place.chat
        (file,) = await own.files(most=5)
        assert (file.name, file.size_bytes, file.by) == ("notes.txt", 22, local.guild.member(ADA).name)
        assert await own.fetch(file, max_bytes=1_000) == b"The gate code is 4411."
        await own.post("https://maps.example")
        assert [each.content for each in local._state.messages()] == ["Look!", "https://maps.example"]


def _app(notes: Any) -> web.Application:
    app = web.Application()
    app.router.add_get("/notes.txt", notes)
    return app
