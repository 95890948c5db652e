"""Two ends of a link over a real websocket on 127.0.0.1."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.remote.link.gateway_link import GatewayLink
from bot.remote.link.hello import RoomIdentity
from bot.remote.link.listener import RemoteRoomListener
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from bot.remote.link.message_link import MessageLink
    from bot.remote.link.streams import Streams
    from bot.remote.processes.room_processes import RoomProcesses

TOKEN = "a token of the test"
ROOM = RoomIdentity(guild_id=10, channel_id=20, run_id="one")


class Ends:
    """What a test has of both ends. `links`: the gateway's ends, the newest last."""

    def __init__(self, listener: RemoteRoomListener, room: GatewayLink, links: list[MessageLink]) -> None:
        self.listener = listener
        self.room = room
        self.links = links

    @property
    def gateway(self) -> MessageLink:
        """Return the gateway's end now."""
        return self.links[-1]

    async def drop(self) -> None:
        """End the connection, and wait until a new one is there."""
        before = len(self.links)
        self.gateway.close()
        await until(lambda: len(self.links) > before and self.room.is_open)


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what holds is set by the other end
            await asyncio.sleep(0)


def is_there(pid: int) -> bool:
    """Return whether the process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def waiting_machines(processes: RoomProcesses) -> set[str]:
    """Return the machines on which a loaded process waits for a room."""
    loads = [process.load for process in processes._all()]
    return {load.machine for load in loads if load.loaded and load.free > 0}


@asynccontextmanager
async def linked(
    *,
    gateway: Callable[[MessageLink], None] = lambda _: None,
    room: Callable[[GatewayLink], None] = lambda _: None,
    heartbeat_s: float = 4.0,
    streams: Streams | None = None,
) -> AsyncIterator[Ends]:
    """Yield both ends. `gateway`, `room`: register the handlers of each end. `streams`: what the room may open."""
    links: list[MessageLink] = []

    def on_link(_: RoomIdentity, link: MessageLink) -> None:
        gateway(link)
        links.append(link)

    async with RemoteRoomListener(on_link, TOKEN, streams=streams, heartbeat_s=heartbeat_s) as listener:
        end = GatewayLink(listener.url, TOKEN, ROOM, heartbeat_s=heartbeat_s)
        room(end)
        async with end:
            await until(lambda: links)
            yield Ends(listener, end, links)
