"""The control API over HTTP works as its documentation page says, and every mistake gets an error message."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import aiohttp
import discord
import pytest

from rehearsal.discord import LocalDiscord
from rehearsal.runner.scripted_member import scripted_member
from tests.rehearsal.discord.stock import StockBot, stock_bot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BOT, ADA, BEN = 1001, 2001, 2002


class _Client:
    """An HTTP client of the control API."""

    def __init__(self, local: LocalDiscord, http: aiohttp.ClientSession) -> None:
        self._base = local.control_base
        self._http = http

    async def post(self, path: str, body: Any = None, *, text: str | None = None) -> tuple[int, dict[str, Any]]:
        """Return the status and the decoded answer."""
        content = {"data": text} if text is not None else {"json": body} if body is not None else {}
        async with self._http.post(f"{self._base}{path}", **content) as response:
            assert response.headers["Content-Type"] == "application/json"
            return response.status, await response.json()

    async def get(self, path: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the decoded answer."""
        async with self._http.get(f"{self._base}{path}") as response:
            return response.status, await response.json()


@contextlib.asynccontextmanager
async def _control(local: LocalDiscord) -> AsyncIterator[_Client]:
    async with aiohttp.ClientSession() as http:
        yield _Client(local, http)


@pytest.mark.asyncio
async def test_a_member_joins_and_leaves() -> None:
    """The answer to a join has the data of Discord's two voice events, and the bots receive those events too."""
    async with LocalDiscord() as local, _control(local) as control, stock_bot(local, BOT) as bot:
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


@pytest.mark.asyncio
async def test_the_network_is_set_and_told() -> None:
    """A request sets any of the three network values, or none. A request with a mistake sets nothing."""
    async with LocalDiscord() as local, _control(local) as control:
        assert await control.post("/network", {}) == (200, {"loss": 0.0, "padding": 0.05, "reorder": 0.0})
        assert await control.post("/network", {"loss": 0.5}) == (200, {"loss": 0.5, "padding": 0.05, "reorder": 0.0})
        assert local.network.loss == 0.5
        for body, says in (
            ({"loss": 2}, "loss is a share from 0 to 1, for example 0.05; 2 is not."),
            ({"jam": 1}, "This request has no field 'jam'. Its fields: loss, padding, reorder."),
            ([1], 'The request\'s body is a JSON object, for example {"loss": 0.05}.'),
        ):
            assert await control.post("/network", body) == (400, {"error": says})
        for text in ("loss=1", "[" * 100_000):
            status, answer = await control.post("/network", text=text)
            assert (status, answer["error"]) == (400, 'The request\'s body is not JSON. An example: {"loss": 0.05}.')
        assert local.network.loss == 0.5


@pytest.mark.asyncio
async def test_faults_and_their_options() -> None:
    """The answer to a fault names the affected users. `user_id` and the options are given in the body."""
    async with (
        LocalDiscord() as local,
        _control(local) as control,
        scripted_member(local, ADA),
        scripted_member(local, BEN),
    ):
        status, answer = await control.post("/fault/rtcp", {"user_id": str(ADA), "count": 3})
        assert (status, answer) == (200, {"fault": "rtcp", "user_ids": [str(ADA)], "packets": 3})
        status, answer = await control.post("/fault/rtcp")
        assert sorted(answer["user_ids"]) == [str(ADA), str(BEN)]
        status, answer = await control.post("/fault/flood")
        assert status == 400
        assert answer["error"].startswith("There is no fault 'flood'. The faults are ")
        status, answer = await control.post("/fault/rtcp", {"name": 1})
        assert answer == {"error": "The fault rtcp has no option 'name'. Its options: count."}
        status, answer = await control.post("/fault/rtcp", {"user_id": "Ada"})
        assert answer == {"error": "user_id is a Discord id, for example 2001; 'Ada' is not."}


