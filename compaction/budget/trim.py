"""Trims a conversation that is too large for a model. Pure and deterministic.

Messages in order of importance, highest first: system prompts and tool rules; the current turn; tool calls
for the current turn; the newest turns; facts about the participants; the other turns, newest
first; the summary; live notes; recalled quotes; older conversations; old tool outputs. The least important are left out
first, and one note says what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, assert_never

from compaction.budget.messages import Message, group_messages, message_steps
from compaction.budget.tool_outputs import MAX_TOOL_OUTPUT_AGE
from compaction.payload import PartKind
from compaction.tokens import estimate_text_tokens, message_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

PRESERVE_RECENT_TURNS = 10


class TrimStrategy(StrEnum):
    """Which messages are left out first: the least important or the oldest."""

    PRIORITY = "priority-based"
    OLDEST = "oldest-first"


@dataclass(frozen=True, slots=True)
class TrimOptions:
    """How to trim. `preserve_recent_turns`: how many of the newest turns are kept in preference to older turns.

    `current_step`: the model call that is being prepared, by default the one after the last. `searchable`: the model
    has memory search, so the note mentions it. `count`: counts the tokens of a text.
    """

    trim_strategy: TrimStrategy = TrimStrategy.PRIORITY
    preserve_system_prompt: bool = True
    preserve_recent_turns: int = PRESERVE_RECENT_TURNS
    max_tool_output_age: int = MAX_TOOL_OUTPUT_AGE
    current_step: int | None = None
    searchable: bool = False
    count: Callable[[str], int] = estimate_text_tokens


class _Worth(IntEnum):
    """How important a message is. Messages with the lowest value are left out first."""

    STALE_OUTPUT = 0
    CONTINUITY = 1
    RECALL = 2
    NOTE = 3
    SUMMARY = 4
    TURN = 5
    PARTICIPANTS = 6
    NEWEST = 7
    ACTIVE = 8
    NEVER = 9


_WORTH_OF_KIND = {
    PartKind.CONTINUITY: _Worth.CONTINUITY,
    PartKind.RECALL: _Worth.RECALL,
    PartKind.NOTE: _Worth.NOTE,
    PartKind.SUMMARY: _Worth.SUMMARY,
    PartKind.PARTICIPANTS: _Worth.PARTICIPANTS,
    PartKind.TOOL: _Worth.STALE_OUTPUT,
    PartKind.CURRENT: _Worth.NEVER,
    PartKind.EVICTION_NOTE: _Worth.NEVER,
}


def trim_conversation(
    messages: Sequence[Message], target_tokens: int, options: TrimOptions | None = None
) -> list[Message]:
    """Return the messages to keep, in order, with one note about the messages that were left out.

    Returns all messages if they fit. Messages that are never left out may exceed `target_tokens`, so the caller must
    check the result (`prompt.build_final_prompt`).
    """
    return TrimResult.of(messages, target_tokens, options or TrimOptions()).messages


@dataclass(frozen=True, slots=True)
class TrimResult:
    """The messages to send (with the note), the messages that were left out (in order), and the tokens of
    what is sent.
    """

    messages: list[Message]
    dropped: tuple[Message, ...]
    tokens: int

    @classmethod
    def of(cls, messages: Sequence[Message], target_tokens: int, options: TrimOptions) -> TrimResult:
        costs = [message_tokens(message, options.count) for message in messages]
        total = sum(costs)
        if total <= target_tokens:
            return cls(list(messages), (), total)
        out: set[int] = set()
        trimmed = cls(list(messages), (), total)
        for group in _droppable(messages, options):
            out.update(group)
            total -= sum(costs[at] for at in group)
            # The note costs tokens too. It is made only once the other messages fit, to save time.
            if total <= target_tokens:
                trimmed = cls._without(messages, costs, out, options)
                if trimmed.tokens <= target_tokens:
                    return trimmed
        return cls._without(messages, costs, out, options) if out else trimmed

    @classmethod
    def _without(
        cls, messages: Sequence[Message], costs: Sequence[int], out: set[int], options: TrimOptions
    ) -> TrimResult:
        dropped = tuple(messages[at] for at in sorted(out))
        note = make_eviction_note(dropped, tokens=sum(costs[at] for at in out), searchable=options.searchable)
        kept = [message for at, message in enumerate(messages) if at not in out]
        tokens = sum(cost for at, cost in enumerate(costs) if at not in out)
        place = next((at for at, message in enumerate(kept) if message.kind is PartKind.EVICTION_NOTE), None)
        if place is None:
            # The note goes after the system prompts, where it can't separate a tool call from its result.
            place = next((at for at, message in enumerate(kept) if not message.is_system), len(kept))
            kept.insert(place, note)
        else:
            # There is only one note. If the messages already contain one, the new text is appended to it.
            tokens -= message_tokens(kept[place], options.count)
            kept[place] = note = replace(kept[place], content=f"{kept[place].content}\n{note.content}")
        return cls(kept, dropped, tokens + message_tokens(note, options.count))


def make_eviction_note(dropped: Sequence[Message], *, tokens: int, searchable: bool) -> Message:
    """Return the note about messages that are not sent, with their number, tokens and time range."""
    times = [message.timestamp for message in dropped if message.timestamp is not None]
    said = f", said from {_clock(min(times))} to {_clock(max(times))} UTC" if times else ""
    hint = " The full transcript is searchable via memory_search." if searchable else ""
    content = f"[Context rolled: {len(dropped)} messages evicted ({tokens} tokens{said}).{hint}]"
    return Message("system", content, kind=PartKind.EVICTION_NOTE, timestamp=min(times, default=None))


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _droppable(messages: Sequence[Message], options: TrimOptions) -> Iterable[tuple[int, ...]]:
    """Return the groups that may be left out, in the order in which to leave them out."""
    found = group_messages(messages)
    worths = _worths(messages, found, options)
    droppable = [(worth, at, group) for at, (group, worth) in enumerate(zip(found, worths, strict=True))]
    droppable = [each for each in droppable if each[0] is not _Worth.NEVER]
    match options.trim_strategy:
        case TrimStrategy.PRIORITY:
            # Quotes are left out from the last, which is the least similar one. Other groups are left out from the
            # oldest.
            droppable.sort(key=lambda each: (each[0], -each[1] if each[0] is _Worth.RECALL else each[1]))
        case TrimStrategy.OLDEST:
            droppable.sort(key=lambda each: (each[0] >= _Worth.NEWEST, each[1]))
        case _:
            assert_never(options.trim_strategy)
    return [group for _, _, group in droppable]


def _worths(messages: Sequence[Message], found: Sequence[tuple[int, ...]], options: TrimOptions) -> list[_Worth]:
    current = _current(messages)
    at_step = message_steps(messages)
    now = options.current_step
    if now is None:
        now = max(
            (step + (message.role == "assistant") for step, message in zip(at_step, messages, strict=True)), default=0
        )
    worths: list[_Worth] = []
    for group in found:
        first = messages[group[0]]
        worth = _WORTH_OF_KIND.get(first.kind) if first.kind is not None else None
        if worth is None:
            worth = _Worth.TURN
            if first.kind is PartKind.SYSTEM or (first.kind is None and first.is_system):
                worth = _Worth.NEVER if options.preserve_system_prompt else _Worth.TURN
            elif current in group:
                worth = _Worth.NEVER
            elif current is not None and group[0] > current:
                worth = _Worth.ACTIVE
            elif any(messages[at].is_tool_output for at in group):
                age = now - max(at_step[at] for at in group)
                worth = _Worth.STALE_OUTPUT if age > options.max_tool_output_age else _Worth.TURN
        worths.append(worth)
    turns = [at for at, worth in enumerate(worths) if worth is _Worth.TURN]
    for at in turns[max(0, len(turns) - options.preserve_recent_turns) :]:
        worths[at] = _Worth.NEWEST
    return worths


def _current(messages: Sequence[Message]) -> int | None:
    """Return the position of the turn that is being answered: the last message of a person, or else the
    last message.
    """
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].kind is PartKind.CURRENT:
            return at
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "user" and messages[at].kind in {None, PartKind.TURN}:
            return at
    return len(messages) - 1 if messages else None
