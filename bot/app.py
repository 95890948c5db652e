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

from bot.background_task import background_task, owned_task
from bot.clock import SystemClock
from bot.dashboard.history import StoredHistory
from bot.discord.commands.catch_up import CatchUp
from bot.discord.commands.voice import VoiceCommands
from bot.discord.connection import connected, translated
from bot.discord.dashboard_access import DiscordDirectory
from bot.errors import FencedError
from bot.room.recap import RecapRenewal
from bot.room.transcript_expiry import TranscriptExpiry
from bot.runtime_tuning import low_latency_interpreter, release_free_memory
from bot.shards import ONLY_SHARD
from bot.wiring.bot_process import open_bot_process
from bot.wiring.commands import slash_commands
from bot.wiring.recollection import open_language_models, recollection_of
from bot.wiring.rooms import open_rooms
from bot.wiring.screens import open_pages, open_screens
from bot.wiring.session_rejoining import rejoin_sessions
from bot.wiring.speech_models import open_voices

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import tzinfo

    from bot import events
    from bot.clock import Clock
    from bot.dashboard.service import DashboardService
    from bot.discord.client import RoomtoneClient
    from bot.memory.readable_memory import ReadableMemory
    from bot.models.loaded_voices import LoadedVoices
    from bot.room.supervisor import RoomSupervisor
    from bot.screen.watch_service import WatchService
    from bot.shards import Shards
    from bot.store.dialects.port import BotLock
    from bot.texts.text import Text
    from bot.web.server import WebServer
    from bot.wiring.bot_process import BotProcess
    from bot.wiring.monitoring import Monitoring
    from bot.wiring.recollection import Recollection
    from bot.wiring.rooms import OpenedRooms
    from bot.wiring.settings import BotSettings
    from voice.transport.paced_sender import PacedSender

log = structlog.get_logger()

FENCED = "Another process of this bot serves these servers now, so this one has ended."


