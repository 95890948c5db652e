"""Makes a payload fit: what is least needed is left out first, and one note says what is missing.

Order of worth (design page, 'What the model sees'): system prompts and the current turn, the newest turns, the
rest of the window from its newest on, the summary, live notes, recalled quotes. The window itself is the last
resort: it is evicted in one go to four fifths of its room, so that not every reply evicts again, and what was
left out before it comes back where there is room then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from compaction.errors import ContextOverflowError
from compaction.rolling import rolling_evict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Part(Protocol):
    """A message of known cost."""

    @property
    def content(self) -> str:
        """Return the text."""

    @property
    def tokens(self) -> int:
        """Return what it costs, overhead included."""

    @property
    def timestamp(self) -> float | None:
        """Return when it was said, in UTC epoch seconds."""


_P = TypeVar("_P", bound=Part)


@dataclass(frozen=True, slots=True)
class Cut(Generic[_P]):
    """What was left out, each in its order."""

    turns: tuple[_P, ...] = ()
    summary: _P | None = None
    notes: tuple[_P, ...] = ()
    recall: tuple[_P, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything was."""
        return bool(self.turns or self.summary or self.notes or self.recall)


class _Payload(Generic[_P]):
    """The parts that are in and those that are out, and what they cost."""

    def __init__(
        self,
        fixed: Sequence[_P],
        summary: _P | None,
        turns: Sequence[_P],
        notes: Sequence[_P],
        recall: Sequence[_P],
        current: _P | None,
        describe: Callable[[Cut[_P]], _P],
    ) -> None:
        self.fixed = tuple(fixed)
        self.summary = summary
        self.turns = tuple(turns)
        self.notes = tuple(notes)
        self.recall = tuple(recall)
        self.current = current
        self.cut: Cut[_P] = Cut()
        self._describe = describe

    def parts(self) -> tuple[_P, ...]:
        """Return what is in, in the order in which it is sent."""
        note = (self._describe(self.cut),) if self.cut else ()
        summary = () if self.summary is None else (self.summary,)
        current = () if self.current is None else (self.current,)
        return (*self.fixed, *summary, *note, *self.turns, *self.notes, *self.recall, *current)

    def cost(self) -> int:
        """Return what all that is in costs."""
        return sum(part.tokens for part in self.parts())


def fit(
    *,
    fixed: Sequence[_P],
    summary: _P | None,
    turns: Sequence[_P],
    notes: Sequence[_P],
    recall: Sequence[_P],
    current: _P | None,
    max_input_tokens: int,
    newest: int,
    describe: Callable[[Cut[_P]], _P],
) -> tuple[_P, ...]:
    """Return the parts to send, in order, costing at most `max_input_tokens`.

    `describe` makes the note for what was left out. Raises ContextOverflowError when `fixed` and `current` alone,
    with that note, are too much.
    """
    payload = _Payload(fixed, summary, turns, notes, recall, current, describe)
    if payload.cost() <= max_input_tokens:
        return payload.parts()
    _leave_out_extras(payload, max_input_tokens)
    if payload.cost() > max_input_tokens:
        _evict_window(payload, max_input_tokens, newest)
        _bring_back(payload, max_input_tokens, summary, notes, recall)
    cost = payload.cost()
    if cost > max_input_tokens:
        raise ContextOverflowError(current=cost, maximum=max_input_tokens)
    return payload.parts()


def _leave_out_extras(payload: _Payload[_P], limit: int) -> None:
    """Leave out quotes from the last (least alike), then notes from the oldest, then the summary, until it fits."""
    while payload.recall and payload.cost() > limit:
        payload.cut = Cut(recall=(payload.recall[-1], *payload.cut.recall))
        payload.recall = payload.recall[:-1]
    while payload.notes and payload.cost() > limit:
        payload.cut = Cut(notes=(*payload.cut.notes, payload.notes[0]), recall=payload.cut.recall)
        payload.notes = payload.notes[1:]
    if payload.summary is not None and payload.cost() > limit:
        payload.cut = Cut(summary=payload.summary, notes=payload.cut.notes, recall=payload.cut.recall)
        payload.summary = None


def _evict_window(payload: _Payload[_P], limit: int, newest: int) -> None:
    room = max(0, limit - (payload.cost() - sum(part.tokens for part in payload.turns)))
    evicted = rolling_evict(payload.turns, max_context_tokens=room, min_keep_messages=newest)
    count = evicted.evicted_count
    window = payload.turns
    while True:
        payload.turns = window[count:]
        payload.cut = Cut(window[:count], payload.cut.summary, payload.cut.notes, payload.cut.recall)
        # The newest turns are worth more than all that is left out already, and less than not answering at all.
        if payload.cost() <= limit or not payload.turns:
            return
        count += 1


def _bring_back(
    payload: _Payload[_P], limit: int, summary: _P | None, notes: Sequence[_P], recall: Sequence[_P]
) -> None:
    """Take in again what fits beside the evicted window: the summary, then notes from the newest, then quotes."""
    steps: list[tuple[_P | None, tuple[_P, ...], tuple[_P, ...]]] = [(summary, (), ())]
    steps += [(summary, tuple(notes[start:]), ()) for start in range(len(notes) - 1, -1, -1)]
    steps += [(summary, tuple(notes), tuple(recall[: count + 1])) for count in range(len(recall))]
    turns = payload.cut.turns
    for its_summary, its_notes, its_recall in steps:
        before = (payload.summary, payload.notes, payload.recall, payload.cut)
        payload.summary, payload.notes, payload.recall = its_summary, its_notes, its_recall
        payload.cut = Cut(
            turns,
            summary if its_summary is None else None,
            tuple(notes[: len(notes) - len(its_notes)]),
            tuple(recall[len(its_recall) :]),
        )
        if payload.cost() > limit:
            payload.summary, payload.notes, payload.recall, payload.cut = before
            return
