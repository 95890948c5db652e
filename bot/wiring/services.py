"""Opens what the rooms of a process share, once for the process, and makes the services and tools that rooms get."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bot import events
from bot.brain.embedded.chat import MODEL_AWAY, EmbeddedResponder
from bot.brain.responder import ModelOrMemory, ModelResponder, Responder
from bot.brain.system_prompt import SystemPrompt
from bot.brain.tools.built_in import attachment_tools, link_tool, screen_tools
from bot.brain.tools.memory import memory_tools
from bot.brain.tools.toolbox import TalkTools, Toolbox, reach_in
from bot.conversation.services import MemoryServices, ReplyServices, RoomServices, SpeechModels, without_tools
from bot.errors import SetupError
from bot.health import FaultKind, Health
from bot.llm.model_calls import PaidModel, Payer
from bot.mcp.tools import Approvals
from bot.memory.recall import Recall, RecallScope, RoomRecall
from bot.models.directory import whisper_folder
from bot.posts.notice import ListeningNotice
from bot.realtime.port import RealtimeServices, session_factory
from bot.texts.text import Text
from bot.wiring.memory import MemoryParts, memory_factory, quoting_factory, upkeep_factory
from bot.wiring.recipients import recipients
from bot.wiring.speech_models import open_recogniser, open_synthesizer, open_turn_model, open_vad

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AsyncExitStack
    from datetime import tzinfo

    from bot.brain.tools.tool import Asker, RoomTool
    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.conversation.services import OpenToolbox, ShowLive
    from bot.llm.settings import LlmSettings
    from bot.mcp.servers import McpServers
    from bot.memory.access_log import AccessLog
    from bot.models.loaded_voices import LoadedVoices
    from bot.monitoring.metrics import Metrics
    from bot.participation.guild_state import GuildStates
    from bot.screen.screens import Screens
    from bot.store.attendance import AttendanceStore
    from bot.wiring.process import ProcessParts
    from bot.wiring.settings import BotSettings
    from voice.asr.port import Recogniser
    from voice.speaking.moderation import Moderator
    from voice.speaking.settings import SpeakingSettings

# Longer files are not read: this suffices for a long text, and keeps out disk images.
ATTACHMENT_BYTES = 512 * 1024


def toolbox_factory(
    recall: Recall,
    *,
    attendance: AttendanceStore,
    accesses: AccessLog | None = None,
    reach: str | None,
    clock: Clock,
    zone: tzinfo,
    participation: GuildStates,
    tool_servers: McpServers | None = None,
    screens: Screens | None = None,
) -> OpenToolbox:
    """Return the factory of the set of tools that the language model may call in a room.

    `attendance` tells who was in which session. `accesses` counts what memory search shows. `reach` is its scope, or
    None if there is no search. `participation` knows whose words and files a model may not get. `tool_servers`: of the
    Model Context Protocol. `screens`: what people share; None: nobody may.
    """

    def open_toolbox(here: RecallScope, channel: RoomChannel, talk: TalkTools) -> Toolbox:
        def search_tools(asker: Asker) -> Sequence[RoomTool]:
            """Return the tools that search for the person who asks. A written answer tells of this session alone."""
            if reach is None:
                return ()
            room = RoomRecall(
                recall,
                here,
                reach=reach if asker.typed is None else "session",
                channel=channel,
                accesses=accesses,
                withheld=participation.opted_out_of,
                attendance=attendance,
            )
            return memory_tools(room, zone=zone, clock=clock, question=toolbox.question, timeline=talk.timeline)

        def chat_tools(asker: Asker) -> Sequence[RoomTool]:
            """Return the tools that use the chat of `channel` with the permissions of the person who asks."""
            chat, left_out = channel.chat_for(asker.user_id), partial(participation.opted_out_of, channel.guild_id)
            files = attachment_tools(chat, asker, max_bytes=ATTACHMENT_BYTES, zone=zone, withheld=left_out)
            return *files, link_tool(chat)

        def tools(asker: Asker) -> Sequence[RoomTool]:
            shown = () if screens is None else screen_tools(screens.room(channel.guild_id))
            theirs = () if tool_servers is None else tool_servers.tools(channel.guild_id)
            return *shown, *search_tools(asker), *chat_tools(asker), *theirs

        toolbox = Toolbox(
            talk=talk, personal=tools, ask_for_press=channel.ask_for_press, reach=partial(reach_in, channel)
        )
        return toolbox

    return open_toolbox


UNMODERATED = Text(
    "A model checks every sentence before I say it (speaking.moderation). But speech-to-speech has "
    "no sentences to check. Switch off one of the two."
)


async def open_speech_models(
    stack: AsyncExitStack, settings: BotSettings, metrics: Metrics, health: Health
) -> SpeechModels:
    """Load or connect what hears and speaks, and register with the metrics and their health what can fail or can be
    measured.

    Raises `BotError` or `VoiceError` when something needed is missing.
    """
    judge = await open_turn_model(stack, settings.models, health=health)
    folder = whisper_folder(settings.models, settings.asr)
    opening = open_recogniser(settings.asr, folder, llm=settings.llm, metrics=metrics, health=health)
    opened = await stack.enter_async_context(opening)
    voice = open_synthesizer(
        settings.speaking, models=settings.models, llm=settings.llm, health=health, tuning=settings.tuning
    )
    synthesizer = await stack.enter_async_context(voice)
    return SpeechModels(
        recogniser=opened.recogniser,
        detector=open_vad(settings.models),
        synthesizer=synthesizer,
        turn_end_detector=judge,
        moderator=await _open_moderator(stack, settings.speaking, settings.llm),
        device=opened.device_sentence(),
    )


def room_services(
    parts: ProcessParts,
    speech: SpeechModels,
    recollection: MemoryParts,
    *,
    tool_servers: McpServers | None,
    participation: GuildStates,
    voices: LoadedVoices,
    show_live: ShowLive,
    screens: Screens | None = None,
    observe: events.Observer = events.ignore_event,
) -> RoomServices:
    """Return the services of the rooms on the servers with this participation. `show_live`: shows a room on the
    dashboard.
    """
    settings, stores = parts.settings, parts.stores
    replies = _reply_services(
        parts, recollection, tool_servers=tool_servers, participation=participation, screens=screens
    )
    return RoomServices(
        speech=speech,
        memory=MemoryServices(
            sessions=stores.sessions,
            open_timeline=memory_factory(stores, recollection.summariser_of, settings, recollection.policy),
            open_upkeep=upkeep_factory(settings, stores),
            open_quoting=quoting_factory(
                settings,
                recollection.recall,
                parts.zone,
                first_sentences=recollection.first_sentences,
                attendance=stores.sessions.attendance,
                participation=participation,
            ),
            readable=recollection.readable,
        ),
        replies=replies,
        room=settings.room,
        brain=settings.brain,
        asr=settings.asr,
        speaking=settings.speaking,
        participation=participation,
        leave_when_empty_s=settings.tuning.leave_when_empty_s,
        zone=parts.zone,
        clock=parts.clock,
        health=parts.health,
        observe=observe,
        notice=ListeningNotice(recipients(settings)),
        servers=stores.servers,
        realtime=_realtime(parts, speech.recogniser, replies, observe),
        screens=screens,
        voices=voices,
        show_live=show_live,
        measure=parts.metrics.room,
    )


def _reply_services(
    parts: ProcessParts,
    recollection: MemoryParts,
    *,
    tool_servers: McpServers | None,
    participation: GuildStates,
    screens: Screens | None,
) -> ReplyServices:
    """Return how replies are written."""
    settings, model = parts.settings, recollection.model
    from_memory = partial(EmbeddedResponder, first_sentences=recollection.first_sentences, zone=parts.zone)

    def new_responder(payer: Payer) -> Responder:
        if model is None:
            return from_memory()
        answering = ModelResponder(PaidModel(model, payer), max_output_tokens=settings.llm.max_output_tokens)
        return ModelOrMemory(answering, partial(from_memory, MODEL_AWAY))

    open_toolbox = toolbox_factory(
        recollection.recall,
        attendance=parts.stores.sessions.attendance,
        accesses=parts.stores.accesses,
        reach=settings.recall.scope if settings.recall.enabled else None,
        clock=parts.clock,
        zone=parts.zone,
        participation=participation,
        tool_servers=tool_servers,
        screens=screens,
    )
    return ReplyServices(
        new_responder=new_responder,
        instructions=SystemPrompt(settings.brain.name, settings.brain.instructions),
        max_input_tokens=settings.budget.max_input_tokens,
        guild_policy=recollection.policy,
        # Without a model that can call tools there are none.
        open_toolbox=open_toolbox if model is not None or settings.speech_to_speech else without_tools,
        # Two models can be asked in this time.
        timeout_s=2 * settings.tuning.first_token_s,
        model=model,
        can_skip=model is not None,
    )


def _realtime(
    parts: ProcessParts, recogniser: Recogniser, replies: ReplyServices, observe: events.Observer
) -> RealtimeServices | None:
    """Return the services for the rooms' speech-to-speech, or None if it is switched off."""
    settings, clock = parts.settings, parts.clock
    if not settings.speech_to_speech:
        if settings.realtime.model:
            instead = Text("I answer with {mind}", mind=replies.responder_name())
            parts.health.add_missing(
                FaultKind.MODELS, Text("Speech-to-speech"), instead=instead, problem=SetupError(UNMODERATED)
            )
        return None
    # Imported here because the library takes a second to load.
    from voice.realtime.port import RealtimeLimits

    new_session = session_factory(
        settings.realtime,
        api_key=settings.llm.key_for(settings.realtime.base_url, settings.realtime.api_key),
        clock=clock,
        meter=parts.metrics,
        limits=RealtimeLimits(
            session_s=settings.tuning.realtime_session_s, retry_after_s=settings.tuning.realtime_retry_after_s
        ),
    )
    return RealtimeServices(
        settings=settings.realtime,
        new_session=new_session,
        instructions=replies.instructions,
        recogniser=recogniser,
        fallback_name=replies.responder_name(),
        zone=parts.zone,
        clock=clock,
        observe=observe,
    )


async def open_tool_servers(stack: AsyncExitStack, parts: ProcessParts) -> McpServers | None:
    """Connect the MCP servers; None: there are none."""
    settings = parts.settings
    if not settings.mcp.servers:
        return None
    # Imported here because the library takes a second to load.
    from bot.mcp.servers import running_servers

    approvals = Approvals(settings.storage.machine_dir)
    servers = await stack.enter_async_context(running_servers(settings.mcp, parts.clock, approvals))
    parts.health.add_check(servers.faults)
    return servers


async def _open_moderator(stack: AsyncExitStack, speaking: SpeakingSettings, llm: LlmSettings) -> Moderator | None:
    if speaking.moderation == "off":
        return None
    # Imported here because the library takes a second to load.
    from bot.llm.openai_moderation import MODEL, TIMEOUT_S, OpenAIModerator
    from voice.endpoint import Endpoint

    endpoint = Endpoint(llm.base_url, MODEL, llm.key_for(llm.base_url, None), TIMEOUT_S)
    return await stack.enter_async_context(OpenAIModerator(endpoint))
