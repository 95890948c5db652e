"""Reads the turns that the session already has when a scenario starts, from JSON lines, oldest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import ValidationError

from rehearsal.script.file_errors import format_mistake, format_validation_errors
from rehearsal.script.scenario import HistoryTurn

if TYPE_CHECKING:
    from pathlib import Path

_EXAMPLE = '{"speaker": "mira", "text": "I would take the boat.", "at": -3540}'


def read_history(scenario: Path, name: str, *, names: frozenset[str]) -> tuple[tuple[HistoryTurn, ...], list[str]]:
    """Return the turns in the file `name` in the scenario's folder, and every mistake in the file.

    `names`: the keys and names of the people who may speak in the history.
    """
    path = scenario.resolve().parent / name
    try:
        # `splitlines` is not used, because JSON strings may contain other line separators.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as exc:
        what = getattr(exc, "strerror", None) or "it is not text in UTF-8"
        problem = f'"{name}" cannot be read ({what})'
        return (), [format_mistake(scenario, "history", problem, example='history = "history.jsonl"')]
    reader = _HistoryReader(path, names)
    turns = tuple(turn for number, line in enumerate(lines, 1) if (turn := reader.turn(number, line)))
    return turns, reader.mistakes


class _HistoryReader:
    """Reads the lines of one history file. Checks the speakers, and that the times are in order."""

    def __init__(self, path: Path, names: frozenset[str]) -> None:
        self._path = path
        self._names = names
        self._last_at = float("-inf")
        self.mistakes: list[str] = []

    def turn(self, number: int, line: str) -> HistoryTurn | None:
        """Return the turn on this line, or None if the line is empty or has a mistake."""
        place = f"line {number}"
        if not line.strip():
            return None
        try:
            turn = HistoryTurn.model_validate(json.loads(line))
        except json.JSONDecodeError as exc:
            self._add_mistake(place, f"it is not JSON ({exc.msg})", example=_EXAMPLE)
            return None
        except ValidationError as exc:
            known = tuple(HistoryTurn.model_fields)
            examples = dict.fromkeys(known, _EXAMPLE)
            self.mistakes += format_validation_errors(exc, self._path, place=place, known=known, examples=examples)
            return None
        except (ValueError, RecursionError):
            self._add_mistake(place, "it is nested too deeply, or a number is too long", example=_EXAMPLE)
            return None
        if turn.kind != "assistant" and turn.speaker not in self._names:
            self._add_mistake(place, f'"{turn.speaker}" is not one of the people', example=_EXAMPLE)
        if turn.at < self._last_at:
            self._add_mistake(place, "it is earlier than the line before it; the oldest comes first")
        self._last_at = turn.at
        return turn

    def _add_mistake(self, place: str, what: str, *, example: str | None = None) -> None:
        self.mistakes.append(format_mistake(self._path, place, what, example=example))
