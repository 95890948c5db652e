"""The bot's Discord client against the local Discord: connecting, commands, people who join and leave, and errors."""

from __future__ import annotations

import asyncio
import errno
import ssl
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal, cast
from unittest.mock import Mock

import aiohttp
import discord
import pytest
from discord.gateway import DiscordWebSocket
from discord.state import ConnectionState

from bot.channel.port import ChannelNotAllowedError, UnfinishedWords
from bot.discord.access import Cooldowns
from bot.discord.answers import answer
from bot.discord.client import RoomtoneClient
from bot.discord.commands import joining as room_commands
from bot.discord.commands.joining import (
    CAPTIONS_BEGIN,
    CAPTIONS_END,
    ELSEWHERE,
    MOST_SPEAKERS,
    NO_THREAD_HERE,
    ONE_OF_BOTH,
    WRITES_NOTHING_DOWN,
)
from bot.discord.connection import KnownBot, connected, known_bot, server_names, translated
from bot.discord.endpoint import point_at
from bot.discord.room_channel import DiscordRoomChannel
from bot.discord.voice_channels import FOR_EVERY_AGE
from bot.errors import SetupError
from bot.server_settings import ListenRequest, ServerSettings
from bot.settings import DiscordSettings
from bot.texts.text import Text, verbatim
from compaction.errors import StoreError
from rehearsal.discord.guild.identity import Intent
from rehearsal.discord.guild.permissions import INVITED, DiscordPermission
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec, Member, Role
from rehearsal.discord.server import LocalDiscord
from rehearsal.pytest_plugin import open_discord
from tests.bot.discord.client import ADA, BEN, FakeRooms, answered, enters, online, room_channel_in, settings_for
from tests.patience import settle
from voice.transport.discord_gateway import DiscordMainGateway

SCRIBE = Role(900, "Scribe")
SCRIBES = (Member(ADA, "Ada", moderator=True), Member(BEN, "Ben", role_ids=(SCRIBE.id,)), Member(2003, "Chloe"))


async def choose_scribes(client: RoomtoneClient) -> None:
    """Let the members with the role of scribes call the bot, also to write down, as /settings does."""
    await client.tree.servers.change(500, lambda now: replace(now, roles=(SCRIBE.id,), posts_transcripts=True), by=None)


@pytest.mark.usefixtures("client")
async def test_each_request_has_the_name_of_a_bot(local: LocalDiscord) -> None:
    """Answers to interactions and webhooks have it too: Discord may refuse those of others."""
    await answered(local, ADA, "status")
    assert [each for each in local.gate.user_agents if not each.startswith("DiscordBot (https://")] == []


async def test_discord_tells_whose_token_it_is(local: LocalDiscord) -> None:
    """`roomtone doctor` asks before a start. A token that was reset is told as at the start, and the bot is offline."""
    settings = settings_for(local)
    assert await known_bot(settings) == KnownBot("roomtone", ROOMTONE_BOT_ID)
    assert await server_names(settings) == {500: "The local guild"}
    async with open_discord(GuildSpec(invited=INVITED & ~DiscordPermission.EMBED_LINKS)) as opened:
        (lacks,) = (await known_bot(settings_for(opened.discord))).lacks
        assert lacks.startswith("I need more permissions in The local guild: Embed Links (to show")
    with pytest.raises(SetupError, match="DISCORD_TOKEN"):
        await known_bot(settings_for(local, token="9999.not-a-bot"))
    assert not any(member["online"] for member in local.status()["members"])
    with pytest.raises(SetupError, match="reached"):
        await known_bot(DiscordSettings(token=settings.token, api_base="http://127.0.0.1:9/api/v10"))


async def test_a_start_outlasts_discord_pys_wait_after_the_last_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """discord.py waits two seconds for one more server. Other tests cut that short (tests/conftest.py)."""
    monkeypatch.delattr(ConnectionState, "guild_ready_timeout")
    begun = time.monotonic()
    async with online() as (local, client, _):
        assert time.monotonic() - begun >= 2.0
        assert [guild.id for guild in client.guilds] == [local.guild.id]


async def test_a_closed_client_is_told_nothing() -> None:
    """discord.py's wait for the last server may end after the client."""
    async with online() as (_, client, _):
        pass
    client.dispatch("ready")


