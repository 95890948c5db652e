"""A room's text chat on Discord: files newest first, errors with their remedy, posts that mention nobody, and the
buttons of a call that waits.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import discord
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.brain.tools.built_in import attachment_tools
from bot.brain.tools.frozen_calls import TOO_LATE
from bot.brain.tools.tool import Asker, RoomTool
from bot.brain.tools.toolbox import Reach, Toolbox
from bot.channel.port import CallRequest, ChatError
from bot.discord.chat import DiscordChat, call_text
from bot.discord.connection import connected
from bot.discord.posting import MESSAGE_CHARS
from compaction.payload import MessageToolCall
from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from tests.bot.brain.tools.calls import for_all
from tests.bot.discord.client import ADA, FakeRooms, room_channel_in, settings_for
from tests.patience import PATIENCE_S, settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from rehearsal.discord.interactions.result import InteractionResult
    from rehearsal.discord.server import LocalDiscord


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
        return len(self.content) if self.claims is None else self.claims

    async def read(self) -> bytes:
        return self.content


MEMBER = SimpleNamespace(id=1)
OWN_ID = 9
READS_AND_WRITES = discord.Permissions(view_channel=True, read_message_history=True, send_messages=True)


class Guild:
    """A guild in which Discord is asked for a member. `error`: what it answers instead."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.error: Exception | None = None
        self.me = SimpleNamespace(id=OWN_ID)

    async def fetch_member(self, user_id: int) -> Any:
        self.asked.append(user_id)
        if self.error is not None:
            raise self.error
        return MEMBER


@dataclass
class Channel:
    """A voice channel with messages, newest first, that records what is sent. `allowed`: the asker's permissions."""

    messages: list[Any] = field(default_factory=list)
    sent: list[tuple[str, discord.AllowedMentions]] = field(default_factory=list)
    error: Exception | None = None
    allowed: discord.Permissions = field(default_factory=lambda: READS_AND_WRITES)
    guild: Guild = field(default_factory=Guild)

    def permissions_for(self, member: Any) -> discord.Permissions:
        assert member is MEMBER
        return self.allowed

    async def history(self, *, limit: int) -> AsyncIterator[Any]:
        if self.error is not None:
            raise self.error
        for message in self.messages[:limit]:
            yield message

    async def send(
        self,
        text: str,
        *,
        allowed_mentions: discord.AllowedMentions,
        nonce: str,
        suppress_embeds: bool,
        silent: bool = False,
    ) -> None:
        assert nonce
        assert not silent or self.error is not None, "only what takes a failed post away"
        assert suppress_embeds
        if self.error is not None:
            raise self.error
        self.sent.append((text, allowed_mentions))


def message(minute: int, *attachments: Attachment, author_id: int = 1) -> Any:
    """Return a message by Ada, or by another author whom people call so."""
    return SimpleNamespace(
        attachments=attachments,
        author=SimpleNamespace(id=author_id, display_name="Ada"),
        created_at=datetime(2025, 10, 9, 9, minute, tzinfo=UTC),
    )


def chat(channel: Channel, *, asker_id: int | None = 1) -> DiscordChat:
    """Return the channel's chat with the permissions of one member."""
    return DiscordChat(channel, asker_id=asker_id)  # type: ignore[arg-type]


async def test_files_newest_first() -> None:
    """The files of the channel are listed newest first, at most as many as wanted."""
    channel = Channel(
        [
            message(3, Attachment(3, "c.txt", b"ccc")),
            message(5, Attachment(1, "b.txt", b"bb", "text/plain")),
            message(1, Attachment(2, "a.txt", b"a")),
        ]
    )
    own = chat(channel)
    files = await own.files(most=2)
    assert [(file.name, file.size_bytes, file.content_type, file.by, file.by_id) for file in files] == [
        ("b.txt", 2, "text/plain", "Ada", 1),
        ("c.txt", 3, "", "Ada", 1),
    ]
    assert files[0].at == datetime(2025, 10, 9, 9, 5, tzinfo=UTC).timestamp()
    assert await own.fetch(files[1], max_bytes=10) == b"ccc"


