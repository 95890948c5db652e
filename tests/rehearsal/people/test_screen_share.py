"""A scripted person shares a screen with the bot's real pages: the link, the pictures, the notes and the end."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from bot.settings import WebSettings
from bot.web.server import WebServer
from rehearsal.errors import PersonError
from rehearsal.people.screen_share import ScreenSharePage
from tests.bot.screen.watching import PICTURES, Watching, until
from tests.fakes.place import ADA
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.screen.room import RoomScreens

GUILD = 10


class Pages:
    """A room whose screens are shared through the real web server."""

    def __init__(self, watching: Watching, room: RoomScreens, web: WebServer) -> None:
        self.watching = watching
        self.room = room
        self._web = web

    def told(self) -> str:
        """Return the answer of `/watch start`."""
        link = self._web.share_link(self.watching.screens.invite(GUILD, ADA.id))
        return f"Open this on your computer and choose what to share: <{link}>\nIt is for you alone."


@asynccontextmanager
async def pages() -> AsyncIterator[Pages]:
    """Open a room and its web server."""
    watching = Watching()
    async with watching.room() as room, WebServer(WebSettings(port=0), watching.screens) as web:
        await web.start()
        yield Pages(watching, room, web)


@pytest.mark.asyncio
async def test_pictures_become_notes() -> None:
    """Pictures become notes as they do from the page in a browser, and the bot reports the end of the share."""
    async with pages() as here:
        here.watching.readers.texts = ["Tokyo 2099"]
        async with ScreenSharePage("Ada", here.told()) as sharer:
            assert await sharer.show(PICTURES["dark"], timeout_s=PATIENCE_S)
            assert here.watching.told() == ["a window, just shared. It reads “Tokyo 2099”"]
            assert not await sharer.show(PICTURES["dark"], timeout_s=0.05)
            await sharer.stop()
            with pytest.raises(PersonError, match="You stopped sharing"):
                await sharer.show(PICTURES["dark"], timeout_s=PATIENCE_S)
        await until(lambda: here.watching.turns)


@pytest.mark.asyncio
async def test_an_end_by_the_bot_is_told() -> None:
    """When the bot ends the share, the person gets the sentence that the page would show."""
    async with pages() as here, ScreenSharePage("Ada", here.told()) as sharer:
        here.watching.readers.texts = ["Tokyo 2099"]
        assert await sharer.show(PICTURES["dark"], timeout_s=PATIENCE_S)
        await here.room.finish()
        # The person may learn of the end while waiting for a note, or before showing a picture.
        with pytest.raises(PersonError, match="The bot has left the voice channel"):
            await sharer.show(PICTURES["bright"], timeout_s=PATIENCE_S)


@pytest.mark.asyncio
async def test_no_link_and_a_used_one_are_sentences() -> None:
    """An answer without a link, a used link, and a page that cannot be opened each raise a clear error."""
    with pytest.raises(PersonError, match="Join Lounge first"):
        ScreenSharePage("Ada", "Join Lounge first: I watch a screen together with who is there.")
    async with pages() as here:
        told = here.told()
        async with ScreenSharePage("Ada", told):
            with pytest.raises(PersonError, match="has been used already"):
                async with ScreenSharePage("Ada", told):
                    pass
    with pytest.raises(PersonError, match="could not open the page"):
        async with ScreenSharePage("Ada", told):
            pass
