"""The service behind the /watch commands: links, ending shares, looks, and who may not use them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bot.screen.messages import NO_ROOM_TO_SHARE_IN, ScreenError
from bot.settings import WebSettings
from bot.web.server import WebServer
from bot.web.watching import WatchService
from tests.bot.screen.watching import PICTURES, Watching
from tests.fakes.room_channel import ADA, BO
from tests.patience import settle

GUILD = 10


@asynccontextmanager
async def desk(watching: Watching) -> AsyncIterator[WatchService]:
    """Open a watch service with its web server."""
    async with WebServer(WebSettings(port=0), watching.screens) as web:
        yield WatchService(watching.screens, web)


async def test_the_first_link_opens_the_pages() -> None:
    """The first link starts the web server, and the link admits its person. Who has opted out gets none."""
    watching = Watching()
    async with desk(watching) as at, watching.room():
        assert at.is_local
        assert at.valid_s == 300
        link = await at.link(GUILD, ADA.id)
        base, _, token = link.partition("/share#")
        assert base.startswith("http://localhost:")
        assert (await watching.screens.admit(token)).welcome["who"] == "Ada"
        watching.opted_out = {BO.id}
        with pytest.raises(ScreenError, match="/opt-in"):
            await at.link(GUILD, BO.id)


async def test_looks_and_ends() -> None:
    """People in the channel can look at every share. A person can end their own share or, with `everybody`,
    all shares.
    """
    watching = Watching()
    async with desk(watching) as at:
        with pytest.raises(ScreenError) as caught:
            await at.status(GUILD)
        assert str(caught.value) == NO_ROOM_TO_SHARE_IN
        async with watching.room() as room:
            with pytest.raises(ScreenError, match="Nobody shares"):
                await at.look(GUILD, ADA.id, "what?", whose=None)
            for person in (ADA, BO):
                sharer = await room.welcome(person, str(person.id))
                room.start(sharer, "window")
                watching.readers.texts = ["Tokyo 2099"]
                await room.picture(sharer, PICTURES["dark"])
            await settle(lambda: len(watching.notes) == 2)
            assert "Tokyo 2099" in await at.look(GUILD, ADA.id, "what?", whose=BO.id)
            watching.channel.people.remove(ADA)
            with pytest.raises(ScreenError, match="Lounge"):
                await at.look(GUILD, ADA.id, "what?", whose=BO.id)
            assert len(watching.readers.looks) == 3
            assert (await at.status(GUILD)).startswith("Ada has shared a window")
            assert await at.stop(GUILD, ADA.id, everybody=False) == 1
            assert await at.stop(GUILD, ADA.id, everybody=False) == 0
            assert await at.stop(GUILD, ADA.id, everybody=True) == 1
            assert room.sharing() == []
