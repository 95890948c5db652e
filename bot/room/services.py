"""What every room of the process works with: models, store, settings. Made and closed by the composition root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.brain.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from datetime import tzinfo

    from bot import events
    from bot.brain.recall_quotes import QuoteFinder
    from bot.brain.responder import Responder
    from bot.brain.system_prompt import SystemPrompt
    from bot.channel.port import Place
    from bot.clock import Clock
    from bot.memory.recall import RecallScope
    from bot.memory.upkeep import MemoryUpkeep
    from bot.participation.standing import GuildParticipations
    from bot.realtime.bridge import RealtimeTalk
    from bot.room.guild_policy import GuildPolicy
    from bot.screen.screens import Screens
    from bot.settings import BrainSettings, RoomSettings
    from bot.store.sessions import Sessions
    from compaction.folding.events import CompactionEvent
    from compaction.model import SessionId
    from compaction.session import SessionMemory
    from voice.asr.port import Recognizer
    from voice.asr.settings import AsrSettings
    from voice.listening.settings import ListeningSettings
    from voice.listening.turn_detection import TurnEndDetector
    from voice.listening.vad import SpeechProbability
    from voice.speaking.moderation import Moderator
    from voice.speaking.port import Synthesizer
    from voice.speaking.settings import SpeakingSettings


@dataclass(frozen=True, slots=True)
class RoomServices:
    """Everything that rooms share, and what makes what each has for itself."""

    sessions: Sessions
    # Opens a session's memory and tells its compaction events to the second argument.
    open_memory: Callable[
        [SessionId, int, Callable[[CompactionEvent], None]], AbstractAsyncContextManager[SessionMemory]
    ]
    recognizer: Recognizer
    detector: SpeechProbability
    synthesizer: Synthesizer
    # One a room: the embedded responder remembers whether it has introduced itself.
    new_responder: Callable[[], Responder]
    instructions: SystemPrompt
    max_input_tokens: int
    # Whose clock the model and the people are told times in.
    zone: tzinfo
    clock: Clock
    observe: events.Observer
    room: RoomSettings
    brain: BrainSettings
    # When the bot speaks, on each server, and what that may cost.
    participation: GuildParticipations
    listening: ListeningSettings
    asr: AsrSettings
    speaking: SpeakingSettings
    # What /status says it thinks with, for example `the language model gpt-4.1-mini`.
    mind: str
    # Who tends a session's memory beside the conversation; None: nobody does.
    keeping: Callable[[SessionId, int, SessionMemory], MemoryUpkeep | None] = lambda *_: None
    # Who finds what was said before the window, for the prompt of a reply; None: nobody does.
    quoting: Callable[[RecallScope], QuoteFinder | None] = lambda _: None
    # What a model may call while it answers, for a session in a place.
    toolbox: Callable[[RecallScope, Place], Toolbox] = lambda *_: Toolbox()
    # The screens that people share with the bot; None: nobody can.
    screens: Screens | None = None
    # Judges what the bot wants to say before it is spoken; None: nobody does.
    moderator: Moderator | None = None
    # Says in pauses who sounds finished; without one silence alone ends speech.
    judge: TurnEndDetector | None = None
    # Makes a room's speech-to-speech out of the room's own parts; None: recogniser, responder and voice serve.
    talk: Callable[..., RealtimeTalk] | None = None
    # Whether who finds the words can tell that there is nothing to say; the embedded responder can't.
    discerning: bool = True
    # What the guild has chosen of mode and budget; None: `max_input_tokens` and the session's own mode hold.
    policy: GuildPolicy | None = None
    # Tells in plain sentences what of all this does not work at present.
    health: Callable[[], str] = str
