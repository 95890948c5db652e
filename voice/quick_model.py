"""A small model that answers within a moment or not at all, in a thread of its own.

Endpointing asks such a model about pauses. An answer that comes late is of no use to anybody, so requests never pile up
before a model that is slow, fails or hangs.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import structlog

from voice.daemon_thread import LOAD_TIMEOUT_S, DaemonThread
from voice.errors import VoiceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

ModelT = TypeVar("ModelT")
AskedT = TypeVar("AskedT")
AnswerT = TypeVar("AnswerT")

# Answers take about 30 ms. So many who pause at once get theirs in time; one more would get a late one and therefore
# gets none.
MOST_WAITING = 4
# An answer that takes this long hangs.
HANGS_AFTER_S = 5.0
# Seconds that the end waits for the answer that the model works on.
STOP_TIMEOUT_S = 1.0

_log: Any = structlog.get_logger()


class TurnModelError(VoiceError):
    """A model that judges pauses is missing, unknown or fails. The operator must install it or turn it off."""


class QuickModel(Generic[ModelT, AskedT, AnswerT]):
    """One such model for all rooms. An async context manager.

    `load` returns the model, `ask` its answer; both block, in the model's thread, and raise `TurnModelError`. `what`
    names the model in sentences. A model that hangs is asked nothing before it has come back: each request would delay
    what waits for it by `answer_timeout_s`.

    *Ownership*: it owns the thread. *Cancellation*: a cancelled request leaves the queue; if the model already works on
    it, the result is dropped.
    """

    def __init__(
        self,
        load: Callable[[], ModelT],
        ask: Callable[[ModelT, AskedT], AnswerT],
        *,
        what: str,
        thread_name: str,
        answer_timeout_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._ask_model = ask
        self._what = what
        self._answer_timeout_s = answer_timeout_s
        self._monotonic = monotonic
        self._model: ModelT | None = None
        self._thread = DaemonThread(thread_name)
        self._waiting = 0
        # Since when the model works on one request; None: on none.
        self._busy_since: float | None = None
        # Since when the model has failed or hung, in monotonic seconds; None if it answered last.
        self.failing_since: float | None = None

    async def __aenter__(self) -> Self:
        """Load the model. Raises `TurnModelError`."""
        try:
            self._model = await self._thread.run(self._load, within_s=LOAD_TIMEOUT_S)
        except BaseException as exc:
            self._thread.close()
            if not isinstance(exc, TimeoutError):
                raise
            raise TurnModelError(
                f"The {self._what} was not loaded within {LOAD_TIMEOUT_S:g} s: its disk hangs, or the machine is "
                "overloaded."
            ) from exc
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._thread.stop(within_s=STOP_TIMEOUT_S)

    async def judge(self, asked: AskedT) -> AnswerT | None:
        """Return the model's answer; None if there is none in time. Never raises."""
        # Its thread sets it.
        busy_since = self._busy_since
        if busy_since is not None and self._monotonic() - busy_since > HANGS_AFTER_S:
            self._on_failure(TurnModelError(f"The {self._what} has worked on one pause for {HANGS_AFTER_S:g} s."))
            return None
        if self._waiting >= MOST_WAITING:
            return None
        self._waiting += 1
        try:
            answer = await self._thread.run(partial(self._ask, asked), within_s=self._answer_timeout_s)
        except TimeoutError:
            return None
        except TurnModelError as exc:
            self._on_failure(exc)
            return None
        finally:
            self._waiting -= 1
        self.failing_since = None
        return answer

    def _ask(self, asked: AskedT) -> AnswerT:
        """Ask the model, in its thread."""
        assert self._model is not None, "entered before it is asked"
        self._busy_since = self._monotonic()
        try:
            return self._ask_model(self._model, asked)
        finally:
            self._busy_since = None

    def _on_failure(self, problem: TurnModelError) -> None:
        if self.failing_since is None:
            self.failing_since = self._monotonic()
            # Log only once: from now on pauses are judged without it, and the health page says so.
            _log.warning("turn_model_failed", model=self._what, problem=problem)
