"""What the bot tells of its work: JSON lines in a file that rotates, and a terser stream for the terminal.

`writing_logs` is entered once, by the command that composes the process. What people said and what is secret
stops at `Discretion`, on the way to every output. A disk that refuses the file costs its lines, never the bot:
one plain sentence on the terminal, and `Logs.problem` for whoever reports health.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import structlog
from pydantic import SecretStr

from bot.errors import BotError
from compaction.errors import CompactionError
from voice.errors import VoiceError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence

    from structlog.typing import EventDict, ExcInfo, Processor

    from bot.settings import LogsSettings

# Everything of ours goes through this one logger; libraries keep theirs, heard from WARNING up.
LOGGER_NAME = "roomtone"
FILE_NAME = "roomtone.jsonl"

REDACTED = "[redacted]"
_SECRET_KEY = re.compile(r"(^|_)(token|authorization|api_?key|secret|secret_key|password|credentials|cookie)$", re.I)
# Discord's tokens have three parts; most others a prefix; an Authorization header names its scheme.
_SECRET_VALUE = re.compile(
    r"[\w-]{20,}\.[\w-]{5,}\.[\w-]{20,}"
    r"|\b(?:sk|pk|ghp|hf|xox[a-z])[-_][\w-]{8,}"
    r"|(?<=Bearer )[\w.~+/=-]{8,}|(?<=Bot )[\w.-]{30,}"
)
# A shorter secret would blot out ordinary words.
_MIN_SECRET_CHARS = 8

# Names under which words of people, or words made of theirs, might be logged by mistake.
_SPEECH_KEY = re.compile(
    r"(^|_)(text|texts|transcript|transcripts|summary|content|said|words|quote|quotes|gist|fact|facts|reply|answer"
    r"|prompt|messages|note|notes|what|utterance|partial|hypothesis|query|question|parts)$",
    re.I,
)
_MAX_DEPTH = 5
# Errors whose words are the system's or our own sentences. What others say may quote what they broke on: a parser what
# was said, a dictionary the name that it lacks.
_OWN_WORDS = (OSError, BotError, CompactionError, VoiceError)


def log_path(data_dir: Path) -> Path:
    """Return the log file that belongs to a data directory."""
    return data_dir / "logs" / FILE_NAME


class Discretion:
    """The processor that keeps secrets and speech out. `speech` lets what people said pass; secrets never do."""

    def __init__(self, *, speech: bool, secrets: Collection[str] = ()) -> None:
        self._speech = speech
        known = sorted((each for each in secrets if len(each) >= _MIN_SECRET_CHARS), key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, _logger: object, _method: str, event: EventDict) -> EventDict:
        """Return the event as it may be written."""
        # structlog's own keys, of the record a formatter is working on, are no values of ours.
        return {
            key: value if key.startswith("_") else self._checked(key, value, depth=0) for key, value in event.items()
        }

    def _checked(self, key: str, value: Any, *, depth: int) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, SecretStr) or _SECRET_KEY.search(key):
            return REDACTED
        if not self._speech and _SPEECH_KEY.search(key):
            return f"[{len(value)} withheld]" if hasattr(value, "__len__") else "[withheld]"
        if isinstance(value, str):
            return self._without_secrets(value)
        if depth >= _MAX_DEPTH:
            return "[…]"
        if isinstance(value, dict):
            return {str(name): self._checked(str(name), each, depth=depth + 1) for name, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._checked(key, each, depth=depth + 1) for each in value]
        if isinstance(value, Path):
            return self._without_secrets(str(value))
        # Never repr(): that of a DAVE session leaks memory, and nobody knows what others show.
        return f"<{type(value).__name__}>"

    def _without_secrets(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        return _SECRET_VALUE.sub(REDACTED, text)


class LogFile(logging.handlers.RotatingFileHandler):
    """The rotating file. It survives a full disk, a missing directory and another process's rotation.

    What cannot be written is dropped and counted; every event tries again, so the file comes back by itself.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep_files: int) -> None:
        super().__init__(path, maxBytes=max_bytes, backupCount=keep_files, encoding="utf-8", delay=True)
        self.path = path
        self.problem: str | None = None
        self.dropped = 0

    def probe(self) -> None:
        """Open the file now, so that a directory nobody can write to is known at the start."""
        self.acquire()
        try:
            self._follow_the_path()
            self.stream = self.stream or self._open()
        except OSError as exc:
            self._gave_up(exc)
        finally:
            self.release()

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, or count it as dropped."""
        try:
            line = self.format(record) + self.terminator
        except Exception:  # noqa: BLE001 - a line that cannot be made must not stop the work it tells of
            self.dropped += 1
            return
        try:
            self._follow_the_path()
            if self.stream is not None and self.stream.tell() + len(line) > self.maxBytes:
                self.doRollover()
            if self.stream is None:
                self.stream = self._open()
            self.stream.write(line)
            self.stream.flush()
        except (OSError, ValueError) as exc:
            self._gave_up(exc)
        else:
            self.problem = None

    def close(self) -> None:
        """Close the file; what the disk refuses now is lost."""
        with suppress(OSError, ValueError):
            super().close()

    def _follow_the_path(self) -> None:
        """Let go of a file that was rotated, moved or deleted by somebody else, and make the directory anew."""
        if self.stream is not None:
            with suppress(OSError):
                here, ours = self.path.stat(), os.fstat(self.stream.fileno())
                if (here.st_dev, here.st_ino) == (ours.st_dev, ours.st_ino):
                    return
            self._let_go()
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def _let_go(self) -> None:
        stream, self.stream = self.stream, None
        if stream is not None:
            # Closing flushes, and what could not be written fails again.
            with suppress(OSError, ValueError):
                stream.close()

    def _gave_up(self, exc: BaseException) -> None:
        self._let_go()
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
class Logs:
    """The log file in use, for health: `problem` is a plain sentence while it cannot be written, else None."""

    file: LogFile

    @property
    def path(self) -> Path:
        """Return where the log is, or would be."""
        return self.file.path

    @property
    def problem(self) -> str | None:
        """Return why nothing is written, or None when all is well."""
        return self.file.problem

    @property
    def dropped(self) -> int:
        """Return how many lines were lost so far."""
        return self.file.dropped


@contextmanager
def writing_logs(
    settings: LogsSettings, *, data_dir: Path, console: TextIO | None = None, secrets: Sequence[str] = ()
) -> Iterator[Logs]:
    """Send all logs to the file and the terminal while the context lasts, then restore what was before.

    `console`: the terminal's stream, stderr by default. `secrets`: values that must not appear anywhere, such as
    the tokens in force. Never raises for a file that cannot be written: see `Logs.problem`.
    """
    console = console if console is not None else sys.stderr
    discretion = Discretion(speech=settings.speech, secrets=secrets)
    file = LogFile(
        log_path(data_dir), max_bytes=round(settings.max_file_mb * 1_000_000), keep_files=settings.keep_files
    )
    file.setLevel(settings.level.upper())
    common = _common(speech=settings.speech)
    file.setFormatter(_formatter(common, discretion, structlog.processors.JSONRenderer(default=_type_name)))
    terminal = logging.StreamHandler(console)
    terminal.setLevel(settings.console_level.upper())
    terminal.setFormatter(_formatter(common, discretion, _terminal_renderer(console)))
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
        # Loggers are made at import, before this; caching would freeze them in whatever was configured first.
        cache_logger_on_first_use=False,
    )
    try:
        file.probe()
        yield Logs(file)
    finally:
        root.handlers[:], root_level, our_level, configuration = before
        root.setLevel(root_level)
        ours.setLevel(our_level)
        structlog.configure(**configuration)
        file.close()
        terminal.close()


def _common(*, speech: bool) -> list[Processor]:
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        # Plain text: the pretty ones show local variables, so tokens and what people said.
        structlog.processors.format_exc_info if speech else structlog.processors.ExceptionRenderer(_traceback),
    ]


def _traceback(exc_info: ExcInfo) -> str:
    """Return a traceback in which no error quotes what it broke on."""
    return "".join(_told(exc_info[1], frozenset())).rstrip("\n")


def _told(error: BaseException, before: frozenset[int]) -> Iterator[str]:
    """Yield an error's traceback, behind those of what led to it. `before`: the errors that are being told."""
    before |= {id(error)}
    led = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if led is not None and id(led) not in before:
        yield from _told(led, before)
        yield "\nThat led to:\n\n"
    yield "Traceback (most recent call last):\n"
    yield from traceback.format_tb(error.__traceback__)
    words = f": {error}" if isinstance(error, _OWN_WORDS) else ""
    yield f"{type(error).__qualname__}{words}\n"
    if isinstance(error, BaseExceptionGroup):
        for number, each in enumerate(error.exceptions, start=1):
            if id(each) not in before:
                yield f"\nOf these, number {number}:\n\n"
                yield from _told(each, before)


def _formatter(common: Sequence[Processor], discretion: Discretion, renderer: Processor) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*common, _name_foreign],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, discretion, _order, renderer],
    )


def _terminal_renderer(console: TextIO) -> Processor:
    return structlog.dev.ConsoleRenderer(
        colors=console.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=32
    )


def _name_foreign(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Make a library's free text a field of one event, so that every line has a name."""
    record: logging.LogRecord = event["_record"]
    return {**event, "event": "library_logged", "logger": record.name, "detail": event["event"]}


def _order(_logger: object, _method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Put what every line has first, for those who read the file itself."""
    first = [key for key in ("timestamp", "level", "event", "session_id") if key in event]
    return {key: event[key] for key in (*first, *(each for each in event if each not in first))}


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"
