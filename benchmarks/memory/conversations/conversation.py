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

    key: str
    statements: tuple[FactStatement, ...]
    question: str


@dataclass(frozen=True, slots=True)
class ReferenceQuestion:
    """A question that a person wrote about the conversation, and the lines with its answer."""

    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """A whole conversation: its lines, planted facts and questions. `origin` says where it comes from."""

    name: str
    origin: str
    lines: tuple[ConversationLine, ...]
    facts: tuple[PlantedFact, ...] = ()
    questions: tuple[ReferenceQuestion, ...] = ()

    @property
    def speakers(self) -> frozenset[str]:
        return frozenset(line.speaker for line in self.lines)
