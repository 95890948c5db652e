"""Makes a payload fit: what is least needed is left out first, and one note says what is missing.

Order of worth (design page, 'What the model sees'): system prompts and the current turn, the active file or frame,
the newest turns, what is known of the participants, the rest of the window from its newest on, the summary, live
notes, recalled quotes, older continuity, stale tool outputs. The window itself is the last resort: it is evicted in
one go to four fifths of its room, so that not every reply evicts again, and what was left out before it comes back
where there is room then. In the rolling mode it goes first, because there nothing else stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from compaction.budget.rolling import rolling_evict
from compaction.errors import ContextOverflowError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compaction.budget.rolling import RollingPolicy


class CostedPart(Protocol):
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


_P = TypeVar("_P", bound=CostedPart)


@dataclass(frozen=True, slots=True)
class PartCandidates(Generic[_P]):
    """Everything that could be sent, each in its order: oldest first, except `recall`, whose first is the best.

    `fixed` and `current` are never left out.
    """

    fixed: tuple[_P, ...] = ()
    continuity: tuple[_P, ...] = ()
    summary: tuple[_P, ...] = ()
    participants: tuple[_P, ...] = ()
    turns: tuple[_P, ...] = ()
    stale: tuple[_P, ...] = ()
    notes: tuple[_P, ...] = ()
    recall: tuple[_P, ...] = ()
    active: tuple[_P, ...] = ()
    current: tuple[_P, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut(Generic[_P]):
    """What was left out, each in its order."""

    turns: tuple[_P, ...] = ()
    summary: tuple[_P, ...] = ()
    participants: tuple[_P, ...] = ()
    notes: tuple[_P, ...] = ()
    recall: tuple[_P, ...] = ()
    continuity: tuple[_P, ...] = ()
    stale: tuple[_P, ...] = ()
    active: tuple[_P, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything was."""
        return any(getattr(self, name) for name in CUTTABLE)


# What is left out before the window, least worth first.
_BEFORE_THE_WINDOW = ("stale", "continuity", "recall", "notes", "summary")
# A share of the room that no turn fits into.
_NEXT_TO_NOTHING = 1e-9
CUTTABLE = (*_BEFORE_THE_WINDOW, "turns", "participants", "active")


class _Payload(Generic[_P]):
    """How much of each is in, and what that costs."""

    def __init__(self, offered: PartCandidates[_P], limit: int, describe: Callable[[LeftOut[_P]], _P | None]) -> None:
        self.offered = offered
        self.limit = limit
        self._describe = describe
        self._whole: dict[str, tuple[_P, ...]] = {name: getattr(offered, name) for name in CUTTABLE}
        # How many of each are out: quotes from the last, everything else from the first.
        self.out = dict.fromkeys(CUTTABLE, 0)
        never = (*offered.fixed, *offered.current)
        self._cost = sum(part.tokens for parts in (never, *self._whole.values()) for part in parts)
        self._note: tuple[_P, ...] | None = None

    def leave_out(self, name: str, count: int = 1) -> None:
        """Leave out so many more, the least worth first."""
        out = self.out[name]
        self._cost -= sum(part.tokens for part in self._of(name, out, out + count))
        self.out[name] = out + count
        self._note = None

    def bring_back(self, name: str, count: int = 1) -> None:
        """Take in again so many that were left out, the most worth first."""
        out = self.out[name]
        self._cost += sum(part.tokens for part in self._of(name, out - count, out))
        self.out[name] = out - count
        self._note = None

    def left_in(self, name: str) -> int:
        """Return how many are in."""
        return len(self._whole[name]) - self.out[name]

    def cost(self) -> int:
        """Return what all that is in costs, the note included."""
        return self._cost + sum(part.tokens for part in self._the_note())

    def fits(self) -> bool:
        """Return whether it may be sent."""
        return self.cost() <= self.limit

    def kept(self, name: str) -> tuple[_P, ...]:
        """Return those that are in, in order."""
        whole, out = self._whole[name], self.out[name]
        return whole[: len(whole) - out] if name == "recall" else whole[out:]

    def parts(self) -> tuple[_P, ...]:
        """Return what is in, in the order in which it is sent."""
        offered = self.offered
        return (
            *offered.fixed,
            *self.kept("continuity"),
            *self.kept("summary"),
            *self.kept("participants"),
            *self._the_note(),
            *self.kept("turns"),
            *self.kept("stale"),
            *self.kept("notes"),
            *self.kept("recall"),
            *self.kept("active"),
            *offered.current,
        )

    def _of(self, name: str, first: int, last: int) -> tuple[_P, ...]:
        """Return those that are the first-th to last-th to be left out."""
        whole = self._whole[name]
        return whole[len(whole) - last : len(whole) - first] if name == "recall" else whole[first:last]

    def _the_note(self) -> tuple[_P, ...]:
        if self._note is None:
            cut: LeftOut[_P] = LeftOut(**{name: self._of(name, 0, out) for name, out in self.out.items()})
            note = self._describe(cut)
            self._note = () if note is None else (note,)
        return self._note


