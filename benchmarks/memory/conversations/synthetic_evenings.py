"""Generates evenings: several people chat, and now and then somebody states a fact worth keeping.

The same seed gives the same evening on every machine. Templates are files. You may look at `tuning` while improving a
method, but never at `held_out`. The report shows results for both.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from random import Random

from pydantic import TypeAdapter

from benchmarks.memory.conversations.conversation import (
    ConversationLine,
    FactStatement,
    PlantedFact,
    RecordedConversation,
)

TEMPLATES = Path(__file__).parents[1] / "templates"
# A fixed date, so that clock times in payloads are always the same.
STARTED_AT = 1_764_957_600.0  # 2025-12-05 18:00 UTC
BOT = "Roomtone"
# There is one fact for this many lines: 12 facts in 200 turns, as in the design note, and a few more for corrections.
FACT_EVERY_LINES = 16
_CORRECTED_SHARE = 0.4
_BARE_SHARE = 0.4
_CORRECTION_AFTER_LINES = (12, 70)
_BOT_SHARE = 0.04
# The share of facts that are stated within a longer line instead of alone.
_WRAPPED_SHARE = 0.5
_PAUSE_S = (2.0, 14.0)


class TemplateSet(StrEnum):
    """The set of templates that an evening uses."""

    TUNING = "tuning"
    HELD_OUT = "held_out"


@dataclass(frozen=True)
class _FactTemplate:
    keys: str
    values: str
    say: tuple[str, ...]
    ask: tuple[str, ...]
    correct: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Templates:
    """A file of templates, as it stands."""

    speakers: tuple[str, ...]
    fact: tuple[_FactTemplate, ...]
    pools: dict[str, tuple[str, ...]]
    chatter: dict[str, tuple[str, ...]]


@dataclass(slots=True)
class _Growing:
    """A fact while its evening is being generated."""

    template: _FactTemplate
    key: str
    speaker: str
    values: list[str]
    statements: list[FactStatement] = field(default_factory=list)
    due: int = -1  # the line from which on it is corrected, or -1

    @property
    def spoken(self) -> str:
        """Return how people say the present value; empty before it is told."""
        return self.statements[-1].value[0] if self.statements else ""


def generate_evening(seed: int, templates: TemplateSet, *, lines: int) -> RecordedConversation:
    """Return one evening of about `lines` lines. The same arguments give the same evening."""
    name = f"{templates}-{seed}"
    return _Writer(_load(templates), Random(name)).write(name, lines)  # noqa: S311 - it makes no keys


class _Writer:
    def __init__(self, templates: _Templates, random: Random) -> None:
        self._templates = templates
        self._random = random
        self._speakers = tuple(random.sample(templates.speakers, random.randint(3, len(templates.speakers))))
        self._keys = {name: random.sample(pool, len(pool)) for name, pool in templates.pools.items()}
        self._lines: list[ConversationLine] = []
        self._facts: list[_Growing] = []
        self._at = STARTED_AT
        self._last = ""

    def write(self, name: str, count: int) -> RecordedConversation:
        random = self._random
        while len(self._lines) < count:
            due = next((fact for fact in self._facts if 0 <= fact.due <= len(self._lines)), None)
            if due is not None:
                self._correct(due)
            elif random.random() < 1 / FACT_EVERY_LINES:
                self._plant()
            else:
                self._chat()
        planted = tuple(
            PlantedFact(
                key=fact.key,
                statements=tuple(fact.statements),
                question=random.choice(fact.template.ask).format(key=fact.key),
            )
            for fact in self._facts
        )
        return RecordedConversation(name=name, origin="made up", lines=tuple(self._lines), facts=planted)

    # -- what is said ----------------------------------------------------------------------------------------

    def _plant(self) -> None:
        template = self._random.choice(self._templates.fact)
        pool = self._keys[template.keys]
        if not pool:
            # All subjects of this template have been used in this evening.
            self._chat()
            return
        key, speaker, values = pool.pop(), self._random.choice(self._speakers), self._templates.pools[template.values]
        fact = _Growing(template, key, speaker, self._random.sample(values, len(values)))
        self._facts.append(fact)
        self._state(fact, self._random.choice(template.say), wrapped=self._random.random() < _WRAPPED_SHARE)
        if (template.correct or template.bare) and self._random.random() < _CORRECTED_SHARE:
            fact.due = len(self._lines) + self._random.randint(*_CORRECTION_AFTER_LINES)

    def _correct(self, fact: _Growing) -> None:
        fact.due = -1
        template = fact.template
        bare = bool(template.bare) and (not template.correct or self._random.random() < _BARE_SHARE)
        if bare:
            others = [name for name in self._speakers if name != fact.speaker]
            back = self._random.choice(template.back).format(key=fact.key, old=fact.spoken)
            self._say(self._random.choice(others), back)
        self._state(fact, self._random.choice(template.bare if bare else template.correct), wrapped=False)

    def _state(self, fact: _Growing, text: str, *, wrapped: bool) -> None:
        old = fact.spoken
        value = tuple(fact.values.pop().split("|"))
        fact.statements.append(FactStatement(len(self._lines), fact.speaker, value))
        sentence = text.format(key=fact.key, value=fact.spoken, old=old)
        sentence = sentence[0].upper() + sentence[1:]
        if wrapped:
            sentence = self._wrapped(sentence)
        self._say(fact.speaker, sentence)

    def _wrapped(self, sentence: str) -> str:
        chatter = self._templates.chatter
        if self._random.random() < 0.5:
            head = self._random.choice(chatter["heads"])
            first = (
                sentence
                if sentence.startswith(("I ", "I'")) or _is_name(sentence)
                else sentence[0].lower() + sentence[1:]
            )
            return f"{head} {first}"
        tail = self._random.choice(chatter["tails"])
        return f"{sentence} {tail[0].upper()}{tail[1:]}"

    def _chat(self) -> None:
        chatter = self._templates.chatter
        if self._random.random() < _BOT_SHARE:
            self._say(BOT, self._random.choice(chatter["bot"]), by_bot=True)
            return
        others = [name for name in self._speakers if name != self._last] or list(self._speakers)
        text = self._random.choice(chatter["lines"]).format(
            small=self._random.randint(2, 40),
            big=self._random.randint(100, 4_000),
            name=self._random.choice(chatter["names"]),
        )
        self._say(self._random.choice(others), text)

    def _say(self, speaker: str, text: str, *, by_bot: bool = False) -> None:
        self._lines.append(ConversationLine(speaker, text, self._at, by_bot))
        self._at = round(self._at + self._random.uniform(*_PAUSE_S), 1)
        self._last = speaker


def _is_name(text: str) -> bool:
    """Return whether a sentence begins with a name, which keeps its capital letter inside another sentence."""
    first = text.split()[0].rstrip(",'s")
    named = ("first_names", "helpers", "siblings", "musicians", "drivers", "children", "relatives", "pets", "days")
    pools = [_load(each).pools.get(pool, ()) for each in TemplateSet for pool in named]
    return any(first == name.split("|")[0] for pool in pools for name in pool)


@cache
def _load(name: TemplateSet) -> _Templates:
    table = tomllib.loads((TEMPLATES / f"{name}.toml").read_text("utf-8"))
    return TypeAdapter(_Templates).validate_python(table)
