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
    from collections.abc import Callable, Mapping, MutableMapping, Sequence
    from typing import TextIO

    from structlog.typing import EventDict, Processor

# What a library has logged.
LIBRARY_EVENT = "library_logged"
# Marks the lines of the file that were written while it may have what people said (`logs.speech`): `bot.logs.removal`
# removes these when somebody in their session is forgotten.
SPEECH_FIELD = "speech"
# The keys whose values name people.
PERSON_KEYS = frozenset({"participants", "person_id", "speaker_id", "user_id", "user_ids"})


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


def terminal_formatter(
    redactor: LogRedactor, console: TextIO, *, secrets: Sequence[str], speech: bool
) -> logging.Formatter:
    """Return what makes the lines on the terminal, of which `console` is the stream.

    If it is no terminal, a service manager keeps the lines where nobody can be forgotten: they have neither what people
    said nor their ids.
    """
    render = terminal_renderer(console)
    if console.isatty():
        return _formatter(redactor, render, speech=speech)
    wordless = _without_words(secrets, speech_in_file=speech)

    def nameless(logger: object, method: str, event: EventDict) -> EventDict:
        return {key: each for key, each in wordless(logger, method, event).items() if key not in PERSON_KEYS}

    return _formatter(nameless, render, speech=False)


def _without_words(secrets: Sequence[str], *, speech_in_file: bool) -> Callable[[object, str, EventDict], EventDict]:
    """Return the processor of lines that never have what people said."""
    redactor = LogRedactor(speech=False, secrets=secrets)

    def without_words(logger: object, method: str, event: EventDict) -> EventDict:
        # With speech in the file, the traceback of an event of ours was written with the messages of its errors.
        ours = speech_in_file and event["event"] != LIBRARY_EVENT
        return redactor(logger, method, {key: event[key] for key in event if not (ours and key == "exception")})

    return without_words


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
