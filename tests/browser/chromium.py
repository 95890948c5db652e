"""The system's own Chromium, driven by Playwright, and a tab with something to share."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from playwright.async_api import async_playwright

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome")
# The tab of that title is what `getDisplayMedia` gives without asking.
SHARED_TITLE = "A game to share"
SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--window-size=1280,800",
    f"--auto-select-tab-capture-source-by-title={SHARED_TITLE}",
)
GAME = f"""<!doctype html><meta charset="utf-8"><title>{SHARED_TITLE}</title>
<style>
  html {{ background: #28323c; color: #fff; font: 600 34px sans-serif; text-shadow: 0 0 4px #000 }}
  body {{ margin: 0; height: 100vh; background: repeating-conic-gradient(#28323c 0 25%, #333f3a 0 50%) 0 / 90px 90px }}
  p {{ position: absolute; margin: 0 }}
</style>
<p style="left: 50px; top: 40px" id="map">Tokyo 2099</p>
<p style="left: 50px; bottom: 40px" id="health">HP 87</p>
<p style="right: 50px; top: 40px" id="round">Round 2 of 3</p>
<p style="left: 650px; top: 330px" id="chat"></p>"""


def executable() -> str:
    """Return Chromium's path. Fails with the remedy when there is none."""
    for name in NAMES:
        if (found := shutil.which(name)) is not None:
            return found
    raise AssertionError("There is no Chromium here. Install it (Debian: apt install chromium).")


@asynccontextmanager
async def browser(*extra: str) -> AsyncIterator[Browser]:
    """Start Chromium without a window; it shares the tab called `SHARED_TITLE` when a page asks."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=executable(),
            # Playwright's own way of hiding the window can't capture a tab.
            ignore_default_args=["--headless", "--hide-scrollbars", "--mute-audio"],
            args=[*SWITCHES, *extra],
        )
        try:
            yield started
        finally:
            await started.close()
