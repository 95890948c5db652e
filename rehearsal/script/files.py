"""Reads the files that a person writes, and says in one sentence each what is wrong with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rehearsal.errors import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import ValidationError

_TOO_DEEP = "it is nested too deeply, or a number is too long"
_IN_WORDS = {"missing": "it is missing", "extra_forbidden": "there is no such key here"}


def mistake(file: Path, place: str, what: str) -> str:
    """Return one sentence with the file, the place and what is wrong."""
    return f"{file}, {place}: {what}." if place else f"{file}: {what}."


def validation_mistakes(error: ValidationError, file: Path, *, first: int = 1) -> tuple[str, ...]:
    """Return one sentence for each error that pydantic found. `first`: the number of the first entry of a list."""
    found = []
    for each in error.errors(include_url=False):
        place = ""
        for part in each["loc"]:
            place += f" number {part + first}" if isinstance(part, int) else f"{'.' if place else ''}{part}"
        what = _IN_WORDS.get(each["type"], each["msg"].removeprefix("Value error, ").rstrip("."))
        found.append(mistake(file, place.strip(), what))
    return tuple(found)


def read_text(file: Path) -> str:
    """Return the text of a file. Raises `ScenarioError`."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as exc:
        raise ScenarioError((mistake(file, "", f"it cannot be read ({exc.strerror or exc})"),)) from exc
    except UnicodeDecodeError as exc:
        raise ScenarioError((mistake(file, "", "it is not text in UTF-8"),)) from exc


def read_json_lines(file: Path) -> dict[int, Any]:
    """Return the JSON value of each line by its number, without empty lines. Raises `ScenarioError`."""
    rows: dict[int, Any] = {}
    mistakes = []
    # `splitlines` would also split at the other line separators that a JSON string may contain.
    for number, line in enumerate(read_text(file).split("\n"), 1):
        try:
            if line.strip():
                rows[number] = json.loads(line)
        except json.JSONDecodeError as exc:
            mistakes.append(mistake(file, f"line {number}", f"it is not JSON ({exc.msg})"))
        except (ValueError, RecursionError):
            mistakes.append(mistake(file, f"line {number}", _TOO_DEEP))
    if mistakes:
        raise ScenarioError(tuple(mistakes))
    return rows
