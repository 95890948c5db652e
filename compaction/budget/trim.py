"""Trims the messages of a model call to a number of tokens. Pure and deterministic. Every model call is trimmed here.

Messages have a worth (`Worth`), and the least worth is left out first, among equals the oldest. The window of turns is
cut in one go to four fifths of its room, so that not every reply cuts it again. In the rolling mode the window is cut
first. One note stands for all that is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

from compaction.budget.eviction_note import EvictedTurns, join_notes, make_eviction_note
from compaction.budget.messages import group_messages, is_tool_output, message_steps, next_step
from compaction.budget.tool_outputs import ToolOutputOptions, active_outputs
from compaction.payload import PartKind, PayloadPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


PRESERVE_RECENT_TURNS = 10
# Spec 2: the share of the room that is used after an eviction, and how many of the newest messages always stay.
TARGET_UTILIZATION = 0.8
MIN_KEEP_MESSAGES = 10
# A share so small that no turn fits into it.
_NEXT_TO_NOTHING = 1e-9


_M = TypeVar("_M", bound="PayloadPart | _Unit")


class TrimStrategy(StrEnum):
    """Which messages are left out first: the least important or the oldest."""

    PRIORITY = "priority-based"
    OLDEST = "oldest-first"


@dataclass(frozen=True, slots=True)
class TrimOptions:
    """How to trim. `preserve_recent_turns`: how many of the newest turns are worth more than other turns.

    `target_utilization`: the share of the room that is used after the window was cut. `rolling`: cut the window before
    anything else, to at least `min_keep_messages`. `eviction_note`: whether a note stands for what is left out.
    `answers_last`: if none of the messages is the current turn by its kind, the last that a person said is it, and is
    never left out.

    `summarize_on_truncate`: the best sentences of the turns without room stand beside the note. The caller picks them.

    `evicted`: the turns that the session has evicted before, for the note. `searchable`: the model has memory search,
    so the note mentions it. `zone`: of the times in the note.
    """

    trim_strategy: TrimStrategy = TrimStrategy.PRIORITY
    preserve_system_prompt: bool = True
    preserve_recent_turns: int = PRESERVE_RECENT_TURNS
    target_utilization: float = TARGET_UTILIZATION
    min_keep_messages: int = MIN_KEEP_MESSAGES
    eviction_note: bool = True
    summarize_on_truncate: bool = False
    tool_outputs: ToolOutputOptions = field(default_factory=ToolOutputOptions)
    rolling: bool = False
    answers_last: bool = True
    evicted: EvictedTurns | None = None
    searchable: bool = False
    zone: tzinfo = UTC


class Worth(IntEnum):
    """How important a message is. Messages with the lowest value are left out first."""

    STALE_OUTPUT = 0
    CONTINUITY = 1
    RECALL = 2
    NOTE = 3
    CHAPTER = 4
    SUMMARY = 5
    # Older turns, and fresh results of tools for earlier questions.
    WINDOW = 6
    PARTICIPANTS = 7
    NEWEST = 8
    ACTIVE_FILE = 9
    # Calls of tools for the current turn, and their results.
    CURRENT_WORK = 10
    # Only if the options allow it.
    SYSTEM = 11
    NEVER = 12


_WORTH_OF_KIND = {
    PartKind.CONTINUITY: Worth.CONTINUITY,
    PartKind.RECALL: Worth.RECALL,
    PartKind.NOTE: Worth.NOTE,
    PartKind.CHAPTER: Worth.CHAPTER,
    PartKind.SUMMARY: Worth.SUMMARY,
    PartKind.PARTICIPANTS: Worth.PARTICIPANTS,
    PartKind.EVICTION_NOTE: Worth.NEVER,
    PartKind.CURRENT: Worth.NEVER,
}
_WINDOW = frozenset({Worth.WINDOW, Worth.NEWEST})
# The parts before which the note stands: the first of them that is sent.
_AFTER_THE_NOTE = frozenset({PartKind.TURN, PartKind.TOOL, PartKind.NOTE, PartKind.RECALL, PartKind.CURRENT})


def trim_conversation(
    messages: Sequence[PayloadPart], target_tokens: int, options: TrimOptions | None = None
) -> list[PayloadPart]:
    """Return the messages to keep, in order, with one note about the messages that were left out.

    Returns all messages if they fit. Messages that are never left out may exceed `target_tokens`, so the caller must
    check the result (`prompt.build_final_prompt`).
    """
    if _cost(messages) <= target_tokens:
        return list(messages)
    options = options or TrimOptions()
    cut = _Cut(messages, target_tokens, options)
    if options.trim_strategy is TrimStrategy.OLDEST:
        cut.leave_out(sorted(cut.droppable(), key=lambda unit: (unit.worth >= Worth.NEWEST, unit.positions)))
        return cut.kept()
    if options.rolling:
        cut.roll()
    for worth in Worth:
        if worth is Worth.WINDOW and not cut.fits():
            cut.evict_window()
        cut.leave_out(unit for unit in cut.droppable() if unit.worth is worth)
    return cut.kept()


@dataclass(frozen=True, slots=True)
class RollingEviction(Generic[_M]):
    """The kept and the evicted messages, each in order. Timestamps: of the first and the last evicted message that have
    one, in UTC epoch seconds.
    """

    kept: tuple[_M, ...]
    evicted: tuple[_M, ...]

    @property
    def evicted_count(self) -> int:
        return len(self.evicted)

    @property
    def evicted_tokens(self) -> int:
        return _cost(self.evicted)

    @property
    def kept_tokens(self) -> int:
        return _cost(self.kept)

    @property
    def first_evicted_timestamp(self) -> float | None:
        return next((each.timestamp for each in self.evicted if each.timestamp is not None), None)

    @property
    def last_evicted_timestamp(self) -> float | None:
        return next((each.timestamp for each in reversed(self.evicted) if each.timestamp is not None), None)


def rolling_evict(
    messages: Sequence[_M],
    *,
    max_context_tokens: int,
    target_utilization: float = TARGET_UTILIZATION,
    min_keep_messages: int = MIN_KEEP_MESSAGES,
) -> RollingEviction[_M]:
    """Evict the oldest messages until the rest is within `target_utilization` of `max_context_tokens`. Source: spec 2.

    Evicts nothing if all messages fit into `max_context_tokens`. The newest `min_keep_messages` stay even if they alone
    exceed the limit. Deterministic.
    """
    kept_tokens = _cost(messages)
    count = 0
    if kept_tokens > max_context_tokens:
        target = int(max_context_tokens * target_utilization)
        while count < len(messages) - min_keep_messages and kept_tokens > target:
            kept_tokens -= messages[count].tokens
            count += 1
    return RollingEviction(tuple(messages[count:]), tuple(messages[:count]))


@dataclass(slots=True)
class _Unit:
    """Messages that are kept or left out together, by their positions, which also tell which units are older."""

    positions: tuple[int, ...]
    worth: Worth
    timestamp: float | None
    tokens: int
    out: bool = False


class _Cut:
    """Which units are left out so far, and what the rest costs with the note."""

    def __init__(self, messages: Sequence[PayloadPart], limit: int, options: TrimOptions) -> None:
        self._all = messages
        self._limit = limit
        self._options = options
        self._units = _units(messages, options)
        self._tokens = sum(message.tokens for message in messages)
        self._made: list[PayloadPart] | None = None

    def droppable(self) -> list[_Unit]:
        """Return the units that may be left out and are not, the oldest first."""
        return [unit for unit in self._units if unit.worth is not Worth.NEVER and not unit.out]

    def fits(self) -> bool:
        # The note costs tokens too. It is made only once the other messages fit, to save time.
        return self._tokens <= self._limit and _cost(self.kept()) <= self._limit

    def leave_out(self, units: Iterable[_Unit]) -> None:
        """Leave out units, one by one, until the rest fits."""
        for unit in units:
            if self.fits():
                return
            self._drop(unit)

    def roll(self) -> None:
        """Evict the oldest turns until the whole is within the target share of the limit. The newest few stay."""
        window = self._window()
        rest = self._tokens - _cost(window)
        room = max(1, self._limit - rest)
        # If the other parts alone exceed the target, only the newest few turns stay.
        share = (int(self._limit * self._options.target_utilization) - rest) / room
        self._evict(window, room, min(1.0, max(_NEXT_TO_NOTHING, share)), self._options.min_keep_messages)

    def evict_window(self) -> None:
        """Evict the oldest turns until the window is within the target share of its room. The newest stay."""
        window = self._window()
        room = max(0, self._limit - (self._tokens - _cost(window)))
        newest = sum(unit.worth is Worth.NEWEST for unit in window)
        self._evict(window, room, self._options.target_utilization, newest)

    def kept(self) -> list[PayloadPart]:
        """Return what is kept, with the note."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> list[PayloadPart]:
        options = self._options
        gone = {at for unit in self._units if unit.out for at in unit.positions}
        kept = [message for at, message in enumerate(self._all) if at not in gone]
        if not gone or not options.eviction_note:
            return kept
        note = make_eviction_note(
            [self._all[at] for at in sorted(gone)],
            evicted=options.evicted,
            now=max((message.timestamp for message in self._all if message.timestamp is not None), default=None),
            zone=options.zone,
            searchable=options.searchable,
            count=options.tool_outputs.count,
        )
        place = next((at for at, message in enumerate(kept) if message.kind is PartKind.EVICTION_NOTE), None)
        if place is None:
            # Where the conversation begins.
            begin = next((at for at, message in enumerate(kept) if message.kind in _AFTER_THE_NOTE), len(kept))
            kept.insert(begin, note)
        else:
            # One that tells of `evicted` tells of the earlier note's turns too.
            joined = options.evicted is None
            kept[place] = join_notes(kept[place], note, options.tool_outputs.count) if joined else note
        return kept

    def _window(self) -> list[_Unit]:
        """Return the units of the window in the order in which they are evicted."""
        window = [unit for unit in self._units if unit.worth in _WINDOW and not unit.out]
        return sorted(window, key=lambda unit: (unit.worth, unit.positions))

    def _evict(self, window: Sequence[_Unit], room: int, target: float, keep: int) -> None:
        evicted = rolling_evict(window, max_context_tokens=room, target_utilization=target, min_keep_messages=keep)
        for unit in evicted.evicted:
            self._drop(unit)

    def _drop(self, unit: _Unit) -> None:
        unit.out = True
        self._tokens -= unit.tokens
        self._made = None


