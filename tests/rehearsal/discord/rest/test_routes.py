"""The REST API, used by discord.py and by plain HTTP: request bodies, refusals with Discord's codes, and files."""

from __future__ import annotations

import contextlib
import io
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from bot.discord.permissions import invited
from rehearsal.discord import LocalDiscord
from rehearsal.discord.guild.granted import channel_permissions, permission_bits
from rehearsal.discord.guild.permissions import ALL, EVERYONE, INVITED, DiscordPermission
from rehearsal.discord.guild.spec import Category, Channel, GuildSpec, Member, Overwrite

BOT, SPARE, ADA = 1001, 1002, 2001
_P = DiscordPermission
_CARDS = _P.EMBED_LINKS | _P.ATTACH_FILES
_TOKEN = {"Authorization": "Bot 1001.t"}


class _Api:
    """A plain HTTP client of the REST API."""

    def __init__(self, local: LocalDiscord, http: aiohttp.ClientSession) -> None:
        self._base = local.api_base
        self._http = http

    async def __call__(self, method: str, path: str, *, headers: dict[str, str] | None = None, **content: Any) -> Any:
        """Return the status and the decoded body (None if empty)."""
        headers = _TOKEN if headers is None else headers
        async with self._http.request(method, self._base + path, headers=headers, **content) as response:
            if response.status == 204:
                return 204, None
            assert response.headers["Content-Type"] == "application/json"
            return response.status, await response.json()


@contextlib.asynccontextmanager
async def _api(local: LocalDiscord) -> AsyncIterator[_Api]:
    async with aiohttp.ClientSession() as http:
        yield _Api(local, http)


async def test_only_bots_are_let_in(local: LocalDiscord) -> None:
    """Requests without a bot's token are answered with 401, except for the address of the gateway, which is public."""
    async with _api(local) as api:
        for headers in ({}, {"Authorization": "Bot 2001.x"}, {"Authorization": "Bearer 1001.x"}):
            assert await api("GET", "/users/@me", headers=headers) == (
                401,
                {"message": "401: Unauthorized", "code": 0},
            )
        assert await api("GET", "/gateway", headers={}) == (200, {"url": local.gateway_url})
        status, gateway = await api("GET", "/gateway/bot")
        assert (status, gateway["shards"], gateway["url"]) == (200, 1, local.gateway_url)


async def test_a_stage_has_rules() -> None:
    """On a stage, any bot may ask to speak, but only one that may mute others can make itself a speaker.

    In other channels there is nothing to ask for, and the request is refused.
    """
    stage = Channel(603, "Stage", stage=True)
    bots = (Member(BOT, "Roomtone"), Member(SPARE, "Spare", moderator=True))
    guild = GuildSpec(voice_channels=(stage, Channel(600, "Evening")), bots=bots)
    async with LocalDiscord(guild=guild) as local, _api(local) as api:

        async def change(bot_id: int, channel_id: int, **wanted: object) -> tuple[int, int | None]:
            status, body = await api(
                "PATCH",
                "/guilds/500/voice-states/@me",
                headers={"Authorization": f"Bot {bot_id}.t"},
                json={"channel_id": str(channel_id), **wanted},
            )
            return status, None if body is None else body["code"]

        assert (await api("GET", "/channels/603"))[1]["type"] == 13
        assert await change(BOT, 603, suppress=False) == (404, 10065)
        await local.join(BOT)
        await local.join(SPARE)
        assert await change(BOT, 603, suppress=False) == (403, 50013)
        assert await change(BOT, 603, request_to_speak_timestamp="2026-11-20T15:00:00") == (204, None)
        assert await change(SPARE, 603, suppress=False) == (204, None)
        asking, speaking = local.status()["voice_states"]
        assert (asking["suppress"], asking["request_to_speak_timestamp"]) == (True, "2026-11-20T15:00:00")
        assert (speaking["suppress"], speaking["request_to_speak_timestamp"]) == (False, None)
        await local.join(SPARE, channel_id=600)
        assert await change(SPARE, 600, suppress=False) == (400, 50024)


