"""A session that has ended arrives at the address that its managers chose, signed, and without withheld words."""

from __future__ import annotations

import hmac
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any, cast

import pytest

from bot.memory.personal_recall import MemoryReaders
from bot.posts.renewal import MessageEditor
from bot.posts.webhooks import FIRST_PAUSE_S, LONGER_BY, MOST_ATTEMPTS, SessionWebhooks
from bot.server_settings import ServerSettings, from_json, to_json
from bot.shards import Shards
from bot.webhook_sender import WebhookSender
from tests.bot.posts.readable_house import readable_house
from tests.bot.room.room_scene import House, ended, living
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel
from tests.fakes.webhook_receiver import WebhookReceiver, receiving

SECRET = "Zanzibarq"


@dataclass
class Server:
    """A server with a webhook, and what takes it."""

    house: House
    readable: MemoryReaders
    receiver: WebhookReceiver
    sender: WebhookSender

    async def choose(self) -> str:
        """Choose a webhook, or another one at the same address. Return its secret."""
        self.house.clock.advance(1.0)
        webhook = self.sender.new(self.receiver.address)
        # As it is stored.
        chosen = from_json(to_json(ServerSettings(webhook=webhook)))
        await self.house.servers.change(self.house.channel.guild_id, lambda _: chosen, by=1)
        return webhook.secret

    async def session(self, *, changes: bool = False) -> None:
        """Let Bo and Ada speak, and Bo opt out. `changes`: somebody chooses another webhook meanwhile."""
        async with living(self.house) as (room, task):
            await self.house.say(BO.id, f"My aunt in {SECRET} pays.")
            await self.house.say(ADA.id, "We take the train.")
            if changes:
                await self.choose()
            await self.opt_out(BO.id)
            room.close("left")
            await ended(self.house, task)

    async def opt_out(self, person_id: int, *, out: bool = True) -> None:
        """Let somebody opt out, or in again."""
        await self.house.participation.set_opt_out(self.house.channel.guild_id, person_id, out=out)

    def find_channel(self, guild_id: int, channel_id: int) -> FakeRoomChannel:
        """Stand for Discord too."""
        return self.house.channel

    async def look(self, *, serves: bool = True) -> int:
        """Let a bot look that has just started. Return how many requests came so far."""
        sessions, servers, clock = self.house.sessions, self.house.servers, self.house.clock
        bot = SessionWebhooks(
            sessions,
            self.readable,
            servers,
            self.sender,
            cast("MessageEditor", self),
            shards=Shards((int(not serves),), 2),
            zone=UTC,
            clock=clock,
        )
        await bot.run_once()
        return len(self.receiver.taken)


@asynccontextmanager
async def a_server(folder: Path) -> AsyncIterator[Server]:
    """Open a server without a webhook."""
    async with readable_house(folder) as house, receiving() as receiver:
        assert house.readable is not None
        yield Server(house, house.readable, receiver, WebhookSender(private=True, user_agent="Bot", clock=house.clock))


async def test_a_session_arrives_once_and_signed(tmp_path: Path) -> None:
    """The notice names the host. What did not arrive is sent again after a restart, with the same id; its signature is
    that of Standard Webhooks. Another process leaves it alone.
    """
    async with a_server(tmp_path) as server:
        key = b64decode((await server.choose()).removeprefix("whsec_"))
        await server.session()
        assert "127.0.0.1 gets the recap and transcript of each session." in server.house.channel.notices[0]
        assert await server.look(serves=False) == 0
        server.receiver.status = 500
        assert [await server.look(), await server.look()] == [1, 1]
        server.receiver.status = 200
        server.house.clock.advance(FIRST_PAUSE_S)
        assert [await server.look(), await server.look()] == [2, 2]
    (first, _), (headers, body) = server.receiver.taken
    assert first["webhook-id"] == headers["webhook-id"]
    signed = ".".join((headers["webhook-id"], headers["webhook-timestamp"], body.decode())).encode()
    assert headers["webhook-signature"] == f"v1,{b64encode(hmac.digest(key, signed, 'sha256')).decode()}"
    assert (headers["User-Agent"], headers["Content-Type"]) == ("Bot", "application/json")
    data = json.loads(body)["data"]
    assert [each["text"] for each in data["transcript"]["lines"]] == ["We take the train."]
    assert (data["recap"]["people"][0]["name"], data["transcript"]["session"]) == ("Ada", headers["webhook-id"])
    assert SECRET not in body.decode()


async def test_what_does_not_arrive_is_tried_for_a_day(tmp_path: Path) -> None:
    """The channel is told at the first failure and at the last, with the cause and what to do."""
    async with a_server(tmp_path) as server:
        await server.choose()
        await server.session()
        server.receiver.status = 500
        for attempt in range(MOST_ATTEMPTS + 1):
            assert await server.look() == min(attempt + 1, MOST_ATTEMPTS)
            server.house.clock.advance(FIRST_PAUSE_S * LONGER_BY**attempt)
        first, last = server.house.channel.written
        assert "500" in first
        assert "/settings" in first
        assert "/transcript" in last


@pytest.mark.parametrize("during", [True, False])
async def test_only_the_webhook_that_the_notice_named_gets_it(tmp_path: Path, during: bool) -> None:
    """Another one gets the sessions that begin after it was chosen."""
    async with a_server(tmp_path) as server:
        await server.choose()
        await server.session(changes=during)
        if not during:
            await server.choose()
        assert await server.look() == 0
        await server.opt_out(BO.id, out=False)
        await server.session()
        assert await server.look() == 1


@pytest.mark.parametrize("takes_back", ["words", "webhook"])
async def test_what_is_taken_back_while_a_model_writes_the_recap_is_not_sent(tmp_path: Path, takes_back: str) -> None:
    """The only person whose words are left opts out, or a manager chooses another webhook."""
    async with a_server(tmp_path) as server:
        await server.choose()
        await server.session()
        digest_of = server.readable.digests.of

        async def slowly(*given: Any) -> Any:
            digest = await digest_of(*given)
            await (server.opt_out(ADA.id) if takes_back == "words" else server.choose())
            return digest

        server.readable.digests.of = slowly  # type: ignore[method-assign, assignment]
        assert await server.look() == 0
