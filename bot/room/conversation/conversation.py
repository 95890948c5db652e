"""The conversation of one room: speech becomes turns, the bot decides on each turn, and answers some.

`Conversation` owns the parts that hear and speak in the room, and connects them. `bot.room.session` decides where the
room is and how long it lives.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from bot import events
from bot.brain.decider import PendingReply
from bot.brain.reply import Question
from bot.brain.tools.be_quiet import be_quiet_tools
from bot.channel.participants import Participants
from bot.memory.recall import RecallScope
from bot.participation.participation import Participation, ReplyState
from bot.realtime.bridge import RealtimeBridge
from bot.room.conversation.barge_in import BargeInHandler
from bot.room.conversation.hearing import Hearing, SoundDelay
from bot.room.conversation.membership import MembershipRecorder
from bot.room.conversation.prompt import PromptBuilder
from bot.room.conversation.reply_source import begin_answer
from bot.room.conversation.speaking import Speaking
from bot.room.conversation.transcriber import room_transcriber
from bot.room.conversation.turn_recorder import ReplyRecorder, TurnRecorder
from bot.room.conversation.turn_taking import TurnTaking
from bot.room.conversation.typed_talk import TypedTalk
from bot.room.live_message import ANSWERING, LISTENING, SILENT, WRITING
from bot.screen.commentary import ScreenCommentary
from bot.texts.text import Text
from voice.cancellation import fail_if_cancelled_inside
from voice.listening.endpointing import ENDPOINTING, UNREAD_ENDPOINTING
from voice.listening.listener import RoomListener
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from bot.brain.decider import Decision
    from bot.brain.tools.frozen_calls import FrozenCall
    from bot.channel.port import Place
    from bot.room.services import RoomServices, SessionParts
    from bot.screen.room import RoomScreens
    from compaction.model import Note, Turn
    from voice.speaking.port import Synthesizer
    from voice.transport.audio_events import AudioEvent

# At the end: how long the last words may take to become turns.
LAST_WORDS_S = 6.0
# At the end of the process nobody has sent the bot away: words that were heard have more time.
LAST_WORDS_OF_PROCESS_S = 15.0
# What somebody has pressed for just before, and runs.
LAST_CALLS_S = 5.0
# How long a result waits for people to end what they say; how often to look.
TELL_WITHIN_S = 15.0
TELL_POLL_S = 0.2
# What people are told of a reply that failed just then.
LAST_NOTICES_S = 2.0


class Conversation:
    """The conversation of one session.

    *Ownership*: `run` is the room's task; call everything on its loop, except `excludes`.
    *Cancellation* of `run`: await `finish` first, or the last words are lost.
    """

    def __init__(
        self, place: Place, services: RoomServices, session: SessionParts, *, report: Callable[[str, Exception], None]
    ) -> None:
        """`report`: called with the place in the code and the error of each problem."""
        self._place, self._services, self._clock = place, services, services.clock
        self._observe = services.observe
        self._memory, self._upkeep = session.memory, session.upkeep
        self._finishing = False
        # Held by the result that is told next, so that none takes the place of another.
        self._telling = asyncio.Lock()
        here = RecallScope(session.id, place.guild_id, place.channel_id)
        self._quoting = services.memory.open_quoting(here, place)
        self._toolbox = services.replies.open_toolbox(here, place)
        # Each part is made after those that it needs.
        participants = Participants(place, self._memory.name_of)
        self._participation = Participation(
            services.participation,
            session.guild,
            session_id=session.id,
            place=place,
            participants=participants,
            clock=self._clock,
            replies=self,
        )
        self._connect_tools()
        turn_recorder = TurnRecorder(
            self._memory,
            place,
            participants,
            own_name=services.brain.name,
            clock=self._clock,
            observe=self._on_recorded,
        )
        prompts = PromptBuilder(
            services,
            place=place,
            memory=self._memory,
            participants=participants,
            participation=self._participation,
            upkeep=self._upkeep,
            quoting=self._quoting,
            toolbox=self._toolbox,
            report=report,
        )
        self._bridge = self._open_bridge(prompts)
        reply_recorder = ReplyRecorder(
            self._participation, turn_recorder, toolbox=self._toolbox, clock=self._clock, observe=services.observe
        )
        self._speaking = Speaking(
            place,
            services,
            build_context=prompts.build_context,
            on_reply=reply_recorder.record,
            tell=self._participation.notify,
            wake_names=self._participation.wake_names,
            bridge=self._bridge,
        )
        self.typed_talk = TypedTalk(
            place,
            participation=self._participation,
            turn_recorder=turn_recorder,
            reply_recorder=reply_recorder,
            begin=partial(
                begin_answer, build_context=prompts.build_context, responder=services.replies.new_responder()
            ),
            rules=self._speaking.rules,
            clock=self._clock,
        )
        self._replier, self._replies = self._speaking.replier, self._speaking.replies
        self.playback = self._speaking.playback
        speech = services.speech
        self._listener = RoomListener(
            speech.detector,
            ENDPOINTING if speech.reads_texts else UNREAD_ENDPOINTING,
            judged=speech.turn_end_detector is not None,
        )
        self._barge_in = BargeInHandler(
            self._listener,
            self.playback,
            self._replier,
            self._participation,
            clock=self._clock,
        )
        self._commentary = self._open_commentary()
        transcriber = room_transcriber(
            place,
            services,
            self._bridge or speech.recogniser,
            participants=participants,
            participation=self._participation,
            own_words=self.playback.words_between,
            observe=self._on_heard,
        )
        # Somebody said this: it becomes a turn, and is answered or not.
        self.turn_taking = TurnTaking(
            memory=self._memory,
            quoting=self._quoting,
            participation=self._participation,
            turn_recorder=turn_recorder,
            replier=self._replier,
            replies=self._replies,
            ask=self._ask,
            reply_language=transcriber.reply_language,
            may_prepare=self._may_prepare_replies,
            clock=self._clock,
            observe=services.observe,
        )
        self._sound_delay = SoundDelay()
        self._hearing = Hearing(
            listener=self._listener,
            transcriber=transcriber,
            clock=self._clock,
            observe=self._on_heard,
            on_group=self.turn_taking.on_group,
            turn_end_detector=speech.turn_end_detector,
            is_urgent=self._participation.is_named_in,
            on_tentative=self.turn_taking.on_tentative,
            on_resumed=self._replies.discard_for,
            drops=self._participation.drops,
        )
        self.membership = MembershipRecorder(
            place,
            services,
            memory=self._memory,
            participants=participants,
            participation=self._participation,
            transcriber=transcriber,
            turn_recorder=turn_recorder,
            upkeep=self._upkeep,
        )

    def _connect_tools(self) -> None:
        """Connect the toolbox with the parts that its calls concern."""
        self._toolbox.frozen.on_done = self._tell_result
        if self._upkeep is not None:
            self._toolbox.on_failure = self._upkeep.on_tool_failed
        self._toolbox.add(partial(be_quiet_tools, be_quiet=self._participation.be_quiet))

    def _open_bridge(self, prompts: PromptBuilder) -> RealtimeBridge | None:
        """Return what connects the room with a speech-to-speech model, if one answers here."""
        services = self._services.realtime
        # In a session that is only written down it would only cost.
        if services is None or self._participation.listens_only:
            return None
        return RealtimeBridge(
            services, prompts, self._place, memory=self._memory, toolbox=self._toolbox, quoting=self._quoting
        )

    def _open_commentary(self) -> ScreenCommentary | None:
        """Return what remarks on shared screens, if the settings want that."""
        screens = self._services.screens
        if screens is None:
            return None
        return ScreenCommentary(
            every_s=screens.remark_every_s,
            clock=self._clock,
            is_busy=self.is_busy,
            is_shown=self._is_shown,
            request_remark=self._participation.request_remark,
        )

    # -- life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Listen and take part. Never returns."""
        async with self._toolbox.frozen, asyncio.TaskGroup() as tasks:
            tasks.create_task(fail_if_cancelled_inside(self._hearing.run), name="hearing")
            tasks.create_task(fail_if_cancelled_inside(self._replier.run), name="replies")
            tasks.create_task(fail_if_cancelled_inside(self.typed_talk.run), name="typed-talk")
            tasks.create_task(fail_if_cancelled_inside(self._replies.run), name="preemptive-reply")
            tasks.create_task(fail_if_cancelled_inside(self._barge_in.run), name="barge-in")
            tasks.create_task(fail_if_cancelled_inside(self._participation.run), name="participation")
            if self._bridge is not None:
                tasks.create_task(fail_if_cancelled_inside(self._bridge.run), name="realtime")
            if self._commentary is not None:
                tasks.create_task(fail_if_cancelled_inside(self._commentary.run), name="screen-commentary")

    async def finish(self, *, process_ends: bool = False) -> None:
        """Answer nothing more, record the part of the reply that was heard, and turn the last words into turns.

        `process_ends`: a sentence that is being spoken may end first. Otherwise the bot falls silent at once.
        """
        self._finishing = True
        self.typed_talk.close()
        await self._speaking.finish(process_ends=process_ends)
        within_s = LAST_WORDS_OF_PROCESS_S if process_ends else LAST_WORDS_S
        await self._hearing.finish([person.id for person in self._place.members()], within_s=within_s)
        await self._toolbox.frozen.finish(within_s=LAST_CALLS_S)
        await self._participation.wait_until_written(within_s=LAST_NOTICES_S)

    # -- called by the room -----------------------------------------------------------------------------------

    def hides(self, user_id: int) -> bool:
        """Return whether nobody is shown what a person has said or done here: they opted out or were forgotten."""
        return self._participation.excludes(user_id) or self._participation.has_forgotten(user_id)

    def excludes(self, user_id: int) -> bool:
        """Return whether a person may not be heard. Thread-safe."""
        return self._participation.excludes(user_id)

    def drops(self, user_id: int, *, started_at: float) -> bool:
        """Return whether what a person began to say then (monotonic seconds) may not be used."""
        return self._participation.drops(user_id, started_at=started_at)

    def hear(self, batch: Sequence[AudioEvent]) -> None:
        if (delay := self._sound_delay.measure(batch, self._clock.monotonic())) is not None:
            self._observe(delay)
        self._hearing.hear(batch)
        self._barge_in.update()

    async def play_sample(self, sentence: str, synthesizer: Synthesizer) -> Text | None:
        """Say a sentence with a voice that somebody wants to hear; return why it was not said, or None."""
        if self._participation.listens_only:
            return self._participation.why_silent()

        def may_say() -> bool:
            return not self._participation.silenced

        # Somebody may silence the bot while the sample waits for a reply to end, and while it is played.
        played = may_say() and await self._speaking.play_sample(sentence, synthesizer, may_say=may_say)
        if played:
            return None
        return self._participation.why_silent() or Text("I could not speak in {channel} now.", channel=self._place.name)

    async def speak_notice(self, sentences: Sequence[Text]) -> bool:
        """Say sentences aloud in the server's language. Return whether all of them were played to people."""
        return await self._speaking.speak_notice(sentences)

    def on_compaction_landed(self) -> None:
        """Update the speech-to-speech session with the new summary."""
        if self._bridge is not None:
            # The session memory is still reporting the compaction; ask it when it has finished.
            asyncio.get_running_loop().call_soon(self._bridge.refresh)

    def on_note(self, note: Note) -> None:
        if self._commentary is not None:
            self._commentary.on_note(note)
        if self._bridge is not None:
            self._bridge.refresh()
        self._observe(events.ScreenNoted(note, self._clock.monotonic()))

    def on_screen_turn(self, turn: Turn) -> None:
        """Handle a turn, already recorded, about the start or end of a screen share."""
        self._on_recorded(events.TurnRecorded(turn, self._clock.monotonic()))

    def _on_recorded(self, event: events.Event) -> None:
        """Pass a recorded turn to the memory's upkeep, to speech-to-speech and to the observer."""
        if isinstance(event, events.TurnRecorded):
            if self._upkeep is not None:
                self._upkeep.on_turn()
            if self._bridge is not None:
                self._bridge.on_turn_recorded(event.turn, event.utterances)
        self._observe(event)

    # -- how it is: read by /status, the live message and the metrics -------------------------------------------

    def doing(self) -> Text:
        """What the bot does at the moment, in one sentence."""
        if self._participation.listens_only:
            return WRITING
        if self._participation.silenced:
            return SILENT
        return ANSWERING if self._replier.busy else LISTENING

    @property
    def responder_name(self) -> Text:
        """The model that answers."""
        return self._services.replies.responder_name if self._bridge is None else self._bridge.responder_name

    @property
    def dropped(self) -> Counter[str]:
        """Return how many sounds became no turn, by reason."""
        return self._hearing.dropped

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how much waits: to be recognised, recorded as a turn, answered, played, stored, written."""
        return (
            *self._hearing.queues,
            *self._replier.queues,
            self.playback.pieces,
            QueueFigures("store", self._memory.unstored_items, None),
            self._participation.queue,
            self.typed_talk.queue,
            *(() if self._bridge is None else self._bridge.queues),
        )

    def participation_status(self) -> Text:
        """Return decisions and costs in plain sentences."""
        return self._participation.status()

    def why_silent(self) -> Text:
        """Return why the bot answers nobody; empty if it answers."""
        return self._participation.why_silent()

    def voice_status(self) -> Text:
        """Return why another voice than the chosen one speaks; empty if it does not."""
        return self._speaking.voice.status()

    # -- speech becomes turns -------------------------------------------------------------------------------

    def _on_heard(self, event: events.Event) -> None:
        """Pass the event to the observer, to barge-in, and to participation, which handles requests for silence at
        once.
        """
        self._observe(event)
        self._barge_in.on_event(event)
        if isinstance(event, events.UtteranceTranscribed | events.SpeechDropped) and self._participation.drops(
            event.speaker_id, started_at=event.started_at
        ):
            # It was on its way when they opted out or were forgotten, and becomes no turn.
            self._forget_sounds(event.speaker_id)
        if isinstance(event, events.UtteranceTranscribed):
            self._participation.on_utterance(event.speaker_id, event.text, ended_at=event.ended_at)

    # -- speaking: called by participation (see `ReplyControl`) and by commentary ----------------------------------

    @property
    def reply_state(self) -> ReplyState:
        question = self._replier.waiting
        waiting = PendingReply.NONE
        if question is not None:
            waiting = PendingReply.MAY_SKIP if question.may_skip else PendingReply.CERTAIN
        return ReplyState(waiting, busy=self.is_busy())

    @property
    def can_skip(self) -> bool:
        return self._services.replies.can_skip or self._uses_realtime()

    def stop_speaking(self) -> None:
        self._speaking.silence()
        self.typed_talk.drop()

    def drop_derived(self) -> None:
        self.typed_talk.drop()
        self._speaking.drop_prepared()
        self._toolbox.drop_derived()
        if self._quoting is not None:
            self._quoting.discard()
        if self._bridge is not None:
            self._bridge.drop_derived()
        if (screens := self._screens()) is not None:
            screens.end_excluded()

    def drop_unrecorded(self, person_id: int) -> None:
        self._forget_sounds(person_id)
        if (screens := self._screens()) is not None:
            screens.forget(person_id)

    def _forget_sounds(self, person_id: int) -> None:
        if self._bridge is not None:
            self._bridge.forget_sounds(person_id)

    def speak_unprompted(self, decision: Decision) -> bool:
        """Begin a remark that nobody asked for, after the last turn. Return False if there is no turn yet."""
        turns = [turn for turn in self._memory.window if not turn.tombstone]
        if turns:
            self._ask(Question(turns[-1], asker_id="", reason=decision.reason, may_skip=decision.may_skip))
        return bool(turns)

    async def _tell_result(self, call: FrozenCall) -> None:
        """Say what came of a call that somebody pressed for, once nobody speaks. The chat has it in any case."""
        async with self._telling:
            waited_s = 0.0
            while self.is_answering() or (self.is_busy() and waited_s < TELL_WITHIN_S):
                await self._clock.sleep(TELL_POLL_S)
                waited_s += TELL_POLL_S
            turns = [turn for turn in self._memory.window if not turn.tombstone]
            if turns and self._participation.may_tell():
                self._ask(Question(turns[-1], asker_id=str(call.asker.user_id), pressed=call))

    def _ask(self, question: Question) -> None:
        if self._finishing:
            return
        self._participation.on_reply_begun(int(question.asker_id) if question.asker_id else None)
        if self._commentary is not None:
            self._commentary.on_question()
        self._replier.ask(question)

    def _may_prepare_replies(self) -> bool:
        """Return whether a reply may be prepared before it is certain that one is wanted."""
        return not self._finishing and not self._uses_realtime() and self._services.replies.can_skip

    def is_answering(self) -> bool:
        """Return whether an answer is in progress or due."""
        return self._replier.busy

    def is_busy(self) -> bool:
        """Return whether somebody speaks, or an answer is in progress or due."""
        return self.is_answering() or bool(self._listener.speaking)

    def _uses_realtime(self) -> bool:
        return self._bridge is not None and self._bridge.usable

    def _is_shown(self, note: Note) -> bool:
        screens = self._screens()
        return screens is not None and screens.is_shown(note)

    def _screens(self) -> RoomScreens | None:
        screens = self._services.screens
        return None if screens is None else screens.room(self._place.guild_id)
