"""Opens what runs the rooms of the bot: in this process (`RoomsHere`), or in processes of their own (`RoomsApart`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bot.health import DegradedPart
from bot.remote.gateway_side.served_place import ServedPlaces
from bot.room.room import Room
from bot.room.supervisor import RoomSupervisor
from bot.store.claims import known_claim
from bot.texts.text import Text
from bot.wiring.recollection import watch_model
from bot.wiring.room_adoption import take_rooms_back
from bot.wiring.room_processes import open_room_processes
from bot.wiring.services import open_room_models, room_services
from bot.wiring.session_rejoining import end_open_session
from voice.transport.paced_sender import running_paced_sender

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AsyncExitStack

    from bot import events
    from bot.channel.port import Place
    from bot.discord.changes import Change
    from bot.discord.client import RoomtoneClient
    from bot.models.loaded_voices import LoadedVoices
    from bot.remote.gateway_side.remote_screens import RemoteScreens
    from bot.screen.screens import Screens
    from bot.shards import Shards
    from bot.wiring.bot_process import BotProcess
    from bot.wiring.process_parts import Stores
    from bot.wiring.recollection import Recollection
    from bot.wiring.room_processes import RemoteRooms, RoomStart
    from voice.endpoint import Endpoint
    from voice.transport.gateway import MainGateway
    from voice.transport.paced_sender import PacedSender


@dataclass(frozen=True, slots=True)
class RoomsHere:
    """Rooms of this process. `paced_sender` sends their audio; None: they send it themselves. `device`: where their
    speech model runs, in a sentence; None: they have none.
    """

    supervisor: RoomSupervisor
    paced_sender: PacedSender | None
    device: Text | None


@dataclass(frozen=True, slots=True)
class RoomsApart:
    """Rooms in processes of their own, which have their own `paced_sender` and `device`. `places`: what they know of
    Discord comes from here.
    """

    supervisor: RoomSupervisor
    remote: RemoteRooms
    places: ServedPlaces
    paced_sender: None = None
    device: None = None

    def tell_changes_of(self, client: RoomtoneClient) -> None:
        """From now on tell the rooms what Discord has changed."""

        def tell(change: Change) -> None:
            self.places.on_change(change.guild_id, at_once=change.moves, channels=change.channels)

        client.on_change = tell

    async def take_back(self, client: RoomtoneClient, stores: Stores, shards: Shards) -> None:
        """Take the rooms back that ran on while the bot was away."""
        await take_rooms_back(self.remote, client, self.supervisor, stores.sessions, stores.database, shards)


async def open_rooms_here(
    stack: AsyncExitStack,
    process: BotProcess,
    recollection: Recollection,
    *,
    voices: LoadedVoices,
    screens: Screens | None,
    observe: events.Observer,
    pool: Endpoint | None,
) -> RoomsHere:
    """Load or connect on `stack` what rooms of this process share. `pool`: see `open_recogniser`.

    Raises `BotError` or `VoiceError` when something needed is missing.
    """
    parts = process.parts
    models = await open_room_models(stack, parts, recollection.models, pool=pool)
    services = room_services(
        parts,
        models,
        recollection,
        participation=process.participation,
        voices=voices,
        show_live=process.dashboard.live.show,
        screens=screens,
        observe=observe,
        traces=process.traces,
        in_cluster=pool is not None,
    )
    supervisor = RoomSupervisor(
        lambda place, listen: Room(place, services, listen),
        clock=parts.clock,
        servers=parts.stores.servers,
        end_session=partial(end_open_session, parts.stores.sessions, process.lock),
    )
    paced_sender = stack.enter_context(running_paced_sender())
    if paced_sender is not None:
        parts.metrics.health.add_check(partial(_paced_sender_problems, paced_sender))
    return RoomsHere(supervisor, paced_sender, models.device)


def _paced_sender_problems(paced_sender: PacedSender) -> list[DegradedPart]:
    what, instead = Text("The process that sends my voice"), Text("I send it myself, less evenly when I am busy")
    return [] if paced_sender.outage is None else [DegradedPart(what, instead, paced_sender.outage)]


async def open_rooms_apart(
    stack: AsyncExitStack,
    process: BotProcess,
    recollection: Recollection,
    start: RoomStart,
    gateway_of: Callable[[Place], MainGateway],
    *,
    screens: RemoteScreens,
    observe: events.Observer,
) -> RoomsApart:
    """Begin to listen on `stack` for rooms' processes, and start one that waits. `start`: how rooms get processes.
    `gateway_of`: the connection to Discord that knows a place. Raises `SetupError`.
    """
    parts = process.parts
    watch_model(recollection.models, parts.metrics.health)
    places = ServedPlaces(gateway_of, partial(known_claim, parts.stores.database), clock=parts.clock)
    remote = await open_room_processes(
        stack,
        parts,
        start,
        lock=process.lock,
        participation=process.participation,
        screens=screens,
        serve=places.serve,
        live=process.dashboard.live,
        observe=observe,
        traces=process.traces,
    )
    process.dashboard.machine_loads = remote.machines
    supervisor = RoomSupervisor(
        remote.make,
        clock=parts.clock,
        servers=parts.stores.servers,
        leave_channel=places.leave_channel,
        end_session=partial(end_open_session, parts.stores.sessions, process.lock),
    )
    return RoomsApart(supervisor, remote, places)
