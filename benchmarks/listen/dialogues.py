"""Scripted conversations in which every line says whether the bot should answer it.

Most dialogues are the memory benchmark's generated chatter with inserted episodes: calls by name (as a recogniser
writes it) with follow-ups, talk about the bot, words that sound like its name, questions to other people, other bots,
and requests to be quiet. Others are complete handwritten conversations. Templates are files. You may look at `tuning`
while improving the decisions, but never at `held_out`; the report shows both. The same set gives the same dialogues on
every machine.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files
from random import Random
from typing import TYPE_CHECKING, Any

from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening

if TYPE_CHECKING:
    from collections.abc import Sequence

BOT = "Roomtone"
# Lines of a generated dialogue, and how many lines lie between two episodes. This makes seven calls and seven traps in
# ten minutes, which is a busy evening for a bot.
LINES = 90
_BETWEEN = (4, 9)
COMPANIES = (2, 3, 4, 5, 3, 2, 4, 3, 2, 4, 5, 3, 2, 3, 4, 5)
_FOLLOW_UPS = (0, 0, 1, 1, 2)
_THANKS_SHARE = 0.25
# How often each trap occurs among 10 traps. A trap is an episode that the bot should not answer.
_TRAPS = (("about", 3), ("similar", 1), ("others", 2), ("to_all", 1), ("to_bots", 1), ("by_bots", 1), ("hushes", 1))
_CALL_SHARE = 0.5
# Speech has 170 words a minute, with a pause before each line. A bot's answer takes a little longer.
_WORDS_PER_S = 2.8
_PAUSE_S = (0.3, 3.0)
ANSWER_S = 4.0
_LINE = re.compile(r"(?P<speaker>[^:|]+): (?P<text>.+) \| (?P<owed>yes|no|may)")


class DialogueSet(StrEnum):
    """The set of templates that dialogues are made of."""

    TUNING = "tuning"
    HELD_OUT = "held_out"


class ReplyExpected(StrEnum):
    """Whether the bot should answer a line. MAY: both an answer and silence are right."""

    YES = "yes"
    NO = "no"
    MAY = "may"


@dataclass(frozen=True, slots=True)
class DialogueLine:
    """One line: its text as a recogniser writes it, and its start and end in seconds of the dialogue.

    `kind`: the kind of episode that the line belongs to.
    """

    speaker: str
    text: str
    owed: ReplyExpected
    kind: str
    started_s: float
    ended_s: float
    by_bot: bool = False


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One conversation. `people`: the people in the channel, without the bot and other bots."""

    name: str
    people: tuple[str, ...]
    bots: tuple[str, ...]
    lines: tuple[DialogueLine, ...]
    duration_s: float


@dataclass(slots=True)
class _Script:
    """A dialogue while it is being written."""

    random: Random
    lines: list[DialogueLine] = field(default_factory=list)
    now_s: float = 0.0

    def say(self, speaker: str, text: str, owed: ReplyExpected, kind: str, *, by_bot: bool = False) -> None:
        """Add a line after a pause. If the bot should answer it, leave time for the answer."""
        started = self.now_s + self.random.uniform(*_PAUSE_S)
        ended = started + max(0.6, len(text.split()) / _WORDS_PER_S)
        self.lines.append(DialogueLine(speaker, text, owed, kind, round(started, 2), round(ended, 2), by_bot))
        self.now_s = ended + (ANSWER_S if owed is ReplyExpected.YES else 0.0)

    def done(self, name: str, people: Sequence[str], bots: Sequence[str]) -> Dialogue:
        """Return the finished dialogue."""
        return Dialogue(name, tuple(people), tuple(bots), tuple(self.lines), round(self.now_s, 2))


def load_dialogues(part: DialogueSet) -> tuple[Dialogue, ...]:
    """Return all dialogues of a set. The result is the same each time."""
    table = _load(part)
    made = [_made(part, table, number, size) for number, size in enumerate(COMPANIES, start=1)]
    return (*made, _alone(part, table), *(_written(part, each) for each in table["conversation"]))


