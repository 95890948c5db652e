"""The speech model as its queue uses it: in a thread of its own, and loaded again when it fails or hangs.

After one failure it is loaded again with the next recognition. After more in a row, or when it cannot be loaded,
recognitions fail at once until a pause is over, and the pauses grow.

A computation that hangs in native code cannot be ended: its thread, its model and their memory stay until the process
ends. Where `MOST_LEFT_BEHIND` threads were left behind so, no further model is loaded before one of them ends.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from voice.asr.worker import Engine, loaded_in, plainly
from voice.circuit_breaker import CircuitBreaker, Outage
from voice.daemon_thread import LOAD_TIMEOUT_S, STOP_TIMEOUT_S, DaemonThread
from voice.errors import RecogniserError, RecogniserHungError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Sized

    from voice.asr.port import Recognition, RecognitionRequest

# One failure may be due to the sound; three in a row are due to the model.
FAILURES_BEFORE_RELOAD: Final = 3
# The model is loaded again at once the first time, and then after pauses: a model that hangs keeps the room deaf for
# half a minute anyway, and one that cannot be loaded takes the disk's time from everything else.
FIRST_PAUSE_S: Final = 10.0
LONGEST_PAUSE_S: Final = 300.0
# Models of hung threads that may stay in memory. The base model takes 0.3 GB, the largest one 3 GB.
MOST_LEFT_BEHIND: Final = 3
# Seconds in the model after which a recognition fails and the model is loaded again. Half a minute of sound takes a few
# seconds. A batch has no more time: by then whoever asked for one of it has gone to another recogniser.
COMPUTE_TIMEOUT_S: Final = 30.0

_log: Any = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Loaded:
    engine: Engine
    thread: DaemonThread


class ReloadingModel:
    """One engine, in whichever thread has it now. Not for several calls at once.

    *Ownership*: it owns the thread of the model from `load` to `close`. *Cancellation*: the computation of a cancelled
    call goes on in its thread, and `close` waits for it.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        compute_timeout_s: float = COMPUTE_TIMEOUT_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._compute_timeout_s = compute_timeout_s
        self._monotonic = monotonic
        self._loaded: _Loaded | None = None
        self._hung: list[DaemonThread] = []
        self._hung_at = 0.0
        self._failures_in_a_row = 0
        self._breaker = CircuitBreaker(open_s=FIRST_PAUSE_S, longest_open_s=LONGEST_PAUSE_S)
        self.reloads = 0

    @property
    def is_loaded(self) -> bool:
        return self._loaded is not None

    @property
    def left_behind(self) -> int:
        """Return how many threads were given up and still hold a model."""
        return sum(thread.is_alive for thread in self._hung)

    @property
    def outage(self) -> Outage | None:
        """Return why nothing is recognised, for people, or None. It lasts until a recognition succeeds.

        Without `retry_at` only a restart of the process helps.
        """
        if self._is_full and not self.is_loaded:
            return Outage(self._hung_at, None, self._too_many_hung())
        outage = self._breaker.outage
        if outage is None:
            return None
        # The cause may have the path of the model, and is in the log.
        problem = RecogniserError(
            "My speech recogniser failed several times in a row. To test it, run `roomtone doctor`."
        )
        return replace(outage, problem=problem)

    async def load(self) -> None:
        """Load the model for the first time. Raises `RecogniserError`."""
        self._loaded = await self._started()

    async def recognise_together(
        self, requests: Sequence[RecognitionRequest], *, others: Sized = ()
    ) -> list[Recognition]:
        """Return the texts of requests that fit together, in their order, after loading the model if it is not loaded.

        `others`: the requests that wait by now; the model's thread looks whether there are any.
        Raises `RecogniserHungError` if there was no answer in time, and `RecogniserError` if the model failed, could
        not be loaded, or is not tried at present.
        """
        loaded = await self._ready()
        limit_s = self._compute_timeout_s
        try:
            call = partial(loaded.engine.recognise_together, requests, others=others)
            recognitions = await loaded.thread.run(partial(plainly, call, "failed"), within_s=limit_s)
        except TimeoutError as exc:
            problem = RecogniserHungError(
                "I tried for {limit_s:g} seconds to understand a sentence, and gave up.", limit_s=limit_s
            )
            _log.error("recognition_timed_out", limit_s=limit_s)
            self._leave_behind(loaded.thread)
            self._lose(problem)
            raise problem from exc
        except RecogniserError as exc:
            self._on_failure(loaded.thread, exc)
            raise
        self._failures_in_a_row = 0
        self._breaker.record_success()
        return recognitions

    async def close(self) -> None:
        """End the thread after its current recognition, or leave it behind if that takes too long."""
        if self._loaded is not None:
            await self._loaded.thread.stop(within_s=STOP_TIMEOUT_S)

    @property
    def _is_full(self) -> bool:
        return self.left_behind >= MOST_LEFT_BEHIND

    def _too_many_hung(self) -> RecogniserError:
        return RecogniserError(
            "{count} attempts to understand a sentence have never ended. Each still uses memory for "
            "a model, so I load no other one. Restart the bot.",
            count=self.left_behind,
        )

    async def _ready(self) -> _Loaded:
        """Return the engine and its thread, loaded if need be. Raises `RecogniserError`."""
        if self._loaded is not None:
            return self._loaded
        if self._is_full:
            raise self._too_many_hung()
        if not self._breaker.admits(now := self._monotonic()):
            outage = self._breaker.outage
            assert outage is not None, "what is refused has failed"
            raise RecogniserError(
                "My speech recogniser is not loaded. I try again in {seconds:.0f} seconds. {why}",
                seconds=max(1.0, (outage.retry_at or now) - now),
                why=outage.problem,
            )
        self.reloads += 1
        try:
            self._loaded = await self._started()
        except RecogniserError as exc:
            self._lose(exc)
            raise
        _log.warning("recogniser_reloaded", reloads=self.reloads)
        return self._loaded

    async def _started(self) -> _Loaded:
        """Load the engine in a new thread. Raises `RecogniserError`."""
        thread = DaemonThread("speech-model", gives_way=True)
        try:
            return _Loaded(await loaded_in(thread, self._engine, within_s=LOAD_TIMEOUT_S), thread)
        except RecogniserHungError:
            self._leave_behind(thread)
            raise
        except BaseException:
            thread.close()
            raise

    def _on_failure(self, thread: DaemonThread, exc: RecogniserError) -> None:
        self._failures_in_a_row += 1
        _log.error("recognition_failed", in_a_row=self._failures_in_a_row, error=exc)
        if self._failures_in_a_row >= FAILURES_BEFORE_RELOAD:
            thread.close()
            self._lose(exc)

    def _leave_behind(self, thread: DaemonThread) -> None:
        """Count a thread that hangs. It ends by itself if what it does ends after all."""
        thread.close()
        self._hung = [*(each for each in self._hung if each.is_alive), thread]
        self._hung_at = self._monotonic()
        _log.error("recogniser_thread_left_behind", left_behind=self.left_behind, most=MOST_LEFT_BEHIND)

    def _lose(self, problem: RecogniserError) -> None:
        """Take note that the model is to be loaded again, or in another try."""
        self._loaded = None
        self._failures_in_a_row = 0
        pause_s = self._breaker.record_failure(self._monotonic(), problem)
        _log.error("recogniser_lost", failures=self._breaker.failures, pause_s=pause_s, problem=problem)
