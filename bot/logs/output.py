"""Logging: JSON lines in a rotating file, and a shorter form on the terminal.

The command that starts the process enters `configured_logging` once. `bot.logs.redaction` removes secrets and what
people said before any output. If the file cannot be written, its lines are lost but the bot goes on: the terminal gets
one sentence, and `LogStatus.problem` holds it.
"""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from bot.logs.formatters import (
    SHARED_PROCESSORS,
    file_formatter,
    terminal_formatter,
    terminal_renderer,
)
from bot.logs.log_file import KEEP_FILES, MAX_FILE_BYTES, LogFile, log_path
from bot.logs.redaction import LogRedactor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import TextIO

    from bot.settings import LogLevel

# The bot logs through this one logger. Libraries keep their own, which are written from WARNING up.
LOGGER_NAME = "roomtone"


@dataclass(frozen=True, slots=True)
class LogStatus:
    """The log of this process: where it is written, and whether that works."""

    file: LogFile

    @property
    def path(self) -> Path:
        """The path of the log file, even if it could not be created."""
        return self.file.path

    @property
    def problem(self) -> str | None:
        """Why the file cannot be written, as a sentence; None while it can."""
        return self.file.problem


@contextmanager
def configured_logging(
    data_dir: Path,
    *,
    console: TextIO | None = None,
    secrets: Sequence[str] = (),
    max_file_bytes: int = MAX_FILE_BYTES,
    keep_files: int = KEEP_FILES,
    level: LogLevel = "info",
    console_level: LogLevel = "warning",
) -> Iterator[LogStatus]:
    """Send all logs to the file and the terminal until the context ends, then restore the former configuration.

    `console`: the terminal's stream, stderr by default. `secrets`: values that must never be written, such as tokens.
    `level`, `console_level`: of the least severe event in the file, and on the terminal.
    Does not raise if the file cannot be written: see `LogStatus.problem`.
    """
    redactor = LogRedactor(secrets)
    file = LogFile(log_path(data_dir), max_bytes=max_file_bytes, keep_files=keep_files)
    file.setLevel(level.upper())
    file.setFormatter(file_formatter(redactor))
    console = console if console is not None else sys.stderr
    terminal = logging.StreamHandler(console)
    terminal.setLevel(console_level.upper())
    terminal.setFormatter(terminal_formatter(redactor, console))
    with _logging_to(file, terminal):
        file.probe()
        with _uncaught_errors_logged():
            yield LogStatus(file)


@contextmanager
def _logging_to(*handlers: logging.Handler) -> Iterator[None]:
    """Send all logs to these handlers until the block ends, then restore the former configuration and close them."""
    root, ours = logging.getLogger(), logging.getLogger(LOGGER_NAME)
    least = min(handler.level for handler in handlers)
    before = (root.handlers[:], root.level, ours.level, structlog.get_config())
    root.handlers[:] = handlers
    root.setLevel(logging.WARNING)
    ours.setLevel(least)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *SHARED_PROCESSORS,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(least),
        logger_factory=lambda *_: ours,
        # Loggers are created at import, before this runs; caching would keep them on the configuration of that time.
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        root.handlers[:], root_level, our_level, configuration = before
        root.setLevel(root_level)
        ours.setLevel(our_level)
        structlog.configure(**configuration)
        for handler in handlers:
            handler.close()


@contextmanager
def _uncaught_errors_logged() -> Iterator[None]:
    """Log the errors of threads and of destructors, whose messages Python would print; they may quote what people
    said.
    """
    before = threading.excepthook, sys.unraisablehook
    threading.excepthook, sys.unraisablehook = _log_thread_error, _log_unraisable
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = before


def _log_thread_error(args: threading.ExceptHookArgs) -> None:
    """Log an error with which a thread has ended."""
    if args.exc_value is not None and args.exc_type is not SystemExit:
        structlog.get_logger().error("thread_failed", exc_info=args.exc_value)


def _log_unraisable(args: sys.UnraisableHookArgs) -> None:
    """Log an error that nobody can catch, of a destructor for example."""
    if args.exc_value is not None:
        structlog.get_logger().error("error_not_raised", exc_info=args.exc_value)


@contextmanager
def warnings_on_terminal() -> Iterator[None]:
    """Send warnings to stderr until the context ends, for commands that keep no log: by itself structlog prints every
    event on stdout, where the command's answer is, which a program may read.
    """
    before = structlog.get_config()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            *SHARED_PROCESSORS,
            LogRedactor(),
            terminal_renderer(sys.stderr),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)
