"""What a memory is measured with: a conversation, what was planted in it, and what should be found again.

Values alone; where they come from is `evenings` (made up) and `transcripts` (brought along).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConversationLine:
    """One contribution. `at`: UTC epoch seconds. `by_bot`: the assistant said it."""

    speaker: str
    text: str
    at: float
    by_bot: bool = False


@dataclass(frozen=True, slots=True)
class FactStatement:
    """One time a planted fact was told: in which line, by whom, with which value (the ways to write it)."""

    seq: int
    speaker: str
    value: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlantedFact:
    """One thing worth remembering. `key` names what it is about, and nothing else in the conversation does.

    `statements` are in order: the first tells it, each later one corrects it, so the last holds.
    """

    kind: str
    key: str
    statements: tuple[FactStatement, ...]
    question: str

    def known_at(self, seq: int) -> FactStatement | None:
        """Return what holds after the lines before `seq`, or None when it wasn't told by then."""
        told = [each for each in self.statements if each.seq < seq]
        return told[-1] if told else None

    def in_flux(self, start: int, end: int) -> bool:
        """Return whether it was corrected in the lines `start <= seq < end`."""
        return any(start <= each.seq < end for each in self.statements[1:])


@dataclass(frozen=True, slots=True)
class ReferenceQuestion:
    """A question somebody wrote about the conversation, its answer, and the lines that hold it, where known."""

    text: str
    answer: str
    evidence: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HumanSummary:
    """What a person wrote about lines `start <= seq < end`."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RecordedConversation:
    """A whole conversation: its lines, and whatever is known about it. `origin` is where it comes from."""

    name: str
    origin: str
    lines: tuple[ConversationLine, ...]
    facts: tuple[PlantedFact, ...] = ()
    questions: tuple[ReferenceQuestion, ...] = ()
    summaries: tuple[HumanSummary, ...] = ()

    @property
    def speakers(self) -> frozenset[str]:
        """Return the names of everybody who speaks."""
        return frozenset(line.speaker for line in self.lines)
