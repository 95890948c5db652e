"""A long evening without sound: who says what, what the bot must answer, who joins and leaves, and the silences.

Events have no fixed times: the player plays them one after another, on a virtual clock. The file has one JSON object
per line, in order. docs/scenarios.md describes the keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rehearsal.errors import ScenarioError
from rehearsal.script.files import mistake, read_json_lines, validation_mistakes

_BUNDLED = Path(__file__).parents[1] / "scenarios"
_FILE_NAME = "evening.jsonl"
_SUFFIX = ".jsonl"


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


EveningEvent = SpeechEvent | PresenceEvent | SilenceEvent
_EVENT: TypeAdapter[EveningEvent] = TypeAdapter(EveningEvent)


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
    """Return the evening in the file. Raises `ScenarioError` with the mistakes in the file."""
    rows = read_json_lines(path)
    first = next(iter(rows), 0)
    # A title is only known where it stands alone, in the first line.
    title = rows.pop(first)["title"] if isinstance(rows.get(first), dict) and rows[first].keys() == {"title"} else ""
    mistakes: list[str] = []
    events: dict[int, EveningEvent] = {}
    for number, row in rows.items():
        try:
            events[number] = _EVENT.validate_python(row)
        except ValidationError as exc:
            mistakes += [f"line {number}: {each}" for each in validation_mistakes(exc, path)]
    if not rows:
        mistakes.append(mistake(path, "", "it has no events"))
    if mistakes:
        raise ScenarioError(tuple(mistakes))
    return WrittenEvening(str(title) or path.stem, tuple(events.values()), tuple(events))
