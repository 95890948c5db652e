"""Reads a conversation from a file of JSON lines: who said what and when, and screen notes.

One object per line: `{"speaker", "text", "at"}` or `{"note", "at"}` (with `who`, if known). `at` is UTC epoch seconds,
an ISO time, or seconds from the start. Without `at`, a line comes a few seconds after the previous one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field, StringConstraints, TypeAdapter, ValidationError

from bot.errors import BotError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Smaller numbers are seconds from the start. As an epoch time this is 1973.
SMALLEST_EPOCH_S = 100_000_000.0
# In a conversation a turn comes every few seconds.
DEFAULT_GAP_S = 4.0
# The start time of a transcript without dates. It is fixed so that replays give the same text every time.
NOMINAL_START_S = datetime(2026, 1, 1, 18, 0, tzinfo=UTC).timestamp()
# No time of a transcript is later; Python computes with none after the year 9999.
LATEST = datetime(2100, 1, 1, tzinfo=UTC).timestamp()
# The most mistakes reported: a file that is not a transcript has one in every line.
MOST_MISTAKES = 10
SOMEBODY = "somebody"
_EXAMPLE = '{"speaker": "Ada", "text": "Hello.", "at": 12.5}'


class TranscriptError(BotError):
    """The transcript file has mistakes. The message has one sentence for each."""


def _moment(value: object) -> object:
    """Convert `at` to epoch seconds, as far as it is a time. The limits of the field refuse the rest."""
    if isinstance(value, str):
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, int | float) and not isinstance(value, bool) and -NOMINAL_START_S <= value < SMALLEST_EPOCH_S:
        return value + NOMINAL_START_S
    return value


_Words = Annotated[str, StringConstraints(strict=True, strip_whitespace=True, min_length=1)]
_Name = Annotated[str, BeforeValidator(lambda name: str(name or SOMEBODY))]
_Moment = Annotated[float, BeforeValidator(_moment), Field(strict=True, ge=0.0, lt=LATEST)]


@dataclass(frozen=True, slots=True)
class SaidLine:
    """One person's speech; `at` is UTC epoch seconds."""

    speaker: _Words
    text: _Words
    at: _Moment = 0.0


@dataclass(frozen=True, slots=True)
class NoteLine:
    """One thing seen on `who`'s screen; `at` is UTC epoch seconds."""

    note: _Words
    who: _Name = SOMEBODY
    at: _Moment = 0.0


TranscriptLine: TypeAlias = SaidLine | NoteLine
_SAID, _NOTE = TypeAdapter(SaidLine), TypeAdapter(NoteLine)


def read_transcript(path: Path) -> list[TranscriptLine]:
    """Return the lines of a transcript file in order. Raises `TranscriptError` with every mistake's line number."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or error) if isinstance(error, OSError) else "it is not UTF-8"
        raise TranscriptError(
            f"{path} cannot be read: {why}. Give the path of a transcript: UTF-8, one JSON object a line."
        ) from error
    return parse_transcript(text.split("\n"), name=path.name)


def parse_transcript(lines: Iterable[str], *, name: str) -> list[TranscriptLine]:
    """Return the entries of a transcript in order. Blank lines are skipped. `name`: what the errors call it.

    Raises `TranscriptError` with every mistake's line number.
    """
    parsed: list[TranscriptLine] = []
    mistakes: list[str] = []
    next_at = NOMINAL_START_S
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            parsed.append(_parse(line, next_at))
        except ValueError as error:
            mistakes.append(f"{name} line {number}: {error}. A line is, for example, {_EXAMPLE}.")
            if len(mistakes) >= MOST_MISTAKES:
                mistakes.append(f"{name}: more lines are wrong; these are the first.")
                break
        else:
            next_at = parsed[-1].at + DEFAULT_GAP_S
    if not mistakes and not parsed:
        mistakes.append(f"{name} holds no line. A line is, for example, {_EXAMPLE}.")
    if mistakes:
        raise TranscriptError("\n".join(mistakes))
    return parsed


def _parse(line: str, next_at: float) -> TranscriptLine:
    """Return one line's entry. `next_at`: its time if it has none. Raises ValueError with what is wrong."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("this is not JSON") from None
    if not isinstance(entry, dict):
        raise ValueError("a line must be an object")  # noqa: TRY004 - a mistake in the file
    reader: TypeAdapter[Any] = _NOTE if "note" in entry else _SAID
    try:
        parsed: TranscriptLine = reader.validate_python(entry)
    except ValidationError as error:
        raise ValueError("; ".join(f'"{each["loc"][0]}": {each["msg"]}' for each in error.errors())) from None
    return parsed if "at" in entry else replace(parsed, at=next_at)
