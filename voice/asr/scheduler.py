"""The shared local recogniser: one model thread behind a fair, bounded queue.

    callers --recognise()--> FairQueue --dispatcher task--> ReloadingModel --> Recognition

One at a time, or (`batch_size`) as many of like length as wait when the model is free: nothing waits for a batch.

Finished speech is never dropped: its callers wait, and their number is the queue's only limit. Interim speech is
dropped first, and has no room beyond `QUEUE_SIZE`. When the model fails, hangs or dies, its current request fails;
`voice.asr.reloading_model` loads it again.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import structlog

from voice.asr.fair_queue import Entry, FairQueue
from voice.asr.reloading_model import COMPUTE_TIMEOUT_S, ReloadingModel
from voice.asr.worker import Engine, fit_together
from voice.errors import RecogniserError, RecogniserHungError, RecogniserOverloadedError
from voice.queue_figures import QueueFigures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from voice.asr.port import Recognition, RecognitionRequest

# Recognitions that may wait before interims are dropped.
QUEUE_SIZE = 32
# An interim that is so many seconds old is of speech that has ended: whoever goes on does so within 1.1 s, and takes
# the interim back. If it still waits, it becomes finished speech. The confirmation does not reach speech that was with
# an endpoint then.
CERTAIN_AFTER_S = 1.5
# Seconds that a careful pass waits where finished speech comes first. All that is said in its room waits for it, so
# its caller goes on with the text that it has.
CAREFUL_WAIT_S = 2.0

CLOSED = "The speech recogniser was closed."
BUSY = "Finished speech waits, so nothing is recognised a second time."
REPLACED = "A newer request replaced this interim one."

_log: Any = structlog.get_logger()


@dataclass(slots=True)
class RecogniserFigures:
    """Counts since the start."""

    completed: int = 0
    failed: int = 0
    timed_out: int = 0
    shed: int = 0
    cancelled: int = 0
    reloads: int = 0
    audio_s: float = 0.0
    compute_s: float = 0.0


@dataclass(slots=True, eq=False)
class _Job:
    request: RecognitionRequest
    answer: asyncio.Future[Recognition]
    asked_at: float


class QueuedRecogniser:
    """A `Recogniser` over an engine. An async context manager: entering loads the model, leaving ends its thread.
    `model`: whether it is loaded, and why it recognises nothing.

    *Ownership*: it owns the dispatcher task and the model thread. *Cancellation*: see `Recogniser`.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        queue_size: int = QUEUE_SIZE,
        batch_size: int = 1,
        compute_timeout_s: float = COMPUTE_TIMEOUT_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self.model = ReloadingModel(engine, compute_timeout_s=compute_timeout_s, monotonic=monotonic)
        self._queue_size = queue_size
        self._batch_size = batch_size
        self._queue: FairQueue[_Job] = FairQueue()
        self._work = asyncio.Event()
        self._figures = RecogniserFigures()
        self._dispatcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.model.load()
        self._dispatcher = asyncio.create_task(self._dispatch(), name="recogniser-dispatcher")
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        dispatcher, self._dispatcher = self._dispatcher, None
        try:
            if dispatcher is not None:
                dispatcher.cancel()
                # It has logged what it failed of, if it did. A gathered exception counts as seen, and is not raised.
                await asyncio.gather(dispatcher, return_exceptions=True)
        finally:
            await self.model.close()

    @property
    def queue(self) -> QueueFigures:
        """Return how many recognitions wait."""
        return QueueFigures("recogniser", len(self._queue), self._queue_size, {"interim": self._figures.shed})

    @property
    def is_running(self) -> bool:
        """Return whether it takes requests: from entering it to leaving it, unless its dispatcher failed."""
        return self._dispatcher is not None and not self._dispatcher.done()

    @property
    def figures(self) -> RecogniserFigures:
        return replace(self._figures, reloads=self.model.reloads)

    async def recognise(self, request: RecognitionRequest) -> Recognition:
        if not self.is_running:
            raise RecogniserError("The speech recogniser is not running.")
        if request.careful and self._queue.holds_finals:
            self._figures.shed += 1
            raise RecogniserOverloadedError(BUSY)
        # A careful one may take five times as long as another, so it waits behind finished speech and is dropped first.
        interim = request.interim or request.careful
        if len(self._queue) >= self._queue_size:
            self._make_room(request.speaker_id, interim=interim)
        answer = asyncio.get_running_loop().create_future()
        job = _Job(request, answer, self._monotonic())
        entry, replaced = self._queue.add(job, speaker=request.speaker_id, interim=interim)
        if replaced is not None:
            self._shed(replaced)
        self._work.set()
        try:
            return await job.answer
        except asyncio.CancelledError:
            self._figures.cancelled += 1
            self._queue.remove(entry)
            raise

    def confirm(self, speaker_id: int) -> None:
        self._queue.confirm(speaker_id)

    def _make_room(self, speaker_id: int | None, *, interim: bool) -> None:
        """Drop an interim from a full queue. Raises `RecogniserOverloadedError` for one that comes and finds none."""
        guess = self._queue.shed_interim(of=speaker_id)
        if guess is not None:
            self._shed(guess)
        elif interim:
            self._figures.shed += 1
            raise RecogniserOverloadedError("The recogniser's queue is full of finished speech.")

    def _shed(self, entry: Entry[_Job], why: str = REPLACED) -> None:
        """Fail the caller of an interim that was removed from the queue."""
        self._figures.shed += 1
        _fail(entry.job, RecogniserOverloadedError(why))

    async def _dispatch(self) -> None:
        try:
            while True:
                await self._work.wait()
                if self._queue.holds_finals:
                    self._settle_interims()
                entry = self._queue.next()
                if entry is None:
                    self._work.clear()
                    continue
                if entry.job.request.careful and self._queue.holds_finals:
                    # It was confirmed as finished speech with the rest of the speaker's, and others wait for theirs.
                    self._figures.shed += 1
                    _fail(entry.job, RecogniserOverloadedError(BUSY))
                    continue
                await self._serve([entry.job, *self._taken_with(entry.job)])
        except Exception as exc:
            _log.error("recogniser_stopped", error=exc)
            raise
        finally:
            # The recogniser is closed or broken: fail all waiting callers.
            while (left := self._queue.next()) is not None:
                _fail(left.job, RecogniserError(CLOSED))

    def _settle_interims(self) -> None:
        """Take old interims for finished speech, and give up careful passes that have waited for too long."""
        now = self._monotonic()
        for entry in self._queue.interims:
            waited_s = now - entry.job.asked_at
            if not entry.job.request.careful and waited_s >= CERTAIN_AFTER_S:
                self._queue.confirm(entry.speaker)
            elif entry.job.request.careful and waited_s >= CAREFUL_WAIT_S and self._queue.remove(entry):
                self._shed(entry, BUSY)

    def _taken_with(self, first: _Job) -> list[_Job]:
        """Take from the queue what is to be computed together with a recognition."""
        together: list[_Job] = []
        while 1 + len(together) < self._batch_size:
            fitting = [each for each in self._queue.firsts if fit_together(first.request, each.job.request)]
            if not fitting:
                break
            together.append(self._queue.take(fitting[0]).job)
        return together

    async def _serve(self, jobs: list[_Job]) -> None:
        jobs = [job for job in jobs if not job.answer.done()]
        if not jobs:
            return
        try:
            requests = [job.request for job in jobs]
            recognitions = await self.model.recognise_together(requests, others=self._queue)
        except RecogniserHungError as exc:
            self._fail_all(jobs, exc)
            self._figures.timed_out += len(jobs)
        except RecogniserError as exc:
            if len(jobs) == 1:
                self._fail_all(jobs, exc)
                return
            # One of them may be the reason, and shall not cost the others their text.
            for job in jobs:
                await self._serve([job])
        else:
            for job, recognition in zip(jobs, recognitions, strict=True):
                self._figures.completed += 1
                self._figures.audio_s += recognition.duration_s
                self._figures.compute_s += recognition.compute_s
                if not job.answer.done():
                    job.answer.set_result(recognition)
        finally:
            for job in jobs:
                _fail(job, RecogniserError(CLOSED))

    def _fail_all(self, jobs: Sequence[_Job], exc: RecogniserError) -> None:
        self._figures.failed += len(jobs)
        for job in jobs:
            _fail(job, exc)


def _fail(job: _Job, exc: Exception) -> None:
    if not job.answer.done():
        job.answer.set_exception(exc)
