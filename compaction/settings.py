"""The options of `compaction`. Each description gives the unit and the reason for the default.

Some numbers are not options, because they depend on each other: 50 recent turns, batches of 10, 1,200 characters. They
are in `window`, `notes` and `summary.port`. Times to wait are beside what waits.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, model_validator

from compaction.budget.tool_outputs import MAX_TOOL_OUTPUT_AGE, MAX_TOOL_OUTPUT_TOKENS
from compaction.budget.trim import MIN_KEEP_MESSAGES, PRESERVE_RECENT_TURNS, TARGET_UTILIZATION, TrimStrategy

RESERVED_OUTPUT_TOKENS = 4_096


class SummariserKind(StrEnum):
    """What folds a batch into a segment."""

    AUTO = "auto"
    LLM = "llm"
    EXTRACTIVE = "extractive"


class BudgetSettings(BaseModel):
    """How much is sent to the language model in one call, and what is left out first where not all fits."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=True,
        description="Keep every call within budget.max_context_tokens. Off: everything is sent, and the endpoint may "
        "refuse it. A server's /rolling-context overrides it.",
    )
    max_context_tokens: int = Field(
        default=32_768,
        ge=1_024,
        le=4_000_000,
        description="Tokens that the language model can take, prompt and answer together. Set it to your model's own "
        "limit.",
    )
    reserved_output_tokens: int | None = Field(
        default=None,
        examples=[4096],
        ge=64,
        description="Tokens kept free for the answer. Without it: 4,096, or a quarter of max_context_tokens where "
        "that is less.",
    )
    trim_strategy: TrimStrategy = Field(
        default=TrimStrategy.PRIORITY,
        description="What leaves a call that is too large first: 'priority-based', what is worth least; "
        "'oldest-first', the oldest.",
    )
    preserve_system_prompt: bool = Field(
        default=True,
        description="Never leave out system prompts and tool rules. Off: they are left out after everything else but "
        "the question.",
    )
    preserve_recent_turns: int = Field(
        default=PRESERVE_RECENT_TURNS,
        ge=0,
        le=1_000,
        description="So many of the newest turns are worth more than what is known about the people present.",
    )
    summarize_on_truncate: bool = Field(
        default=False,
        description="Put sentences of what was left out, picked by rules, beside the note that says so.",
    )
    token_estimator: str = Field(
        default="auto",
        min_length=1,
        description="What counts tokens: 'auto', the model's own vocabulary where `roomtone models pull` has brought "
        "it, else a guess that is not too low; 'fallback', the guess; or the path of the model's own "
        "tokenizer.json.",
    )
    target_utilization: float = Field(
        default=TARGET_UTILIZATION,
        gt=0.0,
        le=1.0,
        description="The share of the room that is used after the oldest turns were evicted.",
    )
    min_keep_messages: int = Field(
        default=MIN_KEEP_MESSAGES,
        ge=0,
        le=1_000,
        description="In the rolling mode: so many of the newest turns stay when the oldest are evicted.",
    )
    eviction_note: bool = Field(
        default=True,
        description="In the rolling mode: put one note in the place of what was evicted.",
    )
    max_tool_output_age: int = Field(
        default=MAX_TOOL_OUTPUT_AGE,
        ge=0,
        le=1_000,
        description="Answers of the model after which a tool's output becomes a placeholder with its key facts.",
    )
    max_tool_output_tokens: int = Field(
        default=MAX_TOOL_OUTPUT_TOKENS,
        ge=50,
        description="Tokens of one tool's output; of a longer one head and tail stay.",
    )
    preserve_recent_files: bool = Field(
        default=True,
        description="Keep what tools read of files that are still being talked about.",
    )

    @model_validator(mode="after")
    def _room_for_the_question(self) -> BudgetSettings:
        if self.max_input_tokens < 512:
            raise ValueError(
                "reserved_output_tokens leaves less than 512 tokens for what is sent; raise max_context_tokens, "
                "for example to 8192"
            )
        return self

    @property
    def max_input_tokens(self) -> int:
        """Return how many tokens may be sent in one call."""
        return self.max_context_tokens - self.reserved

    @property
    def reserved(self) -> int:
        """Return how many tokens are kept free for the answer."""
        if self.reserved_output_tokens is None:
            return min(RESERVED_OUTPUT_TOKENS, self.max_context_tokens // 4)
        return self.reserved_output_tokens


class TierSettings(BaseModel):
    """How long memory is kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    retention_days: float = Field(
        default=30.0,
        ge=0.0,
        le=3650.0,
        description=(
            "Days after its end at which a session is deleted with everything in it. So are log lines of that age. 0 "
            "keeps everything for ever. Checked at the start, once a day, and by `roomtone memory prune`."
        ),
    )


class PeopleSettings(BaseModel):
    """What the bot remembers about people from one session to the next."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=True,
        description=(
            "Remember a few lasting things that people say about themselves, and tell the model about the people "
            "present. They see it with /my-data and delete it with /forget-me."
        ),
    )
