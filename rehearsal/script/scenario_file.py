"""Reads a scenario from its files, and reports every mistake in them at once."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rehearsal.discord.faults import FAULTS
from rehearsal.errors import ScenarioError
from rehearsal.script.expectations import (
    EXPECTATION_KINDS,
    ExpectAnswer,
    Expectation,
    ExpectFactOnlyInSummary,
    ExpectInterrupted,
    ExpectModelKnew,
    ExpectRecorded,
    ExpectSilent,
    ExpectThought,
    ExpectTruncated,
)
from rehearsal.script.file_errors import EXAMPLES, format_mistake, format_validation_errors
from rehearsal.script.history_file import read_history
from rehearsal.script.scenario import (
    AFTER_EVENTS,
    FIRST_PERSON_ID,
    STEP_KINDS,
    BotSpec,
    HistoryTurn,
    PersonSpec,
    SayStep,
    Scenario,
    ScenarioHeader,
    ServerStep,
    Step,
)
from rehearsal.script.server_specs import EXPIRE_SESSIONS, SERVER_BEHAVIOURS, ServersSpec
from rehearsal.script.written_evening import bundled_evenings

_Model = TypeVar("_Model", bound=BaseModel)

_STEP_EXAMPLE = 'who = "mira", say = "Hello.", audio = "mira-01.ogg"'


_BUNDLED = Path(__file__).parents[1] / "scenarios"
_FILE_NAME = "scenario.toml"


def bundled_scenarios() -> dict[str, Path]:
    """Return the scenarios that come with the package, by name."""
    return {path.parent.name: path for path in sorted(_BUNDLED.glob(f"*/{_FILE_NAME}"))}


def scenario_path(given: str) -> Path:
    """Return the file for a path, a folder with a `scenario.toml`, or the name of a bundled scenario.

    Raises `ScenarioError` with the names of the bundled scenarios when there is no such file.
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
        raise ScenarioError((format_mistake(path, "", what, example="roomtone rehearse evening"),))
    return path


def load_scenario(path: Path) -> Scenario:
    """Return the scenario in `path`, with absolute paths. Raises `ScenarioError` with all mistakes."""
    return _Reader(path).read()


