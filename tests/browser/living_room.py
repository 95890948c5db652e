"""The complete bot in a local Discord, with one person who uses Chromium and a second one who only listens.

Discord protocol, encryption, sound, recogniser, voice, store, summaries and pages are real. Only the language model is
a local server, which says what the test wants and keeps what it was sent.
"""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar
from unittest.mock import patch

from bot.room.conversation import membership
from config.load import load
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, SPARE_BOT_ID
from rehearsal.discord.server import LocalDiscord
from rehearsal.people.person import scripted_member
from rehearsal.roomtone.companion import InProcessCompanion
from rehearsal.roomtone.speech_engines import RehearsalRecogniser
from rehearsal.runner.local_environment import discord_addresses
from rehearsal.runner.observations import ObservedTurn
from rehearsal.runner.ports import BotSetup, StoredTurn
from rehearsal.servers.chat import MODEL, ChatBehaviour, LocalChatServer
from rehearsal.words import sounds_like
from tests.browser.chromium import browser
from tests.browser.evening import noted, until
from tests.browser.game import GAME
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Page

    from rehearsal.people.person import ScriptedPerson
    from rehearsal.runner.observations import Observation
    from rehearsal.servers.chat import ChatCall

ADA_ID, BEN_ID = 2001, 2002
SKIP = "SKIP"
_LINK = re.compile(r"<(http://localhost:\d+/share#\S+)>")
_Seen = TypeVar("_Seen")


class LivingRoom:
    """The local Discord, the bot, its people and the browser. `says`: what the language model answers from now on."""

    def __init__(
        self, discord: LocalDiscord, model: LocalChatServer, listener: ScriptedPerson, ear: RehearsalRecogniser
    ) -> None:
        self.discord = discord
        self.model = model
        self.listener = listener
        self.says = SKIP
        self.seen: list[Observation] = []
        self._ear = ear
        # Holds Ada in the voice channel. Closing the stack makes her leave.
        self.stay: AsyncExitStack
        self.page: Page
        self.game: Page

    def answer(self, _: ChatCall) -> str:
        """See `ChatBehaviour.answer`."""
        return self.says

    def of(self, kind: type[_Seen]) -> list[_Seen]:
        """Return the bot's observations of one kind, oldest first."""
        return [each for each in self.seen if isinstance(each, kind)]

    @property
    def turns(self) -> int:
        """Return how many turns the session has."""
        return max((turn.seq for turn in self.of(ObservedTurn)), default=-1) + 1

    async def command(self, name: str, **options: str) -> str:
        """Let Ada use a slash command and return the bot's answer."""
        return (await self.discord.invoke(ADA_ID, name, options)).content

    async def open_link(self) -> str:
        """Let Ada open a new link in the browser. Returns the link."""
        found = _LINK.search(await self.command("watch start"))
        assert found is not None
        await self.page.goto(found[1])
        return found[1]

    async def state(self, state: str) -> str:
        """Wait until the page is in a state and return its text."""
        await self.page.wait_for_selector(f"body[data-state={state}]")
        return await self.page.inner_text("main")

    async def noted(self, text: str) -> None:
        """Wait until the page shows a note with this text, ignoring spaces."""
        await noted(self.page, text)

    async def heard_saying(self, words: str, *, since: float) -> bool:
        """Return whether the listener heard these words since then, recognised from the sound."""
        pcm = self.listener.heard(ROOMTONE_BOT_ID).pcm(since=since)
        return sounds_like(await self._ear.transcribe(pcm), words)

    async def come_and_go(self, times: int) -> None:
        """Let Ben join and leave. Each adds a turn to the session at once, and not only one in a minute."""
        with patch.object(membership, "TURN_EVERY_S", 0.0):
            for _ in range(times):
                before = self.turns
                await self.discord.join(BEN_ID)
                await until(lambda before=before: self.turns > before)  # type: ignore[misc]
                await self.discord.leave(BEN_ID)
                await until(lambda before=before: self.turns > before + 1)  # type: ignore[misc]

    def sent(self) -> str:
        """Return the messages that the language model was sent last."""
        return str(self.model.calls[-1].messages)


@asynccontextmanager
async def living_room(*history: str, **settings: object) -> AsyncIterator[LivingRoom]:
    """Start everything, with Ada and the bot in the channel and the game in a tab.

    `history`: what Ada has said in this session before. `settings`: names have two underscores in place of the dot.
    """
    async with AsyncExitStack() as stack:
        discord = await stack.enter_async_context(LocalDiscord())
        behaviour = ChatBehaviour(answer=lambda _: SKIP)
        model = await stack.enter_async_context(LocalChatServer(behaviour))
        companion = await stack.enter_async_context(
            InProcessCompanion(
                {
                    "llm.base_url": model.base_url,
                    "llm.model": MODEL,
                    "tuning.summariser": "extractive",
                    "web.port": 0,
                    **{name.replace("__", "."): value for name, value in settings.items()},
                }
            )
        )
        listener = scripted_member(discord, SPARE_BOT_ID)
        ear = await stack.enter_async_context(RehearsalRecogniser(load()))
        here = LivingRoom(discord, model, listener, ear)
        behaviour.answer = here.answer
        await companion.start(_environment(discord, history), here.seen.append)
        stack.push_async_callback(companion.stop)
        here.stay = await stack.enter_async_context(AsyncExitStack())
        await here.stay.enter_async_context(scripted_member(discord, ADA_ID))
        await stack.enter_async_context(listener)
        await here.command("join")
        async with asyncio.timeout(PATIENCE_S):
            await listener.meet(ROOMTONE_BOT_ID)
        chromium = await stack.enter_async_context(browser())
        context = await chromium.new_context()
        here.game, here.page = await context.new_page(), await context.new_page()
        here.page.set_default_timeout(1000 * PATIENCE_S)
        await here.game.set_content(GAME)
        yield here


def _environment(discord: LocalDiscord, history: tuple[str, ...]) -> BotSetup:
    began_at = time.time() - 10.0 * (len(history) + 1)
    return BotSetup(
        discord_addresses(discord, f"{ROOMTONE_BOT_ID}.local.browser"),
        bot_name="Roomtone",
        settings={},
        history=tuple(
            StoredTurn(str(ADA_ID), "Ada", text, began_at + 10.0 * number) for number, text in enumerate(history)
        ),
    )