async def test_what_the_bot_has_posted_itself_is_not_listed() -> None:
    """A transcript has the words of people who may have opted out, or been forgotten, since."""
    transcript = Attachment(2, "transcript.md", b"Bo: I am in love.")
    channel = Channel([message(2, transcript, author_id=OWN_ID), message(1, Attachment(1, "a.txt", b"a"))])
    assert [file.name for file in await chat(channel).files(most=9)] == ["a.txt"]


@pytest.mark.parametrize(
    ("allowed", "reads", "writes"),
    [
        (READS_AND_WRITES, True, True),
        (discord.Permissions.all(), True, True),
        (discord.Permissions(view_channel=True, read_message_history=True), True, False),
        (discord.Permissions(view_channel=True, send_messages=True), False, True),
        (discord.Permissions(read_message_history=True, send_messages=True), False, False),
        (discord.Permissions(view_channel=True), False, False),
        (discord.Permissions.none(), False, False),
    ],
)
async def test_the_askers_permissions_decide_each_time(allowed: discord.Permissions, reads: bool, writes: bool) -> None:
    """The bot reads and writes only for somebody who may do so there now; who may not learns which right is missing."""
    channel = Channel([message(1, Attachment(1, "a.txt", b"a"))], allowed=allowed)
    own = chat(channel)
    if reads:
        assert len(await own.files(most=9)) == 1
    else:
        with pytest.raises(ChatError, match=r"person who asks.*History"):
            await own.files(most=9)
    if writes:
        await own.post("x")
    else:
        with pytest.raises(ChatError, match=r"person who asks.*Send"):
            await own.post("x")
    assert len(channel.sent) == writes
    assert channel.guild.asked == [1, 1], "Discord is asked about the member each time"
    channel.allowed = discord.Permissions.none()
    with pytest.raises(ChatError, match="person who asks"):
        await own.files(most=9)
    with pytest.raises(ChatError, match="person who asks"):
        await own.post("x")


async def test_without_a_member_who_asks_nothing_is_read_or_written() -> None:
    """If nobody asks, or they are no member any more, or Discord does not say, the chat is not used."""
    channel = Channel([message(1, Attachment(1, "a.txt", b"a"))])
    gone = discord.NotFound(SimpleNamespace(status=404, reason="no"), "Unknown Member")  # type: ignore[arg-type]
    for asker_id, error, told in (
        (None, None, "one person"),
        (1, gone, "one person"),
        (1, OSError("the network is gone"), "Try again"),
        (1, TimeoutError(), "Try again"),
    ):
        channel.guild.error = error
        own = chat(channel, asker_id=asker_id)
        with pytest.raises(ChatError, match=told):
            await own.files(most=9)
        with pytest.raises(ChatError, match=told):
            await own.post("x")
    assert channel.sent == []


async def test_what_is_too_large_is_not_read() -> None:
    """A file is refused if its reported size or its real size is too large."""
    voice = Channel([message(1, Attachment(1, "big.txt", b"x" * 99), Attachment(2, "liar.txt", b"x" * 99, claims=1))])
    own = chat(voice)
    for file in await own.files(most=9):
        with pytest.raises(ChatError):
            await own.fetch(file, max_bytes=10)


async def test_refusals_name_the_right() -> None:
    """If Discord forbids an action, the error names the missing permission; other errors say to try again."""
    channel = Channel(error=FORBIDDEN)
    own = chat(channel)
    with pytest.raises(ChatError, match=r"I may not.*History"):
        await own.files(most=1)
    with pytest.raises(ChatError, match=r"I may not.*Send"):
        await own.post("x")
    channel.error = OSError("the network is gone")
    with pytest.raises(ChatError, match="Try again"):
        await own.post("x")


