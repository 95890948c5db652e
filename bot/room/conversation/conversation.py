"""The conversation of one room: speech becomes turns, the bot decides on each turn, and answers some.

`Conversation` owns the room's hearing and speaking parts and connects them. `bot.room.room` decides where the room is
and how long it lives.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from bot import events
from bot.brain.decider import PendingReply, Reason
from bot.brain.reply import Question
from bot.brain.tools.be_quiet import be_quiet_tools
from bot.brain.wakeword import mentions_name
from bot.participation.all_guilds import SILENCED_FOR_GOOD
from bot.participation.participation import ReplyState
from bot.room.conversation.conversation_parts import ConversationParts
from bot.room.conversation.sound_delay import SoundDelay
from bot.texts.text import Text
from voice.cancellation import fail_if_cancelled_inside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.brain.decider import Decision
    from bot.brain.tools.frozen_calls import FrozenCall
    from bot.room.conversation.conversation_parts import ConversationInputs
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

    def __init__(self, inputs: ConversationInputs) -> None:
        self._place = inputs.place
        self._services = inputs.services
        self._clock = inputs.services.clock
        self._observe = inputs.services.observe
        self._memory = inputs.memory
        self._upkeep = inputs.upkeep
        self._quoting = inputs.quoting
        self._toolbox = inputs.toolbox
        self._finishing = False
        self._toolbox.frozen.on_done = self._tell_result
        # Held by the result that is told next, so that none takes the place of another.
        self._telling = asyncio.Lock()
        self._sound_delay = SoundDelay()
        # Each part is made after those that it needs.
        make = ConversationParts(inputs, replies=self)
        self._participation = make.participation
        self._toolbox.add(lambda asker: be_quiet_tools(asker, self._participation.be_quiet))
        self._listener = make.listener()
        turn_recorder = self._turn_recorder = make.turn_recorder(observe=self._on_recorded)
        prompt_builder = make.prompt_builder()
        self._bridge = make.bridge(prompt_builder)
        self._speaking = make.speaking(prompt_builder, make.reply_recorder(turn_recorder), self._bridge)
        self._replier, self._preemptive_reply = self._speaking.replier, self._speaking.preemptive_reply
        self.playback = self._speaking.playback
        self._barge_in = make.barge_in(self._listener, self._speaking)
        self._commentary = make.commentary(is_busy=self.is_busy, is_shown=self._is_shown)
        transcriber = make.transcriber(self._bridge, self._speaking, observe=self._on_heard)
        preparation = make.reply_preparation(
            turn_recorder, transcriber, self._speaking, may_prepare=self._may_prepare_replies
        )
        self._hearing = make.hearing(
            self._listener,
            transcriber,
            make.turn_taking(turn_recorder, transcriber, self._speaking, ask=self._ask),
            preparation,
            self._speaking,
            self._bridge,
            is_urgent=self._is_addressed,
            observe=self._on_heard,
        )
        self.membership = make.membership(turn_recorder, transcriber)
        self.status = make.status(self._hearing, self._speaking, self._bridge)

    # -- life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Listen and take part. Never returns."""
        async with self._toolbox.frozen, asyncio.TaskGroup() as tasks:
            tasks.create_task(fail_if_cancelled_inside(self._hearing.run), name="hearing")
            tasks.create_task(fail_if_cancelled_inside(self._replier.run), name="replies")
            tasks.create_task(fail_if_cancelled_inside(self._preemptive_reply.run), name="preemptive-reply")
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
            return Text("I only write down in this session and say nothing.")

        def may_say() -> bool:
            return not self._participation.silenced

        # Somebody may silence the bot while the sample waits for a reply to end, and while it is played.
        played = may_say() and await self._speaking.play_sample(sentence, synthesizer, may_say=may_say)
        if played:
            return None
        if self._participation.silenced_for_good:
            return SILENCED_FOR_GOOD
        if not may_say():
            return Text("I am silent at present. /talk lets me speak again.")
        return Text("I could not speak in {channel} now.", channel=self._place.name)

    async def speak_notice(self, sentences: Sequence[Text]) -> bool:
        """Say sentences aloud in the server's language. Return whether all of them were played to people."""
        return await self._speaking.speak_notice(sentences)

    def on_compaction_landed(self) -> None:
        """Update the speech-to-speech session with the new summary."""
        if self._bridge is not None:
            # The session memory is still reporting the compaction; ask it when it has finished.
            asyncio.get_running_loop().call_soon(self._bridge.refresh)

    def on_screen_note(self, note: Note) -> None:
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

    # -- speech becomes turns -------------------------------------------------------------------------------

    def _is_addressed(self, text: str) -> bool:
        return mentions_name(text, self._participation.wake_names)

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

    def drop_derived(self) -> None:
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
            question = Question(turns[-1], asker_id="", reason=decision.reason, may_skip=decision.may_skip)
            if decision.reason is Reason.SCREEN and self._commentary is not None:
                # The share may end while the model thinks.
                question = replace(question, is_current=self._commentary.remark_is_current())
            self._ask(question)
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
