"""Turns a room's sound into text: endpointing, the queue for the recogniser, and utterance groups.

An utterance group becomes one turn: one utterance, or several that overlapped in time, in the order in which they
began. `transcriber` makes the text of each. A speaker's utterances are recognised one after the other, so their words
stay in order. Hearing knows speakers by id only. It reports every sound that does not become text, with the reason.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

import structlog

from bot import events
from bot.brain.reply_life import ReplyStage
from bot.conversation.pauses import Pauses
from bot.dropped_sounds import OPTED_OUT, OVERLOADED
from bot.events import SpokenText
from voice.asr.sound_effect import is_sound_effect
from voice.audio import LISTEN_RATE_HZ, NO_SOUND
from voice.cancellation import fail_if_it_ends
from voice.listening.coalesce import UtteranceCoalescer
from voice.listening.listener import TICK_S, RoomListener
from voice.listening.pause import PauseVerdict, Silent
from voice.listening.utterance import ListeningEvent, PauseBegan, PauseEnded, SpeechStarted, Utterance, UtteranceDropped
from voice.queue_figures import QueueFigures
from voice.transport.audio_events import AudioEvent, SpeakerLeft, SpeechFrames

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.clock import Clock
    from bot.conversation.transcriber import TranscribedUtterance, Transcriber
    from bot.conversation.turn_taking import TurnTaking
    from voice.listening.turn_detection import TurnEndDetector

log = structlog.get_logger()

# Utterances that may wait for the recogniser. At three seconds each, a full queue is minutes behind, which is too late
# to take part in the conversation. Then some are given up and reported.
UTTERANCES_WAITING = 64
# Their sound, in seconds: 64 utterances of nine seconds, which are 19 MB. Without this bound they might be half a
# minute each, and every room that falls behind would keep 61 MB.
SOUND_WAITING_S = 600.0
# Where a finished utterance has waited so long for the recogniser, the next one waits too, and nothing depends on
# knowing its end half a second sooner.
BEHIND_S = 2.0
# Utterances that are given to the recogniser at once, each of another speaker, so that it can be fair between them.
RECOGNISED_AT_ONCE = 4
# How long a finished utterance waits at most while others are in mid-sentence; then the group becomes a turn. An
# utterance with the bot's name does not wait.
GROUP_WAIT_S = 10.0
# Time for the last groups to become turns, which is quick unless the database stalls.
PASS_ON_S = 3.0
# Groups that may wait to be recorded. Groups are never dropped: hearing waits. They have no sound.
GROUPS_WAITING = 64

# How often it is measured how late sound comes.
MEASURE_EVERY_S = 1.0


class SoundDelay:
    """The measurement of one room, once a second while somebody speaks. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._measured_at = float("-inf")

    def measure(self, batch: Sequence[AudioEvent], now: float) -> events.SoundReceived | None:
        """Return how late the first sound of a batch is; None if the batch has no sound or the second is not over."""
        if now - self._measured_at < MEASURE_EVERY_S:
            return None
        sound = next((event for event in batch if isinstance(event, SpeechFrames)), None)
        if sound is None:
            return None
        self._measured_at = now
        arrived_at = sound.captured_at + len(sound.pcm) / LISTEN_RATE_HZ
        return events.SoundReceived(max(0.0, now - arrived_at), now)