async def test_a_bot_writes_only_what_the_channel_lets_it_write() -> None:
    """What a channel takes from everybody, the bot lacks there: seeing it, writing, embeds, files, threads and writing
    in them.
    """
    lacking = DiscordPermission
    text = {"content": "hello"}
    card = {"embeds": [{"title": "This session"}]}
    thread_named = {"name": "a thread", "type": 11}
    for denied, path, body, refused in (
        (0, "messages", {**text, **card}, None),
        (lacking.VIEW_CHANNEL, "messages", text, 50001),
        (lacking.SEND_MESSAGES, "messages", text, 50013),
        (lacking.EMBED_LINKS, "messages", text, None),
        (lacking.EMBED_LINKS, "messages", card, 50013),
        (lacking.ATTACH_FILES, "messages", aiohttp.FormData({"files[0]": io.BytesIO(b"x")}), 50013),
        (lacking.CREATE_PUBLIC_THREADS, "threads", thread_named, 50013),
        (lacking.SEND_MESSAGES, "threads", thread_named, None),
    ):
        guild = GuildSpec(text_channel=Channel(601, "chat", denied=int(denied)))
        async with LocalDiscord(guild=guild) as local, _api(local) as api:
            sent = {"data": body} if isinstance(body, aiohttp.FormData) else {"json": body}
            status, answer = await api("POST", f"/channels/601/{path}", **sent)
            assert (status >= 400, answer.get("code")) == (refused is not None, refused), (denied, path)
    for denied, refused in ((lacking.SEND_MESSAGES_IN_THREADS, 50013), (lacking.SEND_MESSAGES, None)):
        guild = GuildSpec(text_channel=Channel(601, "chat", denied=int(denied)))
        async with LocalDiscord(guild=guild) as local, _api(local) as api:
            _, thread = await api("POST", "/channels/601/threads", json=thread_named)
            _, answer = await api("POST", f"/channels/{thread['id']}/messages", json=text)
            assert answer.get("code") == refused


def test_permissions_come_from_roles_categories_and_overwrites() -> None:
    """The bot has what its invitation asks for and no more. A channel without overwrites of its own has its category's,
    and overwrites of roles and members grant what @everyone's take.
    """
    view, speak, write = _P.VIEW_CHANNEL, _P.SPEAK, _P.SEND_MESSAGES
    members = 502
    hidden = Category(610, "Team", (Overwrite(500, deny=view), Overwrite(members, allow=view)))
    channels = (
        Channel(600, "Evening"),
        Channel(602, "Synced", category=hidden),
        Channel(603, "Own", category=hidden, overwrites=(Overwrite(BOT, deny=speak),)),
        Channel(604, "Granted", denied=view, overwrites=(Overwrite(BOT, allow=view),)),
        Channel(605, "Silent", denied=_P.CONNECT | write),
    )
    guild = GuildSpec(voice_channels=channels)
    assert permission_bits(guild, BOT) == INVITED == invited().value
    granted = [channel_permissions(guild, spec, BOT) for spec in channels]
    assert granted == [INVITED, 0, INVITED & ~speak, INVITED, INVITED & ~(write | _P.CONNECT | speak | _CARDS)]
    assert channel_permissions(guild, channels[-1], BOT, in_thread=True) & _CARDS == _CARDS
    assert channel_permissions(guild, channels[1], 2002) == EVERYONE
    assert channel_permissions(guild, channels[1], ADA) == ALL


async def test_without_the_history_a_bot_neither_reads_nor_replies() -> None:
    """Discord has a code of its own for the reply; of the messages it says nothing."""
    guild = GuildSpec(text_channel=Channel(601, "chat", denied=_P.READ_MESSAGE_HISTORY))
    async with LocalDiscord(guild=guild) as local, _api(local) as api:
        posted = await local.post_message(ADA, "hello")
        reply = {"content": "x", "message_reference": {"message_id": str(posted.id)}}
        assert (await api("POST", "/channels/601/messages", json=reply))[1]["code"] == 160002
        assert await api("GET", "/channels/601/messages") == (200, [])
        assert (await api("GET", f"/channels/601/messages/{posted.id}"))[1]["code"] == 50013
