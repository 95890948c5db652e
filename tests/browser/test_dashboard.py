"""The dashboard in a real browser: login, a room as it lives, history, and what the model saw; hostile words included.

One browser serves all tests of this file. `tests.browser.dashboard_pictures` takes the pictures for people.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route
from pydantic import SecretStr

from bot import events
from bot.dashboard.access import Access
from bot.dashboard.discord_login import DiscordLogin, LoginStart
from bot.health import STARTING
from bot.texts import text
from bot.texts.text import Catalogue, Text
from bot.web import page_texts
from bot.web.dashboard_routes import MAX_FEEDS_OF_ONE_PERSON
from bot.web.page_texts import page_file, texts_module, texts_of_script
from tests.bot.dashboard.discord_oauth import SECRET, discord_oauth
from tests.bot.dashboard.house import ADA, BEN, CHLOE, DashboardHouse, open_house
from tests.bot.evening import CHANNEL, GUILD
from tests.browser.chromium import browser
from tests.browser.dashboard_pictures import live_through
from tests.browser.evening import LAPTOP, PHONE
from tests.fakes.clock import FakeClock
from tests.patience import PATIENCE_S, settle

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Another site than ours, as Discord's page is.
DISCORD_HOST = "discord.example"
HOSTILE = (
    "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script> "
    "${1} {{1}} \u202e javascript:"
)


# Pauses of the page are short, so that a test need not wait for them.
HURRY = "const slow = setTimeout; window.setTimeout = (run, ms, ...rest) => slow(run, ms / 20, ...rest);"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    """One browser for all tests."""
    async with browser(f"--host-resolver-rules=MAP {DISCORD_HOST} 127.0.0.1") as started:
        yield started


class Tab:
    """A page of the dashboard. `complaints`: errors in the browser's console."""

    def __init__(self, house: DashboardHouse, page: Page) -> None:
        self.house = house
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(1000 * PATIENCE_S)
        page.on("console", lambda message: self._complain(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _complain(self, kind: str, text: str) -> None:
        # The end of a stream is an error to the console, but an ordinary event to the page.
        if kind == "error" and "ERR_" not in text:
            self.complaints.append(text)

    async def go(self, address: str) -> str:
        """Follow a link within the page and return what is shown."""
        await self.page.evaluate(
            "(address) => { document.body.dataset.view = 'opening'; location.hash = address }", address
        )
        return await self.shown()

    async def shown(self) -> str:
        """Wait until a view is complete and return its text."""
        await self.page.wait_for_selector("body:not([data-view=opening])")
        return await self.page.inner_text("main")

    async def says(self, text: str) -> None:
        """Wait until the page has this text."""
        await self.until(lambda: self._has(text))

    async def until_gone(self, text: str) -> None:
        """Wait until the page does not have this text."""
        await self.until(lambda: self._has(text, there=False))

    async def _has(self, text: str, *, there: bool = True) -> bool:
        return (text in await self.page.inner_text("main")) is there

    @staticmethod
    async def until(met: Callable[[], Awaitable[bool]]) -> None:
        """Wait until the condition is true. The page's Content Security Policy forbids what Playwright's
        `wait_for_function` needs.
        """
        async with asyncio.timeout(PATIENCE_S):
            while not await met():  # noqa: ASYNC110 - a page does not say when it is done
                await asyncio.sleep(0.05)


@asynccontextmanager
async def dashboard(
    chromium: Browser,
    folder: Path,
    *,
    log_in: bool = True,
    discord_login: DiscordLogin | None = None,
    language: str = "en-GB",
    shown: bool = True,
    script: str = "",
) -> AsyncIterator[Tab]:
    """Open a house and a page of its dashboard. `shown`: its room is open. `script`: runs before those of each page."""
    async with open_house(folder, discord_login=discord_login, shown=shown) as house:
        size = {"width": LAPTOP[0], "height": LAPTOP[1]}
        async with await chromium.new_context(viewport=size, locale=language) as context:  # type: ignore[arg-type]
            if script:
                await context.add_init_script(script)
            tab = Tab(house, await context.new_page())
            await tab.page.goto(house.links[0] if log_in else house.base)
            await tab.shown()
            yield tab
            assert tab.complaints == []
            assert await tab.page.title() != "broken"


async def test_the_printed_link_logs_in_once(chromium: Browser, tmp_path: Path) -> None:
    """Without a login the page says where the link is. The link's secret leaves the address; it works once."""
    async with dashboard(chromium, tmp_path, log_in=False) as tab:
        assert "Open the bot’s login link" in (await tab.shown()).replace("'", "’")
        await tab.page.goto(tab.house.links[0])
        await tab.page.wait_for_selector("body[data-room]")
        assert tab.page.url == tab.house.base + "/"
        assert "roomtone" not in await tab.page.evaluate("document.cookie")
        await tab.page.click("#logout")
        await tab.page.wait_for_selector("body[data-view=login]")
        await tab.page.goto(tab.house.links[0])
        await tab.says("This login link no longer works")
        # The browser's console has the refusal too.
        assert len(tab.complaints) == 1
        tab.complaints.clear()


class ElsewhereLogin(DiscordLogin):
    """A login whose page is on another site than the bot's pages, as Discord's is."""

    def start(self, client_id: int, redirect_uri: str) -> LoginStart:
        begun = super().start(client_id, redirect_uri)
        return replace(begun, url=begun.url.replace("127.0.0.1", DISCORD_HOST, 1))


async def test_people_log_in_with_discord(chromium: Browser, tmp_path: Path) -> None:
    """From the page to Discord, which is another site, and back. A stranger is told why they see nothing."""
    async with discord_oauth() as discord:
        login = ElsewhereLogin(SecretStr(SECRET), api_base=discord.api_base, clock=FakeClock())
        async with dashboard(chromium, tmp_path, log_in=False, discord_login=login) as tab:
            await tab.page.click("#discord")
            await tab.says("no server where you are allowed to see my rooms")
            assert len(tab.complaints) == 1
            tab.complaints.clear()
            tab.house.directory.access[2001] = Access({GUILD: frozenset({CHANNEL})})
            tab.house.clock.advance(60)
            await tab.page.click("#discord")
            await tab.page.wait_for_selector("body[data-room]")
            assert tab.page.url == tab.house.base + "/"
            assert await tab.page.inner_text("#viewer-name") == "Ada L."
            assert len(discord.asked) == 2
            await tab.page.click("#logout")
            discord.refuses = True
            await tab.page.click("#discord")
            await tab.says("Discord did not log you in")


@pytest_asyncio.fixture(loop_scope="module")
async def tab(chromium: Browser, tmp_path: Path) -> AsyncIterator[Tab]:
    """The dashboard of a browser that is logged in."""
    async with dashboard(chromium, tmp_path) as opened:
        yield opened


async def test_a_room_is_shown_as_it_lives(tab: Tab) -> None:
    """Words appear when they are heard and become turns. People, notes, charts and the cursor follow."""
    house = tab.house
    assert "Nobody has said anything yet." in await tab.shown()
    await house.say("Shall we visit Lisbon in April?")
    await tab.says("Shall we visit Lisbon in April?")
    assert await tab.page.locator(".turn").count() == 1
    await house.play(70)
    await tab.says("Last summary at")
    # The newest line is in view.
    end = "(log) => log.scrollHeight - log.scrollTop - log.clientHeight"
    assert await tab.page.locator("[role=log]").evaluate(end) < 60
    # It stays in view when somebody turns their phone.
    for size in (PHONE, LAPTOP):
        await tab.page.set_viewport_size({"width": size[0], "height": size[1]})
        await tab.until(lambda: tab.page.locator("[role=log]").evaluate(f"(log) => ({end})(log) < 60"))
    cursor = "document.querySelector('.cursor').style.transform"
    await tab.until(lambda: tab.page.evaluate(f"{cursor} !== 'translateX(0px)'"))
    assert await tab.page.locator(".fold").count() >= 1
    # What was said after the first fold comes after it.
    await tab.until(lambda: tab.page.locator("rect.stage").evaluate_all("(stages) => stages.length > 4"))
    await house.note("Round 2 of 3", ADA)
    await tab.says("Round 2 of 3")
    house.channel.people.remove(ADA)
    await house.look()
    await tab.page.locator(".people", has_text="Ben").wait_for()
    assert "Ada" not in await tab.page.inner_text(".people")


async def test_unfinished_words_are_replaced_until_they_are_a_turn(tab: Tab) -> None:
    """The latest words of each speaker stand in one line, which goes when the speech is heard whole or dropped. They
    can be hidden, and hostile ones are shown as they are.
    """
    house, interims = tab.house, tab.page.locator(".turn.interim")
    house.speak_on("I think")
    await tab.says("I think")
    house.speak_on(HOSTILE, BEN)
    house.speak_on("I think that we")
    await tab.says("I think that we")
    assert await interims.count() == 2
    assert await tab.page.locator("main img, main script").count() == 0
    await tab.page.uncheck("#unfinished")
    assert await interims.locator("visible=true").count() == 0
    await tab.page.check("#unfinished")
    await house.say("I think that we leave at nine.")
    house.drop(BEN)
    await tab.says("leave at nine")
    await tab.until(lambda: interims.evaluate_all("(items) => items.length === 0"))
    assert await tab.page.locator(".turn").count() == 1
    house.speak_on("My password is tangerine.")
    await tab.says("tangerine")
    await house.opt_out(ADA)
    await tab.until_gone("tangerine")


async def test_what_people_say_is_never_markup(tab: Tab) -> None:
    """Hostile words, names and notes are shown as they are, in every view."""
    house = tab.house
    asked = await house.say(HOSTILE, BEN)
    await house.answer(asked, HOSTILE)
    await house.note(HOSTILE)
    await tab.page.locator(".turn.assistant").wait_for()
    addresses = ("#/live", "#/history", "#/history/evening", "#/history/evening/reply/0", "#/search/script")
    views = [await tab.go(address) for address in addresses]
    assert sum("<script>" in view for view in views) == 4
    assert await tab.page.locator("main img, main script").count() == 0
    for address in (
        "#/history/%3Cimg%20src=x%3E",
        "#/search/%3Cb%3E",
        "#/room/../../x",
        "#/%",
        "#/history/evening/turn/x",
    ):
        await tab.go(address)
        assert await tab.page.locator("main img, main b:not(.who):not(.found *)").count() < 9
    # Sessions and rooms that do not exist are errors to the console.
    tab.complaints = [text for text in tab.complaints if "404" not in text]


async def test_what_happens_before_the_events_come_is_shown(tab: Tab) -> None:
    """A turn that is recorded after the page was read, and before its stream is open, and in between when the page is
    read anew.
    """
    house = tab.house
    await tab.go("#/history")
    late = iter(("While it opens.", "While it is read anew."))

    async def open_late(route: Route) -> None:
        if text := next(late, ""):
            await house.say(text)
        await route.continue_()

    await tab.page.route("**/api/events*", open_late)
    await tab.go("#/live")
    await tab.says("While it opens.")
    await house.opt_out(CHLOE)
    await tab.says("While it is read anew.")
    await house.say("After.")
    await tab.says("After.")
    assert await tab.page.locator(".turn .seq").all_inner_texts() == ["0", "1", "2"]


async def test_a_view_that_is_read_shows_that(tab: Tab) -> None:
    """Until the bot has answered, people see that the view is read, and a screen reader knows it."""
    await tab.page.wait_for_selector("body[data-room]")
    assert await tab.page.get_attribute("main", "aria-busy") == "false"
    assert not await tab.page.is_visible("#reading")
    answers = asyncio.Event()

    async def answer_late(route: Route) -> None:
        await answers.wait()
        await route.continue_()

    await tab.page.route("**/api/sessions", answer_late)
    await tab.page.evaluate("location.hash = '#/history'")
    await tab.page.wait_for_selector("main[aria-busy=true]")
    await tab.page.wait_for_selector("#reading.shown")
    answers.set()
    await tab.page.wait_for_selector("main[aria-busy=false]")
    assert await tab.page.locator("#reading.shown").count() == 0


async def test_a_page_that_lost_its_connection_catches_up(chromium: Browser, tmp_path: Path) -> None:
    """When the stream breaks, the browser connects again by itself. It gives up when a proxy cannot reach the bot; the
    page says that and tries again. Nothing is missed.
    """
    async with dashboard(chromium, tmp_path, script=HURRY) as tab:
        routes, reached = tab.house.web.dashboard, True
        assert routes is not None
        await tab.house.say("Before.")
        await tab.says("Before.")
        routes.close()
        await settle(lambda: not routes.feeds)
        await tab.house.say("While it was broken.")
        await tab.says("While it was broken.")

        async def be_proxy(route: Route) -> None:
            await (route.continue_() if reached else route.fulfill(status=502, body="<h1>Bad Gateway</h1>"))

        async def is_announced() -> bool:
            # The page may have been opening its stream at the last end of all streams.
            routes.close()
            return "This page cannot reach the bot." in await tab.page.inner_text("#banner")

        await tab.page.route("**/api/*", be_proxy)
        await tab.page.route("**/api/rooms/*", be_proxy)
        # The page may have read what it missed before its new stream is there to be broken.
        await settle(lambda: bool(routes.feeds))
        reached = False
        await tab.until(is_announced)
        await tab.house.say("While it was away.")
        reached = True
        await tab.says("While it was away.")
        await tab.page.wait_for_selector("#banner:empty", state="attached")
        await tab.house.say("After.")
        await tab.says("After.")
        assert await tab.page.locator(".turn").count() == 4
        # The console has the proxy's errors too.
        tab.complaints.clear()


async def test_a_room_that_is_not_there_is_one_sentence(chromium: Browser, tmp_path: Path) -> None:
    """A link to a room that is over, or that the viewer may not see, shows no empty room. If it begins, it is shown."""
    async with dashboard(chromium, tmp_path, shown=False) as tab:
        house = tab.house
        shown = await tab.go("#/room/evening")
        assert await tab.page.locator("h1").all_inner_texts() == ["Not found"]
        assert "This room does not exist" in shown
        assert await tab.page.locator("main section:visible").count() == 0
        guild = await house.participation.of_guild(GUILD)
        with house.live.show(house.evening.session_id, house.channel, house.timeline, guild) as house.observe:
            await tab.until(lambda: _heading_is(tab, "Lounge"))
            assert "Not found" not in await tab.shown()
            assert await tab.page.locator("main section:visible").count() > 5
        # The browser's console has the refusal too.
        tab.complaints.clear()


async def _heading_is(tab: Tab, text: str) -> bool:
    return await tab.page.locator("h1").all_inner_texts() == [text]


async def test_views_that_are_left_quickly_leave_nothing_behind(tab: Tab) -> None:
    """A view that is still being read never draws over the next one, and its stream ends at once."""
    await tab.house.play(10)
    hurry = "(addresses) => { for (const each of addresses) location.hash = each }"
    for _ in range(MAX_FEEDS_OF_ONE_PERSON + 2):
        await tab.page.evaluate(hurry, ["#/live", "#/history/evening", "#/live", "#/history"])
        await tab.page.wait_for_selector(".sessions")
        await tab.go("#/live")
        await tab.page.wait_for_selector("body[data-room]")
    assert await tab.page.locator("h1").count() == 1
    assert await tab.page.locator("#banner").is_hidden()
    await tab.house.say("Still told.")
    await tab.says("Still told.")


async def test_the_operator_admits_and_refuses_servers(tab: Tab) -> None:
    """Another one by its id, and each of the list by a button. What is no id is told."""
    assert "The Lantern Society" in await tab.go("#/servers")
    for typed, told in (("Lounge", "not the id of a server"), (str(10**17), "The bot now works")):
        await tab.page.fill("#server", typed)
        await tab.page.keyboard.press("Enter")
        await tab.says(told)
    await tab.page.get_by_role("listitem").filter(has_text=str(10**17)).get_by_role("button", name="Refuse").click()
    await tab.says("refused")
    tab.complaints.clear()


async def test_history_search_and_what_the_model_saw(tab: Tab) -> None:
    """From the list to a session, through a search to a turn, and step by step through the replies."""
    await tab.house.play(80)
    assert "Lounge · The Lantern Society" in await tab.go("#/history")
    await tab.page.fill("#query", "who has a Leica")
    await tab.page.keyboard.press("Enter")
    await tab.says("best first")
    assert await tab.page.locator("mark", has_text="Leica").count() >= 1
    await tab.page.click(".hits a >> nth=0")
    await tab.page.wait_for_selector(".pointed")
    assert "Leica" in await tab.page.inner_text(".pointed")
    await tab.page.click("text=Begin with the first")
    await tab.says("1 of 3")
    assert await tab.page.locator(".parts li").count() > 3
    await tab.page.click("#reply-next")
    await tab.says("2 of 3")
    await tab.page.keyboard.press("Tab")
    assert await tab.page.evaluate("document.activeElement !== document.body")


# What a page shows that has words and is neither marked (as all translations of the test's language are) nor somebody's
# own words or a name, which have `lang=""`.
UNTRANSLATED = """() => {
  const found = [];
  const words = (text) => /[A-Za-z]{2}/.test(text.replace(/⟦[^⟧]*⟧/g, "").replace(/\\b(ms|min)\\b/g, ""));
  const ours = (element) => !element.closest('[lang=""], [translate=no], noscript, script, style, title, time, option');
  const walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const { textContent, parentElement } = walk.currentNode;
    if (ours(parentElement) && words(textContent)) found.push(textContent.trim());
  }
  for (const each of document.querySelectorAll("[aria-label], [title], [placeholder], [alt]")) {
    for (const name of ["aria-label", "title", "placeholder", "alt"]) {
      if (ours(each) && words(each.getAttribute(name) || "")) found.push(`${name}: ${each.getAttribute(name)}`);
    }
  }
  return found;
}"""


class MarkedTexts(dict[str, str]):
    """A language in which every sentence is itself between brackets, also inside each other only once."""

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        """Return the marked sentence: each piece between placeholders, so that values in it stay unmarked."""
        pieces = re.split(r"(\{[^}]*\})", key)
        return "".join(
            piece if number % 2 or not piece.strip() else f"⟦{piece}⟧" for number, piece in enumerate(pieces)
        )

    def __contains__(self, key: object) -> bool:
        return True

    def __getitem__(self, key: str) -> str:
        return str(self.get(key))

    def __iter__(self) -> Iterator[str]:
        scripts = (file for file in (resources.files("bot.web") / "static").iterdir() if file.name.endswith(".js"))
        return iter({text for script in scripts for text in texts_of_script(script.read_text("utf-8"))})


@pytest.fixture
def marked_language(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every sentence of the catalogue be marked in German."""
    marked = Catalogue("Deutsch", MarkedTexts())
    page_file.cache_clear()
    texts_module.cache_clear()
    for module in (text, page_texts):
        monkeypatch.setattr(module, "catalogue", lambda _: marked)
    yield
    page_file.cache_clear()
    texts_module.cache_clear()


@pytest.mark.usefixtures("marked_language")
async def test_no_text_of_the_dashboard_gets_past_the_catalogue(chromium: Browser, tmp_path: Path) -> None:
    """In every view, all that is neither a translation nor somebody's words is found, by its missing mark."""
    async with dashboard(chromium, tmp_path, log_in=False, language="de") as tab:
        assert await tab.page.evaluate(UNTRANSLATED) == []
        house = tab.house
        await tab.page.goto(house.links[0])
        await tab.page.wait_for_selector("body[data-room]")
        assert await tab.page.evaluate(UNTRANSLATED) == []
        await live_through(house)
        house.observe(events.SpeechDropped("u", ADA.id, "too_short", "", 0.0, 1.0, 1.0))
        house.observe(events.Problem("store", Text("I am here already."), 1.0))
        house.observe(events.FaultsFound((STARTING,), 1.0))
        await tab.page.wait_for_selector(".problems + .problems li")
        assert await tab.page.evaluate(UNTRANSLATED) == []
        await house.participation.set_opt_out(GUILD, CHLOE.id, out=True)
        views = ("#/live", "#/history", "#/history/evening", "#/search/Lisbon", "#/search/qqqq", "#/history/nothing")
        for address in (*views, "#/history/evening/reply/58", "#/room/none", "#/servers"):
            await tab.go(address)
            assert await tab.page.evaluate(UNTRANSLATED) == [], address
        # The page that shares a screen has all its states in it.
        await tab.page.goto(f"{house.base}/share#used")
        await tab.page.wait_for_selector("body[data-state=denied]")
        assert set(await tab.page.evaluate(UNTRANSLATED)) == {"This link has been used already."}
        tab.complaints.clear()


async def test_german_is_shown_where_it_is_asked_for(chromium: Browser, tmp_path: Path) -> None:
    """The browser's language counts, and the select changes it for good, with a cookie that has nothing but it."""
    async with dashboard(chromium, tmp_path, language="de-AT") as tab:
        assert await tab.page.evaluate("document.documentElement.lang") == "de"
        assert "Noch hat niemand etwas gesagt." in await tab.shown()
        await tab.page.select_option("#language", "en")
        await tab.says("Nobody has said anything yet.")
        assert await tab.page.evaluate("document.documentElement.lang") == "en"
        assert await tab.page.evaluate("document.cookie") == "roomtone-language=en"
        await tab.page.reload()
        await tab.says("Nobody has said anything yet.")