async def test_a_post_mentions_nobody() -> None:
    """A post never mentions anybody and is cut to Discord's limit of 2,000 characters."""
    channel = Channel()
    await chat(channel).post("@everyone " + "x" * 3_000)
    ((sent, mentions),) = channel.sent
    assert len(sent) == 2_000
    assert (mentions.everyone, mentions.users, mentions.roles) == (False, False, False)


async def test_over_the_wire(local: LocalDiscord) -> None:
    """With the real discord.py, a file from the voice channel's chat can be read, and a post can be sent there.

    Its message mentions the bot: Discord shows nothing of the others to a bot without the message content intent.
    The text channel in which somebody typed /join is neither read nor written, and who is no member gets nothing. A
    link that is posted does not unfold, so Discord does not fetch it.
    """

    async def notes(request: web.Request) -> web.Response:
        return web.Response(body=b"The gate code is 4411.")

    files, rooms = TestServer(_app(notes)), FakeRooms()
    async with files, connected(settings_for(local), rooms) as client:
        channel = local.guild.voice_channels[0]
        for name, channel_id in (("notes.txt", channel.id), ("moderators.txt", local.guild.text_channel.id)):
            dropped = {"id": str(channel_id), "filename": name, "size": 22, "url": str(files.make_url("/notes.txt"))}
            local.state.add_message(
                payloads.message(
                    local.guild,
                    message_id=local.state.snowflake(),
                    channel_id=channel_id,
                    author_id=ADA,
                    content=f"<@{ROOMTONE_BOT_ID}> Look!",
                    extra={
                        "attachments": [
                            dropped
                            | {"proxy_url": "https://example.org/a", "content_type": "text/plain; charset=utf-8"}
                        ]
                    },
                )
            )
        await local.join(ADA)
        await settle(lambda: client.guilds[0].get_channel(channel.id).members)  # type: ignore[union-attr]
        await local.invoke(ADA, "join", channel_id=local.guild.text_channel.id)
        await settle(lambda: rooms.room_channel is not None)
        room_channel = rooms.room_channel
        assert room_channel is not None
        own = room_channel.chat_for(ADA)
        (file,) = await own.files(most=5)
        assert (file.name, file.size_bytes, file.by) == ("notes.txt", 22, local.guild.member(ADA).name)
        assert await own.fetch(file, max_bytes=1_000) == b"The gate code is 4411."
        await own.post("https://maps.example")
        written = [(each.channel_id, each.content, each.payload["flags"]) for each in local.state.messages()]
        unfolds_nothing = discord.MessageFlags.suppress_embeds.flag
        assert written[2:] == [(channel.id, "https://maps.example", unfolds_nothing)]
        with pytest.raises(ChatError, match="one person"):
            await room_channel.chat_for(7).files(most=5)


def _app(notes: Any) -> web.Application:
    app = web.Application()
    app.router.add_get("/notes.txt", notes)
    return app


BEN, LOUNGE = 2002, 600
ROOMS: Any = SimpleNamespace(room_channel_of=lambda _: None)


def seen(result: InteractionResult) -> str:
    return str(result.replies[-1].payload["content"])