class UtteranceBacklog:
    """The finished utterances of one room that wait for the recogniser, in the order in which they ended: at most
    `size`, and `sound_s` seconds of sound. A single one is kept however long it is.

    When the recogniser cannot keep up, whoever has the most utterances waiting loses their oldest one; among equals,
    whoever has waited longest does. So nobody loses their only utterance while somebody else has two, and who speaks
    little is heard in full however much the others speak.
    """

    def __init__(self, size: int, *, sound_s: float) -> None:
        self._size = size
        self._most_samples = round(sound_s * LISTEN_RATE_HZ)
        self._waiting: deque[Utterance] = deque()
        self._samples = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def waits_since(self) -> float | None:
        """Return when the utterance that has waited longest was complete, in monotonic seconds; None if none waits."""
        return self._waiting[0].closed_at if self._waiting else None

    def add(self, utterance: Utterance) -> tuple[Utterance, ...]:
        """Add a finished utterance. Returns those that are given up for it: none if there is room."""
        self._waiting.append(utterance)
        self._samples += len(utterance.pcm)
        given_up: list[Utterance] = []
        while len(self._waiting) > self._size or (self._samples > self._most_samples and len(self._waiting) > 1):
            waiting_of = Counter(waiting.user_id for waiting in self._waiting)
            # The first of equals is whoever has waited longest.
            given_up.append(self._remove_of(max(waiting_of, key=waiting_of.__getitem__)))
        return tuple(given_up)

    def take(self, user_id: int) -> Utterance | None:
        """Remove and return this speaker's utterance that has waited longest; None if none of theirs waits."""
        return self._remove_of(user_id) if any(each.user_id == user_id for each in self._waiting) else None

    def _remove_of(self, user_id: int) -> Utterance:
        removed = next(each for each in self._waiting if each.user_id == user_id)
        self._waiting.remove(removed)
        self._samples -= len(removed.pcm)
        return removed


