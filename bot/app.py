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
from bot.discord.commands.catch_up import CatchUp, add_catch_up
from bot.discord.commands.help import add_help
from bot.discord.commands.memory import add_memory_commands
from bot.discord.commands.participation import add_participation_commands
from bot.discord.commands.persona import add_persona
from bot.discord.commands.privacy import PrivacyFacts, add_privacy_commands
from bot.discord.commands.recall import RecallSearch, add_recall
from bot.discord.commands.recap import add_recap
from bot.discord.commands.rolling_context import MemoryDefaults, add_rolling_context
from bot.discord.commands.setting_sentences import OperatorSettings
from bot.discord.commands.settings import add_settings_command
from bot.discord.commands.transcript import add_transcript
from bot.discord.commands.voice import VoiceCommands, add_voice
from bot.discord.commands.watch import add_watch_commands
from bot.discord.connection import connected, translated
from bot.discord.dashboard_access import DiscordDirectory
from bot.errors import KNOWN_ERRORS
from bot.folder_lock import folder_lock
from bot.health import DegradedPart, Health
from bot.logs import log_path
from bot.memory.erasing import PersonEraser
from bot.memory.personal_data import PersonalData
from bot.memory.retention import Retention
from bot.monitoring.metrics import Metrics
from bot.monitoring.traces import open_traces
from bot.participation.guild_participation import GuildParticipations
from bot.private_files import mend_permissions
from bot.remote.remote_screens import RemoteScreens
from bot.remote.served_place import ServedPlaces
from bot.room.notice import ListeningNotice
from bot.room.recap_renewal import RecapRenewal
from bot.room.room import Room
from bot.room.supervisor import RoomSupervisor
from bot.runtime_tuning import low_latency_interpreter, release_free_memory
from bot.screen.local_screens import LocalScreens
from bot.settings import RESUME_WITHIN_S
from bot.shards import ONLY_SHARD
from bot.store.restore import remove_leftovers
from bot.texts.text import Text, sentence_of
from bot.wiring.dashboard import history_for, open_dashboard
from bot.wiring.forgetting import ForgettingRooms, PersonFactsEverywhere
from bot.wiring.monitoring import RIVAL, open_monitoring
from bot.wiring.process_parts import ProcessParts, open_stores
from bot.wiring.recipients import recipients
from bot.wiring.recollection import open_language_models, recollection_of, watch_model
from bot.wiring.room_adoption import take_rooms_back
from bot.wiring.room_processes import open_room_processes
from bot.wiring.screens import open_pages, open_screens
from bot.wiring.services import open_room_models, room_services
from bot.wiring.speech_models import open_voices
from voice.transport.paced_sender import running_paced_sender

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import tzinfo

    from bot import events
    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.discord.client import AddCommands, RoomtoneClient
    from bot.memory.readable_memory import ReadableMemory
    from bot.settings import StorageSettings
    from bot.shards import Shards
    from bot.store.guilds import GuildStore
    from bot.store.sessions import Sessions
    from bot.web.server import WebServer
    from bot.wiring.process_parts import Stores
    from bot.wiring.room_processes import RemoteRooms, RoomStart
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
        _make_private(settings.storage)
        if remove_leftovers(settings.storage.database_path):
            log.warning("restore_was_killed", remedy=RESTORE_AGAIN)
        metrics, traces = Metrics(Health(clock)), await stack.enter_async_context(open_traces(clock))
        stores = await open_stores(stack, settings, clock, on_operation=metrics.on_store)
        lock = await stack.enter_async_context(stores.database.held_by_bot(shards))
        monitoring = await open_monitoring(stack, stores.database, settings.storage, clock, metrics)
        health = monitoring.health
        health.add_fault_check(lambda: [RIVAL] if lock.has_rival else [])
        await stack.enter_async_context(_retention(settings, stores, clock, shards).running())
        participation = GuildParticipations(
            stores.guilds,
            stores.opt_outs,
            settings.participation,
            wake_names=settings.brain.wake_names,
            clock=clock,
            # A server may be stricter than the operator, never laxer.
            asks=lambda guild_id: settings.room.asks(guild_id) or stores.servers.of(guild_id).asks,
            serves=shards.serves,
        )
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
        parts = ProcessParts(settings, stores, zone, clock, metrics)
        language = await open_language_models(stack, parts)
        recollection = await recollection_of(parts, language, choices=stores.guilds, participation=participation)
        readable = recollection.readable
        dashboard.history = history_for(settings, stores.database, stores.turns, language.recall)
        metrics.add_queue(lambda: dashboard.live.queue)
        paced_sender: PacedSender | None = None
        places: ServedPlaces | None = None
        remote: RemoteRooms | None = None
        device: Text | None = None
        if rooms is None:
            models = await open_room_models(stack, parts, language, pool=pool)
            device = models.speech.device_sentence()
            services = room_services(
                parts,
                models,
                recollection,
                participation=participation,
                voices=voices,
                show_live=dashboard.live.show,
                screens=screens,
                observe=observe,
                traces=traces,
                in_cluster=pool is not None,
            )
            supervisor = RoomSupervisor(
                lambda place, listen: Room(place, services, listen), clock=clock, servers=stores.servers
            )
            paced_sender = stack.enter_context(running_paced_sender())
            if paced_sender is not None:
                health.add_check(partial(_paced_sender_problems, paced_sender))
        else:
            watch_model(language, health)

            def gateway_of(place: Place) -> MainGateway:
                return client.main_gateway(place)

            places = ServedPlaces(gateway_of, clock=clock)
            remote = await open_room_processes(
                stack,
                settings,
                stores,
                rooms,
                participation=participation,
                observe=observe,
                clock=clock,
                metrics=metrics,
                traces=traces,
                live=dashboard.live,
                serve=places.serve,
                screens=remote_screens,
            )
            supervisor = RoomSupervisor(
                remote.make, clock=clock, servers=stores.servers, left_behind=places.left_behind
            )
        health.add_fault_check(supervisor.faults)
        voice_commands = VoiceCommands(voices, stores.servers, supervisor, speech_to_speech=settings.realtime.enabled)
        catch_up = CatchUp(readable.reader, readable.digests, now=clock.now)
        recaps = RecapRenewal(stores.sessions, readable.digests)

        def forgotten() -> None:
            dashboard.live.reset()
            recaps.wake()

        commands: list[AddCommands] = [
            _rolling_context(settings, stores.guilds),
            partial(add_memory_commands, people=PersonFactsEverywhere(stores.people, stores.upkeeps)),
            _privacy(
                settings,
                stores,
                participation,
                clock,
                forgotten,
                in_cluster=pool is not None,
                elsewhere=rooms is not None and rooms.listen is not None,
            ),
            partial(add_participation_commands, participation=participation),
            partial(add_watch_commands, watching=watching),
            partial(add_persona, choices=stores.guilds),
            partial(
                add_settings_command,
                servers=stores.servers,
                participation=participation,
                operator=_operator(settings),
                voice_commands=voice_commands,
            ),
            partial(add_voice, commands=voice_commands),
            add_help,
            *_memory_commands(readable, catch_up, zone, clock.now),
        ]
        client = await stack.enter_async_context(
            connected(
                settings.discord, supervisor, commands, paced_sender, participation, stores.servers, catch_up, shards
            )
        )
        monitoring.checks.gateway = client.shard_losses
        metrics.add_shards(client.shard_losses)
        health.add_check(client.shard_losses.degraded_parts)
        if places is not None:
            served = places
            client.on_change = lambda change: served.on_change(
                change.guild_id, at_once=change.moves, channels=change.channels
            )
        dashboard.directory = DiscordDirectory(client, settings.discord, stores.servers)
        await stack.enter_async_context(recaps.running(client.place))
        # Entered after the client, so that rooms end while the client is still connected.
        await stack.enter_async_context(supervisor)
        if rejoin and remote is not None:
            await take_rooms_back(remote, client, supervisor, stores.sessions, stores.database, shards)
        if rejoin:
            await _rejoin(client, supervisor, stores.sessions, shards)
        stack.enter_context(low_latency_interpreter())
        await stack.enter_async_context(background_task(release_free_memory(clock.sleep), name="memory-release"))
        monitoring.started()
        yield RunningBot(client, supervisor, paced_sender, web.login_link if web.is_listening else None, web, device)


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


