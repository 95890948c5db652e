"""The dashboard over real HTTP: who is let in, what each address shows, and what it never shows."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from bot.dashboard.access import DashboardUser, Json, NotShownError
from bot.settings import WebSettings
from bot.shards import Shards
from bot.web import login_routes
from bot.web.dashboard_routes import MAX_FEEDS_OF_ONE_PERSON, MAX_READS, MAX_READS_OF_ONE_PERSON
from tests.bot.dashboard.browser import READ, Browser
from tests.bot.dashboard.house import ADA, BEN, DashboardHouse, open_house
from tests.bot.evening import GUILD
from tests.patience import PATIENCE_S, patiently

SECRET = "My password is tangerine."


@asynccontextmanager
async def browsing(house: DashboardHouse) -> AsyncIterator[Browser]:
    """Open a browser with cookies of its own."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        yield Browser(house, http)


def with_cookie(name: str, value: str) -> aiohttp.ClientSession:
    """Return a browser that sends this cookie alone."""
    return aiohttp.ClientSession(headers={"Cookie": f"{name}={value}"}, cookie_jar=aiohttp.DummyCookieJar())


@pytest_asyncio.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """A browser at the dashboard of an open room."""
    async with open_house(tmp_path) as house, browsing(house) as opened:
        yield opened


@pytest_asyncio.fixture
async def logged_in(browser: Browser) -> None:
    """Logs the browser in as the operator."""
    await browser.log_in()


async def test_the_login_link_lets_one_browser_in(browser: Browser) -> None:
    """The link is on this machine, works once, and sets a cookie that no script and no other site can use."""
    house = browser.house
    (link,) = house.links
    assert link.startswith(f"{house.base}/login#")
    token = link.partition("#")[2]
    async with browser.http.post(
        f"{house.base}/api/login", json={"token": token}, headers={"Origin": house.base}
    ) as answer:
        assert answer.status == 200
        cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/" in cookie
    assert await browser.get("me") == (200, {"name": "Operator", "operator": True, "shards": ""})
    async with browsing(house) as other:
        status, refused = await other.post("/api/login", {"token": token})
        assert status == 403
        assert "no longer works" in refused["error"]
    assert len(house.links) == 2
    assert house.links[1] != link


async def test_nobody_reads_anything_without_a_login(browser: Browser) -> None:
    """Every address with something in it answers 401; the page itself has nothing in it."""
    await browser.house.say(SECRET)
    for path in (*READ, "sessions/evening/replies/0", "events"):
        status, answer = await browser.get(path)
        assert (status, answer) == (401, {"discord": False}), path
    assert await browser.get("me") == (200, {"discord": False})
    async with browser.http.get(browser.house.base + "/") as page:
        assert page.status == 200
        assert "tangerine" not in await page.text()
    await browser.log_in()
    assert "tangerine" in await browser.everything()
    await browser.post("/api/logout")
    assert (await browser.get("rooms"))[0] == 401


@pytest.mark.usefixtures("logged_in")
async def test_the_operator_admits_and_refuses_servers(browser: Browser) -> None:
    """The page has each with what it has used. What is no id is one sentence."""
    assert (await browser.post("/api/servers", {"server": f"{10**16}", "served": False}))[0] == 200
    assert (await browser.post("/api/servers", {"server": f"{10**17}", "served": True}))[0] == 200
    _, found = await browser.get("servers")
    assert {each["id"]: (each["name"], each["served"]) for each in found["servers"]} == {
        str(GUILD): ("The Lantern Society", None),
        f"{10**16}": ("", False),
        f"{10**17}": ("", True),
    }
    status, refused = await browser.post("/api/servers", {"server": "Lounge", "served": True})
    assert (status, "developer mode" in refused["error"]) == (400, True)