def _cost(messages: Iterable[PayloadPart | _Unit]) -> int:
    return sum(message.tokens for message in messages)


def _units(messages: Sequence[PayloadPart], options: TrimOptions) -> list[_Unit]:
    """Return the messages as units with their worth, in order."""
    current = _current(messages, options)
    steps = message_steps(messages)
    now = next_step(messages)
    active = active_outputs(messages, now, options.tool_outputs)
    units: list[_Unit] = []
    for group in group_messages(messages):
        kind = messages[group[0]].kind
        outputs = [steps[at] for at in group if is_tool_output(messages[at])]
        if kind in _WORTH_OF_KIND:
            worth = _WORTH_OF_KIND[kind]
        elif kind is PartKind.SYSTEM:
            worth = Worth.NEVER if options.preserve_system_prompt else Worth.SYSTEM
        elif current is not None and group[-1] >= current:
            worth = Worth.NEVER if current in group else Worth.CURRENT_WORK
        elif active.intersection(group):
            worth = Worth.ACTIVE_FILE
        else:
            is_stale = outputs and now - max(outputs) > options.tool_outputs.max_tool_output_age
            worth = Worth.STALE_OUTPUT if is_stale else Worth.WINDOW
        units.append(_Unit(group, worth, messages[group[0]].timestamp, sum(messages[at].tokens for at in group)))
    turns = [
        unit for unit in units if unit.worth is Worth.WINDOW and messages[unit.positions[0]].kind is not PartKind.TOOL
    ]
    for unit in turns[max(0, len(turns) - options.preserve_recent_turns) :]:
        unit.worth = Worth.NEWEST
    return units


def _current(messages: Sequence[PayloadPart], options: TrimOptions) -> int | None:
    """Return the position of the turn that is being answered."""
    newest_first = list(reversed(list(enumerate(messages))))
    found = next((at for at, message in newest_first if message.kind is PartKind.CURRENT), None)
    if found is not None or not options.answers_last:
        return found
    said = (at for at, message in newest_first if message.role == "user" and message.kind is PartKind.TURN)
    return next(said, len(messages) - 1)
