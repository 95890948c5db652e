"""The composition root: builds the running bot from the settings and closes its parts in reverse order.

`running_bot` builds every part; no part is global.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.background_task import background_task, owned_task
from bot.clock import SystemClock
from bot.dashboard.discord_login import DiscordLogin
from bot.dashboard.history import StoredHistory
from bot.dashboard.servers import OperatorServers
from bot.dashboard.service import DashboardService
from bot.discord.commands.voice import VoiceCommands
from bot.discord.connection import connected, follow_decisions, translated
from bot.discord.dashboard_access import DiscordDirectory
from bot.discord.endpoint import USER_AGENT
from bot.embedding.factory import open_embedder
from bot.errors import FencedError
from bot.health import Health
from bot.monitoring.metrics import Metrics
from bot.monitoring.service_checks import HealthProbes
from bot.posts.due_reminders import DueReminders
from bot.posts.renewal import PostedRenewal
from bot.posts.webhooks import SessionWebhooks
from bot.runtime_tuning import low_latency_interpreter, release_free_memory
from bot.shards import ONLY_SHARD, Shards, Succession
from bot.webhook_sender import WebhookSender
from bot.wiring.commands import slash_commands
from bot.wiring.memory import open_recollection
from bot.wiring.pages import note_start, open_pages, open_screens
from bot.wiring.process import BotProcess, open_bot_process, take_data_folder
from bot.wiring.rooms import OpenedRooms, open_rooms, rejoin_sessions
from bot.wiring.services import open_speech_models
from bot.wiring.speech_models import open_voices

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import tzinfo

    from bot import events
    from bot.discord.client import RoomtoneClient
    from bot.llm.fallback import FallbackModel
    from bot.memory.personal_recall import MemoryReaders
    from bot.memory.recall import Recall
    from bot.models.loaded_voices import LoadedVoices
    from bot.room.rooms import Rooms
    from bot.store.dialects.port import BotLock
    from bot.texts.text import Text
    from bot.web.server import WebServer
    from bot.web.watching import WatchService
    from bot.wiring.settings import BotSettings
    from voice.transport.paced_sender import PacedSender

log = structlog.get_logger()

FENCED = "Another process of this bot serves these servers now, so this one has ended."


@dataclass(frozen=True, slots=True)
class RunningBot:
    """The bot, connected to Discord. `rooms`: those of its servers; `paced_sender` sends their audio.

    `dashboard_link`: logs one browser in to the dashboard; None: there is none. `web`: its pages. `device`: where its
    speech model runs, in a sentence; None: it has none in this process. `health`: what is wrong. `lock`: of its
    servers. `model`: the language model; None: there is none.
    """

    client: RoomtoneClient
    rooms: Rooms
    paced_sender: PacedSender | None
    dashboard_link: str | None
    web: WebServer
    device: Text | None
    health: Health
    lock: BotLock
    model: FallbackModel | None

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
    shards: Shards = ONLY_SHARD,
    succession: Succession = Succession.REFUSES,
    on_loaded: Callable[[], None] = lambda: None,
) -> AsyncIterator[RunningBot]:
    """Start the bot and yield it. On exit the rooms end first and store their sessions; then the other parts close.

    `observe`: is told what happens in the rooms (`bot.events`). `rejoin`: resume the sessions that a crashed process
    left open. `zone`: the time zone of times shown to people. `shards`: those that this process serves. `succession`:
    what becomes of another one that has them. `on_loaded`: called when all models are loaded, before that other one is
    waited for.

    Raises `BotError`, `VoiceError` or `CompactionError` with a plain sentence if something needed is missing.
    """
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        take_data_folder(stack, settings.storage)
        health = Health(clock)
        metrics = Metrics(health)
        # First, as they take longest: while a process loads, the one that it follows serves the shards.
        speech = await open_speech_models(stack, settings, metrics, health)
        embedder = await stack.enter_async_context(
            open_embedder(settings.recall, models=settings.models, llm=settings.llm)
        )
        on_loaded()
        process = await open_bot_process(
            stack, settings, metrics, health, zone=zone, clock=clock, shards=shards, succession=succession
        )
        parts = process.parts
        voices = await stack.enter_async_context(
            open_voices(settings.speaking, settings.models, [parts.stores.servers], settings.tuning)
        )
        screens = await open_screens(stack, settings, parts.clock, meter=parts.metrics)
        recollection = await open_recollection(stack, parts, process.participation, shards, embedder=embedder)
        dashboard = _dashboard(process, recollection.recall)
        watching, web = await open_pages(
            stack, settings, screens, health, dashboard=dashboard, probes=HealthProbes(health, metrics)
        )
        opened = await open_rooms(
            stack, process, recollection, speech=speech, voices=voices, screens=screens, observe=observe
        )
        posts = PostedRenewal(parts.stores.sessions, recollection.readable, zone=zone)
        sender = WebhookSender(private=settings.room.private_webhooks, user_agent=USER_AGENT, clock=clock)
        client = await _connect(
            stack,
            process,
            recollection.readable,
            opened,
            voices=voices,
            watching=watching,
            posts=posts,
            webhooks=sender,
        )
        webhooks = SessionWebhooks(
            parts.stores.sessions,
            recollection.readable,
            parts.stores.servers,
            sender,
            client,
            shards=shards,
            zone=zone,
            clock=clock,
        )
        await _begin_work(stack, process, client, opened.rooms, dashboard, posts, webhooks, rejoin=rejoin)
        yield RunningBot(
            client,
            opened.rooms,
            opened.paced_sender,
            dashboard_link=web.login_link if web.is_listening else None,
            web=web,
            device=speech.device,
            health=health,
            lock=process.lock,
            model=recollection.model,
        )


def _dashboard(process: BotProcess, recall: Recall) -> DashboardService:
    """Return the dashboard of a process. `app` gives it the way to Discord later."""
    settings, stores, clock = process.parts.settings, process.parts.stores, process.parts.clock
    secret, login = settings.discord.client_secret, None
    if secret is not None and secret.get_secret_value().strip():
        login = DiscordLogin(secret, api_base=settings.discord.api_base, clock=clock)
    return DashboardService(
        process.live,
        stores.sessions,
        process.participation,
        StoredHistory(stores.database, stores.turns, recall),
        OperatorServers(process.spending, stores.admissions),
        clock=clock,
        discord_login=login,
        shards=process.shards,
    )


async def _connect(
    stack: AsyncExitStack,
    process: BotProcess,
    readable: MemoryReaders,
    opened: OpenedRooms,
    *,
    voices: LoadedVoices,
    watching: WatchService,
    posts: PostedRenewal,
    webhooks: WebhookSender,
) -> RoomtoneClient:
    """Connect to Discord, with the slash commands."""
    parts = process.parts
    settings, servers = parts.settings, parts.stores.servers
    commands = slash_commands(
        parts,
        process.participation,
        readable=readable,
        watching=watching,
        voice_commands=VoiceCommands(voices, opened.rooms, speech_to_speech=settings.speech_to_speech),
        posts=posts,
        webhooks=webhooks,
    )
    connecting = connected(
        settings.discord,
        opened.rooms,
        commands,
        paced_sender=opened.paced_sender,
        servers=servers,
        shards=process.shards,
        decided=await parts.stores.admissions.all(),
    )
    return await stack.enter_async_context(connecting)


async def _begin_work(
    stack: AsyncExitStack,
    process: BotProcess,
    client: RoomtoneClient,
    rooms: Rooms,
    dashboard: DashboardService,
    posts: PostedRenewal,
    webhooks: SessionWebhooks,
    *,
    rejoin: bool,
) -> None:
    """Let people call the bot, and let it go on (`rejoin`) with the sessions that were interrupted."""
    parts = process.parts
    parts.health.rooms = rooms.faults
    parts.metrics.add_shards(process.shards, client.shard_losses.away)
    parts.health.add_check(client.shard_losses.faults)
    dashboard.directory = DiscordDirectory(client, parts.stores.servers, clock=parts.clock)
    await stack.enter_async_context(background_task(posts.run(client), name="posted-renewal"))
    following = follow_decisions(parts.stores.admissions, client, parts.clock)
    await stack.enter_async_context(background_task(following, name="admissions"))
    reminders = DueReminders(
        parts.stores.sessions.reminders,
        rooms.room_channel_of,
        client,
        process.participation,
        clock=parts.clock,
    )
    await stack.enter_async_context(background_task(reminders.run(), name="due-reminders"))
    await stack.enter_async_context(background_task(webhooks.run(), name="session-webhooks"))
    stack.enter_context(low_latency_interpreter())
    await stack.enter_async_context(background_task(release_free_memory(parts.clock), name="memory-release"))
    # Entered after the client, so that rooms end while the client is still connected; and after the tasks, so that a
    # process whose tasks end is known to be ending.
    await stack.enter_async_context(rooms)
    if rejoin:
        await rejoin_sessions(client, rooms, parts.stores, process.shards)
    note_start(parts.health)
