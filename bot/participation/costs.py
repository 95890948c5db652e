"""What a server has cost in the last hour, and whether the ceiling is reached."""

from __future__ import annotations

from collections import deque
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from compaction.errors import CompletionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.llm.model_calls import ModelCall
    from bot.participation.settings import ParticipationSettings
    from compaction.ports import Completion, CompletionAnswer, CompletionRequest

HOUR_S = 3_600.0
# Costs within such a time are one entry, so there are at most 3,600 of them.
_TOGETHER_S = 1.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls of language models, tokens sent and received, seconds spoken."""

    calls: int = 0
    tokens: int = 0
    spoken_s: float = 0.0

    @classmethod
    def of(cls, call: ModelCall) -> Cost:
        """Return what a call costs. Nobody bills one that failed without an answer."""
        is_billed = call.outcome != "failed" or call.completion_tokens > 0
        return cls(1, (call.prompt_tokens + call.completion_tokens) * is_billed)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.calls - other.calls, self.tokens - other.tokens, self.spoken_s - other.spoken_s)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.calls + other.calls, self.tokens + other.tokens, self.spoken_s + other.spoken_s)

    def reaches(self, ceiling: Cost) -> bool:
        """Return whether it is as much as one of the limits; 0: no limit."""
        return any(limit and amount >= limit for amount, limit in zip(astuple(self), astuple(ceiling), strict=True))


NOTHING = Cost()


def ceiling_of(settings: ParticipationSettings) -> Cost:
    """Return the most that an hour may cost; 0: no limit."""
    return Cost(settings.max_calls_per_hour, settings.max_tokens_per_hour, settings.max_spoken_s_per_hour)


class CostLedger:
    """The costs of one server. Times are monotonic seconds and never go back. Not thread-safe."""

    def __init__(self, ceiling: Cost) -> None:
        self.ceiling = ceiling
        self._entries: deque[tuple[float, Cost]] = deque()
        # Since the process began.
        self.total = NOTHING

    def add(self, cost: Cost, *, now: float) -> None:
        """Add a cost that was incurred at `now`."""
        self._drop_old(now)
        if self._entries and now - self._entries[-1][0] < _TOGETHER_S:
            begun, before = self._entries[-1]
            self._entries[-1] = (begun, before + cost)
        else:
            self._entries.append((now, cost))
        self.total += cost

    def last_hour(self, now: float) -> Cost:
        """Return the sum of the costs of the hour before `now`."""
        self._drop_old(now)
        return sum((cost for _, cost in self._entries), NOTHING)

    def is_over(self, now: float) -> bool:
        """Return whether the hour before `now` has reached the ceiling."""
        return self.last_hour(now).reaches(self.ceiling)

    def free_in_s(self, now: float) -> float:
        """Return the seconds until the cost falls below the ceiling if nothing is added; 0 if it is below already."""
        left = self.last_hour(now)
        if not left.reaches(self.ceiling):
            return 0.0
        for at, entry in self._entries:
            left -= entry
            if not left.reaches(self.ceiling):
                return at + HOUR_S - now
        return HOUR_S

    def _drop_old(self, now: float) -> None:
        while self._entries and now - self._entries[0][0] >= HOUR_S:
            self._entries.popleft()


class CappedCompletion:
    """A text model (`compaction.ports.Completion`) that fails without a call once the hour of one server is used up.
    Nothing is folded then until the hour has room again.
    """

    def __init__(self, completion: Completion, costs: CostLedger, *, monotonic: Callable[[], float]) -> None:
        self._completion = completion
        self._costs = costs
        self._monotonic = monotonic

    @property
    def model(self) -> str:
        """See `Completion.model`."""
        return self._completion.model

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """See `Completion.complete`."""
        if self._costs.is_over(self._monotonic()):
            raise CompletionError(
                "This server's hour has reached participation.max_calls_per_hour, max_tokens_per_hour or "
                "max_spoken_s_per_hour, so the model writes no summaries until enough time has passed.",
                retryable=True,
            )
        return await self._completion.complete(request)
