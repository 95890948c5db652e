"""Read a scenario from the files a person wrote, and say everything that is wrong with them at once."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rehearsal.discord.faults import FAULTS
from rehearsal.errors import ScenarioError
from rehearsal.mistakes import sentence, sentences_of
from rehearsal.scenario import (
    AFTER_HEARD,
    AFTER_REPLY,
    FIRST_PERSON_ID,
    STEP_KINDS,
    HistoryTurn,
    PersonSpec,
    Premises,
    Say,
    Scenario,
    Step,
)
from rehearsal.wanted import KINDS, Answer, FactOnlyInSummary, Interrupted, Wanted

_Model = TypeVar("_Model", bound=BaseModel)

_EXAMPLES = {
    "title": 'title = "An evening in miniature"',
    "people": '[people.mira] with name = "Mira"',
    "name": 'name = "Mira"',
    "id": "id = 410000000000000001",
    "who": 'who = "mira"',
    "say": 'say = "Roomtone, which island did we choose?"',
    "audio": 'audio = "mira-01.ogg"',
    "command": 'command = "join"',
    "options": 'options = { channel = "Lounge" }',
    "join": "join = true",
    "leave": "leave = true",
    "network": "network = { loss = 0.05 }",
    "loss": "loss = 0.05",
    "padding": "padding = 0.05",
    "reorder": "reorder = 0.05",
    "fault": 'fault = "late_speaking"',
    "wait_for": 'wait_for = "reply"',
    "new_cursor": "new_cursor = 10",
    "bot": 'bot = "restart"',
    "at": "at = 12.5",
    "after": 'after = "reply"',
    "gap_s": "gap_s = 0.8",
    "overlap_s": "overlap_s = 0.5",
    "timeout_s": "timeout_s = 30",
    "history": 'history = "history.jsonl"',
    "kind": 'kind = "every_utterance_heard_once"',
    "value": "value = 0.15",
    "old_cursor": "old_cursor = 0",
    "words": 'words = ["Ithaca"]',
    "to": 'to = "ask"',
    "count": "count = 3",
    "ms": "ms = 1500",
    "stage": 'stage = "end_to_text_ms"',
}
_HISTORY_EXAMPLE = '{"speaker": "mira", "text": "I would take the boat.", "at": -3540}'
_STEP_EXAMPLE = 'who = "mira", say = "Hello.", audio = "mira-01.ogg"'


_BUNDLED = Path(__file__).parent / "scenarios"
_FILE_NAME = "scenario.toml"


def bundled_scenarios() -> dict[str, Path]:
    """Return the scenarios that come with the package, by name."""
    return {path.parent.name: path for path in sorted(_BUNDLED.glob(f"*/{_FILE_NAME}"))}


def scenario_path(given: str) -> Path:
    """Return the file meant by a path, a folder with a `scenario.toml`, or the name of a bundled scenario.

    Raises `ScenarioError` when there is none, with the names there are.
    """
    path = Path(given)
    if path.is_dir() and (path / _FILE_NAME).is_file():
        return path / _FILE_NAME
    bundled = bundled_scenarios()
    if not path.is_file() and given in bundled:
        return bundled[given]
    if not path.exists():
        what = f"there is no such file, and the bundled scenarios are {', '.join(bundled)}"
        raise ScenarioError((sentence(path, "", what, example="roomtone rehearse evening"),))
    return path


def load_scenario(path: Path) -> Scenario:
    """Return the scenario in `path` with every path absolute. Raises `ScenarioError` with all mistakes."""
    return _Reader(path).read()


class _Reader:
    """One reading of one file; collects mistakes instead of stopping at the first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = path.resolve().parent
        self._mistakes: list[str] = []
        # Who may be named, also where that person's own entry has a mistake.
        self._keys: tuple[str, ...] = ()
        self._names: frozenset[str] = frozenset()

    def read(self) -> Scenario:
        raw = _parsed_toml(self._path)
        people = self._people(raw.pop("people", None))
        steps = self._steps(raw.pop("steps", None))
        expect = self._expect(raw.pop("expect", []), steps)
        stored = raw.pop("history", None)
        premises = self._checked(Premises, raw, "", known=("people", "history", "steps", "expect"))
        history = self._history(stored) if stored is not None else ()
        if self._mistakes or premises is None:
            raise ScenarioError(tuple(self._mistakes))
        return Scenario(
            **{name: getattr(premises, name) for name in Premises.model_fields},
            people=people,
            steps=steps,
            expect=expect,
            history=history,
        )

    def _people(self, table: object) -> tuple[PersonSpec, ...]:
        if not isinstance(table, dict) or not table:
            self._wrong("", "nobody is in it; `people` is missing", example=_EXAMPLES["people"])
            return ()
        self._keys = tuple(table)
        found = []
        for index, (key, value) in enumerate(table.items()):
            place = f"people.{key}"
            if not isinstance(value, dict):
                self._wrong(place, "it is not a table", example=_EXAMPLES["people"])
                continue
            made = {"key": key, "name": key.capitalize(), "id": FIRST_PERSON_ID + index, **value}
            if person := self._checked(PersonSpec, made, place):
                found.append(person)
        self._no_twins(found)
        self._names = frozenset({*self._keys, *(person.name for person in found)})
        return tuple(found)

    def _no_twins(self, people: list[PersonSpec]) -> None:
        for index, person in enumerate(people):
            for other in people[:index]:
                if person.id == other.id:
                    self._wrong(f"people.{person.key}.id", f"{person.id} is already the id of {other.key}")
                if person.name.casefold() == other.name.casefold():
                    self._wrong(f"people.{person.key}.name", f'"{person.name}" is already the name of {other.key}')

    def _steps(self, rows: object) -> tuple[Step, ...]:
        if not isinstance(rows, list) or not rows:
            self._wrong("", "nothing happens in it; `steps` is missing", example=f"[[steps]] with {_STEP_EXAMPLE}")
            return ()
        found: list[Step] = []
        # What can be followed so far, and whether it is speech: by id, and the step before by no name at all.
        followed: dict[str, bool] = {}
        for number, row in enumerate(rows, start=1):
            place = f"steps number {number}"
            step = self._step(row, place)
            if isinstance(row, dict):
                self._check_moment(row, place, followed)
            if step is None:
                followed[""] = False
                continue
            if step.id and (step.id in followed or step.id in (AFTER_REPLY, AFTER_HEARD)):
                self._wrong(f"{place}.id", f'"{step.id}" is already taken', example='id = "ask-island"')
            followed[step.id] = followed[""] = isinstance(step, Say)
            found.append(step)
        return tuple(found)

    def _step(self, row: object, place: str) -> Step | None:
        kinds = [kind for kind in STEP_KINDS if isinstance(row, dict) and kind in row]
        if not isinstance(row, dict) or len(kinds) != 1:
            what = f"it has {' and '.join(kinds)} at once" if len(kinds) > 1 else "it says nothing that happens"
            self._wrong(place, f"{what}; a step has one of {', '.join(STEP_KINDS)}", example=_STEP_EXAMPLE)
            return None
        made = dict(row)
        if isinstance(made.get("audio"), str):
            made["audio"] = self._folder / made["audio"]
            if not made["audio"].is_file():
                self._wrong(f"{place}.audio", f'there is no file "{row["audio"]}"', example=_EXAMPLES["audio"])
        who = made.get("who")
        if isinstance(who, str) and who not in self._keys:
            known = ", ".join(self._keys) or "nobody"
            self._wrong(f"{place}.who", f'"{who}" is not one of the people ({known})', example=_EXAMPLES["who"])
        fault = made.get("fault")
        if isinstance(fault, str) and fault not in FAULTS:
            what = f'there is no fault "{fault}"; there are {", ".join(sorted(FAULTS))}'
            self._wrong(f"{place}.fault", what, example=_EXAMPLES["fault"])
        return self._checked(STEP_KINDS[kinds[0]], made, place)

    def _check_moment(self, row: dict[str, Any], place: str, followed: dict[str, bool]) -> None:
        """Look whether what the step follows is there, and is speech where it is to be overlapped."""
        after = row.get("after", "")
        if not isinstance(after, str):
            return
        if not followed and (after or "overlap_s" in row):
            self._wrong(place, "the first step cannot follow another", example="at = 1.0")
        elif after and after not in followed and after not in (AFTER_REPLY, AFTER_HEARD):
            known = 'after = "reply" or an id above'
            self._wrong(f"{place}.after", f'no earlier step has the id "{after}"', example=known)
        elif "overlap_s" in row and not followed.get(after, False):
            self._wrong(f"{place}.overlap_s", "only a `say` can be overlapped", example="gap_s = 0.5")

    def _expect(self, rows: object, steps: tuple[Step, ...]) -> tuple[Wanted, ...]:
        if not isinstance(rows, list):
            self._wrong("expect", "it is not a list of tables", example=f"[[expect]] with {_EXAMPLES['kind']}")
            return ()
        said = {step.id for step in steps if isinstance(step, Say)} - {""}
        found: list[Any] = []
        for number, row in enumerate(rows, start=1):
            place = f"expect number {number}"
            model = KINDS.get(str(row.get("kind"))) if isinstance(row, dict) else None
            if model is None:
                given = f'"{row["kind"]}"' if isinstance(row, dict) and "kind" in row else "it"
                self._wrong(f"{place}.kind", f"{given} is not one of {', '.join(KINDS)}", example=_EXAMPLES["kind"])
                continue
            wanted = self._checked(model, row, place)
            if isinstance(wanted, Answer | FactOnlyInSummary | Interrupted) and wanted.to not in said:
                self._wrong(f"{place}.to", f'no spoken step has the id "{wanted.to}"', example=_EXAMPLES["to"])
            if isinstance(wanted, Answer) and not (wanted.all_of or wanted.any_of):
                self._wrong(place, "an answer needs `all_of` or `any_of`", example='any_of = ["Ithaca"]')
            if wanted is not None:
                found.append(wanted)
        return tuple(found)

    def _history(self, name: object) -> tuple[HistoryTurn, ...]:
        if not isinstance(name, str):
            self._wrong("history", "it is not a file name", example=_EXAMPLES["history"])
            return ()
        path = self._folder / name
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as exc:
            what = getattr(exc, "strerror", None) or "it is not text in UTF-8"
            self._wrong("history", f'"{name}" cannot be read ({what})', example=_EXAMPLES["history"])
            return ()
        reader = _HistoryReader(path, self._names)
        turns = tuple(turn for number, line in enumerate(lines, 1) if (turn := reader.turn(number, line)))
        self._mistakes += reader.mistakes
        return turns

    def _wrong(self, place: str, what: str, *, example: str | None = None) -> None:
        self._mistakes.append(sentence(self._path, place, what, example=example))

    def _checked(
        self, model: type[_Model], value: dict[str, Any], place: str, *, known: tuple[str, ...] = ()
    ) -> _Model | None:
        try:
            return model.model_validate(value)
        except ValidationError as exc:
            keys = tuple(name for name in (*model.model_fields, *known) if name != "key")
            self._mistakes += sentences_of(exc, self._path, place=place, known=keys, examples=_EXAMPLES)
            return None


