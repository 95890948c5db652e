"""The composition root: makes every part of the running bot out of the settings, and closes them in reverse.

Whoever starts the process enters `running_bot`; nothing else makes these parts, and none of them is global.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.accesses import AccessBook
from bot.brain.instructions import Instructions
from bot.brain.responder import ModelResponder
from bot.brain.tools.toolbox import Toolbox
from bot.clock import SystemClock
from bot.discord.client import connected, translated
from bot.discord.commands.memory import add_memory_commands
from bot.discord.commands.participation import add_participation_commands
from bot.discord.commands.persona import add_persona
from bot.discord.commands.rolling_context import MemoryDefaults, add_rolling_context
from bot.discord.commands.watch import add_watch_commands
from bot.interpreter import timely_interpreter
from bot.listening import open_detector, open_judge
from bot.llm.embedded import EmbeddedResponder
from bot.llm.opening import open_budget, open_model
from bot.means import Means
from bot.participation.standing import Participation
from bot.people import PeopleBook
from bot.policy import GuildPolicy
from bot.realtime import talks
from bot.recognisers import chosen_recognizer
from bot.remembering import keepers, memories, open_recall, quoting_for
from bot.room import Room
from bot.screen.opening import open_screens
from bot.store.database import open_database
from bot.store.guilds import Guilds
from bot.store.optouts import OptOuts
from bot.store.people import PeopleStore
from bot.store.sessions import Sessions
from bot.store.tiers import SegmentShelf
from bot.store.turns import SqlTurnStore
from bot.summarising import summariser_for
from bot.supervisor import KNOWN_ERRORS, RoomSupervisor
from bot.toolset import Toolset
from bot.voices import chosen_voice
from voice.transport.metronome import running_metronome

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import tzinfo

    from bot import events
    from bot.brain.responder import Responder
    from bot.clock import Clock
    from bot.discord.client import AddCommands, RoomtoneClient
    from bot.llm.fallback import FallbackModel
    from bot.mcp.servers import McpServers
    from bot.mcp.settings import McpSettings
    from bot.place import Place
    from bot.recall import Place as RecallPlace
    from bot.sections import BotSettings
    from bot.settings import LlmSettings, RoomSettings
    from compaction.model import SessionId
    from voice.speaking.moderation import Moderator
    from voice.speaking.settings import SpeakingSettings
    from voice.transport.metronome import Metronome

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Running:
    """The bot, connected to Discord. `supervisor` has its rooms, `metronome` sends what it says in them."""

    client: RoomtoneClient
    supervisor: RoomSupervisor
    metronome: Metronome | None

    async def until(self, stop: asyncio.Event) -> None:
        """Live until `stop` is set. Raises `SetupError` when Discord's connection is lost for good before."""
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
) -> AsyncIterator[Running]:
    """Start the bot and lend it; leaving ends its rooms in order (sessions closed and stored), then everything else.

    `rejoin`: go on with the sessions that a crashed process left open. `zone`: whose clock times are told in.
    Raises `BotError`, `VoiceError` or `CompactionError` with a plain sentence when something needed is missing.
    """
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(
            open_database(
                settings.storage.database_path,
                synchronous=settings.storage.synchronous,
                busy_timeout_s=settings.storage.busy_timeout_s,
            )
        )
        sessions = Sessions(database, clock)
        store = SqlTurnStore(database, clock)
        people = PeopleBook(PeopleStore(database), settings.people)
        accesses = AccessBook(SegmentShelf(database), clock)
        recognizer = await stack.enter_async_context(chosen_recognizer(settings.asr, llm=settings.llm))
        judge = await open_judge(stack, settings.models, settings.listening)
        synthesizer = await stack.enter_async_context(
            chosen_voice(settings.speaking, models=settings.models, llm=settings.llm)
        )
        model = await _open_model(stack, settings, clock)
        guilds = Guilds(database, clock)
        policy = await _policy(settings, model, guilds)
        participation = Participation(
            guilds,
            OptOuts(database, clock),
            settings.participation,
            wake_names=settings.brain.wake_names,
            clock=clock,
        )
        recall = await open_recall(stack, settings, database, store, clock, accesses)
        servers = await _open_servers(stack, settings.mcp, clock)
        screens, desk = await open_screens(stack, settings, participation, clock)
        toolset = Toolset(
            settings.tools,
            recall,
            reach=settings.recall.scope,
            clock=clock,
            zone=zone,
            more=tuple if servers is None else servers.tools,
            screens=lambda place: screens.room(place.guild_id),
        )
        means = Means(
            sessions=sessions,
            open_memory=memories(
                store,
                summariser_for(settings.compaction.summariser, model, settings.compaction),
                settings,
                policy,
                clock,
            ),
            recognizer=recognizer,
            detector=open_detector(settings.models),
            synthesizer=synthesizer,
            new_responder=_responders(settings, model, zone),
            instructions=Instructions(settings.brain.name, settings.brain.instructions),
            max_input_tokens=settings.budget.max_input_tokens,
            zone=zone,
            clock=clock,
            observe=observe,
            room=settings.room,
            brain=settings.brain,
            participation=participation,
            listening=settings.listening,
            asr=settings.asr,
            speaking=settings.speaking,
            moderator=await _open_moderator(stack, settings.speaking, settings.llm),
            mind=f"the language model {model.model}" if model else "what I heard, without a language model",
            judge=judge,
            talk=talks(settings.realtime, api_key=_realtime_key(settings), language=settings.asr.language, clock=clock),
            keeping=keepers(settings, database, store, people, accesses, clock),
            quoting=quoting_for(settings, recall, zone),
            toolbox=_toolbox(settings, model, toolset),
            discerning=model is not None,
            screens=screens,
            policy=policy,
        )
        supervisor = RoomSupervisor(lambda place: Room(place, means), clock=clock)
        metronome = stack.enter_context(running_metronome())
        client = await stack.enter_async_context(
            connected(
                settings.discord,
                settings.transport,
                supervisor,
                [
                    _rolling_context(settings, guilds),
                    partial(add_memory_commands, people=people, zone=zone),
                    partial(add_participation_commands, participation=participation),
                    partial(add_watch_commands, watching=desk),
                    partial(add_persona, choices=guilds),
                ],
                metronome,
            )
        )
        # Entered after the client, so that rooms end while Discord can still be told.
        await stack.enter_async_context(supervisor)
        if rejoin:
            await _rejoin(client, supervisor, sessions, settings.room)
        stack.enter_context(timely_interpreter())
        yield Running(client, supervisor, metronome)


