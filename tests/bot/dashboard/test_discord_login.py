"""Logging in with Discord, against a local fake of its OAuth2: who gets in, what is asked, and what fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from structlog.typing import EventDict

from bot.dashboard.access import Access, DashboardUser, LoginRefusedError
from bot.dashboard.discord_login import REQUEST_TIMEOUT_S, VALID_S, DiscordLogin
from bot.viewers import Viewer
from tests.bot.dashboard.browser import Browser
from tests.bot.dashboard.discord_oauth import CLIENT_ID, SECRET, FakeDiscordOAuth, discord_oauth
from tests.bot.dashboard.house import open_house
from tests.bot.evening import CHANNEL, GUILD
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import wait_out

BACK = "http://localhost:8095/login"


class Logging:
    """The bot's side and Discord's side of a login."""

    def __init__(self, discord: FakeDiscordOAuth, secret: str = SECRET) -> None:
        self.discord = discord
        self.clock = FakeClock()
        self.login = DiscordLogin(SecretStr(secret), api_base=discord.api_base, clock=self.clock)

    def visit(self) -> tuple[str, dict[str, str]]:
        """Begin a login and agree at Discord. Returns the browser's proof, and what Discord sent back."""
        begun = self.login.start(int(CLIENT_ID), BACK)
        query = {name: values[0] for name, values in parse_qs(urlsplit(begun.url).query).items()}
        back = self.discord.agree(query)
        return begun.proof, {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}

    async def finish(self, proof: str, sent: dict[str, str]) -> DashboardUser:
        """Come back."""
        return await self.login.finish(int(CLIENT_ID), proof, sent.get("state", ""), sent.get("code", ""))


@pytest_asyncio.fixture
async def logging_in() -> AsyncIterator[Logging]:
    """A login at the fake Discord."""
    async with discord_oauth() as discord:
        yield Logging(discord)


async def test_discord_says_who_somebody_is_and_nothing_else_is_kept(logging_in: Logging) -> None:
    """The code is exchanged with the verifier of its challenge, the name is read, and the token is given back."""
    proof, sent = logging_in.visit()
    assert await logging_in.finish(proof, sent) == DashboardUser("Ada L.", 2001)
    assert logging_in.discord.revoked == logging_in.discord.tokens != set()


def test_the_link_asks_for_the_name_only() -> None:
    """Scope identify, S256, and nothing secret in the address."""
    login = DiscordLogin(SecretStr(SECRET), api_base="", clock=FakeClock())
    begun = login.start(4242, BACK)
    assert begun.url.startswith("https://discord.com/oauth2/authorize?")
    query = parse_qs(urlsplit(begun.url).query)
    assert query["scope"] == ["identify"]
    assert query["code_challenge_method"] == ["S256"]
    assert query["redirect_uri"] == [BACK]
    assert SECRET not in begun.url
    assert begun.proof not in begun.url


async def test_another_browser_or_state_or_a_second_time_is_refused(logging_in: Logging) -> None:
    """Whoever has only the code, as from an address that somebody else was lured to, does not get in."""
    proof, sent = logging_in.visit()
    other, _ = logging_in.visit()
    flipped = f"{proof[:-1]}{'0' if proof[-1] != '0' else '1'}"
    for wrong in ("", "x", "\u00e9", "ab" * 40, other, flipped):
        with pytest.raises(LoginRefusedError, match="Begin again"):
            await logging_in.finish(wrong, sent)
    for broken in ({"state": "x"}, {"state": ""}, {"state": "\ud800"}, {"code": ""}):
        with pytest.raises(LoginRefusedError, match="Begin again"):
            await logging_in.finish(proof, {**sent, **broken})
    assert logging_in.discord.tokens == set()
    await logging_in.finish(proof, sent)
    with pytest.raises(LoginRefusedError, match="Begin again"):
        await logging_in.finish(proof, sent)
    assert len(logging_in.discord.tokens) == 1


OWN = DiscordLogin(SecretStr(SECRET), api_base="http://127.0.0.1:9", clock=FakeClock())
BEGUN = OWN.start(int(CLIENT_ID), BACK)
CHANGED = st.builds(
    lambda channel, letter: BEGUN.proof[:channel] + letter + BEGUN.proof[channel + 1 :],
    st.integers(0, len(BEGUN.proof) - 1),
    st.sampled_from("0123456789abcdefg \u00e9"),
)


