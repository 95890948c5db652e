"""The gateway process's side of rooms in processes of their own: listens for them, starts them, makes their rooms."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import structlog

from bot.remote.adoption import Adoptions
from bot.remote.gateway_parts import GatewayParts
from bot.remote.link_file import LinkAddress, folder_mark, link_file, new_token, write_link
from bot.remote.listener import RemoteRoomListener
from bot.remote.remote_room import RemoteRoom
from bot.remote.room_processes import RoomProcesses
from bot.store.claims import claim_room, newest_claim
from bot.store.history import SessionHistory
from bot.wiring.monitoring import room_meter
from bot.wiring.room_mark import room_mark
from bot.wiring.room_process import require_server
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager, AsyncExitStack

    from bot import events
    from bot.channel.port import ListenRequest, Place
    from bot.clock import Clock
    from bot.dashboard.live import LiveRooms
    from bot.monitoring.metrics import Metrics
    from bot.monitoring.traces import Traces
    from bot.participation.guild_participation import GuildParticipations
    from bot.remote.address import RoomsAddress
    from bot.remote.adoption import AdoptedRoom
    from bot.remote.link import MessageLink
    from bot.remote.remote_screens import RemoteScreens
    from bot.wiring.process_parts import Stores
    from bot.wiring.settings import BotSettings
    from compaction.model import SessionId

    # Returns what starts a room's process, for the address of this one and the number of the run.
    RoomCommand = Callable[[str, str], Sequence[str]]

# How long the start of a room's next process may wait for it. That one's claim makes the lost one stale anyway.
FENCE_WITHIN_S = 2.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RoomStart:
    """How rooms get their processes. `command`: starts one on this machine. `listen`: where processes of other machines
    offer themselves, with `token`; None: only this machine has rooms. `rooms_each`: how many rooms one process runs.
    """

    command: RoomCommand
    listen: RoomsAddress | None = None
    token: str = ""
    rooms_each: int = 1


@dataclass(frozen=True, slots=True)
class RemoteRooms:
    """`make`: makes a room for a place, `listen` if the bot only writes down there, `adopted` if it runs already.
    `adoptions`: rooms that ran on while the bot was away.
    """

    make: MakeRoom
    adoptions: Adoptions


class MakeRoom(Protocol):
    """Makes a room of another process."""

    def __call__(self, place: Place, listen: ListenRequest | None, *, adopted: AdoptedRoom | None = None) -> RemoteRoom:
        """Return a room for one start."""


async def open_room_processes(
    stack: AsyncExitStack,
    settings: BotSettings,
    stores: Stores,
    start: RoomStart,
    *,
    participation: GuildParticipations,
    observe: events.Observer,
    clock: Clock,
    metrics: Metrics,
    traces: Traces | None,
    live: LiveRooms,
    serve: Callable[[Place, MessageLink], AbstractContextManager[None]],
    screens: RemoteScreens,
) -> RemoteRooms:
    """Listen for rooms' processes, start one that waits, and return what makes a room. Raises `SetupError`.

    Processes of this machine have a listener and a token of their own, so no other machine can take the place of one.

    `serve`: see `GatewayParts`. `screens`: of all these rooms.
    """
    require_server(settings.storage)
    token, opened_by = new_token(), room_mark(settings, start.command("", ""))
    listener: RemoteRoomListener

    adoptions = Adoptions(opened_by, clock)
    processes = RoomProcesses(
        lambda run_id: start.command(listener.url, run_id),
        clock,
        rooms_each=start.rooms_each,
        adoptions=adoptions,
    )
    listener = await stack.enter_async_context(RemoteRoomListener(processes.on_link, token, streams=screens.streams))
    address_file = link_file(settings.storage.data_dir)
    write_link(address_file, LinkAddress(listener.url, token))
    if start.listen is not None:
        elsewhere = RemoteRoomListener(processes.on_offer, start.token, at=start.listen, streams=screens.streams)
        await stack.enter_async_context(elsewhere)
        metrics.add_distant_rooms(lambda: processes.distant_rooms)
    history = SessionHistory(stores.database)

    async def speakers_of(session_id: SessionId) -> frozenset[str]:
        return frozenset(await history.speakers(session_id))

    # Servers of which nobody knows whether the last claim was raised.
    unfenced: set[int] = set()

    async def fence(guild_id: int) -> None:
        unfenced.add(guild_id)
        try:
            async with asyncio.timeout(FENCE_WITHIN_S), stores.database.writing() as connection:
                await claim_room(connection, guild_id)
        except (StoreError, TimeoutError) as error:
            log.warning("room_not_fenced", guild_id=guild_id, error_class=type(error).__name__)
        else:
            unfenced.discard(guild_id)

    async def newest(guild_id: int) -> int | None:
        if guild_id in unfenced:
            unfenced.discard(guild_id)
            return None
        try:
            async with asyncio.timeout(FENCE_WITHIN_S):
                return await newest_claim(stores.database, guild_id)
        except (StoreError, TimeoutError) as error:
            log.warning("newest_claim_unknown", guild_id=guild_id, error_class=type(error).__name__)
            return None

    async def require_database() -> None:
        try:
            async with asyncio.timeout(FENCE_WITHIN_S):
                await newest_claim(stores.database, 0)
        except TimeoutError as error:
            raise stores.database.dialect.failure(error) from error

    @contextmanager
    def serve_room(place: Place, link: MessageLink) -> Iterator[None]:
        with serve(place, link), screens.serve(place.guild_id, link):
            yield

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
        fence=fence,
        newest_claim=newest,
        require_database=require_database,
        serve=serve_room,
        figures=metrics.add_machines(clock),
        opened_by=opened_by,
        data_folder=folder_mark(address_file),
    )
    return RemoteRooms(partial(_room, parts), adoptions)


def _room(
    parts: GatewayParts, place: Place, listen: ListenRequest | None, *, adopted: AdoptedRoom | None = None
) -> RemoteRoom:
    return RemoteRoom(place, parts, listen, adopted=adopted)
