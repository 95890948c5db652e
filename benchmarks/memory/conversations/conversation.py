"""The data types that describe a conversation, the facts planted in it, and questions about it.

`synthetic_evenings` generates conversations, and `transcripts` reads supplied ones.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConversationLine:
    """One line of a conversation. `at`: UTC epoch seconds. `by_bot`: the assistant said it."""

    speaker: str
    text: str
    at: float
    by_bot: bool = False


@dataclass(frozen=True, slots=True)
class FactStatement:
    """One statement of a planted fact: its line, its speaker, and its value in every accepted spelling."""

    seq: int
    speaker: str
    value: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlantedFact:
    """One fact worth remembering. `key` names its subject; nothing else in the conversation uses that name.

    `statements` are in order. The first one states the fact and each later one corrects it, so the last one is current.
    """

    kind: str
    key: str
    statements: tuple[FactStatement, ...]
    question: str


@dataclass(frozen=True, slots=True)
class ReferenceQuestion:
    """A question that a person wrote about the conversation, its answer, and the lines with the evidence, if known.

    `stale`: lines with an answer that `evidence` corrects.
    """

    text: str
    answer: str
    evidence: tuple[int, ...] = ()
    stale: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelledFact:
    """One sentence that a summary should state in some words, and the line that says it.

    `replaced_by`: the sentence that holds instead from a later line on. `question`: asks for a lasting fact; empty for
    facts that matter only for a while.
    """

    turn: int
    text: str
    replaced_by: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class HumanSummary:
    """A person's summary of the lines `start <= seq < end`. `entities`: its names and numbers, if they are listed."""

    text: str
    start: int
    end: int
    entities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """A whole conversation: its lines, facts, summaries and questions. `origin` says where it comes from.

    `chatter`: the lines that a summary should spend no characters on.
    """

    name: str
    origin: str
    lines: tuple[ConversationLine, ...]
    facts: tuple[PlantedFact, ...] = ()
    questions: tuple[ReferenceQuestion, ...] = ()
    summaries: tuple[HumanSummary, ...] = ()
    labels: tuple[LabelledFact, ...] = ()
    chatter: frozenset[int] = frozenset()

    @property
    def speakers(self) -> frozenset[str]:
        return frozenset(line.speaker for line in self.lines)
