"""Takes the pictures of the bot in Discord for the docs: `python -m tests.browser.discord_picture docs/images`.

In one, people speak and use commands in the local Discord, with the bundled evening's voices. In the other they type,
and a manager opens the settings; there a local server plays the language model. Every word is what the bot posted, or
what people typed. Discord itself shows it with its own fonts and colours.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from copy import deepcopy
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

from PIL import Image

from bot.app import running_bot
from bot.cli.environment import logging_to_file
from bot.events import ignore_event
from bot.mcp.servers import list_server_tools
from bot.mcp.tools import Approvals, digest
from bot.wiring.settings import BotSettings
from config.load import load
from config.schema import Settings
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.roomtone.companion import InProcessBot
from rehearsal.runner.bot_lifecycle import bot_setup
from rehearsal.runner.local_environment import LocalEnvironment, open_local_environment
from rehearsal.runner.record import Observation
from rehearsal.script.scenario import Scenario
from rehearsal.script.scenario_file import load_scenario, scenario_path
from rehearsal.servers.chat import (
    ChatAnswer,
    ChatBehaviour,
    ChatCall,
    LocalChatServer,
    ScriptedToolCall,
    ToolCallAnswer,
)
from tests.bot.discord.client import ADA, BEN, settings_for
from tests.bot.mcp.approved import SERVER
from tests.browser.chromium import browser
from tests.browser.discord_page import Column, ShownPage, discord_page
from tests.patience import PATIENCE_S, settle

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
        InProcessBot(SETTINGS) as companion,
    ):
        setup = bot_setup(scenario, here.addresses)
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
        posted = [ShownPage(each.payload) for each in messages if each.author_id == ROOMTONE_BOT_ID]
        answers = [ShownPage(each.replies[-1].payload, ("Chloe", each.command)) for each in (missed, recap)]
        await companion.stop()
    columns = [
        Column(scenario.channel, "what everybody sees", posted),
        Column(scenario.channel, "what Chloe sees, who was away for a while", answers),
    ]
    return columns, {number: name for name, number in people.items()}


# What is typed, by whom, and what the model answers to it.
LOUNGE = 600
TOOL = "notes_create_note"
NOTE = "Bring pumpkins, the big ones."
TYPED: tuple[tuple[int, str, ChatAnswer], ...] = (
    (BEN, "We hid the key of the boat under the lantern.", "Under the lantern, then. I will remember."),
    (ADA, "Where is the key of the boat?", "Ben said that you hid it under the lantern."),
    (ADA, f"Write a note: {NOTE}", ToolCallAnswer((ScriptedToolCall(TOOL, {"text": NOTE}),))),
)


def _written(call: ChatCall) -> ChatAnswer:
    """Return what the model answers to the last of these sentences in a prompt."""
    said = " ".join(str(each["content"]) for each in call.messages)
    found = ["Yes.", *(answer for _, text, answer in TYPED if text in said)]
    return found[-1] if call.stream else "{}"


def _typing_settings(local: LocalDiscord, model: LocalChatServer, folder: str) -> Settings:
    """Return settings for a bot that nobody speaks to, with a tool that writes notes."""
    program = {"command": sys.executable, "args": (str(SERVER),), "guilds": (local.guild.id,), "roles": ("everyone",)}
    settings = Settings.model_validate(
        {
            "discord": {"guilds": (local.guild.id,)},
            "storage": {"data_dir": folder},
            "asr": {"base_url": "http://127.0.0.1:9/v1"},
            "llm": {"base_url": model.base_url, "model": "local-chat"},
            "mcp": {"servers": [{"name": "notes", **program}]},
            "web": {"port": 0},
        }
    )
    here = settings_for(local).model_copy(update={"guilds": (local.guild.id,)})
    return settings.model_copy(update={"discord": here})


async def record_typed() -> tuple[list[Column], dict[int, str]]:
    """Let people type to the bot and a manager open the settings; return what stands there for all, and for her."""
    with tempfile.TemporaryDirectory() as folder:
        async with LocalDiscord() as local, LocalChatServer(ChatBehaviour(answer=_written)) as model:
            settings = _typing_settings(local, model, folder)
            approvals = Approvals(Path(folder))
            approvals.approve("notes", map(digest, await list_server_tools(settings.mcp.servers[0], approvals)))
            async with running_bot(BotSettings.from_schema(settings), observe=ignore_event, zone=UTC):
                for who in (ADA, BEN):
                    await local.join(who, channel_id=LOUNGE)
                await local.invoke(ADA, "join", {}, channel_id=LOUNGE)
                await settle(lambda: bool(local.messages))
                # The tool's server is connected beside the rest.
                while not any(TOOL in each.offered for each in model.calls):
                    await _ask(local, BEN, "Are you there?")
                asked = {await _ask(local, who, text) for who, text, _ in TYPED}
                panel = (await local.invoke(ADA, "settings", {}, channel_id=LOUNGE)).replies[-1]
                opened = await local.pick(ADA, int(panel.payload["id"]), "roomtone:settings-speaking", ["language"])
                posted = {each.id: deepcopy(each.payload) for each in local.messages}
                window = deepcopy(opened.replies[-1].payload)
    # The notice and the live message are in the other picture.
    talk = [
        ShownPage(each, answers=posted.get(_answered(each)))
        for number, each in posted.items()
        if number in asked or _answered(each) in asked or each["components"]
    ]
    name = local.guild.voice_channels[0].name
    columns = [
        Column(name, "what people type, and what everybody sees", talk),
        Column(name, "what Ada sees, who manages the server", [ShownPage(window, ("Ada", "settings"))]),
    ]
    return columns, {each.id: each.name for each in local.guild.members}


async def _ask(local: LocalDiscord, who: int, text: str) -> int:
    """Type to the bot, wait for its answer, and return the id of what was typed."""
    asked = await local.post_message(who, f"<@{ROOMTONE_BOT_ID}> {text}", channel_id=LOUNGE)
    await settle(lambda: any(_answered(each.payload) == asked.id for each in local.messages))
    return asked.id


def _answered(payload: dict[str, Any]) -> int:
    """Return the id of the message that one replies to, or 0."""
    return int((payload.get("message_reference") or {}).get("message_id", 0))


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
        await here.say(scenario.person(step.who).id, step)
        await asyncio.sleep(2.0)


async def pictures(folder: Path) -> None:
    """Save the pictures in `folder`."""
    with logging_to_file(load()):
        drawn = {"discord-typed.png": await record_typed(), "discord.png": await record()}
    async with browser("--hide-scrollbars") as chromium:
        for name, (columns, names) in drawn.items():
            page = await chromium.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
            await page.set_content(discord_page(columns, names))
            path = folder / name
            await page.screenshot(path=path, full_page=True)
            Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    asyncio.run(pictures(Path(sys.argv[1])))
