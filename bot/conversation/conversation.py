"""The conversation of one room: speech becomes turns, the bot decides on each turn, and answers some.

`Conversation` owns what hears in the room, and `Answering`, what the bot says there, and connects them.
`bot.room.session` decides where the room is and how long it lives.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, assert_never

import structlog

from bot import events
from bot.brain.wakeword import strip_call, use_of_name
from bot.conversation.answering import Answering
from bot.conversation.hearing import Hearing, SoundDelay
from bot.conversation.membership import MembershipRecorder
from bot.conversation.transcriber import room_transcriber
from bot.conversation.turn_taking import TurnTaking
from bot.conversation.voice_messages import VoiceMessages
from bot.dropped_sounds import OVERLOADED, RECOGNISER_FAILED
from bot.posts.live_message import ANSWERING, LISTENING, SILENT, WRITING
from voice.cancellation import fail_if_cancelled_inside
from voice.listening.listener import RoomListener
from voice.queue_figures import QueueFigures
from voice.speaking.backchannel import OverlapIntent, classify_overlap
from voice.speaking.barge_in import BargeInAction, BargeInDetector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.brain.replier import Replier
    from bot.clock import Clock
    from bot.conversation.services import RoomContext
    from bot.participation.participation import Participation
    from bot.texts.text import Text
    from voice.speaking.playback import Playback
    from voice.transport.audio_events import AudioEvent

log = structlog.get_logger()

# How often to update when no sound arrives; a burst of speech ends by time.
TICK_S = 0.05
# After this much voiced sound over the bot, playback is ducked to this level; 1 is unchanged.
DUCK_AFTER_S = 0.2
# After this much it falls silent. If the sound was only a 'mm-hm' or a laugh it continues; otherwise the rest is not
# said. With a shorter time it reacts to listeners' noises.
STOP_AFTER_S = 0.7
DUCK_LEVEL = 0.3
# Sound dropped for these reasons may have been speech; for every other reason it was not.
_MAYBE_SPEECH = frozenset({OVERLOADED, RECOGNISER_FAILED})
# At the end: how long the last words may take to become turns.
LAST_WORDS_S = 6.0
# At the end of the process nobody has sent the bot away: words that were heard have more time.
LAST_WORDS_OF_PROCESS_S = 15.0
# What somebody has pressed for just before, and runs.
LAST_CALLS_S = 5.0
# What people are told of a reply that failed just then.
LAST_NOTICES_S = 2.0


class BargeInHandler:
    """Carries out the decisions of `voice.speaking.barge_in` when people speak over the bot: it ducks, pauses or stops
    the reply. It checks how long each person has spoken whenever sound arrives and every 50 ms, and passes the meaning
    of recognised words to the detector. `participation`: knows the bot's names.

    *Ownership*: `run` is the room's task; call everything on its loop.
    """

    def __init__(
        self,
        listener: RoomListener,
        playback: Playback,
        replier: Replier,
        participation: Participation,
        *,
        clock: Clock,
    ) -> None:
        self._listener = listener
        self._playback = playback
        self._replier = replier
        self._participation = participation
        self._clock = clock
        self._detector = BargeInDetector(duck_after_s=DUCK_AFTER_S, stop_after_s=STOP_AFTER_S)

    async def run(self) -> None:
        """Update as time passes. Never returns."""
        while True:
            await self._clock.sleep(TICK_S)
            self.update()

    def update(self) -> None:
        """Decide again from how long each person has spoken by now."""
        voiced, now = self._listener.voiced_s, self._clock.monotonic()
        self._apply(self._detector.update(voiced, audible=self._replier.speaking, now=now))

    def on_event(self, event: events.Event) -> None:
        """Handle the recognised text or the drop of somebody's sound; ignore other events."""
        match event:
            case events.UtteranceTranscribed():
                self._on_meaning(event, classify_overlap(strip_call(event.text, self._participation.wake_names)))
            case events.SpeechDropped():
                meaning = OverlapIntent.YIELD if event.reason in _MAYBE_SPEECH else OverlapIntent.CONTINUE
                self._on_meaning(event, meaning)
            case _:
                pass

    def _on_meaning(self, event: events.UtteranceTranscribed | events.SpeechDropped, meaning: OverlapIntent) -> None:
        act = self._detector.on_words(
            event.speaker_id,
            meaning,
            started_at=event.started_at,
            ended_at=event.ended_at,
            audible=self._replier.speaking,
            now=self._clock.monotonic(),
        )
        self._apply(act)

    def _apply(self, act: BargeInAction | None) -> None:
        match act:
            case None:
                pass
            case BargeInAction.DUCK:
                self._playback.duck(DUCK_LEVEL)
            case BargeInAction.PAUSE:
                self._playback.pause()
                log.info("reply_paused")
            case BargeInAction.RESUME:
                self._playback.resume()
                log.debug("reply_resumed")
            case BargeInAction.STOP:
                self._replier.interrupt_current()
                log.info("reply_interrupted")
            case _:
                assert_never(act)


