"""The conversations that were written for this project, with labels of what is worth keeping and what is chatter.

`long` is both of them, and after them a generated evening, so that a hundred folds are due.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.memory.conversation import RecordedConversation
from benchmarks.memory.evaluation import turns_needed
from benchmarks.memory.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.transcripts import read_conversation_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.memory.conversation import ConversationLine

FOLDER = Path(__file__).parent / "recorded"
NAMES = ("cabin", "salt_gate")
LONG = "long"
_LONG_FOLDS = 100
# Between one evening and the next.
_PAUSE_S = 3_600.0


@dataclass(frozen=True, slots=True)
class LabelledFact:
    """One fact worth keeping: the line that says it, and the text of the later fact that holds instead, if any."""

    turn: int
    text: str
    replaced_by: str = ""


@dataclass(frozen=True, slots=True)
class WrittenConversation:
    """A conversation with its labels. `chatter`: the lines that a summary should spend no characters on."""

    conversation: RecordedConversation
    facts: tuple[LabelledFact, ...]
    chatter: frozenset[int]

    @property
    def name(self) -> str:
        return self.conversation.name


def read_written(name: str) -> WrittenConversation:
    """Return one of `NAMES`, or `long`."""
    if name == LONG:
        return _long()
    (conversation,) = read_conversation_file(FOLDER / f"{name}.jsonl")
    labels = tomllib.loads((FOLDER / f"{name}.labels.toml").read_text("utf-8"))
    facts = tuple(LabelledFact(**each) for each in labels["fact"])
    return WrittenConversation(conversation, facts, frozenset(labels["chatter"]))


def _long() -> WrittenConversation:
    lines: list[ConversationLine] = []
    facts: list[LabelledFact] = []
    chatter: set[int] = set()
    for each in map(read_written, NAMES):
        facts += [replace(fact, turn=fact.turn + len(lines)) for fact in each.facts]
        chatter |= {turn + len(lines) for turn in each.chatter}
        lines += _later(each.conversation.lines, lines)
    evening = generate_evening(1, TemplateSet.HELD_OUT, lines=turns_needed(_LONG_FOLDS) - len(lines))
    lines += _later(evening.lines, lines)
    return WrittenConversation(RecordedConversation(LONG, "written", tuple(lines)), tuple(facts), frozenset(chatter))


def _later(lines: Sequence[ConversationLine], after: Sequence[ConversationLine]) -> list[ConversationLine]:
    """Return the lines at times after those before them."""
    shift = after[-1].at + _PAUSE_S - lines[0].at if after else 0.0
    return [replace(line, at=line.at + shift) for line in lines]
