"""Recognises speech in a pause, before the end of the utterance is certain, and tells what that says about the pause.

Every pause is recognised, however finished the person sounds, whoever else speaks, and however slow the recogniser is.
If the person goes on, that was in vain, and it is nearly free: the recogniser serves finished speech first, so others
wait for one recognition at most, and what still waits in its queue leaves it. Holding back cost more, by whatever rule
(docs/decisions/0011). Only where finished speech has waited for seconds is neither model asked: no text would come
sooner for it, and the longest silence cuts the fewest pauses.

Both models begin at once. The evidence comes in two steps: what the turn-end detector heard, then what the recogniser
tells of the text's end.
If the person goes on, the text is discarded. Otherwise it is ready as soon as the end is certain.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from bot.background_task import owned_task
from voice.listening.end_policy import PauseEvidence

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bot.clock import Clock
    from voice.listening.turn_detection import TurnEndDetector
    from voice.listening.utterance import PauseBegan, Utterance

# Above this probability the person has more likely finished than not.
LIKELY_FINISHED = 0.5
# How long the decision about an end waits for the text, after the turn-end detector's answer. The reply needs the same
# text, so waiting makes no answer later, and without the text more pauses are cut. But what the person says meanwhile
# is noticed only after the decision, so a recogniser that takes over 0.8 s is not waited for.
TEXT_TIMEOUT_S = 0.8
# After so much silence even somebody who did not sound finished has more likely finished than not: in 209 recordings
# 39 of 62 had. The end itself may be certain only after 1.1 s; an answer that is begun now is ready by then.
LASTING_PAUSE_S = 0.75
# What is taken as known about a pause while finished speech waits: that the person goes on, so that only the longest
# silence ends the utterance.
_GOES_ON = PauseEvidence(finished=0.0)

HeardT = TypeVar("HeardT")


class EagerRecognition(Generic[HeardT]):
    """The eager recognition of one room.

    `on_judged` gets what is known about each pause that asks, and whether that is all: first with the turn-end
    detector's probability, then also with what the recognised text tells (`with_text`).
    `recognise` runs in a task and must not raise. `is_behind`: returns whether
    finished speech has waited so long that an end that is known sooner makes no text come sooner. `on_recognised` gets
    the result and whether the person has likely finished; if they do not sound so, it gets it again when the pause
    lasts. It must not wait.
    *Ownership*: `run` owns the tasks; before it runs, every pause is judged None.
    """

    def __init__(
        self,
        *,
        turn_end_detector: TurnEndDetector | None,
        on_judged: Callable[[PauseBegan, PauseEvidence | None, bool], None],
        recognise: Callable[[Utterance], Coroutine[Any, Any, HeardT]],
        with_text: Callable[[PauseEvidence, HeardT], PauseEvidence],
        clock: Clock,
        on_recognised: Callable[[Utterance, HeardT, bool], None] = lambda *_: None,
        is_behind: Callable[[], bool] = lambda: False,
    ) -> None:
        self._turn_end_detector = turn_end_detector
        self._on_judged = on_judged
        self._recognise = recognise
        self._with_text = with_text
        self._clock = clock
        self._on_recognised = on_recognised
        self._is_behind = is_behind
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[str, asyncio.Task[HeardT | None]] = {}
        # Those that wait whether a pause lasts.
        self._lasting: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Own the recognitions in progress. Never returns."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                await asyncio.Event().wait()
            finally:
                self._tasks = None

    def on_pause(self, pause: PauseBegan) -> None:
        """Begin to recognise the utterance, because the person has paused."""
        if self._tasks is None:
            self._judge(pause, None, complete=True)
            return
        if self._is_behind():
            self._judge(pause, _GOES_ON, complete=True)
            return
        utterance = pause.utterance
        name = f"eager-recognition-{utterance.user_id}"
        self._running[utterance.id] = self._tasks.create_task(self._recognise_pause(pause), name=name)

    def discard(self, utterance_id: str) -> None:
        """Stop and discard the result, because the person goes on or the utterance is dropped."""
        for waiting in (self._running, self._lasting):
            task = waiting.pop(utterance_id, None)
            if task is not None:
                task.cancel()

    async def take(self, utterance_id: str) -> HeardT | None:
        """Remove and return the result for a finished utterance; None if there is none."""
        task = self._running.pop(utterance_id, None)
        if task is None:
            return None
        # `wait` and not `await`: if a closing room cancels the task, that must not look like our own cancellation.
        await asyncio.wait({task})
        lasting = self._lasting.pop(utterance_id, None)
        if lasting is not None:
            lasting.cancel()
        return None if task.cancelled() else task.result()

    async def _recognise_pause(self, pause: PauseBegan) -> HeardT | None:
        async with owned_task(self._recognise(pause.utterance), name="early-text") as recognising:
            known = await self._heard_end(pause)
            # Without the turn-end detector the text alone does not decide: it was not measured for that.
            self._judge(pause, known, complete=known is None)
            if not (await asyncio.wait({recognising}, timeout=TEXT_TIMEOUT_S))[0]:
                self._judge(pause, known, complete=True)
            heard = await recognising
        if known is not None:
            self._judge(pause, self._with_text(known, heard), complete=True)
            # The answer may show that the pause is over, and then this task was cancelled.
            await asyncio.sleep(0)
        likely = known is not None and known.finished > LIKELY_FINISHED
        self._on_recognised(pause.utterance, heard, likely)
        if known is not None and not likely and self._tasks is not None:
            task = self._tasks.create_task(
                self._report_if_lasting(pause.utterance, heard), name=f"lasting-pause-{pause.utterance.user_id}"
            )
            self._lasting[pause.utterance.id] = task
        return heard

    async def _report_if_lasting(self, utterance: Utterance, heard: HeardT) -> None:
        """Tell the text again, as likely finished, when the pause has lasted. Cancelled if it ends before."""
        silent_s = self._clock.monotonic() - utterance.ended_at
        await self._clock.sleep(max(0.0, LASTING_PAUSE_S - silent_s))
        self._lasting.pop(utterance.id, None)
        self._on_recognised(utterance, heard, True)

    async def _heard_end(self, pause: PauseBegan) -> PauseEvidence | None:
        """Return what the turn-end detector says about the pause; None if it is not asked or does not know."""
        if not pause.asks or self._turn_end_detector is None:
            return None
        finished = await self._turn_end_detector.judge(pause.utterance.pcm)
        return None if finished is None else PauseEvidence(finished)

    def _judge(self, pause: PauseBegan, evidence: PauseEvidence | None, *, complete: bool) -> None:
        if pause.asks:
            self._on_judged(pause, evidence, complete)
