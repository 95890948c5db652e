"""A long evening in writing: who says what, who is answered with what, who comes and goes, and when nobody speaks.

It has no sound and no fixed moments: whoever plays it lets each thing happen after the one before, on a clock that is
moved. One JSON object a line, in the order in which things happen; docs/scenarios.md has the keys.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rehearsal.errors import ScenarioError
from rehearsal.mistakes import sentence, sentences_of

if TYPE_CHECKING:
    from pathlib import Path

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


Happening = Talk | Move | Quiet


def read_evening(path: Path) -> tuple[Happening, ...]:
    """Return what happens, in order. Raises `ScenarioError` with everything that is wrong with the file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        what = f"it cannot be read ({getattr(exc, 'strerror', None) or 'it is not text in UTF-8'})"
        raise ScenarioError((sentence(path, "", what, example=_EXAMPLE),)) from exc
    mistakes: list[str] = []
    found = [_happening(path, f"line {number}", line, mistakes) for number, line in enumerate(lines, 1) if line.strip()]
    if not found and not mistakes:
        mistakes.append(sentence(path, "", "nothing happens in it", example=_EXAMPLE))
    if mistakes:
        raise ScenarioError(tuple(mistakes))
    return tuple(each for each in found if each is not None)


def _happening(path: Path, place: str, line: str, mistakes: list[str]) -> Happening | None:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as exc:
        mistakes.append(sentence(path, place, f"it is not JSON ({exc.msg})", example=_EXAMPLE))
        return None
    kinds: dict[str, type[Talk] | type[Move] | type[Quiet]] = {"say": Talk, "move": Move, "quiet_s": Quiet}
    named = [kind for kind in kinds if isinstance(row, dict) and kind in row]
    if len(named) != 1:
        mistakes.append(sentence(path, place, f"it has not one of {', '.join(kinds)}", example=_EXAMPLE))
        return None
    model = kinds[named[0]]
    try:
        return model.model_validate(row)
    except ValidationError as exc:
        known = tuple(model.model_fields)
        mistakes += sentences_of(exc, path, place=place, known=known, examples=dict.fromkeys(known, _EXAMPLE))
        return None