@pytest.mark.parametrize("allowed", [Intent(0), Intent.MESSAGE_CONTENT])
async def test_it_asks_to_read_all_messages_where_it_may(allowed: Intent) -> None:
    """The application's flags tell what its owner allows. Discord refuses a bot that asks for more."""
    bot = Member(ROOMTONE_BOT_ID, "Roomtone", privileged_intents=int(allowed))
    async with online(GuildSpec(bots=(bot,))) as (_, client, _):
        assert client.intents.message_content is bool(allowed)


def test_one_place_repoints_discord() -> None:
    """`point_at` sets the addresses of REST and gateway from the settings, and restores Discord's own without them."""
    point_at(DiscordSettings(api_base="http://127.0.0.1:1/api/v10/"))
    assert discord.http.Route.BASE == "http://127.0.0.1:1/api/v10"
    assert str(DiscordWebSocket.DEFAULT_GATEWAY) == "ws://127.0.0.1:1/gateway"
    point_at(DiscordSettings())
    assert discord.http.Route.BASE.startswith("https://discord.com/")
    assert str(DiscordWebSocket.DEFAULT_GATEWAY).startswith("wss://gateway.discord.gg")


async def test_join_leave_and_status_answer_in_sentences(
    local: LocalDiscord, client: RoomtoneClient, rooms: FakeRooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each situation has its own answer, and only the person who used the command sees it. What is being said is shown
    to those alone who may enter the channel.
    """
    monkeypatch.setattr(Cooldowns, "use", lambda *_, **__: 0)
    say = partial(answered, local, ADA)
    assert "Join a voice channel first" in (await say("join"))[0]
    assert "not in a voice channel" in (await say("leave"))[0]
    await enters(local, rooms, ADA)
    assert "coming to Evening" in (await say("join"))[0]
    await settle(lambda: rooms.room_channel is not None)
    room_channel = rooms.room_channel
    assert room_channel is not None
    assert (room_channel.guild_id, room_channel.channel_id, room_channel.name) == (local.guild.id, 600, "Evening")
    assert [(person.id, person.name, person.is_bot) for person in room_channel.members()] == [(ADA, "Ada", False)]
    assert "already in Evening" in (await say("join"))[0]
    assert await say("join", listen="file") == [WRITES_NOTHING_DOWN]
    await client.tree.servers.change(local.guild.id, lambda now: replace(now, posts_transcripts=True), by=None)
    assert "Use /leave first" in (await say("join", listen="file"))[0]
    rooms.listens = ListenRequest("file", 600)
    assert "only write down" in (await say("join", listen="file"))[0]
    assert "already in Evening" in (await say("join", captions="thread"))[0]
    rooms.listens = None
    assert await say("join", captions="thread") == [CAPTIONS_BEGIN.fill(channel="Evening")]
    assert rooms.captions == [ListenRequest("thread", 601, captions=True)]
    assert await say("join", captions="off") == [CAPTIONS_END]
    assert rooms.captions[1:] == [None]
    await enters(local, rooms, BEN, 602)
    assert await answered(local, BEN, "join") == [ELSEWHERE]
    assert await say("status") == ["I am well."]
    rooms.state = verbatim("The voice kokoro has not worked for 3 minutes. " * 50)
    parts = await say("status", replies=2)
    assert " ".join(parts) == rooms.state.strip()
    assert max(map(len, parts)) <= 2000
    rooms.state = verbatim("I am well.")
    rooms.words = (UnfinishedWords("A*da", "the key is _here_ " * 20), *[UnfinishedWords("Bo", "so")] * 9)
    (told,) = await say("status")
    assert told.startswith("I am well.\nA\\*da is saying: … ")
    assert told.count("is saying") == MOST_SPEAKERS
    assert told.count("the key is \\_here\\_") == 11
    with monkeypatch.context() as patched:
        patched.setattr(room_commands, "hears", lambda *_: False)
        assert await say("status") == ["I am well."]
    rooms.words = ()
    assert "leaving Evening" in (await say("leave"))[0]
    await settle(lambda: rooms.room_channel is None)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StoreError("The database does not answer."), "I could not join Evening. The database does not answer."),
        (KeyError("what Ada said"), "Something went wrong inside me."),
    ],
)
@pytest.mark.usefixtures("client")
async def test_who_calls_the_bot_learns_why_it_does_not_come(
    local: LocalDiscord, rooms: FakeRooms, error: Exception, told: str
) -> None:
    """After the first answer Discord would show nothing any more, whatever happens."""
    await enters(local, rooms, ADA)
    rooms.refuse = error
    assert (await answered(local, ADA, "join", 2))[1:] == [told]


@pytest.mark.parametrize(
    ("where", "heard_in", "typed_in", "answered"),
    [
        ("thread", 600, 600, "I am coming to Private. There I only write down what is said."),
        ("thread", 600, 601, "You are not allowed to begin threads in this channel, so I do not begin one for you."),
        ("thread", 600, 602, "You are not allowed to write in this channel, so I do not write here for you."),
        ("thread", 600, 603, "I am coming to Private. There I only write down what is said."),
        ("file", 600, 602, "I am coming to Private. There I only write down what is said."),
        ("thread", 604, 603, FOR_EVERY_AGE.fill(channel="Free")),
    ],
)
async def test_words_go_only_where_who_asks_may_bring_them(
    where: Literal["thread", "file"], heard_in: int, typed_in: int, answered: str
) -> None:
    """/join with `listen:thread` writes into the channel where it was typed. Ben, in a private channel in whose chat
    nobody may write, cannot have its words written where he may not write himself.
    """
    no_words, no_threads = int(DiscordPermission.SEND_MESSAGES), int(DiscordPermission.CREATE_PUBLIC_THREADS)
    guild = GuildSpec(
        voice_channels=(
            Channel(600, "Private", denied=no_words),
            Channel(602, "Open", denied=no_words),
            Channel(603, "Free"),
            Channel(604, "Late Show", age_restricted=True),
        ),
        text_channel=Channel(601, "general", denied=no_threads),
        roles=(SCRIBE,),
        people=SCRIBES,
    )
    async with online(guild) as (local, client, rooms):
        await choose_scribes(client)
        await enters(local, rooms, BEN, heard_in)
        result = await local.invoke(BEN, "join", {"listen": where}, channel_id=typed_in)
        assert result.replies[0].content.splitlines()[0] == answered
        comes = answered.startswith("I am coming")
        await settle(lambda: (rooms.room_channel is not None) is comes)
        assert rooms.listens == (ListenRequest(where, typed_in) if comes else None)


CAPTIONS = ListenRequest("thread", 601, captions=True, language="de")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"captions": "thread", "translate": "German"}, CAPTIONS),
        ({"translate": "de"}, CAPTIONS),
        ({"captions": "thread"}, replace(CAPTIONS, language="fr")),
        ({"listen": "thread", "translate": "de"}, replace(CAPTIONS, captions=False)),
        ({"listen": "thread", "captions": "thread"}, ONE_OF_BOTH),
        ({"translate": "Klingon"}, "Write at most"),
    ],
)
async def test_captions_are_asked_for_with_join(
    local: LocalDiscord,
    client: RoomtoneClient,
    rooms: FakeRooms,
    options: dict[str, Any],
    expected: ListenRequest | str,
) -> None:
    """They are in the server's language for them, unless who asks names another one."""
    chosen = ServerSettings(posts_transcripts=True, captions_language="fr")
    await client.tree.servers.change(local.guild.id, lambda _: chosen, by=None)
    await enters(local, rooms, ADA)
    (told,) = await answered(local, ADA, "join", **options)
    if isinstance(expected, str):
        assert told.startswith(expected)
        return
    only_writes = "only write down" in told
    await settle(lambda: rooms.listens == expected)
    assert only_writes is not expected.captions


async def test_a_thread_is_begun_in_no_thread_and_in_no_channel_for_announcements() -> None:
    """/join says so before the bot comes: the notice would name a thread that there cannot be."""
    news = Channel(603, "News", announces=True)
    async with online(GuildSpec(roles=(SCRIBE,), people=SCRIBES, more_text_channels=(news,))) as (local, client, rooms):
        await choose_scribes(client)
        await enters(local, rooms, BEN)
        for typed_in in (news.id, int(local.state.add_thread(601, "Aside", BEN)["id"])):
            result = await local.invoke(BEN, "join", {"listen": "thread"}, channel_id=typed_in)
            assert result.replies[0].content == NO_THREAD_HERE
        assert rooms.room_channel is None


@pytest.mark.usefixtures("client")
async def test_a_command_takes_effect_before_its_answer_has_left(
    local: LocalDiscord, rooms: FakeRooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next command of anybody finds the one before begun, so that the last one wins."""
    answered = asyncio.Event()

    async def slowly(interaction: discord.Interaction, text: Text) -> None:
        await answered.wait()
        await answer(interaction, text)

    await enters(local, rooms, ADA)
    monkeypatch.setattr(room_commands, "answer", slowly)
    joining = asyncio.create_task(local.invoke(ADA, "join"), name="joining")
    await settle(lambda: rooms.room_channel is not None)
    leaving = asyncio.create_task(local.invoke(ADA, "leave"), name="leaving")
    await settle(lambda: rooms.room_channel is None)
    answered.set()
    assert "coming to Evening" in (await joining).replies[0].content
    assert "leaving Evening" in (await leaving).replies[0].content


async def test_movements_are_handed_on(local: LocalDiscord, client: RoomtoneClient, rooms: FakeRooms) -> None:
    """The rooms learns when people join, change the channel or leave; the bot's own moves are reported
    separately.
    """
    await local.join(ADA)
    await local.join(ADA, channel_id=602)
    await local.leave(ADA)
    await settle(lambda: len(rooms.movements) == 4)
    assert [(channel, moved.person.name, moved.joined) for _, channel, moved in rooms.movements] == [
        (600, "Ada", True),
        (600, "Ada", False),
        (602, "Ada", True),
        (602, "Ada", False),
    ]
    await local.join(ROOMTONE_BOT_ID)
    await local.join(ROOMTONE_BOT_ID, channel_id=602)
    await local.leave(ROOMTONE_BOT_ID)
    await local.join(BEN)
    await settle(lambda: len(rooms.movements) == 5)
    assert rooms.movements[-1][2].person.name == "Ben"
    assert rooms.drags == [(local.guild.id, 602)]
    assert rooms.arrivals == [(600, "Ada", None), (602, "Ada", 600), (600, "Ben", None)]
    assert rooms.departures == [600, 602]
    room_channel = room_channel_in(client, 602)
    assert room_channel.name == "Side room"
    assert client.find_channel(local.guild.id, 601) is None
    assert client.find_channel(77, 602) is None


async def test_who_takes_the_bot_out_is_told_from_the_bot_that_leaves(
    local: LocalDiscord, client: RoomtoneClient, rooms: FakeRooms
) -> None:
    """Discord says the same of both."""
    channel = client.get_channel(600)
    assert isinstance(channel, discord.VoiceChannel)
    me = channel.guild.me
    gateway = DiscordMainGateway(client, channel, on_request=client.voice_requests.on_request)
    for leaves in (gateway.request(None), local.leave(ROOMTONE_BOT_ID)):
        assert rooms.taken_out == []
        await gateway.request(600)
        await settle(lambda: me.voice is not None)
        await leaves
        await settle(lambda: me.voice is None)
    assert rooms.taken_out == [local.guild.id]


async def test_a_bot_that_is_moved_listens_only_where_the_server_lets_it(
    local: LocalDiscord, client: RoomtoneClient
) -> None:
    """However it comes there: somebody may have dragged it, or it comes back after a crash."""
    await client.tree.servers.change(local.guild.id, lambda now: replace(now, channels=(600,)), by=None)
    side_room = room_channel_in(client, 602)
    with pytest.raises(ChannelNotAllowedError):
        async with side_room.connect(cast("Any", None), Mock()):
            pytest.fail("connected")


async def test_the_notice_is_in_the_voice_channels_chat_and_the_name_shows_it(local: LocalDiscord) -> None:
    """The notice goes into the voice channel's own chat, also if /join was typed elsewhere. While the bot listens its
    name on the server shows it; a name that a crash left marked is mended at the next start.
    """
    lounge = 600
    async with connected(settings_for(local), FakeRooms()) as client:
        voice = client.get_channel(lounge)
        assert isinstance(voice, discord.VoiceChannel)
        room_channel = DiscordRoomChannel(client, voice)
        assert await room_channel.write_notice("I listen.")
        assert [(message.channel_id, message.content) for message in local.messages] == [(lounge, "I listen.")]
        assert await room_channel.show_listening(on=True)
        await settle(lambda: voice.guild.me.display_name == "[LISTENING] Roomtone")
        await room_channel.show_listening(on=False)
        await settle(lambda: voice.guild.me.nick is None)
        assert await room_channel.show_listening(on=True)
        assert room_channel.audible
    async with connected(settings_for(local), FakeRooms()) as client:
        guild = client.get_guild(local.guild.id)
        assert guild is not None
        await settle(lambda: guild.me.nick is None)


async def test_a_server_that_discord_cannot_show_keeps_no_mark_on_others(
    local: LocalDiscord, client: RoomtoneClient
) -> None:
    """The mark that a crash has left goes from all others at the start, and from this one once it is back."""
    client._connection._add_guild_from_data(cast("Any", {"id": "7", "unavailable": True}))
    # discord.py may show them in any order.
    client._connection._guilds = dict(reversed(client._connection._guilds.items()))
    guild = client.get_guild(local.guild.id)
    assert guild is not None
    assert [each.id for each in client.guilds] == [7, guild.id]
    for clean_up in (client.on_ready, partial(client.on_guild_available, guild)):
        await guild.me.edit(nick="[LISTENING] Roomtone")
        await settle(lambda: guild.me.nick is not None)
        await clean_up()
        await settle(lambda: guild.me.nick is None)


def a_stage(*, moderator: bool) -> GuildSpec:
    """Return a guild with a stage channel. `moderator`: the bot may mute others."""
    return GuildSpec(
        voice_channels=(Channel(600, "Evening"), Channel(603, "Podium", stage=True)),
        bots=(Member(ROOMTONE_BOT_ID, "Roomtone", moderator=moderator),),
    )


async def test_a_bot_that_may_makes_itself_a_speaker_on_a_stage() -> None:
    """If the bot has the permission, it makes itself a speaker each time it joins a stage."""
    async with online(a_stage(moderator=True)) as (local, client, rooms):
        rooms.room_channel = client.find_channel(local.guild.id, 603)
        for _ in range(2):
            await local.join(ROOMTONE_BOT_ID, channel_id=603)
            await settle(lambda: local.status()["voice_states"][0]["suppress"] is False)
            await local.leave(ROOMTONE_BOT_ID)
        assert local.messages == ()


async def test_a_bot_in_a_stages_audience_asks_to_speak() -> None:
    """Without the permission, the bot asks to speak, but only on a stage where it has a room."""
    async with online(a_stage(moderator=False)) as (local, client, rooms):
        me = client.guilds[0].me
        for room_id, channel_id in ((None, 603), (600, 603), (600, 600), (603, 603)):
            rooms.room_channel = client.find_channel(local.guild.id, room_id) if room_id else None
            await local.join(ROOMTONE_BOT_ID, channel_id=channel_id)
            await settle(lambda: me.voice is not None)
            if room_id != 603:
                await local.leave(ROOMTONE_BOT_ID)
                await settle(lambda: me.voice is None)
        await settle(lambda: local.status()["voice_states"][0]["request_to_speak_timestamp"] is not None)
        assert local.status()["voice_states"][0]["suppress"]


def test_every_end_of_the_client_has_a_sentence() -> None:
    """Every exception of discord.py becomes a plain sentence."""
    for error, told in (
        (None, "closed the connection"),
        (discord.LoginFailure("x"), "token"),
        (TimeoutError(), "did not answer in time"),
        (discord.ConnectionClosed(cast("Any", None), shard_id=None, code=4004), "token"),
        (discord.ConnectionClosed(cast("Any", None), shard_id=None, code=4011), "shards"),
        (discord.ConnectionClosed(cast("Any", None), shard_id=None, code=4012), "Update Roomtone"),
        (discord.ConnectionClosed(cast("Any", None), shard_id=None, code=4013), "Update Roomtone"),
        (discord.PrivilegedIntentsRequired(None), "intents"),
        (discord.HTTPException(cast("Any", SimpleNamespace(status=429, reason="")), "<html>"), "Wait an hour"),
        (discord.HTTPException(cast("Any", SimpleNamespace(status=503, reason="")), "<html>"), "(503)"),
        (certificate_refused(9), "Check the machine's date and time"),
        (certificate_refused(10), "Check the machine's date and time"),
        (certificate_refused(19), "SSL_CERT_FILE"),
        (OSError("x"), "cannot be reached"),
        (OSError(errno.ENETUNREACH, "x"), "This machine is offline"),
        (RuntimeError("x"), "RuntimeError"),
    ):
        assert told in str(translated(error))


def certificate_refused(code: int) -> aiohttp.ClientConnectorCertificateError:
    """Return what aiohttp raises for a certificate that OpenSSL refuses with this code."""
    refused = ssl.SSLCertVerificationError("certificate verify failed")
    refused.verify_code = code
    key = cast("Any", SimpleNamespace(host="discord.com", port=443, is_ssl=True))
    return aiohttp.ClientConnectorCertificateError(key, refused)
