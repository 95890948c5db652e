"""Logging: JSON lines in a rotating file, and a shorter form on the terminal.

The command that starts the process enters `configured_logging` once. `LogRedactor` removes secrets and what people said
before any output. If the file cannot be written, its lines are lost but the bot goes on: the terminal gets one
sentence, and `LogStatus.problem` holds it.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import re
import sys
import traceback
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import structlog
from pydantic import SecretStr

from bot.errors import BotError
from bot.private_files import make_private_folder, open_private
from compaction.errors import CompactionError
from voice.errors import VoiceError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence

    from structlog.typing import EventDict, ExcInfo, Processor

    from bot.settings import LogsSettings

# The bot logs through this one logger. Libraries keep their own, which are written from WARNING up.
LOGGER_NAME = "roomtone"
# A log file is rotated at this size, which holds several evenings. `KEEP_FILES` rotated files are kept beside it.
MAX_FILE_BYTES = 20_000_000
KEEP_FILES = 5
FILE_NAME = "roomtone.jsonl"

REDACTED = "[redacted]"
_SECRET_KEY = re.compile(r"(^|_)(token|authorization|api_?key|secret|secret_key|password|credentials|cookie)$", re.I)
# Discord's tokens have three parts; most others a prefix; an Authorization header names its scheme.
_SECRET_VALUE = re.compile(
    r"[\w-]{20,}\.[\w-]{5,}\.[\w-]{20,}"
    r"|\b(?:sk|pk|ghp|hf|xox[a-z])[-_][\w-]{8,}"
    r"|(?<=Bearer )[\w.~+/=-]{8,}|(?<=Bot )[\w.-]{30,}"
)
# Replacing shorter secrets would also replace ordinary words.
_MIN_SECRET_CHARS = 8

# Fields that could contain speech, or text made of it, by mistake.
_SPEECH_KEY = re.compile(
    r"(^|_)(text|texts|transcript|transcripts|summary|content|said|words|quote|quotes|gist|fact|facts|reply|answer"
    r"|prompt|messages|note|notes|what|utterance|partial|hypothesis|query|question|parts)$",
    re.I,
)
_MAX_DEPTH = 5
# Errors whose messages come from the system or from us. Messages of other errors may quote the data they failed on: a
# parser quotes speech, a KeyError a name.
_SAFE_MESSAGES = (OSError, BotError, CompactionError, VoiceError)


def log_path(data_dir: Path) -> Path:
    return data_dir / "logs" / FILE_NAME


class LogRedactor:
    """A structlog processor that removes secrets, and also what people said unless `speech` is true."""

    def __init__(self, *, speech: bool, secrets: Collection[str] = ()) -> None:
        self._speech = speech
        known = sorted((each for each in secrets if len(each) >= _MIN_SECRET_CHARS), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, _logger: object, _method: str, event: EventDict) -> EventDict:
        # Keys with an underscore are structlog's own.
        return {
            key: value if key.startswith("_") else self._redact(key, value, depth=0) for key, value in event.items()
        }

    def _redact(self, key: str, value: Any, *, depth: int) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, SecretStr) or _SECRET_KEY.search(key):
            return REDACTED
        if not self._speech and _SPEECH_KEY.search(key):
            return f"[{len(value)} withheld]" if hasattr(value, "__len__") else "[withheld]"
        if isinstance(value, str):
            return self._redact_secrets(value)
        if depth >= _MAX_DEPTH:
            return "[…]"
        if isinstance(value, dict):
            return {str(name): self._redact(str(name), each, depth=depth + 1) for name, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._redact(key, each, depth=depth + 1) for each in value]
        if isinstance(value, Path):
            return self._redact_secrets(str(value))
        # Never repr(): that of a DAVE session leaks memory, and others may contain anything.
        return f"<{type(value).__name__}>"

    def _redact_secrets(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        return _SECRET_VALUE.sub(REDACTED, text)


class LogFile(logging.handlers.RotatingFileHandler):
    """A rotating log file that survives a full disk, a missing directory and rotation by another process.

    Lines that cannot be written are dropped and counted. Every event tries again, so logging recovers by itself.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep_files: int) -> None:
        super().__init__(path, maxBytes=max_bytes, backupCount=keep_files, encoding="utf-8", delay=True)
        self.path = path
        self.problem: str | None = None
        self.dropped = 0

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
            self.dropped += 1
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
            self._record_failure(exc)
        else:
            self.problem = None

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
        self.dropped += 1
        first = self.problem is None
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else type(exc).__name__
        self.problem = (
            f"The log {self.path} cannot be written ({reason}); the bot goes on without it. Free some space or give "
            "the user that runs the bot write access."
        )
        if first:
            structlog.get_logger().error("log_file_refused", problem=self.problem)


