"""A screen that is shared with a room on another machine: the page here, the room there, and Chromium before both."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rehearsal.discord.server import LocalDiscord
from tests.bot.bot_process import ADA, ada_in, logged, roomtone, roomtone_run, two_machines
from tests.bot.test_room_processes import met
from tests.browser.chromium import browser
from tests.browser.evening import until
from tests.browser.game import GAME, show
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import SecretStr

pytestmark = [pytest.mark.rehearsal, pytest.mark.postgres]

_LINK = re.compile(r"<(http://localhost:\d+/share#\S+)>")


async def command(local: LocalDiscord, name: str, **options: str) -> str:
    """Let Ada use a slash command and return the bot's answer."""
    return (await local.invoke(ADA, name, options)).content


@pytest.mark.asyncio
async def test_a_screen_is_shared_with_a_room_on_another_machine(
    tmp_path: Path, whisper_model_dir: Path, postgres_place: SecretStr
) -> None:
    """Two data folders are two machines. What changes in a tab is read on the machine with the room; the page shows the
    notes, /watch answers, the notice names the other machine, and an opt-out ends the share.
    """
    here, north, address = two_machines(tmp_path)
    own = {
        "ROOMTONE_DATABASE_URL": postgres_place.get_secret_value(),
        "ROOMTONE_WEB__PORT": "0",
        "ROOMTONE_SCREEN__BUSY_SHARE": "0.9",
    }
    listening = ("--rooms", "processes", "--rooms-listen", address)
    offering = ("cluster", "rooms", "--gateway", address, "--rooms", "1", "--name", "north")
    async with (
        LocalDiscord() as local,
        ada_in(local) as ada,
        browser() as chromium,
        roomtone_run(local, here, whisper_model_dir, *listening, **own) as bot,
    ):
        await bot.says("is on Discord")
        async with roomtone(local, north, whisper_model_dir, *offering, **own):
            await until(lambda: len(logged(here, "room_process_offered")) == 1)
            await command(local, "join")
            await met(ada)
            assert "other machines of whoever runs me" in await command(local, "privacy")

            context = await chromium.new_context()
            game, page = await context.new_page(), await context.new_page()
            page.set_default_timeout(1000 * PATIENCE_S)
            await game.set_content(GAME)
            found = _LINK.search(await command(local, "watch start"))
            assert found is not None
            await page.goto(found[1])
            await page.wait_for_selector("body[data-state=ready]")
            assert "on another machine of whoever runs it" in await page.inner_text("main")
            await page.click("#choose")
            await page.wait_for_selector("body[data-state=sharing]")
            await until(lambda: len(logged(north, "screen_noted")) >= 1)
            await show(game, "health", "HP 12")
            # Another note about what was there before may come first.
            await page.locator("#notes", has_text=re.compile(r"HP\s*12")).wait_for()
            assert "has shared a browser tab" in await command(local, "watch status")
            assert "HP12" in (await command(local, "watch look")).replace(" ", "")
            assert "HP12" in (await page.inner_text("#notes")).replace(" ", "")

            assert "no longer hear you" in await command(local, "opt-out")
            await page.wait_for_selector("body[data-state=ended]")
            assert "it does not see your screen either" in await page.inner_text("main")
            assert logged(here, "screen_noted") == []