async def test_nobody_else_sees_or_changes_servers(browser: Browser) -> None:
    """Not even who owns the bot and has logged in with Discord."""
    service = browser.house.service
    for work in (
        service.servers(DashboardUser("Ada", ADA.id)),
        service.decide(DashboardUser("Ada", ADA.id), "5", served=True),
    ):
        with pytest.raises(NotShownError):
            await work


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize(
    "path", ["/api/login", "/api/login/discord", "/api/login/discord/back", "/api/logout", "/api/servers"]
)
async def test_requests_of_other_pages_change_nothing(browser: Browser, path: str) -> None:
    """A page of another origin can neither log a browser in nor out, and a broken request is only refused."""
    for origin in ("https://evil.example", "null", ""):
        assert (await browser.post(path, {"token": "x"}, origin=origin))[0] == 403
    headers = {"Origin": browser.house.base}
    for body in (b"", b"[]", b"\xff", b"{", b"[" * 4_000):
        async with browser.http.post(browser.house.base + path, data=body, headers=headers) as answer:
            assert answer.status == 400
    for charset in ("secret", "rot13", "utf-16"):
        typed = {**headers, "Content-Type": f"application/json; charset={charset}"}
        async with browser.http.post(browser.house.base + path, data=b"{}x", headers=typed) as answer:
            assert answer.status == 400
    for coding, body in (("gzip", b"x"), ("deflate", b"x"), ("gzip", gzip.compress(b"{}"))):
        packed = {**headers, "Content-Encoding": coding}
        async with browser.http.post(browser.house.base + path, data=body, headers=packed) as answer:
            assert answer.status == 400
    async with browser.http.post(browser.house.base + path, data=b"x" * 10_000, headers=headers) as answer:
        assert answer.status == 413
    assert (await browser.get("rooms"))[0] == 200


async def test_a_page_at_another_address_is_told_which_one_works(browser: Browser) -> None:
    """Who forwards another port, or calls the machine by another name, reads what to do. The login link still works."""
    token = browser.house.links[-1].partition("#")[2]
    for language, sentence in (("en", "Open this page there."), ("de", "Öffne diese Seite dort.")):
        browser.http.headers["Accept-Language"] = language
        status, answer = await browser.post("/api/login", {"token": token}, origin="http://127.0.0.1:9000")
        assert status == 403
        assert f"http://localhost:{browser.house.web.port}" in answer["error"]
        assert sentence in answer["error"]
    await browser.log_in()


async def test_sessions_of_other_processes_are_in_the_history(tmp_path: Path) -> None:
    """With their names. Live rooms are this process's alone."""
    async with open_house(tmp_path, shards=Shards((0,), 2)) as house, browsing(house) as browser:
        await house.say("Hello.")
        await browser.log_in()
        await house.open_elsewhere()
        assert [room["session"] for room in (await browser.get("rooms"))[1]["rooms"]] == ["evening"]
        stored = (await browser.get("sessions"))[1]["sessions"]
    assert {each["session"]: each["room"] for each in stored} == {"evening": "Lounge", "elsewhere": "Deck"}


@pytest.mark.usefixtures("logged_in")
async def test_a_room_is_read_as_a_whole(browser: Browser) -> None:
    """One answer has the conversation, the people, the memory, the notes and the charts of a room."""
    house = browser.house
    await house.play(80)
    await house.note("A map of Lisbon")
    ((room,),) = ((await browser.get("rooms"))[1]["rooms"],)
    assert (room["room"], room["guild"], room["people"], room["turns"]) == ("Lounge", "The Lantern Society", 3, 80)
    found = (await browser.get(f"rooms/{room['session']}"))[1]
    assert [turn["seq"] for turn in found["turns"]] == list(range(80))
    assert found["memory"]["cursor"] == found["memory"]["segments"][-1]["end"] == house.timeline.cursor > 0
    assert found["memory"]["summary"] == (house.timeline.summary or "")
    assert len(found["memory"]["by_turn"]) == 80
    assert [note["what"] for note in found["notes"]] == ["A map of Lisbon"]
    assert found["replies"]
    assert found["packets"][-1]["received"] > 0
    assert found["costs"][-1]["calls"] == len(found["replies"])
    assert (await browser.get("rooms/another"))[0] == 404


