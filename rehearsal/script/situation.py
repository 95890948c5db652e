"""Reads a situation: the talk before one question to the bot, and what the model must be shown for it.

Both are in a JSON file, which `docs/rehearsal.md` describes. A long talk is folded before the question. Hand-written
folds for that are in the folder `folds` beside the folder of the situation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from rehearsal.script.scenario_file import TOO_DEEP, ScenarioError, mistake, read_text

# Keys and numbers on the way to a value.
SettingPlace: TypeAlias = tuple[str | int, ...]
# The reader of the share keeps to it too.
_MAX_NOTE_CHARS = 220


def _time(started: str) -> datetime:
    return datetime.strptime(started.partition(" UTC")[0], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


def _begins(started: str) -> str:
    try:
        _time(started)
    except ValueError as exc:
        raise ValueError(f'it must look like "2026-03-20 20:41 UTC", not "{started}"') from exc
    return started


class _Value(BaseModel):
    # The file may say more about a situation, for those who judge answers.
    model_config = ConfigDict(extra="ignore", frozen=True)


class SituationTurn(_Value):
    """One line of the talk. `speaker`: a person's name or the bot's. `event`: they do not speak, they come in.

    `at_s`: when it begins, in seconds. `interrupted`: of the bot's `full_text` only `text` was heard, because the next
    line was spoken over it.
    """

    speaker: str
    text: str = ""
    event: str = ""
    at_s: float = Field(ge=0)
    overlaps_previous: bool = False
    interrupted: bool = False
    full_text: str = ""


class SituationQuestion(SituationTurn):
    """The question. `language`: the code of the language in which it is heard. `typed`: it is typed in the chat."""

    language: str = "en"
    typed: bool = False


class SituationNote(_Value):
    """What the bot saw on the screen of `who` after so many turns of the talk."""

    after_turn: int = Field(ge=0)
    who: str
    text: str = Field(min_length=1, max_length=_MAX_NOTE_CHARS)


class RecordedFact(_Value):
    """A fact of a hand-written fold. `closes`: words of the earlier facts that it replaces."""

    turns: tuple[int, ...]
    text: str
    kind: str
    importance: Literal[1, 2, 3]
    closes: tuple[str, ...] = ()
    owner: str = ""
    until: str = ""


class RecordedFold(_Value):
    """A hand-written fold of ten turns. `heading`: of its chapter; without one, it is made of the facts."""

    heading: str = ""
    gist: str
    facts: tuple[RecordedFact, ...]
    paragraph: str


class SituationScript(_Value):
    """A situation. `base`: the number of the situation whose folds it has, if not its own. `joins_late`: who comes in
    during the talk. `want`: what a good answer has or avoids, for people. `more_questions`: each is asked of a copy of
    the room as it is after the talk.

    `shown`: rows of texts, each of which must stand in the messages behind the one before it. `absent`: texts that must
    not stand there.
    """

    id: str
    base: str | None = None
    started: Annotated[str, AfterValidator(_begins)]
    bot: str = "Roomtone"
    people: tuple[str, ...] = Field(min_length=1)
    joins_late: str | None = None
    history: tuple[SituationTurn, ...]
    note: tuple[SituationNote, ...] = ()
    question: SituationQuestion
    more_questions: tuple[SituationQuestion, ...] = ()
    want: str = ""
    shown: tuple[tuple[str, ...], ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def begins_at(self) -> float:
        """Return when the talk begins (UTC epoch seconds)."""
        return _time(self.started).timestamp()

    @property
    def everybody(self) -> tuple[str, ...]:
        """Return all people, those who come late last."""
        return (*self.people, *([self.joins_late] if self.joins_late else []))


class SituationFile:
    """A situation that was read from a file. `folds`: the hand-written folds by their first turn; None: it has none."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises `ScenarioError` with line and reason of each mistake."""
        self._path, self._decoder = path, _PlacedDecoder()
        self._raw = _decoded(path, self._decoder)
        try:
            self.situation = SituationScript.model_validate(self._raw)
        except ValidationError as exc:
            wrong = [(each["loc"], f'"{each["loc"][-1]}": {each["msg"]}' * bool(each["loc"])) for each in exc.errors()]
            raise ScenarioError(tuple(self._mistake(at, what or "it is no situation") for at, what in wrong)) from exc
        if misfits := list(_misfits(self.situation)):
            raise ScenarioError(tuple(self._mistake(*each) for each in misfits))
        self.folds = self._recorded_folds()

    def error(self, turn: int, what: str) -> ScenarioError:
        """Return the error that something is wrong with a turn of the talk; the question is the one after the last."""
        asked = turn == len(self.situation.history)
        return ScenarioError((self._mistake(("question",) if asked else ("history", turn), what),))

    def _mistake(self, place: SettingPlace, what: str) -> str:
        return mistake(self._path, f"line {self._decoder.line_of(self._raw, place)}", what)

    def _recorded_folds(self) -> dict[int, RecordedFold] | None:
        file = self._path.resolve().parent.parent / "folds" / f"{self.situation.base or self.situation.id}.json"
        if not file.is_file():
            return None
        try:
            return {int(start): RecordedFold.model_validate(fold) for start, fold in _decoded(file).items()}
        except (AttributeError, ValueError) as exc:
            raise ScenarioError((mistake(file, "", "it is not a file of hand-written folds"),)) from exc


