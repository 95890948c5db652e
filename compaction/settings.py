"""What an operator can tune in `compaction`; each field says its unit, why its default, and when it takes effect.

The shape of the memory itself (50 recent turns, batches of 10, 1,200 characters) is not here: those numbers
hold each other up, see `window`, `notes` and `rendering`.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from compaction.budget.prompt import default_reserve
from compaction.budget.tool_outputs import MAX_TOOL_OUTPUT_AGE, MAX_TOOL_OUTPUT_TOKENS
from compaction.budget.trim import PRESERVE_RECENT_TURNS, TrimStrategy
from compaction.model import Mode, Strategy
from compaction.summary.prompt_texts import PromptTexts


class Trigger(StrEnum):
    """When the question `is a batch due?` is asked."""

    GENERATION = "generation"
    TURN = "turn"


class SummariserKind(StrEnum):
    """What folds a batch into a segment."""

    AUTO = "auto"
    LLM = "llm"
    EXTRACTIVE = "extractive"


class CompactionSettings(BaseModel):
    """The `[compaction]` section."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Mode = Field(
        default=Mode.SUMMARY,
        description="How a session remembers what has left its window, where the server has not chosen by "
        "/rolling-context: 'summary' folds old turns into a summary; 'rolling' drops the oldest without one when the "
        "model is full, and trusts memory search to find them; 'off' sends the last 50 turns and nothing older. "
        "Takes effect after a restart.",
    )
    rolling_target_utilization: float = Field(
        default=0.8,
        gt=0.0,
        le=1.0,
        description="In the rolling mode: the share of the model's room that is used after an eviction, so that not "
        "every reply evicts again. Takes effect after a restart.",
    )
    rolling_min_keep_messages: int = Field(
        default=10,
        ge=0,
        le=1_000,
        description="In the rolling mode: the newest messages that an eviction leaves in any case. Takes effect after "
        "a restart.",
    )
    rolling_eviction_note: bool = Field(
        default=True,
        description="In the rolling mode: put one line in the place of what was evicted, with count, tokens, time "
        "range and the hint to search. Takes effect after a restart.",
    )
    trigger: Trigger = Field(
        default=Trigger.GENERATION,
        description="When to check whether a batch is due: 'generation', each time the bot is about to speak, so "
        "that a silent bot costs nothing; 'turn', at every turn, so that the summary is fresh before the first "
        "question. Takes effect after a restart.",
    )
    summariser: SummariserKind = Field(
        default=SummariserKind.AUTO,
        description="'llm' asks the text model, 'extractive' picks sentences without any model, 'auto' is 'llm' "
        "where a text model is configured and 'extractive' elsewhere. Takes effect after a restart.",
    )
    strategy: Strategy = Field(
        default=Strategy.LEDGER,
        description="What a fold makes of a batch: 'ledger' keeps a gist and facts of each batch and renders the "
        "summary from all of them, so that nothing fades by being retold; 'recursive' has the model rewrite one "
        "paragraph from the previous one and the batch. Takes effect after a restart.",
    )
    prompts_dir: Path | None = Field(
        default=None,
        examples=["data/prompts"],
        description="Folder with prompts of one's own for the summarising model, named as in "
        "compaction/summary/prompts (ledger.v2.txt, ledger.v2.json.txt, ledger.v2.lines.txt, recursive.v2.txt); what "
        "isn't there stays as it is. Takes effect after a restart.",
    )
    timeout_s: float = Field(
        default=120.0,
        gt=0.0,
        le=600.0,
        description="Seconds one summary may take before it counts as failed. Nobody waits for it, so a slow "
        "local model may have minutes. Takes effect after a restart.",
    )
    max_output_tokens: int = Field(
        default=700,
        ge=100,
        le=8192,
        description="Tokens the text model may write for one batch: a gist of 300 characters and a dozen facts. "
        "An answer cut off here counts as failed. Takes effect after a restart.",
    )
    retry_base_s: float = Field(
        default=2.0,
        gt=0.0,
        le=300.0,
        description="Seconds before the first retry of a failed summary; doubled for each further failure, with "
        "jitter. Takes effect after a restart.",
    )
    retry_max_s: float = Field(
        default=120.0,
        gt=0.0,
        le=3600.0,
        description="Longest pause between retries, in seconds. Takes effect after a restart.",
    )
    failures_before_degraded: int = Field(
        default=3,
        ge=1,
        le=20,
        description="Failures in a row after which the extractive summariser folds the batches until the model "
        "is back, so that an outage of hours loses nothing. Takes effect after a restart.",
    )
    ending_deadline_s: float = Field(
        default=3.0,
        ge=0.0,
        le=60.0,
        description="Seconds a summary in flight still gets when its session ends. Takes effect after a restart.",
    )
    store_timeout_s: float = Field(
        default=10.0,
        gt=0.0,
        le=120.0,
        description="Seconds one write to the store may take before it counts as failed (and is tried again). "
        "Takes effect after a restart.",
    )

    @field_validator("prompts_dir")
    @classmethod
    def _prompts_can_be_used(cls, folder: Path | None) -> Path | None:
        if folder is not None:
            # Read here to be refused here: a prompt without its turns would be found out an hour into a session.
            PromptTexts(folder)
        return folder

    @model_validator(mode="after")
    def _retries_grow(self) -> CompactionSettings:
        if self.retry_max_s < self.retry_base_s:
            raise ValueError("retry_max_s must not be smaller than retry_base_s, for example 2 and 120")
        return self


