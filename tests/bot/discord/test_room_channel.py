"""The Discord adapter for a room's voice channel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import aiohttp
import discord
import pytest
from discord.gateway import DiscordWebSocket

from bot.brain.tools.toolbox import reach_in
from bot.channel.port import NO_WORDS_YET, Card, ChatError, Posts
from bot.discord.client import RoomtoneClient
from bot.discord.connection import connected
from bot.discord.posting import NOT_TAKEN
from bot.discord.posts import NO_CHAT, NO_FILE, NO_THREAD
from bot.discord.room_channel import DiscordRoomChannel
from bot.posts.notice import COMMANDS, NO_MARK, ListeningNotice, Recipient
from bot.server_settings import MOST_NOTICE_CHARS, ServerSettings
from bot.texts.text import Text
from bot.viewers import Viewer
from rehearsal.discord.guild.spec import SPARE_BOT_ID, Channel, GuildSpec, Member, Role
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.client import ADA, BEN, FakeRooms, online, room_channel_in, settings_for
from tests.bot.discord.refusals import FORBIDDEN, NOT_FOUND
from tests.patience import settle

NAMES = [f"gpt-{number}-realtime" for number in range(9)]


class Opened:
    """A voice connection that records its arguments."""

    def __init__(self, **given: Any) -> None:
        self.given = given
        self.played: object = None

    def play(self, source: object) -> None:
        self.played = source


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Opened]:
    """The voice connections that channels have opened, the newest last."""
    connections: list[Opened] = []

    @asynccontextmanager
    async def opened(_channel: object, **given: Any) -> AsyncIterator[Opened]:
        connections.append(Opened(**given))
        yield connections[-1]

    monkeypatch.setattr("bot.discord.room_channel.DiscordVoiceConnection", opened)
    return connections


@pytest.mark.parametrize("require_e2ee", [False, True])
async def test_what_is_said_goes_by_the_process_that_sends(
    connections: list[Opened], local: LocalDiscord, *, require_e2ee: bool
) -> None:
    """The channel opens the voice connection with the bot's paced sender, with the people who are not to be heard, and
    with the operator's demand for encryption.
    """
    paced_sender, source = cast("Any", object()), cast("Any", object())
    settings = settings_for(local).model_copy(update={"require_e2ee": require_e2ee})
    async with connected(settings, FakeRooms(), paced_sender=paced_sender) as client:
        room_channel = room_channel_in(client, LOUNGE)
        listener = Mock(heard_since={8: 5.0}.get)
        async with room_channel.connect(source, listener):
            (connection,) = connections
    assert connection.given["paced_sender"] is paced_sender
    assert connection.given["require_e2ee"] is require_e2ee
    assert [connection.given["heard_since"](user_id) for user_id in (7, 8)] == [None, 5.0]
    assert connection.played is source


def a_channel() -> Any:
    """Return a voice channel in which the bot may do everything."""
    guild = SimpleNamespace(id=500, me=SimpleNamespace(id=99), afk_channel=None)
    guild.get_member = guild.get_channel = lambda _: None
    everything = discord.Permissions.all()
    return SimpleNamespace(
        id=600, name="Lounge", guild=guild, voice_states={}, user_limit=0, permissions_for=lambda _: everything
    )


LOUNGE, STAFF, HALL = 600, 601, 602
SEES, ENTERS = discord.Permissions(view_channel=True), discord.Permissions(view_channel=True, connect=True)


@pytest.mark.parametrize(
    ("present", "shared"),
    [
        pytest.param([1], {LOUNGE, STAFF, HALL}, id="an insider"),
        pytest.param([1, 2], {LOUNGE, STAFF, HALL}, id="insiders"),
        pytest.param([1, 3], {LOUNGE, HALL}, id="a stranger"),
        pytest.param([1, 4], {LOUNGE, HALL}, id="somebody who sees the channel and may not enter"),
        pytest.param([1, 6], {LOUNGE, HALL}, id="somebody who may enter the channel and not see it"),
        pytest.param([1, 5], {LOUNGE}, id="somebody whom Discord has not told us about"),
        pytest.param([5], {LOUNGE}, id="nobody known"),
        pytest.param([], {LOUNGE}, id="nobody"),
    ],
)
async def test_a_channel_is_shared_if_everybody_present_may_enter(present: list[int], shared: set[int]) -> None:
    """What was said in another channel may be told only where everybody present may see and enter that channel. The
    bot's own rights count for nothing, and a deleted channel is shared by nobody.
    """
    staff = {1: ENTERS, 2: ENTERS, 3: discord.Permissions.none(), 4: SEES, 6: discord.Permissions(connect=True)}
    guild: Any = SimpleNamespace(id=500, me=SimpleNamespace(id=99))
    members = {each: SimpleNamespace(id=each, display_name="x") for each in (1, 2, 3, 4, 6, 99)}

    async def described(*, user_ids: list[int], **_: object) -> list[Any]:
        return [members[each] for each in user_ids if each in members]

    guild.query_members = described

    def channel(channel_id: int, allowed: dict[int, discord.Permissions]) -> Any:
        return SimpleNamespace(
            id=channel_id,
            guild=guild,
            permissions_for=lambda member: allowed.get(member.id, ENTERS),
            is_nsfw=lambda: False,
        )

    lounge = channel(LOUNGE, {})
    lounge.voice_states = dict.fromkeys([*present, 99])
    guild.voice_channels, guild.stage_channels = [lounge, channel(STAFF, staff)], [channel(HALL, {})]
    client: Any = SimpleNamespace(get_guild=lambda _: None)
    room_channel = DiscordRoomChannel(client, lounge)
    assert room_channel.shared_channels() == {LOUNGE}
    await room_channel.refresh_rights()
    assert room_channel.shared_channels() == shared
    guild.voice_channels.pop()
    assert room_channel.shared_channels() == shared - {STAFF}


ADULTS = GuildSpec(
    voice_channels=(
        Channel(LOUNGE, "Evening"),
        Channel(STAFF, "Night", age_restricted=True),
        Channel(HALL, "Late", age_restricted=True),
    ),
    text_channel=Channel(700, "general"),
)


async def test_words_of_an_age_restricted_channel_go_only_to_age_restricted_ones() -> None:
    """Permissions let everybody in, and Discord keeps minors out. So what was said there is shared by no channel for
    every age, and is written into none.
    """
    async with online(ADULTS) as (local, client, _):
        lounge, room_channel = (client.find_channel(local.guild.id, channel_id) for channel_id in (LOUNGE, STAFF))
        assert lounge is not None
        assert room_channel is not None
        for here, shared in ((lounge, {LOUNGE}), (room_channel, {LOUNGE, STAFF, HALL})):
            await local.join(BEN, channel_id=here.channel_id)
            await settle(lambda here=here: bool(here.members()))  # type: ignore[misc]
            await here.refresh_rights()
            assert here.shared_channels() == shared
        for channel_id in (700, LOUNGE):
            with pytest.raises(ChatError, match="age limit"):
                await room_channel.open_thread(channel_id)
        thread = await room_channel.open_thread(HALL)
        await thread.fill(begun := await thread.begin(), "Ben: Hello.")
        assert [message.channel_id for message in local.messages] == [HALL]
        # Who runs the server opens it to every age while it is written into.
        hall: Any = client.get_channel(HALL)
        hall.nsfw = False
        for request in (thread.begin(), thread.fill(begun, "Ben: Hello again.")):
            with pytest.raises(ChatError, match="age limit"):
                await request


async def test_rights_and_names_are_those_that_discord_tells_when_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """discord.py keeps the roles and the name of when somebody came. Of newcomers, and where Discord does not answer,
    nothing is taken for granted; the name stays.
    """
    ada, ben, chloe = Member(ADA, "Ada"), Member(BEN, "Ben", role_ids=(7,)), Member(2003, "Chloe", role_ids=(7,))
    async with online(GuildSpec(people=(ada, ben, chloe), roles=(Role(7, "Readers"),))) as (local, client, _):
        here = room_channel_in(client, LOUNGE)

        def known() -> list[tuple[str, bool, bool]]:
            return [(each.name, 7 in each.roles, each.reads_chat) for each in here.members()]

        await local.join(BEN)
        await settle(lambda: known() == [("Ben", False, False)])
        await here.refresh_rights()
        assert known() == [("Ben", True, True)]
        local.change(people=(ada, Member(BEN, "Countess"), chloe))
        await local.join(chloe.id)
        await settle(lambda: known()[1:] == [("Chloe", False, False)])
        await here.refresh_rights(newcomers_only=True)
        assert known() == [("Ben", True, True), ("Chloe", True, True)]
        await here.refresh_rights()
        assert known() == [("Countess", False, True), ("Chloe", True, True)]
        monkeypatch.setattr(DiscordWebSocket, "request_chunks", AsyncMock(side_effect=ConnectionResetError))
        await here.refresh_rights()
        assert known() == [("Countess", False, False), ("Chloe", False, False)]
        assert here.shared_channels() == {LOUNGE}


async def test_everybody_present_is_a_reader_and_history_is_open_to_those_of_whom_that_is_known() -> None:
    """A manager reads everything once the server has opened it and Discord has told who they are; bots read nothing."""
    async with online(GuildSpec(voice_channels=(Channel(LOUNGE, "Lounge"),))) as (local, client, _):
        room_channel, here = room_channel_in(client, LOUNGE), frozenset({LOUNGE})
        for each in (ADA, BEN, SPARE_BOT_ID):
            await local.join(each)
        await settle(lambda: len(room_channel.members()) == 3)
        closed = [Viewer(str(each), local.guild.id, here, present_in=LOUNGE) for each in (ADA, BEN)]
        assert room_channel.viewers() == closed
        # Of nobody it is known yet who they are: they hear what is said, and have no role.
        assert [(each.user_id, each.roles) for each in reach_in(room_channel).people] == [
            (ADA, frozenset()),
            (BEN, frozenset()),
        ]
        opened = ServerSettings(opens_history=True)
        await client.tree.servers.change(local.guild.id, lambda _: opened, by=None)
        assert room_channel.viewers() == closed
        await room_channel.refresh_rights()
        assert room_channel.viewers() == [replace(closed[0], opened=here), closed[1]]


async def test_a_card_is_one_message_that_is_edited(local: LocalDiscord, client: RoomtoneClient) -> None:
    """The second card changes the first message, in the language that the server has chosen."""
    room_channel = room_channel_in(client, LOUNGE)
    fields = ((Text("how long"), Text("1")),)
    first = await room_channel.posts.begin(Card(Text("This session"), Text("I answer."), fields))
    await client.tree.servers.change(local.guild.id, lambda _: ServerSettings(language="de"), by=1)
    card = Card(Text("This session"), Text("I answer."))
    assert await room_channel.posts.fill(first, card)
    (message,) = local.messages
    (embed,) = message.payload["embeds"]
    assert (embed["title"], embed["description"]) == ("Diese Sitzung", "Ich antworte.")
    assert not await room_channel.posts.fill(7, card)
    # What began as words, whose links do not unfold, shows a card too, and hides links again.
    begun = await room_channel.posts.begin(Text("See https://example.org."))
    for content, shown in ((card, ["Diese Sitzung"]), ("See https://example.org.", [])):
        await room_channel.posts.fill(begun, content)
        assert [each.get("title") for each in local.messages[-1].payload["embeds"]] == shown


@pytest.mark.parametrize(
    "error",
    [aiohttp.ServerDisconnectedError(), aiohttp.ClientPayloadError(), OSError(), RuntimeError("Session is closed")],
)
async def test_a_connection_that_breaks_is_no_crash(
    local: LocalDiscord, client: RoomtoneClient, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message, a card or the mark that it listens may be lost; what the room does goes on, or ends in order though
    discord.py has closed its session, as after a reset of the token.
    """
    room_channel = room_channel_in(client, LOUNGE)
    thread = await room_channel.open_thread(local.guild.text_channel.id)

    async def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(client.http, "request", broken)
    assert not await room_channel.write_notice(Text("I answer."))
    for on in (True, False):
        await room_channel.show_listening(on=on)
    for request in (
        room_channel.posts.begin(Card(Text("This session"), Text("I answer."))),
        room_channel.posts.fill(1, ("transcript.md", b"Ada: Hello.")),
        thread.begin(),
        thread.fill(1, "Ada: Hello."),
        room_channel.open_thread(local.guild.text_channel.id),
    ):
        with pytest.raises(ChatError):
            await request