@dataclass(frozen=True, slots=True)
class LogStatus:
    file: LogFile

    @property
    def path(self) -> Path:
        """The path of the log file, even if it could not be created."""
        return self.file.path

    @property
    def problem(self) -> str | None:
        """Why the file cannot be written, as a sentence; None while it can."""
        return self.file.problem

    @property
    def dropped(self) -> int:
        """How many lines were lost so far."""
        return self.file.dropped


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
    file.setFormatter(_formatter(common, redactor, structlog.processors.JSONRenderer(default=_type_name)))
    terminal = logging.StreamHandler(console)
    terminal.setLevel(settings.console_level.upper())
    terminal.setFormatter(_formatter(common, redactor, _terminal_renderer(console)))
    least = min(file.level, terminal.level)

    root, ours = logging.getLogger(), logging.getLogger(LOGGER_NAME)
    before = (root.handlers[:], root.level, ours.level, structlog.get_config())
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
        yield LogStatus(file)
    finally:
        root.handlers[:], root_level, our_level, configuration = before
        root.setLevel(root_level)
        ours.setLevel(our_level)
        structlog.configure(**configuration)
        file.close()
        terminal.close()


def _shared_processors(*, speech: bool) -> list[Processor]:
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        # Plain tracebacks: the pretty ones show local variables, and so tokens and what people said.
        structlog.processors.format_exc_info if speech else structlog.processors.ExceptionRenderer(_traceback),
    ]


def _traceback(exc_info: ExcInfo) -> str:
    """Return a traceback without the messages that may quote data."""
    return "".join(_format_chain(exc_info[1], frozenset())).rstrip("\n")


def _format_chain(error: BaseException, before: frozenset[int]) -> Iterator[str]:
    """Yield the tracebacks of the error's causes, then its own. `before`: ids of the errors already being formatted."""
    before |= {id(error)}
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and id(cause) not in before:
        yield from _format_chain(cause, before)
        yield "\nThat led to:\n\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    message = f": {error}" if isinstance(error, _SAFE_MESSAGES) else ""
    yield f"{type(error).__qualname__}{message}\n"
    if isinstance(error, BaseExceptionGroup):
        for number, each in enumerate(error.exceptions, start=1):
            if id(each) not in before:
                yield f"\nOf these, number {number}:\n\n"
                yield from _format_chain(each, before)


def _formatter(common: Sequence[Processor], redactor: LogRedactor, renderer: Processor) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*common, _name_foreign],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redactor, _order_keys, renderer],
    )


def _terminal_renderer(console: TextIO) -> Processor:
    return structlog.dev.ConsoleRenderer(
        colors=console.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=32
    )


def _name_foreign(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Turn a library's free text into an event with a name of its own."""
    record: logging.LogRecord = event["_record"]
    return {**event, "event": "library_logged", "logger": record.name, "detail": event["event"]}


def _order_keys(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Put the keys that every line has first, for people who read the file directly."""
    first = [key for key in ("timestamp", "level", "event", "session_id") if key in event]
    return {key: event[key] for key in (*first, *(each for each in event if each not in first))}


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"
