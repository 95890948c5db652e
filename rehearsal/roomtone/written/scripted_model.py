"""A scripted language model for the written room: it says what it is told to, keeps what it is sent, and folds as
somebody has written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bot.brain.skip import SKIP
from bot.llm.port import NO_TOOLS, ChatMessage, FinishReason, OfferedTools, StreamEnd, StreamItem, Usage
from compaction.errors import CompletionError
from compaction.language.text import plain
from compaction.model import Fact, FactKind, Seq
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Fold, FoldRequest, Summariser
from compaction.untrusted_text import inline

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from compaction.ports import CompletionAnswer, CompletionRequest
    from compaction.session import SessionTimeline
    from rehearsal.script.situation import RecordedFact, RecordedFold


class ScriptedEndpoint:
    """A model's server (`bot.llm.port.ModelEndpoint`) that says what the bot says in the talk, and else SKIP.

    `replies`: what it says, by the words of the turn that it answers. `sent`: the messages of each call.
    """

    model = "scripted"

    def __init__(self) -> None:
        self.replies: dict[str, str] = {}
        self.sent: list[Sequence[ChatMessage]] = []

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        tools: OfferedTools = NO_TOOLS,
        on_usage: Callable[[Usage], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the reply to the last message, and its end."""
        self.sent.append(messages)
        asked = messages[-1].content
        yield next((reply for words, reply in self.replies.items() if inline(plain(words)) in asked), SKIP)
        yield StreamEnd(FinishReason.STOP)

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Raise `CompletionError`: folds are hand-written."""
        raise CompletionError("No model writes folds here.", retryable=False)


class RecordedSummariser:
    """Implements `compaction.summary.port.Summariser` with hand-written folds, by their first turn."""

    name = "recorded"
    model = ""

    def __init__(self, folds: Mapping[int, RecordedFold]) -> None:
        self._folds = folds

    async def fold(self, request: FoldRequest) -> Fold:
        """Return the hand-written fold. Raises `CompletionError` if there is none for this batch."""
        written = self._folds.get(request.start)
        if written is None:
            raise CompletionError(f"There is no hand-written fold from turn {request.start} on.", retryable=False)
        facts = tuple(_fact(each, request) for each in written.facts)
        return Fold(written.gist, facts, written.paragraph, self.name, heading=written.heading)


def _fact(written: RecordedFact, request: FoldRequest) -> Fact:
    """Return a hand-written fact, with speaker and time from its first turn of the batch."""
    first = next((turn for turn in request.turns if turn.seq in written.turns), request.turns[0])
    return Fact(
        turns=tuple(Seq(seq) for seq in written.turns if seq >= request.start) or (first.seq,),
        text=written.text,
        kind=FactKind(written.kind),
        importance=written.importance,
        closes=tuple(
            known.ref
            for known in request.known
            if any(words.casefold() in known.fact.text.casefold() for words in written.closes)
        ),
        speaker=first.parts[0].speaker,
        at=first.started_at,
        owner=written.owner,
        until=written.until,
    )


@dataclass(slots=True)
class WrittenModel:
    """The model of a written room. `summariser`: what folds there. `timeline`: of its session, once that is open."""

    endpoint: ScriptedEndpoint = field(default_factory=ScriptedEndpoint)
    summariser: Summariser = field(default_factory=ExtractiveSummariser)
    timeline: SessionTimeline | None = None