class Conversation:
    """The conversation of one session.

    *Ownership*: `run` is the room's task; call everything on its loop.
    *Cancellation* of `run`: await `finish` first, or the last words are lost.
    """

    def __init__(self, session: RoomContext) -> None:
        services, speech = session.services, session.services.speech
        self._session, self._services, self._clock = session, services, services.clock
        self._listener = RoomListener(speech.detector)
        mine = self.answering = Answering(session, self._listener)
        self.participation = mine.participation
        self._barge_in = BargeInHandler(
            self._listener, mine.speaking.playback, mine.replier, mine.participation, clock=self._clock
        )
        # A speech-to-speech model that answers there recognises too.
        recogniser = mine.bridge or speech.recogniser
        transcriber = room_transcriber(session, mine, observe=self._on_heard, recogniser=recogniser)
        # Another one: live speech waits for what this one has not recognised yet.
        apart = room_transcriber(session, mine, observe=services.observe, recogniser=speech.recogniser)
        mine.typed_talk.text_of = VoiceMessages(apart, speech.detector, clock=self._clock).text_of
        # Somebody said this: it becomes a turn, and is answered or not.
        turn_taking = TurnTaking(
            participation=mine.participation,
            turn_recorder=mine.turn_recorder,
            replier=mine.replier,
            ask=mine.ask,
            reply_language=transcriber.reply_language,
            answers_in_speech=mine.answers_in_speech,
            clock=self._clock,
            observe=services.observe,
        )
        self._sound_delay = SoundDelay()
        self.hearing = Hearing(
            listener=self._listener,
            transcriber=transcriber,
            clock=self._clock,
            observe=self._on_heard,
            on_group=turn_taking.on_group,
            turn_end_detector=speech.turn_end_detector,
            is_urgent=lambda text: use_of_name(text, mine.participation.wake_names).mentioned,
            answers=turn_taking,
            drops=mine.participation.drops,
        )
        self.membership = MembershipRecorder(session, mine, transcriber)

    async def run(self) -> None:
        """Listen and take part. Never returns."""
        async with aclosing(self.answering.toolbox.frozen), asyncio.TaskGroup() as tasks:
            tasks.create_task(fail_if_cancelled_inside(self.hearing.run), name="hearing")
            tasks.create_task(fail_if_cancelled_inside(self._barge_in.run), name="barge-in")
            self.answering.start(tasks)

    async def finish(self, *, process_ends: bool = False) -> None:
        """Answer nothing more, record the part of the reply that was heard, and turn the last words into turns.

        `process_ends`: a sentence that is being spoken may end first. Otherwise the bot falls silent at once.
        """
        await self.answering.stop(process_ends=process_ends)
        within_s = LAST_WORDS_OF_PROCESS_S if process_ends else LAST_WORDS_S
        await self.hearing.finish([person.id for person in self._session.channel.members()], within_s=within_s)
        await self.answering.toolbox.frozen.finish(within_s=LAST_CALLS_S)
        await self.participation.wait_until_written(within_s=LAST_NOTICES_S)

    def hear(self, batch: Sequence[AudioEvent]) -> None:
        if (delay := self._sound_delay.measure(batch, self._clock.monotonic())) is not None:
            self._services.observe(delay)
        self.hearing.hear(batch)
        self._barge_in.update()

    def _on_heard(self, event: events.Event) -> None:
        """Pass the event to the observer, to barge-in, and to participation, which handles requests for silence at
        once.
        """
        self._services.observe(event)
        self._barge_in.on_event(event)
        if isinstance(event, events.UtteranceTranscribed):
            self.participation.on_utterance(event.speaker_id, event.text, ended_at=event.ended_at)

    # -- how it is: read by /status, the live message and the metrics -------------------------------------------

    def doing(self) -> Text:
        """What the bot does at the moment, in one sentence."""
        if self.participation.listens_only:
            return WRITING
        if self.participation.silenced:
            return SILENT
        return ANSWERING if self.answering.replier.busy else LISTENING

    @property
    def responder_name(self) -> Text:
        """The model that answers."""
        bridge = self.answering.bridge
        return self._services.replies.responder_name if bridge is None else bridge.responder_name

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how much waits: to be recognised, recorded as a turn, answered, played, stored, written."""
        mine = self.answering
        return (
            *self.hearing.queues,
            mine.replier.queue,
            mine.speaking.playback.pieces,
            QueueFigures("store", self._session.timeline.unstored_items, None),
            self.participation.queue,
            mine.typed_talk.queue,
            *(() if mine.bridge is None else mine.bridge.queues),
        )
