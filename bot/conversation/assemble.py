"""Makes the parts of one conversation, each from those above it. This is the way of what people say, read downwards.

What answers and what decides need each other: a decision depends on the reply in progress, and a request for silence
stops it. So the conversation, which knows both, goes into the parts that ask it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bot.brain.tools.built_in import be_quiet_tools
from bot.brain.tools.memory import missed_tools
from bot.brain.tools.toolbox import TalkTools, Toolbox
from bot.channel.participants import Participants
from bot.conversation.barge_in import BargeInHandler
from bot.conversation.hearing import Hearing
from bot.conversation.prompt import PromptBuilder
from bot.conversation.reminding import Reminding, reminder_tools
from bot.conversation.speaking import Speaking
from bot.conversation.transcriber import RoomSpeech, Transcriber
from bot.conversation.turn_recorder import ReplyRecorder, TurnRecorder
from bot.conversation.turn_taking import TurnTaking
from bot.conversation.typed_talk import TypedTalk
from bot.conversation.voice_messages import VoiceMessages
from bot.memory.recall import RecallScope
from bot.participation.participation import Participation
from bot.realtime.bridge import RealtimeBridge
from bot.screen.commentary import ScreenCommentary
from voice.listening.listener import RoomListener

if TYPE_CHECKING:
    from bot.brain.replier import Replier
    from bot.conversation.conversation import Conversation
    from bot.conversation.services import RoomContext


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one conversation. `transcribers`: of the talk, and of voice messages, for which live speech does not
    wait. `bridge`, `commentary`: None where no speech-to-speech model answers, and where nobody may share.
    """

    listener: RoomListener
    participants: Participants
    participation: Participation
    reminding: Reminding
    toolbox: Toolbox
    turn_recorder: TurnRecorder
    bridge: RealtimeBridge | None
    speaking: Speaking
    transcribers: tuple[Transcriber, Transcriber]
    typed_talk: TypedTalk
    hearing: Hearing
    barge_in: BargeInHandler
    commentary: ScreenCommentary | None

    @property
    def replier(self) -> Replier:
        return self.speaking.replier


def assemble(session: RoomContext, talk: Conversation) -> Parts:
    """Return the parts of `talk`, of which none calls it before all are made."""
    channel, services, clock, words = session.channel, session.services, session.services.clock, session.words
    here = RecallScope(session.id, channel.guild_id, channel.channel_id)

    # Who is there, and when the bot may speak.
    participants = Participants(channel, words, session.timeline.name_of)
    participation = Participation(
        services.participation,
        session.guild,
        session_id=session.id,
        channel=channel,
        participants=participants,
        clock=clock,
        replies=talk,
    )

    # What it may do.
    reminding = Reminding(session, participants, talk)
    own_tools = (
        partial(be_quiet_tools, be_quiet=participation.be_quiet),
        partial(reminder_tools, room=reminding, clock=clock, zone=services.zone),
        partial(missed_tools, missed=talk.missed),
    )
    toolbox = services.replies.open_toolbox(
        here,
        channel,
        TalkTools(
            words,
            session.timeline,
            personal=own_tools,
            on_done=talk.report_result,
            failed_turns=set() if session.upkeep is None else session.upkeep.tier_checks.failed_turns,
        ),
    )

    # What becomes of words: turns and prompts.
    turn_recorder = TurnRecorder(
        session.timeline, participants, own_name=services.brain.name, clock=clock, observe=talk.on_recorded
    )
    reply_recorder = ReplyRecorder(participation, turn_recorder, reminding, clock=clock, observe=services.observe)
    prompts = PromptBuilder(
        session,
        participants=participants,
        participation=participation,
        quoting=services.memory.open_quoting(here, channel),
        toolbox=toolbox,
    )

    # What it says. What is typed and what is said have one responder: it says once that no model answers.
    listener = RoomListener(services.speech.detector)
    responder = services.replies.new_responder(session.guild)
    bridge = None
    # In a session that is only written down it would only cost.
    if services.realtime is not None and not session.guild.listens_only:
        bridge = RealtimeBridge(
            services.realtime,
            prompts,
            channel,
            timeline=session.timeline,
            toolbox=toolbox,
            payer=session.guild,
            words=words,
        )
    speaking = Speaking(
        channel,
        services,
        participation=participation,
        prompts=prompts,
        responder=responder,
        recorder=reply_recorder,
        bridge=bridge,
        listener=listener,
    )

    # What it hears. A speech-to-speech model that answers there recognises too, but no voice messages.
    expected, recogniser = RoomSpeech(session, participants, participation, speaking), services.speech.recogniser
    live = Transcriber(bridge or recogniser, expected, words=words, clock=clock, observe=talk.on_heard)
    apart = Transcriber(recogniser, expected, words=words, clock=clock, observe=services.observe)
    typed_talk = TypedTalk(
        channel,
        participation=participation,
        turn_recorder=turn_recorder,
        reply_recorder=reply_recorder,
        prompts=prompts,
        responder=responder,
        rules=speaking.rules,
        voice_messages=VoiceMessages(apart, services.speech.detector, clock=clock),
        clock=clock,
    )
    turn_taking = TurnTaking(
        participation=participation,
        turn_recorder=turn_recorder,
        replier=speaking.replier,
        talk=talk,
        transcriber=live,
        clock=clock,
        observe=services.observe,
    )
    hearing = Hearing(
        listener=listener,
        transcriber=live,
        clock=clock,
        observe=talk.on_heard,
        answers=turn_taking,
        turn_end_detector=services.speech.turn_end_detector,
    )

    # What happens beside the talk.
    screens = services.screens
    commentary = None if screens is None else ScreenCommentary(screens, channel.guild_id, participation)
    return Parts(
        listener=listener,
        participants=participants,
        participation=participation,
        reminding=reminding,
        toolbox=toolbox,
        turn_recorder=turn_recorder,
        bridge=bridge,
        speaking=speaking,
        transcribers=(live, apart),
        typed_talk=typed_talk,
        hearing=hearing,
        barge_in=BargeInHandler(listener, speaking.playback, speaking.replier, participation, clock=clock),
        commentary=commentary,
    )
