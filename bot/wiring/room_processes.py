"""The gateway process's side of rooms in processes of their own: listens for them, starts them, makes their rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.remote.link_token import write_link_token
from bot.remote.listener import RemoteRoomListener
from bot.remote.remote_room import GatewayParts, RemoteRoom
from bot.remote.room_process import RoomProcesses
from bot.store.history import SessionHistory
from bot.texts.text import Text
from bot.wiring.monitoring import room_meter
from bot.wiring.room_process import require_server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager, AsyncExitStack
    from pathlib import Path

    from bot import events
    from bot.channel.port import ListenRequest, Place
    from bot.clock import Clock
    from bot.dashboard.live import LiveRooms
    from bot.monitoring.metrics import Metrics
    from bot.monitoring.traces import Traces
    from bot.participation.guild_participation import GuildParticipations
    from bot.remote.link import MessageLink
    from bot.wiring.services import Stores
    from bot.wiring.settings import BotSettings
    from compaction.model import SessionId

    # Returns what starts a room's process, for the address of this one and the number of the run.
    RoomCommand = Callable[[str, str], Sequence[str]]

# In the data folder: opens a link to the bot that runs now.
LINK_FILE = "rooms-link"

NO_SCREENS = Text(
    "Nobody can share a screen while each of my rooms runs in a process of its own; whoever runs me decides that."
)


def token_file(settings: BotSettings) -> Path:
    """Return the file with the token for rooms' processes on this machine."""
    return settings.storage.data_dir / LINK_FILE


async def open_room_processes(
    stack: AsyncExitStack,
    settings: BotSettings,
    stores: Stores,
    command: RoomCommand,
    *,
    participation: GuildParticipations,
    observe: events.Observer,
    clock: Clock,
    metrics: Metrics,
    traces: Traces | None,
    live: LiveRooms,
    serve: Callable[[Place, MessageLink], AbstractContextManager[None]],
) -> Callable[[Place, ListenRequest | None], RemoteRoom]:
    """Listen for rooms' processes, start one that waits, and return what makes a room. Raises `SetupError`.

    `serve`: see `GatewayParts`.
    """
    require_server(settings)
    token = write_link_token(token_file(settings))
    listener: RemoteRoomListener

    processes = RoomProcesses(lambda run_id: command(listener.url, run_id), clock)
    listener = await stack.enter_async_context(RemoteRoomListener(processes.on_link, tokens=lambda: (token,)))
    history = SessionHistory(stores.database)

    async def speakers_of(session_id: SessionId) -> frozenset[str]:
        return frozenset(await history.speakers(session_id))

    parts = GatewayParts(
        processes=await stack.enter_async_context(processes),
        participation=participation,
        choices=stores.guilds,
        servers=stores.servers,
        clock=clock,
        observe=observe,
        measure=room_meter(metrics, traces),
        show_live=live.show,
        in_use=stores.in_use,
        upkeeps=stores.upkeeps,
        speakers_of=speakers_of,
        serve=serve,
    )
    return lambda place, listen: RemoteRoom(place, parts, listen)