async def test_only_the_askers_press_counts_over_the_wire(local: LocalDiscord) -> None:
    """The chat shows the call in full. Ben's press answers only Ben, Ada's has the call carried out, and the message
    then says so without buttons. A second press, or one after a restart, has nothing done and says nothing of what was.
    """
    done: list[dict[str, object]] = []

    async def write(arguments: Mapping[str, object]) -> str:
        done.append(dict(arguments))
        return "Written."

    tool = RoomTool("files_write_file", "", {"type": "object"}, for_all(write), server="files", title="write_file")
    ask = [MessageToolCall("c", tool.name, json.dumps({"path": "plan.txt", "text": "Coffee at nine."}))]
    async with connected(settings_for(local), ROOMS) as client:
        room_channel = room_channel_in(client, LOUNGE)
        toolbox = Toolbox([tool], ask_for_press=room_channel.ask_for_press, reach=lambda: Reach((Asker(ADA),)))
        use = toolbox.for_asker(Asker(ADA, "Ada", present=True))
        await use.run_all(ask)
        (posted,) = local.messages
        for shown in ("Ada", "write\\_file", "files", '"path": "plan.txt"', '"text": "Coffee at nine."'):
            assert shown in posted.payload["content"]
        for label in ("Do it", "Don't"):
            assert "Ada" in seen(await local.press(BEN, posted.id, label))
        assert done == []
        buttons = posted.payload["components"]
        presses = await asyncio.gather(*(local.press(ADA, posted.id, "Do it") for _ in range(2)))
        assert TOO_LATE in map(seen, presses)
        await settle(lambda: "Done for Ada." in posted.payload["content"])
        assert not posted.payload.get("components")
        # Ada's Discord has not drawn the message anew yet.
        posted.payload["components"] = buttons
        assert seen(await local.press(ADA, posted.id, "Do it")) == TOO_LATE
        assert done == [{"path": "plan.txt", "text": "Coffee at nine."}]
        await use.run_all(ask)
        later = local.messages[-1]
        toolbox.frozen.on_done = None
    async with connected(settings_for(local), ROOMS):
        assert seen(await local.press(ADA, later.id, "Do it")) == TOO_LATE
    await toolbox.frozen.finish(within_s=PATIENCE_S)
    assert len(done) == 1


async def test_a_call_that_runs_is_stopped_by_its_button(local: LocalDiscord) -> None:
    """The chat does not show with what it was called. Ben's press answers only Ben, Ada's stops it."""
    goes_on = asyncio.Event()

    async def look(_: Mapping[str, object]) -> str:
        await goes_on.wait()
        return "A map."

    tool = RoomTool(
        "maps_look", "", {"type": "object"}, for_all(look), asks=False, slow=True, server="maps", title="look"
    )
    ask = [MessageToolCall("c", tool.name, json.dumps({"at": "the secret harbour"}))]
    async with connected(settings_for(local), ROOMS) as client:
        post = room_channel_in(client, LOUNGE).ask_for_press
        toolbox = Toolbox([tool], ask_for_press=post, reach=lambda: Reach((Asker(ADA),)), reply_waits_s=0.001)
        await toolbox.for_asker(Asker(ADA, "Ada", present=True)).run_all(ask)
        await settle(lambda: bool(local.messages))
        (posted,) = local.messages
        assert "Ada: look" in posted.payload["content"]
        assert "harbour" not in posted.payload["content"]
        assert "Ada" in seen(await local.press(BEN, posted.id, "Stop"))
        await local.press(ADA, posted.id, "Stop")
        await settle(lambda: "Stopped for Ada." in posted.payload["content"])
        assert not posted.payload.get("components")


def test_a_long_call_is_a_file() -> None:
    """Nothing of it is left out there, and the message stays within Discord's limit."""
    for request in (
        CallRequest("Ada", "write_file", "files", {"text": "word " * 900}),
        CallRequest("A" * 500, "t" * 900, "files", {}),
    ):
        text, content = call_text(request, "en")
        assert len(text) <= MESSAGE_CHARS
        assert content is not None
        assert json.loads(content) == {
            "server": request.server,
            "tool": request.tool,
            "arguments": request.arguments,
        }


@pytest.mark.parametrize("named", ["rm`", "rm\ufe01\U000e0100", "\u202erm", "מחק"])
def test_nothing_in_a_call_is_hidden(named: str) -> None:
    """Neither in an argument nor in the names of the tool and its server. No argument ends the block of code."""
    text, _ = call_text(CallRequest("Ada", named, named, {"path": f"```\n{named}"}), "en")
    assert text.count("```") == 2
    assert text.count(json.dumps(named.replace("`", ""))[1:-1]) >= 1
    assert all(char == "\n" or char.isprintable() for char in text)
    assert not set(text) & set(named) - set("rm`")


