"""The control API over HTTP works as its documentation page says, and every mistake gets an error message."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import discord
import pytest
import pytest_asyncio

from rehearsal.discord import LocalDiscord
from rehearsal.people.person import scripted_member
from tests.rehearsal.discord.stock import StockBot, stock_bot

BOT, ADA, BEN = 1001, 2001, 2002


class _Client:
    """An HTTP client of the control API."""

    def __init__(self, local: LocalDiscord, http: aiohttp.ClientSession) -> None:
        self._base = local.control_base
        self._http = http

    async def post(self, path: str, body: Any = None, *, text: bytes | None = None) -> tuple[int, dict[str, Any]]:
        """Return the status and the decoded answer."""
        content = {"data": text} if text is not None else {"json": body} if body is not None else {}
        async with self._http.post(f"{self._base}{path}", **content) as response:
            assert response.headers["Content-Type"] == "application/json"
            return response.status, await response.json()

    async def get(self, path: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the decoded answer."""
        async with self._http.get(f"{self._base}{path}") as response:
            return response.status, await response.json()


@pytest_asyncio.fixture
async def control(local: LocalDiscord) -> AsyncIterator[_Client]:
    async with aiohttp.ClientSession() as http:
        yield _Client(local, http)


async def test_a_member_joins_and_leaves(control: _Client, local: LocalDiscord) -> None:
    """The answer to a join has the data of Discord's two voice events, and the bots receive those events too."""
    async with stock_bot(local, BOT) as bot:
        status, joined = await control.post(f"/members/{ADA}/join")
        assert status == 200
        assert joined["state"]["user_id"] == str(ADA)
        assert joined["state"]["channel_id"] == "600"
        assert joined["state"]["session_id"]
        assert joined["server"] == {
            "token": joined["server"]["token"],
            "guild_id": "500",
            "endpoint": local.voice_endpoint,
        }
        status, moved = await control.post(f"/members/{ADA}/join", {"channel_id": 602})
        assert moved["state"]["channel_id"] == "602"
        assert moved["state"]["session_id"] != joined["state"]["session_id"]
        channel = bot.get_channel(602)
        assert isinstance(channel, discord.VoiceChannel)
        async with scripted_member(local, BEN):
            assert {member.display_name for member in channel.members} <= {"Ada"}
        assert await control.post(f"/members/{ADA}/leave") == (200, {"left": True})
        status, answer = await control.post(f"/members/{ADA}/leave")
        assert (status, answer) == (400, {"error": "Ada is in no voice channel. Join first."})


class _Ballot(discord.ui.View):
    @discord.ui.button(label="Yes", custom_id="vote:yes")
    async def yes(self, interaction: discord.Interaction, _: discord.ui.Button[_Ballot]) -> None:
        await interaction.response.send_message(f"{interaction.user.id}: yes", ephemeral=True)


async def test_a_command_a_button_a_message_and_a_fault(control: _Client, local: LocalDiscord) -> None:
    """`replies` waits for that many. Replies and messages tell their ids and their buttons, which can be pressed."""

    def prepare(bot: StockBot) -> None:
        @bot.tree.command(name="vote", description="Asks.")
        async def vote(interaction: discord.Interaction, times: int) -> None:
            await interaction.response.defer()
            for number in range(times):
                await interaction.followup.send(f"{number + 1}", view=_Ballot(timeout=None))

    async with stock_bot(local, BOT, prepare=prepare):
        asked = {"name": "vote", "options": {"times": 2}, "replies": 2, "timeout_s": 10}
        status, answer = await control.post(f"/members/{ADA}/command", asked)
        assert (status, answer["command"], answer["deferred"]) == (200, "vote", True)
        assert [(each["kind"], each["content"]) for each in answer["replies"]] == [("initial", "1"), ("followup", "2")]
        reply = answer["replies"][0]
        assert reply["buttons"] == [{"custom_id": "vote:yes", "label": "Yes", "disabled": False}]
        body = {"message_id": reply["message_id"], "button": "Yes"}
        status, pressed = await control.post(f"/members/{BEN}/press", body)
        assert (status, pressed["replies"][0]["content"]) == (200, f"{BEN}: yes")
        status, posted = await control.post(f"/members/{ADA}/message", {"text": "Good evening"})
        assert (status, posted["author_id"], posted["content"]) == (200, str(ADA), "Good evening")
        assert (await control.get("/status"))[1]["messages"][-1] == posted
        status, caused = await control.post("/fault/rest_limit", {"user_id": str(BOT), "count": 0})
        assert (status, caused) == (200, {"fault": "rest_limit", "user_ids": [str(BOT)]})


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/network", b'{"jam": 1}', "jam"),
        ("/network", b"[1]", "the body"),
        ("/network", b"[" * 100_000, "the body"),
        (f"/members/{ADA}/command", b"{}", "name"),
        (f"/members/{ADA}/command", b'{"name": "vote", "options": [1]}', "options"),
        (f"/members/{ADA}/command", b'{"name": "vote", "replies": 0}', "replies"),
        (f"/members/{ADA}/press", b'{"button": "Yes"}', "message_id"),
        (f"/members/{ADA}/message", b'{"text": ""}', "text"),
        ("/fault/rtcp", b'{"user_id": "Ada"}', "user_id"),
        ("/fault/rtcp", b'{"name": 1}', "name"),
        ("/members/9/join", b"", "User 9"),
        ("/members/somebody/join", b"", "somebody"),
        (f"/members/{ADA}/join", b'{"channel_id": "601"}', "601"),
    ],
)
async def test_a_wrong_request_is_answered_with_a_sentence(
    control: _Client, local: LocalDiscord, path: str, body: bytes, says: str
) -> None:
    """The answer is a 4xx status and names what is wrong."""
    status, answer = await control.post(path, text=body)
    assert status == 400
    assert says in answer["error"]
    assert (await control.get("/weather"))[0] == 404


@pytest.mark.parametrize("path", ["/status", "/members/2001/join"])
async def test_nothing_happens_without_the_token(local: LocalDiscord, path: str) -> None:
    """Without the token of the printed address, or with another, every request is refused."""
    async with aiohttp.ClientSession() as http:
        base, _, token = local.control_base.rpartition("/")
        assert len(token) >= 16
        for wrong in (base, f"{base}/{token[:-1]}", f"{base}/{'x' * len(token)}", f"{base}/%ED%A0%80"):
            for method in ("GET", "POST"):
                async with http.request(method, wrong + path) as answer:
                    assert answer.status == 403
                    assert "token" in (await answer.json())["error"]
        assert local.status()["voice_states"] == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
async def test_no_page_can_control_it(local: LocalDiscord, headers: dict[str, str]) -> None:
    """A request of a page, or for a host name that was made to resolve to this machine, is refused even with the token.
    REST and the gateway refuse it too.
    """
    async with aiohttp.ClientSession() as http:
        gateway = local.gateway_url.replace("ws://", "http://")
        for url in (f"{local.control_base}/members/{ADA}/join", f"{local.api_base}/gateway", gateway):
            for method in ("GET", "POST"):
                async with http.request(method, url, headers=headers) as answer:
                    assert answer.status == 403
        assert local.status()["voice_states"] == []
