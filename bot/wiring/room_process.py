"""A room's process: everything that its rooms need, loaded before it is known which rooms these will be.

It opens no Discord client, no slash commands, no web pages and no retention: those are the gateway process's.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import structlog

from bot.background_task import background_task
from bot.clock import SystemClock
from bot.discord.endpoint import connector
from bot.errors import SetupError
from bot.health import Health
from bot.monitoring.loop_lag import measure_lag
from bot.monitoring.metrics import Metrics
from bot.participation.all_guilds import GuildParticipations
from bot.remote.link.gateway_link import GatewayLink
from bot.remote.link.hello import RoomIdentity
from bot.remote.link.link_file import folder_mark, link_file
from bot.remote.processes.room_machine import HAS_ROOM, LOADED
from bot.remote.room_side.remote_place import RemotePlace
from bot.remote.room_side.replicated_guild import (
    ReplicatedChoices,
    ReplicatedConsent,
    ReplicatedOptOuts,
    ReplicatedServerSettings,
)
from bot.remote.room_side.room_figures import ProcessFigures
from bot.remote.room_side.room_host import NOT_WANTED, ReplicatedStores, RoomHost
from bot.remote.room_side.room_log import RoomLog, RoomLogs
from bot.remote.room_side.room_publisher import RoomPublisher
from bot.remote.room_side.room_runner import RoomRunner
from bot.remote.room_side.served_screens import ServedScreens
from bot.room.room import Room
from bot.runtime_tuning import low_latency_interpreter, release_free_memory
from bot.screen.local_screens import LocalScreens
from bot.server_settings import ServerSettingsBook
from bot.store.claims import newest_claim
from bot.texts.text import Text
from bot.wiring.monitoring import PROCESS_TASKS
from bot.wiring.process_parts import ProcessParts, open_stores
from bot.wiring.recollection import open_language_models, recollection_of
from bot.wiring.screens import open_screens
from bot.wiring.services import open_room_models, room_services
from bot.wiring.speech_models import open_voices
from compaction.errors import StoreError
from voice.transport.paced_sender import running_paced_sender

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import tzinfo

    from bot.clock import Clock
    from bot.logs.output import LogStatus
    from bot.models.loaded_voices import LoadedVoices
    from bot.monitoring.measured_store import OnOperation
    from bot.remote.link.link_file import LinkAddress
    from bot.remote.messages.room_messages import OpenRoom
    from bot.screen.screens import Screens
    from bot.settings import StorageSettings
    from bot.store.database import Database
    from bot.store.sessions import Sessions
    from bot.wiring.process_parts import Stores
    from bot.wiring.recollection import LanguageModels
    from bot.wiring.services import RoomModels
    from bot.wiring.settings import BotSettings
    from voice.endpoint import Endpoint
    from voice.transport.paced_sender import PacedSender

log = structlog.get_logger()

# How long a process that is being loaded waits for a database that is away, or that the bot has still to bring up to
# date: so that it goes on at once, and not after the pause for the next one. Then it says why and ends, before it is
# killed (`bot.remote.processes.spare_pool.LOAD_WITHIN_S`).
DATABASE_WITHIN_S: Final = 150.0
DATABASE_PAUSE_S: Final = 2.0
# Less than the gateway process waits for the answer to its order, also if the room's facts come late: a process that
# does not answer is given up, one that says why is kept.
CLAIM_WITHIN_S: Final = 8.0

NEEDS_SERVER = Text(
    "Rooms in processes of their own need PostgreSQL, because one file of SQLite has one writer. Set "
    "ROOMTONE_DATABASE_URL (docs/postgresql.md), or run without --rooms."
)


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """Where a room's process finds the gateway process, and the number of the run that it was started for.

    `machine`: the name of this machine; empty if the gateway process runs here. `elsewhere`: the bot's rooms may run
    on other machines than the gateway process's. `find_again`: see `GatewayLink`.
    """

    url: str
    token: str
    run_id: str
    machine: str = ""
    elsewhere: bool = False
    find_again: Callable[[], LinkAddress] | None = None


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
    rooms: int = 1,
    tell: Callable[[str], None] = lambda _: None,
    logs: LogStatus | None = None,
) -> str:
    """Load everything, wait for rooms, run them, and return why one has ended. `rooms`: how many at once. `stop`: hand
    all of them over. `zone`: the time zone of times shown to people. `clock`: None: the system's. `pool`: see
    `open_recogniser`. `tell`: gets `LOADED` when it waits, and `HAS_ROOM`. `logs`: of this process, which a gateway
    process of another machine gets too.

    Raises `BotError`, `VoiceError` or `CompactionError` with a plain sentence.
    """
    require_server(settings.storage)
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        metrics = Metrics(Health(clock))
        stores = await open_stores_as_they_are(stack, settings, clock, stop, on_operation=metrics.on_store)
        if stores is None:
            return NOT_WANTED
        parts = ProcessParts(settings, stores, zone, clock, metrics)
        loaded = await _load_parts(stack, parts, machine=gateway.machine, pool=pool, logs=logs)
        stack.enter_context(low_latency_interpreter())
        await stack.enter_async_context(background_task(release_free_memory(clock.sleep), name="memory-release"))
        await stack.enter_async_context(background_task(measure_lag(metrics.on_lag, clock), name="loop-lag"))
        metrics.health.started(task for task in asyncio.all_tasks() if task.get_name().startswith(PROCESS_TASKS))
        runner = RoomRunner(
            partial(open_seat, parts, loaded, gateway),
            rooms,
            health=metrics.health,
            on_loaded=partial(tell, LOADED),
            on_room=partial(tell, HAS_ROOM),
        )
        return await runner.run(stop)


async def open_stores_as_they_are(
    stack: AsyncExitStack,
    settings: BotSettings,
    clock: Clock,
    stop: asyncio.Event,
    *,
    on_operation: OnOperation | None = None,
) -> Stores | None:
    """Open a database that the bot has open too: it is never migrated here. Waits while it is away or of another
    version; None: `stop` was set meanwhile. Raises `StoreError` after `DATABASE_WITHIN_S`.
    """
    waits_until, told = clock.monotonic() + DATABASE_WITHIN_S, ""
    while not stop.is_set():
        async with AsyncExitStack() as attempt:
            try:
                stores = await open_stores(attempt, settings, clock, on_operation=on_operation, migrates=False)
            except StoreError as error:
                if clock.monotonic() >= waits_until:
                    raise
                if str(error) != told:
                    told = str(error)
                    log.warning("room_process_waits_for_database", problem=error)
            else:
                await stack.enter_async_context(attempt.pop_all())
                return stores
        await clock.sleep(DATABASE_PAUSE_S)
    return None


@dataclass(frozen=True, slots=True)
class LoadedParts:
    """What all rooms of the process share. `servers`: gets the settings of each room's server, as long as it runs."""

    language: LanguageModels
    models: RoomModels
    voices: LoadedVoices
    servers: WeakSet[ServerSettingsBook]
    screens: Screens
    paced_sender: PacedSender | None
    in_cluster: bool
    logs: RoomLogs
    figures: ProcessFigures