async def test_what_became_of_a_call_is_told_after_the_press_over_the_wire(
    local: LocalDiscord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discord may be slow to take that somebody has pressed, and the call be done before: the card tells the last."""
    tell_press, tell_end = discord.InteractionResponse.edit_message, discord.Message.edit
    told, done = list[str](), asyncio.Event()

    async def slowly(response: discord.InteractionResponse[Any], **how: Any) -> Any:
        await done.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        answered = await tell_press(response, **how)
        told.append("pressed")
        return answered

    async def at_once(message: discord.Message, **how: Any) -> discord.Message:
        told.append("ended")
        return await tell_end(message, **how)

    async def send(_: Mapping[str, object]) -> str:
        done.set()
        return "Sent."

    monkeypatch.setattr(discord.InteractionResponse, "edit_message", slowly)
    monkeypatch.setattr(discord.Message, "edit", at_once)
    tool = RoomTool("mail_send", "", {"type": "object"}, for_all(send), server="mail", title="send")
    async with connected(settings_for(local), ROOMS) as client:
        ask_for_press = room_channel_in(client, LOUNGE).ask_for_press
        toolbox = Toolbox([tool], ask_for_press=ask_for_press, reach=lambda: Reach((Asker(ADA, present=True),)))
        await toolbox.for_asker(Asker(ADA, "Ada", present=True)).run_all([MessageToolCall("c", tool.name, "{}")])
        (posted,) = local.messages
        await local.press(ADA, posted.id, "Do it")
        await toolbox.frozen.finish(within_s=PATIENCE_S)
    assert told == ["pressed", "ended"]
    assert "Done for Ada." in posted.payload["content"]


async def test_the_file_that_the_card_names_is_read_over_the_wire(local: LocalDiscord) -> None:
    """Ben drops another one with the same name before Ada presses."""

    async def content(request: web.Request) -> web.Response:
        return web.Response(body=f"Content {request.match_info['number']}.".encode())

    app, channel_id = web.Application(), local.guild.voice_channels[0].id
    app.router.add_get("/{number}", content)
    async with TestServer(app) as files, connected(settings_for(local), ROOMS) as client:

        def drop(number: int) -> int:
            """Let Ben post a file, and return its id."""
            file_id, url = local.state.snowflake(), str(files.make_url(f"/{number}"))
            dropped = {
                "id": str(file_id),
                "filename": "notes.txt",
                "size": 10,
                "url": url,
                "proxy_url": "https://example.org/a",
            }
            message = payloads.message(
                local.guild,
                message_id=local.state.snowflake(),
                channel_id=channel_id,
                author_id=BEN,
                content=f"<@{ROOMTONE_BOT_ID}> Look!",
                extra={"attachments": [dropped | {"content_type": "text/plain"}]},
            )
            local.state.add_message(message)
            return file_id

        room_channel = room_channel_in(client, LOUNGE)
        toolbox = Toolbox(
            personal=lambda asker: attachment_tools(
                room_channel.chat_for(asker.user_id), asker, max_bytes=1_000, zone=UTC
            ),
            ask_for_press=room_channel.ask_for_press,
            reach=lambda: Reach((Asker(ADA, present=True),)),
        )
        shown_id = drop(1)
        asks = MessageToolCall("c", "read_attachment_of_others", json.dumps({"file": "notes"}))
        (call,) = await toolbox.for_asker(Asker(ADA, "Ada", present=True)).run_all([asks])
        posted = local.messages[-1]
        assert f'"id": "{shown_id}"' in posted.payload["content"]
        drop(2)
        await local.press(ADA, posted.id, "Do it")
        await settle(lambda: "Done for Ada." in posted.payload["content"])
        assert "Content 1." in str(call)
        await toolbox.frozen.finish(within_s=PATIENCE_S)
