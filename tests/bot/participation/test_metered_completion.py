"""Calls for summaries count in their server's hour, and stop at its ceiling."""

from __future__ import annotations

import pytest

from bot.participation.costs import HOUR_S, Cost, CostLedger, MeteredCompletion
from compaction.errors import CompletionError
from compaction.ports import CompletionAnswer, CompletionRequest

REQUEST = CompletionRequest("s" * 100, "p" * 300, max_output_tokens=50)


class Endpoint:
    """A text model with a prepared answer, or None to fail."""

    model = "small"

    def __init__(self, answer: CompletionAnswer | None) -> None:
        self.answer = answer
        self.calls = 0

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return the answer, or fail."""
        assert request is REQUEST
        self.calls += 1
        if self.answer is None:
            raise CompletionError("It is busy.", retryable=True)
        return self.answer


@pytest.mark.parametrize(
    ("answer", "cost"),
    [
        (CompletionAnswer("a" * 40, "stop", 1_000, 200), Cost(calls=1, tokens=1_200)),
        (CompletionAnswer("a" * 40, "stop", None, None), Cost(calls=1, tokens=110)),
        (CompletionAnswer("a" * 40, "stop", 1_000, None), Cost(calls=1, tokens=1_010)),
        (None, Cost(calls=1, tokens=100)),
    ],
)
async def test_a_call_counts_in_the_hour(answer: CompletionAnswer | None, cost: Cost) -> None:
    """A call counts with the reported tokens, or with an estimate where none are reported or the call failed."""
    ledger = CostLedger(Cost())
    metered = MeteredCompletion(Endpoint(answer), ledger, monotonic=lambda: 0.0)
    if answer is None:
        with pytest.raises(CompletionError, match="busy"):
            await metered.complete(REQUEST)
    else:
        assert await metered.complete(REQUEST) is answer
    assert ledger.last_hour(0.0) == cost
    assert metered.model == "small"


@pytest.mark.parametrize("ceiling", [Cost(calls=3), Cost(tokens=3_600)])
async def test_at_the_ceiling_no_call_is_made(ceiling: Cost) -> None:
    """300 folds of one hour make no more calls than its ceiling has. The refusal is retryable, and the hour ends."""
    now = 0.0
    ledger, endpoint = CostLedger(ceiling), Endpoint(CompletionAnswer("a", "stop", 1_000, 200))
    metered = MeteredCompletion(endpoint, ledger, monotonic=lambda: now)
    for _ in range(3):
        await metered.complete(REQUEST)
    for _ in range(297):
        with pytest.raises(CompletionError, match=r"participation\.max_calls_per_hour") as caught:
            await metered.complete(REQUEST)
        assert caught.value.retryable
    assert endpoint.calls == 3
    now = HOUR_S
    await metered.complete(REQUEST)
    assert endpoint.calls == 4
