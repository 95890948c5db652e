"""A long evening without sound: who says what, what the bot must answer, who joins and leaves, and the silences.

Events have no fixed times: the player plays them one after another, on a virtual clock. The file has one JSON object
per line, in order. docs/scenarios.md describes the keys.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rehearsal.errors import ScenarioError
from rehearsal.script.file_errors import format_mistake, format_validation_errors

_BUNDLED = Path(__file__).parents[1] / "scenarios"
_FILE_NAME = "evening.jsonl"
_SUFFIX = ".jsonl"
_EXAMPLE = '{"who": "ada", "say": "Roomtone, where is the key?", "answer": ["flower pot"]}'


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EveningLine(_Value):
    """One line that somebody says."""

    who: str = Field(min_length=1)
    say: str = Field(min_length=1)


class SpeechEvent(EveningLine):
    """Somebody speaks.

    `over`: what somebody else says at the same time. `answer`: the words that the bot's answer must contain; if empty,
    the bot must stay silent. `broken_off`: what somebody says over the answer to interrupt it.
    """

    over: EveningLine | None = None
    answer: tuple[str, ...] = ()
    broken_off: EveningLine | None = None


class PresenceEvent(_Value):
    """Somebody joins or leaves the voice channel."""

    who: str = Field(min_length=1)
    move: Literal["join", "leave"]


class SilenceEvent(_Value):
    """Nobody says anything for `quiet_s` seconds."""

    quiet_s: float = Field(gt=0, le=7_200)


class _Title(_Value):
    """The title of the evening, which only the first line may have."""

    title: str = Field(min_length=1)


EveningEvent = SpeechEvent | PresenceEvent | SilenceEvent
# Each kind of event, by the key that only this kind has.
_KINDS: dict[str, type[SpeechEvent] | type[PresenceEvent] | type[SilenceEvent] | type[_Title]] = {
    "say": SpeechEvent,
    "move": PresenceEvent,
    "quiet_s": SilenceEvent,
    "title": _Title,
}


@dataclass(frozen=True, slots=True)
class WrittenEvening:
    """The events in order. `lines`: the line number of each event in the file, from 1."""

    title: str
    events: tuple[EveningEvent, ...]
    lines: tuple[int, ...]

    @property
    def speeches(self) -> tuple[SpeechEvent, ...]:
        return tuple(each for each in self.events if isinstance(each, SpeechEvent))

    @property
    def people(self) -> tuple[str, ...]:
        """Return everybody in the evening by their name in the file, in order of first appearance."""
        found = dict.fromkeys(who for each in self.events for who in _people_in(each))
        return tuple(found)

    @property
    def initial_people(self) -> tuple[str, ...]:
        """Return the people who are in the channel at the start: all people whose first event is not a join."""
        first = {who: each for each in reversed(self.events) for who in _people_in(each)}
        return tuple(who for who in self.people if not _joins(first[who]))


def display_name(who: str) -> str:
    return who[:1].upper() + who[1:]


def _people_in(event: EveningEvent) -> tuple[str, ...]:
    match event:
        case SpeechEvent():
            lines = (event, event.over, event.broken_off)
            return tuple(line.who for line in lines if line is not None)
        case PresenceEvent():
            return (event.who,)
        case SilenceEvent():
            return ()


def _joins(event: EveningEvent) -> bool:
    return isinstance(event, PresenceEvent) and event.move == "join"


def bundled_evenings() -> dict[str, Path]:
    """Return the written evenings that come with the package, by name."""
    return {path.parent.name: path for path in sorted(_BUNDLED.glob(f"*/{_FILE_NAME}"))}


def evening_path(given: str) -> Path | None:
    """Return the file for a path, a folder with an `evening.jsonl`, or the name of a bundled written evening.

    Return None if it is not a written evening.
    """
    path = Path(given)
    if path.suffix == _SUFFIX:
        return path
    if path.is_dir() and (path / _FILE_NAME).is_file():
        return path / _FILE_NAME
    return None if path.exists() else bundled_evenings().get(given)


def read_evening(path: Path) -> WrittenEvening:
    """Return the evening in the file. Raises `ScenarioError` with every mistake in the file."""
    try:
        # `splitlines` is not used, because JSON strings may contain other line separators.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as exc:
        what = f"it cannot be read ({getattr(exc, 'strerror', None) or 'it is not text in UTF-8'})"
        raise ScenarioError((format_mistake(path, "", what, example=_EXAMPLE),)) from exc
    mistakes: list[str] = []
    rows = {
        number: _row(path, f"line {number}", line, mistakes) for number, line in enumerate(lines, 1) if line.strip()
    }
    titles = [row.title for row in rows.values() if isinstance(row, _Title)]
    found = {number: row for number, row in rows.items() if not isinstance(row, _Title | None)}
    if any(isinstance(row, _Title) for row in list(rows.values())[1:]):
        mistakes.append(format_mistake(path, "", "only the first line can be a title"))
    if not found and not mistakes:
        mistakes.append(format_mistake(path, "", "it has no events", example=_EXAMPLE))
    if mistakes:
        raise ScenarioError(tuple(mistakes))
    return WrittenEvening(titles[0] if titles else path.stem, tuple(found.values()), tuple(found))


def _row(path: Path, place: str, line: str, mistakes: list[str]) -> EveningEvent | _Title | None:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as exc:
        mistakes.append(format_mistake(path, place, f"it is not JSON ({exc.msg})", example=_EXAMPLE))
        return None
    except (ValueError, RecursionError):
        what = "it is nested too deeply, or a number is too long"
        mistakes.append(format_mistake(path, place, what, example=_EXAMPLE))
        return None
    kinds = [kind for kind in _KINDS if isinstance(row, dict) and kind in row]
    if len(kinds) != 1:
        mistakes.append(
            format_mistake(path, place, f"it needs exactly one of the keys {', '.join(_KINDS)}", example=_EXAMPLE)
        )
        return None
    model = _KINDS[kinds[0]]
    try:
        return model.model_validate(row)
    except ValidationError as exc:
        known = tuple(model.model_fields)
        mistakes += format_validation_errors(
            exc, path, place=place, known=known, examples=dict.fromkeys(known, _EXAMPLE)
        )
        return None
