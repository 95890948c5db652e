"""A long evening in writing: who says what, who is answered with what, who comes and goes, and when nobody speaks.

It has no sound and no fixed moments: whoever plays it lets each thing happen after the one before, on a clock that is
moved. One JSON object a line, in the order in which things happen; docs/scenarios.md has the keys.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rehearsal.errors import ScenarioError
from rehearsal.script.mistakes import sentence, sentences_of

_BUNDLED = Path(__file__).parents[1] / "scenarios"
_FILE_NAME = "evening.jsonl"
_SUFFIX = ".jsonl"
_EXAMPLE = '{"who": "ada", "say": "Roomtone, where is the key?", "answer": ["flower pot"]}'


class _Value(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Line(_Value):
    """Somebody's words."""

    who: str = Field(min_length=1)
    say: str = Field(min_length=1)


class Talk(Line):
    """Somebody says something.

    `over`: what somebody else says at the same time. `answer`: the bot answers, with all of these words; without it,
    it stays silent. `broken_off`: what somebody says over the answer, so that it is not spoken to its end.
    """

    over: Line | None = None
    answer: tuple[str, ...] = ()
    broken_off: Line | None = None


class Move(_Value):
    """Somebody comes or goes."""

    who: str = Field(min_length=1)
    move: Literal["join", "leave"]


class Quiet(_Value):
    """Nobody says anything for so many seconds."""

    quiet_s: float = Field(gt=0, le=7_200)


class _Title(_Value):
    """What the evening is called; the first line may say it."""

    title: str = Field(min_length=1)


Happening = Talk | Move | Quiet
# By the key that only they have.
_KINDS: dict[str, type[Talk] | type[Move] | type[Quiet] | type[_Title]] = {
    "say": Talk,
    "move": Move,
    "quiet_s": Quiet,
    "title": _Title,
}


@dataclass(frozen=True, slots=True)
class WrittenEvening:
    """What happens, in order. `lines`: where each stands in the file, from 1."""

    title: str
    happenings: tuple[Happening, ...]
    lines: tuple[int, ...]

    @property
    def talks(self) -> tuple[Talk, ...]:
        """Return what is said, without what is said over it."""
        return tuple(each for each in self.happenings if isinstance(each, Talk))

    @property
    def people(self) -> tuple[str, ...]:
        """Return everybody, as the file writes them, in the order in which they come up."""
        found = dict.fromkeys(who for each in self.happenings for who in _who(each))
        return tuple(found)

    @property
    def there_at_first(self) -> tuple[str, ...]:
        """Return who is in the channel when it begins: everybody but those who first come up by coming in."""
        first = {who: each for each in reversed(self.happenings) for who in _who(each)}
        return tuple(who for who in self.people if not _comes(first[who]))


def name_of(who: str) -> str:
    """Return what somebody of the file is called in the room."""
    return who[:1].upper() + who[1:]


def _who(happening: Happening) -> tuple[str, ...]:
    match happening:
        case Talk():
            lines = (happening, happening.over, happening.broken_off)
            return tuple(line.who for line in lines if line is not None)
        case Move():
            return (happening.who,)
        case Quiet():
            return ()


def _comes(happening: Happening) -> bool:
    return isinstance(happening, Move) and happening.move == "join"


def bundled_evenings() -> dict[str, Path]:
    """Return the written evenings that come with the package, by name."""
    return {path.parent.name: path for path in sorted(_BUNDLED.glob(f"*/{_FILE_NAME}"))}


def evening_path(given: str) -> Path | None:
    """Return the written evening meant by a path, a folder with an `evening.jsonl`, or the name of a bundled one.

    None: what is meant is no written evening.
    """
    path = Path(given)
    if path.suffix == _SUFFIX:
        return path
    if path.is_dir() and (path / _FILE_NAME).is_file():
        return path / _FILE_NAME
    return None if path.exists() else bundled_evenings().get(given)


def read_evening(path: Path) -> WrittenEvening:
    """Return the evening. Raises `ScenarioError` with everything that is wrong with the file."""
    try:
        # Not splitlines: JSON may hold other ends of lines as they are.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as exc:
        what = f"it cannot be read ({getattr(exc, 'strerror', None) or 'it is not text in UTF-8'})"
        raise ScenarioError((sentence(path, "", what, example=_EXAMPLE),)) from exc
    mistakes: list[str] = []
    rows = {
        number: _row(path, f"line {number}", line, mistakes) for number, line in enumerate(lines, 1) if line.strip()
    }
    titles = [row.title for row in rows.values() if isinstance(row, _Title)]
    found = {number: row for number, row in rows.items() if not isinstance(row, _Title | None)}
    if any(isinstance(row, _Title) for row in list(rows.values())[1:]):
        mistakes.append(sentence(path, "", "only its first line can be a title"))
    if not found and not mistakes:
        mistakes.append(sentence(path, "", "nothing happens in it", example=_EXAMPLE))
    if mistakes:
        raise ScenarioError(tuple(mistakes))
    return WrittenEvening(titles[0] if titles else path.stem, tuple(found.values()), tuple(found))


def _row(path: Path, place: str, line: str, mistakes: list[str]) -> Happening | _Title | None:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as exc:
        mistakes.append(sentence(path, place, f"it is not JSON ({exc.msg})", example=_EXAMPLE))
        return None
    named = [kind for kind in _KINDS if isinstance(row, dict) and kind in row]
    if len(named) != 1:
        mistakes.append(sentence(path, place, f"it has not one of {', '.join(_KINDS)}", example=_EXAMPLE))
        return None
    model = _KINDS[named[0]]
    try:
        return model.model_validate(row)
    except ValidationError as exc:
        known = tuple(model.model_fields)
        mistakes += sentences_of(exc, path, place=place, known=known, examples=dict.fromkeys(known, _EXAMPLE))
        return None
