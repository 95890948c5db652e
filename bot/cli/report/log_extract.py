"""What the log of the last hours sums up to: how often what happened, how long it took, and the last events."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from itertools import chain
from statistics import median
from typing import TYPE_CHECKING

from bot.cli.report.allowed import PACKETS_COUNTED, REQUEST_REFUSED, ReportedEvent, reported_event
from bot.logs.reader import LogReader, parse_event

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path


# So many of the last events are told one by one.
LAST_EVENTS = 300
# Discord's words for its codes (its reference, "JSON error codes"): those of requests that the bot makes.
MESSAGES = {
    "10003": "Unknown channel",
    "10004": "Unknown guild",
    "10008": "Unknown message",
    "10015": "Unknown webhook",
    "10062": "Unknown interaction",
    "20016": "This action cannot be performed due to slowmode rate limit",
    "20028": "The channel you are writing has hit the write rate limit",
    "30046": "Maximum number of edits to messages older than 1 hour reached",
    "40001": "Unauthorized",
    "40005": "Request entity too large",
    "40060": "Interaction has already been acknowledged",
    "50001": "Missing access",
    "50006": "Cannot send an empty message",
    "50013": "You lack permissions to perform that action",
    "50027": "Invalid webhook token provided",
    "50035": "Invalid form body",
    "50083": "Thread is archived",
    "160004": "A thread has already been created for this message",
    "160005": "Thread is locked",
}


class LogExtract:
    """What a log has of the events since `since` that may be told."""

    def __init__(self, log: Path, *, since: datetime) -> None:
        """Read the log. Raises `OSError`."""
        self._kinds: Counter[str] = Counter()
        self._times: defaultdict[str, dict[str, list[float]]] = defaultdict(dict)
        self._packets: Counter[str] = Counter()
        self._last: deque[ReportedEvent] = deque(maxlen=LAST_EVENTS)
        with LogReader(log) as lines:
            for parsed in map(parse_event, chain(lines.read(), lines.rest())):
                told = None if parsed is None else reported_event(parsed[1])
                if told is not None and told.at >= since:
                    self._add(told)

    def _add(self, event: ReportedEvent) -> None:
        self._last.append(event)
        kind = _kind(event)
        self._kinds[kind] += 1
        for field, value in event.figures.items():
            if field.endswith(("_ms", "_s")):
                self._times[kind].setdefault(field, []).append(value)
            elif event.name == PACKETS_COUNTED:
                self._packets[field] += int(value)

    def counts(self) -> Iterator[str]:
        """Yield a line for each kind of event, the most frequent first, with median and maximum of its times."""
        for kind, number in self._kinds.most_common():
            times = [
                f"{field} {median(values):g} (most {max(values):g})" for field, values in self._times[kind].items()
            ]
            yield "  ".join([f"{number:>6}  {kind}", *times])

    def packets(self) -> str:
        """Return what became of the packets of ended connections, and of each ten minutes of one that goes on."""
        named = [f"{number} {outcome}" for outcome, number in self._packets.most_common()]
        return ", ".join(named) or "none were counted"

    def last(self) -> Iterator[str]:
        """Yield a line for each of the last events, newest first."""
        for event in reversed(self._last):
            figures = [f"{name}={value:.10g}" for name, value in event.figures.items()]
            yield " ".join([f"{event.at:%m-%d %H:%M:%S}", _kind(event), *figures])


def _kind(event: ReportedEvent) -> str:
    message = MESSAGES.get(event.labels.get("code", "")) if event.name == REQUEST_REFUSED else None
    labels = [f"{name}={text}" for name, text in event.labels.items()]
    return " ".join([event.name, *labels, *([f"({message})"] if message else [])])
