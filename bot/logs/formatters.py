"""How an event becomes a line: JSON for the log file and for copies of it, a shorter form for the terminal.

Every formatter takes out secrets and what people said (`bot.logs.redaction`), and gives the free text of libraries the
form of an event. `speech`: the operator wants what people said in the log.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from bot.logs.redaction import LogRedactor, describe_library_message, describe_traceback
from bot.terminal_text import escaped

if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping, MutableMapping
    from typing import TextIO

    from structlog.typing import EventDict, Processor

# What a library has logged.
LIBRARY_EVENT = "library_logged"
# Marks the lines of the file that were written while it may have what people said (`logs.speech`): `bot.logs.removal`
# takes out of these what others cannot have.
SPEECH_FIELD = "speech"


def shared_processors(*, speech: bool) -> list[Processor]:
    """Return what adds level, time and traceback to an event, before it is redacted."""
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        # Plain tracebacks: the pretty ones show local variables, and so tokens and what people said.
        structlog.processors.format_exc_info if speech else structlog.processors.ExceptionRenderer(describe_traceback),
    ]


def file_formatter(redactor: LogRedactor, *, speech: bool) -> logging.Formatter:
    """Return what makes the lines of the log file."""
    return _formatter(_marking(redactor) if speech else redactor, _json_renderer(), speech=speech)


def terminal_formatter(redactor: LogRedactor, console: TextIO, *, speech: bool) -> logging.Formatter:
    """Return what makes the lines on the terminal, of which `console` is the stream."""
    return _formatter(redactor, terminal_renderer(console), speech=speech)


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


def _formatter(redact: Processor, render: Processor, *, speech: bool) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared_processors(speech=speech), partial(_name_foreign, speech=speech)],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact, _order_keys, render],
        pass_foreign_args=True,
    )


def _marking(redactor: LogRedactor) -> Processor:
    def marked(logger: object, method: str, event: EventDict) -> EventDict:
        return {**redactor(logger, method, event), SPEECH_FIELD: True}

    return marked


def _json_renderer() -> Processor:
    return structlog.processors.JSONRenderer(default=_type_name)


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
