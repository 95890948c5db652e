"""From a room's sound to what was said in it: endpointing, the recogniser's queue, guards, and moments.

It knows people by their ids alone; who they are and what becomes of their words is the room's business. Sound
that does not become text is always told, with a reason.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import numpy as np
import structlog

from bot import events
from bot.events import SpokenText
from bot.room.eager_recognition import EagerRecognition
from bot.room.tasks import lasting
from voice.asr.guards import GuardReason, PreviousUtterance, breaks_off, judge, letter_count
from voice.asr.languages import SpeakerLanguages
from voice.audio import LISTEN_RATE_HZ
from voice.errors import RecogniserError, RecogniserOverloadedError
from voice.listening.coalesce import UtteranceCoalescer, is_sound_effect
from voice.listening.utterance import PauseBegan, PauseEnded, SpeechStarted, Utterance, UtteranceDropped
from voice.transport.audio_events import SpeakerLeft

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bot.clock import Clock
    from voice.asr.port import Recognition, Recognizer
    from voice.listening.listener import RoomListener
    from voice.listening.turn_detection import TurnEndDetector
    from voice.listening.utterance import ListeningEvent
    from voice.transport.audio_events import AudioEvent

log = structlog.get_logger()

# How often time passes for those whose packets stopped: it is what ends speech, so half of it adds to every latency.
# One tick with four people costs 20 us.
TICK_S = 0.02
# Utterances that may wait for the recogniser. At three seconds each this is minutes behind, when text comes too
# late to take part in anything: the oldest are given up, and told.
UTTERANCES_WAITING = 64
# Utterances of a room that the recogniser is asked for at once, so that it can be fair between their speakers.
RECOGNISED_AT_ONCE = 4
# Heard once more: a glossary makes unusual words likelier, now and then so much that nothing else is heard, and now
# and then a small model stops after one word of a clear sentence. The second time it hears without the glossary, and
# with half a second of silence before: the same sound would be heard the same ('Room' for 'Roomtone, who can bring the
# long ladder?' with and without a glossary, all of it with the silence).
HEARD_AGAIN = frozenset({GuardReason.REPETITIVE, GuardReason.TOO_SPARSE})
LEAD = np.zeros(LISTEN_RATE_HZ // 2, np.int16)
# How much the latest recognition counts in what one takes at present: three slow ones in a row are a slow model.
PACE_WEIGHT = 0.3
# Moments that may wait for being recorded and thought about. Turns are never dropped: hearing waits.
MOMENTS_WAITING = 64
# Seconds that a finished utterance waits at most while others are in mid-sentence; then all that was said is one turn
# of the room. An utterance with the bot's name does not wait.
MOMENT_WAIT_S = 10.0


@dataclass(frozen=True, slots=True)
class _Heard:
    """What the recogniser said of some sound; None if it would not. `expected`: the language it was told."""

    recognition: Recognition | None
    expected: str | None
    asked_at: float
    refusal: str = ""


class Hearing:
    """One room's ears and the queue behind them.

    `on_moment` gets what was said, one moment at a time: one utterance, or what several people said at the same time
    in the order in which they began. `language`: the code that everybody speaks, or None to detect it for each
    person. `judge` says in pauses who sounds finished; the ears must be made accordingly. `urgent`: whether a text
    must not wait for others to finish. `own_words`: what the bot was saying between two moments. `on_guess` gets what
    somebody seems to have said, in a pause that may be the end, and whether they sound finished; `on_more` the id of an
    utterance that goes on after all. *Ownership*: `run` is the room's task; `take` is called on the same loop.
    """

    def __init__(
        self,
        *,
        ears: RoomListener,
        recognizer: Recognizer,
        glossary: Callable[[], tuple[str, ...]],
        language: str | None,
        recognise_ahead: bool,
        clock: Clock,
        observe: events.Observer,
        on_moment: Callable[[tuple[SpokenText, ...]], Awaitable[None]],
        judge: TurnEndDetector | None = None,
        urgent: Callable[[str], bool] = lambda text: False,
        own_words: Callable[[float, float], str] = lambda since, until: "",
        on_guess: Callable[[SpokenText, bool], None] = lambda *_: None,
        on_more: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._ears = ears
        self._recognizer = recognizer
        self._glossary = glossary
        self._languages = SpeakerLanguages(language)
        # What each person was last heard to say, and when it ended: who says it again at once is a loop.
        self._last: dict[int, tuple[str, float]] = {}
        self._clock = clock
        self._observe = observe
        self._on_moment = on_moment
        self._urgent = urgent
        self._own_words = own_words
        self._on_guess = on_guess
        self._on_more = on_more
        self._pace_s = 0.0  # what a recognition takes, the latest counting most
        self._foresight = EagerRecognition(
            judge=judge,
            answer=self._answer,
            recognise=self._hear if recognise_ahead else None,
            pace_s=lambda: self._pace_s,
            clock=clock,
            guessed=self._guessed,
        )
        self._waiting: asyncio.Queue[Utterance] = asyncio.Queue(UTTERANCES_WAITING)
        # Utterances that are complete and not yet text, by id.
        self._open: set[str] = set()
        self._coalescing: UtteranceCoalescer[SpokenText] = UtteranceCoalescer(longest_wait_s=MOMENT_WAIT_S)
        self._moments: asyncio.Queue[tuple[SpokenText, ...]] = asyncio.Queue(MOMENTS_WAITING)
        self.dropped: Counter[str] = Counter()

    def take(self, batch: Sequence[AudioEvent]) -> None:
        """Take what the voice connection handed on. Quick; called on the event loop."""
        self._sort(self._ears.hear(batch, self._clock.monotonic()))

    async def run(self) -> None:
        """Let time pass for the ears and work the queues off, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(lasting(self._foresight.run()), name="foresight")
            tasks.create_task(lasting(self._tick()), name="ears")
            for number in range(RECOGNISED_AT_ONCE):
                tasks.create_task(lasting(self._work()), name=f"transcribe-{number}")
            tasks.create_task(lasting(self._deliver()), name="moments")

    async def finish(self, people: Sequence[int], *, within_s: float) -> None:
        """Take everybody's last words as ended and wait until they are told, for `within_s` at most."""
        now = self._clock.monotonic()
        self.take([SpeakerLeft(user_id, now) for user_id in people])
        try:
            async with asyncio.timeout(within_s):
                await self._waiting.join()
                if moment := self._coalescing.flush():
                    await self._moments.put(moment)
                await self._moments.join()
        except TimeoutError:
            log.warning("last_words_lost", utterance_count=len(self._open), within_s=within_s)

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK_S)
            self._sort(self._ears.tick(self._clock.monotonic()))
            await self._end_moment()

    def _sort(self, heard: Sequence[ListeningEvent]) -> None:
        for event in heard:
            match event:
                case PauseBegan():
                    self._foresight.began(event)
                case PauseEnded():
                    self._foresight.ended(event.utterance_id)
                    self._on_more(event.utterance_id)
                case Utterance():
                    self._queue(event)
                case UtteranceDropped():
                    self._drop("", event.user_id, event.reason.value, "", event.started_at, event.ended_at)
                case SpeechStarted():
                    pass
                case _:
                    assert_never(event)

    def _answer(self, pause: PauseBegan, probability: float | None) -> None:
        self._sort(self._ears.answer(pause, probability, self._clock.monotonic()))

    def _guessed(self, utterance: Utterance, heard: _Heard, likely: bool) -> None:
        """Tell what somebody seems to have said, before it is known to be all, if it is to be believed."""
        if heard.recognition is None or self._judged(utterance, heard) is not None:
            return
        now = self._clock.monotonic()
        self._on_guess(SpokenText(utterance, heard.recognition, heard.asked_at, now, ahead=True), likely)

    # -- sound becomes text ----------------------------------------------------------------------------------

    def _queue(self, utterance: Utterance) -> None:
        if self._waiting.full():
            oldest = self._waiting.get_nowait()
            self._waiting.task_done()
            self._open.discard(oldest.id)
            self._foresight.ended(oldest.id)
            self._drop_utterance(oldest, "overloaded")
        # If it was begun ahead and still waits, it is nobody's guess any more.
        self._recognizer.confirm(utterance.user_id)
        self._open.add(utterance.id)
        self._waiting.put_nowait(utterance)

    async def _work(self) -> None:
        while True:
            utterance = await self._waiting.get()
            try:
                spoken = await self._transcribe(utterance)
                self._open.discard(utterance.id)
                if spoken is not None:
                    await self._gather(spoken)
                await self._end_moment()
            finally:
                self._waiting.task_done()

    async def _transcribe(self, utterance: Utterance) -> SpokenText | None:
        """Return what `utterance` became; None if it was dropped, which is told."""
        heard = await self._foresight.take(utterance.id)
        # A guess that failed or was shed has cost nothing yet.
        ahead = heard is not None and heard.recognition is not None
        if heard is None or heard.recognition is None:
            heard = await self._hear(utterance)
        reason = self._judged(utterance, heard)
        recognition = heard.recognition
        if recognition is None:
            self._drop_utterance(utterance, heard.refusal)
            return None
        if reason is not None:
            self._drop_utterance(utterance, reason.value, recognition.text)
            return None
        self._remember(utterance, recognition, detected=heard.expected is None)
        text_at = self._clock.monotonic()
        self._observe(
            events.UtteranceHeard(
                utterance.id, utterance.user_id, recognition.text, utterance.started_at, utterance.ended_at, text_at
            )
        )
        spoken = SpokenText(utterance, recognition, max(heard.asked_at, utterance.closed_at), text_at, ahead)
        log.info(
            "utterance_transcribed",
            utterance_id=utterance.id,
            speaker_id=utterance.user_id,
            duration_s=round(utterance.ended_at - utterance.started_at, 2),
            char_count=len(recognition.text),
            **spoken.stages_ms,
        )
        return spoken

    async def _hear(self, utterance: Utterance) -> _Heard:
        """Return what the recogniser makes of `utterance`, asked twice where the first answer cannot be all of it."""
        first = await self._recognise(utterance)
        if first.recognition is None:
            return first
        doubted = self._judged(utterance, first)
        text, speech_s = first.recognition.text, utterance.ended_at - utterance.started_at
        if doubted not in HEARD_AGAIN and (is_sound_effect(text) or not breaks_off(text, speech_s=speech_s)):
            return first
        second = await self._recognise(utterance, again=True)
        if second.recognition is None or self._judged(utterance, second) is not None:
            return first
        more = letter_count(second.recognition.text) > letter_count(first.recognition.text)
        return second if doubted is not None or more else first

    async def _recognise(self, utterance: Utterance, *, again: bool = False) -> _Heard:
        asked_at = self._clock.monotonic()
        # Until the end is sure it is a guess; that may be while the judge thinks, or between two hearings.
        interim = utterance.id not in self._open
        expected = self._languages.expected(utterance.user_id, speech_s=utterance.ended_at - utterance.started_at)
        try:
            recognition = await self._recognizer.recognize(
                np.concatenate([LEAD, utterance.pcm]) if again else utterance.pcm,
                language=expected,
                glossary=() if again else self._glossary(),
                speaker_id=utterance.user_id,
                interim=interim,
            )
        except RecogniserOverloadedError:
            return _Heard(None, expected, asked_at, "overloaded")
        except RecogniserError as error:
            if not interim:  # a guess is asked for again, as finished speech
                log.error("recogniser_failed", utterance_id=utterance.id, error=str(error))  # noqa: TRY400 - a plain sentence says it all
                self._observe(events.Problem("recogniser", str(error), self._clock.monotonic()))
            return _Heard(None, expected, asked_at, "recogniser_failed")
        self._pace_s += PACE_WEIGHT * (recognition.compute_s - self._pace_s)
        return _Heard(recognition, expected, asked_at)

    def _judged(self, utterance: Utterance, heard: _Heard) -> GuardReason | None:
        """Return why the text is not to be believed, or None."""
        if heard.recognition is None:
            return None
        before = None
        if utterance.user_id in self._last:
            text, ended_at = self._last[utterance.user_id]
            before = PreviousUtterance(text, max(0.0, utterance.started_at - ended_at))
        return judge(
            heard.recognition,
            speech_s=utterance.ended_at - utterance.started_at,
            before=before,
            own_words=self._own_words(utterance.started_at, utterance.ended_at),
        )

    def _remember(self, utterance: Utterance, recognition: Recognition, *, detected: bool) -> None:
        """Remember what the person said and in which language."""
        self._last[utterance.user_id] = (recognition.text, utterance.ended_at)
        self._languages.observed(
            utterance.user_id,
            recognition.language,
            probability=recognition.language_probability,
            speech_s=utterance.ended_at - utterance.started_at,
            detected=detected,
        )

    # -- text becomes moments --------------------------------------------------------------------------------

    async def _gather(self, spoken: SpokenText) -> None:
        """Put what was said into the moment; what only sounded is one of its own."""
        if is_sound_effect(spoken.text):
            await self._moments.put((spoken,))
            return
        urgent = self._urgent(spoken.text)
        if not self._coalescing.add(spoken, urgent=urgent, now=self._clock.monotonic()):
            self._drop_utterance(spoken.utterance, "duplicate", spoken.text)

    async def _end_moment(self) -> None:
        """Hand the moment on if nobody's words are still to come, or it has waited long enough."""
        anybody_speaks = bool(self._ears.speaking or self._open)
        moment = self._coalescing.release(anybody_speaks=anybody_speaks, now=self._clock.monotonic())
        if moment:
            await self._moments.put(moment)

    async def _deliver(self) -> None:
        while True:
            moment = await self._moments.get()
            try:
                await self._on_moment(moment)
            finally:
                self._moments.task_done()

    # -- what is left out ------------------------------------------------------------------------------------

    def forget(self, user_id: int) -> None:
        """Drop what is known of a person who left."""
        self._languages.forget(user_id)
        self._last.pop(user_id, None)

    def _drop_utterance(self, utterance: Utterance, reason: str, text: str = "") -> None:
        self._drop(utterance.id, utterance.user_id, reason, text, utterance.started_at, utterance.ended_at)

    def _drop(
        self, utterance_id: str, user_id: int, reason: str, text: str, started_at: float, ended_at: float
    ) -> None:
        self.dropped[reason] += 1
        log.info(
            "utterance_dropped",
            utterance_id=utterance_id,
            speaker_id=user_id,
            reason=reason,
            duration_s=round(ended_at - started_at, 2),
        )
        self._observe(
            events.UtteranceDropped(utterance_id, user_id, reason, text, started_at, ended_at, self._clock.monotonic())
        )
