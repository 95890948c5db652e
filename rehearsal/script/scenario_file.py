"""Read a scenario from the files a person wrote, and say everything that is wrong with them at once."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rehearsal.discord.faults import FAULTS
from rehearsal.errors import ScenarioError
from rehearsal.script.examples import EXAMPLES
from rehearsal.script.expectations import (
    KINDS,
    Answer,
    FactOnlyInSummary,
    Interrupted,
    ModelKnew,
    Recorded,
    Silent,
    Thought,
    Truncated,
    Wanted,
)
from rehearsal.script.history_file import read_history
from rehearsal.script.mistakes import sentence, sentences_of
from rehearsal.script.scenario import (
    AFTER_EVENTS,
    FIRST_PERSON_ID,
    STEP_KINDS,
    BotSpec,
    Conduct,
    HistoryTurn,
    PersonSpec,
    Premises,
    Say,
    Scenario,
    Step,
)
from rehearsal.script.servers import CONDUCTS, EXPIRE, ServersSpec
from rehearsal.script.written_evening import bundled_evenings

_Model = TypeVar("_Model", bound=BaseModel)

_STEP_EXAMPLE = 'who = "mira", say = "Hello.", audio = "mira-01.ogg"'


_BUNDLED = Path(__file__).parents[1] / "scenarios"
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
        names = sorted([*bundled, *bundled_evenings()])
        what = f"there is no such file, and the bundled scenarios are {', '.join(names)}"
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
        rows = raw.pop("expect", [])
        stored = raw.pop("history", None)
        premises = self._checked(Premises, raw, "", known=("people", "history", "steps", "expect"))
        expect = self._expect(rows, steps, own_name=BotSpec().name if premises is None else premises.bot.name)
        self._check_servers(steps, ServersSpec() if premises is None else premises.servers)
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
            self._wrong("", "nobody is in it; `people` is missing", example=EXAMPLES["people"])
            return ()
        self._keys = tuple(table)
        found = []
        for index, (key, value) in enumerate(table.items()):
            place = f"people.{key}"
            if not isinstance(value, dict):
                self._wrong(place, "it is not a table", example=EXAMPLES["people"])
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
            if step.id and (step.id in followed or step.id in AFTER_EVENTS):
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
        for name in ("audio", "shows"):
            if isinstance(made.get(name), str):
                made[name] = self._folder / made[name]
                if not made[name].is_file():
                    self._wrong(f"{place}.{name}", f'there is no file "{row[name]}"', example=EXAMPLES[name])
        who = made.get("who")
        if isinstance(who, str) and who not in self._keys:
            known = ", ".join(self._keys) or "nobody"
            self._wrong(f"{place}.who", f'"{who}" is not one of the people ({known})', example=EXAMPLES["who"])
        fault = made.get("fault")
        if isinstance(fault, str) and fault not in FAULTS:
            what = f'there is no fault "{fault}"; there are {", ".join(sorted(FAULTS))}'
            self._wrong(f"{place}.fault", what, example=EXAMPLES["fault"])
        return self._checked(STEP_KINDS[kinds[0]], made, place)

    def _check_moment(self, row: dict[str, Any], place: str, followed: dict[str, bool]) -> None:
        """Look whether what the step follows is there, and is speech where it is to be overlapped."""
        after = row.get("after", "")
        if not isinstance(after, str):
            return
        if not followed and (after or "overlap_s" in row):
            self._wrong(place, "the first step cannot follow another", example="at = 1.0")
        elif after and after not in followed and after not in AFTER_EVENTS:
            known = 'after = "reply" or an id above'
            self._wrong(f"{place}.after", f'no earlier step has the id "{after}"', example=known)
        elif "overlap_s" in row and not followed.get(after, False):
            self._wrong(f"{place}.overlap_s", "only a `say` can be overlapped", example="gap_s = 0.5")

    def _check_servers(self, steps: tuple[Step, ...], servers: ServersSpec) -> None:
        """Look whether every server that is to behave differently is there, and knows how."""
        begun = {name: spec.conduct for name in CONDUCTS if (spec := getattr(servers, name)) is not None}
        for name, conduct in begun.items():
            if conduct not in CONDUCTS[name]:
                self._unknown_conduct(f"servers.{name}.conduct", conduct, CONDUCTS[name])
        for number, step in enumerate(steps, start=1):
            if not isinstance(step, Conduct):
                continue
            place = f"steps number {number}"
            if step.server not in begun:
                what = f"the scenario has no {step.server} server"
                self._wrong(f"{place}.server", what, example=f"[servers.{step.server}]")
            elif step.conduct not in (*CONDUCTS[step.server], *([EXPIRE] if step.server == "realtime" else [])):
                self._unknown_conduct(f"{place}.conduct", step.conduct, CONDUCTS[step.server])

    def _unknown_conduct(self, place: str, given: str, known: frozenset[str]) -> None:
        self._wrong(place, f'"{given}" is not one of {", ".join(sorted(known))}', example=EXAMPLES["conduct"])

    def _expect(self, rows: object, steps: tuple[Step, ...], *, own_name: str) -> tuple[Wanted, ...]:
        if not isinstance(rows, list):
            self._wrong("expect", "it is not a list of tables", example=f"[[expect]] with {EXAMPLES['kind']}")
            return ()
        found: list[Any] = []
        for number, row in enumerate(rows, start=1):
            place = f"expect number {number}"
            model = KINDS.get(str(row.get("kind"))) if isinstance(row, dict) else None
            if model is None:
                given = f'"{row["kind"]}"' if isinstance(row, dict) and "kind" in row else "it"
                self._wrong(f"{place}.kind", f"{given} is not one of {', '.join(KINDS)}", example=EXAMPLES["kind"])
                continue
            wanted = self._checked(model, row, place)
            if wanted is not None:
                self._check_named(wanted, steps, place, own_name)
                found.append(wanted)
        return tuple(found)

    def _check_named(self, wanted: BaseModel, steps: tuple[Step, ...], place: str, own_name: str) -> None:
        """Look whether the steps and people that a promise is about are in the file."""
        said = {step.id for step in steps if isinstance(step, Say)} - {""}
        there = {step.id for step in steps} - {""}
        match wanted:
            case Answer() | FactOnlyInSummary() | Interrupted() | ModelKnew() | Truncated() if wanted.to not in said:
                self._wrong(f"{place}.to", f'no spoken step has the id "{wanted.to}"', example=EXAMPLES["to"])
            case Silent():
                for key, name in (("since", wanted.since), ("until", wanted.until)):
                    if name and name not in there:
                        self._wrong(f"{place}.{key}", f'no step has the id "{name}"', example=EXAMPLES[key])
            case Thought() if wanted.since not in there:
                self._wrong(f"{place}.since", f'no step has the id "{wanted.since}"', example=EXAMPLES["since"])
            case Recorded() if wanted.who not in (*self._keys, own_name):
                known = ", ".join((*self._keys, own_name))
                self._wrong(f"{place}.who", f'"{wanted.who}" is not one of {known}', example=EXAMPLES["who"])
            case _:
                pass
        if isinstance(wanted, Answer) and not (wanted.all_of or wanted.any_of):
            self._wrong(place, "an answer needs `all_of` or `any_of`", example='any_of = ["Ithaca"]')

    def _history(self, name: object) -> tuple[HistoryTurn, ...]:
        if not isinstance(name, str):
            self._wrong("history", "it is not a file name", example=EXAMPLES["history"])
            return ()
        turns, mistakes = read_history(self._path, name, names=self._names)
        self._mistakes += mistakes
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
            self._mistakes += sentences_of(exc, self._path, place=place, known=keys, examples=EXAMPLES)
            return None


def _parsed_toml(path: Path) -> dict[str, Any]:
    """Return the tables of the file. Raises `ScenarioError` when there is nothing to read further."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as exc:
        what, example = f"it cannot be read ({exc.strerror or exc})", "roomtone rehearse my-evening.toml"
        raise ScenarioError((sentence(path, "", what, example=example),)) from exc
    except UnicodeDecodeError as exc:
        raise ScenarioError((sentence(path, "", "it is not text in UTF-8"),)) from exc
    except tomllib.TOMLDecodeError as exc:
        message = str(exc)
        what = f"it is not TOML: {message[:1].lower()}{message[1:]}"
        raise ScenarioError((sentence(path, "", what, example='title = "An evening"'),)) from exc