@given(st.one_of(st.text(), st.binary(max_size=200).map(bytes.hex), CHANGED.filter(lambda text: text != BEGUN.proof)))
def test_nobody_can_make_or_change_a_cookie(text: str) -> None:
    """Whatever a browser sends is refused as not ours, before Discord is asked."""
    (state,) = parse_qs(urlsplit(BEGUN.url).query)["state"]
    with pytest.raises(LoginRefusedError, match="Begin again"):
        OWN.finish(int(CLIENT_ID), text, state, "code").send(None)


async def test_a_login_lapses_and_its_cookie_tells_nothing(logging_in: Logging) -> None:
    """The browser's own clock does not count. A cookie fits into a browser, and no secret can be read in it."""
    for waits_s, is_valid in ((VALID_S - 1, True), (VALID_S, False)):
        proof, sent = logging_in.visit()
        assert proof.isalnum()
        assert len(proof) < 1_000
        assert BACK.encode().hex() not in proof
        logging_in.clock.advance(waits_s)
        if is_valid:
            await logging_in.finish(proof, sent)
        else:
            with pytest.raises(LoginRefusedError, match="Begin again"):
                await logging_in.finish(proof, sent)


@pytest.mark.parametrize("trouble", ["down", "busy", "failing", "garbage", "huge", "slow", "redirect"])
async def test_whatever_discord_answers_ends_in_a_sentence(
    logging_in: Logging, trouble: str, monkeypatch: pytest.MonkeyPatch, logs: list[EventDict]
) -> None:
    """No answer of Discord's side is believed, waited for or quoted, and the secret is in no log."""
    logging_in.discord.trouble = trouble
    proof, sent = logging_in.visit()
    finishing = asyncio.create_task(logging_in.finish(proof, sent))
    if trouble == "slow":
        # aiohttp rounds up.
        await wait_out(monkeypatch, REQUEST_TIMEOUT_S + 1)
    with pytest.raises(LoginRefusedError) as refused:
        await finishing
    assert str(refused.value).endswith((".", "browser."))
    assert SECRET not in str(logs)
    assert sent["code"] not in str(logs)


async def test_a_wrong_secret_tells_the_operator_what_to_do() -> None:
    """The sentence names the page of the developer portal."""
    async with discord_oauth() as discord:
        logging_in = Logging(discord, secret="old")
        with pytest.raises(LoginRefusedError, match="OAuth2"):
            await logging_in.finish(*logging_in.visit())


@pytest.mark.parametrize("user", [{}, {"id": "x"}, {"id": "²"}, {"id": "9" * 30}, {"id": None}])
async def test_a_user_without_a_proper_id_is_nobody(logging_in: Logging, user: dict[str, object]) -> None:
    """The id decides what somebody sees, so only a number of Discord's form is taken."""
    logging_in.discord.user = user
    with pytest.raises(LoginRefusedError, match="who you are"):
        await logging_in.finish(*logging_in.visit())
    assert logging_in.discord.revoked == logging_in.discord.tokens


class Public(Browser):
    """One person's browser at the dashboard, where people log in at `discord`."""

    discord: FakeDiscordOAuth

    async def come_back(self) -> tuple[int, Any]:
        """Go to Discord and come back."""
        _, begun = await self.post("/api/login/discord", {})
        async with self.http.get(begun["url"], allow_redirects=False) as answer:
            back = answer.headers["Location"]
        query = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
        return await self.post("/api/login/discord/back", {"code": query["code"], "state": query["state"]})


@pytest_asyncio.fixture
async def public(tmp_path: Path) -> AsyncIterator[Public]:
    """A dashboard where people log in with Discord."""
    async with discord_oauth() as discord:
        login = DiscordLogin(SecretStr(SECRET), api_base=discord.api_base, clock=FakeClock())
        async with (
            open_house(tmp_path, discord_login=login) as house,
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http,
        ):
            await house.play(8)
            opened = Public(house, http)
            opened.discord = discord
            yield opened


HERE = frozenset({CHANNEL})
# Who sees the room but was not there, and who also may read everything.
OUTSIDER = Access({GUILD: HERE}, viewers={GUILD: Viewer("2001", GUILD, HERE)})
LOUNGE = Access({GUILD: HERE}, viewers={GUILD: Viewer("2001", GUILD, HERE, HERE)})


