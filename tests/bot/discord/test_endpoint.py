"""What time it is by Discord's clock."""

from __future__ import annotations

import base64
import inspect
import time
from types import SimpleNamespace

import discord
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from bot.discord.endpoint import PromptKeepAlive, application_of, discord_time, point_at, require_token
from bot.errors import SetupError
from bot.settings import DiscordSettings
from rehearsal.discord.server import LocalDiscord
from tests.bot.discord.client import settings_for


async def test_discord_tells_the_time_with_every_answer(local: LocalDiscord) -> None:
    """Nobody need be logged in. If it does not answer, that is an error of the system."""
    assert abs(await discord_time(settings_for(local)) - time.time()) < 60
    with pytest.raises(OSError, match="time"):
        await discord_time(DiscordSettings(api_base="http://127.0.0.1:9"))


TOKEN = base64.urlsafe_b64encode(b"198622483471925248").decode() + ".Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs"


@pytest.mark.parametrize(
    ("token", "found"),
    [
        (base64.b64encode(b"123456789012345678").decode().rstrip("=") + ".abc.def", 123456789012345678),
        ("1001.local", None),
        ("", None),
        ("bm90IGEgbnVtYmVy.a.b", None),
    ],
)
def test_the_application_is_read_from_the_token(token: str, found: int | None) -> None:
    """The first part of a token is the application's id in base64."""
    assert application_of(token) == found


def test_the_token_is_returned_without_blanks() -> None:
    """A file may end in a line break. A local Discord takes any token."""
    assert require_token(DiscordSettings(token=SecretStr(f" {TOKEN}\n"))) == TOKEN
    assert require_token(DiscordSettings(token=SecretStr("1.local"), api_base="http://127.0.0.1:1/api")) == "1.local"


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("198622483471925248", "application's id"),
        ("0123456789abcdef" * 4, "public key"),
        ("aB3_-cD4" * 4, "client secret"),
        (f"Bot {TOKEN}", "word Bot"),
        ("abc.def.ghi", "three parts"),
        (TOKEN.replace(".", "-"), "three parts"),
        ("aGVsbG8gd29ybGQgaGVsbG8gd29y.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", "three parts"),
        ("é" * 24 + "." + "é" * 6 + "." + "é" * 24, "three parts"),
        (" ", "no bot token"),
    ],
)
def test_what_is_no_token_is_refused_with_its_likeness(token: str, told: str) -> None:
    """The sentence says what was probably copied, and never what it is."""
    with pytest.raises(SetupError, match=told) as refused:
        require_token(DiscordSettings(token=SecretStr(token)))
    assert not token.strip() or token not in str(refused.value)
    assert "DISCORD_TOKEN" in str(refused.value)


async def test_who_asks_for_the_time_says_that_it_is_a_bot() -> None:
    """Discord turns other clients away."""
    agents: list[str] = []

    async def gateway(request: web.Request) -> web.Response:
        agents.append(request.headers["User-Agent"])
        return web.Response()

    app = web.Application()
    app.router.add_get("/gateway", gateway)
    async with TestServer(app) as server:
        await discord_time(DiscordSettings(api_base=str(server.make_url("")).rstrip("/")))
    assert agents[0].startswith("DiscordBot (https://")


@pytest.mark.parametrize(("heard_s", "dead"), [(0.1, False), (-0.5, False), (-1.5, True), (-41.0, True)])
def test_a_gateway_that_did_not_answer_the_last_heartbeat_is_dead(heard_s: float, *, dead: bool) -> None:
    """When the next one is due. `heard_s`: when something came last, after the last heartbeat. An answer that is a
    little late on a busy machine is none the less one.
    """
    keeper = PromptKeepAlive(ws=SimpleNamespace(thread_id=0, _max_heartbeat_timeout=60.0), interval=41.25)
    assert (heard_s + keeper.heartbeat_timeout < 41.25) is dead


def test_discord_py_makes_our_keeper_of_the_gateway() -> None:
    """It takes the class of this name when a connection opens."""
    point_at(DiscordSettings())
    assert discord.gateway.KeepAliveHandler is PromptKeepAlive
    assert "KeepAliveHandler(ws=self, interval=interval" in inspect.getsource(discord.gateway.DiscordWebSocket)