async def _load_parts(
    stack: AsyncExitStack, parts: ProcessParts, *, machine: str, pool: Endpoint | None, logs: LogStatus | None
) -> LoadedParts:
    """Open what the rooms share. `machine`: see `GatewayAddress`. `pool`, `logs`: see `run_room_process`."""
    settings, clock, metrics = parts.settings, parts.clock, parts.metrics
    room_logs = RoomLogs()
    metrics.add_queue(lambda: room_logs.queue)
    if logs is not None and machine:
        stack.enter_context(logs.copied_to(room_logs.take))
    # Of the rooms now.
    servers: WeakSet[ServerSettingsBook] = WeakSet()
    voices = await stack.enter_async_context(open_voices(settings.speaking, settings.models, servers))
    language = await open_language_models(stack, parts, indexes=False)
    return LoadedParts(
        language=language,
        models=await open_room_models(stack, parts, language, pool=pool),
        voices=voices,
        servers=servers,
        screens=await open_screens(stack, settings, clock, on_call=metrics.on_model_call, elsewhere=bool(machine)),
        paced_sender=stack.enter_context(running_paced_sender()),
        in_cluster=pool is not None,
        logs=room_logs,
        figures=ProcessFigures(metrics.own_series, clock),
    )


async def claiming(sessions: Sessions, database: Database, guild_id: int, after: int | None) -> Sessions:
    """Return the sessions for a room that was accepted now: if it is given up before its claim, it gets none any more.

    `after`: the newest claim when it was decided who runs the room; None: the gateway process could not ask, so the
    newest one of now counts. Raises `StoreError`.
    """
    if after is None:
        try:
            async with asyncio.timeout(CLAIM_WITHIN_S):
                after = await newest_claim(database, guild_id)
        except TimeoutError as error:
            raise database.dialect.failure(error) from error
    return sessions.claiming_after(after)


