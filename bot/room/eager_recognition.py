"""What is done in a pause, before anybody knows whether it is the end: ask the judge, and recognise ahead.

All of it is thrown away when the person goes on. What it gains is that the text stands when the end does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bot.clock import Clock
    from voice.listening.turn_detection import TurnEndDetector
    from voice.listening.utterance import PauseBegan, Utterance

# Under this probability the person most likely goes on, and if not, the end is known a second into the silence:
# beginning to recognise later is early enough then, and saves doing it in vain.
LIKELY_FINISHED = 0.5
LATER_S = 0.25
# A recogniser that takes longer than this is behind, and a guess in it keeps finished speech waiting. Then only
# who almost certainly has finished is recognised ahead, which costs next to nothing in vain.
BEHIND_S = 0.5
SURELY_FINISHED = 0.9

HeardT = TypeVar("HeardT")


class EagerRecognition(Generic[HeardT]):
    """Looks ahead in everybody's pauses.

    `answer` gets what the judge says of a pause that asks. `recognise` is called in a task for an utterance that may
    yet turn out to be none, and must not raise; None: nothing is recognised ahead. `guessed` gets what it makes of the
    utterance, and whether the person sounds finished; it must not wait. `pace_s`: what a recognition takes at present.
    *Ownership*: `run` owns the tasks; before it runs every question is answered with None.
    """

    def __init__(
        self,
        *,
        judge: TurnEndDetector | None,
        answer: Callable[[PauseBegan, float | None], None],
        recognise: Callable[[Utterance], Awaitable[HeardT]] | None,
        pace_s: Callable[[], float],
        clock: Clock,
        guessed: Callable[[Utterance, HeardT, bool], None] = lambda *_: None,
    ) -> None:
        self._judge = judge
        self._answer = answer
        self._recognise = recognise
        self._pace_s = pace_s
        self._clock = clock
        self._guessed = guessed
        self._tasks: asyncio.TaskGroup | None = None
        self._ahead: dict[str, asyncio.Task[HeardT | None]] = {}

    async def run(self) -> None:
        """Own what is under way, for ever."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                await asyncio.Event().wait()
            finally:
                self._tasks = None

    def began(self, pause: PauseBegan) -> None:
        """Look ahead: the person is silent."""
        if self._tasks is None:
            if pause.asks:
                self._answer(pause, None)
            return
        utterance = pause.utterance
        self._ahead[utterance.id] = self._tasks.create_task(self._look(pause), name=f"ahead-{utterance.user_id}")

    def ended(self, utterance_id: str) -> None:
        """Throw away what was begun: the person goes on."""
        task = self._ahead.pop(utterance_id, None)
        if task is not None:
            task.cancel()

    async def take(self, utterance_id: str) -> HeardT | None:
        """Return what was recognised ahead of the utterance, which is one; None if nothing was. Once."""
        task = self._ahead.pop(utterance_id, None)
        if task is None:
            return None
        # Waited for and not awaited: one that is cancelled by a closing room must not look like our own end.
        await asyncio.wait({task})
        return None if task.cancelled() else task.result()

    async def _look(self, pause: PauseBegan) -> HeardT | None:
        probability = None
        if pause.asks:
            if self._judge is not None:
                probability = await self._judge.judge(pause.utterance.pcm)
            self._answer(pause, probability)
        if self._recognise is None:
            return None
        if self._pace_s() > BEHIND_S and (probability or 0.0) <= SURELY_FINISHED:
            return None
        if probability is not None and probability < LIKELY_FINISHED:
            await self._clock.sleep(LATER_S)
        heard = await self._recognise(pause.utterance)
        self._guessed(pause.utterance, heard, probability is not None and probability > LIKELY_FINISHED)
        return heard
