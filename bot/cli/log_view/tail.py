"""`roomtone tail`: shows the log, one line for each event, with a summary of each session's memory."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from bot.cli.log_view.event_filter import EventFilter
from bot.cli.log_view.events import COMPACTION, format_event
from bot.cli.log_view.session_summary import MEMORY_EVENTS, SessionSummaries
from bot.cli.output import count, fold, fold_pieces, open_console, terminal_columns
from bot.errors import SetupError
from bot.logs.log_file import log_path
from bot.logs.reader import LogReader, parse_event, rotated_files
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import tzinfo
    from typing import TextIO

    from bot.logs.reader import Event

# Most checks have nothing to do, and say so: those lines would hide the others.
_ALIASES = {
    "compaction": tuple(COMPACTION + what for what in ("started", "completed", "failed")),
    "skipped": (COMPACTION + "skipped",),
    "memory": MEMORY_EVENTS,
}
# Where the continuation of a folded line starts: below what follows the time.
_CONTINUES_AT = 20
# Short enough to feel live, long enough to cost nothing.
POLL_S = 0.25
# As many sessions are named where the one that was asked for does not exist.
_MOST_NAMED = 3


def command(
    session: Annotated[
        str | None, typer.Option("--session", metavar="S", help="Only this session (its id or its beginning).")
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(
            "--event",
            metavar="NAME…",
            help="Only these events. * matches anything. `compaction`: what was folded or failed; `skipped`: checks "
            "that had nothing to fold; `memory`: all about memory but those checks.",
        ),
    ] = None,
    more_events: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="More event names: --event takes several.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the events as JSON, unchanged.")] = False,
    last: Annotated[
        int | None, typer.Option("--last", "-n", metavar="N", min=1, help="Only the last N events already in the log.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Read this log instead of the configured one.")
    ] = None,
) -> None:
    """Show the log, one line for each event.

    With --session, `--event compaction` or `--event memory` it ends with one summary line for each session.
    """
    settings = load() if file is None else None
    path = file if settings is None else log_path(settings.storage.data_dir)
    assert path is not None, "without settings there is a file"
    if file is not None and not follow and not file.exists() and not rotated_files(file):
        raise SetupError(f"There is no log {file}. Name an existing one, or omit --file.")
    if file is not None and file.is_dir():
        raise SetupError(f"{file} is a folder. Name the log in it, for example {file / 'roomtone.jsonl'}.")
    names = [*(event or []), *(more_events or [])]
    wanted = EventFilter(session=session, patterns=patterns_of(names))
    story = (
        SessionSummaries() if not as_json and (session is not None or {"compaction", "memory"} & set(names)) else None
    )
    show = JsonPrinter(sys.stdout) if as_json else LinePrinter(sys.stdout, with_session=session is None)
    try:
        LogTail(path, wanted, show, notices=sys.stderr, story=story).run(follow=follow, last=last)
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        # After `roomtone tail | head` the pipe is closed: do not flush into it.
        sys.stdout = None


def patterns_of(events: list[str]) -> tuple[str, ...]:
    """Return the patterns of event names that the operator's words stand for; none: all events."""
    names = [name for each in events for name in each.split(",") if name]
    return tuple(pattern for name in names for pattern in _ALIASES.get(name, (name,)))


