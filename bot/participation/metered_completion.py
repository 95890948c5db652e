"""Counts the calls for summaries in the hour of the server that causes them, and refuses them beyond its ceiling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bot.participation.costs import Cost
from compaction.errors import CompletionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.participation.costs import CostLedger
    from compaction.ports import Completion, CompletionAnswer, CompletionRequest

# For endpoints that report no token counts. English has about four characters a token.
_CHARS_PER_TOKEN: Final = 4


class MeteredCompletion:
    """A text model (`compaction.ports.Completion`) whose calls count in the ledger of one server.

    At the ceiling it fails without a call. Folding then uses its rules, and the model writes those parts anew when the
    hour has room again.
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
        """See `Completion.complete`. A call that fails counts with its prompt."""
        if self._costs.is_over(self._monotonic()):
            raise CompletionError(
                "This server's hour has reached participation.max_calls_per_hour, max_tokens_per_hour or "
                "max_spoken_s_per_hour, so the model writes no summaries until enough time has passed.",
                retryable=True,
            )
        prompt_tokens = (len(request.system) + len(request.prompt)) // _CHARS_PER_TOKEN
        answer_tokens = 0
        try:
            answer = await self._completion.complete(request)
            prompt_tokens = prompt_tokens if answer.prompt_tokens is None else answer.prompt_tokens
            reported = answer.completion_tokens
            answer_tokens = len(answer.text) // _CHARS_PER_TOKEN if reported is None else reported
        finally:
            self._costs.add(Cost(calls=1, tokens=prompt_tokens + answer_tokens), now=self._monotonic())
        return answer
