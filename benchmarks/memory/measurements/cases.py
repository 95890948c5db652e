"""Opposites and people alike: short talks of which a summary must keep everybody's word, and state nothing opposite."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from benchmarks.memory.conversations.conversation import ConversationLine, RecordedConversation
from benchmarks.memory.conversations.folds import turns_needed
from benchmarks.memory.conversations.synthetic_evenings import STARTED_AT
from benchmarks.memory.folders import CASES
from benchmarks.memory.judges.label_judge import LabelJudge
from benchmarks.memory.judges.readings import UnreadText, kept_readings, reading_key
from benchmarks.memory.judges.statement_judge import StatementJudge
from benchmarks.memory.systems.recorded_answers import is_recorded
from benchmarks.stats import share_of
from compaction.summary.port import MAX_SUMMARY_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from benchmarks.memory.systems.catalogue import SystemSpec
    from benchmarks.progress import Progress
    from benchmarks.report import Json

TABLES = ("opposites", "people_alike")
_TURN_S = 6.0
_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class CaseStatement:
    """Words of somebody that stand together in one sentence, affirmed or denied."""

    who: str
    words: str
    denied: bool

    def __str__(self) -> str:
        return f"{self.who}, {'denied' if self.denied else 'affirmed'}: {self.words}"


@dataclass(frozen=True, slots=True)
class Case:
    """One short talk. `stands`: what a summary must state; `falls`: what it must not. `apart`: for judging only.

    A reader sees both as facts with numbers: from 1 on, what stands first.
    """

    conversation: RecordedConversation
    stands: tuple[CaseStatement, ...]
    falls: tuple[CaseStatement, ...]
    apart: bool


def read_cases(table: str) -> list[Case]:
    """Return the cases of one of `TABLES`, each long enough for one fold."""
    listed = tomllib.loads((CASES / f"{table}.toml").read_text("utf-8"))["case"]
    return [
        Case(
            _padded(f"{table}/{number:02d}", [(who, text) for who, text in each["turns"]]),
            stands=_statements(each["stands"]),
            falls=_statements(each.get("falls", ())),
            apart=each.get("apart", False),
        )
        for number, each in enumerate(listed, start=1)
    ]


def _statements(listed: Iterable[Sequence[str]]) -> tuple[CaseStatement, ...]:
    return tuple(CaseStatement(who, words, sign == "denied") for who, words, sign in listed)


def read_small_talk(*, apart: bool) -> RecordedConversation:
    """Return chatter and lines worth keeping, mixed, of the one half or the other."""
    table = tomllib.loads((CASES / "small_talk.toml").read_text("utf-8"))
    ending = "_apart" if apart else ""
    chatter = set(table[f"chatter{ending}"])
    lines = [*sorted(chatter), *table[f"worth{ending}"]]
    Random(0).shuffle(lines)  # noqa: S311 - it makes no keys
    # Enough of them are folded: the window holds what comes after.
    padded = _padded(
        "small talk", [(("Ada", "Ben", "Cleo")[number % 3], text) for number, text in enumerate(lines)], folds=5
    )
    labelled = frozenset(number for number, line in enumerate(padded.lines) if line.text in chatter)
    return RecordedConversation(padded.name, padded.origin, padded.lines, chatter=labelled)


async def measure_cases(
    entrant: SystemSpec, answers: Path, progress: Progress, unread: list[UnreadText]
) -> dict[str, Json]:
    """Return what one system's text states of the cases, by table and half, and its small talk.

    Of a system with recorded answers, only tables are measured of which all cases are recorded. Texts that nobody has
    read are added to `unread`, and judged by words.
    """
    figures: dict[str, Json] = {}
    for table in TABLES:
        cases = read_cases(table)
        if entrant.recorded and not all(
            is_recorded(case.conversation.name, entrant.recorded, answers) for case in cases
        ):
            continue
        progress.step(f"{entrant.name}, {table}", total=len(cases))
        texts = []
        for case in cases:
            text = await _text_of(entrant, case.conversation)
            texts.append(text)
            key = reading_key(case.conversation.name, text)
            if key not in kept_readings():
                facts = tuple((number, str(each)) for number, each in enumerate((*case.stands, *case.falls), start=1))
                unread.append(UnreadText(key, text, facts))
            progress.advance()
        for half in (False, True):
            name = f"{table}, {'apart' if half else 'tuned'}"
            figures[name] = _judged(
                [(case, text) for case, text in zip(cases, texts, strict=True) if case.apart is half]
            )
    for half in (False, True) if not entrant.recorded else ():
        talk = read_small_talk(apart=half)
        text = await _text_of(entrant, talk)
        share = share_of(LabelJudge(talk).chatter_chars(text, len(talk.lines)), len(text))
        figures[f"small talk, {'apart' if half else 'tuned'}"] = {"lines": len(talk.chatter), "share": share}
    return figures


async def _text_of(entrant: SystemSpec, conversation: RecordedConversation) -> str:
    async with entrant.enter(conversation) as memory:
        for line in conversation.lines:
            await memory.hear(line)
        return (await memory.snapshot()).injected[:MAX_SUMMARY_CHARS]


def _judged(judged: list[tuple[Case, str]]) -> dict[str, Json]:
    due = kept = wrong = 0
    examples: list[Json] = []
    for case, text in judged:
        told = _told(case, text)
        lost = [each for each in case.stands if each not in told]
        false = [each for each in case.falls if each in told]
        due += len(case.stands)
        kept += len(case.stands) - len(lost)
        wrong += bool(false)
        examples += [f"{case.conversation.name} lost {each.who}: {each.words} in: {text}" for each in lost]
        examples += [f"{case.conversation.name} false {each.who}: {each.words} in: {text}" for each in false]
    return {
        "cases": len(judged),
        "due": due,
        "kept": share_of(kept, due),
        "wrong": wrong,
        "examples": examples[:_EXAMPLES],
    }


def _told(case: Case, text: str) -> frozenset[CaseStatement]:
    """Return the statements that a text tells: what a reader found in it, or else by words."""
    statements = (*case.stands, *case.falls)
    read = kept_readings().get(reading_key(case.conversation.name, text))
    if read is not None:
        return frozenset(each for number, each in enumerate(statements, start=1) if number in read)
    judge = StatementJudge(case.conversation.speakers)
    return frozenset(each for each in statements if judge.says_of(text, each.who, each.words, denied=each.denied))


def _padded(name: str, turns: list[tuple[str, str]], *, folds: int = 1) -> RecordedConversation:
    """Return a conversation of these turns and then words of agreement, so that so many folds are due."""
    people = list(dict.fromkeys(who for who, _ in turns))
    said = [*turns, *((people[number % len(people)], "Okay.") for number in range(turns_needed(folds) - len(turns)))]
    lines = tuple(ConversationLine(who, text, STARTED_AT + number * _TURN_S) for number, (who, text) in enumerate(said))
    return RecordedConversation(name, "cases", lines)
