"""Shared screens of a room in one process, and their pages in another, over real websockets."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from bot.remote.gateway_side.remote_screens import RemoteScreens
from bot.remote.room_side.served_screens import ServedScreens
from bot.screen.local_screens import LocalScreens
from tests.bot.remote.peers import linked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.remote.link.gateway_link import GatewayLink
    from bot.remote.link.message_link import MessageLink
    from bot.screen.screens import Screens
    from tests.bot.remote.peers import Ends

GUILD = 10


@asynccontextmanager
async def screens_apart(screens: Screens) -> AsyncIterator[tuple[RemoteScreens, Ends]]:
    """Yield the other process's view of the screens of a room, and both ends of the link."""
    remote = RemoteScreens()
    served: list[ServedScreens] = []

    def serve(link: MessageLink) -> None:
        serving = ExitStack()
        serving.enter_context(remote.serve(GUILD, link))
        link.on_closed(serving.close)

    def be_room(link: GatewayLink) -> None:
        served.append(ServedScreens(LocalScreens(screens), screens, link))

    async with AsyncExitStack() as stack:
        ends = await stack.enter_async_context(linked(gateway=serve, room=be_room, streams=remote.streams))
        await stack.enter_async_context(served[0])
        yield remote, ends