def _operator(settings: BotSettings) -> OperatorSettings:
    return OperatorSettings(
        leave_when_empty_s=settings.room.leave_when_empty_s,
        retention_days=settings.tiers.retention_days,
        asks=settings.room.asks,
    )


def _retention(settings: BotSettings, stores: Stores, clock: Clock, shards: Shards) -> Retention:
    return Retention(
        stores.database,
        settings.tiers,
        clock=clock,
        log_folder=log_path(settings.storage.data_dir).parent,
        people=stores.people,
        in_use=stores.in_use,
        servers=stores.servers,
        shards=shards,
    )


def _privacy(
    settings: BotSettings,
    stores: Stores,
    participation: GuildParticipations,
    clock: Clock,
    on_forgotten: Callable[[], None],
    *,
    in_cluster: bool,
    elsewhere: bool,
) -> AddCommands:
    eraser = PersonEraser(stores.database, clock, log_folder=log_path(settings.storage.data_dir).parent)
    rooms = ForgettingRooms(participation, stores.upkeeps, stores.servers, on_forgotten=on_forgotten)
    records = PersonalData(stores.database, eraser, stores.people, rooms=rooms)
    facts = PrivacyFacts(
        recipients=ListeningNotice("", recipients(settings, in_cluster=in_cluster, elsewhere=elsewhere)).facts,
        retention_days=lambda guild_id: _operator(settings).kept_days(stores.servers.of(guild_id)),
        keeps_facts=settings.people.enabled,
        logs_speech=settings.logs.speech,
        on_machines=elsewhere,
    )
    return partial(add_privacy_commands, records=records, facts=facts)