@pytest.mark.asyncio
async def test_a_command_is_used_and_its_replies_come_back() -> None:
    """With `replies`, the request waits for that many replies of the command."""

    def prepare(bot: StockBot) -> None:
        @bot.tree.command(name="count", description="Counts.")
        async def count(interaction: discord.Interaction, upto: int) -> None:
            await interaction.response.defer()
            for number in range(upto):
                await interaction.followup.send(str(number + 1))

    async with LocalDiscord() as local, _control(local) as control, stock_bot(local, BOT, prepare=prepare):
        body = {"name": "count", "options": {"upto": 3}, "replies": 3, "timeout_s": 10}
        status, answer = await control.post(f"/members/{ADA}/command", body)
        assert (status, answer["command"], answer["deferred"]) == (200, "count", True)
        assert [(reply["kind"], reply["content"]) for reply in answer["replies"]] == [
            ("initial", "1"),
            ("followup", "2"),
            ("followup", "3"),
        ]
        for wrong, says in (
            ({}, 'name is a text that is not empty, for example "status".'),
            ({"name": "count", "options": [1]}, 'options is an object, for example {"limit": 5}.'),
            ({"name": "count", "replies": 0}, "replies is a number from 1 to 100; 0 is not."),
            ({"name": "count", "options": {}}, "/count needs the option 'upto'."),
        ):
            assert await control.post(f"/members/{ADA}/command", wrong) == (400, {"error": says})


class _Ballot(discord.ui.View):
    @discord.ui.button(label="Yes", custom_id="vote:yes")
    async def yes(self, interaction: discord.Interaction, _: discord.ui.Button[_Ballot]) -> None:
        await interaction.response.send_message(f"{interaction.user.id}: yes", ephemeral=True)

    @discord.ui.button(label="Close", custom_id="vote:close")
    async def close(self, interaction: discord.Interaction, button: discord.ui.Button[_Ballot]) -> None:
        button.disabled = True
        await interaction.response.edit_message(content="closed", view=self)


@pytest.mark.asyncio
async def test_buttons_of_answers_and_of_messages_are_pressed() -> None:
    """Each reply and message tells its id and its buttons; a press names one by its id or by what stands on it."""

    def prepare(bot: StockBot) -> None:
        @bot.tree.command(name="vote", description="Asks.")
        async def vote(interaction: discord.Interaction, hidden: bool) -> None:
            await interaction.response.send_message("Shall we?", view=_Ballot(timeout=None), ephemeral=hidden)

    async with LocalDiscord() as local, _control(local) as control, stock_bot(local, BOT, prepare=prepare):
        _, asked = await control.post(f"/members/{ADA}/command", {"name": "vote", "options": {"hidden": False}})
        (reply,) = asked["replies"]
        assert reply["buttons"] == [
            {"custom_id": "vote:yes", "label": "Yes", "disabled": False},
            {"custom_id": "vote:close", "label": "Close", "disabled": False},
        ]
        _, told = await control.get("/status")
        assert [(each["id"], len(each["buttons"])) for each in told["messages"]] == [(reply["message_id"], 2)]
        body = {"message_id": reply["message_id"], "button": "Yes"}
        status, pressed = await control.post(f"/members/{BEN}/press", body)
        assert (status, pressed["replies"][0]["content"]) == (200, f"{BEN}: yes")
        status, closed = await control.post(f"/members/{ADA}/press", body | {"button": "vote:close"})
        assert (closed["replies"][0]["kind"], closed["replies"][0]["content"]) == ("edit", "closed")
        assert [each["disabled"] for each in closed["replies"][0]["buttons"]] == [False, True]
        _, hidden = await control.post(f"/members/{ADA}/command", {"name": "vote", "options": {"hidden": True}})
        secret = hidden["replies"][0]["message_id"]
        for person, wrong, says in (
            (ADA, body | {"button": "Close"}, f"Message {body['message_id']} has no button 'Close' to press. It has "),
            (ADA, {"button": "Yes"}, "message_id is a Discord id, for example 2001; None is not."),
            (ADA, {"message_id": 5}, 'button is a text that is not empty, for example "Next".'),
            (ADA, {"message_id": 5, "button": "Yes"}, "There is no message 5."),
            (BEN, {"message_id": secret, "button": "Yes"}, f"Only user {ADA} sees message {secret}."),
            (9, body, "User 9 is not a member of the guild."),
        ):
            status, answer = await control.post(f"/members/{person}/press", wrong)
            assert status == 400
            assert answer["error"].startswith(says)


