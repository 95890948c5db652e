"""Opens everything that rooms share, once for the process: the stores, the models, the tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakSet

import structlog

from bot.brain.embedded.chat import EmbeddedResponder
from bot.brain.responder import ModelResponder
from bot.brain.system_prompt import SystemPrompt
from bot.brain.tools.toolbox import Toolbox
from bot.llm.factory import open_budget, open_model
from bot.memory.access_log import AccessLog
from bot.memory.digests import Digests
from bot.memory.people import PeopleBook
from bot.memory.personal_recall import PersonalRecall
from bot.memory.readable_memory import ReadableMemory
from bot.memory.session_reader import SessionReader
from bot.monitoring.measured_store import MeasuredTurnStore
from bot.realtime.port import RealtimeServices, session_factory
from bot.room.guild_policy import GuildPolicy
from bot.room.notice import ListeningNotice
from bot.room.services import RoomServices
from bot.server_settings import ServerSettingsBook
from bot.store.claims import fenced
from bot.store.database import open_database
from bot.store.guilds import GuildStore, OptOutStore
from bot.store.history import SessionHistory
from bot.store.people import PeopleStore
from bot.store.servers import SqlServerSettings
from bot.store.sessions import Sessions
from bot.store.tiers import TierStore
from bot.store.turns import SqlTurnStore
from bot.texts.text import Text
from bot.wiring.memory import memory_factory, open_recall, quoting_factory, upkeep_factory
from bot.wiring.monitoring import room_meter
from bot.wiring.recipients import recipients
from bot.wiring.speech_models import open_recognizer, open_synthesizer, open_turn_model, open_vad, voice_factory
from bot.wiring.summariser import summarisers_by_guild
from bot.wiring.tools import Toolset

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AsyncExitStack
    from datetime import tzinfo

    from bot import events
    from bot.brain.responder import Responder
    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.guild import GuildChoices
    from bot.health import Health
    from bot.llm.budgeted import ModelCall
    from bot.llm.fallback import FallbackModel
    from bot.llm.settings import LlmSettings
    from bot.mcp.servers import McpServers
    from bot.mcp.settings import McpSettings
    from bot.memory.recall import Recall, RecallScope
    from bot.memory.upkeep import MemoryUpkeep
    from bot.models.loaded_voices import LoadedVoices
    from bot.monitoring.measured_store import OnOperation
    from bot.monitoring.metrics import Metrics
    from bot.monitoring.traces import Traces
    from bot.participation.guild_participation import GuildParticipations
    from bot.room.services import ShowLive
    from bot.screen.screens import Screens
    from bot.store.claims import RoomClaim
    from bot.store.database import Database
    from bot.wiring.settings import BotSettings
    from compaction.model import SessionId
    from compaction.ports import TurnStore
    from compaction.summary.port import Summariser
    from voice.asr.port import Recognizer
    from voice.endpoint import Endpoint
    from voice.speaking.moderation import Moderator
    from voice.speaking.settings import SpeakingSettings

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Stores:
    """The open database and the stores on it."""

    database: Database
    sessions: Sessions
    turns: TurnStore
    guilds: GuildStore
    opt_outs: OptOutStore
    # What each server has chosen.
    servers: ServerSettingsBook
    people: PeopleBook
    accesses: AccessLog
    # The sessions of open rooms, and their upkeep.
    in_use: set[SessionId]
    upkeeps: WeakSet[MemoryUpkeep]
    # The store of turns for the room with this claim.
    turns_of: Callable[[RoomClaim], TurnStore]


async def open_stores(
    stack: AsyncExitStack, settings: BotSettings, clock: Clock, *, on_operation: OnOperation | None = None
) -> Stores:
    """Open the database and its stores. `on_operation`: gets each operation of the store of turns.

    Raises `StoreError` if the database cannot be used.
    """
    database = await stack.enter_async_context(open_database(settings.storage.database))
    servers = ServerSettingsBook(SqlServerSettings(database, clock))
    await servers.load()

    def turns_in(opened: Database) -> TurnStore:
        turns = SqlTurnStore(opened, clock)
        return turns if on_operation is None else MeasuredTurnStore(turns, on_operation)

    return Stores(
        database=database,
        sessions=Sessions(database, clock),
        turns=turns_in(database),
        turns_of=lambda claim: turns_in(fenced(database, claim)),
        guilds=GuildStore(database, clock),
        opt_outs=OptOutStore(database, clock),
        servers=servers,
        people=PeopleBook(PeopleStore(database), settings.people),
        accesses=AccessLog(TierStore(database), clock),
        in_use=set(),
        upkeeps=WeakSet(),
    )


@dataclass(frozen=True, slots=True)
class Recollection:
    """What reads the memory, and the language model that summarises it: for rooms, commands and the dashboard.

    `model`: None if none is configured. `summariser_of`: returns that of a server.
    """

    model: FallbackModel | None
    policy: GuildPolicy
    summariser_of: Callable[[int], Awaitable[Summariser]]
    recall: Recall
    readable: ReadableMemory


async def open_recollection(
    stack: AsyncExitStack,
    settings: BotSettings,
    stores: Stores,
    *,
    choices: GuildChoices,
    participation: GuildParticipations,
    zone: tzinfo,
    clock: Clock,
    metrics: Metrics,
    indexes: bool = True,
) -> Recollection:
    """Open what reads the memory, and register with `metrics` what can be measured. `watch_model` is for what can fail.

    `choices`: those of the servers. `indexes`: whether this process keeps the search index.

    Raises `BotError` when something needed is missing.
    """
    model = await _open_model(stack, settings, clock, metrics.on_model_call)
    summariser_of = summarisers_by_guild(settings.compaction, model, participation, clock, zone)
    recall = await open_recall(stack, settings, stores.database, stores.turns, clock, metrics, indexes=indexes)
    reader = SessionReader(stores.sessions, stores.turns, withheld=participation.withheld_on)
    digests = Digests(reader, SessionHistory(stores.database), summariser_of=summariser_of)
    reach = settings.recall.scope if settings.recall.enabled else None
    return Recollection(
        model=model,
        policy=await policy_for(settings, model, choices),
        summariser_of=summariser_of,
        recall=recall,
        readable=ReadableMemory(reader, digests, PersonalRecall(recall, reader, reach=reach, accesses=stores.accesses)),
    )


def watch_model(recollection: Recollection, health: Health) -> None:
    """Register the language model with `health`. People read of it after what hears and speaks."""
    if recollection.model is not None:
        health.add_check(recollection.model.degraded_parts)
        health.add_fault_check(recollection.model.faults)


async def open_services(
    stack: AsyncExitStack,
    settings: BotSettings,
    stores: Stores,
    recollection: Recollection,
    *,
    participation: GuildParticipations,
    screens: Screens | None,
    observe: events.Observer,
    zone: tzinfo,
    clock: Clock,
    metrics: Metrics,
    traces: Traces | None = None,
    show_live: ShowLive,
    voices: LoadedVoices,
    pool: Endpoint | None = None,
) -> RoomServices:
    """Open the services that every room gets, and register with `metrics` those that can fail or can be measured.
    `show_live`: shows a room on the dashboard. `pool`: see `open_recognizer`.

    Raises `BotError` or `VoiceError` when something needed is missing.
    """
    database, turns, accesses = stores.database, stores.turns, stores.accesses
    health, model, recall = metrics.health, recollection.model, recollection.recall
    recognizer = await stack.enter_async_context(
        open_recognizer(settings.asr, llm=settings.llm, health=health, metrics=metrics, pool=pool)
    )
    judge = await open_turn_model(stack, settings.models, settings.listening)
    voice = open_synthesizer(settings.speaking, models=settings.models, llm=settings.llm, health=health)
    synthesizer = await stack.enter_async_context(voice)
    watch_model(recollection, health)
    policy = recollection.policy
    servers = await _open_servers(stack, settings.mcp, clock)
    toolset = Toolset(
        settings.tools,
        recall,
        accesses=accesses,
        reach=settings.recall.scope,
        clock=clock,
        zone=zone,
        more=tuple if servers is None else servers.tools,
        screens=lambda place: None if screens is None else screens.room(place.guild_id),
        withheld=participation.opted_out_of,
    )
    instructions = SystemPrompt(settings.brain.name, settings.brain.instructions)
    responder_name = (
        Text("the language model {model}", model=model.model)
        if model
        else Text("what I heard, without a language model")
    )
    return RoomServices(
        sessions=stores.sessions,
        open_memory=memory_factory(
            stores.turns_of, recollection.summariser_of, settings, policy, clock, in_use=stores.in_use
        ),
        recognizer=recognizer,
        detector=open_vad(settings.models),
        synthesizer=synthesizer,
        open_voice=voice_factory(settings.speaking, stores.servers, voices),
        using_voice=voices.using,
        new_responder=_responders(settings, model, zone),
        instructions=instructions,
        max_input_tokens=settings.budget.max_input_tokens,
        zone=zone,
        clock=clock,
        observe=observe,
        room=settings.room,
        brain=settings.brain,
        reply_timeout_s=settings.llm.reply_timeout_s,
        participation=participation,
        servers=stores.servers,
        listening=settings.listening,
        asr=settings.asr,
        speaking=settings.speaking,
        moderator=await _open_moderator(stack, settings.speaking, settings.llm),
        responder_name=responder_name,
        turn_end_detector=judge,
        realtime=_realtime(
            settings,
            instructions=instructions,
            recognizer=recognizer,
            fallback_name=responder_name,
            zone=zone,
            clock=clock,
            observe=observe,
        ),
        open_upkeep=upkeep_factory(settings, database, turns, stores.people, accesses, clock, upkeeps=stores.upkeeps),
        open_quoting=quoting_factory(settings, recall, zone, withheld=participation.opted_out_of),
        open_toolbox=_toolbox(settings, model, toolset),
        can_skip=model is not None,
        screens=screens,
        guild_policy=policy,
        notice=ListeningNotice(settings.room.notice, recipients(settings, in_cluster=pool is not None)),
        health=health.summary,
        readable=recollection.readable,
        show_live=show_live,
        measure=room_meter(metrics, traces),
    )


async def _open_model(
    stack: AsyncExitStack, settings: BotSettings, clock: Clock, on_call: Callable[[ModelCall], None]
) -> FallbackModel | None:
    if not settings.llm.configured:
        log.info("no_language_model", responder="embedded")
        return None
    return await stack.enter_async_context(
        open_model(
            settings.llm,
            settings.budget,
            settings.models,
            clock=clock,
            on_call=on_call,
        )
    )


def _responders(settings: BotSettings, model: FallbackModel | None, zone: tzinfo) -> Callable[[], Responder]:
    if model is not None:
        shared = ModelResponder(model, max_output_tokens=settings.llm.max_output_tokens, tools=settings.tools)
        return lambda: shared
    names = (settings.brain.name, *settings.brain.wake_names)
    return lambda: EmbeddedResponder(names=names, zone=zone)


async def policy_for(settings: BotSettings, model: FallbackModel | None, guilds: GuildChoices) -> GuildPolicy:
    """Return the policy that gives each guild's compaction mode and token budget."""
    budget = model.budget if model is not None else await open_budget("", settings.budget)
    return GuildPolicy(
        guilds,
        budget,
        mode=settings.compaction.mode,
        max_output_tokens=settings.llm.max_output_tokens,
        instructions=settings.brain.guild_instructions,
    )