class BudgetSettings(BaseModel):
    """The `[budget]` section: how much may be sent to the chat model at once, and what gives way."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=True,
        description="Keep every call within max_context_tokens, where the server has not chosen by /rolling-context. "
        "Off: everything is sent as it is, and the provider is who refuses. Takes effect after a restart.",
    )
    max_context_tokens: int = Field(
        default=32_768,
        ge=1_024,
        le=4_000_000,
        description="Tokens the chat model can take, question and answer together. Takes effect after a restart.",
    )
    reserved_output_tokens: int | None = Field(
        default=None,
        ge=64,
        description="Tokens kept free for the answer. Without it: 4,096, or a quarter of max_context_tokens where "
        "that is less. Takes effect after a restart.",
    )
    trim_strategy: TrimStrategy = Field(
        default=TrimStrategy.PRIORITY,
        description="What leaves a call that is too large: 'priority-based', what is worth least first (old outputs of "
        "tools, recalled quotes, notes, the summary, then the oldest turns); 'oldest-first', by age alone. The prompt "
        "of a reply is always built by worth. Takes effect after a restart.",
    )
    preserve_system_prompt: bool = Field(
        default=True,
        description="Never leave out system prompts and tool rules. Takes effect after a restart.",
    )
    preserve_recent_turns: int = Field(
        default=PRESERVE_RECENT_TURNS,
        ge=0,
        le=1_000,
        description="So many of the newest turns outlive everything but the current one. Takes effect after a restart.",
    )
    summarize_on_truncate: bool = Field(
        default=False,
        description="Put a summary of what was left out beside the note that says so: sentences picked by rules, "
        "without a model. Takes effect after a restart.",
    )
    token_estimator: str = Field(
        default="auto",
        min_length=1,
        description="What counts tokens: 'auto', the model's own vocabulary where `roomtone models pull` has brought "
        "it, else a guess that is not too low; 'fallback', the guess; or the path of the model's own tokenizer.json or "
        ".gguf file. Takes effect after a restart.",
    )
    max_tool_output_age: int = Field(
        default=MAX_TOOL_OUTPUT_AGE,
        ge=0,
        le=1_000,
        description="Model calls after which a tool's output becomes a placeholder with its key facts. Takes effect "
        "after a restart.",
    )
    max_tool_output_tokens: int = Field(
        default=MAX_TOOL_OUTPUT_TOKENS,
        ge=50,
        description="Tokens of one tool's output; of a longer one head and tail stay. Takes effect after a restart.",
    )
    preserve_recent_files: bool = Field(
        default=True,
        description="Keep what tools read of files, attachments and frames that are still being talked about, however "
        "old the output is. Takes effect after a restart.",
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
        reserved = self.reserved_output_tokens
        return default_reserve(self.max_context_tokens) if reserved is None else reserved


class TierSettings(BaseModel):
    """The `[tiers]` section: how folded segments are kept as a session grows, and for how long."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=True,
        description="Compress segments that nobody speaks of any more, and archive very old ones, when the context "
        "fills (over 60 and 80 % of what the model may be sent). A server or session is left out with `roomtone "
        "memory opt-out`. Nothing is lost either way. Takes effect at the next join.",
    )
    prune_after_days: float = Field(
        default=30.0,
        gt=0.0,
        le=3650.0,
        description="Days in the archive after which a segment keeps its short content alone; its turns stay. Looked "
        "at every 50 turns. Takes effect at the next join.",
    )
    retention_days: float | None = Field(
        default=None,
        gt=0.0,
        le=3650.0,
        description="Days after its end at which a session is deleted with everything in it: turns, notes, segments, "
        "the archive, what people said of themselves in it. Without it sessions are kept. Looked at every 50 turns "
        "and by `roomtone memory prune`. Takes effect at the next join.",
    )


class PeopleSettings(BaseModel):
    """The `[people]` section: what people say of themselves that lasts, remembered across sessions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=True,
        description="Remember a few lasting things that people say of themselves (where they live, what their dog is "
        "called) and tell the model about those who are present. They can see and delete it with /memory. Takes "
        "effect at the next join.",
    )
    facts_each: int = Field(
        default=6,
        ge=1,
        le=50,
        description="Most things the model is told about one person. Takes effect at the next join.",
    )
    section_tokens: int = Field(
        default=300,
        ge=40,
        le=4_000,
        description="Tokens that the section about the people present may take of a prompt, some 900 characters. "
        "Takes effect at the next join.",
    )