@pytest.mark.asyncio
async def test_a_message_is_posted() -> None:
    """A posted message appears in the text channel and in the status."""
    async with LocalDiscord() as local, _control(local) as control:
        status, posted = await control.post(f"/members/{ADA}/message", {"text": "Good evening"})
        assert (status, posted["author_id"], posted["content"]) == (200, str(ADA), "Good evening")
        _, told = await control.get("/status")
        assert told["messages"] == [posted]
        status, answer = await control.post(f"/members/{ADA}/message", {"text": " "})
        assert (status, answer["error"]) == (400, 'text is a text that is not empty, for example "Good evening".')


@pytest.mark.asyncio
async def test_the_status_tells_everything() -> None:
    """The status has members, voice states, epoch, leaves, packets, network, messages and addresses."""
    async with LocalDiscord() as local, _control(local) as control, stock_bot(local, BOT):
        async with scripted_member(local, ADA) as ada, scripted_member(local, BEN):
            await ada.meet(BEN)
            status, told = await control.get("/status")
        assert status == 200
        assert told == {**told, "epoch": 1, "network": local.network.as_dict(), "messages": []}
        assert set(told["leaves"]) == {str(ADA), str(BEN)}
        assert [state["user_id"] for state in told["voice_states"]] == [str(ADA), str(BEN)]
        members = {member["name"]: member for member in told["members"]}
        assert members["Roomtone"] == {
            "id": str(BOT),
            "name": "Roomtone",
            "bot": True,
            "online": True,
            "voice_channel_id": None,
            "voice_connected": False,
            "ssrc": None,
        }
        assert members["Ada"]["voice_connected"]
        assert told["channels"][0]["dave_version"] == 1
        assert told["addresses"]["certificate_path"] == str(local.certificate_path)
        assert set(told["packets"]) == {"in", "out", "dropped", "bad", "injected", "unannounced", "forgotten"}


@pytest.mark.asyncio
async def test_whatever_it_does_not_have_is_said() -> None:
    """An unknown path is answered with 404, an unknown person or channel with 400."""
    async with LocalDiscord() as local, _control(local) as control:
        status, answer = await control.get("/weather")
        assert status == 404
        assert "has no GET /weather" in answer["error"]
        status, answer = await control.post("/members/9/join")
        assert status == 400
        assert answer["error"].startswith("User 9 is not a member of the guild.")
        status, answer = await control.post("/members/somebody/join")
        assert answer == {"error": "the user id is a Discord id, for example 2001; 'somebody' is not."}
        status, answer = await control.post(f"/members/{ADA}/join", {"channel_id": "601"})
        assert answer["error"].startswith("Channel 601 is not a voice channel")


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/status", "/members/2001/join", "/weather", ""])
async def test_nothing_happens_without_the_token(path: str) -> None:
    """Without the token of the printed address, or with another, every request is refused."""
    async with LocalDiscord() as local, aiohttp.ClientSession() as http:
        base, _, token = local.control_base.rpartition("/")
        assert len(token) >= 16
        for wrong in (base, f"{base}/{token[:-1]}", f"{base}/{'x' * len(token)}", f"{base}/%ED%A0%80"):
            for method in ("GET", "POST"):
                async with http.request(method, wrong + path) as answer:
                    assert answer.status == 403
                    assert "token" in (await answer.json())["error"]
        assert local.status()["voice_states"] == []


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:80"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
async def test_no_page_can_control_it(headers: dict[str, str]) -> None:
    """A request of a page, or for a host name that was made to resolve to this machine, is refused even with the token.
    REST and the gateway refuse it too.
    """
    async with LocalDiscord() as local, aiohttp.ClientSession() as http:
        gateway = local.gateway_url.replace("ws://", "http://")
        for url in (f"{local.control_base}/members/{ADA}/join", f"{local.api_base}/gateway", gateway):
            for method in ("GET", "POST"):
                async with http.request(method, url, headers=headers) as answer:
                    assert answer.status == 403
        assert local.status()["voice_states"] == []
