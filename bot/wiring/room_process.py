"""A room's process: everything that one room needs, loaded before it is known which room it will be.

It opens no Discord client, no slash commands, no web pages and no retention: those are the gateway process's.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.clock import SystemClock
from bot.discord.endpoint import connector
from bot.errors import SetupError
from bot.events import ignore_event
from bot.health import Health
from bot.monitoring.metrics import Metrics
from bot.participation.guild_participation import GuildParticipations
from bot.remote.gateway_link import GatewayLink
from bot.remote.hello import RoomIdentity
from bot.remote.remote_place import RemotePlace
from bot.remote.room_host import RoomHost, ToldStores
from bot.remote.room_machine import HAS_ROOM, LOADED
from bot.remote.told_guild import ToldChoices, ToldOptOuts, ToldServerSettings
from bot.room.room import Room
from bot.runtime_tuning import low_latency_interpreter
from bot.server_settings import ServerSettingsBook
from bot.texts.text import Text
from bot.wiring.monitoring import PROCESS_TASKS
from bot.wiring.services import open_recollection, open_services, open_stores
from bot.wiring.speech_models import open_voices
from voice.transport.metronome import running_metronome

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from bot.clock import Clock
    from bot.remote.room_messages import OpenRoom
    from bot.settings import StorageSettings
    from bot.wiring.settings import BotSettings
    from voice.endpoint import Endpoint

log = structlog.get_logger()

NEEDS_SERVER = Text(
    "Rooms in processes of their own need PostgreSQL, because one file of SQLite has one writer. Set "
    "ROOMTONE_DATABASE_URL (docs/operations.md), or run without --rooms."
)


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """Where a room's process finds the gateway process, and the number of the run that it was started for.

    `machine`: the name of this machine; empty if the gateway process runs here.
    """

    url: str
    token: str
    run_id: str
    machine: str = ""


def require_server(storage: StorageSettings) -> None:
    """Raise `SetupError` unless several processes can write to the database."""
    if storage.database_url is None:
        raise SetupError(NEEDS_SERVER)


async def run_room_process(
    settings: BotSettings,
    gateway: GatewayAddress,
    *,
    stop: asyncio.Event,
    zone: tzinfo,
    clock: Clock | None = None,
    pool: Endpoint | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> str:
    """Load everything, wait for a room, run it, and return why it has ended. `stop`: hand the room over. `tell`: gets
    `LOADED` when it waits, and `HAS_ROOM`.

    Raises `BotError`, `VoiceError` or `CompactionError` with a plain sentence.
    """
    require_server(settings.storage)
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        link = GatewayLink(
            gateway.url, gateway.token, RoomIdentity(0, 0, run_id=gateway.run_id, machine=gateway.machine)
        )
        metrics = Metrics(Health(clock))
        choices, opt_outs, told_servers = ToldChoices(link), ToldOptOuts(), ToldServerSettings(link)
        servers = ServerSettingsBook(told_servers)
        stores = replace(await open_stores(stack, settings, clock), servers=servers)
        told = ToldStores(choices, opt_outs, told_servers, servers, stores.people, stores.upkeeps)
        host = RoomHost(link, told, health=metrics.health, clock=clock)
        participation = GuildParticipations(
            choices,
            opt_outs,
            settings.participation,
            wake_names=settings.brain.wake_names,
            clock=clock,
            asks=host.asks,
        )
        voices = await stack.enter_async_context(open_voices(settings.speaking, settings.models, servers))
        recollection = await open_recollection(
            stack,
            settings,
            stores,
            choices=choices,
            participation=participation,
            zone=zone,
            clock=clock,
            metrics=metrics,
            indexes=False,
        )
        services = await open_services(
            stack,
            settings,
            stores,
            recollection,
            participation=participation,
            screens=None,
            observe=ignore_event,
            zone=zone,
            clock=clock,
            metrics=metrics,
            show_live=host.show,
            voices=voices,
            pool=pool,
        )
        place = RemotePlace(
            link,
            metronome=stack.enter_context(running_metronome()),
            connector=partial(connector, settings.discord),
            require_e2ee=settings.discord.require_e2ee,
        )

        def new_room(told: OpenRoom) -> Room:
            return Room(place, services, told.listen)

        host.prepare(participation, place.begin, new_room, voices, place.hand_over)
        stack.enter_context(low_latency_interpreter())
        metrics.health.started(task for task in asyncio.all_tasks() if task.get_name().startswith(PROCESS_TASKS))
        await stack.enter_async_context(link)
        tell(LOADED)
        return await host.run(stop, partial(tell, HAS_ROOM))
