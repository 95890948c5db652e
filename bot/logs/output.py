"""Logging: JSON lines in a rotating file, and a shorter form on the terminal.

The command that starts the process enters `configured_logging` once. `bot.logs.redaction` removes secrets and what
people said before any output. If the file cannot be written, its lines are lost but the bot goes on: the terminal gets
one sentence, and `LogStatus.problem` holds it.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

import structlog

from bot.logs.redaction import LogRedactor, describe_library_message, describe_traceback
from bot.private_files import make_private_folder, open_private
from bot.terminal_text import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
    from pathlib import Path

    from structlog.typing import EventDict, Processor

    from bot.settings import LogsSettings

# The bot logs through this one logger. Libraries keep their own, which are written from WARNING up.
LOGGER_NAME = "roomtone"
# A log file is rotated at this size, which holds several evenings. `KEEP_FILES` rotated files are kept beside it.
MAX_FILE_BYTES = 20_000_000
KEEP_FILES = 5
FILE_NAME = "roomtone.jsonl"
# What a library has logged.
LIBRARY_EVENT = "library_logged"


def log_path(data_dir: Path) -> Path:
    return data_dir / "logs" / FILE_NAME


class LogFile(logging.handlers.RotatingFileHandler):
    """A rotating log file that survives a full disk, a missing directory and rotation by another process.

    Lines that cannot be written are lost. Every event tries again, so logging recovers by itself; the log then says how
    many are missing.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep_files: int) -> None:
        super().__init__(path, maxBytes=max_bytes, backupCount=keep_files, encoding="utf-8", delay=True)
        self.path = path
        self.problem: str | None = None
        self._lost_lines = 0

    def probe(self) -> None:
        """Open the file now, so that a directory without write access is reported at the start."""
        self.acquire()
        try:
            self._reopen_if_moved()
            self.stream = self.stream or self._open()
        except OSError as exc:
            self._record_failure(exc)
        finally:
            self.release()

    def _open(self) -> TextIOWrapper:
        # Binary first, because open() with an opener has no precise type.
        return TextIOWrapper(open(self.path, "ab", opener=open_private), encoding=self.encoding)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record) + self.terminator
        except Exception:  # noqa: BLE001 - a line that cannot be formatted must not stop the work that logs it
            self._lost_lines += 1
            return
        try:
            self._reopen_if_moved()
            if self.stream is not None and self.stream.tell() + len(line) > self.maxBytes:
                self.doRollover()
            if self.stream is None:
                self.stream = self._open()
            self.stream.write(line)
            self.stream.flush()
        except (OSError, ValueError) as exc:
            self._lost_lines += 1
            self._record_failure(exc)
        else:
            self._tell_lost_lines()

    def close(self) -> None:
        """Close the file; unflushed lines are lost if they cannot be written."""
        with suppress(OSError, ValueError):
            super().close()

    def _reopen_if_moved(self) -> None:
        """Close the file if another process rotated, moved or deleted it, and create the directory again."""
        if self.stream is not None:
            with suppress(OSError):
                here, ours = self.path.stat(), os.fstat(self.stream.fileno())
                if (here.st_dev, here.st_ino) == (ours.st_dev, ours.st_ino):
                    return
            self._close_stream()
        make_private_folder(self.path.parent)

    def _close_stream(self) -> None:
        stream, self.stream = self.stream, None
        if stream is not None:
            # Closing flushes, so a failed write fails again here.
            with suppress(OSError, ValueError):
                stream.close()

    def _record_failure(self, exc: BaseException) -> None:
        self._close_stream()
        first = self.problem is None
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else type(exc).__name__
        self.problem = (
            f"The log {self.path} cannot be written ({reason}); the bot goes on without it. Free some space or give "
            "the user that runs the bot write access."
        )
        if first:
            structlog.get_logger().error(
                "log_file_refused",
                path=self.path,
                problem=exc,
                remedy="Free some space or give the user that runs the bot write access.",
            )

    def _tell_lost_lines(self) -> None:
        """Log how many lines before the one that was just written are missing, if there are any."""
        lost, self._lost_lines, self.problem = self._lost_lines, 0, None
        if lost:
            structlog.get_logger().warning("log_lines_lost", path=self.path, line_count=lost)


class _LineTaker(logging.Handler):
    """Passes each line to a function, which must be quick and may not raise."""

    def __init__(self, take: Callable[[str], None]) -> None:
        super().__init__()
        self._take = take

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            # As in `LogFile`: a line that cannot be formatted must not stop the work that logs it.
            self._take(self.format(record))


@dataclass(frozen=True, slots=True)
class LogStatus:
    """The log of this process: where it is written, and whether that works."""

    file: LogFile
    # Never with what people said.
    wordless: logging.Formatter

    @property
    def path(self) -> Path:
        """The path of the log file, even if it could not be created."""
        return self.file.path

    @property
    def problem(self) -> str | None:
        """Why the file cannot be written, as a sentence; None while it can."""
        return self.file.problem

    @contextmanager
    def copied_to(self, take: Callable[[str], None]) -> Iterator[None]:
        """Give each line of the file to `take` too while the block runs, from the thread and the context that logs it.
        It is JSON without what people said, also if the file has that (`logs.speech`).
        """
        taker = _LineTaker(take)
        taker.setLevel(self.file.level)
        taker.setFormatter(self.wordless)
        root = logging.getLogger()
        root.addHandler(taker)
        try:
            yield
        finally:
            root.removeHandler(taker)


