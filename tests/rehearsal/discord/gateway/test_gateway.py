"""The main gateway: identifying, resuming, member requests, and how voice states follow the bot's connection."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable

import pytest

from rehearsal.discord import LocalDiscord
from rehearsal.discord.gateway.gateway import MAIN_SESSION_S, MOST_SENT
from rehearsal.discord.guild.identity import UNPRIVILEGED, Intent
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import Channel, GuildSpec, Member
from tests.fakes.loop_time import pass_loop_time
from tests.rehearsal.discord.sockets import Bare, bare_gateway
from tests.rehearsal.discord.stock import until

BOT, ADA = 1001, 2001
_HEARTBEAT, _IDENTIFY, _RESUME, _VOICE, _MEMBERS = 1, 2, 6, 4, 8
# A guild whose bot may use every intent.
TRUSTING = GuildSpec(
    bots=(Member(BOT, "Roomtone", privileged_intents=int(Intent.MESSAGE_CONTENT | Intent.GUILD_MEMBERS)),)
)


async def _log_in(gateway: Bare, *, intents: int = UNPRIVILEGED, bot_id: int = BOT) -> dict[str, object]:
    """Identify and return READY's data, after GUILD_CREATE has arrived too."""
    await gateway.send(_IDENTIFY, {"token": f"{bot_id}.t", "intents": intents})
    ready = await gateway.receive(0)
    assert (ready["t"], ready["s"]) == ("READY", 1)
    assert (await gateway.receive(0))["t"] == "GUILD_CREATE"
    data: dict[str, object] = ready["d"]
    return data


async def _event(gateway: Bare, name: str) -> dict[str, object]:
    """Return the data of the next event with this name."""
    while (event := await gateway.receive(0))["t"] != name:
        pass
    data: dict[str, object] = event["d"]
    return data


async def test_wrong_tokens_and_wrong_order_are_refused(local: LocalDiscord) -> None:
    """Each mistake has its close code.

    The gateway closes with 4004 for an unknown token, 4003 before identifying, 4005 when identifying twice, 4002 for no
    JSON, 4001 for bytes, 4012 for another version in the address and 4008 for the 121st message within a minute.
    """
    for opcode, data, code in (
        (_IDENTIFY, {"token": "2001.person"}, 4004),
        (_IDENTIFY, {}, 4004),
        (_RESUME, {"token": "5", "session_id": "x"}, 4004),
        (_VOICE, {}, 4003),
    ):
        async with bare_gateway(local) as gateway:
            await gateway.send(opcode, data)
            assert await gateway.close_code() == code
    async with bare_gateway(local) as gateway:
        await _log_in(gateway)
        await gateway.send(_IDENTIFY, {"token": "1001.t"})
        assert await gateway.close_code() == 4005
    async with bare_gateway(local) as gateway:
        await gateway.websocket.send_str("?")
        assert await gateway.close_code() == 4002
    async with bare_gateway(local) as gateway:
        await gateway.websocket.send_bytes(b"etf")
        assert await gateway.close_code() == 4001
    async with bare_gateway(local, "v=9&encoding=json") as gateway:
        assert await gateway.close_code() == 4012
    async with bare_gateway(local) as gateway:
        for _ in range(MOST_SENT + 1):
            await gateway.send(_HEARTBEAT)
        assert await gateway.close_code() == 4008


async def test_a_client_that_asks_for_it_gets_one_compressed_stream(local: LocalDiscord) -> None:
    """Each message ends with a flush, so that it can be read at once. discord.py asks for this by itself."""
    async with bare_gateway(local, "v=10&encoding=json&compress=zlib-stream") as gateway:
        stream = zlib.decompressobj()
        assert json.loads(stream.decompress(await gateway.websocket.receive_bytes()))["op"] == 10
        await gateway.send(_IDENTIFY, {"token": f"{BOT}.t", "intents": UNPRIVILEGED})
        assert json.loads(stream.decompress(await gateway.websocket.receive_bytes()))["t"] == "READY"