class _Reader:
    """Reads one file, and collects mistakes instead of stopping at the first one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = path.resolve().parent
        self._mistakes: list[str] = []
        # The people that steps may name. A person is included even if the person's own entry has a mistake.
        self._keys: tuple[str, ...] = ()
        self._names: frozenset[str] = frozenset()

    def read(self) -> Scenario:
        raw = _parsed_toml(self._path)
        people = self._people(raw.pop("people", None))
        steps = self._steps(raw.pop("steps", None))
        rows = raw.pop("expect", [])
        history_name = raw.pop("history", None)
        header = self._checked(ScenarioHeader, raw, "", known=("people", "history", "steps", "expect"))
        expect = self._expect(rows, steps, bot_name=BotSpec().name if header is None else header.bot.name)
        self._check_servers(steps, ServersSpec() if header is None else header.servers)
        history = self._history(history_name) if history_name is not None else ()
        if self._mistakes or header is None:
            raise ScenarioError(tuple(self._mistakes))
        return Scenario(
            **{name: getattr(header, name) for name in ScenarioHeader.model_fields},
            people=people,
            steps=steps,
            expect=expect,
            history=history,
        )

    def _people(self, table: object) -> tuple[PersonSpec, ...]:
        if not isinstance(table, dict) or not table:
            self._add_mistake("", "`people` is missing", example=EXAMPLES["people"])
            return ()
        self._keys = tuple(table)
        found = []
        for index, (key, value) in enumerate(table.items()):
            place = f"people.{key}"
            if not isinstance(value, dict):
                self._add_mistake(place, "it is not a table", example=EXAMPLES["people"])
                continue
            values = {"key": key, "name": key.capitalize(), "id": FIRST_PERSON_ID + index, **value}
            if person := self._checked(PersonSpec, values, place):
                found.append(person)
        self._check_unique(found)
        self._names = frozenset({*self._keys, *(person.name for person in found)})
        return tuple(found)

    def _check_unique(self, people: list[PersonSpec]) -> None:
        for index, person in enumerate(people):
            for other in people[:index]:
                if person.id == other.id:
                    self._add_mistake(f"people.{person.key}.id", f"{person.id} is already the id of {other.key}")
                if person.name.casefold() == other.name.casefold():
                    self._add_mistake(
                        f"people.{person.key}.name", f'"{person.name}" is already the name of {other.key}'
                    )

    def _steps(self, rows: object) -> tuple[Step, ...]:
        if not isinstance(rows, list) or not rows:
            self._add_mistake("", "`steps` is missing", example=f"[[steps]] with {_STEP_EXAMPLE}")
            return ()
        found: list[Step] = []
        # The earlier steps by id, and whether each of them is speech. The empty id stands for the step just before.
        earlier: dict[str, bool] = {}
        for number, row in enumerate(rows, start=1):
            place = f"steps number {number}"
            step = self._step(row, place)
            if isinstance(row, dict):
                self._check_timing(row, place, earlier)
            if step is None:
                earlier[""] = False
                continue
            if step.id and (step.id in earlier or step.id in AFTER_EVENTS):
                self._add_mistake(f"{place}.id", f'"{step.id}" is already taken', example='id = "ask-island"')
            earlier[step.id] = earlier[""] = isinstance(step, SayStep)
            found.append(step)
        return tuple(found)

    def _step(self, row: object, place: str) -> Step | None:
        kinds = [kind for kind in STEP_KINDS if isinstance(row, dict) and kind in row]
        if not isinstance(row, dict) or len(kinds) != 1:
            what = f"it has {' and '.join(kinds)} at once" if len(kinds) > 1 else "it does not say what happens"
            self._add_mistake(place, f"{what}; a step has one of {', '.join(STEP_KINDS)}", example=_STEP_EXAMPLE)
            return None
        values = dict(row)
        for name in ("audio", "shows"):
            if isinstance(values.get(name), str):
                values[name] = self._folder / values[name]
                if not values[name].is_file():
                    self._add_mistake(f"{place}.{name}", f'there is no file "{row[name]}"', example=EXAMPLES[name])
        who = values.get("who")
        if isinstance(who, str) and who not in self._keys:
            known = ", ".join(self._keys) or "nobody"
            self._add_mistake(f"{place}.who", f'"{who}" is not one of the people ({known})', example=EXAMPLES["who"])
        fault = values.get("fault")
        if isinstance(fault, str) and fault not in FAULTS:
            what = f'there is no fault "{fault}"; there are {", ".join(sorted(FAULTS))}'
            self._add_mistake(f"{place}.fault", what, example=EXAMPLES["fault"])
        return self._checked(STEP_KINDS[kinds[0]], values, place)

    def _check_timing(self, row: dict[str, Any], place: str, earlier: dict[str, bool]) -> None:
        """Check that the step in `after` exists, and that it is speech if this step overlaps it."""
        after = row.get("after", "")
        if not isinstance(after, str):
            return
        if not earlier and (after or "overlap_s" in row):
            self._add_mistake(place, "the first step cannot follow another", example="at = 1.0")
        elif after and after not in earlier and after not in AFTER_EVENTS:
            known = 'after = "reply" or an id above'
            self._add_mistake(f"{place}.after", f'no earlier step has the id "{after}"', example=known)
        elif "overlap_s" in row and not earlier.get(after, False):
            self._add_mistake(f"{place}.overlap_s", "only a `say` can be overlapped", example="gap_s = 0.5")

    def _check_servers(self, steps: tuple[Step, ...], servers: ServersSpec) -> None:
        """Check that every server that a step changes exists, and that it knows the given behaviour."""
        initial = {name: spec.conduct for name in SERVER_BEHAVIOURS if (spec := getattr(servers, name)) is not None}
        for name, conduct in initial.items():
            if conduct not in SERVER_BEHAVIOURS[name]:
                self._add_unknown_behaviour(f"servers.{name}.conduct", conduct, SERVER_BEHAVIOURS[name])
        for number, step in enumerate(steps, start=1):
            if not isinstance(step, ServerStep):
                continue
            place = f"steps number {number}"
            if step.server not in initial:
                what = f"the scenario has no {step.server} server"
                self._add_mistake(f"{place}.server", what, example=f"[servers.{step.server}]")
            elif step.conduct not in (
                *SERVER_BEHAVIOURS[step.server],
                *([EXPIRE_SESSIONS] if step.server == "realtime" else []),
            ):
                self._add_unknown_behaviour(f"{place}.conduct", step.conduct, SERVER_BEHAVIOURS[step.server])

    def _add_unknown_behaviour(self, place: str, given: str, known: frozenset[str]) -> None:
        self._add_mistake(place, f'"{given}" is not one of {", ".join(sorted(known))}', example=EXAMPLES["conduct"])

    def _expect(self, rows: object, steps: tuple[Step, ...], *, bot_name: str) -> tuple[Expectation, ...]:
        if not isinstance(rows, list):
            self._add_mistake("expect", "it is not a list of tables", example=f"[[expect]] with {EXAMPLES['kind']}")
            return ()
        found: list[Any] = []
        for number, row in enumerate(rows, start=1):
            place = f"expect number {number}"
            model = EXPECTATION_KINDS.get(str(row.get("kind"))) if isinstance(row, dict) else None
            if model is None:
                given = f'"{row["kind"]}"' if isinstance(row, dict) and "kind" in row else "it"
                self._add_mistake(
                    f"{place}.kind", f"{given} is not one of {', '.join(EXPECTATION_KINDS)}", example=EXAMPLES["kind"]
                )
                continue
            expected = self._checked(model, row, place)
            if expected is not None:
                self._check_references(expected, steps, place, bot_name)
                found.append(expected)
        return tuple(found)

    def _check_references(self, expected: BaseModel, steps: tuple[Step, ...], place: str, bot_name: str) -> None:
        """Check that the steps and people that an expectation names are in the file."""
        spoken = {step.id for step in steps if isinstance(step, SayStep)} - {""}
        all_ids = {step.id for step in steps} - {""}
        match expected:
            case (
                ExpectAnswer() | ExpectFactOnlyInSummary() | ExpectInterrupted() | ExpectModelKnew() | ExpectTruncated()
            ) if expected.to not in spoken:
                self._add_mistake(f"{place}.to", f'no spoken step has the id "{expected.to}"', example=EXAMPLES["to"])
            case ExpectSilent():
                for key, name in (("since", expected.since), ("until", expected.until)):
                    if name and name not in all_ids:
                        self._add_mistake(f"{place}.{key}", f'no step has the id "{name}"', example=EXAMPLES[key])
            case ExpectThought() if expected.since not in all_ids:
                self._add_mistake(f"{place}.since", f'no step has the id "{expected.since}"', example=EXAMPLES["since"])
            case ExpectRecorded() if expected.who not in (*self._keys, bot_name):
                known = ", ".join((*self._keys, bot_name))
                self._add_mistake(f"{place}.who", f'"{expected.who}" is not one of {known}', example=EXAMPLES["who"])
            case _:
                pass
        if isinstance(expected, ExpectAnswer) and not (expected.all_of or expected.any_of):
            self._add_mistake(place, "an answer needs `all_of` or `any_of`", example='any_of = ["Ithaca"]')

    def _history(self, name: object) -> tuple[HistoryTurn, ...]:
        if not isinstance(name, str):
            self._add_mistake("history", "it is not a file name", example=EXAMPLES["history"])
            return ()
        turns, mistakes = read_history(self._path, name, names=self._names)
        self._mistakes += mistakes
        return turns

    def _add_mistake(self, place: str, what: str, *, example: str | None = None) -> None:
        self._mistakes.append(format_mistake(self._path, place, what, example=example))

    def _checked(
        self, model: type[_Model], value: dict[str, Any], place: str, *, known: tuple[str, ...] = ()
    ) -> _Model | None:
        try:
            return model.model_validate(value)
        except ValidationError as exc:
            keys = tuple(name for name in (*model.model_fields, *known) if name != "key")
            self._mistakes += format_validation_errors(exc, self._path, place=place, known=keys, examples=EXAMPLES)
            return None


def _parsed_toml(path: Path) -> dict[str, Any]:
    """Return the tables of the file. Raises `ScenarioError` if the file cannot be read or is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as exc:
        what, example = f"it cannot be read ({exc.strerror or exc})", "roomtone rehearse my-scenario.toml"
        raise ScenarioError((format_mistake(path, "", what, example=example),)) from exc
    except UnicodeDecodeError as exc:
        raise ScenarioError((format_mistake(path, "", "it is not text in UTF-8"),)) from exc
    except tomllib.TOMLDecodeError as exc:
        message = str(exc)
        what = f"it is not TOML: {message[:1].lower()}{message[1:]}"
        raise ScenarioError((format_mistake(path, "", what, example='title = "An evening"'),)) from exc
    except (ValueError, RecursionError) as exc:
        # TOML sets no limit to either, Python does.
        what = "it is nested too deeply, or a number is too long"
        raise ScenarioError((format_mistake(path, "", what),)) from exc