def _made(part: DialogueSet, table: dict[str, Any], number: int, size: int) -> Dialogue:
    random = Random(f"{part}-talk-{number}")  # noqa: S311 - nothing secret about a conversation
    chatter = [
        line for line in generate_evening(number, TemplateSet(part.value), lines=2 * LINES).lines if not line.by_bot
    ]
    people = list(dict.fromkeys(line.speaker for line in chatter))[:size]
    if len(people) < size:
        people += [name for name in ("Kim", "Noah", "Lena") if name not in people][: size - len(people)]
    writer = _Writer(_Script(random), random, table, people)
    until = random.randint(*_BETWEEN)
    for line in chatter[:LINES]:
        speaker = line.speaker if line.speaker in people else random.choice(people)
        writer.script.say(speaker, line.text, ReplyExpected.NO, "chatter")
        until -= 1
        if until <= 0:
            writer.episode()
            until = random.randint(*_BETWEEN)
    return writer.script.done(f"{part.value}-{number}", people, table["bots"][:1])


@dataclass(slots=True)
class _Writer:
    """Adds episodes to a dialogue."""

    script: _Script
    random: Random
    table: dict[str, Any]
    people: list[str]

    def episode(self) -> None:
        """Add either a call with its follow-ups, or a trap."""
        if self.random.random() < _CALL_SHARE:
            self._call()
            return
        names = [name for name, _ in _TRAPS]
        self._trap(self.random.choices(names, [often for _, often in _TRAPS])[0])

    def _call(self) -> None:
        speaker = self.random.choice(self.people)
        name = self._heard_name()
        kind = "name" if name.casefold() == BOT.casefold() else "misheard"
        self.script.say(speaker, self._filled("calls", name), ReplyExpected.YES, kind)
        for _ in range(self.random.choice(_FOLLOW_UPS)):
            self.script.say(speaker, self._filled("follow_ups"), ReplyExpected.YES, "follow_up")
        if self.random.random() < _THANKS_SHARE:
            self.script.say(speaker, self._filled("thanks"), ReplyExpected.MAY, "thanks")

    def _trap(self, kind: str) -> None:
        speaker = self.random.choice(self.people)
        if kind == "by_bots":
            self.script.say(self.table["bots"][0], self._filled(kind), ReplyExpected.NO, kind, by_bot=True)
        elif kind == "hushes":
            self.script.say(speaker, self._filled(kind), ReplyExpected.MAY, kind)
            # After a request to be quiet, a line without the bot's name is not for the bot.
            self.script.say(speaker, self._filled("follow_ups"), ReplyExpected.NO, "hushed")
        elif kind == "others":
            person = self.random.choice([name for name in self.people if name != speaker])
            self.script.say(speaker, self._filled(kind, person=person), ReplyExpected.NO, kind)
        else:
            self.script.say(speaker, self._filled(kind), ReplyExpected.NO, kind)

    def _heard_name(self) -> str:
        """Return the bot's name as a recogniser writes it, with the same frequency of errors."""
        heard: dict[str, int] = self.table["heard"]
        return self.random.choices(list(heard), list(heard.values()))[0]

    def _filled(self, pool: str, name: str = BOT, person: str = "") -> str:
        template: str = self.random.choice(self.table[pool])
        said = template.format(name=name, person=person, bot=self.table["bots"][0])
        return said[0].upper() + said[1:]


def _alone(part: DialogueSet, table: dict[str, Any]) -> Dialogue:
    """Return a dialogue of one person with the bot, in which every line is for the bot."""
    script = _Script(Random(f"{part}-alone"))  # noqa: S311 - nothing secret about a conversation
    for text in table["alone"]:
        script.say("Kim", text, ReplyExpected.YES, "alone")
    return script.done(f"{part.value}-alone", ["Kim"], ())


def _written(part: DialogueSet, entry: dict[str, Any]) -> Dialogue:
    """Return a handwritten conversation."""
    script = _Script(Random(f"{part}-{entry['name']}"))  # noqa: S311 - nothing secret about a conversation
    for number, text in enumerate(entry["talk"].strip().splitlines(), start=1):
        line = _LINE.fullmatch(text.strip())
        if line is None or line["speaker"] not in entry["people"]:
            raise ValueError(f"{part.value}.toml, conversation {entry['name']!r}, line {number} is no line: {text!r}")
        script.say(line["speaker"], line["text"], ReplyExpected(line["owed"]), "written")
    return script.done(f"{part.value}: {entry['name']}", entry["people"], ())


def _load(part: DialogueSet) -> dict[str, Any]:
    return tomllib.loads((files("benchmarks.listen") / "talks" / f"{part.value}.toml").read_text("utf-8"))