@asynccontextmanager
async def open_seat(
    parts: ProcessParts,
    loaded: LoadedParts,
    gateway: GatewayAddress,
    emergency: bool,
) -> AsyncIterator[RoomHost]:
    """Yield what runs one room, with its link to the gateway process open. `emergency`: for a room that has lost its
    process. Raises `BotError`.

    All that is about a server is made for this room alone, so nothing of a room that was given up is in its successor.
    """
    settings, clock, health = parts.settings, parts.clock, parts.metrics.health
    identity = RoomIdentity(0, 0, run_id=gateway.run_id, machine=gateway.machine, emergency=emergency)
    link = GatewayLink(gateway.url, gateway.token, identity, find_again=gateway.find_again)
    address_file = link_file(settings.storage.data_dir)
    log = RoomLog(link, clock, is_same_log=lambda folder: folder == folder_mark(address_file))
    choices, opt_outs, consent = ReplicatedChoices(link), ReplicatedOptOuts(), ReplicatedConsent()
    replicated_servers = ReplicatedServerSettings(link)
    servers = ServerSettingsBook(replicated_servers)
    loaded.servers.add(servers)
    stores = replace(parts.stores, servers=servers, upkeeps=WeakSet())
    publisher = RoomPublisher(link, health, reports=(log.tell, partial(loaded.figures.tell, link)))
    participation = GuildParticipations(
        choices,
        opt_outs,
        settings.participation,
        wake_names=settings.brain.wake_names,
        clock=clock,
        asks=consent.asks_on,
    )
    own = replace(parts, stores=stores)
    services = room_services(
        own,
        loaded.models,
        await recollection_of(own, loaded.language, choices=choices, participation=participation),
        participation=participation,
        voices=loaded.voices,
        show_live=publisher.show,
        screens=loaded.screens,
        in_cluster=loaded.in_cluster,
        elsewhere=gateway.elsewhere,
    )
    place = RemotePlace(
        link,
        paced_sender=loaded.paced_sender,
        connector=partial(connector, settings.discord),
        require_e2ee=settings.discord.require_e2ee,
    )

    async def new_room(told: OpenRoom) -> Room:
        sessions = await claiming(services.memory.sessions, own.stores.database, told.guild_id, told.claims_after)
        return Room(place, replace(services, memory=replace(services.memory, sessions=sessions)), told.listen)

    host = RoomHost(
        link,
        ReplicatedStores(choices, opt_outs, consent, replicated_servers, servers, stores.people, stores.upkeeps),
        publisher,
        participation=participation,
        place=place,
        new_room=new_room,
        voices=loaded.voices,
        health=health,
        clock=clock,
    )
    # The log first: the tasks of the others write to it.
    with loaded.logs.of_room(log):
        async with ServedScreens(LocalScreens(loaded.screens), loaded.screens, link), link:
            yield host
