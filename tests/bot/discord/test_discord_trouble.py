"""What the bot does under Discord's own trouble: errors, limits, late interactions, and sessions that end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import discord
import pytest
import structlog
from structlog.typing import EventDict

from bot.channel.port import ChannelGoneError, ChatError, EditsLimitedError
from bot.discord import client
from bot.discord.answers import RESPONSE_S
from bot.discord.client import NOT_KNOWN, UNKNOWN_AFTER_S, RoomtoneClient
from bot.discord.command_tree import CheckedCommandTree
from bot.discord.commands.privacy import add_privacy_commands
from bot.discord.connection import connected
from bot.discord.endpoint import PromptWebSocket
from bot.errors import SetupError
from bot.memory.session_views import SessionViews
from bot.texts.text import Text
from rehearsal.discord.guild import payloads
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.interactions.interactions import Interactions
from rehearsal.discord.rest import gate
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import LocalDiscordError
from rehearsal.pytest_plugin import open_discord
from tests.bot.discord.client import ADA, BEN, FakeRooms, room_channel_in, settings_for
from tests.bot.discord.commands.searching import searching
from tests.fakes.loop_time import pass_loop_time, wait_out
from tests.patience import PATIENCE_S, settle
from voice.errors import VoiceConnectionError

CHLOE = 2003
CHANNEL, SIDE_ROOM = 600, 602


def bad(logs: Sequence[Any]) -> list[Any]:
    """Return the lines that tell of a defect."""
    return [line for line in logs if line["log_level"] in ("error", "critical")]


@pytest.mark.parametrize("carried_out", [0, 1])
@pytest.mark.usefixtures("client")
async def test_an_answer_survives_an_error_of_discords_servers(
    local: LocalDiscord, carried_out: int, logs: list[EventDict]
) -> None:
    """It is sent again. If Discord took the first one all the same, the person sees it once and nothing has failed."""
    await local.fault("interaction_errors", count=1, status=502, carried_out=carried_out)
    result = await local.invoke(BEN, "status")
    await settle(lambda: result.replies)
    assert [reply.content for reply in result.replies] == ["I am well."]
    assert bad(logs) == []


async def test_a_delay_that_discord_took_with_an_error_is_followed_by_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told_to_wait: asyncio.Event, logs: list[EventDict]
) -> None:
    """Discord shows "thinking…" and takes no first answer any more, so the answer comes as the deferred one."""
    find = SessionViews.find

    async def late(*arguments: Any, **options: Any) -> Any:
        await told_to_wait.wait()
        return await find(*arguments, **options)

    monkeypatch.setattr(SessionViews, "find", late)
    async with searching(tmp_path) as here:
        await here.say(ADA, "The gate code is 4411.")
        await here.local.fault("interaction_errors", count=1, status=500, carried_out=1)
        result = await here.local.invoke(BEN, "recall", {"words": "gate code"})
        await settle(lambda: result.replies)
        assert result.deferred
        assert "4411" in result.replies[0].payload["embeds"][0]["description"]
        assert bad(logs) == []


@pytest.mark.usefixtures("client")
async def test_what_follows_an_answer_that_discord_took_with_an_error_is_told_too(
    local: LocalDiscord, rooms: FakeRooms
) -> None:
    """Whoever calls the bot has read that it comes, and learns why it does not."""
    await local.join(ADA, channel_id=CHANNEL)
    await settle(lambda: rooms.movements)
    rooms.refuse = VoiceConnectionError("No voice server answers.")
    await local.fault("interaction_errors", count=1, status=502, carried_out=1)
    result = await local.invoke(ADA, "join")
    await settle(lambda: len(result.replies) == 2)
    assert "No voice server answers." in result.replies[1].content


async def test_a_file_is_whole_though_discord_never_said_that_it_waits_for_it(
    local: LocalDiscord, monkeypatch: pytest.MonkeyPatch, told_to_wait: asyncio.Event
) -> None:
    """Discord took the delay, and its answer did not come in time. So the file is sent as a first answer, which is
    refused, and then as the deferred one.
    """
    take = Interactions.answer

    def take_late(*request: Any) -> Any:
        pass_loop_time(monkeypatch, RESPONSE_S)
        return take(*request)

    monkeypatch.setattr(Interactions, "answer", take_late)

    async def file_of(_: str) -> Any:
        await told_to_wait.wait()
        return SimpleNamespace(is_empty=False, turn_count=1, name="ada.json", content=b"x" * 1_000)

    async def nothing(*_: object, **_others: object) -> tuple[()]:
        return ()

    records = cast("Any", SimpleNamespace(file_of=file_of, facts_about=nothing))
    command = partial(add_privacy_commands, records=records, people=records, facts=cast("Any", None))
    async with connected(settings_for(local), FakeRooms(), [command]):
        result = await local.invoke(ADA, "my-data")
        await settle(lambda: result.replies)
        assert result.deferred
        assert [each["size"] for each in result.replies[0].payload["attachments"]] == [1_000]


async def test_what_comes_too_late_to_be_answered_is_no_defect(logs: list[EventDict]) -> None:
    """Discord takes no answer after three seconds. The log says so in one line, without a traceback."""
    async with (
        open_discord(response_timeout_s=0.1) as opened,
        connected(settings_for(opened.discord), FakeRooms()),
    ):
        local = opened.discord
        await local.fault("late_interactions", delay_s=0.2)
        with pytest.raises(LocalDiscordError, match="0 replies"):
            await local.invoke(BEN, "status")
        await settle(lambda: [line for line in logs if line["event"] == "command_answered_too_late"])
        assert bad(logs) == []


async def test_an_answer_after_a_quarter_of_an_hour_is_no_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told_to_wait: asyncio.Event, logs: list[EventDict]
) -> None:
    """The work took so long that Discord takes no answer to the command any more, nor to a button."""
    find = SessionViews.find
    async with searching(tmp_path) as here:
        await here.say(ADA, "The gate code is 4411.")
        page = await here.use(BEN, "recall", words="gate code")
        told_to_wait.clear()

        async def slowly(*arguments: Any, **options: Any) -> Any:
            await told_to_wait.wait()
            await here.local.fault("expire_interactions")
            return await find(*arguments, **options)

        monkeypatch.setattr(SessionViews, "find", slowly)
        with pytest.raises(LocalDiscordError, match="0 replies"):
            await here.local.invoke(BEN, "recall", {"words": "gate"}, timeout_s=1.0)
        with pytest.raises(LocalDiscordError, match="0 replies"):
            await here.local.press(BEN, int(page.payload["id"]), "roomtone:recall-around-1", timeout_s=1.0)

        def late() -> list[str]:
            return [line["command"] for line in logs if line["event"] == "command_answered_too_late"]

        await settle(lambda: late() == ["recall", "roomtone:recall-around-1"])
        assert bad(logs) == []


async def test_a_message_that_discord_holds_back_too_long_does_not_silence_the_bot(
    local: LocalDiscord, client: RoomtoneClient
) -> None:
    """Nobody waits for longer than a call may take: the message is given up at once, and the next is sent."""
    here = room_channel_in(client, CHANNEL)
    await local.fault("rest_limit", count=1, retry_after_s=3600, everywhere=1)
    assert not await here.write_notice("This one is lost.")
    assert await here.write_notice("This one is not.")
    assert [message.content for message in local.messages] == ["This one is not."]


async def test_a_thread_that_is_gone_or_locked_is_told_from_one_that_is_only_archived(
    local: LocalDiscord, client: RoomtoneClient
) -> None:
    """Of a message that is gone, another one can be begun, and a thread that Discord has archived is opened again. What
    somebody has locked or deleted does not come back.
    """
    posts = await room_channel_in(client, CHANNEL).open_thread(local.guild.text_channel.id)
    gone, there = await posts.begin(), await posts.begin()
    assert await posts.delete(gone)
    assert not await posts.fill(gone, "x")
    for write in (lambda: posts.fill(there, "x"), posts.begin, lambda: posts.delete(there)):
        await local.fault("archive_threads")
        assert await write()
    there = await posts.begin()
    await local.fault("archive_threads", archived=0, locked=1)
    with pytest.raises(ChannelGoneError, match="locked"):
        await posts.begin()
    for fault, options, told in (("archive_threads", {"locked": 1}, "locked"), ("delete_threads", {}, "deleted")):
        await local.fault(fault, **options)
        for writes in (posts.fill(there, "x"), posts.begin()):
            with pytest.raises(ChannelGoneError, match=told):
                await writes
    assert await posts.delete(there)


@pytest.mark.usefixtures("client")
async def test_a_press_that_nothing_knows_is_answered(local: LocalDiscord, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is from before a restart. Discord would tell the person that the interaction failed."""
    button = {"type": 2, "style": 1, "label": "Do", "custom_id": "roomtone:of-old", "disabled": False}
    old = payloads.message(
        local.guild,
        message_id=local.state.snowflake(),
        channel_id=local.guild.text_channel.id,
        author_id=ROOMTONE_BOT_ID,
        content="Old",
        extra={"components": [{"type": 1, "id": 1, "components": [{**button, "id": 2}]}]},
    )
    local.state.add_message(old)
    pressing = asyncio.create_task(local.press(ADA, int(old["id"]), "Do"), name="press")
    await wait_out(monkeypatch, UNKNOWN_AFTER_S)
    (reply,) = (await pressing).replies
    assert (reply.content, reply.ephemeral) == (NOT_KNOWN, True)