def _toolbox(
    settings: BotSettings, model: FallbackModel | None, toolset: Toolset
) -> Callable[[RecallScope, Place], Toolbox]:
    """Return the factory of a room's toolbox; without a model that can call tools, the toolbox is empty."""
    if model is None and not settings.realtime.enabled:
        return lambda *_: Toolbox()
    return toolset.toolbox


def _realtime(
    settings: BotSettings,
    *,
    instructions: SystemPrompt,
    recognizer: Recognizer,
    fallback_name: Text,
    zone: tzinfo,
    clock: Clock,
    observe: events.Observer,
) -> RealtimeServices | None:
    """Return the services for the rooms' speech-to-speech, or None if it is switched off."""
    if not settings.realtime.enabled:
        return None
    new_session = session_factory(
        settings.realtime, api_key=_realtime_key(settings), language=settings.asr.language, clock=clock
    )
    return RealtimeServices(
        settings=settings.realtime,
        new_session=new_session,
        instructions=instructions,
        recognizer=recognizer,
        fallback_name=fallback_name,
        max_input_tokens=settings.budget.max_input_tokens,
        zone=zone,
        clock=clock,
        observe=observe,
    )


def _realtime_key(settings: BotSettings) -> str:
    """Return the API key of the speech-to-speech model: its own, or `llm.api_key` if the endpoint is OpenAI's."""
    key = settings.realtime.api_key or (None if settings.realtime.base_url else settings.llm.api_key)
    return key.get_secret_value() if key else ""


async def _open_servers(stack: AsyncExitStack, settings: McpSettings, clock: Clock) -> McpServers | None:
    if not settings.servers:
        return None
    # Imported here because the library takes a second to load.
    from bot.mcp.servers import running_servers

    return await stack.enter_async_context(running_servers(settings, clock))


async def _open_moderator(stack: AsyncExitStack, speaking: SpeakingSettings, llm: LlmSettings) -> Moderator | None:
    if speaking.moderation == "off":
        return None
    # Imported here because the library takes a second to load.
    from bot.llm.openai_moderation import MODEL, TIMEOUT_S, OpenAIModerator
    from voice.endpoint import Endpoint

    key = llm.key_for(llm.base_url, None)
    endpoint = Endpoint(llm.base_url, MODEL, key, TIMEOUT_S)
    return await stack.enter_async_context(OpenAIModerator(endpoint))
