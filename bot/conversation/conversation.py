"""The conversation of one room: speech becomes turns, the bot decides on each turn, and answers some.

`assemble` makes the parts that hear and those that answer. `Conversation` runs them, passes on what happens, and knows
what the bot says next. `bot.room` decides where the bot is and how long it stays.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.brain.decider import Decision, PendingReply
from bot.brain.question import CallResult, DueReminder, Question, Remark, asker_id_of, may_skip
from bot.conversation.assemble import assemble
from bot.conversation.hearing import SoundDelay
from bot.participation.participation import ReplyState
from bot.posts.live_message import ANSWERING, LISTENING, SILENT, WRITING
from bot.room_part import RoomPart
from bot.texts.text import Text, in_language, joined
from bot.viewers import Viewer
from voice.cancellation import fail_if_cancelled_inside, fail_if_it_ends
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.brain.tools.frozen_calls import FrozenCall
    from bot.channel.port import MembershipChange
    from bot.conversation.services import RoomContext
    from bot.store.reminders import Reminder
    from compaction.memory.digest import Digest
    from compaction.model import Turn
    from voice.speaking.port import Synthesizer
    from voice.transport.audio_events import AudioEvent

log = structlog.get_logger()

# At the end: how long the last words may take to become turns.
LAST_WORDS_S = 6.0
# At the end of the process nobody has sent the bot away: words that were heard have more time.
LAST_WORDS_OF_PROCESS_S = 15.0
# What somebody has pressed for just before, and runs.
LAST_CALLS_S = 5.0
# What people are told of a reply that failed just then.
LAST_NOTICES_S = 2.0
# How often to look whether the room is free for an owed answer. A pause between two people who talk is longer.
LOOK_FOR_OWED_S = 0.2
# How long a result waits for people to end what they say; how often to look.
REPORT_WITHIN_S = 15.0
REPORT_POLL_S = 0.2


class Conversation(RoomPart):
    """The conversation of one session. Its parts call it only when it is whole.

    *Ownership*: `run` is the room's task; call everything on its loop.
    *Cancellation* of `run`: await `finish` first, or the last words are lost.
    """

    task = "conversation"

    def __init__(self, session: RoomContext) -> None:
        self._session, self._services, self._clock = session, session.services, session.services.clock
        self._finishing = False
        # Held by the result that is told next, so that none takes the place of another.
        self._reporting = asyncio.Lock()
        self._sound_delay = SoundDelay()
        self.parts = assemble(session, self)

    # -- life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Listen and take part. Never returns."""
        parts = self.parts
        works = {
            "hearing": parts.hearing.run,
            "barge-in": parts.barge_in.run,
            "replies": parts.replier.run,
            "owed-answers": self._give_owed,
            "typed-talk": parts.typed_talk.run,
            "participation": parts.participation.run,
            "reminders": parts.reminding.run,
        }
        if parts.commentary is not None:
            works["screen-commentary"] = parts.commentary.run
        async with aclosing(parts.toolbox.frozen), asyncio.TaskGroup() as tasks:
            for name, work in works.items():
                tasks.create_task(fail_if_it_ends(work), name=name)
            if parts.bridge is not None:
                # It ends once speech-to-speech is given up.
                tasks.create_task(fail_if_cancelled_inside(parts.bridge.run), name="realtime")

    async def finish(self, *, goes_on: bool = False, process_ends: bool = False) -> None:
        """Answer nothing more, record the part of the reply that was heard, and turn the last words into turns.

        `process_ends`: a sentence that is being spoken may end first. Otherwise the bot falls silent at once.
        """
        self._finishing, parts = True, self.parts
        parts.typed_talk.close()
        await parts.speaking.finish(process_ends=process_ends)
        within_s = LAST_WORDS_OF_PROCESS_S if process_ends else LAST_WORDS_S
        await parts.hearing.finish([person.id for person in self._session.channel.members()], within_s=within_s)
        await parts.toolbox.frozen.finish(within_s=LAST_CALLS_S)
        await parts.participation.wait_until_written(within_s=LAST_NOTICES_S)

    async def _give_owed(self) -> None:
        """Give the answers that another person's words have stopped, when the room is free. Never returns."""
        parts = self.parts
        while True:
            await self._clock.sleep(LOOK_FOR_OWED_S)
            unanswered = parts.replier.unanswered
            if not len(unanswered) or parts.replier.busy or not parts.hearing.is_settled:
                continue
            question = unanswered.take_due(self._clock.monotonic())
            if question is not None and self._may_speak_to(asker_id_of(question)):
                log.info("owed_answer_given", answer_to=question.turn.seq)
                self.ask(question)

    # -- what happens in the room ---------------------------------------------------------------------------

    def on_compaction_landed(self) -> None:
        """Update the speech-to-speech session with the new summary."""
        if self.parts.bridge is not None:
            # The timeline is still reporting the compaction; ask it when it has finished.
            asyncio.get_running_loop().call_soon(self.parts.bridge.refresh)

    def on_recorded(self, event: events.Event) -> None:
        """Pass a recorded turn to the memory's upkeep, a note of a screen to what remarks on it, and both to
        speech-to-speech and the observer.
        """
        upkeep, commentary, bridge = self._session.upkeep, self.parts.commentary, self.parts.bridge
        if isinstance(event, events.TurnRecorded):
            if upkeep is not None:
                upkeep.wake()
            if bridge is not None:
                bridge.on_turn_recorded(event.turn, event.utterances)
        elif isinstance(event, events.ScreenNoted):
            if commentary is not None:
                commentary.on_note(event.note)
            if bridge is not None:
                bridge.refresh()
        self._services.observe(event)

    def hear(self, batch: Sequence[AudioEvent]) -> None:
        """Take sound and what else the connection tells."""
        if (delay := self._sound_delay.measure(batch, self._clock.monotonic())) is not None:
            self._services.observe(delay)
        self.parts.hearing.hear(batch)
        self.parts.barge_in.update()

    async def play_sample(self, sentence: str, synthesizer: Synthesizer) -> Text | None:
        """Say a sentence with a voice that somebody wants to hear; return why it was not said, or None."""
        participation = self.parts.participation
        if self._session.guild.listens_only:
            return participation.why_silent()
        sentences = self.parts.speaking.fixed_sentences
        if not participation.silenced and await sentences.say((sentence,), synthesizer, optional=True):
            return None
        return participation.why_silent() or Text(
            "I could not speak in {channel} now.", channel=self._session.channel.name
        )

    def on_membership(self, change: MembershipChange) -> None:
        """Somebody came into the channel, or left it."""
        person, parts, upkeep = change.person, self.parts, self._session.upkeep
        parts.participants.note_name(person)
        if not change.joined:
            parts.participation.on_left(person.id)
            parts.replier.unanswered.drop_of(person.id)
            for each in parts.transcribers:
                each.forget(person.id)
            return
        parts.participation.on_joined()
        parts.replier.on_joined()
        if upkeep is not None:
            upkeep.on_join([str(person.id)])

    def on_heard(self, event: events.Event) -> None:
        """Pass the event to the observer, to barge-in, and to participation, which handles requests for silence at
        once.
        """
        self._services.observe(event)
        self.parts.barge_in.on_event(event)
        if isinstance(event, events.UtteranceTranscribed):
            self.parts.participation.on_utterance(event.speaker_id, event.text, ended_at=event.ended_at)

    # -- what the parts ask (see `ReplyControl`) ----------------------------------------------------------------

    def reply_state(self, speaker: int | None) -> ReplyState:
        question = self.parts.replier.waiting
        waiting = PendingReply.NONE
        if question is not None:
            waiting = PendingReply.MAY_SKIP if may_skip(question) else PendingReply.CERTAIN
        return ReplyState(waiting, busy=self.parts.replier.busy or bool(self.parts.listener.speaking - {speaker}))

    def is_begun(self, utterance_id: str) -> bool:
        return self.parts.replier.stage_of(utterance_id) is not None

    @property
    def can_skip(self) -> bool:
        return self._services.replies.can_skip or self.parts.replier.answers_in_speech

    def stop_speaking(self) -> None:
        self.parts.replier.cancel_all("silenced")
        self.parts.speaking.fixed_sentences.fall_silent()
        self.parts.typed_talk.drop()

    def speak_unprompted(self, decision: Decision) -> bool:
        """Begin a remark that nobody asked for, after the last turn. Return False if there is no turn yet."""
        turn = self._last_turn()
        if turn is not None:
            self.ask(Remark(turn, decision.reason))
        return turn is not None

    async def missed(self, person_id: int) -> Digest | None:
        """Return the digest of what somebody here missed; None if they missed nothing, or nothing can be read."""
        channel, readable = self._session.channel, self._services.memory.readable
        if readable is None:
            return None
        here = channel.channel_id
        return await readable.missed(
            self._session.id, Viewer(str(person_id), channel.guild_id, frozenset({here}), present_in=here)
        )

    async def report_result(self, call: FrozenCall) -> None:
        """Tell what came of a call that ran behind the talk: in writing where they asked so, else aloud once nobody
        speaks. Whoever has left is told nothing.
        """
        if call.asker.typed is not None:
            self.parts.typed_talk.report_result(call, call.asker.typed, self._last_turn())
            return
        async with self._reporting:
            await self.until_free()
            turn = self._last_turn()
            if turn is not None and self._may_speak_to(call.asker.user_id):
                self.ask(CallResult(turn, call))

    def _may_speak_to(self, person_id: int | None) -> bool:
        """Return whether somebody is there, and may be told aloud what they are owed."""
        return self._is_here(person_id) and not self._finishing and self.parts.participation.may_speak_result()

    def _is_here(self, person_id: int | None) -> bool:
        return any(each.id == person_id for each in self.parts.participants.people)

    async def until_free(self) -> None:
        """Wait until no reply is in progress, and for some time until nobody speaks."""
        waited_s = 0.0
        while self.parts.replier.busy or (self.parts.participation.is_busy and waited_s < REPORT_WITHIN_S):
            await self._clock.sleep(REPORT_POLL_S)
            waited_s += REPORT_POLL_S

    async def tell_reminder(self, reminder: Reminder, sentence: Text) -> bool:
        """Begin to say a reminder, or write it where the bot may not speak. Return False if it cannot be told now."""
        turn, parts = self._last_turn(), self.parts
        if turn is None or parts.replier.busy or self._finishing:
            return False
        if not parts.participation.may_speak_result():
            await self._session.channel.write(sentence)
            parts.reminding.on_told(reminder.id)
            return True
        asker_id = reminder.person_id if self._is_here(reminder.person_id) else None
        says = in_language(sentence, self._session.channel.language)
        here = (str(each.id) for each in parts.participants.people)
        sources = tuple(sorted({*reminder.people, *here}))
        self.ask(DueReminder(turn, reminder.id, says, asker_id, sources))
        return True

    def _last_turn(self) -> Turn | None:
        return next((turn for turn in reversed(self._session.timeline.window) if not turn.tombstone), None)

    def ask(self, question: Question) -> None:
        """Begin the reply to a question, or let the one that has begun be its reply."""
        parts = self.parts
        if self._finishing:
            # What sounds already is remembered with its question.
            parts.replier.settle(question)
            return
        # The reply may have begun before its question was a turn.
        self._session.timeline.compactor.check()
        parts.participation.on_reply_begun(asker_id_of(question))
        if parts.commentary is not None:
            parts.commentary.on_question()
        parts.replier.ask(question)

    # -- how it is: read by /status, the live message and the metrics -------------------------------------------

    def doing(self) -> Text:
        """What the bot does at the moment, in one sentence."""
        participation = self.parts.participation
        if self._session.guild.listens_only:
            return WRITING
        if participation.silenced:
            return SILENT
        return ANSWERING if self.parts.replier.busy else LISTENING

    def talk_sentence(self) -> Text:
        """Why the bot says nothing; else what answers, and why another voice than the chosen one speaks."""
        if silent := self.parts.participation.why_unanswered():
            return silent
        bridge = self.parts.bridge
        name = self._services.replies.responder_name() if bridge is None else bridge.responder_name
        return joined((Text("I answer with {responder}.", responder=name), self.parts.speaking.voice.status()))

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how much waits: to be recognised, recorded as a turn, answered, played, stored, written."""
        parts = self.parts
        return (
            *parts.hearing.queues,
            parts.replier.queue,
            parts.speaking.playback.pieces,
            QueueFigures("store", self._session.timeline.store_queue.waiting, None),
            parts.participation.notices.figures,
            parts.typed_talk.queue,
            *(() if parts.bridge is None else parts.bridge.queues),
        )