def _decoded(path: Path, decoder: json.JSONDecoder | None = None) -> Any:
    try:
        return (decoder or json.JSONDecoder()).decode(read_text(path))
    except json.JSONDecodeError as exc:
        raise ScenarioError((mistake(path, f"line {exc.lineno}", f"it is not JSON ({exc.msg})"),)) from exc
    except (ValueError, RecursionError) as exc:
        raise ScenarioError((mistake(path, "", TOO_DEEP),)) from exc


class _PlacedDecoder(json.JSONDecoder):
    """Decodes JSON, and knows the line on which each object begins."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[int, int] = {}
        parse_object: Callable[..., tuple[Any, int]] = self.parse_object  # type: ignore[has-type]

        def parse_placed(begin: tuple[str, int], *more: Any) -> tuple[Any, int]:
            parsed, end = parse_object(begin, *more)
            self._lines[id(parsed)] = begin[0].count("\n", 0, begin[1]) + 1
            return parsed, end

        self.parse_object = parse_placed
        # The one in C calls no function of ours.
        self.scan_once = py_make_scanner(self)

    def line_of(self, parsed: Any, place: SettingPlace) -> int:
        """Return where the innermost object on the way to `place` begins."""
        line = 1
        for step in place:
            line = self._lines.get(id(parsed), line)
            try:
                parsed = parsed[step]
            except (LookupError, TypeError):
                return line
        return self._lines.get(id(parsed), line)


def _misfits(situation: SituationScript) -> Iterator[tuple[SettingPlace, str]]:
    """Yield place and mistake of what does not fit together."""
    names, bot = situation.everybody, situation.bot
    place: SettingPlace
    listed = ", ".join(names)
    talk = situation.history
    for number, turn in enumerate(talk):
        place = ("history", number)
        if turn.speaker not in (*names, bot):
            yield (*place, "speaker"), f'"{turn.speaker}" is not one of the people ({listed})'
        elif not turn.text and not turn.event:
            yield place, "nothing is said and nobody comes in"
        elif turn.event and turn.speaker != situation.joins_late:
            yield (*place, "event"), "only the person of joins_late comes in"
        elif turn.speaker == bot and (number == 0 or talk[number - 1].speaker == bot or talk[number - 1].event):
            yield place, "the bot answers only what somebody has just said"
    asked: list[tuple[SettingPlace, SituationQuestion]] = [(("question",), situation.question)]
    asked += [(("more_questions", number), each) for number, each in enumerate(situation.more_questions)]
    for place, question in asked:
        if question.speaker not in names or not question.text:
            yield place, f"it needs words and one of the people as its speaker ({listed})"
    for number, note in enumerate(situation.note):
        if note.who not in names or note.after_turn > len(talk):
            yield ("note", number), "it needs one of the people, and a turn of the talk after which it was seen"
