"""The services that every room of the process uses: models, store, settings; and the session of one room with its
parts. `bot.wiring.services` opens and closes the services.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.brain.tools.toolbox import TalkTools, Toolbox
from bot.guild import PromptPolicy
from bot.posts.notice import ListeningNotice
from bot.server_settings import ListenRequest, ServerSettingsBook, no_server_settings
from bot.texts.text import Text, sentence_of
from bot.tuning import UNTUNED
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from bot.brain.context import QuoteFinder
    from bot.brain.responder import Responder
    from bot.brain.settings import BrainSettings
    from bot.brain.system_prompt import SystemPrompt
    from bot.channel.port import RoomChannel
    from bot.clock import Clock
    from bot.health import Health
    from bot.llm.budgeted import Budget
    from bot.llm.fallback import FallbackModel
    from bot.llm.model_calls import Payer
    from bot.memory.personal_recall import MemoryReaders
    from bot.memory.recall import RecallScope
    from bot.memory.upkeep import MemoryUpkeep
    from bot.models.loaded_voices import LoadedVoices
    from bot.participation.guild_state import GuildState, GuildStates
    from bot.realtime.port import RealtimeServices
    from bot.screen.screens import Screens
    from bot.settings import RoomSettings
    from bot.store.claims import RoomClaim
    from bot.store.sessions import OpenedSession, Sessions
    from bot.words import Words
    from compaction.events import CompactionEvent
    from compaction.model import Mode, SessionId
    from compaction.session import SessionTimeline
    from voice.asr.port import Recogniser
    from voice.asr.settings import AsrSettings
    from voice.listening.turn_detection import TurnEndDetector
    from voice.listening.vad import SpeechProbability
    from voice.speaking.moderation import Moderator
    from voice.speaking.port import Synthesizer
    from voice.speaking.settings import SpeakingSettings

    OpenToolbox = Callable[[RecallScope, RoomChannel, TalkTools], Toolbox]
    OpenTimeline = Callable[
        [SessionId, RoomClaim, Callable[[CompactionEvent], None]], AbstractAsyncContextManager[SessionTimeline]
    ]
    OpenUpkeep = Callable[[SessionId, RoomClaim, SessionTimeline, Words], MemoryUpkeep | None]
    ShowLive = Callable[[SessionId, RoomChannel, SessionTimeline, GuildState], AbstractContextManager[events.Observer]]

log = structlog.get_logger()

# More than any model takes, for prompts that are not limited.
NO_LIMIT_TOKENS = 1 << 40
# What answers where no language model does (`bot.brain.embedded`), as named within a sentence: "I answer with …".
EMBEDDED_RESPONDER_NAME = Text("what I heard, without a language model")


@dataclass(frozen=True, slots=True)
class PromptPolicies:
    """Combines what a server has chosen with the settings: how its sessions remember, and how large a prompt may be.

    `default_mode`: of the settings. `max_output_tokens`: the limit of a reply.
    """

    servers: ServerSettingsBook
    budget: Budget
    default_mode: Mode
    max_output_tokens: int

    def mode(self, guild_id: int) -> Mode:
        """Return the memory mode of the guild's sessions."""
        return self.servers.of(guild_id).mode or self.default_mode

    def prompt_policy(self, guild_id: int, channel_id: int) -> PromptPolicy:
        """Return how the next prompt of a voice channel is built."""
        choice, settings = self.servers.of(guild_id), self.budget.settings
        enforced = settings.enabled if choice.budget_enabled is None else choice.budget_enabled
        room = self.budget.room(max_output_tokens=self.max_output_tokens)
        return PromptPolicy(
            mode=self.mode(guild_id),
            max_input_tokens=room if enforced else NO_LIMIT_TOKENS,
            enforced=enforced,
            trim=self.budget.trim_options,
            # A server's manager may not write the operator's sections.
            instructions=inline(choice.personas.get(channel_id, choice.persona) or "").strip(),
        )


@dataclass(frozen=True, slots=True)
class SpeechModels:
    """The models with which rooms hear and speak."""

    recogniser: Recogniser
    detector: SpeechProbability
    synthesizer: Synthesizer
    # Judges in pauses whether the speaker sounds finished; None: silence alone ends an utterance.
    turn_end_detector: TurnEndDetector | None = None
    # Checks the bot's words before it speaks them; None: no checks.
    moderator: Moderator | None = None
    # Where the recogniser runs, in a sentence; None: elsewhere.
    device: Text | None = None