@pytest.mark.usefixtures("logged_in")
async def test_history_is_read_in_pieces_and_searched(browser: Browser) -> None:
    """Sessions have their names and turns; a search finds the words with where they were said."""
    await browser.house.play(80)
    listed = (await browser.get("sessions"))[1]
    (only,) = listed["sessions"]
    assert (only["session"], only["room"], only["live"]) == ("evening", "Lounge", True)
    assert not listed["more"]
    assert (await browser.get(f"sessions?before={listed['sessions'][0]['started_at']}"))[1]["sessions"] == []
    later = (await browser.get("sessions/evening?first=40"))[1]
    assert only["topic"] == later["segments"][-1]["gist"] != ""
    assert [turn["seq"] for turn in later["turns"]] == list(range(40, later["total"]))
    assert (await browser.get("sessions/evening?first=99999"))[1]["turns"] == []
    assert (await browser.get("sessions/another"))[0] == 404
    hits = (await browser.get("search?q=who+has+a+Leica"))[1]["hits"]
    assert "Leica" in json.dumps(hits[0])
    assert hits[0]["where"]["room"] == "Lounge"
    assert (await browser.get("search?q="))[1]["hits"] == []


@pytest.mark.usefixtures("logged_in")
async def test_what_the_model_saw_is_shown_for_each_reply(browser: Browser) -> None:
    """Every reply of the session has its prompt, part by part."""
    await browser.house.play()
    replies = (await browser.get("sessions/evening/replies"))[1]["replies"]
    assert len(replies) == 2
    found = (await browser.get(f"sessions/evening/replies/{replies[-1]['turn']}"))[1]
    (call,) = found["calls"]
    assert call["parts"][0]["kind"] == "system"
    assert call["parts"][-1]["to"] == replies[-1]["turn"]
    assert sum(part["tokens"] for part in call["parts"]) == found["total_tokens"]
    for unknown in ("1", "99999"):
        assert (await browser.get(f"sessions/evening/replies/{unknown}"))[0] == 404


@pytest.mark.usefixtures("logged_in")
async def test_opted_out_words_are_shown_nowhere(browser: Browser) -> None:
    """After an opt-out no address has the person's words, nor what the bot said with them; others' words stay."""
    house = browser.house
    await house.say("The weather is fine.", BEN)
    asked = await house.say(f"{SECRET} Roomtone, repeat it.", ADA)
    await house.answer(asked, "The password is tangerine.")
    await house.note("A locker with the number tangerine", ADA)
    await house.play(50)
    asked = await house.say("Roomtone, what is the code?", BEN)
    await house.answer(asked, "tangerine, as Ada said.")
    assert (await browser.everything()).count("tangerine") > 8
    await house.opt_out(ADA)
    shown = await browser.everything()
    assert "tangerine" not in shown
    assert "The weather is fine." in shown


async def _events(answer: aiohttp.ClientResponse, most: int) -> list[str]:
    """Return the kinds of the next events of a stream."""
    kinds: list[str] = []
    while len(kinds) < most:
        line = (await answer.content.readline()).decode()
        kind = line.removeprefix("event: ").strip()
        # People and costs come with time alone.
        if line.startswith("event: ") and kind not in {"people", "cost"}:
            kinds.append(kind)
    return kinds


@pytest.mark.usefixtures("logged_in")
async def test_events_are_sent_as_they_happen(browser: Browser) -> None:
    """The stream is made of server-sent events; a browser that comes back with Last-Event-ID, or a page, is told to
    read anew what happened since.
    """
    house = browser.house
    async with browser.http.get(f"{house.base}/api/events") as answer:
        assert answer.content_type == "text/event-stream"
        assert await answer.content.readline() == b"retry: 2000\n"
        await house.say("One.")
        assert await _events(answer, 2) == ["heard", "turn"]
        mark = house.live.mark
    await house.say("Two.")
    known = {"Last-Event-ID": mark}
    for query, headers in (("", known), (f"?since={mark}", {}), ("?since=0", known)):
        async with browser.http.get(f"{house.base}/api/events{query}", headers=headers) as answer:
            assert await _events(answer, 1) == ["again"]


@pytest.mark.usefixtures("logged_in")
async def test_a_browser_that_logs_out_gets_no_more_events(browser: Browser) -> None:
    """What happens after the login ends the stream, and is not sent."""
    async with browser.http.get(f"{browser.house.base}/api/events") as answer:
        await answer.content.readline()
        await browser.post("/api/logout")
        await browser.house.say(SECRET)
        rest = (await patiently(answer.content.read())).decode()
    assert "tangerine" not in rest