class Hearing:
    """The hearing of one room.

    `turn_end_detector` judges in pauses whether the speaker has finished. `answers` gets what was said.

    *Ownership*: `run` is the room's task; call everything on its loop.
    """

    def __init__(
        self,
        *,
        listener: RoomListener,
        transcriber: Transcriber,
        clock: Clock,
        observe: events.Observer,
        answers: TurnTaking,
        turn_end_detector: TurnEndDetector | None,
    ) -> None:
        self._listener = listener
        self._transcriber = transcriber
        self._clock = clock
        self._observe = observe
        self._answers = answers
        self._pauses = Pauses(
            self,
            turn_end_detector=turn_end_detector,
            transcriber=transcriber,
        )
        self._backlog = UtteranceBacklog(UTTERANCES_WAITING, sound_s=SOUND_WAITING_S)
        # Of whom an utterance is in the backlog or with the recogniser; and in turns, those of whom none is with it.
        self._heard_of: set[int] = set()
        self._speakers: asyncio.Queue[int] = asyncio.Queue()
        self._coalescing: UtteranceCoalescer[SpokenText] = UtteranceCoalescer(longest_wait_s=GROUP_WAIT_S)
        self._groups: asyncio.Queue[tuple[SpokenText, ...]] = asyncio.Queue(GROUPS_WAITING)
        self._delivering = False
        self.dropped: Counter[str] = Counter()
        # How many utterances were given up because too many waited.
        self._overflowed = 0

    @property
    def queues(self) -> tuple[QueueFigures, ...]:
        """Return how many utterances wait for their text, and how many groups wait to be recorded."""
        capacity = UTTERANCES_WAITING + RECOGNISED_AT_ONCE
        return (
            QueueFigures("recognise", len(self._transcriber.pending), capacity, {OVERLOADED: self._overflowed}),
            QueueFigures("record", self._groups.qsize(), GROUPS_WAITING),
        )

    def hear(self, batch: Sequence[AudioEvent]) -> None:
        """Take sound from the voice connection. Returns quickly."""
        self._dispatch(self._listener.hear(batch, self._clock.monotonic()))

    async def run(self) -> None:
        """Endpoint, recognise and pass groups on. Never returns."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail_if_it_ends(self._pauses.run), name="pauses")
            tasks.create_task(fail_if_it_ends(self._tick), name="endpointing")
            for number in range(RECOGNISED_AT_ONCE):
                tasks.create_task(fail_if_it_ends(self._recognise_queued), name=f"transcribe-{number}")
            tasks.create_task(fail_if_it_ends(self._deliver_groups), name="utterance-groups")

    async def finish(self, people: Sequence[int], *, within_s: float) -> None:
        """End everybody's utterances now, wait for their texts for `within_s` at most, and then until what has a text
        is passed on, for `PASS_ON_S` at most.
        """
        now = self._clock.monotonic()
        self.hear([SpeakerLeft(user_id, now) for user_id in people])
        try:
            async with asyncio.timeout(within_s):
                await self._speakers.join()
        except TimeoutError:
            log.warning("last_words_lost", utterance_count=len(self._transcriber.pending), within_s=within_s)
        try:
            async with asyncio.timeout(PASS_ON_S):
                # Words that have a text are not lost because others have none.
                if group := self._coalescing.flush():
                    await self._groups.put(group)
                await self._groups.join()
        except TimeoutError:
            log.warning("last_groups_lost", group_count=self._groups.qsize(), within_s=PASS_ON_S)

    @property
    def is_settled(self) -> bool:
        """Return whether nobody speaks, and all that was said is a turn and decided on."""
        waits = self._transcriber.pending or self._coalescing.held or self._groups.qsize() or self._delivering
        return not (self._listener.speaking or waits)

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK_S)
            for listening_events in self._listener.tick_in_pieces(self._clock.monotonic()):
                self._dispatch(listening_events)
                # The event loop does what else is due.
                await asyncio.sleep(0)
            self._pauses.tick()
            await self._release_group()

    def _dispatch(self, listening_events: Sequence[ListeningEvent]) -> None:
        for event in listening_events:
            match event:
                case PauseBegan():
                    self._pauses.begin(event)
                case PauseEnded():
                    self._pauses.discard(event.utterance_id)
                    self._answers.withdraw(event.utterance_id)
                case Utterance():
                    self._queue(event)
                case UtteranceDropped():
                    self._drop(event, event.reason.value)
                case SpeechStarted():
                    pass
                case _:
                    assert_never(event)

    # -- called in pauses; nothing of it waits -----------------------------------------------------------------

    @property
    def is_behind(self) -> bool:
        """Return whether more is spoken than the recogniser can keep up with."""
        since = self._backlog.waits_since
        return since is not None and self._clock.monotonic() - since >= BEHIND_S

    def read(self, utterance: Utterance, transcription: TranscribedUtterance) -> SpokenText | None:
        """Return the words of speech that may go on; None if there are none that can be believed."""
        recognition = transcription.recognition
        if recognition is None or self._transcriber.guard(utterance, transcription) is not None:
            return None
        now = self._clock.monotonic()
        if self._transcriber.words.may_use(utterance.user_id, since=utterance.started_at):
            self._observe(
                events.InterimTranscribed(
                    utterance.user_id, recognition.text, utterance.started_at, utterance.ended_at, now
                )
            )
        return SpokenText(utterance, recognition, transcription.asked_at, transcription.known_at, early=True)

    def preview(self, spoken: SpokenText | None) -> PauseVerdict:
        """Return what would become of the words. None: there are none that can be believed."""
        return self._answers.preview(spoken, self._coalescing.held)

    def release(self, spoken: SpokenText) -> PauseVerdict:
        """Let the reply that is held sound. Return SOUNDING if its first sound will end the speech, DUE if nothing but
        the end is waited for, or what would become of the words by now.
        """
        return self._answers.release(spoken, self._coalescing.held)

    def end(self, utterance: Utterance) -> None:
        """End the speech in its pause."""
        self._dispatch(self._listener.end_in_pause(utterance, self._clock.monotonic()))

    def silence_of(self, utterance: Utterance, spoken: SpokenText | None) -> Silent | None:
        """Return how long the pause has lasted, and how far the reply is; None: the pause is over."""
        seconds = self._listener.silence_s(utterance)
        if seconds is None:
            return None
        urgent = spoken is not None and self._transcriber.names_bot(spoken.text)
        others = self._listener.speaking - {utterance.user_id} or self._transcriber.pending or self._coalescing.held
        stage = self._answers.stage_of(utterance.id)
        return Silent(
            seconds,
            others_first=bool(others) and not urgent,
            ready=stage is ReplyStage.READY,
            sounding=stage is ReplyStage.HEARD,
        )

    # -- sound becomes text ----------------------------------------------------------------------------------

    def _queue(self, utterance: Utterance) -> None:
        self._transcriber.on_finished(utterance)
        for given_up in self._backlog.add(utterance):
            self._overflowed += 1
            self._transcriber.pending.discard(given_up.id)
            self._pauses.discard(given_up.id)
            self._drop(given_up, OVERLOADED)
        if utterance.user_id not in self._heard_of:
            self._heard_of.add(utterance.user_id)
            self._speakers.put_nowait(utterance.user_id)

    async def _recognise_queued(self) -> None:
        while True:
            speaker = await self._speakers.get()
            try:
                utterance = self._backlog.take(speaker)
                if utterance is None:
                    self._heard_of.discard(speaker)
                    continue
                spoken = await self._finish_text(utterance)
                self._transcriber.pending.discard(utterance.id)
                if spoken is not None:
                    await self._add_to_group(spoken)
                await self._release_group()
                self._speakers.put_nowait(speaker)
            finally:
                self._speakers.task_done()

    async def _finish_text(self, utterance: Utterance) -> SpokenText | None:
        """Return a finished utterance's text; None if the utterance was dropped, after reporting that."""
        ahead = await self._pauses.take(utterance.id)
        if ahead is not None and ahead.recognition is not None and not ahead.gave_way:
            transcription = ahead
        else:
            # The failure of a recognition in the pause was not reported. A text that gave way is better than none.
            transcription = await self._transcriber.transcribe(utterance)
            if transcription.recognition is None and ahead is not None and ahead.recognition is not None:
                transcription = ahead
        if not self._transcriber.words.may_use(utterance.user_id, since=utterance.started_at):
            self._drop(utterance, OPTED_OUT)
            return None
        recognition = transcription.recognition
        if recognition is None:
            self._drop(utterance, transcription.failure)
            return None
        reason = self._transcriber.guard(utterance, transcription)
        if reason is not None:
            # What is known of the person's language may be wrong.
            self._transcriber.languages.doubt(utterance.user_id)
            self._drop(utterance, reason.value, recognition.text)
            return None
        self._transcriber.on_accepted(utterance, transcription)
        asked_at, text_at = transcription.asked_at, transcription.known_at
        self._observe(
            events.UtteranceTranscribed(
                utterance.id, utterance.user_id, recognition.text, utterance.started_at, utterance.ended_at, text_at
            )
        )
        spoken = SpokenText(
            replace(utterance, pcm=NO_SOUND), recognition, asked_at, text_at, early=transcription is ahead
        )
        log.info(
            "utterance_transcribed",
            utterance_id=utterance.id,
            speaker_id=utterance.user_id,
            duration_s=round(utterance.ended_at - utterance.started_at, 2),
            char_count=len(recognition.text),
            **spoken.stages_ms,
        )
        return spoken

    # -- text becomes groups ---------------------------------------------------------------------------------

    async def _add_to_group(self, spoken: SpokenText) -> None:
        """Add an utterance to the open group; a sound effect alone is a group of its own."""
        if is_sound_effect(spoken.text):
            await self._groups.put((spoken,))
            return
        urgent = self._transcriber.names_bot(spoken.text)
        self._coalescing.add(spoken, urgent=urgent, now=self._clock.monotonic())

    async def _release_group(self) -> None:
        """Pass the open group on if no more of its text is expected, or if it has waited long enough."""
        anybody_speaks = bool(self._listener.speaking or self._transcriber.pending)
        group = self._coalescing.release(anybody_speaks=anybody_speaks, now=self._clock.monotonic())
        if group:
            await self._groups.put(group)

    async def _deliver_groups(self) -> None:
        while True:
            group = await self._groups.get()
            self._delivering = True
            try:
                await self._answers.on_group(group)
            finally:
                self._delivering = False
                self._groups.task_done()

    # -- dropped sound ---------------------------------------------------------------------------------------

    def _drop(self, sound: Utterance | UtteranceDropped, reason: str, text: str = "") -> None:
        utterance_id = sound.id if isinstance(sound, Utterance) else ""
        self._answers.withdraw(utterance_id)
        self.dropped[reason] += 1
        log.info(
            "utterance_dropped",
            utterance_id=utterance_id,
            speaker_id=sound.user_id,
            reason=reason,
            duration_s=round(sound.ended_at - sound.started_at, 2),
        )
        self._observe(
            events.SpeechDropped(
                utterance_id,
                sound.user_id,
                reason=reason,
                text=text,
                started_at=sound.started_at,
                ended_at=sound.ended_at,
                at=self._clock.monotonic(),
            )
        )
