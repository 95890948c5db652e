"""A room's text chat on Discord: files newest first, errors with their remedy, posts that mention nobody, and the
buttons of a call that waits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC
from types import SimpleNamespace
from typing import Any, Protocol

import discord
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.brain.tools.built_in import attachment_tools
from bot.brain.tools.frozen_calls import TOO_LATE
from bot.brain.tools.tool import Asker, RoomTool
from bot.brain.tools.toolbox import Reach, Toolbox
from bot.channel.port import CallRequest, ChatError
from bot.discord.chat import call_text
from bot.discord.connection import connected
from bot.discord.posting import MESSAGE_CHARS
from compaction.payload import MessageToolCall
from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, Overwrite
from rehearsal.discord.interactions.result import InteractionResult
from rehearsal.discord.server import LocalDiscord
from tests.bot.brain.tools.calls import for_all
from tests.bot.discord.client import ADA, room_channel_in, settings_for
from tests.fakes.loop_time import loop_turns
from tests.patience import PATIENCE_S, settle

BEN, LOUNGE, CHAT = 2002, 600, 601
ROOMS: Any = SimpleNamespace(room_channel_of=lambda _: None)
_P = DiscordPermission


class Drop(Protocol):
    """Lets somebody drop a file with these bytes, and returns its id. `claims`: the size that Discord tells."""

    def __call__(
        self, name: str, content: bytes = b"x", *, by: int = BEN, channel_id: int = LOUNGE, claims: int | None = None
    ) -> int: ...


@asynccontextmanager
async def dropping(local: LocalDiscord) -> AsyncIterator[Drop]:
    """Return what drops files. Their messages mention the bot: of others Discord shows it nothing."""
    contents: dict[int, bytes] = {}

    async def serve(request: web.Request) -> web.Response:
        return web.Response(body=contents[int(request.match_info["file"])])

    app = web.Application()
    app.router.add_get("/{file}", serve)
    async with TestServer(app) as files:

        def drop(
            name: str, content: bytes = b"x", *, by: int = BEN, channel_id: int = LOUNGE, claims: int | None = None
        ) -> int:
            file_id, size = local.state.snowflake(), len(content) if claims is None else claims
            contents[file_id], url = content, str(files.make_url(f"/{file_id}"))
            dropped = {"id": str(file_id), "filename": name, "size": size, "url": url, "proxy_url": url}
            message = payloads.message(
                local.guild,
                message_id=local.state.snowflake(),
                channel_id=channel_id,
                author_id=by,
                content=f"<@{ROOMTONE_BOT_ID}> Look!",
                extra={"attachments": [dropped | {"content_type": "text/plain"}]},
            )
            local.state.add_message(message)
            return file_id

        yield drop


async def test_the_newest_files_of_others_in_the_chat_can_be_read(local: LocalDiscord) -> None:
    """Those of the bot are transcripts: they have words of people who may have opted out since. The text channel is not
    looked at. What is too large is not read, whatever Discord says of its size.
    """
    async with dropping(local) as drop, connected(settings_for(local), ROOMS) as client:
        drop("old.txt")
        drop("notes.txt", b"The gate code is 4411.")
        drop("liar.txt", b"x" * 99, by=ADA, claims=1)
        drop("big.txt", b"x" * 99, by=ADA)
        drop("transcript.md", by=ROOMTONE_BOT_ID)
        drop("moderators.txt", channel_id=CHAT)
        chat = room_channel_in(client, LOUNGE).chat_for(ADA)
        *too_large, notes = await chat.files(most=3)
        assert [(file.name, file.size_bytes, file.by, file.by_id) for file in (*too_large, notes)] == [
            ("big.txt", 99, "Ada", ADA),
            ("liar.txt", 1, "Ada", ADA),
            ("notes.txt", 22, "Ben", BEN),
        ]
        assert await chat.fetch(notes, max_bytes=50) == b"The gate code is 4411."
        for file in too_large:
            with pytest.raises(ChatError):
                await chat.fetch(file, max_bytes=50)


async def test_a_post_is_one_message_that_calls_nobody_and_unfolds_no_link(local: LocalDiscord) -> None:
    async with connected(settings_for(local), ROOMS) as client:
        await (
            room_channel_in(client, LOUNGE)
            .chat_for(ADA)
            .post(f"https://maps.example @everyone <@{BEN}> " + "x" * 3_000)
        )
        (message,) = local.messages
        assert (message.channel_id, len(message.content)) == (LOUNGE, MESSAGE_CHARS)
        assert [message.payload[key] for key in ("embeds", "mentions", "mention_everyone")] == [[], [], False]


# What the channel takes from who asks and from the bot -> why nothing is read and written there; empty: it is.
RIGHTS: tuple[tuple[int, int, str, str], ...] = (
    (0, 0, "", ""),
    (_P.SEND_MESSAGES, 0, "", "person who asks.*Send"),
    (_P.READ_MESSAGE_HISTORY, 0, "person who asks.*History", ""),
    (_P.VIEW_CHANNEL, 0, "person who asks.*History", "person who asks.*Send"),
    # Discord would show the bot an empty chat.
    (0, _P.READ_MESSAGE_HISTORY, "I am not allowed.*History", ""),
    (0, _P.SEND_MESSAGES, "", "I am not allowed.*Send"),
)


async def test_the_chat_is_used_only_for_somebody_who_may_do_so_there_now(local: LocalDiscord) -> None:
    """Who may not, or whose bot may not, learns which right is missing. For nobody, for who is no member, and while
    Discord does not say who somebody is, nothing is done.
    """

    async def refused(use: Awaitable[object], told: str) -> None:
        with pytest.raises(ChatError, match=told) if told else nullcontext():
            await use

    async with dropping(local) as drop, connected(settings_for(local), ROOMS) as client:
        drop("a.txt")
        here = room_channel_in(client, LOUNGE)
        chat = here.chat_for(BEN)
        for number, (of_asker, of_bot, reading, writing) in enumerate(RIGHTS):
            taken = Overwrite(BEN, deny=of_asker), Overwrite(ROOMTONE_BOT_ID, deny=of_bot)
            local.change(voice_channels=(Channel(LOUNGE, f"Evening {number}", overwrites=taken),))
            await settle(lambda number=number: here.name == f"Evening {number}")  # type: ignore[misc]
            await refused(chat.files(most=9), reading)
            await refused(chat.post("x"), writing)
        posted = [message.content for message in local.messages if message.author_id == ROOMTONE_BOT_ID]
        assert posted == ["x"] * sum(not writing for *_, writing in RIGHTS)
        for asker_id in (None, 7):
            await refused(here.chat_for(asker_id).files(most=9), "cannot tell who")
            await refused(here.chat_for(asker_id).post("x"), "cannot tell who")
        await local.fault("rest_errors", count=2)
        await refused(chat.files(most=9), "Try again")
        await refused(chat.post("x"), "Try again")
        assert len(local.messages) == len(posted) + 1


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
    arguments = {"path": "plan.txt", "text": "Coffee at nine: https://cafe.example/."}
    ask = [MessageToolCall("c", tool.name, json.dumps(arguments))]
    async with connected(settings_for(local), ROOMS) as client:
        room_channel = room_channel_in(client, LOUNGE)
        toolbox = Toolbox([tool], ask_for_press=room_channel.ask_for_press, reach=lambda: Reach((Asker(ADA),)))
        use = toolbox.for_asker(Asker(ADA, "Ada", present=True))
        await use.run_all(ask)
        (posted,) = local.messages
        for shown in ("Ada", "write\\_file", "files", '"path": "plan.txt"', '"text": "Coffee at nine: '):
            assert shown in posted.payload["content"]
        for label in ("Do it", "Don't"):
            assert "Ada" in seen(await local.press(BEN, posted.id, label))
        assert done == []
        buttons = posted.payload["components"]
        presses = await asyncio.gather(*(local.press(ADA, posted.id, "Do it") for _ in range(2)))
        assert TOO_LATE in map(seen, presses)
        await settle(lambda: "I did this for Ada." in posted.payload["content"])
        assert not posted.payload.get("components")
        assert posted.payload["embeds"] == [], "no link of a call unfolds"
        # Ada's Discord has not drawn the message anew yet.
        posted.payload["components"] = buttons
        assert seen(await local.press(ADA, posted.id, "Do it")) == TOO_LATE
        assert done == [arguments]
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
        await settle(lambda: "I stopped this for Ada." in posted.payload["content"])
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
        await loop_turns(100)
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
    assert "I did this for Ada." in posted.payload["content"]


async def test_the_file_that_the_card_names_is_read_over_the_wire(local: LocalDiscord) -> None:
    """Ben drops another one with the same name before Ada presses."""
    async with dropping(local) as drop, connected(settings_for(local), ROOMS) as client:
        room_channel = room_channel_in(client, LOUNGE)
        toolbox = Toolbox(
            personal=lambda asker: attachment_tools(
                room_channel.chat_for(asker.user_id), asker, max_bytes=1_000, zone=UTC
            ),
            ask_for_press=room_channel.ask_for_press,
            reach=lambda: Reach((Asker(ADA, present=True),)),
        )
        shown_id = drop("notes.txt", b"Content 1.")
        asks = MessageToolCall("c", "read_attachment_of_others", json.dumps({"file": "notes"}))
        (call,) = await toolbox.for_asker(Asker(ADA, "Ada", present=True)).run_all([asks])
        posted = local.messages[-1]
        assert f'"id": "{shown_id}"' in posted.payload["content"]
        drop("notes.txt", b"Content 2.")
        await local.press(ADA, posted.id, "Do it")
        await settle(lambda: "I did this for Ada." in posted.payload["content"])
        assert "Content 1." in str(call)
        await toolbox.frozen.finish(within_s=PATIENCE_S)