@contextmanager
def configured_logging(
    settings: LogsSettings,
    *,
    data_dir: Path,
    console: TextIO | None = None,
    secrets: Sequence[str] = (),
    max_file_bytes: int = MAX_FILE_BYTES,
    keep_files: int = KEEP_FILES,
) -> Iterator[LogStatus]:
    """Send all logs to the file and the terminal until the context ends, then restore the former configuration.

    `console`: the terminal's stream, stderr by default. `secrets`: values that must never be written, such as tokens.
    Does not raise if the file cannot be written: see `LogStatus.problem`.
    """
    console = console if console is not None else sys.stderr
    redactor = LogRedactor(speech=settings.speech, secrets=secrets)
    file = LogFile(log_path(data_dir), max_bytes=max_file_bytes, keep_files=keep_files)
    file.setLevel(settings.level.upper())
    common = _shared_processors(speech=settings.speech)
    file.setFormatter(
        _formatter(common, redactor, structlog.processors.JSONRenderer(default=_type_name), speech=settings.speech)
    )
    terminal = logging.StreamHandler(console)
    terminal.setLevel(settings.console_level.upper())
    terminal.setFormatter(_formatter(common, redactor, _terminal_renderer(console), speech=settings.speech))
    least = min(file.level, terminal.level)

    root, ours = logging.getLogger(), logging.getLogger(LOGGER_NAME)
    before = (root.handlers[:], root.level, ours.level, structlog.get_config())
    hooks = threading.excepthook, sys.unraisablehook
    root.handlers[:] = [file, terminal]
    root.setLevel(logging.WARNING)
    ours.setLevel(least)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *common,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=lambda *_: ours,
        # Loggers are created at import, before this runs; caching would keep them on the configuration of that time.
        cache_logger_on_first_use=False,
    )
    try:
        file.probe()
        # Python would print their messages, which may quote what people said.
        threading.excepthook, sys.unraisablehook = _log_thread_error, _log_unraisable
        yield LogStatus(file, _wordless(settings, secrets))
    finally:
        threading.excepthook, sys.unraisablehook = hooks
        root.handlers[:], root_level, our_level, configuration = before
        root.setLevel(root_level)
        ours.setLevel(our_level)
        structlog.configure(**configuration)
        file.close()
        terminal.close()


@contextmanager
def warnings_on_terminal() -> Iterator[None]:
    """Send warnings to stderr until the context ends, for commands that keep no log: by itself structlog prints every
    event on stdout, where the command's answer is, which a program may read.
    """
    before = structlog.get_config()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *_shared_processors(speech=False),
            LogRedactor(speech=False),
            _terminal_renderer(sys.stderr),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)


def _log_thread_error(args: threading.ExceptHookArgs) -> None:
    """Log an error with which a thread has ended."""
    if args.exc_value is not None and args.exc_type is not SystemExit:
        structlog.get_logger().error("thread_failed", exc_info=args.exc_value)


def _log_unraisable(args: sys.UnraisableHookArgs) -> None:
    """Log an error that nobody can catch, of a destructor for example."""
    if args.exc_value is not None:
        structlog.get_logger().error("error_not_raised", exc_info=args.exc_value)


def _shared_processors(*, speech: bool) -> list[Processor]:
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        # Plain tracebacks: the pretty ones show local variables, and so tokens and what people said.
        structlog.processors.format_exc_info if speech else structlog.processors.ExceptionRenderer(describe_traceback),
    ]


def _formatter(
    common: Sequence[Processor], redactor: LogRedactor, renderer: Processor, *, speech: bool
) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*common, partial(_name_foreign, speech=speech)],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redactor, _order_keys, renderer],
        pass_foreign_args=True,
    )


def _wordless(settings: LogsSettings, secrets: Sequence[str]) -> logging.Formatter:
    redactor = LogRedactor(speech=False, secrets=secrets)

    def without_words(logger: object, method: str, event: EventDict) -> EventDict:
        # With `speech`, the traceback of an event of ours was written with the messages of its errors.
        ours = settings.speech and event["event"] != LIBRARY_EVENT
        return redactor(logger, method, {key: event[key] for key in event if not (ours and key == "exception")})

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_shared_processors(speech=False), partial(_name_foreign, speech=False)],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            without_words,
            _order_keys,
            structlog.processors.JSONRenderer(default=_type_name),
        ],
        pass_foreign_args=True,
    )


def _terminal_renderer(console: TextIO) -> Processor:
    render = structlog.dev.ConsoleRenderer(
        colors=console.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=32
    )

    def rendered(logger: object, method: str, event: MutableMapping[str, Any]) -> str:
        # An endpoint or a tool server may have written a text. Those in a list are written as Python writes them.
        plain = {key: escaped(value) if isinstance(value, str) else value for key, value in event.items()}
        return render(logger, method, plain)

    return rendered


def _name_foreign(_logger: object, _method: str, event: EventDict, *, speech: bool) -> EventDict:
    """Turn a library's free text into an event with a name of its own. `location`: where the library logged it."""
    record: logging.LogRecord = event["_record"]
    arguments = event.pop("positional_args", None)
    detail = event["event"] if speech else describe_library_message(record, arguments)
    location = f"{record.module}:{record.lineno}"
    return {**event, "event": LIBRARY_EVENT, "logger": record.name, "location": location, "detail": detail}


def _order_keys(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Put the keys that every line has first, for people who read the file directly."""
    first = [key for key in ("timestamp", "level", "event", "session_id") if key in event]
    return {key: event[key] for key in (*first, *(each for each in event if each not in first))}


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"
