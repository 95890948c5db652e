"""From a room's sound to text: endpointing, the recogniser's queue, and the guards that judge what came out.

It knows people by their ids alone; who they are and what becomes of their words is the room's business. Sound
that does not become text is always told, with a reason.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot import events
from voice.asr.guards import Before, judge
from voice.asr.languages import SpeakerLanguages
from voice.errors import RecogniserError, RecogniserOverloadedError
from voice.listening.utterance import Utterance, UtteranceDropped
from voice.transport.heard import SpeakerLeft

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bot.clock import Clock
    from voice.asr.port import Recognition, Recognizer
    from voice.listening.ears import Ears
    from voice.transport.heard import Heard

log = structlog.get_logger()

# How often time passes for those whose packets stopped: it is what ends speech, so it adds to every latency.
TICK_S = 0.05
# Utterances that may wait for the recogniser: 20 MB of sound, a minute's work on two cores. A machine that is
# further behind never catches up; the oldest are given up, and told.
UTTERANCES_WAITING = 200


@dataclass(frozen=True, slots=True)
class SpokenText:
    """What one utterance became. Times are monotonic seconds."""

    utterance: Utterance
    recognition: Recognition
    begun_at: float  # when the recogniser was asked
    text_at: float


class Hearing:
    """One room's ears and the queue behind them.

    `on_text` gets each text in the order in which utterances ended, one at a time. `language`: the code that
    everybody speaks, or None to detect it for each person. *Ownership*: `run` is the room's task; `take` is
    called on the same loop.
    """

    def __init__(
        self,
        *,
        ears: Ears,
        recognizer: Recognizer,
        glossary: Callable[[], tuple[str, ...]],
        language: str | None,
        clock: Clock,
        observe: events.Observer,
        on_text: Callable[[SpokenText], Awaitable[None]],
    ) -> None:
        self._ears = ears
        self._recognizer = recognizer
        self._glossary = glossary
        self._languages = SpeakerLanguages(language)
        # What each person was last heard to say, and when it ended: who says it again at once is a loop.
        self._last: dict[int, tuple[str, float]] = {}
        self._clock = clock
        self._observe = observe
        self._on_text = on_text
        self._waiting: asyncio.Queue[Utterance] = asyncio.Queue(UTTERANCES_WAITING)
        self.dropped = 0

    def take(self, batch: Sequence[Heard]) -> None:
        """Take what the voice connection handed on. Quick; called on the event loop."""
        self._sort(self._ears.hear(batch, self._clock.monotonic()))

    async def run(self) -> None:
        """Let time pass for the ears and work the queue off, for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._tick(), name="ears")
            tasks.create_task(self._work(), name="transcribe")

    async def finish(self, people: Sequence[int], *, within_s: float) -> None:
        """Take everybody's last words as ended and wait until they are text, for `within_s` at most."""
        now = self._clock.monotonic()
        self.take([SpeakerLeft(user_id, now) for user_id in people])
        try:
            async with asyncio.timeout(within_s):
                await self._waiting.join()
        except TimeoutError:
            log.warning("last_words_lost", utterance_count=self._waiting.qsize(), within_s=within_s)

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK_S)
            self._sort(self._ears.tick(self._clock.monotonic()))

    def _sort(self, heard: Sequence[object]) -> None:
        for event in heard:
            if isinstance(event, Utterance):
                self._queue(event)
            elif isinstance(event, UtteranceDropped):
                self._drop("", event.user_id, event.reason.value, "", event.started_at, event.ended_at)

    def _queue(self, utterance: Utterance) -> None:
        if self._waiting.full():
            oldest = self._waiting.get_nowait()
            self._waiting.task_done()
            self._drop_utterance(oldest, "overloaded")
        self._waiting.put_nowait(utterance)

    async def _work(self) -> None:
        while True:
            utterance = await self._waiting.get()
            try:
                await self._transcribe(utterance)
            finally:
                self._waiting.task_done()

    async def _transcribe(self, utterance: Utterance) -> None:
        begun_at = self._clock.monotonic()
        expected = self._languages.expected(utterance.user_id)
        try:
            recognition = await self._recognizer.recognize(
                utterance.pcm, language=expected, glossary=self._glossary(), speaker_id=utterance.user_id
            )
        except RecogniserOverloadedError:
            self._drop_utterance(utterance, "overloaded")
            return
        except RecogniserError as error:
            log.error("recogniser_failed", utterance_id=utterance.id, error=str(error))  # noqa: TRY400 - a plain sentence says it all
            self._observe(events.Problem("recogniser", str(error), self._clock.monotonic()))
            self._drop_utterance(utterance, "recogniser_failed")
            return
        text_at = self._clock.monotonic()
        reason = self._judged(utterance, recognition, detected=expected is None)
        if reason is not None:
            self._drop_utterance(utterance, reason, recognition.text)
            return
        self._observe(
            events.UtteranceHeard(
                utterance.id, utterance.user_id, recognition.text, utterance.started_at, utterance.ended_at, text_at
            )
        )
        await self._on_text(SpokenText(utterance, recognition, begun_at, text_at))

    def _judged(self, utterance: Utterance, recognition: Recognition, *, detected: bool) -> str | None:
        """Return why the text is not to be believed, or None; remember what was said and in which language."""
        speaker, speech_s = utterance.user_id, utterance.ended_at - utterance.started_at
        before = None
        if speaker in self._last:
            text, ended_at = self._last[speaker]
            before = Before(text, max(0.0, utterance.started_at - ended_at))
        reason = judge(recognition, speech_s=speech_s, before=before)
        if reason is not None:
            return reason.value
        self._last[speaker] = (recognition.text, utterance.ended_at)
        self._languages.observed(
            speaker,
            recognition.language,
            probability=recognition.language_probability,
            speech_s=speech_s,
            detected=detected,
        )
        return None

    def forget(self, user_id: int) -> None:
        """Drop what is known of a person who left."""
        self._languages.forget(user_id)
        self._last.pop(user_id, None)

    def _drop_utterance(self, utterance: Utterance, reason: str, text: str = "") -> None:
        self._drop(utterance.id, utterance.user_id, reason, text, utterance.started_at, utterance.ended_at)

    def _drop(
        self, utterance_id: str, user_id: int, reason: str, text: str, started_at: float, ended_at: float
    ) -> None:
        self.dropped += 1
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
