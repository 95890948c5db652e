"""Fits a payload into the token limit: leaves out the least important parts and adds one note about what is missing.

Parts in order of importance, highest first (docs/budget.md, 'What is left out first'): system prompts and the current
turn; the newest turns; facts about the participants; the other turns of the window, newest first; the summary; live
notes; recalled quotes; older conversations.

The window of turns is cut last. It is then cut to four fifths of its room at once, so that not every reply has to cut
again. Parts that were left out before are taken back if there is room after that. In the rolling mode the window is cut
first.
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
        """Return the token count, including the overhead of the message."""

    @property
    def timestamp(self) -> float | None:
        """Return the time of the message in UTC epoch seconds, or None if unknown."""


_P = TypeVar("_P", bound=CostedPart)


@dataclass(frozen=True, slots=True)
class PartCandidates(Generic[_P]):
    """All parts that could be sent, by kind. Each kind is oldest first, except `recall`, which is best first.

    Parts in `fixed`, `reply_prompts` and `current` are never left out.
    """

    fixed: tuple[_P, ...] = ()
    continuity: tuple[_P, ...] = ()
    summary: tuple[_P, ...] = ()
    participants: tuple[_P, ...] = ()
    turns: tuple[_P, ...] = ()
    notes: tuple[_P, ...] = ()
    recall: tuple[_P, ...] = ()
    reply_prompts: tuple[_P, ...] = ()
    current: tuple[_P, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut(Generic[_P]):
    """The parts that were left out, by kind."""

    turns: tuple[_P, ...] = ()
    summary: tuple[_P, ...] = ()
    participants: tuple[_P, ...] = ()
    notes: tuple[_P, ...] = ()
    recall: tuple[_P, ...] = ()
    continuity: tuple[_P, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in CUTTABLE)


# The kinds that are left out before the window is cut, least important first.
_BEFORE_THE_WINDOW = ("continuity", "recall", "notes", "summary")
# A share so small that no turn fits into it.
_NEXT_TO_NOTHING = 1e-9
CUTTABLE = (*_BEFORE_THE_WINDOW, "turns", "participants")


class _Payload(Generic[_P]):
    """Tracks how many parts of each kind are included, and how many tokens they have together."""

    def __init__(self, offered: PartCandidates[_P], limit: int, describe: Callable[[LeftOut[_P]], _P | None]) -> None:
        self.offered = offered
        self.limit = limit
        self._describe = describe
        self._whole: dict[str, tuple[_P, ...]] = {name: getattr(offered, name) for name in CUTTABLE}
        # How many parts of each kind are left out. Quotes are left out from the end, all other kinds from the start.
        self.out = dict.fromkeys(CUTTABLE, 0)
        never = (*offered.fixed, *offered.reply_prompts, *offered.current)
        self._cost = sum(part.tokens for parts in (never, *self._whole.values()) for part in parts)
        self._note: tuple[_P, ...] | None = None

    def leave_out(self, name: str, count: int = 1) -> None:
        """Leave out `count` more parts of this kind, least important first."""
        out = self.out[name]
        self._cost -= sum(part.tokens for part in self._of(name, out, out + count))
        self.out[name] = out + count
        self._note = None

    def bring_back(self, name: str, count: int = 1) -> None:
        """Include again `count` of the parts of this kind that were left out, most important first."""
        out = self.out[name]
        self._cost += sum(part.tokens for part in self._of(name, out - count, out))
        self.out[name] = out - count
        self._note = None

    def left_in(self, name: str) -> int:
        return len(self._whole[name]) - self.out[name]

    def cost(self) -> int:
        """Return the tokens of all included parts and of the note about what is missing."""
        return self._cost + sum(part.tokens for part in self._the_note())

    def fits(self) -> bool:
        return self.cost() <= self.limit

    def kept(self, name: str) -> tuple[_P, ...]:
        """Return the included parts of a kind, in order."""
        whole, out = self._whole[name], self.out[name]
        return whole[: len(whole) - out] if name == "recall" else whole[out:]

    def parts(self) -> tuple[_P, ...]:
        """Return all included parts in the order in which they are sent."""
        offered = self.offered
        return (
            *offered.fixed,
            *self.kept("continuity"),
            *self.kept("summary"),
            *self.kept("participants"),
            *self._the_note(),
            *self.kept("turns"),
            *self.kept("notes"),
            *self.kept("recall"),
            *offered.reply_prompts,
            *offered.current,
        )

    def _of(self, name: str, first: int, last: int) -> tuple[_P, ...]:
        """Return the parts of this kind at positions `first` to `last - 1` in the order in which they are left out."""
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
    """Return the parts to send, in order, with at most `max_input_tokens` tokens.

    `newest`: this many of the newest turns are left out only after everything else that may be left out. `describe`:
    returns the note about the parts that were left out, or None. `rolling`: cut the window first, by this policy.
    Raises ContextOverflowError if the parts that are never left out don't fit together with that note. Deterministic.
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
        _leave_out(payload, ("turns",))
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
    """Evict the oldest turns until the payload is within the target share of the limit. The newest few turns always
    stay.
    """
    turns = payload.offered.turns
    rest = payload.cost() - sum(part.tokens for part in turns)
    room = max(1, payload.limit - rest)
    share = (int(payload.limit * policy.target_utilization) - rest) / room
    evicted = rolling_evict(
        turns,
        max_context_tokens=room,
        # If the other parts alone exceed the target, only the newest few turns stay.
        target_utilization=min(1.0, max(_NEXT_TO_NOTHING, share)),
        min_keep_messages=policy.min_keep_messages,
    )
    payload.leave_out("turns", evicted.evicted_count)


def _evict_window(payload: _Payload[_P], newest: int) -> None:
    """Evict the oldest turns until the window uses four fifths of its room. The newest turns always stay."""
    turns = payload.kept("turns")
    room = max(0, payload.limit - (payload.cost() - sum(part.tokens for part in turns)))
    evicted = rolling_evict(turns, max_context_tokens=room, min_keep_messages=newest)
    payload.leave_out("turns", evicted.evicted_count)
    while not payload.fits() and payload.left_in("turns") > newest:
        # The note about the evicted turns needs room too.
        payload.leave_out("turns")


def _bring_back(payload: _Payload[_P], newest: int) -> None:
    """Include again the parts that fit after the window was cut, most important first. Stops at the first that doesn't
    fit.
    """
    most = {name: len(getattr(payload.offered, name)) for name in CUTTABLE} | {"turns": newest}
    for name in ("turns", "participants", *reversed(_BEFORE_THE_WINDOW)):
        while payload.out[name] and payload.left_in(name) < most[name]:
            payload.bring_back(name)
            if not payload.fits():
                payload.leave_out(name)
                return
