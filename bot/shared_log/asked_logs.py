"""What a tail has heard of the logs of other processes: their lines, who has answered, and what is missing.

Decides and never waits. `bot.cli.log_view.other_logs` asks and listens.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bot.remote.gateway_side.reported_log import event_in
from bot.shards import parse_shards, ranges
from bot.shared_log.messages import MOST_LINES, MOST_SEEN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.logs.reader import Event
    from bot.shards import Shards
    from bot.shared_log.messages import LogAnswer

# More processes than one bot has. What was seen of each is told to it when it is asked again.
MOST_PROCESSES: Final = MOST_SEEN
# A process that follows answers every ten seconds at least.
SILENT_S: Final = 25.0


@dataclass(slots=True)
class _Process:
    """A process that has answered. `next`: the number of its next line. `seen`: the time of its last one. `resumes`: it
    goes on after a break. `said_older`: that it does not tell all of its lines.
    """

    name: str
    shards: Shards
    run: str
    heard_at: float
    next: int = 0
    seen: str = ""
    caught_up: bool = False
    is_silent: bool = False
    refused: bool = False
    resumes: bool = False
    said_older: bool = False


class AskedLogs:
    """The answers to one tail. `own`: the origin of the log that the tail reads itself."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._processes: dict[str, _Process] = {}
        self._sentences: list[str] = []
        self._said_older = False

    def hear(self, answer: LogAnswer, now: float) -> list[tuple[str, Event]]:
        """Return the lines of an answer, as text and as events, each with the process that wrote it."""
        process = self._process(answer, now)
        if process is None:
            return []
        if process.is_silent:
            self._sentences.append(f"{process.name} answers again.")
        process.heard_at, process.is_silent = now, False
        if process.run != answer.run:
            process.run, process.next, process.resumes, process.said_older = answer.run, 0, True, False
        process.caught_up = process.caught_up or answer.caught_up
        # A line may come twice, if the process did not learn that it was told.
        told = answer.lines[max(0, process.next - answer.first) :]
        lost = max(0, answer.first - process.next)
        process.next = max(process.next, answer.first + len(answer.lines))
        if answer.origin == self._own:
            return []
        lines = _marked(told, process.name)
        if lines:
            process.seen = str(lines[-1][1].get("timestamp", ""))[:40]
        self._say_missing(process, lost=lost, unreadable=len(told) - len(lines), older=answer.older)
        return lines

    def _say_missing(self, process: _Process, *, lost: int, unreadable: int, older: bool) -> None:
        if lost:
            self._sentences.append(f"Lines of {process.name} that were lost on the way: {lost:,}.")
        if unreadable:
            self._sentences.append(
                f"Lines of {process.name} that are not shown, because they are none: {unreadable:,}."
            )
        if not older or process.said_older:
            return
        process.said_older = True
        if process.resumes:
            self._sentences.append(
                f"More lines of {process.name} came during a break than it tells afterwards, so the first of them are "
                f"missing: at most the last {MOST_LINES:,} are shown, of the newest 20 MB of its log."
            )
        elif not self._said_older:
            self._said_older = True
            self._sentences.append(
                f"Of each other process at most the last {MOST_LINES:,} of the events are shown, and none that stand "
                "before the newest 20 MB of its log. `roomtone tail` on its machine shows all."
            )

    def seen(self) -> dict[str, str]:
        """Return the time of the last line from each log."""
        return {origin: each.seen for origin, each in self._processes.items() if each.seen}

    def has_all_of(self, running: Iterable[Shards]) -> bool:
        """Return whether all of these shards have told what their logs had."""
        ready = {shard for each in self._processes.values() if self._is_ready(each) for shard in each.shards.ids}
        return all(set(each.ids) <= ready for each in running)

    def absent(self, total: int) -> str:
        """Return the shards of which no process has answered, as people write them; empty: none."""
        answered = {shard for each in self._processes.values() for shard in each.shards.ids}
        missing = set(range(total)) - answered
        return f"{ranges(missing)}/{total}" if missing else ""

    def look_for_silence(self, now: float) -> None:
        """Say which processes answer no more."""
        for process in self._processes.values():
            if not process.is_silent and now - process.heard_at > SILENT_S:
                process.is_silent = True
                self._sentences.append(f"{process.name} does not answer any more.")

    def was_away(self, now: float) -> None:
        """Count no silence while nobody could be heard."""
        for process in self._processes.values():
            process.heard_at = now

    def take_sentences(self) -> list[str]:
        """Return what is to be said since the last time."""
        sentences, self._sentences = self._sentences, []
        return sentences

    def _is_ready(self, process: _Process) -> bool:
        return process.caught_up or process is self._processes.get(self._own)

    def _process(self, answer: LogAnswer, now: float) -> _Process | None:
        try:
            shards = parse_shards(answer.shards)
        except ValueError:
            return None
        machine = "".join(each for each in answer.machine if each.isprintable() and not each.isspace()) or "?"
        name = f"{machine}:{answer.shards}"
        known = self._processes.get(answer.origin)
        if known is None:
            if len(self._processes) >= MOST_PROCESSES:
                return None
            known = self._processes[answer.origin] = _Process(name, shards, answer.run, now)
        known.name, known.shards = name, shards
        if answer.refused and not known.refused and answer.origin != self._own:
            self._sentences.append(f"{name} does not tell its log: too many ask already.")
        known.refused = answer.refused
        known.caught_up = known.caught_up or answer.refused
        return known


def _marked(lines: Iterable[str], name: str) -> list[tuple[str, Event]]:
    """Return the lines that are events of a log, with the process that wrote them."""
    marked = []
    for line in lines:
        event = event_in(line)
        if event is not None:
            event["process"] = name
            marked.append((json.dumps(event), event))
    return marked
