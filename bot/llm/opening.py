"""Opens the configured language model, behind its budget. Nobody else makes one."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.llm.budget import Budget
from bot.llm.budgeted import BudgetedModel
from compaction.budget.estimator import Estimator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.settings import LlmSettings, ModelsSettings
    from compaction.settings import BudgetSettings


@asynccontextmanager
async def open_model(
    llm: LlmSettings, budget: BudgetSettings, models: ModelsSettings | None = None
) -> AsyncIterator[BudgetedModel]:
    """Lend the model of `llm` within `budget`, and close its connections. `models`: where its vocabulary may be."""
    # Imported where it is needed: the library takes a second to load.
    from bot.llm.openai_chat import OpenAIChat

    async with OpenAIChat(llm) as endpoint:
        yield BudgetedModel(endpoint, await open_budget(llm.model, budget, models))


async def open_budget(model: str, budget: BudgetSettings, models: ModelsSettings | None = None) -> Budget:
    """Return the budget for the model of that name, counted by its own tokeniser where that is at hand."""
    if models is None:
        return Budget(budget, Estimator(model))

    def read() -> Estimator:
        from bot.llm.tokenizers import ShelvedTokenizers

        tokenizers = ShelvedTokenizers(models.directory, choice=budget.token_estimator)
        return Estimator(model, tokenizers.for_model(model))

    # Reading a vocabulary takes some tenths of a second.
    return Budget(budget, await asyncio.to_thread(read))
