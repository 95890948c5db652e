"""The Chromium installed on the system, controlled by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

from tests.browser.game import SHARED_TITLE

NAMES = ("chromium", "chromium-browser", "google-chrome")
SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--window-size=1280,800",
    f"--auto-select-tab-capture-source-by-title={SHARED_TITLE}",
)


def executable() -> str:
    """Return Chromium's path. Fails with the command to install it when there is none."""
    for name in NAMES:
        if (found := shutil.which(name)) is not None:
            return found
    raise AssertionError("There is no Chromium here. Install it (Debian: apt install chromium).")


@asynccontextmanager
async def browser(*extra: str) -> AsyncIterator[Browser]:
    """Start Chromium without a window. When a page asks to share, it gets the tab with the title `SHARED_TITLE`."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=executable(),
            # Playwright's own switch for running without a window cannot capture a tab.
            ignore_default_args=["--headless", "--hide-scrollbars", "--mute-audio"],
            args=[*SWITCHES, *extra],
        )
        try:
            yield started
        finally:
            await started.close()
