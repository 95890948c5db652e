"""Makes the parts of one conversation out of what the room has for it.

`conversation` decides which part gets what from which other; here stands what each is made with besides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.channel.participants import Participants
from bot.participation.participation import Participation
from bot.realtime.bridge import RealtimeBridge
from bot.room.conversation.barge_in import BargeInHandler
from bot.room.conversation.conversation_status import ConversationStatus
from bot.room.conversation.hearing import Hearing
from bot.room.conversation.membership_recorder import MembershipRecorder
from bot.room.conversation.prompt import PromptBuilder
from bot.room.conversation.reply_preparation import ReplyPreparation
from bot.room.conversation.reply_recorder import ReplyRecorder
from bot.room.conversation.speaking import Speaking
from bot.room.conversation.transcriber import room_transcriber
from bot.room.conversation.turn_recorder import TurnRecorder
from bot.room.conversation.turn_taking import TurnTaking
from bot.screen.commentary import ScreenCommentary
from voice.listening.endpointing import ENDPOINTING, UNREAD_ENDPOINTING
from voice.listening.listener import RoomListener

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot import events
    from bot.brain.recall_quotes import QuoteFinder
    from bot.brain.reply import Question
    from bot.brain.tools.toolbox import Toolbox
    from bot.channel.port import Place
    from bot.memory.upkeep import MemoryUpkeep
    from bot.participation.guild_participation import GuildParticipation
    from bot.participation.participation import ReplyControl
    from bot.room.conversation.transcriber import Transcriber
    from bot.room.services import RoomServices
    from compaction.model import Note, SessionId
    from compaction.session import SessionMemory


@dataclass(frozen=True, slots=True)
class ConversationInputs:
    """What the conversation of one session in `place` is made from; it is recorded in `memory`.

    `guild`: the bot's participation on this server. `report`: called with each problem: its place in the code and its
    error.
    """

    place: Place
    services: RoomServices
    session_id: SessionId
    guild: GuildParticipation
    memory: SessionMemory
    upkeep: MemoryUpkeep | None
    quoting: QuoteFinder | None
    toolbox: Toolbox
    report: Callable[[str, Exception], None]


class ConversationParts:
    """Makes the parts of one conversation. Each method makes a new part.

    `participants` and `participation` are made at once, because nearly all others need them. `replies`: what
    participation lets speak.
    """

    def __init__(self, inputs: ConversationInputs, *, replies: ReplyControl) -> None:
        self._place = inputs.place
        self._services = inputs.services
        self._memory = inputs.memory
        self._upkeep = inputs.upkeep
        self._quoting = inputs.quoting
        self._toolbox = inputs.toolbox
        self._report = inputs.report
        self._listens_only = inputs.guild.listens_only
        self.participants = Participants(self._place, self._memory.name_of)
        self.participation = Participation(
            self._services.participation,
            inputs.guild,
            session_id=inputs.session_id,
            place=self._place,
            participants=self.participants,
            clock=self._services.clock,
            replies=replies,
        )

    def listener(self) -> RoomListener:
        speech = self._services.speech
        parameters = ENDPOINTING if speech.reads_texts else UNREAD_ENDPOINTING
        return RoomListener(speech.detector, parameters, judged=speech.turn_end_detector is not None)

    def turn_recorder(self, *, observe: events.Observer) -> TurnRecorder:
        services = self._services
        return TurnRecorder(
            self._memory,
            self._place,
            self.participants,
            own_name=services.brain.name,
            clock=services.clock,
            observe=observe,
        )

    def reply_recorder(self, turn_recorder: TurnRecorder) -> ReplyRecorder:
        services = self._services
        return ReplyRecorder(
            self.participation,
            turn_recorder,
            toolbox=self._toolbox,
            clock=services.clock,
            observe=services.observe,
        )

    def prompt_builder(self) -> PromptBuilder:
        return PromptBuilder(
            self._services,
            place=self._place,
            memory=self._memory,
            participants=self.participants,
            participation=self.participation,
            upkeep=self._upkeep,
            quoting=self._quoting,
            toolbox=self._toolbox,
            report=self._report,
        )

    def bridge(self, prompt_builder: PromptBuilder) -> RealtimeBridge | None:
        """Return the bridge to a speech-to-speech model; None if there is none, or if it would only cost."""
        realtime = self._services.realtime
        if realtime is None or self._listens_only:
            return None
        return RealtimeBridge(
            realtime, prompt_builder, self._place, memory=self._memory, toolbox=self._toolbox, quoting=self._quoting
        )

    def speaking(
        self, prompt_builder: PromptBuilder, reply_recorder: ReplyRecorder, bridge: RealtimeBridge | None
    ) -> Speaking:
        return Speaking(
            self._place,
            self._services,
            build_context=prompt_builder.build_context,
            on_reply=reply_recorder.record,
            tell=self.participation.notify,
            wake_names=self.participation.wake_names,
            bridge=bridge,
        )

    def barge_in(self, listener: RoomListener, speaking: Speaking) -> BargeInHandler:
        return BargeInHandler(
            listener,
            speaking.playback,
            speaking.replier,
            self.participation,
            stop_after_s=self._services.speaking.stop_after_s,
            clock=self._services.clock,
        )

    def commentary(self, *, is_busy: Callable[[], bool], is_shown: Callable[[Note], bool]) -> ScreenCommentary | None:
        """Return what remarks on shared screens; None if nobody shares any here, or if nobody wants remarks."""
        screens = self._services.screens
        if screens is None or not screens.settings.commentary_every_s:
            return None
        return ScreenCommentary(
            screens.settings,
            clock=self._services.clock,
            is_busy=is_busy,
            is_shown=is_shown,
            request_remark=self.participation.request_remark,
        )

    def transcriber(
        self, bridge: RealtimeBridge | None, speaking: Speaking, *, observe: events.Observer
    ) -> Transcriber:
        return room_transcriber(
            self._place,
            self._services,
            bridge or self._services.speech.recogniser,
            participants=self.participants,
            participation=self.participation,
            own_words=speaking.playback.words_between,
            observe=observe,
        )

    def turn_taking(
        self,
        turn_recorder: TurnRecorder,
        transcriber: Transcriber,
        speaking: Speaking,
        *,
        ask: Callable[[Question], None],
    ) -> TurnTaking:
        services = self._services
        return TurnTaking(
            participation=self.participation,
            turn_recorder=turn_recorder,
            replier=speaking.replier,
            preemptive_reply=speaking.preemptive_reply,
            ask=ask,
            reply_language=transcriber.reply_language,
            clock=services.clock,
            observe=services.observe,
        )

    def reply_preparation(
        self,
        turn_recorder: TurnRecorder,
        transcriber: Transcriber,
        speaking: Speaking,
        *,
        may_prepare: Callable[[], bool],
    ) -> ReplyPreparation:
        return ReplyPreparation(
            memory=self._memory,
            quoting=self._quoting,
            participation=self.participation,
            turn_recorder=turn_recorder,
            replier=speaking.replier,
            preemptive_reply=speaking.preemptive_reply,
            reply_language=transcriber.reply_language,
            may_prepare=may_prepare,
            starts_early=self._services.brain.preemptive_reply,
        )

    def hearing(
        self,
        listener: RoomListener,
        transcriber: Transcriber,
        turn_taking: TurnTaking,
        preparation: ReplyPreparation,
        speaking: Speaking,
        bridge: RealtimeBridge | None,
        *,
        is_urgent: Callable[[str], bool],
        observe: events.Observer,
    ) -> Hearing:
        services = self._services
        return Hearing(
            listener=listener,
            transcriber=transcriber,
            eager_recognition=services.listening.eager_recognition,
            clock=services.clock,
            observe=observe,
            on_group=turn_taking.on_group,
            turn_end_detector=services.speech.turn_end_detector,
            is_urgent=is_urgent,
            on_tentative=preparation.on_tentative,
            on_resumed=speaking.preemptive_reply.discard_for,
            is_withheld=lambda said: self.participation.drops(said.user_id, started_at=said.started_at),
            keeps_sound=bridge is not None and bridge.mixes_sound,
        )

    def membership(self, turn_recorder: TurnRecorder, transcriber: Transcriber) -> MembershipRecorder:
        services, guild_id = self._services, self._place.guild_id
        return MembershipRecorder(
            self._place,
            memory=self._memory,
            participants=self.participants,
            participation=self.participation,
            transcriber=transcriber,
            turn_recorder=turn_recorder,
            upkeep=self._upkeep,
            offers_catch_up=lambda: (
                services.memory.readable is not None and services.servers.of(guild_id).offers_catch_up
            ),
            clock=services.clock,
        )

    def status(self, hearing: Hearing, speaking: Speaking, bridge: RealtimeBridge | None) -> ConversationStatus:
        return ConversationStatus(
            hearing=hearing,
            replier=speaking.replier,
            playback=speaking.playback,
            memory=self._memory,
            participation=self.participation,
            voice=speaking.voice,
            bridge=bridge,
            responder=self._services.replies.responder_name,
        )
