"""Passes the events of compaction to the log and to a listener. Nothing that they raise stops the compaction."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from compaction.folding.events import FoldFailed, log_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    import structlog

    from compaction.folding.events import CompactionEvent
    from compaction.model import Mode


class EventReporter:
    """The reporter of one session. `on_event`: the listener; it must not block."""

    def __init__(
        self, log: structlog.typing.FilteringBoundLogger, on_event: Callable[[CompactionEvent], None] | None
    ) -> None:
        self._log = log
        self._on_event = on_event

    def set_mode(self, mode: Mode) -> None:
        """Name this mode in all further log lines."""
        self._log = self._log.bind(compaction_mode=mode.value)

    def emit(self, event: CompactionEvent) -> None:
        """Log an event and tell the listener."""
        for tell in (self._write_log, self._on_event):
            try:
                if tell is not None:
                    tell(event)
            except Exception as exc:  # noqa: BLE001 - a listener's error must not stop the compaction
                self.warn("compaction_listener_failed", exc)

    def warn(self, name: str, exc: BaseException) -> None:
        """Log a defect under `name`, with its class and where it was raised: its text may hold what people said."""
        with suppress(Exception):
            self._log.warning(name, error_class=type(exc).__name__, exc_info=exc)

    def _write_log(self, event: CompactionEvent) -> None:
        level = self._log.warning if isinstance(event, FoldFailed) else self._log.info
        level(event.name, **log_fields(event))
