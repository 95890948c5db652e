"""What the bot knows of servers: of those that change while it is there, and of large ones."""

from __future__ import annotations

from typing import Any

import pytest
from discord.gateway import DiscordWebSocket
from discord.http import HTTPClient, Route

from bot.discord.client import RoomtoneClient
from bot.discord.connection import connected
from rehearsal.discord.guild.permissions import DiscordPermission
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Category, Channel, GuildSpec, Member, Overwrite
from rehearsal.discord.server import LocalDiscord
from rehearsal.pytest_plugin import open_discord
from tests.bot.discord.client import FakeRooms, room_channel_in, settings_for
from tests.patience import settle


async def test_channels_and_roles_are_as_the_server_has_them_now(local: LocalDiscord, client: RoomtoneClient) -> None:
    """Who runs the server renames, adds and deletes channels, and changes roles, while the bot is there. A bot that is
    kicked knows the server no more.
    """
    here = room_channel_in(client, 600)
    private = Channel(604, "Private", denied=int(DiscordPermission.CONNECT))
    local.change(voice_channels=(Channel(600, "Renamed"), private))
    await settle(lambda: client.find_channel(local.guild.id, private.id))
    assert (here.name, client.find_channel(local.guild.id, 602)) == ("Renamed", None)
    assert "Connect" in str(room_channel_in(client, private.id).refusal())
    assert here.refusal() is None
    local.change(invited=0)
    await settle(lambda: "Connect" in str(here.refusal()))
    await local.fault("kick", user_id=ROOMTONE_BOT_ID)
    await settle(lambda: not client.guilds)
    assert here.members() == []


async def test_a_large_server_is_known_by_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 members, of whom Discord shows only those in voice, and 500 channels, one with 101 people and what its
    category grants. The bot asks Discord for no list of members, and about those present by their ids, 100 at once.
    """
    people = tuple(Member(10_000 + number, "\u202eעדה") for number in range(100_000))
    hall = Category(1, "الليل", (Overwrite(500, deny=int(DiscordPermission.CONNECT)),))
    voice = Channel(600, "مساء", user_limit=99, category=hall), Channel(602, "Open")
    others = tuple(Channel(20_000 + number, "talk") for number in range(500))
    asked: list[str] = []
    request, request_chunks = HTTPClient.request, DiscordWebSocket.request_chunks

    async def counted(self: HTTPClient, route: Route, **how: Any) -> Any:
        asked.append(f"{route.method} {route.path}")
        return await request(self, route, **how)

    async def chunked(self: DiscordWebSocket, *about: Any, **how: Any) -> None:
        asked.append(f"op 8 by {len(how['user_ids'] or ())} ids")
        await request_chunks(self, *about, **how)

    monkeypatch.setattr(HTTPClient, "request", counted)
    monkeypatch.setattr(DiscordWebSocket, "request_chunks", chunked)
    guild = GuildSpec(voice_channels=voice, more_text_channels=others, people=people)
    async with open_discord(guild) as opened:
        for each in people[:101]:
            await opened.discord.join(each.id, channel_id=602)
        async with connected(settings_for(opened.discord), FakeRooms()) as client:
            here = room_channel_in(client, 602)
            assert "Connect" in str(room_channel_in(client, 600).refusal())
            assert (here.refusal(), len(here.members()), len(client.guilds[0].channels)) == (None, 101, 504)
            assert client.guilds[0].member_count == len(people) + 2
            at_start = asked.copy()
            await here.refresh_rights()
            assert (len(at_start) < 10, asked[len(at_start) :]) == (True, ["op 8 by 100 ids", "op 8 by 1 ids"])
            assert not any(each.startswith("op 8") for each in at_start)
            assert all(each.reads_chat for each in here.members())
            assert (await opened.discord.invoke(people[-1].id, "status")).replies
            assert "Open" in (await opened.discord.invoke(people[0].id, "join")).replies[0].content
            assert len(client.guilds[0].members) == 102
