"""The lines of a process's own log that a tail elsewhere has asked for, without what people said.

Reading takes little at a time and pauses between, because the process hears and speaks meanwhile. How far it has read
is all that is kept: lines that cannot be told yet wait in the file.
"""

from __future__ import annotations

import json
from collections import deque
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from bot.logs.formatters import LIBRARY_EVENT
from bot.logs.reader import CHUNK_BYTES, LogReader, parse_event
from bot.logs.redaction import LogRedactor
from bot.remote.gateway_side.reported_log import ReportedError, event_in
from bot.shared_log.event_filter import EventFilter
from bot.shared_log.messages import MOST_LINE_CHARS, MOST_LINES
from bot.shared_log.sealed import shortened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from bot.logs.reader import Event
    from bot.shared_log.messages import LogRequest

# Several evenings. Looking through them takes half a second of processor time.
MOST_BYTES: Final = 20_000_000
# New lines that are taken from the file at once.
_MOST_NEW: Final = 500
# After so many bytes, which take about a millisecond, others get the interpreter for a moment.
_PAUSE_S: Final = 0.003
# After so many told lines, which take about 4 ms.
_PAUSE_EVERY: Final = 50
# Fields that hold the message of an error, which may quote what was said.
_ERROR_KEYS: Final = frozenset({"error", "problem"})
# With `logs.speech`, fields with whole messages of libraries.
_SPEECH_KEYS: Final = frozenset({"exception", "stack"})
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class RequestedLines:
    """Reads a log for one tail, in one thread at a time. Close it at the end.

    `after`: only lines that were written later. `speech`: the log may have what people said in its errors
    (`logs.speech`). `pause`: waits for seconds, and returns whether to give up.
    """

    def __init__(
        self,
        path: Path,
        request: LogRequest,
        *,
        after: datetime | None,
        speech: bool,
        pause: Callable[[float], bool],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._reader = LogReader(path, most_bytes=most_bytes)
        self._filter = EventFilter(session=request.session, patterns=request.patterns)
        # A tail that goes on after a time wants all that came since.
        wanted = request.last if after is None else None
        self._most = min(wanted or MOST_LINES, MOST_LINES)
        # With that, there is nothing before the last ones that the tail has asked for.
        self._is_enough = wanted is not None and wanted <= MOST_LINES
        self._after = after
        # Whether a line was read that is not later.
        self._reached_after = False
        self._speech = speech
        self._pause = pause
        self._redactor = LogRedactor(speech=False)
        self._unread: Iterator[bytes] = iter(())
        self.older = False

    def existing(self) -> list[str]:
        """Return the last of the lines that the log has. Called once, first."""
        chosen: deque[Event] = deque(maxlen=self._most)
        for event in self._events(self._paused(self._reader.read())):
            self.older = self.older or len(chosen) == self._most
            chosen.append(event)
        unread = self._reader.left_out and not self._reached_after
        self.older = not self._is_enough and (self.older or unread)
        return self._all_told(chosen)

    def new(self) -> list[str]:
        """Return some of the lines that were added since."""
        lines = list(islice(self._unread, _MOST_NEW))
        if len(lines) < _MOST_NEW:
            self._unread = self._reader.read()
            lines += islice(self._unread, _MOST_NEW - len(lines))
        return self._all_told(self._events(iter(lines)))

    def close(self) -> None:
        """Close the log."""
        self._reader.__exit__()

    def _paused(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        read = 0
        for line in lines:
            yield line
            read += len(line) + 1
            if read >= CHUNK_BYTES:
                read = 0
                if self._pause(_PAUSE_S):
                    return

    def _events(self, lines: Iterator[bytes]) -> Iterator[Event]:
        for line in lines:
            parsed = parse_event(line)
            if parsed is None:
                continue
            _, event = parsed
            if self._after is not None and time_of(event) <= self._after:
                self._reached_after = True
            elif event in self._filter:
                yield event

    def _all_told(self, events: Iterable[Event]) -> list[str]:
        told: list[str] = []
        for event in events:
            told.append(self._told(event))
            if len(told) % _PAUSE_EVERY == 0 and self._pause(_PAUSE_S):
                break
        return told

    def _told(self, event: Event) -> str:
        line = json.dumps(self._wordless(event))
        return line if len(line) <= MOST_LINE_CHARS and event_in(line) is not None else shortened(event)

    def _wordless(self, event: Event) -> dict[str, Any]:
        if not self._speech:
            # The log withheld what they quote, so the rest is the bot's own words.
            fields = {
                key: ReportedError(value) if key in _ERROR_KEYS and isinstance(value, str) else value
                for key, value in event.items()
            }
        else:
            is_library = event["event"] == LIBRARY_EVENT
            fields = {
                key: value
                for key, value in event.items()
                if key not in _SPEECH_KEYS and not (is_library and key == "detail")
            }
        return dict(self._redactor(None, "", fields))


def time_of(event: Event) -> datetime:
    """Return when an event was logged; the beginning of time if it does not say."""
    try:
        moment = datetime.fromisoformat(str(event.get("timestamp")))
    except ValueError:
        return _BEGINNING
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
