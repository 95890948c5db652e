"""The dashboard for people with a keyboard or a screen reader, or who need contrast: axe-core's rules, keys alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.bot.dashboard.house import open_house
from tests.browser.chromium import browser
from tests.browser.dashboard_pictures import live_through, views
from tests.browser.evening import LAPTOP, PHONE
from tests.node.packages import installed_packages
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.asyncio(loop_scope="module")

COMPLETE = "body:not([data-view=opening])"
# The scheme, the size and the rules: between two looks only colours and room differ.
LOOKS: Sequence[tuple[Literal["light", "dark"], tuple[int, int], str]] = (
    ("dark", PHONE, "{resultTypes: ['violations']}"),
    ("light", LAPTOP, "{resultTypes: ['violations'], runOnly: {type: 'rule', values: ['color-contrast']}}"),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    """One browser for all tests."""
    async with browser() as started:
        yield started


@asynccontextmanager
async def dashboard(chromium: Browser, folder: Path) -> AsyncIterator[Page]:
    """Open the dashboard of an evening."""
    async with open_house(folder) as house, await chromium.new_context(locale="en-GB") as context:
        await live_through(house)
        page = await context.new_page()
        page.set_default_timeout(1000 * PATIENCE_S)
        await page.goto(house.links[0])
        await page.wait_for_selector("body[data-room]")
        yield page


async def test_every_view_keeps_the_rules(chromium: Browser, tmp_path: Path) -> None:
    """axe-core finds nothing on a phone in dark: roles, names, structure, contrast; nor contrast in light."""
    axe = (installed_packages() / "axe-core" / "axe.min.js").read_text("utf-8")
    async with dashboard(chromium, tmp_path) as page:
        base = page.url
        found: list[str] = []
        for name, address in views():
            await page.goto("about:blank")
            await page.goto(f"{base}{address}")
            await page.wait_for_selector(COMPLETE)
            await page.evaluate(axe)
            for scheme, (width, height), rules in LOOKS:
                await page.emulate_media(color_scheme=scheme)
                await page.set_viewport_size({"width": width, "height": height})
                checked = await page.evaluate(f"axe.run({rules})")
                found += (f"{name}, {scheme}, {rule['id']}: {rule['nodes'][0]}" for rule in checked["violations"])
                assert checked["passes"], name
        assert found == []


class Keys:
    """A page that is used with the keyboard alone."""

    def __init__(self, page: Page) -> None:
        self.page = page

    async def to(self, text: str) -> None:
        """Press Tab until what has the focus has this text or label; it shows that it has the focus."""
        for _ in range(60):
            await self.page.keyboard.press("Tab")
            name, outline = await self.page.evaluate(_FOCUSED)
            assert outline > 0, name
            if text in name:
                return
        raise AssertionError(f"the keyboard does not reach {text!r}")

    async def press(self, key: str, view: str) -> None:
        """Press a key and wait for what is shown then."""
        await self.page.keyboard.press(key)
        await self.page.wait_for_selector(view)


_FOCUSED = """() => {
  const focused = document.activeElement;
  if (focused === document.body) return ["the window", 1];
  const label = focused.labels?.[0]?.innerText ?? focused.getAttribute("aria-label") ?? "";
  return [`${label} ${focused.innerText ?? ""}`, parseFloat(getComputedStyle(focused).outlineWidth)];
}"""


async def test_the_keyboard_alone_leads_everywhere(chromium: Browser, tmp_path: Path) -> None:
    """Past the navigation, to the history, a search, a turn of a session, what the model saw, and out."""
    async with dashboard(chromium, tmp_path) as page:
        keys = Keys(page)
        await keys.to("Skip to the content")
        await page.keyboard.press("Enter")
        await keys.to("Let a screen reader speak new lines")
        await keys.to("History")
        await keys.press("Enter", ".sessions")
        await keys.to("Search what was said")
        await page.keyboard.type("Leica")
        await keys.press("Enter", ".hits")
        await keys.to("Lounge")
        await keys.press("Enter", ".pointed")
        await keys.to("Begin with the first")
        await keys.press("Enter", "#reply-next")
        await keys.to("Next")
        for number in (2, 3):
            await page.keyboard.press("Enter")
            await page.get_by_text(f"{number} of 7").wait_for()
            # The reply's heading has the focus, so the steps follow at once.
            for _ in ("Previous", "Next"):
                await page.keyboard.press("Tab")
            assert await page.evaluate("document.activeElement.id") == "reply-next"
        await keys.to("Log out")
        await keys.press("Enter", "body[data-view=login]")
