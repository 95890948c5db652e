"""What the recognisers of a cluster tell of the models that read beside them (`voice.asr.text_end`).

Each answer says which recogniser gave it and whether its model fails, because nobody watches the recognisers' own log.
Recognisers of an older release say neither, and nothing is known of them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog

from voice.asr.text_end import ReaderFault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The parts of an answer, beside those of OpenAI's format. The first names a process and its machine.
RECOGNISER_FIELD: Final = "recogniser"
FAULT_FIELD: Final = "reader_fault"
_LONGEST_NAME = 300
# A recogniser that has told nothing for so long may have been replaced.
FORGOTTEN_AFTER_S = 600.0
# More recognisers than ten thousand rooms need (docs/cluster.md).
MOST_KEPT = 500

_log: Any = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Failing:
    """A recogniser whose model fails. Times in monotonic seconds; `told_at`: when it last said so."""

    fault: ReaderFault
    since: float
    told_at: float


class PoolReaders:
    """The recognisers whose model fails, by name. Not thread-safe."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        # The one that was heard of last is at the end.
        self._failing: dict[str, _Failing] = {}

    def on_answer(self, body: Mapping[str, Any]) -> None:
        """Note what an answer tells, which may be anything."""
        name = body.get(RECOGNISER_FIELD)
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
            return
        now, before, fault = self._monotonic(), self._failing.pop(name, None), _fault(body.get(FAULT_FIELD))
        if fault is None:
            return
        if before is None or before.fault is not fault or self._is_forgotten(before):
            # Logged once: the log is where the operator learns which recogniser it is.
            _log.warning("pool_reader_failed", recogniser=name, fault=fault.value)
            before = _Failing(fault, now, now)
        self._failing[name] = _Failing(fault, before.since, now)
        if len(self._failing) > MOST_KEPT:
            del self._failing[next(iter(self._failing))]

    def failing_since(self, fault: ReaderFault) -> float | None:
        """Return since when a recogniser's model has had this fault; None if none has, as far as is known."""
        found = [each.since for each in self._failing.values() if each.fault is fault and not self._is_forgotten(each)]
        return min(found, default=None)

    def _is_forgotten(self, failing: _Failing) -> bool:
        return self._monotonic() - failing.told_at >= FORGOTTEN_AFTER_S


def _fault(told: object) -> ReaderFault | None:
    """Return the fault that a recogniser tells; None for none, and for one that only a newer release knows."""
    return next((fault for fault in ReaderFault if fault.value == told), None)
