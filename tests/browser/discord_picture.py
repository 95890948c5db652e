"""Takes the picture of the bot in Discord for the README: `python -m tests.browser.discord_picture docs/images`.

People speak and use commands in the local Discord, with the bundled evening's voices; every word in the picture is what
the bot posted there. Discord itself shows it with its own fonts and colours.
"""

from __future__ import annotations

import asyncio
import sys
import time
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from bot.cli.environment import logging_from_settings, null_console
from config.load import load
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.roomtone.companion import InProcessCompanion
from rehearsal.runner.bot_lifecycle import bot_setup
from rehearsal.runner.local_environment import LocalEnvironment, open_local_environment
from rehearsal.script.scenario_file import load_scenario, scenario_path
from tests.browser.chromium import browser
from tests.browser.discord_page import Column, Shown, discord_page
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from rehearsal.runner.observations import Observation
    from rehearsal.script.scenario import Scenario

# Everybody is asked, so that the notice has its buttons.
SETTINGS: dict[str, object] = {"room.consent": "ask"}
HEAR_ME = "roomtone:hear-me"
# What is said before Chloe leaves, and while she is away; by the beginnings of the sentences.
BEFORE = ("My neighbour has lent", "The concert starts at seven")
MEANWHILE = ("Then I will bring", "Wonderful, and I can", "Let us keep the old", "Good idea, the weather")
ASKED = "Roomtone, when does"
# The live message is edited this often, and an answer takes some seconds.
EDITED_S = 34.0
TYPED_S = 3.0
# The recap of more turns would be longer than the picture.
HISTORY_TURNS = 14
SIZE = (1280, 400)


async def record() -> tuple[list[Column], dict[int, str]]:
    """Let a piece of the evening happen, and return what the bot posted, for everybody and for one person."""
    scenario = load_scenario(scenario_path("evening"))
    people = {person.name: person.id for person in scenario.people}
    async with (
        open_local_environment(scenario) as here,
        InProcessCompanion(SETTINGS) as companion,
    ):
        setup = bot_setup(scenario, here, live_epoch_s=time.time())
        await companion.start(replace(setup, history=setup.history[-HISTORY_TURNS:]), _ignore)
        for who in people.values():
            await here.enter(who)
        ada, chloe = people["Ada"], people["Chloe"]
        await here.invoke(ada, "join", {})
        await here.meet(ada)
        notice = await _notice(here)
        for who in people.values():
            await here.discord.press(who, notice, HEAR_ME)
        await _say(here, scenario, BEFORE)
        await here.leave(chloe)
        await _say(here, scenario, MEANWHILE)
        await _say(here, scenario, (ASKED,))
        await asyncio.sleep(EDITED_S)
        await here.enter(chloe)
        # Nobody types sooner.
        await asyncio.sleep(TYPED_S)
        missed = await here.discord.invoke(chloe, "recap", {"what": "missed"})
        recap = await here.discord.invoke(chloe, "recap")
        # Later edits, such as that the session is over, do not belong in the picture.
        messages = deepcopy(here.discord.messages)
        posted = [Shown(each.payload) for each in messages if each.author_id == ROOMTONE_BOT_ID]
        answers = [Shown(each.replies[-1].payload, ("Chloe", each.command)) for each in (missed, recap)]
        await companion.stop()
    columns = [
        Column(scenario.channel, "what everybody sees", posted),
        Column(scenario.channel, "what Chloe sees, who was away for a while", answers),
    ]
    return columns, {number: name for name, number in people.items()}


def _ignore(_: Observation) -> None:
    """The picture needs no observations."""


async def _notice(here: LocalEnvironment) -> int:
    """Return the message with the buttons."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for message in here.discord.messages:
                if message.payload["components"]:
                    return message.id
            await asyncio.sleep(0.1)


async def _say(here: LocalEnvironment, scenario: Scenario, beginnings: tuple[str, ...]) -> None:
    for beginning in beginnings:
        [step] = [each for each in scenario.says if each.say.startswith(beginning)]
        assert step.audio is not None
        await here.say(scenario.person(step.who).id, step.audio)
        await asyncio.sleep(2.0)


async def picture(folder: Path) -> None:
    """Save the picture in `folder`."""
    with null_console() as console, logging_from_settings(load(), console=console):
        columns, names = await record()
    async with browser("--hide-scrollbars") as chromium:
        page = await chromium.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        await page.set_content(discord_page(columns, names))
        path = folder / "discord.png"
        await page.screenshot(path=path, full_page=True)
    Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    asyncio.run(picture(Path(sys.argv[1])))