@dataclass(frozen=True, slots=True)
class RunningBot:
    """The bot, connected to Discord. `supervisor` runs its rooms; `paced_sender` sends their audio.

    `dashboard_link`: logs one browser in to the dashboard; None: there is none. `web`: its pages. `device`: where its
    speech model runs, in a sentence; None: it has none in this process. `lock`: of its servers.
    """

    client: RoomtoneClient
    supervisor: RoomSupervisor
    paced_sender: PacedSender | None
    dashboard_link: str | None
    web: WebServer
    device: Text | None
    lock: BotLock

    async def run_until(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. Raises `SetupError` if the connection to Discord is lost for good before that, and
        `FencedError` if another process has its servers now.
        """
        assert self.client.running is not None, "the client runs while the bot does"
        async with (
            owned_task(stop.wait(), name="until-stopped") as stopping,
            owned_task(self.lock.taken_over(), name="until-taken-over") as fenced,
        ):
            await asyncio.wait({stopping, fenced, self.client.running}, return_when=asyncio.FIRST_COMPLETED)
            if fenced.done() and not stop.is_set():
                raise FencedError(FENCED)
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
    shards: Shards = ONLY_SHARD,
    takes_over: bool = False,
) -> AsyncIterator[RunningBot]:
    """Start the bot and yield it. On exit the rooms end first and store their sessions; then the other parts close.

    `observe`: is told what happens in the rooms (`bot.events`). `rejoin`: resume the sessions that a crashed process
    left open. `zone`: the time zone of times shown to people. `clock`: None: the system's. `shards`: those that this
    process serves. `takes_over`: a process that still has them was given up (`Dialect.held_by_bot`).

    Raises `BotError`, `VoiceError` or `CompactionError` with a plain sentence if something needed is missing.
    """
    async with AsyncExitStack() as stack:
        process = await open_bot_process(
            stack, settings, zone=zone, clock=clock or SystemClock(), shards=shards, takes_over=takes_over
        )
        parts = process.parts
        voices = await stack.enter_async_context(
            open_voices(settings.speaking, settings.models, [parts.stores.servers])
        )
        screens = await open_screens(stack, settings, parts.clock, on_call=parts.metrics.on_model_call)
        watching, web = await open_pages(
            stack,
            settings,
            process.participation,
            screens,
            dashboard=process.dashboard,
            probes=process.monitoring.probes,
        )
        recollection = await _open_recollection(stack, process)
        rooms = await open_rooms(stack, process, recollection, voices=voices, screens=screens, observe=observe)
        recaps = RecapRenewal(parts.stores.sessions, recollection.readable.digests)
        client = await _connect(
            stack,
            process,
            recollection.readable,
            rooms,
            voices=voices,
            watching=watching,
            recaps=recaps,
        )
        await _begin_work(stack, process, client, rooms.supervisor, recaps, rejoin=rejoin)
        yield RunningBot(
            client,
            rooms.supervisor,
            rooms.paced_sender,
            dashboard_link=web.login_link if web.is_listening else None,
            web=web,
            device=rooms.device,
            lock=process.lock,
        )


async def _open_recollection(stack: AsyncExitStack, process: BotProcess) -> Recollection:
    """Open what reads and summarises the memory, and give the dashboard the stored sessions."""
    parts = process.parts
    language = await open_language_models(stack, parts, process.shards)
    process.dashboard.history = StoredHistory(parts.stores.database, parts.stores.turns, language.recall)
    return await recollection_of(parts, language, participation=process.participation)


async def _connect(
    stack: AsyncExitStack,
    process: BotProcess,
    readable: ReadableMemory,
    rooms: OpenedRooms,
    *,
    voices: LoadedVoices,
    watching: WatchService,
    recaps: RecapRenewal,
) -> RoomtoneClient:
    """Connect to Discord, with the slash commands."""
    parts = process.parts
    settings, servers = parts.settings, parts.stores.servers
    catch_up = CatchUp(readable.reader, readable.digests, now=parts.clock.now)
    commands = slash_commands(
        parts,
        process.participation,
        readable=readable,
        catch_up=catch_up,
        watching=watching,
        voice_commands=VoiceCommands(voices, rooms.supervisor, speech_to_speech=settings.speech_to_speech),
        on_forgotten=partial(_show_forgotten, process.dashboard, recaps),
    )
    connecting = connected(
        settings.discord,
        rooms.supervisor,
        commands,
        paced_sender=rooms.paced_sender,
        consents=process.participation,
        silences=process.participation,
        servers=servers,
        catch_up=catch_up,
        shards=process.shards,
    )
    return await stack.enter_async_context(connecting)


def _show_forgotten(dashboard: DashboardService, recaps: RecapRenewal) -> None:
    """Let go of what the dashboard and the recaps still have of somebody who was forgotten."""
    dashboard.live.reset()
    recaps.wake()


async def _begin_work(
    stack: AsyncExitStack,
    process: BotProcess,
    client: RoomtoneClient,
    supervisor: RoomSupervisor,
    recaps: RecapRenewal,
    *,
    rejoin: bool,
) -> None:
    """Let people call the bot, and let it go on (`rejoin`) with the sessions that were interrupted."""
    parts = process.parts
    parts.metrics.health.add_fault_check(supervisor.faults)
    _watch_connection(client, process.monitoring)
    process.dashboard.directory = DiscordDirectory(
        client, parts.settings.discord, parts.stores.servers, monotonic=parts.clock.monotonic
    )
    await stack.enter_async_context(recaps.running(client.place))
    expiry = TranscriptExpiry(parts.stores.sessions.posted_transcripts)
    await stack.enter_async_context(expiry.running(client.delete_message))
    # Entered after the client, so that rooms end while the client is still connected.
    await stack.enter_async_context(supervisor)
    if rejoin:
        await rejoin_sessions(client, supervisor, parts.stores, process.shards)
    stack.enter_context(low_latency_interpreter())
    await stack.enter_async_context(background_task(release_free_memory(parts.clock.sleep), name="memory-release"))
    process.monitoring.started()


def _watch_connection(client: RoomtoneClient, monitoring: Monitoring) -> None:
    """Let monitoring and /status know when the connection to Discord is lost."""
    monitoring.checks.gateway = client.shard_losses
    monitoring.metrics.add_shards(client.shard_losses)
    monitoring.health.add_check(client.shard_losses.degraded_parts)
