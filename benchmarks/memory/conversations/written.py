"""The conversations that were written for this project, with labels of what is worth keeping and what is chatter.

`long` is both of them, and after them a generated evening, so that a hundred folds are due.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.memory.conversations.conversation import LabelledFact, RecordedConversation
from benchmarks.memory.conversations.synthetic_evenings import TemplateSet, generate_evening
from benchmarks.memory.conversations.transcripts import read_conversation_file
from benchmarks.memory.folders import RECORDED
from compaction.window import BATCH_SIZE, RECENT_WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.memory.conversations.conversation import ConversationLine

QUESTIONS = RECORDED / "questions.toml"
ORIGIN = "written"
NAMES = ("cabin", "salt_gate")
LONG = "long"
# The turns of so many folds, the window, and two turns more than the first fold needs.
_LONG_LINES = RECENT_WINDOW + 2 + 100 * BATCH_SIZE
# Between one evening and the next.
_PAUSE_S = 3_600.0


def read_written(name: str) -> RecordedConversation:
    """Return one of `NAMES`, or `long`."""
    if name == LONG:
        return _long()
    (conversation,) = read_conversation_file(RECORDED / f"{name}.jsonl")
    labels = tomllib.loads((RECORDED / f"{name}.labels.toml").read_text("utf-8"))
    questions = {int(turn): text for turn, text in tomllib.loads(QUESTIONS.read_text("utf-8"))[name].items()}
    facts = tuple(LabelledFact(**each, question=questions.get(each["turn"], "")) for each in labels["fact"])
    return replace(conversation, origin=ORIGIN, labels=facts, chatter=frozenset(labels["chatter"]))


def _long() -> RecordedConversation:
    lines: list[ConversationLine] = []
    facts: list[LabelledFact] = []
    chatter: set[int] = set()
    for each in map(read_written, NAMES):
        facts += [replace(fact, turn=fact.turn + len(lines)) for fact in each.labels]
        chatter |= {turn + len(lines) for turn in each.chatter}
        lines += _later(each.lines, lines)
    evening = generate_evening(1, TemplateSet.HELD_OUT, lines=_LONG_LINES - len(lines))
    lines += _later(evening.lines, lines)
    return RecordedConversation(LONG, f"{ORIGIN}, long", tuple(lines), labels=tuple(facts), chatter=frozenset(chatter))


def _later(lines: Sequence[ConversationLine], after: Sequence[ConversationLine]) -> list[ConversationLine]:
    """Return the lines at times after those before them."""
    shift = after[-1].at + _PAUSE_S - lines[0].at if after else 0.0
    return [replace(line, at=line.at + shift) for line in lines]
