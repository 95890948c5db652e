"""Reads a scenario from its files, and says in one sentence each what is wrong with them.

The models of `scenario` check its form; then its parts must fit each other.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rehearsal.errors import RehearsalError
from rehearsal.script.expectations import ExpectRecorded
from rehearsal.script.scenario import (
    AFTER_EVENTS,
    AFTER_VOICE,
    EXPIRE_SESSIONS,
    FIRST_PERSON_ID,
    SERVER_BEHAVIOURS,
    JoinStep,
    LeaveStep,
    SayStep,
    Scenario,
    ServerStep,
)

TOO_DEEP = "it is nested too deeply, or a number is too long"
_IN_WORDS = {"missing": "it is missing", "extra_forbidden": "there is no such key here"}


class ScenarioError(RehearsalError):
    """A scenario, its history or a manifest of recordings has mistakes, so its author must change the file.

    `mistakes`: every mistake as a plain sentence with the place and an example.
    """

    def __init__(self, mistakes: tuple[str, ...]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


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
            mistakes.append(mistake(file, f"line {number}", TOO_DEEP))
    if mistakes:
        raise ScenarioError(tuple(mistakes))
    return rows


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
        names = ", ".join(bundled)
        raise ScenarioError((mistake(path, "", f"there is no such file; the bundled scenarios are {names}"),))
    return path


def load_scenario(path: Path) -> Scenario:
    """Return the scenario in `path`, with absolute paths. Raises `ScenarioError` with its mistakes."""
    raw = _parsed_toml(path)
    folder = path.resolve().parent
    if isinstance(raw.get("people"), dict):
        raw["people"] = [_person(key, table, number) for number, (key, table) in enumerate(raw["people"].items())]
    for name in ("history", "steps"):
        if isinstance(raw.get(name), str):
            raw[name] = list(read_json_lines(folder / raw[name]).values())
    for row in raw.get("steps") or ():
        for name in ("audio", "shows", "sends"):
            if isinstance(row, dict) and isinstance(row.get(name), str):
                row[name] = folder / row[name]
    try:
        scenario = Scenario.model_validate(raw)
    except ValidationError as exc:
        raise ScenarioError(validation_mistakes(exc, path)) from exc
    mistakes = (
        *_wrong_people(scenario),
        *_wrong_steps(scenario),
        *_wrong_sound(scenario),
        *_wrong_servers(scenario),
        *_wrong_expect(scenario),
    )
    if mistakes:
        raise ScenarioError(tuple(mistake(path, place, what) for place, what in mistakes))
    return scenario


def _person(key: str, table: object, number: int) -> object:
    defaults = {"key": key, "name": key.capitalize(), "id": FIRST_PERSON_ID + number}
    return {**defaults, **table} if isinstance(table, dict) else table


def _wrong_people(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield place and mistake of people who are taken for each other, and of turns of nobody or out of order."""
    for number, person in enumerate(scenario.people):
        for other in scenario.people[:number]:
            if person.id == other.id or person.name.casefold() == other.name.casefold():
                yield f"people.{person.key}", f"it has the id or the name of {other.key}"
    names = {name for person in scenario.people for name in (person.key, person.name)}
    latest = float("-inf")
    for number, turn in enumerate(scenario.history, 1):
        if turn.kind != "assistant" and turn.speaker not in names:
            yield f"history number {number}", f'"{turn.speaker}" is not one of the people'
        if turn.at < latest:
            yield f"history number {number}", "it is earlier than the one before it; the oldest comes first"
        latest = turn.at


def _wrong_steps(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield place and mistake of steps that name somebody, a step or a file that is not there."""
    keys = [person.key for person in scenario.people]
    # The earlier steps by id, and whether each of them is speech. The empty id stands for the step just before.
    earlier: dict[str, bool] = {}
    for number, step in enumerate(scenario.steps, 1):
        place = f"steps number {number}"
        if (who := getattr(step, "who", "")) and who not in keys:
            yield f"{place}.who", f'"{who}" is not one of the people ({", ".join(keys)})'
        file = next(filter(None, (getattr(step, name, None) for name in ("audio", "shows", "sends"))), None)
        if file is not None and not file.is_file():
            yield place, f'there is no file "{file.name}"'
        if not earlier and (step.after or step.overlap_s is not None):
            yield place, "the first step cannot follow another"
        elif step.after and step.after not in earlier and step.after not in AFTER_EVENTS:
            yield f"{place}.after", f'no earlier step has the id "{step.after}"'
        elif step.overlap_s is not None and not earlier.get(step.after, False):
            yield f"{place}.overlap_s", "only a `say` can be overlapped"
        if step.id and (step.id in earlier or step.id in AFTER_EVENTS):
            yield f"{place}.id", f'"{step.id}" is already taken'
        earlier[step.id] = earlier[""] = isinstance(step, SayStep)


def _wrong_sound(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield place and mistake of steps without the sound that they need, and of steps that need more than writing."""
    for number, step in enumerate(scenario.steps, 1):
        place = f"steps number {number}"
        if not scenario.written:
            if isinstance(step, SayStep) and step.audio is None:
                yield f"{place}.audio", "it is missing"
        elif not isinstance(step, (SayStep, JoinStep, LeaveStep)):
            yield place, "in a written scenario people only talk, join and leave"
        elif getattr(step, "audio", None) is not None:
            yield f"{place}.audio", "a written scenario has no sound"
        elif step.after not in {"", AFTER_VOICE}:
            yield place, f'in a written scenario a step has `gap_s`, `overlap_s`, `after = "{AFTER_VOICE}"` or none'


def _wrong_servers(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield place and mistake of steps that change a server which is not there, or in a way that it does not know."""
    for number, step in enumerate(scenario.steps, 1):
        if not isinstance(step, ServerStep):
            continue
        known = {*SERVER_BEHAVIOURS[step.server], *([EXPIRE_SESSIONS] if step.server == "realtime" else [])}
        if getattr(scenario.servers, step.server) is None:
            yield f"steps number {number}.server", f"the scenario has no {step.server} server"
        elif step.conduct not in known:
            yield f"steps number {number}.conduct", f'"{step.conduct}" is not one of {", ".join(sorted(known))}'


def _wrong_expect(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Yield place and mistake of expectations that name a step or a person that is not there."""
    ids = {step.id for step in scenario.steps} - {""}
    spoken = {step.id for step in scenario.says} - {""}
    who = [*(person.key for person in scenario.people), scenario.bot.name]
    for number, expected in enumerate(scenario.expect, 1):
        for key, known in (("to", spoken), ("since", ids), ("until", ids)):
            name = getattr(expected, key, "")
            if name and name not in known:
                yield f"expect number {number}.{key}", f'no {"spoken " if key == "to" else ""}step has the id "{name}"'
        if isinstance(expected, ExpectRecorded) and expected.who not in who:
            yield f"expect number {number}.who", f'"{expected.who}" is not one of {", ".join(who)}'


def _parsed_toml(path: Path) -> dict[str, Any]:
    """Return the tables of the file. Raises `ScenarioError` if the file cannot be read or is not TOML."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise ScenarioError((mistake(path, "", f"it is not TOML: {exc}"),)) from exc
    except (ValueError, RecursionError) as exc:
        # TOML sets no limit to either, Python does.
        raise ScenarioError((mistake(path, "", TOO_DEEP),)) from exc
