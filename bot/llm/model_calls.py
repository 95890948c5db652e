"""Finishes every call of a model that is billed in tokens: one line in the log, and one `ModelCall` for the metrics and
for whoever pays. Who pays is an argument of each call, without a default. A `PaidModel` is the only way in which
replies, summaries and translations reach a model.

Replies and summaries (`budgeted`), looks at screens (`openai_vision`) and speech-to-speech (`bot.realtime.port`) all
end here. Recognition, synthesis, embeddings and moderation are no such calls.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

import structlog

from bot.llm.port import NO_TOOLS, ChatMessage, OfferedTools, StreamItem, Usage
from compaction.errors import CompletionError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from compaction.budget.estimator import Estimator
    from compaction.payload import PayloadPart
    from compaction.ports import CompletionAnswer, CompletionRequest

log = structlog.get_logger()

# No call has so many.
MOST_TOKENS = 1_000_000_000

CallPurpose: TypeAlias = Literal["reply", "summary", "vision", "speech-to-speech"]
CallOutcome: TypeAlias = Literal["answered", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of a model that has ended, for metrics.

    `prompt_tokens`: as billed, or estimated if the endpoint does not say; 0 if nobody can estimate them.
    `completion_tokens`: as billed, or 0.
    """

    model: str
    purpose: CallPurpose
    outcome: CallOutcome
    prompt_tokens: int
    completion_tokens: int
    first_token_s: float | None
    duration_s: float


class CallMeter:
    """Takes each call when it has ended (`bot.monitoring.metrics.Metrics`). This one counts nothing."""

    def on_model_call(self, call: ModelCall) -> None:
        """Take a call that has ended."""


UNMETERED: Final = CallMeter()


class Payer(Protocol):
    """Who pays for a call: a server (`bot.participation.guild_state.GuildState`), or the operator."""

    @property
    def guild_id(self) -> int | None:
        """Return the server; None: the operator pays."""

    @property
    def is_used_up(self) -> bool:
        """Return whether a limit is reached, so that nothing more shall be called at this payer's cost now."""

    def pay(self, call: ModelCall) -> None:
        """Take a call that has ended."""


class Operator:
    """Pays for what whoever runs the bot asks of a model: a trial in `roomtone setup`, a replay. It has no limit."""

    guild_id = None
    is_used_up = False

    def pay(self, call: ModelCall) -> None:
        """Count nothing: the log has the call, and the metrics."""


OPERATOR: Final = Operator()


def plausible_tokens(count: object) -> int | None:
    """Return a number of tokens that an endpoint reports; None if it is no plausible one."""
    return count if type(count) is int and 0 <= count <= MOST_TOKENS else None


def finish_call(
    meter: CallMeter,
    *,
    payer: Payer,
    model: str,
    purpose: CallPurpose,
    outcome: CallOutcome,
    usage: Usage,
    duration_s: float,
    first_token_s: float | None = None,
    estimated_prompt_tokens: int | None = None,
    finish_reason: str | None = None,
    **details: object,
) -> None:
    """Log a call that has ended, and pass it to `meter` and to who pays. `usage`: as billed. `finish_reason`: of
    the answer, if the endpoint tells one. `details`: more fields for the log.
    """
    log.info(
        "model_call_finished",
        guild_id=payer.guild_id,
        purpose=purpose,
        model=model,
        outcome=outcome,
        estimated_prompt_tokens=estimated_prompt_tokens,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        finish_reason=finish_reason,
        **details,
        first_token_ms=None if first_token_s is None else _ms(first_token_s),
        duration_ms=_ms(duration_s),
    )
    sent = estimated_prompt_tokens or 0 if usage.prompt_tokens is None else usage.prompt_tokens
    call = ModelCall(model, purpose, outcome, sent, usage.completion_tokens or 0, first_token_s, duration_s)
    meter.on_model_call(call)
    payer.pay(call)


@dataclass(slots=True)
class CountedCall:
    """A call in progress whose prompt was counted, as `token_count` raw tokens. `finish` it whatever happens.

    Until it is said otherwise, its outcome is that it was broken off.
    """

    model: str
    purpose: CallPurpose
    payer: Payer
    estimator: Estimator
    token_count: int
    outcome: CallOutcome = "cancelled"
    usage: Usage = field(default_factory=lambda: Usage(None, None))
    started_at: float = field(default_factory=time.monotonic)
    first_token_at: float | None = None

    def record_token(self) -> None:
        """Record that a piece of the answer has come; the first counts."""
        if self.first_token_at is None:
            self.first_token_at = time.monotonic()

    def finish(self, meter: CallMeter, *, finish_reason: str | None = None, **details: object) -> None:
        """Log the call, pass it to `meter`, and correct the estimator by the bill. `details`: see `finish_call`."""
        finish_call(
            meter,
            payer=self.payer,
            model=self.model,
            purpose=self.purpose,
            outcome=self.outcome,
            usage=self.usage,
            duration_s=time.monotonic() - self.started_at,
            first_token_s=None if self.first_token_at is None else self.first_token_at - self.started_at,
            estimated_prompt_tokens=self.estimator.calibration.billed(self.token_count),
            finish_reason=finish_reason,
            counted_exactly=self.estimator.exact,
            **details,
        )
        billed = self.usage.prompt_tokens
        if billed is not None and self.estimator.learn(count=self.token_count, reported=billed):
            log.info(
                "token_count_corrected",
                model=self.model,
                factor=round(self.estimator.calibration.factor, 3),
                extra_tokens=self.estimator.calibration.extra_tokens,
            )


def _ms(seconds: float) -> float:
    return round(1_000 * seconds, 1)


class BilledModel(Protocol):
    """A model that is called at the cost of whom each call names."""

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        payer: Payer,
        max_output_tokens: int,
        enforce_budget: bool | None = None,
        tools: OfferedTools = NO_TOOLS,
        on_sent: Callable[[Sequence[PayloadPart]], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """See `ChatModel.stream`."""

    async def complete(self, request: CompletionRequest, *, payer: Payer) -> CompletionAnswer:
        """See `compaction.ports.Completion`."""


@dataclass(frozen=True, slots=True)
class PaidModel:
    """A `bot.llm.port.ChatModel` and `compaction.ports.Completion` whose every call `payer` pays for.

    Nothing is folded or translated while the payer's hour is used up. Whether a reply may begin then,
    `bot.participation` decides before there is one.
    """

    billed: BilledModel
    payer: Payer

    @property
    def model(self) -> str:
        """Return the model's name, for logs."""
        return self.billed.model

    def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_output_tokens: int,
        enforce_budget: bool | None = None,
        tools: OfferedTools = NO_TOOLS,
        on_sent: Callable[[Sequence[PayloadPart]], None] | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """See `ChatModel.stream`."""
        return self.billed.stream(
            messages,
            payer=self.payer,
            max_output_tokens=max_output_tokens,
            enforce_budget=enforce_budget,
            tools=tools,
            on_sent=on_sent,
        )

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """See `Completion.complete`."""
        if self.payer.is_used_up:
            raise CompletionError(
                "This server has reached a limit of [participation], such as max_calls_per_hour or "
                "max_tokens_per_day, so the model writes no summaries until enough time has passed.",
                retryable=True,
            )
        return await self.billed.complete(request, payer=self.payer)
