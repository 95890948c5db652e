"""A room in which screens are shared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from bot import events
from bot.room.room import Room
from bot.screen.screens import ScreenPageConnection, Screens
from bot.texts.text import verbatim
from tests.bot.room.room_scene import House, a_house, living
from tests.bot.screen.watching import PICTURES, FakeReaders
from tests.fakes.brain import ScriptedResponder
from tests.fakes.room_channel import ADA
from tests.patience import settle

GUILD = 10
REMARK = "Winter Soldier is nearly gone, Ada."


class Cinema:
    """A room in which screens are shared."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.readers = FakeReaders()
        self.responder = ScriptedResponder(REMARK)
        house.new_responder = lambda _: self.responder
        house.can_skip = True
        self.screens = Screens(
            cast("Any", self.readers), clock=house.clock, bot_name="Roomtone", reading=verbatim("Read here.")
        )

    def living(self) -> AbstractAsyncContextManager[tuple[Room, asyncio.Task[str]]]:
        services = replace(self.house.services(), screens=self.screens)
        return living(self.house, room=Room(self.house.channel, services))

    async def share(self) -> ScreenPageConnection:
        """Let Ada open her link and share a window."""
        line = await self.screens.admit(self.screens.invite(GUILD, ADA.id))
        line.start("window")
        return line

    async def see(self, line: ScreenPageConnection, name: str, *texts: str) -> None:
        """Send a picture and wait for its note."""
        before = len(self.noted)
        self.readers.texts = list(texts)
        await line.picture(PICTURES[name])
        await settle(lambda: len(self.noted) > before)

    @property
    def noted(self) -> list[str]:
        return [event.note.what for event in self.house.seen if isinstance(event, events.ScreenNoted)]


@asynccontextmanager
async def a_cinema(folder: Path) -> AsyncIterator[Cinema]:
    """Open the services with screens."""
    async with a_house(folder) as house:
        yield Cinema(house)
