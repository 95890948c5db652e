"""The page with a microphone in a real browser, which hears a file: `python -m tests.browser.microphone docs/images`
takes its picture. The bot, the local Discord and the voices are those of `roomtone rehearse --serve`.

With `--all` it is taken in light and dark, for laptop and phone, to be looked at.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import numpy as np
from PIL import Image

from rehearsal.people.clip import read_sound
from rehearsal.roomtone.serve import serve_local_discord
from tests.browser.chromium import browser
from tests.browser.evening import LAPTOP, PHONE
from tests.patience import PATIENCE_S, settle
from tests.rehearsal.people.sounds import silence, write_wav
from tests.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from playwright.async_api import Browser, Page

    Look = tuple[str, tuple[int, int], Literal["light", "dark"]]

HELLO = ROOT / "rehearsal" / "scenarios" / "hello"
# The page comes into the channel meanwhile. A slow one hears the recordings when they begin anew.
LEAD_S = 3.0
LOOK: Sequence[Look] = [("microphone.png", (1000, 690), "light")]
EVERY_LOOK: Sequence[Look] = [
    ("microphone-light-laptop.png", LAPTOP, "light"),
    ("microphone-dark-laptop.png", LAPTOP, "dark"),
    ("microphone-light-phone.png", PHONE, "light"),
    ("microphone-dark-phone.png", PHONE, "dark"),
]


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[str]:
    """Serve the local Discord with the bot, and yield the address of the page."""
    stop, printed = asyncio.Event(), list[str]()

    def say(text: str, *, err: bool = False) -> None:
        printed.append(text)

    overrides = {"storage.data_dir": str(folder), "models.directory": str(ROOT / "data" / "models")}
    serving = asyncio.create_task(
        serve_local_discord(
            overrides,
            stop,
            with_bot=True,
            port=0,
            network={},
            say=say,
            on_dashboard=lambda *_: None,
        )
    )
    try:
        await settle(lambda: serving.done() or printed[-1:] == ["Press Ctrl-C to stop it."])
        yield next(line.partition(": ")[2] for line in printed if line.startswith("Talk in your browser"))
    finally:
        stop.set()
        await serving


@asynccontextmanager
async def hearing(folder: Path, *recordings: str, pause_s: float) -> AsyncIterator[Browser]:
    """Start a browser whose microphone has recordings of the scenario `hello`, each with a pause, again and again."""
    said = [piece for name in recordings for piece in (read_sound(HELLO / name), silence(pause_s))]
    file = write_wav(folder / "microphone.wav", np.concatenate([silence(LEAD_S), *said]))
    async with browser(
        "--hide-scrollbars",
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={file}",
    ) as chromium:
        yield chromium


async def opened(chromium: Browser, link: str, *, script: str = "") -> Page:
    """Open the page in a window of its own, and press *Talk*. `script`: runs before the page's own."""
    context = await chromium.new_context(viewport={"width": LAPTOP[0], "height": LAPTOP[1]}, locale="en-GB")
    await context.add_init_script(script)
    page = await context.new_page()
    page.set_default_timeout(1000 * PATIENCE_S)
    await page.goto(link)
    await page.click("#talk")
    return page


async def pictures(folder: Path, looks: Sequence[Look]) -> None:
    """Save the pictures of a short talk in `folder`."""
    with TemporaryDirectory(prefix="roomtone-pictures-") as made:
        data, said = Path(made), ("1-ada.ogg", "2-ada.ogg", "3-ada.ogg")
        async with served(data / "bot") as link, hearing(data, *said, pause_s=10.0) as chromium:
            page = await opened(chromium, link)
            await page.locator(".bot", has_text="green").wait_for()
            for name, (width, height), scheme in looks:
                await page.set_viewport_size({"width": width, "height": height})
                await page.emulate_media(color_scheme=scheme)
                await page.screenshot(path=folder / name, full_page=True)
                # The browser compresses in a hurry.
                Image.open(folder / name).convert("RGB").save(folder / name, optimize=True)


if __name__ == "__main__":
    asyncio.run(pictures(Path(sys.argv[1]), EVERY_LOOK if "--all" in sys.argv else LOOK))
