"""Takes the pictures of the dashboard for the documentation: `python -m tests.browser.dashboard_pictures docs/images`.

The people, the talk (the bundled evening) and the figures are made up; memory, store, log, pages and browser are real.
With `--all` every view is taken, in light and dark, for laptop and phone, to be looked at; `--german`: in German.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.async_api import Page

from tests.bot.dashboard.house import ADA, BEN, CHLOE, DashboardHouse, open_house
from tests.browser.chromium import browser
from tests.browser.evening import LAPTOP, PHONE
from tests.fakes.clock import FakeClock

# For people who read the README: high enough for the first cards.
PICTURE = (1280, 690)
# The movement of the cursor.
SETTLED_MS = 1_200
# The questions of the evening, and what the bot answers.
ASKED = (
    (BEN, "Roomtone, which week did we choose for Lisbon?", "The third week of April, right after Ada's exam."),
    (CHLOE, "Roomtone, who wanted to book the train tickets?", "Ben did. He promised to book them before Sunday."),
    (ADA, "Roomtone, what camera does Chloe bring?", "Her old Leica, the one that uncle Walter gave her."),
    (BEN, "Roomtone, who lives in Lisbon?", "Marta, Ada's sister. She works there now."),
    (CHLOE, "Roomtone, what did my boss say?", "Your boss has already said yes to the third week of April."),
)


async def live_through(house: DashboardHouse) -> None:
    """Let an evening pass with questions, folds and a shared screen."""
    await house.play(58)
    for number, (who, question, answer) in enumerate(ASKED):
        asked = await house.say(question, who)
        await house.answer(asked, answer)
        for line in range(4):
            await house.say(_TALK[4 * number + line], (ADA, BEN, CHLOE)[(number + line) % 3])
            house.measure(180 + 40 * ((number + line) % 3), recognise=line % 2)
    await house.fold()
    await house.note("Lisboa · 3 hotels near Santa Apolónia", ADA)
    await house.note("Train 09:12, 11:40, 14:05 · from 49 €", ADA)
    await house.look()


_TALK = (
    "Then I will look for a room near the station.",
    "The last one had a view of a wall.",
    "A very historical wall.",
    "You paid for breakfast with it, too.",
    "I can bring the small suitcase this time.",
    "You always say so before the shoes.",
    "Two pairs are reasonable.",
    "Four are a shop.",
    "Can somebody feed the cat that week?",
    "My neighbour will, she likes him more than me.",
    "Everybody likes him more than you.",
    "He is very photogenic.",
    "Let us look at the trains together.",
    "I am sharing my screen now.",
    "The one at nine is too early for holidays.",
    "It leaves us the whole afternoon there.",
    "Fine, but I sleep on your shoulder.",
    "As always.",
    "Then it is decided.",
    "I am going to bed before somebody finds a museum.",
)


async def pictures(folder: Path, *, everything: bool, language: str = "en-GB") -> None:
    """Save the pictures in `folder`."""
    with TemporaryDirectory(prefix="roomtone-pictures-") as data:
        # The log has the times of the real clock.
        clock = FakeClock(time.time() - 500)
        async with open_house(Path(data), clock=clock) as house, browser("--hide-scrollbars") as chromium:
            await live_through(house)
            page = await (await chromium.new_context(locale=language)).new_page()
            await page.goto(house.links[0])
            await page.wait_for_selector("body[data-room]")
            if everything:
                for name, address in views():
                    await _take_all(page, house.base, address, folder / name)
                return
            await _take(page, house.base, "#/live", folder / "dashboard-live.png", PICTURE, "light")
            seen = f"#/history/evening/reply/{_asked_last(house)}"
            await _take(page, house.base, seen, folder / "dashboard-seen.png", PICTURE, "dark")


def _asked_last(house: DashboardHouse) -> int:
    """Return the turn of the last question."""
    return max(turn.answers for turn in house.timeline.turns if turn.answers is not None)


def views() -> tuple[tuple[str, str], ...]:
    return (
        ("live", "#/live"),
        ("history", "#/history"),
        ("session", "#/history/evening"),
        ("reply", "#/history/evening/reply/5"),
        ("search", "#/search/Lisbon train"),
        ("servers", "#/servers"),
    )


async def _take_all(page: Page, base: str, address: str, path: Path) -> None:
    for scheme in ("light", "dark"):
        for screen, size in (("laptop", LAPTOP), ("phone", PHONE)):
            await _take(
                page, base, address, path.with_name(f"{path.name}-{scheme}-{screen}.png"), size, scheme, whole=True
            )


async def _take(
    page: Page, base: str, address: str, path: Path, size: tuple[int, int], scheme: str, *, whole: bool = False
) -> None:
    await page.set_viewport_size({"width": size[0], "height": size[1]})
    await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    await page.goto("about:blank")
    await page.goto(f"{base}/{address}")
    await page.wait_for_selector("body:not([data-view=opening])")
    await page.wait_for_timeout(SETTLED_MS)
    await page.screenshot(path=path, full_page=whole)
    # The browser compresses in a hurry.
    Image.open(path).convert("RGB").save(path, optimize=True)


if __name__ == "__main__":
    spoken = "de-DE" if "--german" in sys.argv else "en-GB"
    asyncio.run(pictures(Path(sys.argv[1]), everything="--all" in sys.argv, language=spoken))
