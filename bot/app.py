"""The composition root: builds the running bot from the settings and closes its parts in reverse order.

`running_bot` builds every part; no part is global.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.background_task import background_task
from bot.clock import SystemClock
from bot.discord.commands.catch_up import CatchUp
from bot.discord.commands.voice import VoiceCommands
from bot.discord.connection import connected, translated
from bot.discord.dashboard_access import DiscordDirectory
from bot.errors import crash_sentence
from bot.folder_lock import folder_lock
from bot.health import Health
from bot.logs import log_path
from bot.memory.retention import Retention
from bot.monitoring.metrics import Metrics
from bot.monitoring.traces import open_traces
from bot.participation.guild_participation import GuildParticipations
from bot.private_files import mend_permissions
from bot.remote.remote_screens import RemoteScreens
from bot.room.listen_only import stored_request
from bot.room.recap_renewal import RecapRenewal
from bot.runtime_tuning import low_latency_interpreter, release_free_memory
from bot.screen.local_screens import LocalScreens
from bot.settings import RESUME_WITHIN_S
from bot.shards import ONLY_SHARD
from bot.store.restore import remove_leftovers
from bot.texts.text import Text
from bot.wiring.commands import slash_commands
from bot.wiring.dashboard import history_for, open_dashboard
from bot.wiring.monitoring import RIVAL, open_monitoring
from bot.wiring.process_parts import ProcessParts, Stores, open_stores
from bot.wiring.recollection import open_language_models, recollection_of
from bot.wiring.rooms import RoomsApart, RoomsHere, open_rooms_apart, open_rooms_here
from bot.wiring.screens import open_pages, open_screens
from bot.wiring.speech_models import open_voices

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import tzinfo

    from bot import events
    from bot.channel.port import ListenRequest, Place
    from bot.clock import Clock
    from bot.dashboard.service import DashboardService
    from bot.discord.client import RoomtoneClient
    from bot.room.supervisor import RoomSupervisor
    from bot.settings import StorageSettings
    from bot.shards import Shards
    from bot.web.server import WebServer
    from bot.wiring.monitoring import Monitoring
    from bot.wiring.room_processes import RoomStart
    from bot.wiring.settings import BotSettings
    from compaction.model import SessionId
    from voice.endpoint import Endpoint
    from voice.transport.gateway import MainGateway
    from voice.transport.paced_sender import PacedSender

log = structlog.get_logger()

RESTORE_AGAIN = "The memory is as before the restore. Stop the bot and run `roomtone restore FILE` again."


@dataclass(frozen=True, slots=True)
class RunningBot:
    """The bot, connected to Discord. `supervisor` runs its rooms; `paced_sender` sends their audio.

    `dashboard_link`: logs one browser in to the dashboard; None: there is none. `web`: its pages. `device`: where its
    speech model runs, in a sentence; None: it has none in this process.
    """

    client: RoomtoneClient
    supervisor: RoomSupervisor
    paced_sender: PacedSender | None
    dashboard_link: str | None
    web: WebServer
    device: Text | None

    async def run_until(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. Raises `SetupError` if the connection to Discord is lost for good before that."""
        assert self.client.running is not None, "the client runs while the bot does"
        stopping = asyncio.create_task(stop.wait(), name="until-stopped")
        try:
            await asyncio.wait({stopping, self.client.running}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        if self.client.running.done() and not stop.is_set():
            running = self.client.running
            raise translated(None if running.cancelled() else running.exception())


@asynccontextmanager
async def running_bot(
    settings: BotSettings,
    *,
    observe: events.Observer,
    rejoin: bool = True,
    zone: tzinfo,
    clock: Clock | None = None,
    pool: Endpoint | None = None,
    shards: Shards = ONLY_SHARD,
    rooms: RoomStart | None = None,
) -> AsyncIterator[RunningBot]:
    """Start the bot and yield it. On exit the rooms end first and store their sessions; then the other parts close.

    `rejoin`: resume the sessions that a crashed process left open. `zone`: the time zone of times shown to people.
    `pool`: recognisers of the operator's cluster, asked before the bot's own. `shards`: those that this process serves.
    `rooms`: how rooms get processes of their own; None: they run in this process.

    Raises `BotError`, `VoiceError` or `CompactionError` with a plain sentence if something needed is missing.
    """
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        stack.enter_context(folder_lock(settings.storage.data_dir))
        _mend_folder(settings.storage)
        metrics, traces = Metrics(Health(clock)), await stack.enter_async_context(open_traces(clock))
        stores = await open_stores(stack, settings, clock, on_operation=metrics.on_store)
        parts = ProcessParts(settings, stores, zone, clock, metrics)
        monitoring = await _open_monitoring(stack, parts, shards)
        await stack.enter_async_context(_retention(parts, shards).running())
        participation = _participation(parts, shards)
        dashboard = await open_dashboard(stack, settings, stores.sessions, participation, clock, shards)
        voices = await stack.enter_async_context(open_voices(settings.speaking, settings.models, [stores.servers]))
        screens = await open_screens(stack, settings, clock) if rooms is None else None
        remote_screens = RemoteScreens()
        watching, web = await open_pages(
            stack,
            settings,
            participation,
            remote_screens if screens is None else LocalScreens(screens),
            screens or remote_screens,
            dashboard=dashboard,
            probes=monitoring.probes,
        )
        language = await open_language_models(stack, parts)
        recollection = await recollection_of(parts, language, choices=stores.guilds, participation=participation)
        dashboard.history = history_for(settings, stores.database, stores.turns, language.recall)
        metrics.add_queue(lambda: dashboard.live.queue)
        opened: RoomsHere | RoomsApart
        if rooms is None:
            opened = await open_rooms_here(
                stack,
                parts,
                recollection,
                participation=participation,
                voices=voices,
                screens=screens,
                live=dashboard.live,
                observe=observe,
                traces=traces,
                pool=pool,
            )
        else:

            def gateway_of(place: Place) -> MainGateway:
                return client.main_gateway(place)

            opened = await open_rooms_apart(
                stack,
                parts,
                recollection,
                rooms,
                gateway_of,
                participation=participation,
                screens=remote_screens,
                live=dashboard.live,
                observe=observe,
                traces=traces,
            )
        supervisor = opened.supervisor
        metrics.health.add_fault_check(supervisor.faults)
        paced_sender, device = (opened.paced_sender, opened.device) if isinstance(opened, RoomsHere) else (None, None)
        catch_up = CatchUp(recollection.readable.reader, recollection.readable.digests, now=clock.now)
        recaps = RecapRenewal(stores.sessions, recollection.readable.digests)
        commands = slash_commands(
            parts,
            participation,
            readable=recollection.readable,
            catch_up=catch_up,
            watching=watching,
            voice_commands=VoiceCommands(
                voices, stores.servers, supervisor, speech_to_speech=settings.speech_to_speech
            ),
            on_forgotten=partial(_show_forgotten, dashboard, recaps),
            in_cluster=pool is not None,
            elsewhere=rooms is not None and rooms.listen is not None,
        )
        client = await stack.enter_async_context(
            connected(
                settings.discord, supervisor, commands, paced_sender, participation, stores.servers, catch_up, shards
            )
        )
        _watch_connection(client, monitoring)
        if isinstance(opened, RoomsApart):
            opened.tell_changes_of(client)
        dashboard.directory = DiscordDirectory(client, settings.discord, stores.servers)
        await stack.enter_async_context(recaps.running(client.place))
        # Entered after the client, so that rooms end while the client is still connected.
        await stack.enter_async_context(supervisor)
        if rejoin and isinstance(opened, RoomsApart):
            await opened.take_back(client, stores, shards)
        if rejoin:
            await _rejoin(client, supervisor, stores, shards)
        stack.enter_context(low_latency_interpreter())
        await stack.enter_async_context(background_task(release_free_memory(clock.sleep), name="memory-release"))
        monitoring.started()
        yield RunningBot(client, supervisor, paced_sender, web.login_link if web.is_listening else None, web, device)


def _mend_folder(storage: StorageSettings) -> None:
    """Close the data folder of an older Roomtone to others, and remove what a killed restore has left there."""
    _make_private(storage)
    if remove_leftovers(storage.database_path):
        log.warning("restore_was_killed", remedy=RESTORE_AGAIN)


def _make_private(storage: StorageSettings) -> None:
    """Close the data folder of an older Roomtone to other users of the machine."""
    mended = mend_permissions(storage.data_dir)
    if mended.count:
        log.info("permissions_mended", count=mended.count)
    if mended.refused:
        log.warning(
            "permissions_not_mended",
            count=len(mended.refused),
            path=str(mended.refused[0]),
            remedy="Make the user that runs the bot the owner of the data folder.",
        )


async def _open_monitoring(stack: AsyncExitStack, parts: ProcessParts, shards: Shards) -> Monitoring:
    """Hold the database for this bot, and open monitoring, which tells whether another process holds it too."""
    database = parts.stores.database
    lock = await stack.enter_async_context(database.held_by_bot(shards))
    monitoring = await open_monitoring(stack, database, parts.settings.storage, parts.clock, parts.metrics)
    monitoring.health.add_fault_check(lambda: [RIVAL] if lock.has_rival else [])
    return monitoring


def _retention(parts: ProcessParts, shards: Shards) -> Retention:
    settings, stores = parts.settings, parts.stores
    return Retention(
        stores.database,
        settings.tiers,
        clock=parts.clock,
        log_folder=log_path(settings.storage.data_dir).parent,
        people=stores.people,
        in_use=stores.in_use,
        servers=stores.servers,
        shards=shards,
    )


def _participation(parts: ProcessParts, shards: Shards) -> GuildParticipations:
    settings, stores = parts.settings, parts.stores
    return GuildParticipations(
        stores.guilds,
        stores.opt_outs,
        settings.participation,
        wake_names=settings.brain.wake_names,
        clock=parts.clock,
        # A server may be stricter than the operator, never laxer.
        asks=lambda guild_id: settings.room.asks(guild_id) or stores.servers.of(guild_id).asks,
        serves=shards.serves,
    )


def _show_forgotten(dashboard: DashboardService, recaps: RecapRenewal) -> None:
    """Let go of what the dashboard and the recaps still have of somebody who was forgotten."""
    dashboard.live.reset()
    recaps.wake()


def _watch_connection(client: RoomtoneClient, monitoring: Monitoring) -> None:
    """Let monitoring and /status know when the connection to Discord is lost."""
    monitoring.checks.gateway = client.shard_losses
    monitoring.metrics.add_shards(client.shard_losses)
    monitoring.health.add_check(client.shard_losses.degraded_parts)


async def _rejoin(client: RoomtoneClient, supervisor: RoomSupervisor, stores: Stores, shards: Shards) -> None:
    """Rejoin the channels of sessions that a crashed process left open, if people are still there.

    Those of other shards belong to other processes, in which they may go on.
    """
    for session in await stores.sessions.unfinished(resume_within_s=RESUME_WITHIN_S):
        if session.guild_id is None or session.channel_id is None or not shards.serves(session.guild_id):
            continue
        if supervisor.place_of(session.guild_id) is not None:
            # It was taken back, or somebody has called the bot meanwhile.
            continue
        if not await client.admission.serves(session.guild_id):
            log.info("session_not_resumed", session_id=session.id, reason="guild_not_served")
            continue
        place = client.place(session.guild_id, session.channel_id)
        if place is None or all(person.is_bot for person in place.members()):
            log.info("session_not_resumed", session_id=session.id, reason="nobody_there")
            continue
        with client.logged_shard(session.guild_id):
            listen = stored_request(session.guild_id, stores.servers, session.id)
            await _rejoin_one(place, supervisor, session.id, listen)


async def _rejoin_one(
    place: Place, supervisor: RoomSupervisor, session_id: SessionId, listen: ListenRequest | None
) -> None:
    try:
        await supervisor.join(place, listen=listen)
    except Exception as error:  # noqa: BLE001 - a room that breaks, and has logged it, keeps no other from beginning
        log.warning("session_not_resumed", session_id=session_id, reason="not_joined", problem=error)
        await place.write(Text("I could not come back. {why}", why=crash_sentence(error)))
