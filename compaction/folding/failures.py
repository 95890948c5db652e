"""Decides how an exception that ended a run is reported: what caused it, and whether to try again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.errors import (
    CompletionError,
    RecordRefusedError,
    StaleOwnerError,
    StoreError,
    SummaryRefusedError,
    TurnsLostError,
)
from compaction.folding.signals import FailureSource

if TYPE_CHECKING:
    from compaction.model import CompactionState
    from compaction.ports import StoredMemory

# The maximum length of an error text in a log line.
_ERROR_CHARS = 200


@dataclass(frozen=True, slots=True)
class RunFailure:
    """How a raised exception is reported. `unplanned`: no port documents it, so it is a bug."""

    culprit: FailureSource
    error: str
    timeout: bool = False
    retryable: bool = True
    unplanned: bool = False


def failure_of(exc: BaseException, culprit: FailureSource, *, timeout_s: float) -> RunFailure:
    """Return how to report what was raised while `culprit` was at work."""
    match exc:
        case CompletionError():
            return RunFailure(culprit, str(exc)[:_ERROR_CHARS], timeout=exc.timeout, retryable=exc.retryable)
        case SummaryRefusedError():
            return RunFailure(culprit, str(exc)[:_ERROR_CHARS])
        case TurnsLostError() | RecordRefusedError():
            return RunFailure(FailureSource.STORE, str(exc)[:_ERROR_CHARS], retryable=False)
        case StoreError() | StaleOwnerError():
            return RunFailure(FailureSource.STORE, str(exc)[:_ERROR_CHARS])
        case TimeoutError() if culprit is not FailureSource.CODE:
            return RunFailure(culprit, f"No summary within {timeout_s:g} s.", timeout=True)
        case _ if culprit is FailureSource.CODE:
            return RunFailure(culprit, "The fold broke.", unplanned=True)
        case _:
            return RunFailure(culprit, "The summariser broke.", unplanned=True)


def refusal_of(stored: StoredMemory, known: CompactionState) -> StoreError:
    """Return why the store does not take what a run made. `known`: the state that the run began with."""
    if stored.ended or (stored.state.cursor, stored.state.revision) != (known.cursor, known.revision):
        return StoreError("The store knows a later state of this session; going on from there.")
    return RecordRefusedError("The store does not take this record, though nobody has changed the session.")
