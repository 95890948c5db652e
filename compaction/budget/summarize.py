"""Summarises messages that were left out of a prompt, by rules. Source: spec 4, phase 3.

Messages that stand for earlier messages (summaries, eviction notes, recalled quotes) are not summarised again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compaction.budget.messages import is_tool_output
from compaction.budget.tool_outputs import is_placeholder, summarize_tool_output
from compaction.language.text import sentences, whole_sentences
from compaction.model import Seq, Turn, TurnKind, TurnPart
from compaction.payload import PartKind
from compaction.summary.extractive import quote_turns
from compaction.tokens import estimate_text_tokens, estimate_tokens
from compaction.untrusted_text import without_marks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compaction.payload import PayloadPart

MAX_SUMMARY_CHARS = 1_200
# The kinds of messages that nobody said now.
_REPRESENTS_OTHERS = frozenset(
    {PartKind.SYSTEM, PartKind.SUMMARY, PartKind.EVICTION_NOTE, PartKind.RECALL, PartKind.CONTINUITY}
)
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


def summarize_context(messages: Sequence[PayloadPart], options: SummarizeOptions | None = None) -> ContextSummary:
    """Return the best sentences of the messages with their speakers, and the results of tool calls. Deterministic.

    No model writes it: a reply can't wait for a second one, and what leaves the window is folded by a model anyway.
    """
    options = options or SummarizeOptions()
    original_tokens = estimate_tokens(messages, count=options.count)
    room = options.max_summary_chars
    previous = _newest_sentences(options.previous or _previous_in(messages), int(room * _PREVIOUS_SHARE))
    tools = _newest_sentences(
        " ".join(f"{message.name or 'A tool'}: {summarize_tool_output(message)}" for message in _outputs(messages)),
        int(room * _TOOLS_SHARE),
    )
    left = room - sum(len(each) + 1 for each in (previous, tools) if each)
    texts = (previous, quote_turns(_turns(messages), max_chars=left), tools)
    summary = whole_sentences(" ".join(each for each in texts if each), room)
    return ContextSummary(summary, original_tokens)


def _own(messages: Sequence[PayloadPart]) -> list[PayloadPart]:
    """Return the messages that don't stand for other messages."""
    return [message for message in messages if message.kind not in _REPRESENTS_OTHERS]


def _outputs(messages: Sequence[PayloadPart]) -> list[PayloadPart]:
    return [message for message in _own(messages) if is_tool_output(message) and not is_placeholder(message)]


def _previous_in(messages: Sequence[PayloadPart]) -> str:
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


def _turns(messages: Sequence[PayloadPart]) -> tuple[Turn, ...]:
    """Return what people and the assistant say in the messages."""
    turns: list[Turn] = []
    for message in _own(messages):
        if not is_tool_output(message) and (parts := _parts(message)):
            at = message.timestamp or 0.0
            kind = TurnKind.ASSISTANT if message.role == "assistant" else TurnKind.SPEECH
            turns.append(Turn(Seq(len(turns)), kind, at, at, parts))
    return tuple(turns)


def _parts(message: PayloadPart) -> tuple[TurnPart, ...]:
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
