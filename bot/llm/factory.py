"""Builds the configured language model with its budget, and asks an endpoint which models it serves."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bot.clock import Clock, SystemClock
from bot.llm.budgeted import Budget, BudgetedModel
from bot.llm.fallback import FallbackModel
from bot.llm.model_calls import OPERATOR, UNMETERED, CallMeter, PaidModel
from bot.llm.port import ChatMessage, ChatRole
from bot.llm.settings import USUAL_LIMITS, AnswerLimits, LlmSettings
from compaction.budget.estimator import Estimator
from compaction.settings import BudgetSettings

# A local server may have to load the model first.
TRIAL_S = 120.0
TRIAL = (ChatMessage(ChatRole.USER, "Answer with one word: ready."),)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.settings import ModelsSettings


@asynccontextmanager
async def open_model(
    llm: LlmSettings,
    budget: BudgetSettings,
    models: ModelsSettings | None = None,
    *,
    first_token_s: float = USUAL_LIMITS.first_token_s,
    within_s: float | None = None,
    clock: Clock | None = None,
    meter: CallMeter = UNMETERED,
) -> AsyncIterator[FallbackModel]:
    """Open the configured model with its fallback models, each with its budget; close them at the end of the block.

    `models`: where vocabularies for exact token counts may be. `first_token_s`: how long each may take to begin its
    answer. `within_s`: time until the first sound of a reply; by default two models can be asked in it. `meter`: gets
    each call when it has ended.
    """
    # Imported here, because the library takes a second to load.
    from bot.llm.openai_chat import OpenAIChat

    context_sizes = [None, *(each.max_context_tokens for each in llm.fallback_models)]
    async with AsyncExitStack() as stack:
        opened: list[BudgetedModel] = []
        for each, size in zip((llm, *llm.fallbacks()), context_sizes, strict=True):
            endpoint = await stack.enter_async_context(OpenAIChat(each, AnswerLimits(first_token_s)))
            own = budget if size is None else budget.model_copy(update={"max_context_tokens": size})
            opened.append(BudgetedModel(endpoint, await open_budget(each.model, own, models), meter=meter))
        yield FallbackModel(opened, within_s=within_s or 2 * first_token_s, clock=clock or SystemClock())


async def open_budget(model: str, budget: BudgetSettings, models: ModelsSettings | None = None) -> Budget:
    """Return the budget of the model with that name. Counts are exact if its vocabulary is installed."""
    if models is None:
        return Budget(budget)

    def read() -> Estimator:
        from bot.llm.tokenizers import tokenizer_for

        return Estimator(tokenizer_for(model, models.directory, choice=budget.token_estimator))

    # In a thread: reading a vocabulary takes some tenths of a second.
    return Budget(budget, await asyncio.to_thread(read))


async def try_model(settings: LlmSettings) -> None:
    """Have the model answer once, at the operator's cost. Raises `ChatModelError` with the remedy."""
    alone = settings.model_copy(update={"fallback_models": ()})
    async with open_model(alone, BudgetSettings(), first_token_s=TRIAL_S) as model:
        stream = PaidModel(model, OPERATOR).stream(TRIAL, max_output_tokens=settings.max_output_tokens)
        async with aclosing(stream) as answer:
            async for _ in answer:
                pass


async def list_served_models(settings: LlmSettings, *, timeout_s: float = 10.0) -> tuple[str, ...]:
    """Return the names of the models that the endpoint serves. Raises `ChatModelError` with the remedy.

    It is the cheapest call that checks both address and key. Servers without such a list give an empty one.
    """
    import openai

    from bot.llm.endpoint_errors import translate_error
    from voice.endpoint import open_client
    from voice.endpoint_settings import address

    key = settings.api_key.get_secret_value() if settings.api_key else ""
    # Anthropic's list of models is no part of their OpenAI-compatible endpoint.
    is_anthropic = urlsplit(settings.base_url).hostname == "api.anthropic.com"
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"} if is_anthropic else {}
    async with open_client(settings.base_url, key, timeout_s=timeout_s) as client:
        try:
            async with asyncio.timeout(timeout_s):
                page = await client.models.list(extra_headers=headers)
                # Gemini calls its models models/gemini-…, and takes both names. Ollama without models sends null.
                return tuple(model.id.removeprefix("models/") for model in page.data or ())
        except openai.NotFoundError:
            return ()
        except Exception as error:
            where = address(settings.base_url)
            raise translate_error(error, model=settings.model, where=where, key=key) from error
