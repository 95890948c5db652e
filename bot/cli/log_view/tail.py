"""`roomtone tail`: shows the log, one line for each event."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bot.cli.log_view.events import short_line
from bot.cli.output import count, say
from bot.errors import SetupError
from bot.logs.log_file import log_path
from bot.logs.reader import LogEvent, LogReader, parse_event, rotated_files
from compaction.log_events import MemoryEvent
from config.load import load

if TYPE_CHECKING:
    from config.schema import Settings

# Returns what is printed of an event: the line of the log, or another one.
Printer: TypeAlias = Callable[[str, LogEvent], str]

# Most checks have nothing to do, and say so: those lines would hide the others.
_ALIASES = {
    "compaction": (MemoryEvent.RUN_STARTED, MemoryEvent.RUN_COMPLETED, MemoryEvent.RUN_FAILED),
    "skipped": (MemoryEvent.RUN_SKIPPED,),
    "memory": tuple(each for each in MemoryEvent if each is not MemoryEvent.RUN_SKIPPED),
}
# Short enough to feel live, long enough to cost nothing.
POLL_S = 0.25
# As many sessions are named where the one that was asked for does not exist.
_MOST_NAMED = 3
# People are known by the names of the last turns: so many of so many sessions.
_NAMED_TURNS, _NAMED_SESSIONS = 500, 5


def command(
    session: Annotated[
        str | None, typer.Option("--session", metavar="S", help="Only this session (its id or its beginning).")
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(
            "--event",
            metavar="NAME,…",
            help="Only these events. May be repeated. * matches anything. `compaction`: what was folded or failed; "
            "`skipped`: checks that had nothing to fold; `memory`: all about memory but those checks.",
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the events with all their fields, unchanged.")] = False,
    last: Annotated[
        int | None, typer.Option("--last", "-n", metavar="N", min=1, help="Only the last N events already in the log.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Read this log instead of the configured one.")
    ] = None,
) -> None:
    """Show the log, one short line for each event. --json shows all fields."""
    settings = load() if file is None else None
    path = file if settings is None else log_path(settings.storage.data_dir)
    assert path is not None, "without settings there is a file"
    if file is not None and not follow and not file.exists() and not rotated_files(file):
        raise SetupError(f"There is no log {file}. Name an existing one, or omit --file.")
    if file is not None and file.is_dir():
        raise SetupError(f"{file} is a folder. Name the log in it, for example {file / 'roomtone.jsonl'}.")
    show = printer(as_json=as_json, names={} if settings is None else _names(settings))
    try:
        LogTail(path, show, session=session, patterns=patterns_of(event or [])).run(follow=follow, last=last)
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        # After `roomtone tail | head` the pipe is closed: do not flush into it.
        sys.stdout = None


def patterns_of(events: list[str]) -> tuple[str, ...]:
    """Return the patterns of event names that the operator's words stand for; none: all events."""
    names = [name for each in events for name in each.split(",") if name]
    return tuple(pattern for name in names for pattern in _ALIASES.get(name, (name,)))


def printer(*, as_json: bool, names: Mapping[str, str]) -> Printer:
    """Return what prints an event: unchanged, or as a sentence with the names of people."""
    return lambda text, event: text if as_json else short_line(event, names=names)


def _names(settings: Settings) -> dict[str, str]:
    """Return the names of the people of the last sessions, by their id: a log has only ids. None if there is no memory
    that can be read.
    """
    from bot.errors import BotError
    from compaction.errors import StoreError

    try:
        return asyncio.run(_read_names(settings))
    except (BotError, StoreError):
        return {}


async def _read_names(settings: Settings) -> dict[str, str]:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.store.sessions import Sessions
    from bot.store.turns import SqlTurnStore
    from compaction.model import Seq

    clock, names = SystemClock(), dict[str, str]()
    async with open_existing_database(settings) as database:
        store = SqlTurnStore(database, clock)
        for session in reversed(await Sessions(database, clock).recent(limit=_NAMED_SESSIONS)):
            first = Seq(max(0, session.turn_count - _NAMED_TURNS))
            for turn in await store.turns(session.id, first, Seq(session.turn_count)):
                names |= {part.speaker_id: part.speaker for part in turn.parts if part.speaker}
    return names


class LogTail:
    """Reads one log and shows the events of the chosen session and patterns.

    They go to stdout, everything else to stderr. `session`: the beginning of an id; None: all. `patterns`: names of
    events, in which * matches anything; none: all.
    """

    def __init__(
        self,
        path: Path,
        show: Printer,
        *,
        session: str | None = None,
        patterns: Sequence[str] = (),
    ) -> None:
        self._path = path
        self._show = show
        self._session = session
        self._patterns = patterns
        self._skipped = 0
        self._seen: Counter[str] = Counter()
        # In the order of their last events.
        self._sessions: dict[str, None] = {}

    def run(self, *, follow: bool, last: int | None) -> None:
        """Show the existing events, and with `follow` new ones without end."""
        if not self._path.exists() and not rotated_files(self._path):
            there = f"There is no log yet at {self._path}. `roomtone run` and `roomtone rehearse` write it."
            say(there + (" Waiting for it." if follow else ""), err=True)
            if not follow:
                return
        with LogReader(self._path) as lines:
            # A last line without a newline is still being written.
            found = self._selected(lines.read() if follow else chain(lines.read(), lines.rest()))
            shown = self._print(found if last is None else deque(found, maxlen=last))
            while follow:
                time.sleep(POLL_S)
                self._print(self._selected(lines.read()))
        for sentence in self._what_is_wrong(shown):
            say(sentence, err=True)

    def _selected(self, lines: Iterable[bytes]) -> Iterator[tuple[str, LogEvent]]:
        for line in lines:
            if (parsed := parse_event(line)) is None:
                self._skipped += 1
                continue
            event = parsed[1]
            self._seen[event["event"]] += 1
            session = event.get("session_id")
            if isinstance(session, str):
                self._sessions.pop(session, None)
                self._sessions[session] = None
            if self._session is not None and not str(session or "").startswith(self._session):
                continue
            if not self._patterns or any(fnmatchcase(event["event"], pattern) for pattern in self._patterns):
                yield parsed

    def _print(self, chosen: Iterable[tuple[str, LogEvent]]) -> int:
        lines = [self._show(text, event) + "\n" for text, event in chosen]
        sys.stdout.writelines(lines)
        sys.stdout.flush()
        return len(lines)

    def _what_is_wrong(self, shown: int) -> Iterator[str]:
        """Yield what the log has instead of what was looked for. Raises `SetupError` if it is no log, or has nothing of
        the session that was named.
        """
        if self._skipped and not self._seen:
            raise SetupError(
                f"{self._path} is not a log of Roomtone: it has no event, but {count(self._skipped, 'other line')}. "
                "Name another file."
            )
        if self._skipped:
            yield f"Skipped {count(self._skipped, 'incomplete or unreadable line')}."
        if not self._seen and self._path.exists():
            yield f"{self._path} has no event yet."
        if not self._seen or shown:
            return
        wanted = self._session
        if wanted is not None and not any(session.startswith(wanted) for session in self._sessions):
            latest = ", ".join(list(reversed(self._sessions))[:_MOST_NAMED]) or "none"
            raise SetupError(f"There is no session {wanted} in {self._path}. Its last ones: {latest}.")
        names = ", ".join(name for name, _ in self._seen.most_common(12))
        has = count(self._seen.total(), "event")
        yield f"Nothing in {self._path} matches. The log has {has}, such as {names}."