class JsonPrinter:
    """Prints events unchanged, as JSON."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __call__(self, text: str, event: Event) -> None:
        self._out.write(text + "\n")


class LinePrinter:
    """Prints events as aligned text, with colours on a terminal."""

    def __init__(self, out: TextIO, *, with_session: bool, zone: tzinfo | None = None) -> None:
        self._out = out
        self._console = open_console(file=out) if out.isatty() else None
        self._with_session = with_session
        self._zone = zone

    def __call__(self, text: str, event: Event) -> None:
        pieces = format_event(event, zone=self._zone, with_session=self._with_session)
        if self._console is None:
            self._out.write("".join(piece for piece, _ in pieces).rstrip() + "\n")
        else:
            # `no_wrap`: the pieces are folded already.
            folded = fold_pieces(pieces, self._console.width, indent=_CONTINUES_AT)
            self._console.print(Text.assemble(*folded), no_wrap=True, crop=False, overflow="ignore")


class LogTail:
    """Reads one log and shows the selected events. `notices`: the stream for everything else."""

    def __init__(
        self,
        path: Path,
        event_filter: EventFilter,
        show: Callable[[str, Event], None],
        *,
        notices: TextIO,
        sleep: Callable[[float], None] = time.sleep,
        story: SessionSummaries | None = None,
    ) -> None:
        self._path = path
        self._filter = event_filter
        self._show = show
        self._notices = notices
        self._sleep = sleep
        self._story = story
        self._skipped = 0
        self._seen: Counter[str] = Counter()
        # In the order of their last events.
        self._sessions: dict[str, None] = {}

    def run(self, *, follow: bool, last: int | None) -> None:
        """Show the existing events, and with `follow` new ones until `sleep` raises."""
        if not self._path.exists() and not rotated_files(self._path):
            self._say(
                f"There is no log yet at {self._path}. `roomtone run` and `roomtone rehearse` write it."
                + (" Waiting for it." if follow else "")
            )
            if not follow:
                return
        with LogReader(self._path) as lines:
            shown = self._show_all(self._existing(lines, last, whole=not follow))
            if not follow:
                self._print_summary(shown)
                return
            while True:
                self._sleep(POLL_S)
                self._show_all(self._selected(lines.read()))

    def _existing(self, lines: LogReader, last: int | None, *, whole: bool) -> Iterator[tuple[str, Event]]:
        """Yield the existing events. `whole`: include a last line without a newline."""

        def everything() -> Iterator[bytes]:
            yield from lines.read()
            if whole:
                yield from lines.rest()

        chosen = self._selected(everything())
        yield from chosen if last is None else deque(chosen, maxlen=last)

    def _selected(self, lines: Iterator[bytes]) -> Iterator[tuple[str, Event]]:
        for parsed in self._parsed(lines):
            _, event = parsed
            self._seen[event["event"]] += 1
            if isinstance(session := event.get("session_id"), str):
                self._sessions.pop(session, None)
                self._sessions[session] = None
            if self._story is not None and self._filter.matches_session(event):
                self._story.add(event)
            if event in self._filter:
                yield parsed

    def _parsed(self, lines: Iterator[bytes]) -> Iterator[tuple[str, Event]]:
        for line in lines:
            parsed = parse_event(line)
            if parsed is None:
                self._skipped += 1
            else:
                yield parsed

    def _show_all(self, chosen: Iterator[tuple[str, Event]]) -> int:
        count = 0
        for text, event in chosen:
            self._show(text, event)
            count += 1
        if count:
            sys.stdout.flush()
        return count

    def _print_summary(self, shown: int) -> None:
        for sentence in self._story.sentences() if self._story is not None and shown else ():
            self._say(sentence)
        if self._skipped and not self._seen:
            raise SetupError(
                f"{self._path} is not a log of Roomtone: it has no event, but {count(self._skipped, 'other line')}. "
                "Name another file."
            )
        if self._skipped:
            self._say(f"Skipped {count(self._skipped, 'incomplete or unreadable line')}.")
        if not self._seen and self._path.exists():
            self._say(f"{self._path} has no event yet.")
        if not shown and self._seen:
            self._require_session()
            names = ", ".join(name for name, _ in self._seen.most_common(12))
            has = count(self._seen.total(), "event")
            self._say(f"Nothing in {self._path} matches. The log has {has}, such as {names}.")

    def _require_session(self) -> None:
        """Raise `SetupError` if the log has nothing of the session that was named."""
        wanted = self._filter.session
        if wanted is None or any(session.startswith(wanted) for session in self._sessions):
            return
        last = list(reversed(self._sessions))[:_MOST_NAMED]
        others = (
            f". The last {'ones are' if len(last) > 1 else 'one is'} {', '.join(last)}." if last else ", or any other."
        )
        raise SetupError(f"There is no session {wanted} in {self._path}{others}")

    def _say(self, sentence: str) -> None:
        columns = terminal_columns(self._notices) if self._notices.isatty() else None
        self._notices.write((sentence if columns is None else fold(sentence, columns)) + "\n")
        self._notices.flush()