@pytest.mark.parametrize(
    ("error", "of_thread", "of_chat"),
    [
        (FORBIDDEN, NO_THREAD, NO_CHAT),
        (NOT_FOUND, NOT_TAKEN, NOT_TAKEN),
        (aiohttp.ServerDisconnectedError(), NOT_TAKEN, NOT_TAKEN),
    ],
)
async def test_a_permission_is_named_only_where_discord_forbids_something(
    local: LocalDiscord,
    client: RoomtoneClient,
    error: Exception,
    of_thread: Text,
    of_chat: Text,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who reads why a transcript is not there does not look for a permission that the bot has or does not need."""
    room_channel = room_channel_in(client, LOUNGE)
    thread = await room_channel.open_thread(local.guild.text_channel.id)
    chat = await room_channel.open_thread(LOUNGE)

    async def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(client.http, "request", broken)
    for request, told in (
        (room_channel.posts.begin(), of_chat.fill(channel="Evening")),
        (thread.begin(), of_thread.fill(channel="chat")),
        (chat.begin(), of_chat.fill(channel="Evening")),
        (room_channel.open_thread(local.guild.text_channel.id), of_thread.fill(channel="chat")),
    ):
        with pytest.raises(ChatError) as failure:
            await request
        assert str(failure.value) == told
    if error is FORBIDDEN:
        with pytest.raises(ChatError) as failure:
            await room_channel.posts.fill(1, ("transcript.md", b"Ada: Hello."))
        assert str(failure.value) == NO_FILE.fill(channel="Evening")


async def test_a_notice_that_is_longer_than_a_message_loses_no_sentence(
    local: LocalDiscord, client: RoomtoneClient
) -> None:
    """A server's own words may have 1,000 characters. How to refuse follows them, also where much goes to endpoints."""
    heard = Text("the sound of your voices")
    to = [
        Recipient(heard, f"{name}.models.example.org", Text("talks with you ({model})", model=name)) for name in NAMES
    ]
    notice = ListeningNotice(to, ("We meet here on Fridays. " * 40).strip()).written(marked=False, asks=True)
    assert MOST_NOTICE_CHARS >= 40 * 25 - 1
    room_channel = room_channel_in(client, 600)
    assert await room_channel.write_notice(notice, asks=True)
    await settle(lambda: len(local.messages) == 2)
    written = "\n".join(message.content for message in local.messages)
    assert written.split() == notice.split()
    assert COMMANDS in written
    assert NO_MARK in written


async def written(thread: Posts, text: str) -> None:
    """Write a message into a thread."""
    await thread.fill(await thread.begin(), text)


async def test_a_transcript_goes_into_a_thread_or_a_file(local: LocalDiscord, client: RoomtoneClient) -> None:
    """A text channel gets a thread; the chat of a voice channel, which has none, is written into itself. A message may
    be begun twice, if Discord answers with errors, but it has words once.
    """
    room_channel = room_channel_in(client, LOUNGE)
    text_channel = local.guild.text_channel.id
    await written(await room_channel.open_thread(text_channel), "Ada: Hello @everyone.")
    chat = await room_channel.open_thread(602)
    await local.fault("rest_errors", count=2, status=503, carried_out=1)
    with pytest.raises(ChatError):
        await chat.begin()
    await written(chat, "Ben: Hello.")
    posted = await room_channel.posts.begin(Text("I answer."))
    await room_channel.posts.fill(posted, ("transcript.md", b"Ada: Hello."))
    threads = local.state.threads
    assert [each["name"] for each in threads.values()] == ["What is said in Evening"]
    assert [message.channel_id for message in local.messages] == [*threads, 602, 602, LOUNGE]
    assert [message.content for message in local.messages][1:3] == [NO_WORDS_YET, "Ben: Hello."]
    assert local.messages[3].payload["attachments"][0]["filename"] == "transcript.md"


async def test_a_thread_goes_on_until_it_is_gone_or_locked(local: LocalDiscord, client: RoomtoneClient) -> None:
    """After a crash the transcript goes on in the thread that was begun, unless nobody could read it there."""
    room_channel = room_channel_in(client, LOUNGE)
    text_channel = local.guild.text_channel.id
    begun = await room_channel.open_thread(text_channel)
    resumed = await room_channel.open_thread(text_channel, begun=begun.id)
    await written(resumed, "Ada: Hello.")
    assert [message.channel_id for message in local.messages] == [begun.id]
    await local.fault("archive_threads", archived=0, locked=1)
    for wanted in (begun.id, 1, 602):
        assert (await room_channel.open_thread(text_channel, begun=wanted)).id not in {begun.id, wanted}


@pytest.mark.parametrize(
    ("changes", "heard", "muted", "deafened"),
    [
        (None, True, False, False),
        ({}, True, False, False),
        ({"self_mute": True, "self_deaf": True}, True, False, False),
        ({"mute": True}, False, True, False),
        ({"deaf": True}, True, False, True),
        ({"suppress": True}, False, False, False),
    ],
)
def test_a_place_knows_whether_somebody_has_muted_or_deafened_the_bot(
    changes: dict[str, bool] | None, heard: bool, muted: bool, deafened: bool
) -> None:
    """On a stage the bot may be unheard without being muted. Without a voice state nothing is known against it."""
    off = dict.fromkeys(("mute", "deaf", "suppress", "self_mute", "self_deaf"), False)
    voice = None if changes is None else discord.VoiceState(data=cast("Any", off | changes))
    channel = SimpleNamespace(id=20, guild=SimpleNamespace(id=10, me=SimpleNamespace(voice=voice)))
    room_channel = DiscordRoomChannel(cast("Any", SimpleNamespace(get_guild=lambda _: None)), cast("Any", channel))
    assert (room_channel.audible, room_channel.muted, room_channel.deafened) == (heard, muted, deafened)
