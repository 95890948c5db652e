"""The conversation of one room: speech becomes turns, the bot decides on each turn, and answers some.

`Conversation` owns what hears in the room, and `Answering`, what the bot says there, and connects them.
`bot.room.session` decides where the room is and how long it lives.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bot import events
from bot.room.conversation.answering import Answering
from bot.room.conversation.barge_in import BargeInHandler
from bot.room.conversation.hearing import Hearing, SoundDelay
from bot.room.conversation.membership import MembershipRecorder
from bot.room.conversation.transcriber import room_transcriber
from bot.room.conversation.turn_taking import TurnTaking
from bot.room.live_message import ANSWERING, LISTENING, SILENT, WRITING
from voice.cancellation import fail_if_cancelled_inside
from voice.listening.endpointing import ENDPOINTING, UNREAD_ENDPOINTING
from voice.listening.listener import RoomListener
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Sequence

    from bot.channel.port import Place
    from bot.room.services import RoomServices, SessionParts
    from bot.texts.text import Text
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
        self._observe, self._memory = services.observe, session.memory
        speech = services.speech
        self._listener = RoomListener(
            speech.detector,
            ENDPOINTING if speech.reads_texts else UNREAD_ENDPOINTING,
            judged=speech.turn_end_detector is not None,
        )
        mine = self._answering = Answering(place, services, session, self._listener, report=report)
        self._participation, self._bridge, self._replier = mine.participation, mine.bridge, mine.replier
        self.typed_talk, self.playback = mine.typed_talk, mine.speaking.playback
        self._barge_in = BargeInHandler(
            self._listener, self.playback, self._replier, self._participation, clock=self._clock
        )
        transcriber = room_transcriber(
            place,
            services,
            self._bridge or speech.recogniser,
            participants=mine.participants,
            participation=self._participation,
            own_words=self.playback.words_between,
            observe=self._on_heard,
        )
        # Somebody said this: it becomes a turn, and is answered or not.
        turn_taking = TurnTaking(
            memory=self._memory,
            quoting=mine.quoting,
            participation=self._participation,
            turn_recorder=mine.turn_recorder,
            replier=self._replier,
            replies=mine.replies,
            ask=mine.ask,
            reply_language=transcriber.reply_language,
            may_prepare=mine.may_prepare,
            clock=self._clock,
            observe=services.observe,
        )
        self._sound_delay = SoundDelay()
        self._hearing = Hearing(
            listener=self._listener,
            transcriber=transcriber,
            clock=self._clock,
            observe=self._on_heard,
            on_group=turn_taking.on_group,
            turn_end_detector=speech.turn_end_detector,
            is_urgent=self._participation.is_named_in,
            on_tentative=turn_taking.on_tentative,
            on_resumed=mine.replies.discard_for,
            drops=self._participation.drops,
        )
        self.membership = MembershipRecorder(
            place,
            services,
            memory=self._memory,
            participants=mine.participants,
            participation=self._participation,
            transcriber=transcriber,
            turn_recorder=mine.turn_recorder,
            upkeep=session.upkeep,
        )

    # -- life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Listen and take part. Never returns."""
        async with self._answering.toolbox.frozen, asyncio.TaskGroup() as tasks:
            tasks.create_task(fail_if_cancelled_inside(self._hearing.run), name="hearing")
            tasks.create_task(fail_if_cancelled_inside(self._barge_in.run), name="barge-in")
            self._answering.start(tasks)

    async def finish(self, *, process_ends: bool = False) -> None:
        """Answer nothing more, record the part of the reply that was heard, and turn the last words into turns.

        `process_ends`: a sentence that is being spoken may end first. Otherwise the bot falls silent at once.
        """
        await self._answering.stop(process_ends=process_ends)
        within_s = LAST_WORDS_OF_PROCESS_S if process_ends else LAST_WORDS_S
        await self._hearing.finish([person.id for person in self._place.members()], within_s=within_s)
        await self._answering.toolbox.frozen.finish(within_s=LAST_CALLS_S)
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
        return await self._answering.play_sample(sentence, synthesizer)

    async def speak_notice(self, sentences: Sequence[Text]) -> bool:
        """Say sentences aloud in the server's language. Return whether all of them were played to people."""
        return await self._answering.speaking.speak_notice(sentences)

    def is_busy(self) -> bool:
        """Return whether somebody speaks, or an answer is in progress or due."""
        return self._answering.is_busy()

    def on_compaction_landed(self) -> None:
        """Update the speech-to-speech session with the new summary."""
        self._answering.on_compaction_landed()

    def on_note(self, note: Note) -> None:
        self._answering.on_note(note)

    def on_screen_turn(self, turn: Turn) -> None:
        """Handle a turn, already recorded, about the start or end of a screen share."""
        self._answering.on_recorded(events.TurnRecorded(turn, self._clock.monotonic()))

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
        return self._answering.speaking.voice.status()

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
            self._answering.forget_sounds(event.speaker_id)
        if isinstance(event, events.UtteranceTranscribed):
            self._participation.on_utterance(event.speaker_id, event.text, ended_at=event.ended_at)
