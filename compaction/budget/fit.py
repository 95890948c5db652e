"""Makes a payload fit: leaves out what is worth least, and adds one note about what is missing.

Order of worth (design page, 'What the model sees'): system prompts and the current turn, the active file or frame, the
newest turns, facts about the participants, the rest of the window from its newest turn on, the summary, live notes,
recalled quotes, older continuity, stale tool outputs. The window is evicted last, at once to four fifths of its room so
that not every reply evicts again; what was left out before it comes back if there is room then. In the rolling mode the
window is evicted first.
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
    """A message with its token count."""

    @property
    def content(self) -> str:
        """Return the text."""

    @property
    def tokens(self) -> int:
        """Return the token count, with the overhead of the message."""

    @property
    def timestamp(self) -> float | None:
        """Return the time of the message in UTC epoch seconds, or None if unknown."""


_P = TypeVar("_P", bound=CostedPart)


@dataclass(frozen=True, slots=True)
class PartCandidates(Generic[_P]):
    """Everything that could be sent, by kind: oldest first, except `recall`, which is best first.

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
    """What was left out, by kind."""

    turns: tuple[_P, ...] = ()
    summary: tuple[_P, ...] = ()
    participants: tuple[_P, ...] = ()
    notes: tuple[_P, ...] = ()
    recall: tuple[_P, ...] = ()
    continuity: tuple[_P, ...] = ()
    stale: tuple[_P, ...] = ()
    active: tuple[_P, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in CUTTABLE)


# What is left out before the window, worth least first.
_BEFORE_THE_WINDOW = ("stale", "continuity", "recall", "notes", "summary")
# A share that is so small that no turn fits.
_NEXT_TO_NOTHING = 1e-9
CUTTABLE = (*_BEFORE_THE_WINDOW, "turns", "participants", "active")


class _Payload(Generic[_P]):
    """How many parts of each kind are in, and their tokens."""

    def __init__(self, offered: PartCandidates[_P], limit: int, describe: Callable[[LeftOut[_P]], _P | None]) -> None:
        self.offered = offered
        self.limit = limit
        self._describe = describe
        self._whole: dict[str, tuple[_P, ...]] = {name: getattr(offered, name) for name in CUTTABLE}
        # How many of each kind are left out: quotes from the last, everything else from the first.
        self.out = dict.fromkeys(CUTTABLE, 0)
        never = (*offered.fixed, *offered.current)
        self._cost = sum(part.tokens for parts in (never, *self._whole.values()) for part in parts)
        self._note: tuple[_P, ...] | None = None

    def leave_out(self, name: str, count: int = 1) -> None:
        """Leave out `count` more, worth least first."""
        out = self.out[name]
        self._cost -= sum(part.tokens for part in self._of(name, out, out + count))
        self.out[name] = out + count
        self._note = None

    def bring_back(self, name: str, count: int = 1) -> None:
        """Take in again `count` that were left out, worth most first."""
        out = self.out[name]
        self._cost += sum(part.tokens for part in self._of(name, out - count, out))
        self.out[name] = out - count
        self._note = None

    def left_in(self, name: str) -> int:
        return len(self._whole[name]) - self.out[name]

    def cost(self) -> int:
        """Return the tokens of all that is in, with the note."""
        return self._cost + sum(part.tokens for part in self._the_note())

    def fits(self) -> bool:
        return self.cost() <= self.limit

    def kept(self, name: str) -> tuple[_P, ...]:
        """Return the parts of a kind that are in, in order."""
        whole, out = self._whole[name], self.out[name]
        return whole[: len(whole) - out] if name == "recall" else whole[out:]

    def parts(self) -> tuple[_P, ...]:
        """Return all parts that are in, in the order of sending."""
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
        """Return the parts that are left out as number `first` to `last - 1`."""
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
    """Return the parts to send, in order, of at most `max_input_tokens`.

    `newest`: how many turns are worth more than everything but the current one. `describe`: makes the note about what
    was left out, or None. `rolling`: evict the window first, by this policy. Raises ContextOverflowError if the parts
    that are never left out don't fit with that note. Deterministic.
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
    """Leave out parts one by one until the payload fits."""
    for name in names:
        while payload.left_in(name) and not payload.fits():
            payload.leave_out(name)


def _roll(payload: _Payload[_P], policy: RollingPolicy) -> None:
    """Evict the oldest turns until the payload is within the target share; the newest few stay."""
    turns = payload.offered.turns
    rest = payload.cost() - sum(part.tokens for part in turns)
    room = max(1, payload.limit - rest)
    share = (int(payload.limit * policy.target_utilization) - rest) / room
    evicted = rolling_evict(
        turns,
        max_context_tokens=room,
        # If the rest alone exceeds the target, only the newest few turns stay.
        target_utilization=min(1.0, max(_NEXT_TO_NOTHING, share)),
        min_keep_messages=policy.min_keep_messages,
    )
    payload.leave_out("turns", evicted.evicted_count)


def _evict_window(payload: _Payload[_P], newest: int) -> None:
    """Evict the window to four fifths of its room, except for the newest turns."""
    turns = payload.kept("turns")
    room = max(0, payload.limit - (payload.cost() - sum(part.tokens for part in turns)))
    evicted = rolling_evict(turns, max_context_tokens=room, min_keep_messages=newest)
    payload.leave_out("turns", evicted.evicted_count)
    while not payload.fits() and payload.left_in("turns") > newest:
        # The note about it needs room too.
        payload.leave_out("turns")


def _bring_back(payload: _Payload[_P], newest: int) -> None:
    """Take in again what fits beside the evicted window, worth most first, up to the first part that doesn't fit."""
    most = {name: len(getattr(payload.offered, name)) for name in CUTTABLE} | {"turns": newest}
    for name in ("active", "turns", "participants", *reversed(_BEFORE_THE_WINDOW)):
        while payload.out[name] and payload.left_in(name) < most[name]:
            payload.bring_back(name)
            if not payload.fits():
                payload.leave_out(name)
                return