async def test_a_message_that_is_too_old_for_an_edit_is_told_from_other_trouble(
    local: LocalDiscord, client: RoomtoneClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever must take words out of it deletes it then. Nobody waits until Discord would take an edit again."""
    posts = room_channel_in(client, CHANNEL).posts
    message_id = await posts.begin()
    await local.fault("old_edits", older_than_s=0)
    with pytest.raises(ChatError, match="Discord did not accept") as young:
        await posts.fill(message_id, "x")
    assert not isinstance(young.value, EditsLimitedError)
    monkeypatch.setattr("bot.discord.posts.OLD_AFTER", timedelta())
    with pytest.raises(EditsLimitedError, match="old message"):
        await posts.fill(message_id, "x")
    assert await posts.delete(message_id)


@pytest.mark.parametrize(("status", "carried_out"), [(503, 0), (503, 1), (502, 1)])
async def test_a_notice_is_posted_once_though_discords_servers_fail(
    local: LocalDiscord, client: RoomtoneClient, status: int, carried_out: int
) -> None:
    """Without the notice the bot would not listen, and leave. Discord may have posted it and told of an error."""
    here = room_channel_in(client, CHANNEL)
    await local.fault("rest_errors", count=1, status=status, carried_out=carried_out)
    assert await here.write_notice("I listen.")
    assert [message.content for message in local.messages] == ["I listen."]
    await local.fault("rest_errors", count=2, status=503)
    assert not await here.write_notice("I still listen.")


@pytest.mark.parametrize("carried_out", [0, 1])
async def test_a_file_is_posted_once_and_whole_though_discords_servers_fail(
    local: LocalDiscord, client: RoomtoneClient, carried_out: int
) -> None:
    """Nobody makes it again: a room's transcript is posted when the room ends."""
    here = room_channel_in(client, CHANNEL)
    await local.fault("rest_errors", count=1, status=503, carried_out=carried_out)
    posted = await here.posts.begin(Text("I answer."))
    await local.fault("rest_errors", count=1, status=503, carried_out=carried_out)
    await here.posts.fill(posted, ("transcript.md", b"x" * 1_000))
    assert [each["size"] for message in local.messages for each in message.payload["attachments"]] == [1_000]


@pytest.mark.parametrize(
    ("fault", "options"),
    [
        ("reconnect", {}),
        ("invalidate_session", {"resumable": 1}),
        ("kill_gateway", {}),
        ("kill_gateway", {"close_code": 4000}),
        ("kill_gateway", {"close_code": 1000}),
        ("kill_gateway", {"close_code": 4009}),
        ("invalidate_session", {}),
    ],
)
async def test_who_comes_and_goes_while_discord_is_away_is_noticed(
    local: LocalDiscord, client: RoomtoneClient, rooms: FakeRooms, fault: str, options: dict[str, float]
) -> None:
    """Whether the session is resumed or begins anew: the rooms are told of everybody, each move once.

    A newcomer of whom the room is not told would be heard without having had the notice.
    """
    for person in (ADA, BEN):
        await local.join(person, channel_id=CHANNEL)
    await settle(lambda: len(rooms.movements) == 2)
    rooms.movements.clear()
    rooms.arrivals.clear()
    here = client.find_channel(local.guild.id, CHANNEL)
    await local.fault(fault, user_id=ROOMTONE_BOT_ID, **options)
    await local.leave(ADA)
    await local.join(BEN, channel_id=SIDE_ROOM)
    await local.join(CHLOE, channel_id=CHANNEL)
    await settle(lambda: len(rooms.movements) >= 4)
    told = {(channel, change.person.id, change.joined) for _, channel, change in rooms.movements}
    assert told == {
        (CHANNEL, ADA, False),
        (CHANNEL, BEN, False),
        (SIDE_ROOM, BEN, True),
        (CHANNEL, CHLOE, True),
    }
    assert len(rooms.movements) == 4
    assert sorted(rooms.arrivals) == [(CHANNEL, "Chloe", None), (SIDE_ROOM, "Ben", CHANNEL)]
    assert sorted(rooms.departures) == [CHANNEL, CHANNEL]
    assert here is not None, "discord.py replaced its objects"
    assert [person.name for person in here.members()] == ["Chloe"]
    assert (await local.invoke(BEN, "status", timeout_s=PATIENCE_S)).replies


async def test_a_session_that_discord_does_not_begin_yet_begins_later(
    local: LocalDiscord, client: RoomtoneClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after two starts in a row: Discord takes one session in five seconds (`max_concurrency`)."""
    sessions, before = local.gateway.sessions, client.ws
    monkeypatch.setattr("rehearsal.discord.gateway.sessions.START_EVERY_S", PATIENCE_S)
    await local.fault("invalidate_session", user_id=ROOMTONE_BOT_ID)
    await settle(lambda: client.ws is not before)
    assert (sessions.starts[ROOMTONE_BOT_ID], local.gateway.online(ROOMTONE_BOT_ID)) == (1, False)
    # No clock is moved on: a connection that has not identified yet would have missed its heartbeats.
    monkeypatch.setattr("rehearsal.discord.gateway.sessions.START_EVERY_S", 0.0)
    await settle(lambda: local.gateway.online(ROOMTONE_BOT_ID))
    assert sessions.starts[ROOMTONE_BOT_ID] == 2


@pytest.mark.parametrize(("code", "resumes"), [(4008, True), (4007, False), (4009, False)])
@pytest.mark.usefixtures("client")
async def test_a_session_that_is_over_is_not_resumed(
    local: LocalDiscord, monkeypatch: pytest.MonkeyPatch, code: int, resumes: bool
) -> None:
    """The close code says so, and a resumption would be refused first. The log has the code, and how it came back."""
    resumed: list[object] = []
    resume = PromptWebSocket.resume

    async def noted(self: PromptWebSocket) -> None:
        resumed.append(self)
        await resume(self)

    monkeypatch.setattr(PromptWebSocket, "resume", noted)
    with structlog.testing.capture_logs() as lines:
        await local.fault("kill_gateway", user_id=ROOMTONE_BOT_ID, close_code=code)
        await settle(lambda: any(line["event"] == "shard_connected" for line in lines))
    assert len(resumed) == resumes
    logged = {line["event"]: line for line in lines}
    assert (logged["gateway_closed"]["close_code"], logged["shard_connected"]["resumed"]) == (code, resumes)


async def test_a_server_that_the_bot_was_invited_to_just_now_is_watched_too(
    local: LocalDiscord, client: RoomtoneClient, rooms: FakeRooms
) -> None:
    """Who is there when the bot comes to a server is no news; who comes while Discord is away is."""
    await local.join(ADA, channel_id=CHANNEL)
    await settle(lambda: rooms.movements)
    rooms.movements.clear()
    (server,) = client.guilds
    client.voice_presence.forget(server.id)
    client.dispatch("guild_join", server)
    await local.fault("invalidate_session", user_id=ROOMTONE_BOT_ID)
    await local.join(CHLOE, channel_id=CHANNEL)
    await settle(lambda: rooms.movements)
    ((_, channel, change),) = rooms.movements
    assert (channel, change.person.id, change.joined) == (CHANNEL, CHLOE, True)


async def test_the_bot_comes_online_though_discord_takes_no_commands(
    local: LocalDiscord, monkeypatch: pytest.MonkeyPatch, logs: list[EventDict]
) -> None:
    """After some restarts Discord refuses them for minutes. The commands of the last start are still there."""
    limits = {("PUT", "/applications/{application}/commands"): (1, 3600.0)}
    monkeypatch.setattr(gate, "LIMITS", limits)
    # discord.py waits for the end of such a limit, also after the last request that is within it.
    monkeypatch.setattr(client, "REGISTER_TIMEOUT_S", 2.0)
    async with connected(settings_for(local), FakeRooms()):
        pass
    async with connected(settings_for(local), FakeRooms()):
        assert (await local.invoke(ADA, "status")).replies
    assert "commands_not_registered" in {line["event"] for line in logs}


async def test_commands_that_discord_never_takes_stop_the_start(
    local: LocalDiscord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another attempt would not help."""

    async def refused(_: object) -> None:
        raise discord.HTTPException(cast("Any", SimpleNamespace(status=400, reason="")), "Invalid Form Body")

    monkeypatch.setattr(CheckedCommandTree, "sync", refused)
    with pytest.raises(SetupError, match="400"):
        async with connected(settings_for(local), FakeRooms()):
            pass
