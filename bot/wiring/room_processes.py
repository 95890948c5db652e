"""The gateway process's side of rooms in processes of their own: listens for them, starts them, makes their rooms."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from bot.remote.gateway_side.gateway_parts import GatewayParts
from bot.remote.gateway_side.remote_room import RemoteRoom
from bot.remote.gateway_side.room_fences import RoomFences
from bot.remote.link.link_file import LinkAddress, folder_mark, link_file, new_token, write_link
from bot.remote.link.listener import RemoteRoomListener
from bot.remote.processes.adoption import Adoptions
from bot.remote.processes.room_processes import RoomProcesses
from bot.runtime_tuning import allow_many_files
from bot.store.history import SessionHistory
from bot.wiring.monitoring import room_meter
from bot.wiring.room_mark import room_mark
from bot.wiring.room_process import require_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager, AsyncExitStack

    from bot import events
    from bot.channel.port import ListenRequest, Place
    from bot.dashboard.live import LiveRooms
    from bot.machine_load import MachineLoad
    from bot.monitoring.traces import Traces
    from bot.participation.all_guilds import GuildParticipations
    from bot.remote.gateway_side.remote_screens import RemoteScreens
    from bot.remote.link.address import RoomsAddress
    from bot.remote.link.message_link import MessageLink
    from bot.remote.processes.adoption import AdoptedRoom
    from bot.store.dialects.port import BotLock
    from bot.wiring.process_parts import ProcessParts

    # Returns what starts a room's process, for the address of this one and the number of the run.
    RoomCommand = Callable[[str, str], Sequence[str]]


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
    `adoptions`: rooms that ran on while the bot was away. `machines`: returns how loaded each machine is.
    """

    make: MakeRoom
    adoptions: Adoptions
    machines: Callable[[], Sequence[MachineLoad]]


class MakeRoom(Protocol):
    """Makes a room of another process."""

    def __call__(self, place: Place, listen: ListenRequest | None, *, adopted: AdoptedRoom | None = None) -> RemoteRoom:
        """Return a room for one start."""


async def open_room_processes(
    stack: AsyncExitStack,
    parts: ProcessParts,
    start: RoomStart,
    *,
    lock: BotLock,
    participation: GuildParticipations,
    screens: RemoteScreens,
    serve: Callable[[Place, MessageLink], AbstractContextManager[None]],
    live: LiveRooms,
    observe: events.Observer,
    traces: Traces | None,
) -> RemoteRooms:
    """Listen for rooms' processes, start one that waits, and return what makes a room. Raises `SetupError`.

    Processes of this machine have a listener and a token of their own, so no other machine can take the place of one.

    `lock`: of this process. `screens`: of all these rooms. `serve`: see `GatewayParts`. `live`: shows them on the
    dashboard.
    """
    settings, stores, clock, metrics = parts.settings, parts.stores, parts.clock, parts.metrics
    require_server(settings.storage)
    allow_many_files()
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
    metrics.add_machine_loads(processes.machines)
    fences = RoomFences(stores.database, lock)
    gateway_parts = GatewayParts(
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
        speakers_of=SessionHistory(stores.database).heard_or_quotable,
        fence=fences.fence,
        newest_claim=fences.newest_claim,
        require_database=fences.require_database,
        serve=partial(_serve, serve, screens),
        figures=metrics.add_machines(clock),
        opened_by=opened_by,
        data_folder=folder_mark(address_file),
    )
    return RemoteRooms(partial(_room, gateway_parts), adoptions, processes.machines)


@contextmanager
def _serve(
    serve_place: Callable[[Place, MessageLink], AbstractContextManager[None]],
    screens: RemoteScreens,
    place: Place,
    link: MessageLink,
) -> Iterator[None]:
    with serve_place(place, link), screens.serve(place.guild_id, link):
        yield


def _room(
    parts: GatewayParts, place: Place, listen: ListenRequest | None, *, adopted: AdoptedRoom | None = None
) -> RemoteRoom:
    return RemoteRoom(place, parts, listen, adopted=adopted)
