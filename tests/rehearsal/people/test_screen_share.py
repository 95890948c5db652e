"""Somebody of the rehearsal shares a screen with the bot's real pages: link, pictures, notes, the end."""

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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.screen.room import RoomScreens

GUILD = 10
PATIENCE_S = 20.0


class Pages:
    """A room whose screens are shared over the real web server."""

    def __init__(self, watching: Watching, room: RoomScreens, web: WebServer) -> None:
        self.watching = watching
        self.room = room
        self._web = web

    def told(self) -> str:
        """Return what `/watch start` answers."""
        link = self._web.share_link(self.watching.screens.invite(GUILD, ADA.id))
        return f"Open this on your computer and choose what to share: <{link}>\nIt is for you alone."


@asynccontextmanager
async def pages() -> AsyncIterator[Pages]:
    """Open a room and its pages."""
    watching = Watching()
    async with watching.room() as room, WebServer(WebSettings(port=0), watching.screens) as web:
        await web.start()
        yield Pages(watching, room, web)


@pytest.mark.asyncio
async def test_pictures_become_notes() -> None:
    """As those of the page in a browser; and the bot tells of the end."""
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
    """With the sentence that the page would show."""
    async with pages() as here, ScreenSharePage("Ada", here.told()) as sharer:
        here.watching.readers.texts = ["Tokyo 2099"]
        assert await sharer.show(PICTURES["dark"], timeout_s=PATIENCE_S)
        await here.room.finish()
        # It may hear of the end while it waits for a note, or before it shows anything.
        with pytest.raises(PersonError, match="The bot has left the voice channel"):
            await sharer.show(PICTURES["bright"], timeout_s=PATIENCE_S)


@pytest.mark.asyncio
async def test_no_link_and_a_used_one_are_sentences() -> None:
    """What the bot said instead of a link, why it lets nobody in, and a page that is not there."""
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
