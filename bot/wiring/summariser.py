"""Chooses the summariser: the configured language model, or the extractive one. Rooms get one for each server."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC
from typing import TYPE_CHECKING

from bot.errors import SetupError
from bot.llm.factory import open_model
from bot.participation.costs import MeteredCompletion
from compaction.settings import BudgetSettings, SummariserKind
from compaction.summary.extractive import ExtractiveSummariser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from datetime import tzinfo

    from bot.clock import Clock
    from bot.llm.settings import LlmSettings
    from bot.participation.all_guilds import GuildParticipations
    from bot.settings import ModelsSettings
    from compaction.ports import Completion
    from compaction.settings import CompactionSettings
    from compaction.summary.port import Summariser


def choose_summariser(
    kind: SummariserKind, completion: Completion | None, settings: CompactionSettings, zone: tzinfo = UTC
) -> Summariser:
    """Return the summariser of `kind`. `completion`: the language model, None if none is configured. `zone`: the time
    zone of the days that it writes.

    Raises `SetupError` if `kind` needs a language model and there is none.
    """
    if kind is SummariserKind.EXTRACTIVE or (kind is SummariserKind.AUTO and completion is None):
        return ExtractiveSummariser()
    if completion is None:
        raise SetupError(
            "Folding with a language model needs one: set llm.base_url (for example http://127.0.0.1:11434/v1) or "
            "llm.api_key, and llm.model; or use the extractive summariser."
        )
    from compaction.summary.llm import LlmSummariser

    return LlmSummariser(
        completion,
        max_output_tokens=settings.max_output_tokens,
        within_s=settings.timeout_s,
        zone=zone,
    )


def summarisers_by_guild(
    settings: CompactionSettings,
    model: Completion | None,
    participation: GuildParticipations,
    clock: Clock,
    zone: tzinfo = UTC,
) -> Callable[[int], Awaitable[Summariser]]:
    """Return the function that makes a server's summariser, whose calls count in that server's hour.

    Raises `SetupError` if the settings ask for a language model and there is none.
    """
    # Made once at the start too, so that a mistake in the settings or the prompt files is found then.
    unmetered = choose_summariser(settings.summariser, model, settings, zone)

    async def summariser_of(guild_id: int) -> Summariser:
        if model is None:
            return unmetered
        costs = (await participation.of_guild(guild_id)).costs
        return choose_summariser(
            settings.summariser, MeteredCompletion(model, costs, monotonic=clock.monotonic), settings, zone
        )

    return summariser_of


@asynccontextmanager
async def open_summariser(
    llm: LlmSettings,
    settings: CompactionSettings,
    kind: SummariserKind,
    *,
    budget: BudgetSettings | None = None,
    models: ModelsSettings | None = None,
) -> AsyncIterator[Summariser]:
    """Yield a summariser with a model connection of its own, limited by `budget` (default: the default budget).

    `models`: where the model's tokenizer file may be.
    """
    if not llm.configured or kind is SummariserKind.EXTRACTIVE:
        yield choose_summariser(kind, None, settings)
        return
    async with open_model(llm, budget or BudgetSettings(), models) as model:
        yield choose_summariser(kind, model, settings)
