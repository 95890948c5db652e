"""Reads a conversation from a file of JSON lines: who said what and when, and screen notes.

One object per line: `{"speaker", "text", "at"}` or `{"note", "at"}` (with `who`, if known). `at` is UTC epoch seconds,
an ISO time, or seconds from the start. Without `at`, a line comes a few seconds after the previous one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

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
_EXAMPLE = '{"speaker": "Ada", "text": "Hello.", "at": 12.5}'


class TranscriptError(BotError):
    """The transcript file has mistakes. The message has one sentence for each."""


@dataclass(frozen=True, slots=True)
class SaidLine:
    """One person's speech; `at` is UTC epoch seconds."""

    speaker: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class NoteLine:
    """One thing seen on `who`'s screen; `at` is UTC epoch seconds."""

    note: str
    who: str
    at: float


TranscriptLine: TypeAlias = SaidLine | NoteLine


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
    at = _moment(entry["at"]) if "at" in entry else next_at
    if "note" in entry:
        return NoteLine(_words(entry, "note"), str(entry.get("who") or "somebody"), at)
    return SaidLine(_words(entry, "speaker"), _words(entry, "text"), at)


def _words(entry: dict[str, object], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f'"{key}" must be some text')
    return value.strip()


def _moment(value: object) -> float:
    """Convert `at` to epoch seconds."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f'"at": "{value}" is not an ISO time, for example "2026-11-20T19:02:00Z"') from None
        at = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        # Compared before anything is computed: a float has no room for every whole number.
        at = value + NOMINAL_START_S if -NOMINAL_START_S <= value < SMALLEST_EPOCH_S else value
    else:
        raise ValueError('"at" must be seconds or a time')  # noqa: TRY004 - a mistake in the file
    if not 0 <= at < LATEST:
        raise ValueError('"at" is out of range; give seconds from the start, or a time from 1970 to 2099')
    return float(at)