class _HistoryReader:
    """Reads the lines of one history file; knows who may stand in it and that time runs forward."""

    def __init__(self, path: Path, names: frozenset[str]) -> None:
        self._path = path
        self._names = names
        self._last_at = float("-inf")
        self.mistakes: list[str] = []

    def turn(self, number: int, line: str) -> HistoryTurn | None:
        """Return the turn on this line, or None for an empty or wrong one."""
        place = f"line {number}"
        if not line.strip():
            return None
        try:
            turn = HistoryTurn.model_validate(json.loads(line))
        except json.JSONDecodeError as exc:
            self._wrong(place, f"it is not JSON ({exc.msg})", example=_HISTORY_EXAMPLE)
            return None
        except ValidationError as exc:
            known = tuple(HistoryTurn.model_fields)
            examples = dict.fromkeys(known, _HISTORY_EXAMPLE)
            self.mistakes += sentences_of(exc, self._path, place=place, known=known, examples=examples)
            return None
        if turn.kind != "assistant" and turn.speaker not in self._names:
            self._wrong(place, f'"{turn.speaker}" is not one of the people', example=_HISTORY_EXAMPLE)
        if turn.at < self._last_at:
            self._wrong(place, "it is earlier than the line before it; the oldest comes first")
        self._last_at = turn.at
        return turn

    def _wrong(self, place: str, what: str, *, example: str | None = None) -> None:
        self.mistakes.append(sentence(self._path, place, what, example=example))


def _parsed_toml(path: Path) -> dict[str, Any]:
    """Return the tables of the file. Raises `ScenarioError` when there is nothing to read further."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        what, example = f"it cannot be read ({exc.strerror or exc})", "roomtone rehearse my-evening.toml"
        raise ScenarioError((sentence(path, "", what, example=example),)) from exc
    except UnicodeDecodeError as exc:
        raise ScenarioError((sentence(path, "", "it is not text in UTF-8"),)) from exc
    except tomllib.TOMLDecodeError as exc:
        message = str(exc)
        what = f"it is not TOML: {message[:1].lower()}{message[1:]}"
        raise ScenarioError((sentence(path, "", what, example='title = "An evening"'),)) from exc