def _memory_commands(
    memory: ReadableMemory, catch_up: CatchUp, zone: tzinfo, now: Callable[[], float]
) -> list[AddCommands]:
    """Return what adds the commands that show what was said."""
    return [
        partial(add_catch_up, catch_up=catch_up),
        partial(add_recall, search=RecallSearch(memory.recall, memory.reader, now=now, zone=zone)),
        partial(add_recap, reader=memory.reader, digests=memory.digests, zone=zone),
        partial(add_transcript, reader=memory.reader, zone=zone),
    ]


def _rolling_context(settings: BotSettings, guilds: GuildStore) -> AddCommands:
    defaults = MemoryDefaults(
        mode=settings.compaction.mode,
        budget_enabled=settings.budget.enabled,
        max_input_tokens=settings.budget.max_input_tokens,
        searchable=settings.recall.enabled,
    )
    return partial(add_rolling_context, choices=guilds, defaults=defaults)


def _paced_sender_problems(paced_sender: PacedSender) -> list[DegradedPart]:
    what, instead = Text("The process that sends my voice"), Text("I send it myself, less evenly when I am busy")
    return [] if paced_sender.outage is None else [DegradedPart(what, instead, paced_sender.outage)]


async def _rejoin(client: RoomtoneClient, supervisor: RoomSupervisor, sessions: Sessions, shards: Shards) -> None:
    """Rejoin the channels of sessions that a crashed process left open, if people are still there.

    Those of other shards belong to other processes, in which they may go on.
    """
    for session in await sessions.unfinished(resume_within_s=RESUME_WITHIN_S):
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
            await _rejoin_one(place, supervisor, session.id)


async def _rejoin_one(place: Place, supervisor: RoomSupervisor, session_id: SessionId) -> None:
    try:
        await supervisor.join(place)
    except KNOWN_ERRORS as error:
        log.warning("session_not_resumed", session_id=session_id, reason="not_joined", problem=error)
        await place.write(Text("I could not come back. {why}", why=sentence_of(error)))
