"""Summarises messages that were left out of a prompt. Source: spec 4, phase 3.

A model writes the summary if one is given; otherwise, or if the model fails, rules write it. Messages that stand for
earlier messages (summaries, eviction notes, recalled quotes) are not summarised again. The model is never sent more
than its limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from compaction.budget.tool_outputs import is_placeholder, summarize_tool_output
from compaction.errors import CompletionError
from compaction.language.text import plain, sentences, whole_sentences
from compaction.model import Seq, SessionId, Turn, TurnKind, TurnPart
from compaction.payload import PartKind
from compaction.ports import CompletionRequest
from compaction.summary.checks import sources_of, unfounded
from compaction.summary.extractive import extract_facts, make_gist
from compaction.summary.ledger import SegmentLedger
from compaction.summary.port import Fold, FoldRequest
from compaction.summary.segments import make_segment
from compaction.tokens import MESSAGE_OVERHEAD_TOKENS, estimate_text_tokens, message_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compaction.budget.messages import Message
    from compaction.ports import Completion

MAX_SUMMARY_CHARS = 1_200
# How many turns are folded together. A session folds the same number at once (`folding.window`).
_BATCH_TURNS = 10
_PROMPT = "truncated.v1.txt"
_SEPARATOR = "\n=====\n"
# The kinds of messages that stand for other messages.
_REPRESENTS_OTHERS = frozenset({PartKind.SUMMARY, PartKind.EVICTION_NOTE, PartKind.RECALL, PartKind.CONTINUITY})
# The largest share of the summary for earlier summaries, and the largest share for tool results.
_PREVIOUS_SHARE = 0.5
_TOOLS_SHARE = 0.25
_HEADING = re.compile(r"^(?:\[\d{1,2}:\d{2}\] )?(?:(?P<speaker>[^:\n\[\]]{1,40}): )?(?P<text>.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SummarizeOptions:
    """How to summarise. `previous`: the summary so far, which the new summary continues.

    `completion`: the model to ask, or None to use the rules alone. `max_input_tokens`: how many tokens the model may be
    sent, counted by `count`.
    """

    previous: str | None = None
    completion: Completion | None = None
    max_summary_chars: int = MAX_SUMMARY_CHARS
    max_input_tokens: int = 8_192
    max_output_tokens: int = 400
    count: Callable[[str], int] = estimate_text_tokens


@dataclass(frozen=True, slots=True)
class ContextSummary:
    """A summary of messages in whole sentences. The text is empty if nothing in the messages is worth keeping.

    `original_tokens`: the token count of the messages. `by_model`: whether a model wrote the summary.
    """

    summary: str
    original_tokens: int
    by_model: bool = False


async def summarize_context(messages: Sequence[Message], options: SummarizeOptions | None = None) -> ContextSummary:
    """Return a summary of `messages`. If the model fails, rules make the summary.

    The caller sets the deadline (asyncio.timeout). *Cancellation*: safe at any point.
    """
    options = options or SummarizeOptions()
    original_tokens = sum(message_tokens(message, options.count) for message in messages)
    if options.completion is not None:
        written = await _by_model(messages, options, options.completion)
        if written:
            return ContextSummary(written, original_tokens, by_model=True)
    return ContextSummary(summarize_by_rules(messages, options), original_tokens)


def summarize_by_rules(messages: Sequence[Message], options: SummarizeOptions | None = None) -> str:
    """Return the best sentences of the messages with their speakers, and the results of tool calls. Deterministic."""
    options = options or SummarizeOptions()
    room = options.max_summary_chars
    previous = _newest_sentences(options.previous or _previous_in(messages), int(room * _PREVIOUS_SHARE))
    tools = _newest_sentences(
        " ".join(f"{message.name or 'A tool'}: {summarize_tool_output(message)}" for message in _outputs(messages)),
        int(room * _TOOLS_SHARE),
    )
    left = room - sum(len(each) + 1 for each in (previous, tools) if each)
    rendered = _ledger(messages).render(max_chars=left)
    texts = (previous, "" if rendered is None else rendered.text, tools)
    return whole_sentences(" ".join(each for each in texts if each), room)


def _own(messages: Sequence[Message]) -> list[Message]:
    """Return the messages that don't stand for other messages."""
    return [message for message in messages if message.kind not in _REPRESENTS_OTHERS and not message.is_system]


def _outputs(messages: Sequence[Message]) -> list[Message]:
    return [message for message in _own(messages) if message.is_tool_output and not is_placeholder(message)]


def _previous_in(messages: Sequence[Message]) -> str:
    return " ".join(message.content for message in messages if message.kind is PartKind.SUMMARY)


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


async def _by_model(messages: Sequence[Message], options: SummarizeOptions, completion: Completion) -> str:
    """Return the model's summary, or an empty text if the model failed or its summary is unusable."""
    request, sources = _request(messages, options)
    if request is None:
        return ""
    try:
        answer = await completion.complete(request)
    except CompletionError:
        return ""
    text = plain(answer.text)
    if answer.finish_reason == "length" or not text:
        return ""
    known = sources_of(sources, ())
    kept = " ".join(sentence for sentence in sentences(text) if not unfounded(sentence, known))
    return whole_sentences(kept, options.max_summary_chars)


def _request(messages: Sequence[Message], options: SummarizeOptions) -> tuple[CompletionRequest | None, list[str]]:
    """Return the request to the model, and the texts that the request contains. The request is None if no message fits.

    If not all messages fit, the newest messages are used.
    """
    system, user = (files("compaction.summary") / "prompts" / _PROMPT).read_text(encoding="utf-8").split(_SEPARATOR, 1)
    system = Template(system).substitute(max_chars=options.max_summary_chars)
    previous = options.previous or _previous_in(messages)
    frame = Template(user).substitute(previous=previous or "None yet.", messages="")
    room = options.max_input_tokens - options.count(system) - options.count(frame) - 2 * MESSAGE_OVERHEAD_TOKENS
    lines: list[str] = []
    for message in reversed(_own(messages)):
        said = summarize_tool_output(message) if message.is_tool_output else message.content
        line = f"{message.name or message.role}: {said}"
        room -= options.count(f"{line}\n")
        if room < 0:
            break
        lines.append(line)
    if not lines:
        return None, []
    prompt = Template(user).substitute(previous=previous or "None yet.", messages="\n".join(reversed(lines)))
    return CompletionRequest(system, prompt, options.max_output_tokens), [previous, *lines]