def _realtime_key(settings: BotSettings) -> str:
    """Return the key of speech-to-speech: its own, or OpenAI's where it is OpenAI."""
    key = settings.realtime.api_key or (None if settings.realtime.base_url else settings.llm.api_key)
    return key.get_secret_value() if key else ""


async def _open_servers(stack: AsyncExitStack, settings: McpSettings, clock: Clock) -> McpServers | None:
    """Begin to connect to the MCP servers, if there are any."""
    if not settings.servers:
        return None
    # Imported where it is needed: the library takes a second to load.
    from bot.mcp.servers import running_servers

    return await stack.enter_async_context(running_servers(settings, clock))


def _toolbox(
    settings: BotSettings, model: FallbackModel | None, toolset: Toolset
) -> Callable[[RecallPlace, Place], Toolbox]:
    """Return what makes a room's toolbox: an empty one where nobody could call anything."""
    if model is None and not settings.realtime.enabled:
        return lambda *_: Toolbox()
    return toolset.toolbox


async def _policy(settings: BotSettings, model: FallbackModel | None, guilds: Guilds) -> GuildPolicy:
    """Return what says which mode and which budget hold in a guild."""
    budget = model.budget if model is not None else await open_budget("", settings.budget)
    return GuildPolicy(
        guilds,
        budget,
        mode=settings.compaction.mode,
        max_output_tokens=settings.llm.max_output_tokens,
        instructions=settings.brain.guild_instructions,
    )


def _rolling_context(settings: BotSettings, guilds: Guilds) -> AddCommands:
    """Return what puts /rolling-context on the bot's commands."""
    defaults = MemoryDefaults(
        mode=settings.compaction.mode,
        budget_enabled=settings.budget.enabled,
        max_input_tokens=settings.budget.max_input_tokens,
        searchable=settings.recall.enabled,
    )
    return partial(add_rolling_context, choices=guilds, defaults=defaults)


def _responders(settings: BotSettings, model: FallbackModel | None, zone: tzinfo) -> Callable[[], Responder]:
    """Return what makes a room's responder."""
    if model is not None:
        shared = ModelResponder(model, max_output_tokens=settings.llm.max_output_tokens, tools=settings.tools)
        return lambda: shared
    names = (settings.brain.name, *settings.brain.wake_names)
    return lambda: EmbeddedResponder(names=names, zone=zone)


async def _open_model(stack: AsyncExitStack, settings: BotSettings, clock: Clock) -> FallbackModel | None:
    if not settings.llm.configured:
        log.info("no_language_model", responder="embedded")
        return None
    return await stack.enter_async_context(
        open_model(
            settings.llm,
            settings.budget,
            settings.models,
            within_s=settings.brain.reply_timeout_s,
            clock=clock,
        )
    )


async def _open_moderator(stack: AsyncExitStack, speaking: SpeakingSettings, llm: LlmSettings) -> Moderator | None:
    if speaking.moderation == "off":
        return None
    # Imported where it is needed: the library takes a second to load.
    from bot.llm.openai_moderation import OpenAIModerator
    from voice.endpoint import Endpoint

    key = llm.key_for(llm.base_url, None)
    endpoint = Endpoint(llm.base_url, speaking.moderation_model, key, speaking.moderation_timeout_s)
    return await stack.enter_async_context(OpenAIModerator(endpoint))


async def _rejoin(
    client: RoomtoneClient, supervisor: RoomSupervisor, sessions: Sessions, settings: RoomSettings
) -> None:
    """Go back into the channels that a crashed process left, where people still are."""
    for session in await sessions.unfinished(resume_within_s=settings.resume_within_s):
        if session.guild_id is None or session.channel_id is None:
            continue
        place = client.place(session.guild_id, session.channel_id)
        if place is None or all(person.is_bot for person in place.company()):
            log.info("session_not_resumed", session_id=session.id, reason="nobody_there")
            continue
        await _rejoin_one(place, supervisor, session.id)


async def _rejoin_one(place: Place, supervisor: RoomSupervisor, session_id: SessionId) -> None:
    try:
        await supervisor.join(place)
    except KNOWN_ERRORS as error:
        log.warning("session_not_resumed", session_id=session_id, reason="not_joined", problem=str(error))
        await place.write(f"I could not come back. {error}")
