"""Asks an endpoint what it serves: the cheapest question that shows address, key and model name to be right."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import openai

from bot.llm.openai_chat import CONNECT_TIMEOUT_S
from bot.llm.trouble import translated

if TYPE_CHECKING:
    from bot.settings import LlmSettings

_OPENAI_URL = "https://api.openai.com/v1"


async def served_models(settings: LlmSettings, *, timeout_s: float = 10.0) -> tuple[str, ...]:
    """Return the names of the models the endpoint serves. Raises `ChatModelError` with the remedy."""
    url = settings.base_url or _OPENAI_URL
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    timeout = httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S)
    async with openai.AsyncOpenAI(api_key=key or "none", base_url=url, timeout=timeout, max_retries=0) as client:
        try:
            async with asyncio.timeout(timeout_s):
                page = await client.models.list()
                return tuple(model.id for model in page.data)
        except Exception as error:
            raise translated(error, model=settings.model, where=url) from error
