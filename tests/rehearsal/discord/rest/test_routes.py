"""The REST API, used by discord.py and by plain HTTP: request bodies, refusals with Discord's codes, and files."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

import aiohttp

from rehearsal.discord import LocalDiscord
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import Channel, GuildSpec, Member

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BOT, SPARE, ADA = 1001, 1002, 2001
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


async def test_only_bots_are_let_in() -> None:
    """Requests without a bot's token are answered with 401, except for the address of the gateway, which is public."""
    async with LocalDiscord() as local, _api(local) as api:
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
    in them. An interaction says what the bot may do in its channel.
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
