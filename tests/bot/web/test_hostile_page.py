"""Hostile pages on the real server do not disturb another person's share."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp

from bot.screen.sharer import RECONNECT_WITHIN_S
from bot.settings import WebSettings
from bot.web.server import WebServer
from rehearsal.runner.screen_share import ScreenSharePage
from tests.bot.screen.watching import PICTURES, Watching
from tests.fakes.room_channel import ADA, BO
from tests.patience import PATIENCE_S, settle
from tests.voice.screen.screens import promising
from voice.screen.frame import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.screen.screen_room import RoomScreens

GUILD = 10
GOOD = PICTURES["dark"]


class Beside:
    """Two shares: Ada's is honest, and Bo's page sends whatever the test wants."""

    def __init__(
        self, watching: Watching, room: RoomScreens, ada: ScreenSharePage, bo: aiohttp.ClientWebSocketResponse
    ) -> None:
        self.watching = watching
        self.room = room
        self.bo = bo
        self._ada = ada

    async def told(self, kind: str) -> dict[str, Any]:
        """Return the next message of that kind to Bo's page."""
        async with asyncio.timeout(PATIENCE_S):
            while (message := await self.bo.receive_json())["t"] != kind:
                pass
        return dict(message)

    async def undisturbed(self) -> None:
        """Check that Ada's next picture still becomes a note."""
        self.watching.readers.texts = ["Victory"]
        # Less than a share waits for its page.
        self.watching.clock.advance(RECONNECT_WITHIN_S / 2)
        assert await self._ada.show(PICTURES["bright"], timeout_s=PATIENCE_S)
        assert self.watching.notes[-1].who == "Ada"
        assert "Victory" in self.watching.told()[-1]


@asynccontextmanager
async def beside() -> AsyncIterator[Beside]:
    """Open the room, the web server and both shares."""
    watching = Watching()
    watching.readers.texts = ["Tokyo 2099"]
    async with watching.room() as room, WebServer(WebSettings(port=0), watching.screens) as web:
        await web.start()
        link = f"<{web.share_link(watching.screens.invite(GUILD, ADA.id))}>"
        async with ScreenSharePage("Ada", link) as ada, aiohttp.ClientSession() as http:
            assert await ada.show(GOOD, timeout_s=PATIENCE_S)
            address = f"http://127.0.0.1:{web.port}/share/socket"
            async with http.ws_connect(address, origin=web.site.origin) as bo:
                await bo.send_json({"t": "hello", "token": watching.screens.invite(GUILD, BO.id)})
                here = Beside(watching, room, ada, bo)
                await here.told("welcome")
                await bo.send_json({"t": "start", "surface": "window"})
                yield here


async def test_what_is_no_picture_is_refused_with_its_reason() -> None:
    """A decompression bomb, half a picture, another file type and an empty message are each refused with the reason."""
    async with beside() as here:
        for data, reason in (
            (promising(GOOD, 65_000, 65_000), "wrong_size"),
            (GOOD[: len(GOOD) // 2], "damaged"),
            (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not_jpeg"),
            (b"", "empty"),
        ):
            here.watching.clock.advance(1)
            await here.bo.send_bytes(data)
            assert (await here.told("refused"))["reason"] == reason
        here.watching.clock.advance(1)
        await here.bo.send_bytes(PICTURES["grey"])
        await here.told("note")
        await here.undisturbed()


async def test_one_that_is_too_large_ends_the_connection() -> None:
    """A message that is far too large closes the connection before it is read; the share waits for its page."""
    async with beside() as here:
        await here.bo.send_bytes(b"\xff" * (MAX_FRAME_BYTES * 3))
        message = await here.bo.receive(timeout=PATIENCE_S)
        assert message.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING}
        bo = here.room.find(BO.id)
        assert bo is not None
        await settle(lambda: bo.disconnected_since is not None)
        await here.undisturbed()
        assert sorted(here.room.sharing()) == ["Ada", "Bo"]


async def test_a_flood_is_thrown_out() -> None:
    """A flood of messages ends the share, whether they are pictures or not."""
    for data in (b"no picture", PICTURES["grey"]):
        async with beside() as here:
            for _ in range(60):
                await here.bo.send_bytes(data)
            assert (await here.told("ended"))["reason"] == "misbehaved"
            await settle(lambda: here.room.sharing() == ["Ada"])
            await here.undisturbed()
