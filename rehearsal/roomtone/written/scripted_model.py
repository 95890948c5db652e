"""A scripted language model for the written room: it says what it is told to, keeps what it is sent, and folds as
somebody has written by hand.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field

from bot.brain.skip import SKIP
from bot.embedding.sentence_encoder import MODEL_NAME, SentenceEncoder
from bot.llm.budgeted import MEMORY_SEARCH
from bot.llm.port import NO_TOOLS, ChatMessage, ChatRole, FinishReason, OfferedTools, StreamEnd, StreamItem
from bot.models.catalogue import EMBED_SENTENCES
from bot.models.directory import ModelDirectory
from bot.settings import ModelsSettings
from compaction.errors import CompletionError
from compaction.language.text import plain
from compaction.model import Fact, FactKind, Seq
from compaction.payload import MessageToolCall
from compaction.ports import CompletionAnswer, CompletionRequest, Embedder, WordLikeness
from compaction.session import SessionTimeline
from compaction.summary.extractive import ExtractiveSummariser
from compaction.summary.port import Fold, FoldRequest, Summariser
from compaction.untrusted_text import inline
from rehearsal.script.situation import RecordedFact, RecordedFold


@dataclass(frozen=True, slots=True)
class SentMessages:
    """What a model is sent."""

    messages: tuple[ChatMessage, ...]
    tools: OfferedTools


class ScriptedEndpoint:
    """A model's server (`bot.llm.port.ModelEndpoint`) that says what the bot says in the talk, and else SKIP.

    `replies`: what it says, by the words of the turn that it answers. `query`: what it searches the memory for before
    its next answer, if it may. `calls`: what it was sent. `answered`: whether it has answered.
    """

    model = "scripted"

    def __init__(self) -> None:
        self.replies: dict[str, str] = {}
        self.query = ""
        self.calls: list[SentMessages] = []
        self.answered = False

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        tools: OfferedTools = NO_TOOLS,
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the reply to what somebody said last, or the search before it, and its end."""
        self.calls.append(SentMessages(tuple(messages), tools))
        query, self.query = self.query, ""
        if query and tools.callable_now and MEMORY_SEARCH in (each.name for each in tools.offers):
            search = MessageToolCall("search", MEMORY_SEARCH, json.dumps({"query": query}, ensure_ascii=False))
            yield StreamEnd(FinishReason.TOOL_CALLS, (search,))
            return
        self.answered = True
        asked = next(each.content for each in reversed(messages) if each.role is ChatRole.USER)
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


class LocalEmbedder:
    """The bot's local embedding model (`compaction.ports.WordComparer`) without its thread: no virtual time passes."""

    model = MODEL_NAME

    def __init__(self, encoder: SentenceEncoder) -> None:
        self._encoder = encoder

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Sequence[Sequence[float]]:
        """Return one unit vector per text. See `compaction.ports.Embedder`."""
        return [self._encoder.embed(text).tolist() for text in texts]

    async def compare_words(self, query: str, texts: Sequence[str]) -> Sequence[WordLikeness]:
        """Return how each text is like the query, word by word. See `compaction.ports.WordComparer`."""
        return self._encoder.compare_words(query, texts)


def local_embedder(models: ModelsSettings) -> LocalEmbedder | None:
    """Return the local embedding model, or None if it is not here. Raises `ModelError` if it cannot be read."""
    here = ModelDirectory(models.directory)
    return LocalEmbedder(SentenceEncoder(here.path(EMBED_SENTENCES))) if here.holds(EMBED_SENTENCES) else None


@dataclass(slots=True)
class WrittenModel:
    """The model of a written room. `summariser`: what folds there. `embedder`: of the memory search; None: it is by
    words alone. `timeline`: of its session, once that is open.
    """

    endpoint: ScriptedEndpoint = field(default_factory=ScriptedEndpoint)
    summariser: Summariser = field(default_factory=ExtractiveSummariser)
    embedder: Embedder | None = None
    timeline: SessionTimeline | None = None