def fit_parts(
    offered: PartCandidates[_P],
    *,
    max_input_tokens: int,
    newest: int,
    describe: Callable[[LeftOut[_P]], _P | None],
    rolling: RollingPolicy | None = None,
) -> tuple[_P, ...]:
    """Return the parts to send, in order, costing at most `max_input_tokens`.

    `newest`: so many turns are worth more than anything but the current one. `describe` makes the note for what was
    left out, None when there is nothing to say. `rolling`: evict the window first, as this says. Raises
    ContextOverflowError when what is never left out, with that note, is too much. Deterministic.
    """
    payload = _Payload(offered, max_input_tokens, describe)
    if payload.fits():
        return payload.parts()
    if rolling is not None:
        _roll(payload, rolling)
    _leave_out(payload, _BEFORE_THE_WINDOW)
    if not payload.fits():
        _evict_window(payload, newest)
        _leave_out(payload, ("participants",))
        _leave_out(payload, ("turns", "active"))
        _bring_back(payload, newest)
    if not payload.fits():
        raise ContextOverflowError(current=payload.cost(), maximum=max_input_tokens)
    return payload.parts()


def _leave_out(payload: _Payload[_P], names: Sequence[str]) -> None:
    """Leave out one after the other until it fits."""
    for name in names:
        while payload.left_in(name) and not payload.fits():
            payload.leave_out(name)


def _roll(payload: _Payload[_P], policy: RollingPolicy) -> None:
    """Evict the oldest turns until the whole payload costs at most the target; the newest few stay."""
    turns = payload.offered.turns
    rest = payload.cost() - sum(part.tokens for part in turns)
    room = max(1, payload.limit - rest)
    share = (int(payload.limit * policy.target_utilization) - rest) / room
    evicted = rolling_evict(
        turns,
        max_context_tokens=room,
        # Where the rest alone is more than the target, the newest few turns are all that stays.
        target_utilization=min(1.0, max(_NEXT_TO_NOTHING, share)),
        min_keep_messages=policy.min_keep_messages,
    )
    payload.leave_out("turns", evicted.evicted_count)


def _evict_window(payload: _Payload[_P], newest: int) -> None:
    """Evict the window to four fifths of its room, but for the newest turns."""
    turns = payload.kept("turns")
    room = max(0, payload.limit - (payload.cost() - sum(part.tokens for part in turns)))
    evicted = rolling_evict(turns, max_context_tokens=room, min_keep_messages=newest)
    payload.leave_out("turns", evicted.evicted_count)
    while not payload.fits() and payload.left_in("turns") > newest:
        # The note about it takes room as well.
        payload.leave_out("turns")


def _bring_back(payload: _Payload[_P], newest: int) -> None:
    """Take in again what fits beside the evicted window, the most worth first; what doesn't fit ends it."""
    most = {name: len(getattr(payload.offered, name)) for name in CUTTABLE} | {"turns": newest}
    for name in ("active", "turns", "participants", *reversed(_BEFORE_THE_WINDOW)):
        while payload.out[name] and payload.left_in(name) < most[name]:
            payload.bring_back(name)
            if not payload.fits():
                payload.leave_out(name)
                return