@dataclass(frozen=True, slots=True)
class MemoryServices:
    """How rooms remember and recall."""

    sessions: Sessions
    # Opens a session's timeline. Arguments: session, what its writes carry, the function that gets compaction events.
    open_timeline: OpenTimeline
    # Maintains a session's memory beside the conversation; None: no upkeep.
    open_upkeep: OpenUpkeep = lambda *_: None
    # Finds quotes from before the window for the prompt of a reply; None: no quotes.
    open_quoting: Callable[[RecallScope, RoomChannel], QuoteFinder | None] = lambda *_: None
    # What people may read of the memory; None: nothing.
    readable: MemoryReaders | None = None


def without_tools(_here: RecallScope, _channel: RoomChannel, talk: TalkTools) -> Toolbox:
    """Return the tools of a room in which a model may call none but the conversation's own."""
    return Toolbox(talk=talk)


@dataclass(frozen=True, slots=True)
class ReplyServices:
    """How replies are written: by whom, from which prompt, with which tools."""

    # One for each room, at whose payer's cost it calls a model. It remembers whether it has said that no model answers.
    new_responder: Callable[[Payer], Responder]
    instructions: SystemPrompt
    max_input_tokens: int
    # Each guild's memory mode and budget; None: `max_input_tokens` and the session's own mode apply.
    guild_policy: PromptPolicies | None = None
    # The tools that a model may call in a room.
    open_toolbox: OpenToolbox = without_tools
    # After this time a reply that has not begun to sound is given up.
    timeout_s: float = 20.0
    # None: there is no language model.
    model: FallbackModel | None = None
    # Whether the responder can find that there is nothing to say; the embedded one cannot.
    can_skip: bool = True

    def responder_name(self) -> Text:
        """Return who answers now, in the words of /status, for example `the language model gpt-4.1-mini`."""
        if self.model is None or self.model.answering is None:
            return EMBEDDED_RESPONDER_NAME
        return Text("the language model {model}", model=self.model.answering)


@dataclass(frozen=True, slots=True)
class RoomServices:
    """The services that rooms share. Fields named `open_` and `new_`, here and in its parts, are functions that make a
    part for one room.
    """

    speech: SpeechModels
    memory: MemoryServices
    replies: ReplyServices
    room: RoomSettings
    brain: BrainSettings
    asr: AsrSettings
    speaking: SpeakingSettings
    # When the bot speaks on each server, and what that may cost.
    participation: GuildStates
    # The time zone of times that the model and people read.
    zone: tzinfo
    clock: Clock
    # What is wrong in the process, whatever the room says.
    health: Health
    observe: events.Observer
    # Seconds alone in the channel after which the bot leaves, where the server has chosen none.
    leave_when_empty_s: float = UNTUNED.leave_when_empty_s
    # What people are told when the bot joins them.
    notice: ListeningNotice = field(default_factory=ListeningNotice)
    # What the managers of each server have chosen.
    servers: ServerSettingsBook = field(default_factory=no_server_settings)
    # Speech-to-speech; None: recogniser, responder and voice are used.
    realtime: RealtimeServices | None = None
    # The screens that people share with the bot; None: sharing is off.
    screens: Screens | None = None
    # The voices that servers can choose; None: there is only that of `speech`.
    voices: LoadedVoices | None = None
    # Shows a room on the dashboard while it is entered, and yields what takes the room's events.
    show_live: ShowLive = lambda *_: nullcontext(events.ignore_event)
    # Measures a room while it is entered, and yields what takes the room's events.
    measure: Callable[[], AbstractContextManager[events.Observer]] = lambda: nullcontext(events.ignore_event)

    def languages(self, guild_id: int) -> tuple[str, ...]:
        """Return the codes of the languages in which people are heard on a server; none: any."""
        return self.servers.of(guild_id).languages_spoken(self.asr.languages)

    def also_observed_by(self, *observers: events.Observer) -> RoomServices:
        """Return the same services, whose events of the room `observers` get too."""
        everybody = (self.observe, *observers)

        def observe(event: events.Event) -> None:
            for each in everybody:
                each(event)

        realtime = None if self.realtime is None else replace(self.realtime, observe=observe)
        return replace(self, observe=observe, realtime=realtime)


@dataclass(frozen=True, slots=True)
class RoomContext:
    """A stored session and what was opened for it: all parts of its room are made of this.

    `listen`: what is said there is written down.
    """

    channel: RoomChannel
    services: RoomServices
    opened: OpenedSession
    timeline: SessionTimeline
    upkeep: MemoryUpkeep | None
    guild: GuildState
    listen: ListenRequest | None

    @property
    def id(self) -> SessionId:
        return self.opened.session.id

    @property
    def words(self) -> Words:
        return self.guild.words

    def report(self, where: str, error: Exception) -> None:
        """Log a problem and tell observers of it. `where`: the place in the code."""
        log.error("room_problem", where=where, problem=error)
        self.services.observe(events.Problem(where, sentence_of(error), self.services.clock.monotonic()))
