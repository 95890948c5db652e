"""Takes secrets, and what people said, out of log events.

What may stand in a log as text is listed here: the names of `NAME_KEYS`, the sentences of `TEXT_KEYS`, and the messages
of our own errors without what they quote. Of any other text the log has only type and length. So a new field, or a
library that quotes its data, is silent until somebody has looked at it.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from bot.errors import BotError
from compaction.errors import CompactionError
from voice.errors import VoiceError

if TYPE_CHECKING:
    import logging
    from collections.abc import Collection, Iterator

    from structlog.typing import EventDict, ExcInfo

REDACTED = "[redacted]"
_SECRET_KEY = re.compile(r"(^|_)(token|authorization|api_?key|secret|secret_key|password|credentials|cookie)$", re.I)
# Discord's tokens have three parts; most others a prefix; an Authorization header names its scheme. The first part
# begins where its letters do: tried from each of them, a long word took the square of its length.
_SECRET_VALUE = re.compile(
    r"(?<![\w-])[\w-]{20,}\.[\w-]{5,}\.[\w-]{20,}"
    r"|\b(?:sk|pk|ghp|hf|xox[a-z])[-_][\w-]{8,}"
    r"|(?<=Bearer )[\w.~+/=-]{8,}|(?<=Bot )[\w.-]{30,}"
)
# Replacing shorter secrets would also replace ordinary words.
_MIN_SECRET_CHARS = 8

# Keys whose values are names: ids, kinds, reasons, settings, models and tools. A value with a space is no name.
NAME_KEYS = frozenset(
    {
        "api_base",
        "change",
        "channel_id",
        "code",
        "command",
        "compaction_mode",
        "compute_type",
        "device",
        "error_class",
        "event",
        "family",
        "finish_reason",
        "guild_id",
        "host",
        "how",
        "kind",
        "left_out",
        "level",
        "location",
        "logger",
        "method",
        "mistakes",
        "mode",
        "model",
        "new_mode",
        "next_model",
        "note_id",
        "note_ids",
        "old_mode",
        "op",
        "origin",
        "outcome",
        "unsourced",
        "participants",
        "purpose",
        "reason",
        "recall",
        "responder",
        "route",
        "run_id",
        "server",
        "session_id",
        "setting",
        "shape",
        "source",
        "speaker_id",
        "stage",
        "status",
        "summariser",
        "surface",
        "through",
        "timestamp",
        "tool",
        "transition_id",
        "user_id",
        "user_ids",
        "utterance_id",
        "voice",
        "voice_endpoint",
        "where",
        "worker",
    }
)
# Keys whose values are sentences or paths that no person and no other program wrote.
TEXT_KEYS = frozenset({"detail", "exception", "path", "remedy", "search", "stack"})
_NAME = re.compile(r"\S{0,200}")
_FIELD = re.compile(r"\w{1,60}")
_MAX_DEPTH = 5

# What an error message quotes may be speech: from the first opening quotation mark to the last closing one, or to the
# end. An apostrophe inside a word is none.
_QUOTED = re.compile(r"""(?<!\w)['"“‘«](?:.*['"”’»](?!\w)|.*$)""", re.DOTALL)

# How asyncio begins the messages that go on with the representation of a task or its error.
_LIBRARY_MESSAGES = (
    "Task exception was never retrieved",
    "Future exception was never retrieved",
    "Task was destroyed but it is pending!",
    "Exception in callback",
    "Unhandled exception in event loop",
    "Unclosed client session",
    "Unclosed connection",
)


class LogRedactor:
    """A structlog processor that removes secrets and what people said."""

    def __init__(self, secrets: Collection[str] = ()) -> None:
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
        if isinstance(value, BaseException | Path):
            return self._redact_secrets(str(value) if isinstance(value, Path) else describe_error(value))
        if isinstance(value, str):
            return self._redact_secrets(value) if _may_stand(key, value) else _withheld(value)
        if depth >= _MAX_DEPTH:
            return "[…]"
        if isinstance(value, dict):
            return {
                self._field_name(str(name)): self._redact(str(name), each, depth=depth + 1)
                for name, each in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            if any(isinstance(each, str) and not _may_stand(key, each) for each in value):
                return _withheld(value)
            return [self._redact(key, each, depth=depth + 1) for each in value]
        # Never repr(): that of a DAVE session leaks memory, and others may contain anything.
        return f"<{type(value).__name__}>"

    def _field_name(self, name: str) -> str:
        return self._redact_secrets(name) if _FIELD.fullmatch(name) else _withheld(name)

    def _redact_secrets(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(REDACTED, text)
        return _SECRET_VALUE.sub(REDACTED, text)


def _may_stand(key: str, value: str) -> bool:
    return not value or key in TEXT_KEYS or (key in NAME_KEYS and _NAME.fullmatch(value) is not None)


def _withheld(value: Collection[object]) -> str:
    return f"[{type(value).__name__} of {len(value)} withheld]"


def describe_error(error: BaseException) -> str:
    """Return an error for the log: a message of ours without what it quotes, or the system's; else only the type.

    Other messages may contain the data that the library failed on: a parser quotes speech, a KeyError a name.
    """
    if isinstance(error, BotError | CompactionError | VoiceError):
        return _QUOTED.sub(lambda found: f"[{len(found[0])} characters withheld]", str(error))
    if isinstance(error, OSError) and error.errno is not None:
        return f"[Errno {error.errno}] {error.strerror}"
    return type(error).__qualname__


def describe_library_message(record: logging.LogRecord, arguments: object) -> str:
    """Return a library's log message for the log: its constant part, with the arguments that are text left out.

    A message without arguments may be made of anything, so only the known ones stand. `arguments`: as in `record.args`.
    """
    template = str(record.msg)
    if not arguments:
        known = next((each for each in _LIBRARY_MESSAGES if template.startswith(each)), None)
        return f"{known} {_withheld(template)}" if known else _withheld(template)
    filled = (
        {name: _argument(each) for name, each in arguments.items()}
        if isinstance(arguments, dict)
        else tuple(map(_argument, arguments if isinstance(arguments, tuple) else (arguments,)))
    )
    try:
        return template % filled
    except (TypeError, ValueError, KeyError):
        return template


def _argument(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, BaseException):
        return describe_error(value)
    return _withheld(value) if isinstance(value, str | bytes) else f"<{type(value).__name__}>"


def describe_traceback(exc_info: ExcInfo) -> str:
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
    name, message = type(error).__qualname__, describe_error(error)
    yield f"{name}\n" if message == name else f"{name}: {message}\n"
    if isinstance(error, BaseExceptionGroup):
        for number, each in enumerate(error.exceptions, start=1):
            if id(each) not in before:
                yield f"\nOf these, number {number}:\n\n"
                yield from _format_chain(each, before)
