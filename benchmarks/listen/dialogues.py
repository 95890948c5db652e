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
from importlib.resources import files
from random import Random
from typing import TYPE_CHECKING, Any

from benchmarks.listen.timed_talk import ANSWER_S, ReplyExpected, Talk, TimedLine
from benchmarks.memory.conversations.synthetic_evenings import BOT, TemplateSet, generate_evening

if TYPE_CHECKING:
    from collections.abc import Sequence

# Lines of a generated dialogue, and how many lines lie between two episodes. This makes seven calls and seven traps in
# ten minutes, which is a busy evening for a bot.
LINES = 90
_BETWEEN = (4, 9)
COMPANIES = (2, 3, 4, 5, 3, 2, 4, 3, 2, 4, 5, 3, 2, 3, 4, 5)
_FOLLOW_UPS = (0, 0, 1, 1, 2)
_THANKS_SHARE = 0.25
# How often each trap occurs among 10 traps. A trap is an episode that the bot should not answer.
_TRAPS = {"about": 3, "similar": 1, "others": 2, "to_all": 1, "to_bots": 1, "by_bots": 1, "hushes": 1}
_CALL_SHARE = 0.5
# Speech has 170 words a minute, with a pause before each line. A bot's answer takes a little longer.
_WORDS_PER_S = 2.8
_PAUSE_S = (0.3, 3.0)
_LINE = re.compile(r"(?P<speaker>[^:|]+): (?P<text>.+) \| (?P<owed>yes|no|may)")


def load_dialogues(part: TemplateSet) -> tuple[Talk, ...]:
    """Return all dialogues of a set. The result is the same each time."""
    table = tomllib.loads((files("benchmarks.listen") / "talks" / f"{part}.toml").read_text("utf-8"))
    made = [_made(part, table, number, size) for number, size in enumerate(COMPANIES, start=1)]
    return (*made, _alone(part, table), *(_written(part, each) for each in table["conversation"]))


class _Script:
    """A dialogue while it is being written. `name` decides what chance gives. `table`: the templates of episodes."""

    def __init__(self, name: str, people: Sequence[str], table: dict[str, Any]) -> None:
        self.random = Random(name)  # noqa: S311 - nothing secret about a conversation
        self.people = people
        self._table = table
        self._lines: list[TimedLine] = []
        self._now_s = 0.0

    def say(self, speaker: str, text: str, owed: ReplyExpected, kind: str) -> None:
        """Add a line after a pause. If the bot should answer it, leave time for the answer."""
        started = self._now_s + self.random.uniform(*_PAUSE_S)
        ended = started + max(0.6, len(text.split()) / _WORDS_PER_S)
        self._lines.append(TimedLine((speaker,), text, round(started, 2), round(ended, 2), kind, owed))
        self._now_s = ended + (ANSWER_S if owed is ReplyExpected.YES else 0.0)

    def done(self, name: str, bots: Sequence[str] = ()) -> Talk:
        """Return the finished dialogue."""
        return Talk(name, tuple(self.people), tuple(self._lines), round(self._now_s, 2), tuple(bots))

    def episode(self) -> None:
        """Add either a call with its follow-ups, or a trap."""
        if self.random.random() < _CALL_SHARE:
            self._call()
        else:
            self._trap(self.random.choices(list(_TRAPS), list(_TRAPS.values()))[0])

    def _call(self) -> None:
        speaker = self.random.choice(self.people)
        # The bot's name as a recogniser writes it, with the same frequency of errors.
        heard: dict[str, int] = self._table["heard"]
        name = self.random.choices(list(heard), list(heard.values()))[0]
        kind = "name" if name.casefold() == BOT.casefold() else "misheard"
        self.say(speaker, self._filled("calls", name), ReplyExpected.YES, kind)
        for _ in range(self.random.choice(_FOLLOW_UPS)):
            self.say(speaker, self._filled("follow_ups"), ReplyExpected.YES, "follow_up")
        if self.random.random() < _THANKS_SHARE:
            self.say(speaker, self._filled("thanks"), ReplyExpected.MAY, "thanks")

    def _trap(self, kind: str) -> None:
        speaker, person = self.random.choice(self.people), ""
        if kind == "others":
            person = self.random.choice([name for name in self.people if name != speaker])
        if kind == "by_bots":
            speaker = self._table["bots"][0]
        owed = ReplyExpected.MAY if kind == "hushes" else ReplyExpected.NO
        self.say(speaker, self._filled(kind, person=person), owed, kind)
        if kind == "hushes":
            # After a request to be quiet, a line without the bot's name is not for the bot.
            self.say(speaker, self._filled("follow_ups"), ReplyExpected.NO, "hushed")

    def _filled(self, pool: str, name: str = BOT, person: str = "") -> str:
        template: str = self.random.choice(self._table[pool])
        said = template.format(name=name, person=person, bot=self._table["bots"][0])
        return said[0].upper() + said[1:]


def _made(part: TemplateSet, table: dict[str, Any], number: int, size: int) -> Talk:
    chatter = [line for line in generate_evening(number, part, lines=2 * LINES).lines if not line.by_bot]
    people = list(dict.fromkeys(line.speaker for line in chatter))[:size]
    people += [name for name in ("Kim", "Noah", "Lena") if name not in people][: size - len(people)]
    script = _Script(f"{part}-talk-{number}", people, table)
    until = script.random.randint(*_BETWEEN)
    for line in chatter[:LINES]:
        speaker = line.speaker if line.speaker in people else script.random.choice(people)
        script.say(speaker, line.text, ReplyExpected.NO, "chatter")
        until -= 1
        if until <= 0:
            script.episode()
            until = script.random.randint(*_BETWEEN)
    return script.done(f"{part}-{number}", table["bots"][:1])


def _alone(part: TemplateSet, table: dict[str, Any]) -> Talk:
    """Return a dialogue of one person with the bot, in which every line is for the bot."""
    script = _Script(f"{part}-alone", ["Kim"], table)
    for text in table["alone"]:
        script.say("Kim", text, ReplyExpected.YES, "alone")
    return script.done(f"{part}-alone")


def _written(part: TemplateSet, entry: dict[str, Any]) -> Talk:
    """Return a handwritten conversation."""
    script = _Script(f"{part}-{entry['name']}", entry["people"], {})
    for number, text in enumerate(entry["talk"].strip().splitlines(), start=1):
        line = _LINE.fullmatch(text.strip())
        if line is None or line["speaker"] not in entry["people"]:
            raise ValueError(f"{part}.toml, conversation {entry['name']!r}, line {number} is no line: {text!r}")
        script.say(line["speaker"], line["text"], ReplyExpected(line["owed"]), "written")
    return script.done(f"{part}: {entry['name']}")