@pytest.mark.usefixtures("logged_in")
async def test_streams_of_one_person_are_bounded(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many open pages of one person are refused with a sentence, however many browsers they use, and others have
    their own. A closed one makes room.
    """
    url = f"{browser.house.base}/api/events"
    opened = [await browser.http.get(url) for _ in range(MAX_FEEDS_OF_ONE_PERSON - 1)]
    async with browsing(browser.house) as second:
        await second.log_in()
        async with second.http.get(url) as last:
            assert last.status == 200
            for page in (browser, second):
                async with page.http.get(url) as refused:
                    assert refused.status == 429
                    assert "Too many pages" in (await refused.json())["error"]
            monkeypatch.setattr(login_routes, "OPERATOR", DashboardUser("Ben", BEN.id))
            async with browsing(browser.house) as bens:
                await bens.log_in()
                async with bens.http.get(url) as other:
                    assert other.status == 200
    opened.pop().close()
    async with asyncio.timeout(PATIENCE_S):
        while True:
            async with browser.http.get(url) as answer:
                if answer.status == 200:
                    break
            await asyncio.sleep(0)
    for each in opened:
        each.close()


@pytest.mark.usefixtures("logged_in")
async def test_reads_of_one_person_are_bounded(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many reads at once are refused with a sentence."""
    house, asked, answer = browser.house, 0, asyncio.Event()
    rooms = house.service.rooms

    async def slow(user: DashboardUser) -> Json:
        nonlocal asked
        asked += 1
        await answer.wait()
        return await rooms(user)

    monkeypatch.setattr(house.service, "rooms", slow)
    reading = {asyncio.create_task(browser.get("rooms")) for _ in range(MAX_READS_OF_ONE_PERSON + 1)}
    (done,), waiting = await patiently(asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED))
    status, refused = await done
    assert status == 429
    assert "too much at a time" in refused["error"]
    assert asked == MAX_READS
    answer.set()
    assert {status for status, _ in await asyncio.gather(*waiting)} == {200}


@pytest.mark.usefixtures("logged_in")
async def test_a_browser_is_logged_in_to_several_bots_of_one_machine(browser: Browser, tmp_path: Path) -> None:
    """Browsers share cookies among the ports of a host: a rehearsal's dashboard beside the bot's own, for example."""
    (tmp_path / "second").mkdir()
    async with open_house(tmp_path / "second") as house:
        second = Browser(house, browser.http)
        await second.log_in()
        assert [(await each.get("rooms"))[0] for each in (browser, second)] == [200, 200]
        assert (await second.post("/api/logout"))[0] == 200
        assert [(await each.get("rooms"))[0] for each in (browser, second)] == [200, 401]


async def test_a_public_address_has_secure_cookies_and_its_own_link(tmp_path: Path) -> None:
    """Behind a proxy the link has the public address, and the cookie is sent over https only."""
    settings = WebSettings(port=0, public_url="https://watch.example.org")
    async with open_house(tmp_path, settings=settings) as house, browsing(house) as browser:
        assert house.links[0].startswith("https://watch.example.org/login#")
        token = house.links[0].partition("#")[2]
        assert (await browser.post("/api/login", {"token": token}))[0] == 403
        headers = {"Origin": "https://watch.example.org"}
        async with browser.http.post(f"{house.base}/api/login", json={"token": token}, headers=headers) as answer:
            assert answer.status == 200
            cookie = answer.headers["Set-Cookie"]
        # A browser takes a cookie with this prefix from this host alone, for every path and over https.
        assert cookie.startswith("__Host-roomtone-dashboard=")
        assert "Secure" in cookie
        assert "Path=/;" in f"{cookie};"
        assert "Domain" not in cookie
        name, _, value = cookie.partition(";")[0].partition("=")
        for sent, status in ((name, 200), ("roomtone-dashboard", 401)):
            async with with_cookie(sent, value) as http, http.get(f"{house.base}/api/rooms") as read:
                assert read.status == status
        async with (
            with_cookie(name, value) as http,
            http.post(f"{house.base}/api/logout", json={}, headers=headers) as answer,
        ):
            dropped = answer.headers["Set-Cookie"]
        assert dropped.startswith("__Host-roomtone-dashboard=")
        assert all(each in dropped for each in ("Max-Age=0", "Secure", "Path=/"))
