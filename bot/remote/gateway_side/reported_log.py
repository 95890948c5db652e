"""The log lines of a room on another machine, written to the log of the gateway process.

So `roomtone tail` follows a room wherever it runs. The lines say nothing that people said: the room's machine has taken
that out, and what this process writes is looked at again as every line of its own. A line that is no event, or has
values that no event of ours has, is refused; a process that tells more than it may loses the rest.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final

import structlog

from bot.errors import BotError
from bot.remote.messages.log_messages import MOST_CHARS, MOST_LINE_CHARS, MOST_LINES, FollowLog, LineBudget, LogTold

if TYPE_CHECKING:
    from bot.clock import Clock
    from bot.remote.link.message_link import MessageLink
    from bot.remote.messages.log_messages import LogLine

log = structlog.get_logger()

# What comes at once after a link that stood still: its queue of ten seconds.
_BURST: Final = 10 * MOST_LINES
# How often the log says that lines are missing.
SAY_EVERY_S: Final = 60.0
# A line that was written longer ago than this says when.
_LATE_S: Final = 2.0
_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_EVENT: Final = re.compile(r"[a-z][a-z0-9_]{0,79}")
_KEY: Final = re.compile(r"[a-zA-Z]\w{0,59}", re.ASCII)
# The longest words are ids, paths and digests.
_LONG_WORD: Final = re.compile(r"\S{301}")
_MOST_KEYS: Final = 60
_DEEPEST: Final = 5
# What the lines of this process get from their own logger.
_OWN_KEYS: Final = frozenset({"event", "level", "timestamp", "machine", "exc_info", "stack_info", "self"})
# The keys whose values are errors, which a line has as text.
_ERROR_KEYS: Final = frozenset({"error", "problem"})


class ReportedError(BotError):
    """The message of an error on another machine: the log takes out what it quotes, as of an error of its own."""


class ReportedLog:
    """Writes what one room tells. `machine`: where it runs."""

    def __init__(self, machine: str, clock: Clock) -> None:
        self._machine = machine
        self._clock = clock
        self._budget = LineBudget(_BURST)
        self._missing = self._refused = 0
        self._said_at = float("-inf")

    def hear(self, told: LogTold) -> None:
        """Write lines, and say now and then how many are missing."""
        now = self._clock.monotonic()
        few = told.lines[: max(0, min(MOST_LINES, self._budget.left(now)))]
        self._budget.spend(len(few))
        self._missing += max(0, told.dropped) + len(told.lines) - len(few)
        chars = 0
        for line in few:
            chars += len(line.line)
            event = event_in(line.line) if chars <= MOST_CHARS else None
            if event is None:
                self._refused += 1
            else:
                self._write(event, line)
        if (self._missing or self._refused) and now - self._said_at >= SAY_EVERY_S:
            log.warning("room_log_incomplete", machine=self._machine, dropped=self._missing, refused=self._refused)
            self._said_at, self._missing, self._refused = now, 0, 0

    def _write(self, event: dict[str, Any], line: LogLine) -> None:
        fields = {
            key: ReportedError(value) if key in _ERROR_KEYS and isinstance(value, str) else value
            for key, value in event.items()
            if key not in _OWN_KEYS
        }
        if math.isfinite(line.age_s) and line.age_s >= _LATE_S:
            fields["late_s"] = round(line.age_s, 1)
        log.log(_LEVELS[event["level"]], event["event"], **fields, machine=self._machine)


def follow_log(link: MessageLink, folder: str, machine: str, clock: Clock) -> None:
    """Write the log of the room behind a link to this process's log, unless both write to the same file. `folder`: the
    mark of this process's data folder.
    """
    link.handlers.hear(LogTold, ReportedLog(machine, clock).hear)
    link.tell(FollowLog(folder))


def event_in(line: str) -> dict[str, Any] | None:
    """Return the event in a line of a log; None if it is none that a Roomtone has written."""
    if len(line) > MOST_LINE_CHARS:
        return None
    try:
        event = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or len(event) > _MOST_KEYS:
        return None
    name, level = event.get("event"), event.get("level")
    if not isinstance(name, str) or not _EVENT.fullmatch(name) or not isinstance(level, str) or level not in _LEVELS:
        return None
    if not all(_KEY.fullmatch(key) for key in event) or not all(_is_value(value, 0) for value in event.values()):
        return None
    return {key: _printable(value) for key, value in event.items()}


def _no_number(word: str) -> None:
    raise ValueError(word)


def _is_value(value: Any, depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    match value:
        case dict():
            return all(_is_value(key, depth) and _is_value(each, depth + 1) for key, each in value.items())
        case list():
            return all(_is_value(each, depth + 1) for each in value)
        case str():
            return _LONG_WORD.search(value) is None
        case float():
            # A number with too many digits is read as infinite.
            return math.isfinite(value)
        case _:
            return True


def _printable(value: Any) -> Any:
    """Return a value whose texts change nothing on a terminal, and can be written: half a character cannot."""
    match value:
        case str():
            return "".join(
                each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in value
            )
        case dict():
            return {_printable(key): _printable(each) for key, each in value.items()}
        case list():
            return [_printable(each) for each in value]
        case _:
            return value
