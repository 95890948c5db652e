"""Logging: JSON lines in a rotating file, and a shorter form on the terminal.

The command that starts the process enters `configured_logging` once. `bot.logs.redaction` removes secrets and what
people said before any output, and the free text of libraries gets the form of an event. If the file cannot be written,
its lines are lost but the bot goes on: the terminal gets one sentence, and `LogFile.problem` holds it.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

import structlog

from bot.logs.log_file import KEEP_FILES, MAX_FILE_BYTES, LogFile, log_path
from bot.logs.redaction import LogRedactor, describe_library_message, describe_traceback
from bot.terminal_text import escaped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
    from pathlib import Path

    from structlog.typing import EventDict, Processor

# The bot logs through this one logger. Libraries keep their own, which are written from WARNING up.
LOGGER_NAME = "roomtone"
# What a library has logged.
LIBRARY_EVENT = "library_logged"
# The keys whose values name people.
PERSON_KEYS = frozenset({"participants", "person_id", "speaker_id", "user_id", "user_ids"})


# What adds level, time and traceback to an event, before it is redacted.
_FIRST_PROCESSORS: tuple[Processor, ...] = (
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    # The pretty ones show local variables, and so tokens and what people said.
    structlog.processors.ExceptionRenderer(describe_traceback),
)


@contextmanager
def configured_logging(
    data_dir: Path,
    *,
    console: TextIO | None = None,
    secrets: Sequence[str] = (),
    max_file_bytes: int = MAX_FILE_BYTES,
) -> Iterator[LogFile]:
    """Send all logs to the file, and warnings to the terminal, until the context ends; then restore the former
    configuration.

    `console`: the terminal's stream, stderr by default. `secrets`: values that must never be written, such as tokens.
    Does not raise if the file cannot be written: see `LogFile.problem`.
    """
    console = console if console is not None else sys.stderr
    file = LogFile(log_path(data_dir), max_bytes=max_file_bytes, keep_files=KEEP_FILES)
    terminal = logging.StreamHandler(console)
    terminal.setLevel(logging.WARNING)
    redactor = LogRedactor(secrets)
    file.setFormatter(
        _formatter(redactor, structlog.processors.JSONRenderer(default=lambda value: f"<{type(value).__name__}>"))
    )
    # Elsewhere than on a terminal, a service manager keeps the lines where nobody can be forgotten.
    shown: Processor = redactor if console.isatty() else partial(_nameless, redactor)
    terminal.setFormatter(_formatter(shown, _terminal_renderer(console)))

    root, ours = logging.getLogger(), logging.getLogger(LOGGER_NAME)
    before = (root.handlers[:], root.level, ours.level, threading.excepthook, sys.unraisablehook)
    root.handlers[:] = (file, terminal)
    root.setLevel(logging.WARNING)
    ours.setLevel(logging.INFO)
    try:
        wrap = structlog.stdlib.ProcessorFormatter.wrap_for_formatter
        with _structlog_configured(logging.INFO, lambda *_: ours, wrap):
            file.probe()
            # Python would print the messages of these errors, which may quote what people said.
            threading.excepthook = partial(_log_uncaught, "thread_failed")
            sys.unraisablehook = partial(_log_uncaught, "error_not_raised")
            yield file
    finally:
        root.handlers[:], root_level, our_level, threading.excepthook, sys.unraisablehook = before
        root.setLevel(root_level)
        ours.setLevel(our_level)
        file.close()
        terminal.close()


@contextmanager
def warnings_on_terminal() -> Iterator[None]:
    """Send warnings to stderr until the context ends, for commands that keep no log: by itself structlog prints every
    event on stdout, where the command's answer is, which a program may read.
    """
    last = (LogRedactor(), _terminal_renderer(sys.stderr))
    with _structlog_configured(logging.WARNING, structlog.PrintLoggerFactory(sys.stderr), *last):
        yield


@contextmanager
def _structlog_configured(least: int, logger_factory: Callable[..., Any], *last: Processor) -> Iterator[None]:
    """Let events of that level and above go through the processors `last` until the block ends."""
    before = structlog.get_config()
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, *_FIRST_PROCESSORS, *last],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=logger_factory,
        # Loggers are created at import, before this runs; caching would keep them on the configuration of that time.
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)


def _log_uncaught(event: str, args: threading.ExceptHookArgs | sys.UnraisableHookArgs) -> None:
    """Log an error of a thread or a destructor, which nobody can catch."""
    if args.exc_value is not None and args.exc_type is not SystemExit:
        structlog.get_logger().error(event, exc_info=args.exc_value)


def _formatter(redact: Processor, render: Processor) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_FIRST_PROCESSORS, _name_foreign],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact, _order_keys, render],
        pass_foreign_args=True,
    )


def _terminal_renderer(console: TextIO) -> Processor:
    """Return what makes a line for the terminal of a redacted event. Nothing in it acts on the terminal."""
    render = structlog.dev.ConsoleRenderer(
        colors=console.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=32
    )

    def rendered(logger: object, method: str, event: MutableMapping[str, Any]) -> str:
        # An endpoint or a tool server may have written a text. Those in a list are written as Python writes them.
        event = {key: escaped(value) if isinstance(value, str) else value for key, value in event.items()}
        return render(logger, method, event)

    return rendered


def _nameless(redactor: LogRedactor, logger: object, method: str, event: EventDict) -> EventDict:
    """Return a redacted event without people's ids."""
    return redactor(logger, method, {key: each for key, each in event.items() if key not in PERSON_KEYS})


def _name_foreign(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Turn a library's free text into an event with a name of its own. `location`: where the library logged it."""
    record: logging.LogRecord = event["_record"]
    detail = describe_library_message(record, event.pop("positional_args", None))
    location = f"{record.module}:{record.lineno}"
    return {**event, "event": LIBRARY_EVENT, "logger": record.name, "location": location, "detail": detail}


def _order_keys(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Put the keys that every line has first, for people who read the file directly."""
    first = [key for key in ("timestamp", "level", "event", "session_id") if key in event]
    return {key: event[key] for key in (*first, *(each for each in event if each not in first))}