async def shown(public: Public, path: str) -> dict[str, Any]:
    """Return what a page shows."""
    status, found = await public.get(path)
    assert status == 200
    return cast("dict[str, Any]", found)


async def test_members_see_the_rooms_that_their_roles_allow(public: Public) -> None:
    """Who may enter the channel sees its room, its sessions and its search results, but no prompts."""
    assert await public.get("me") == (200, {"discord": True})
    public.house.directory.access[2001] = LOUNGE
    assert (await public.come_back())[0] == 200
    assert await public.get("me") == (200, {"name": "Ada L.", "operator": False, "shards": ""})
    assert len((await public.get("rooms"))[1]["rooms"]) == 1
    assert (await public.get("rooms/evening"))[0] == 200
    assert len((await public.get("sessions"))[1]["sessions"]) == 1
    assert (await public.get("sessions/evening"))[1]["prompts"] is False
    assert (await public.get("search?q=Leica"))[1]["hits"]
    assert (await public.get("sessions/evening/replies"))[0] == 404
    assert (await public.get("sessions/evening/replies/5"))[0] == 404


async def test_managers_see_of_what_the_model_saw_what_they_may_read(public: Public) -> None:
    """To whom the history of all channels is open sees all of it. Who was not there sees the instructions and sizes:
    the other parts may quote what they have not heard. Who was here all the time reads the turns of here; a quote may
    be from a channel where they were not.
    """
    directory, manages = public.house.directory, frozenset({GUILD})
    await public.house.play(64)
    asked = await public.house.say("Roomtone, what is next?")
    await public.house.answer(asked, "The map.")
    reply = f"sessions/evening/replies/{asked.seq}"
    directory.access[2001] = replace(LOUNGE, prompts=manages)
    await public.come_back()
    assert (await public.get("sessions/evening"))[1]["prompts"] is True

    async def withheld() -> dict[str, bool]:
        seen = await shown(public, reply)
        return {part["kind"]: part["withheld"] for part in seen["calls"][-1]["parts"]}

    assert set((await withheld()).values()) == {False}
    assert (await shown(public, reply))["sources"]
    directory.access[2001] = replace(OUTSIDER, prompts=manages)
    public.house.clock.advance(31)
    parts = await withheld()
    assert parts.pop("system") is False
    assert set(parts.values()) == {True}
    assert (await shown(public, reply))["sources"] == []
    await public.house.attend("2001")
    assert not any(turn["gone"] for turn in (await shown(public, "sessions/evening"))["turns"])
    parts = await withheld()
    assert not parts["current"]
    assert all(is_hidden for kind, is_hidden in parts.items() if kind in {"recall", "participants", "continuity"})


async def test_who_sees_a_room_but_was_not_there_reads_none_of_its_words(public: Public) -> None:
    """They see that there is a room, and its figures."""
    public.house.directory.access[2001] = OUTSIDER
    await public.come_back()
    assert len((await shown(public, "rooms"))["rooms"]) == 1
    for path in ("rooms/evening", "sessions/evening"):
        found = await shown(public, path)
        assert found["turns"]
        assert all(turn["gone"] and not turn["parts"] for turn in found["turns"])
        assert not found["notes"]
        assert not found.get("summary")
        assert not found.get("memory", {}).get("summary")
    assert await public.get("search?q=Leica") == (200, {"hits": []})


async def test_who_loses_their_role_sees_nothing_soon_after(public: Public) -> None:
    """What somebody may see is asked again after half a minute, also for sessions and searches."""
    directory = public.house.directory
    directory.access[2001] = LOUNGE
    await public.come_back()
    assert (await public.get("rooms/evening"))[0] == 200
    asked = len(directory.asked)
    directory.access[2001] = Access({GUILD: frozenset({CHANNEL + 1})})
    assert (await public.get("rooms/evening"))[0] == 200
    assert len(directory.asked) == asked
    public.house.clock.advance(31)
    status, told = await public.get("rooms")
    assert (status, told["rooms"]) == (200, [])
    assert await public.get("search?q=Leica") == (200, {"hits": []})
    assert (await public.get("sessions"))[1]["sessions"] == []
    for path in ("rooms/evening", "sessions/evening", "sessions/evening/replies", "sessions/evening/replies/5"):
        assert (await public.get(path))[0] == 404, path


