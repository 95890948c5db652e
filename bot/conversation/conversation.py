"""The conversation of one room: speech becomes turns, the bot decides on each turn, and answers some.

`Conversation` owns the parts that hear and those that answer, and connects them. `bot.room.session` decides where the
room is and how long it lives.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from bot import events
from bot.brain.decider import PendingReply
from bot.brain.question import CallResult, DueReminder, Remark, asker_id_of, may_skip
from bot.brain.tools.built_in import be_quiet_tools
from bot.brain.tools.missed import missed_tools
from bot.brain.wakeword import use_of_name
from bot.channel.participants import Participants
from bot.conversation.barge_in import BargeInHandler
from bot.conversation.hearing import Hearing, SoundDelay
from bot.conversation.owed_answers import OwedAnswers
from bot.conversation.prompt import PromptBuilder
from bot.conversation.reminding import Reminding
from bot.conversation.speaking import Speaking
from bot.conversation.transcriber import room_transcriber
from bot.conversation.turn_recorder import ReplyRecorder, TurnRecorder
from bot.conversation.turn_taking import TurnTaking
from bot.conversation.typed_talk import TypedTalk
from bot.conversation.voice_messages import VoiceMessages
from bot.memory.recall import RecallScope
from bot.participation.participation import Participation, ReplyState
from bot.posts.live_message import ANSWERING, LISTENING, SILENT, WRITING
from bot.realtime.bridge import RealtimeBridge
from bot.room_part import RoomPart
from bot.screen.commentary import ScreenCommentary
from bot.texts.text import Text, in_language, joined
from bot.viewers import Viewer
from bot.words import SESSION
from voice.cancellation import fail_if_cancelled_inside
from voice.listening.listener import RoomListener
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from bot.brain.decider import Decision
    from bot.brain.question import Question, Spoken
    from bot.brain.reply import Reply
    from bot.brain.responder import Responder
    from bot.brain.tools.frozen_calls import FrozenCall
    from bot.channel.port import MembershipChange, TypedMessage
    from bot.conversation.services import RoomContext
    from bot.store.reminders import Reminder
    from compaction.memory.digest import Digest
    from compaction.model import Note, Turn
    from voice.speaking.port import Synthesizer
    from voice.transport.audio_events import AudioEvent

# At the end: how long the last words may take to become turns.
LAST_WORDS_S = 6.0
# At the end of the process nobody has sent the bot away: words that were heard have more time.
LAST_WORDS_OF_PROCESS_S = 15.0
# What somebody has pressed for just before, and runs.
LAST_CALLS_S = 5.0
# What people are told of a reply that failed just then.
LAST_NOTICES_S = 2.0
# How long a result waits for people to end what they say; how often to look.
REPORT_WITHIN_S = 15.0
REPORT_POLL_S = 0.2


class Conversation(RoomPart):
    """The conversation of one session.

    *Ownership*: `run` is the room's task; call everything on its loop.
    *Cancellation* of `run`: await `finish` first, or the last words are lost.
    """

    task = "conversation"

    def __init__(self, session: RoomContext) -> None:
        channel, services = session.channel, session.services
        self._session, self._services, self._clock = session, services, services.clock
        self._listener = RoomListener(services.speech.detector)
        self._finishing = False
        # Held by the result that is told next, so that none takes the place of another.
        self._reporting = asyncio.Lock()
        here = RecallScope(session.id, channel.guild_id, channel.channel_id)
        # Each part is made after those that it needs: who is there, who is answered, what is recorded, what is said.
        self._participants = Participants(channel, session.words, session.timeline.name_of)
        self._participation = Participation(
            services.participation,
            session.guild,
            session_id=session.id,
            channel=channel,
            participants=self._participants,
            clock=self._clock,
            replies=self,
        )
        self._toolbox = services.replies.open_toolbox(here, channel)
        self._toolbox.frozen.on_done = self._report_result
        self._toolbox.words = session.words
        if session.upkeep is not None:
            self._toolbox.on_failure = session.upkeep.on_tool_failed
        self._toolbox.personal.append(partial(be_quiet_tools, be_quiet=self._participation.be_quiet))
        self._reminding = Reminding(session, self._participants, until_free=self._until_free, tell=self._tell_reminder)
        self._toolbox.personal.append(self._reminding.tools)
        self._toolbox.personal.append(partial(missed_tools, missed=self._missed))
        self.turn_recorder = TurnRecorder(
            session.timeline,
            self._participants,
            own_name=services.brain.name,
            clock=self._clock,
            observe=self._on_recorded,
        )
        recorder = ReplyRecorder(self._participation, self.turn_recorder, clock=self._clock, observe=services.observe)
        prompts = PromptBuilder(
            session,
            participants=self._participants,
            participation=self._participation,
            quoting=services.memory.open_quoting(here, channel),
            toolbox=self._toolbox,
        )
        self._bridge = self._open_bridge(prompts)
        # What is typed and what is said have one: it says once that no model answers.
        responder = services.replies.new_responder(session.guild.payer)
        self.speaking = self._new_speaking(prompts, recorder, responder)
        self._replier = self.speaking.replier
        self._typed_talk = TypedTalk(
            channel,
            participation=self._participation,
            turn_recorder=self.turn_recorder,
            reply_recorder=recorder,
            build_context=prompts.build_context,
            responder=responder,
            rules=self.speaking.rules,
            clock=self._clock,
        )
        self._commentary = self._open_commentary()
        self._hear_with()

    def _hear_with(self) -> None:
        """Make the parts that hear, and decide what becomes of what was said."""
        participation, playback = self._participation, self.speaking.playback
        self._sound_delay = SoundDelay()
        self._barge_in = BargeInHandler(self._listener, playback, self._replier, participation, clock=self._clock)
        transcriber = partial(
            room_transcriber,
            self._session,
            participants=self._participants,
            participation=participation,
            own_words=playback.words_between,
            hears_again=self.answers_in_speech,
        )
        recogniser, detector = self._services.speech.recogniser, self._services.speech.detector
        # A speech-to-speech model that answers there recognises too.
        self._transcriber = transcriber(self._bridge or recogniser, observe=self._on_heard)
        # Another one: live speech waits for what this one has not recognised yet.
        self._apart = transcriber(recogniser, observe=self._services.observe)
        self._typed_talk.text_of = VoiceMessages(self._apart, detector, clock=self._clock).text_of
        # Somebody said this: it becomes a turn, and is answered or not.
        turn_taking = TurnTaking(
            participation=participation,
            turn_recorder=self.turn_recorder,
            replier=self._replier,
            ask=self.ask,
            reply_language=self._transcriber.reply_language,
            answers_in_speech=self.answers_in_speech,
            clock=self._clock,
            observe=self._services.observe,
        )
        self._hearing = Hearing(
            listener=self._listener,
            transcriber=self._transcriber,
            clock=self._clock,
            observe=self._on_heard,
            on_group=turn_taking.on_group,
            turn_end_detector=self._services.speech.turn_end_detector,
            is_urgent=lambda text: use_of_name(text, participation.wake_names).mentioned,
            answers=turn_taking,
            words=self._session.words,
        )
        self._owed = OwedAnswers(
            self._replier.unanswered,
            clock=self._clock,
            is_free=lambda: self._hearing.is_settled and not self._replier.busy,
            may_answer=self._may_answer,
            ask=self.ask,
        )

    def _open_bridge(self, prompts: PromptBuilder) -> RealtimeBridge | None:
        """Return what connects the room with a speech-to-speech model, if one answers here."""
        services, session = self._services.realtime, self._session
        # In a session that is only written down it would only cost.
        if services is None or self._participation.listens_only:
            return None
        return RealtimeBridge(
            services,
            prompts,
            session.channel,
            timeline=session.timeline,
            toolbox=self._toolbox,
            payer=session.guild.payer,
            words=session.words,
        )

    def _new_speaking(self, prompts: PromptBuilder, recorder: ReplyRecorder, responder: Responder) -> Speaking:
        async def on_reply(reply: Reply) -> None:
            await recorder.record(reply)
            self._reminding.on_reply(reply)

        return Speaking(
            self._session.channel,
            self._services,
            build_context=prompts.build_context,
            responder=responder,
            on_reply=on_reply,
            notify=self._participation.notify,
            own_names=prompts.own_names,
            bridge=self._bridge,
            somebody_speaks=lambda: bool(self._listener.sounding),
            words=self._session.words,
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
        parts = {
            "hearing": self._hearing.run,
            "barge-in": self._barge_in.run,
            "replies": self._replier.run,
            "owed-answers": self._owed.run,
            "typed-talk": self._typed_talk.run,
            "participation": self._participation.run,
            "reminders": self._reminding.run,
        }
        if self._bridge is not None:
            parts["realtime"] = self._bridge.run
        if self._commentary is not None:
            parts["screen-commentary"] = self._commentary.run
        async with aclosing(self._toolbox.frozen), asyncio.TaskGroup() as tasks:
            for name, work in parts.items():
                tasks.create_task(fail_if_cancelled_inside(work), name=name)

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """Answer nothing more, record the part of the reply that was heard, and turn the last words into turns.

        `process_ends`: a sentence that is being spoken may end first. Otherwise the bot falls silent at once.
        """
        del goes_on
        self._finishing = True
        self._typed_talk.close()
        await self.speaking.finish(process_ends=process_ends)
        within_s = LAST_WORDS_OF_PROCESS_S if process_ends else LAST_WORDS_S
        await self._hearing.finish([person.id for person in self._session.channel.members()], within_s=within_s)
        await self._toolbox.frozen.finish(within_s=LAST_CALLS_S)
        await self._participation.wait_until_written(within_s=LAST_NOTICES_S)

    # -- what happens in the room ---------------------------------------------------------------------------

    def on_compaction_landed(self) -> None:
        """Update the speech-to-speech session with the new summary."""
        if self._bridge is not None:
            # The timeline is still reporting the compaction; ask it when it has finished.
            asyncio.get_running_loop().call_soon(self._bridge.refresh)

    def on_note(self, note: Note) -> None:
        if self._commentary is not None:
            self._commentary.on_note(note)
        if self._bridge is not None:
            self._bridge.refresh()
        self._services.observe(events.ScreenNoted(note, self._clock.monotonic()))

    def on_screen_turn(self, turn: Turn) -> None:
        """Handle a turn, already recorded, about the start or end of a screen share."""
        self._on_recorded(events.TurnRecorded(turn, self._clock.monotonic()))

    def _on_recorded(self, event: events.Event) -> None:
        """Pass a recorded turn to the memory's upkeep, to speech-to-speech and to the observer."""
        if isinstance(event, events.TurnRecorded):
            if self._session.upkeep is not None:
                self._session.upkeep.wake()
            if self._bridge is not None:
                self._bridge.on_turn_recorded(event.turn, event.utterances)
        self._services.observe(event)

    def hear(self, batch: Sequence[AudioEvent]) -> None:
        """Take sound and what else the connection tells."""
        if (delay := self._sound_delay.measure(batch, self._clock.monotonic())) is not None:
            self._services.observe(delay)
        self._hearing.hear(batch)
        self._barge_in.update()

    async def take_typed(self, message: TypedMessage) -> Text | None:
        """Answer what somebody has typed to the bot, in writing and later; return why it does not, or None."""
        return await self._typed_talk.take(message)

    async def play_sample(self, sentence: str, synthesizer: Synthesizer) -> Text | None:
        """Say a sentence with a voice that somebody wants to hear; return why it was not said, or None."""
        if self._participation.listens_only:
            return self._participation.why_silent()

        def may_say() -> bool:
            return not self._participation.silenced

        # Somebody may silence the bot while the sample waits for a reply to end, and while it is played.
        played = may_say() and await self.speaking.fixed_sentences.say((sentence,), synthesizer, may_say=may_say)
        if played:
            return None
        return self._participation.why_silent() or Text(
            "I could not speak in {channel} now.", channel=self._session.channel.name
        )

    def on_membership(self, change: MembershipChange) -> None:
        """Somebody came into the channel, or left it."""
        person, upkeep = change.person, self._session.upkeep
        self._participants.note_name(person)
        if not change.joined:
            self._participation.on_left(person.id)
            self._replier.unanswered.drop_of(person.id)
            for each in (self._transcriber, self._apart):
                each.forget(person.id)
            return
        self._participation.on_joined()
        if upkeep is not None:
            upkeep.on_join([str(person.id)])

    def _on_heard(self, event: events.Event) -> None:
        """Pass the event to the observer, to barge-in, and to participation, which handles requests for silence at
        once.
        """
        self._services.observe(event)
        self._barge_in.on_event(event)
        if isinstance(event, events.UtteranceTranscribed):
            self._participation.on_utterance(event.speaker_id, event.text, ended_at=event.ended_at)

    # -- called by participation (see `ReplyControl`) and by commentary ----------------------------------------

    def reply_state(self, speaker: int | None) -> ReplyState:
        question = self._replier.waiting
        waiting = PendingReply.NONE
        if question is not None:
            waiting = PendingReply.MAY_SKIP if may_skip(question) else PendingReply.CERTAIN
        return ReplyState(waiting, busy=self._replier.busy or bool(self._listener.speaking - {speaker}))

    def is_begun(self, utterance_id: str) -> bool:
        return self._replier.stage_of(utterance_id) is not None

    @property
    def can_skip(self) -> bool:
        return self._services.replies.can_skip or self.answers_in_speech()

    def stop_speaking(self) -> None:
        self.speaking.silence()
        self._typed_talk.drop()

    def speak_unprompted(self, decision: Decision) -> bool:
        """Begin a remark that nobody asked for, after the last turn. Return False if there is no turn yet."""
        turn = self._last_turn()
        if turn is not None:
            self.ask(Remark(turn, decision.reason))
        return turn is not None

    async def _missed(self, person_id: int) -> Digest | None:
        """Return the digest of what somebody here missed; None if they missed nothing, or nothing can be read."""
        channel, readable = self._session.channel, self._services.memory.readable
        if readable is None:
            return None
        here = channel.channel_id
        return await readable.missed(
            self._session.id, Viewer(str(person_id), channel.guild_id, frozenset({here}), present_in=here)
        )

    async def _report_result(self, call: FrozenCall) -> None:
        """Tell what came of a call that ran behind the talk: in writing where they asked so, else aloud once nobody
        speaks. Whoever has left is told nothing.
        """
        if call.asker.typed is not None:
            self._typed_talk.report_result(call, call.asker.typed, self._last_turn())
            return
        async with self._reporting:
            await self._until_free()
            turn = self._last_turn()
            if turn is not None and self._is_here(call.asker.user_id) and self._participation.may_speak_result():
                self.ask(CallResult(turn, call))

    def _may_answer(self, question: Spoken | CallResult) -> bool:
        """Return whether an answer that was stopped may be given now: its asker is there, and it may be spoken."""
        is_there = self._is_here(asker_id_of(question))
        return is_there and not self._finishing and self._participation.may_speak_result()

    async def _until_free(self) -> None:
        """Wait until no reply is in progress, and for some time until nobody speaks."""
        waited_s = 0.0
        while self._replier.busy or (self.is_busy() and waited_s < REPORT_WITHIN_S):
            await self._clock.sleep(REPORT_POLL_S)
            waited_s += REPORT_POLL_S

    def _tell_reminder(self, reminder: Reminder, sentence: Text) -> bool:
        """Begin to say a reminder, or write it where the bot may not speak. Return False if it cannot be told now."""
        turn = self._last_turn()
        if turn is None or self._replier.busy or self._finishing:
            return False
        if not self._participation.may_speak_result():
            lease = self._session.words.lease({reminder.person_id, SESSION}, since=None)
            self._participation.notify(sentence, lease=lease)
            self._reminding.on_told(reminder.id)
            return True
        asker_id = reminder.person_id if self._is_here(reminder.person_id) else None
        says = in_language(sentence, self._session.channel.language)
        here = (str(each.id) for each in self._participants.people)
        sources = tuple(sorted({*reminder.people, *here}))
        self.ask(DueReminder(turn, reminder.id, says, asker_id, sources))
        return True

    def _is_here(self, person_id: int | None) -> bool:
        return any(each.id == person_id for each in self._participants.people)

    def _last_turn(self) -> Turn | None:
        return next((turn for turn in reversed(self._session.timeline.window) if not turn.tombstone), None)

    def ask(self, question: Question) -> None:
        if self._finishing:
            # What sounds already is remembered with its question.
            self._replier.settle(question)
            return
        # The reply may have begun before its question was a turn.
        self._session.timeline.fold_if_due()
        self._participation.on_reply_begun(asker_id_of(question))
        if self._commentary is not None:
            self._commentary.on_question()
        self._replier.ask(question)

    def is_busy(self) -> bool:
        """Return whether somebody speaks, or an answer is in progress or due."""
        return self._replier.busy or bool(self._listener.speaking)

    def answers_in_speech(self) -> bool:
        """Return whether speech-to-speech answers now."""
        return self._bridge is not None and self._bridge.usable

    def _is_shown(self, note: Note) -> bool:
        screens = self._services.screens
        room = None if screens is None else screens.room(self._session.channel.guild_id)
        return room is not None and room.is_shown(note)

    # -- how it is: read by /status, the live message and the metrics -------------------------------------------

    def doing(self) -> Text:
        """What the bot does at the moment, in one sentence."""
        if self._participation.listens_only:
            return WRITING
        if self._participation.silenced:
            return SILENT
        return ANSWERING if self._replier.busy else LISTENING

    def participation_sentence(self) -> Text:
        """When the bot speaks there, and what that may cost."""
        return self._participation.status()

    @property
    def dropped(self) -> Counter[str]:
        """How many sounds became no turn, by their reason."""
        return self._hearing.dropped

    def talk_sentence(self) -> Text:
        """Why the bot says nothing; else what answers, and why another voice than the chosen one speaks."""
        if silent := self._participation.why_unanswered():
            return silent
        name = self._services.replies.responder_name() if self._bridge is None else self._bridge.responder_name
        return joined((Text("I answer with {responder}.", responder=name), self.speaking.voice.status()))

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how much waits: to be recognised, recorded as a turn, answered, played, stored, written."""
        return (
            *self._hearing.queues,
            self._replier.queue,
            self.speaking.playback.pieces,
            QueueFigures("store", self._session.timeline.unstored_items, None),
            self._participation.queue,
            self._typed_talk.queue,
            *(() if self._bridge is None else self._bridge.queues),
        )
