"""How an event becomes a line: JSON for the log file and for copies of it, a shorter form for the terminal.

Every formatter takes out secrets and what people said (`bot.logs.redaction`), and gives the free text of libraries the
form of an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from bot.logs.redaction import describe_library_message, describe_traceback
from bot.terminal_text import escaped

if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping, MutableMapping
    from typing import TextIO

    from structlog.typing import EventDict, Processor

    from bot.logs.redaction import LogRedactor

# What a library has logged.
LIBRARY_EVENT = "library_logged"
# The keys whose values name people.
PERSON_KEYS = frozenset({"participants", "person_id", "speaker_id", "user_id", "user_ids"})


# What adds level, time and traceback to an event, before it is redacted.
SHARED_PROCESSORS: tuple[Processor, ...] = (
    structlog.processors.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    # The pretty ones show local variables, and so tokens and what people said.
    structlog.processors.ExceptionRenderer(describe_traceback),
)


def file_formatter(redactor: LogRedactor) -> logging.Formatter:
    """Return what makes the lines of the log file."""
    return _formatter(redactor, structlog.processors.JSONRenderer(default=_type_name))


def terminal_formatter(redactor: LogRedactor, console: TextIO) -> logging.Formatter:
    """Return what makes the lines on the terminal, of which `console` is the stream.

    If it is no terminal, a service manager keeps the lines where nobody can be forgotten: they have no ids of people.
    """

    def nameless(logger: object, method: str, event: EventDict) -> EventDict:
        return {key: each for key, each in redactor(logger, method, event).items() if key not in PERSON_KEYS}

    return _formatter(redactor if console.isatty() else nameless, terminal_renderer(console))


def terminal_renderer(console: TextIO) -> Processor:
    """Return what makes a line for the terminal of a redacted event. Nothing in it acts on the terminal."""
    render = structlog.dev.ConsoleRenderer(
        colors=console.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=32
    )

    def rendered(logger: object, method: str, event: MutableMapping[str, Any]) -> str:
        # An endpoint or a tool server may have written a text. Those in a list are written as Python writes them.
        plain = {key: escaped(value) if isinstance(value, str) else value for key, value in event.items()}
        return render(logger, method, plain)

    return rendered


def _formatter(redact: Processor, render: Processor) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*SHARED_PROCESSORS, _name_foreign],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact, _order_keys, render],
        pass_foreign_args=True,
    )


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


def _type_name(value: object) -> str:
    return f"<{type(value).__name__}>"
