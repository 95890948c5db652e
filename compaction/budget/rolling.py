"""Rolling eviction: drops the oldest messages without a summary. Memory search can still find them. Source: spec 2.

The rolling mode always works this way. The other modes use it as a last resort if the window is too large for the
model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from compaction.tokens import MESSAGE_OVERHEAD_TOKENS, estimate_text_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compaction.model import Seq

TARGET_UTILIZATION = 0.8
MIN_KEEP_MESSAGES = 10


class RollingMessage(Protocol):
    """A message with a time. `tokens`: its token count with overhead, or None to estimate the count."""

    @property
    def content(self) -> str:
        """Return the text."""

    @property
    def timestamp(self) -> float | None:
        """Return the time of the message in UTC epoch seconds, or None if unknown."""

    @property
    def tokens(self) -> int | None:
        """Return the token count of the message, or None if unknown."""


_M = TypeVar("_M", bound=RollingMessage)


@dataclass(frozen=True, slots=True)
class EvictedTurns:
    """The turns that a session has evicted so far (`start <= seq < until`), with their token count.

    `first_at`, `last_at`: when the first and the last of these turns were said, in UTC epoch seconds.
    """

    start: Seq
    until: Seq
    tokens: int
    first_at: float
    last_at: float

    @property
    def count(self) -> int:
        return self.until - self.start

    def plus(self, later: EvictedTurns) -> EvictedTurns:
        """Return the combined range of this and `later`, which must follow directly."""
        return EvictedTurns(self.start, later.until, self.tokens + later.tokens, self.first_at, later.last_at)


@dataclass(frozen=True, slots=True)
class RollingEviction(Generic[_M]):
    """The kept and the evicted messages, each in order, with their token counts. Timestamps: UTC epoch seconds."""

    kept: tuple[_M, ...]
    evicted: tuple[_M, ...]
    evicted_count: int
    evicted_tokens: int
    kept_tokens: int
    first_evicted_timestamp: float | None
    last_evicted_timestamp: float | None


def rolling_evict(
    messages: Sequence[_M],
    *,
    max_context_tokens: int,
    target_utilization: float = TARGET_UTILIZATION,
    min_keep_messages: int = MIN_KEEP_MESSAGES,
) -> RollingEviction[_M]:
    """Evict the oldest messages until the rest is within `target_utilization` of `max_context_tokens`.

    Evicts nothing if all messages fit into `max_context_tokens`. The newest `min_keep_messages` stay even if they alone
    exceed the limit. Deterministic. Raises ValueError for a utilisation outside 0..1 or a negative number.
    """
    if not 0.0 < target_utilization <= 1.0 or min_keep_messages < 0 or max_context_tokens < 0:
        raise ValueError("rolling_evict takes a utilisation between 0 and 1 and numbers that are not negative.")
    costs = [_cost(message) for message in messages]
    kept_tokens = sum(costs)
    count = 0
    if kept_tokens > max_context_tokens:
        target = int(max_context_tokens * target_utilization)
        last = max(0, len(messages) - min_keep_messages)
        while count < last and kept_tokens > target:
            kept_tokens -= costs[count]
            count += 1
    evicted = tuple(messages[:count])
    times = [message.timestamp for message in evicted if message.timestamp is not None]
    return RollingEviction(
        kept=tuple(messages[count:]),
        evicted=evicted,
        evicted_count=count,
        evicted_tokens=sum(costs[:count]),
        kept_tokens=kept_tokens,
        first_evicted_timestamp=times[0] if times else None,
        last_evicted_timestamp=times[-1] if times else None,
    )


def _cost(message: RollingMessage) -> int:
    tokens = message.tokens
    return MESSAGE_OVERHEAD_TOKENS + estimate_text_tokens(message.content) if tokens is None else tokens