async def test_the_voice_state_of_a_killed_process_ends_with_its_main_session(
    local: LocalDiscord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next process finds it in GUILD_CREATE. Once the old session has timed out, the new one is told that the bot
    has left.
    """
    async with bare_gateway(local) as gateway:
        await _log_in(gateway)
        await gateway.send(_VOICE, {"guild_id": "500", "channel_id": "600"})
        await _event(gateway, "VOICE_SERVER_UPDATE")
        (before,) = local.status()["voice_states"]
        gateway.kill()
    await until(lambda: not any(member["online"] for member in local.status()["members"]), "the break")
    async with bare_gateway(local) as gateway:
        await gateway.send(_IDENTIFY, {"token": f"{BOT}.t", "intents": UNPRIVILEGED})
        created = await _event(gateway, "GUILD_CREATE")
        assert created["voice_states"] == [before]
        pass_loop_time(monkeypatch, MAIN_SESSION_S)
        left = await _event(gateway, "VOICE_STATE_UPDATE")
        assert (left["channel_id"], left["session_id"]) == (None, before["session_id"])
        assert local.status()["voice_states"] == []


@pytest.mark.parametrize(
    ("guild", "intents", "code"),
    [
        (GuildSpec(), None, 4013),
        (GuildSpec(), 1 << 17, 4013),
        (GuildSpec(), int(Intent.MESSAGE_CONTENT), 4014),
        (TRUSTING, int(Intent.GUILD_PRESENCES), 4014),
    ],
)
async def test_intents_that_a_bot_may_not_use_are_refused(guild: GuildSpec, intents: object, code: int) -> None:
    """Unknown intents close the connection with 4013, those that the bot's owner has not allowed with 4014."""
    async with LocalDiscord(guild=guild) as local, bare_gateway(local) as gateway:
        await gateway.send(_IDENTIFY, {"token": f"{BOT}.t", "intents": intents})
        assert await gateway.close_code() == code


async def test_a_bot_gets_the_events_of_its_intents() -> None:
    """Messages do not come to a bot that asked for voice states alone, and GUILD_CREATE has who is in voice."""
    async with LocalDiscord() as local, bare_gateway(local) as gateway:
        await local.join(ADA)
        await gateway.send(_IDENTIFY, {"token": f"{BOT}.t", "intents": int(Intent.GUILDS | Intent.GUILD_VOICE_STATES)})
        created = await _event(gateway, "GUILD_CREATE")
        members, states = created["members"], created["voice_states"]
        assert isinstance(members, list)
        assert isinstance(states, list)
        assert [member["user"]["id"] for member in members] == [str(ADA), str(BOT)]
        assert [state["user_id"] for state in states] == [str(ADA)]
        await local.post_message(ADA, "nobody asked for this")
        await local.leave(ADA)
        left = await gateway.receive(0)
        assert (left["t"], left["s"]) == ("VOICE_STATE_UPDATE", 3)


@pytest.mark.parametrize(
    ("asked", "members", "about"),
    [
        ({"user_ids": [str(ADA), "9"], "nonce": "n"}, [ADA], {"not_found": ["9"], "nonce": "n"}),
        ({"user_ids": ADA, "nonce": "n" * 33}, [ADA], {"not_found": [], "nonce": None}),
        ({"user_ids": [str(each) for each in range(3001, 3151)], "limit": 100}, range(3001, 3101), {}),
        ({"query": "b", "limit": 1}, [2002], {"chunk_count": 1}),
        ({"query": "x", "limit": 1}, [], {"chunk_count": 1}),
    ],
)
async def test_members_are_described_by_ids_and_names_and_never_all(
    asked: dict[str, object], members: Iterable[int], about: dict[str, object]
) -> None:
    """A request for everybody gets no answer without their intent; the other requests get what Discord documents."""
    people = (Member(ADA, "Ada"), Member(2002, "Ben"), *(Member(each, "Guest") for each in range(3001, 3151)))
    async with LocalDiscord(guild=GuildSpec(people=people)) as local, bare_gateway(local) as gateway:
        await _log_in(gateway)
        await gateway.send(_MEMBERS, {"guild_id": "500", "query": "", "limit": 0})
        await gateway.send(_MEMBERS, {"guild_id": "500", **asked})
        told = await _event(gateway, "GUILD_MEMBERS_CHUNK")
        described = told["members"]
        assert isinstance(described, list)
        assert [int(each["user"]["id"]) for each in described] == list(members)
        assert {key: told.get(key) for key in about} == about


async def test_op_4_asks_in_vain_for_channels_that_are_closed_or_full() -> None:
    """A bot that may not see or enter a channel gets no answer, nor does one that asks for a full channel.

    Somebody who moves it there may do so, and it is not one too many where it is already.
    """
    guild = GuildSpec(
        voice_channels=(
            Channel(600, "Open"),
            Channel(602, "Locked", denied=int(DiscordPermission.CONNECT)),
            Channel(603, "Hidden", denied=int(DiscordPermission.VIEW_CHANNEL)),
            Channel(604, "Small", user_limit=1),
        )
    )
    async with LocalDiscord(guild=guild) as local, bare_gateway(local) as gateway:
        await _log_in(gateway)
        await local.join(ADA, channel_id=604)
        assert (await _event(gateway, "VOICE_STATE_UPDATE"))["user_id"] == str(ADA)
        for closed in ("602", "603", "604"):
            await gateway.send(_VOICE, {"guild_id": "500", "channel_id": closed})
        await gateway.send(_VOICE, {"guild_id": "500", "channel_id": "600"})
        came = await _event(gateway, "VOICE_STATE_UPDATE")
        assert (came["user_id"], came["channel_id"]) == (str(BOT), "600")
        await _event(gateway, "VOICE_SERVER_UPDATE")
        assert [state["channel_id"] for state in local.status()["voice_states"]] == ["604", "600"]
        await local.leave(ADA)
        for _ in range(2):
            await gateway.send(_VOICE, {"guild_id": "500", "channel_id": "604"})
            await _event(gateway, "VOICE_SERVER_UPDATE")
        await local.join(BOT, channel_id=602)
        assert [state["channel_id"] for state in local.status()["voice_states"]] == ["602"]