async def test_a_stranger_is_not_logged_in(public: Public) -> None:
    """Who may see nothing gets a sentence and no cookie."""
    status, refused = await public.come_back()
    assert status == 403
    assert "no server where you are allowed to see my rooms" in refused["error"]
    assert (await public.get("rooms"))[0] == 401


async def test_while_discord_does_not_say_what_somebody_may_see_that_is_told(public: Public) -> None:
    """Nobody is told that there is no room for them, or no room at all, because Discord has not answered."""
    directory = public.house.directory
    directory.access[2001] = Access(is_whole=False)
    status, refused = await public.come_back()
    assert status == 403
    assert "Discord has not told me" in refused["error"]
    directory.access[2001] = replace(LOUNGE, is_whole=False)
    public.house.clock.advance(31)
    assert (await public.come_back())[0] == 200
    assert len((await public.get("rooms"))[1]["rooms"]) == 1
    directory.access[2001] = Access(is_whole=False)
    public.house.clock.advance(31)
    for path in ("rooms", "rooms/evening", "sessions", "sessions/evening", "search?q=Leica"):
        status, told = await public.get(path)
        assert (status, "Discord has not told me" in str(told["error"])) == (503, True), path


async def test_a_room_of_a_server_about_which_discord_does_not_answer_is_not_told_as_over(public: Public) -> None:
    """Also to members of other servers, about which it has answered: an open page of theirs tries again."""
    elsewhere = {GUILD + 1: frozenset({CHANNEL + 1})}
    public.house.directory.access[2001] = Access(elsewhere, is_whole=False)
    assert (await public.come_back())[0] == 200
    for path in ("rooms/evening", "sessions/evening"):
        status, told = await public.get(path)
        assert (status, "Discord has not told me" in str(told["error"])) == (503, True), path
    public.house.directory.access[2001] = Access(elsewhere)
    public.house.clock.advance(31)
    for path in ("rooms/evening", "sessions/evening"):
        assert (await public.get(path))[0] == 404


async def test_without_a_client_secret_only_the_link_works(tmp_path: Path) -> None:
    """The page is told that there is no login with Discord, and beginning one is refused with a sentence."""
    async with open_house(tmp_path) as house, aiohttp.ClientSession() as http:
        headers = {"Origin": house.base}
        async with http.post(f"{house.base}/api/login/discord", json={}, headers=headers) as answer:
            assert answer.status == 403
            assert "You cannot log in with Discord here" in (await answer.json())["error"]


async def test_the_cookie_of_a_login_under_way_is_strict_and_goes_when_it_is_over(public: Public) -> None:
    """No script and no other site uses it, it ends by itself, and a browser that came back has it no more."""
    headers = {"Origin": public.house.base}
    async with public.http.post(f"{public.house.base}/api/login/discord", json={}, headers=headers) as answer:
        cookie = answer.headers["Set-Cookie"]
    assert all(each in cookie for each in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=600"))
    public.house.directory.access[2001] = LOUNGE
    for refused in (True, False):
        public.discord.scope = "guilds" if refused else "identify"
        assert (await public.come_back())[0] == (403 if refused else 200)
        assert not any("roomtone-login" in each.key for each in public.http.cookie_jar)


async def test_strangers_do_not_use_up_discords_patience(public: Public, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit a login is refused before Discord is asked; a minute later it works again."""
    monkeypatch.setattr("bot.web.login_routes.MAX_TRIES", 3)
    public.house.directory.access[2001] = LOUNGE
    for _ in range(3):
        assert (await public.post("/api/login/discord/back", {"code": "x", "state": "x"}))[0] == 403
    status, refused = await public.come_back()
    assert status == 429
    assert "Too many people" in refused["error"]
    assert public.discord.tokens == set()
    public.house.clock.advance(60)
    assert (await public.come_back())[0] == 200


async def test_all_pages_of_one_person_ask_discord_once(tmp_path: Path) -> None:
    """What somebody may see is asked of every server, so many open pages would keep the bot from everything else."""
    async with open_house(tmp_path) as house:
        directory, user = house.directory, DashboardUser("Ada L.", 2001)
        directory.access[2001] = LOUNGE
        directory.answers.clear()
        reading = [asyncio.create_task(house.service.rooms(user)) for _ in range(8)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in reading)
        directory.answers.set()
        assert [len(each["rooms"]) for each in await asyncio.gather(*reading)] == [1] * 8  # type: ignore[arg-type]
        assert directory.asked == [2001]
