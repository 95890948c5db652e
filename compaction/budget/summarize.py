"""Summarises messages that were left out of a prompt, by rules. Source: spec 4, phase 3.

Messages that stand for earlier messages (summaries, eviction notes, recalled quotes) are not summarised again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.budget.tool_outputs import is_placeholder, summarize_tool_output
from compaction.language.text import sentences, whole_sentences
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import PartKind
from compaction.summary.extractive import extract_facts, make_gist
from compaction.summary.ledger import SegmentLedger
from compaction.summary.port import Fold, FoldRequest
from compaction.summary.segments import make_segment
from compaction.tokens import estimate_text_tokens, message_tokens
from compaction.untrusted_text import without_marks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compaction.budget.messages import Message

MAX_SUMMARY_CHARS = 1_200
# How many turns are folded together. A session folds the same number at once (`folding.window`).
_BATCH_TURNS = 10
# The kinds of messages that stand for other messages.
_REPRESENTS_OTHERS = frozenset({PartKind.SUMMARY, PartKind.EVICTION_NOTE, PartKind.RECALL, PartKind.CONTINUITY})
# The largest share of the summary for earlier summaries, and the largest share for tool results.
_PREVIOUS_SHARE = 0.5
_TOOLS_SHARE = 0.25
_HEADING = re.compile(r"^(?:\[\d{1,2}:\d{2}\] )?(?:(?P<speaker>[^:\n\[\]]{1,40}): )?(?P<text>.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SummarizeOptions:
    """How to summarise. `previous`: the summary so far, which the new summary continues. `count`: counts tokens."""

    previous: str | None = None
    max_summary_chars: int = MAX_SUMMARY_CHARS
    count: Callable[[str], int] = estimate_text_tokens


@dataclass(frozen=True, slots=True)
class ContextSummary:
    """A summary of messages in whole sentences. The text is empty if nothing in the messages is worth keeping.

    `original_tokens`: the token count of the messages.
    """

    summary: str
    original_tokens: int


def summarize_context(messages: Sequence[Message], options: SummarizeOptions | None = None) -> ContextSummary:
    """Return the best sentences of the messages with their speakers, and the results of tool calls. Deterministic.

    No model writes it: a reply can't wait for a second one, and what leaves the window is folded by a model anyway.
    """
    options = options or SummarizeOptions()
    original_tokens = sum(message_tokens(message, options.count) for message in messages)
    room = options.max_summary_chars
    previous = _newest_sentences(options.previous or _previous_in(messages), int(room * _PREVIOUS_SHARE))
    tools = _newest_sentences(
        " ".join(f"{message.name or 'A tool'}: {summarize_tool_output(message)}" for message in _outputs(messages)),
        int(room * _TOOLS_SHARE),
    )
    left = room - sum(len(each) + 1 for each in (previous, tools) if each)
    rendered = _ledger(messages).render(max_chars=left)
    texts = (previous, "" if rendered is None else rendered.text, tools)
    summary = whole_sentences(" ".join(each for each in texts if each), room)
    return ContextSummary(summary, original_tokens)


def _own(messages: Sequence[Message]) -> list[Message]:
    """Return the messages that don't stand for other messages."""
    return [message for message in messages if message.kind not in _REPRESENTS_OTHERS and not message.is_system]


def _outputs(messages: Sequence[Message]) -> list[Message]:
    return [message for message in _own(messages) if message.is_tool_output and not is_placeholder(message)]


def _previous_in(messages: Sequence[Message]) -> str:
    return " ".join(without_marks(message.content) for message in messages if message.kind is PartKind.SUMMARY)


def _newest_sentences(text: str, max_chars: int) -> str:
    """Return the last whole sentences that fit into `max_chars`."""
    kept: list[str] = []
    for sentence in reversed(sentences(text)):
        max_chars -= len(sentence) + 1
        if max_chars < 0:
            break
        kept.append(sentence)
    return " ".join(reversed(kept))


def _ledger(messages: Sequence[Message]) -> SegmentLedger:
    """Return the facts of the messages. They are extracted in batches, like the turns of a session."""
    turns: list[Turn] = []
    for message in _own(messages):
        if not message.is_tool_output and (parts := _parts(message)):
            at = message.timestamp or 0.0
            kind = TurnKind.ASSISTANT if message.role == "assistant" else TurnKind.SPEECH
            turns.append(Turn(Seq(len(turns)), kind, at, at, parts))
    ledger = SegmentLedger()
    for start in range(0, len(turns), _BATCH_TURNS):
        batch = tuple(turns[start : start + _BATCH_TURNS])
        known = ledger.known_facts()
        facts = extract_facts(batch, start=Seq(start), known=known)
        if facts:
            ledger.add(
                make_segment(
                    FoldRequest(Seq(start), batch, (), None, known),
                    Fold(make_gist(facts, batch), facts),
                    session_id=SessionId("truncated"),
                    revision=0,
                    summariser="extractive",
                    degraded=False,
                    at=0.0,
                )
            )
    return ledger


def _parts(message: Message) -> tuple[TurnPart, ...]:
    """Split a message into the parts of its speakers. Each line of a message has a time and a speaker
    (`format_turn`).
    """
    parts: list[TurnPart] = []
    for line in message.content.splitlines():
        said = _HEADING.match(line)
        if said is None or not said["text"].strip():
            continue
        speaker = said["speaker"] or message.name or message.role.capitalize()
        parts.append(TurnPart(speaker, speaker, said["text"]))
    return tuple(parts)
