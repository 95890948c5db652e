"""Asks an endpoint what it serves: the cheapest question that shows address, key and model name to be right."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bot.llm.endpoint_errors import translated
from voice.endpoint import address, open_client

if TYPE_CHECKING:
    from bot.settings import LlmSettings


async def served_models(settings: LlmSettings, *, timeout_s: float = 10.0) -> tuple[str, ...]:
    """Return the names of the models the endpoint serves. Raises `ChatModelError` with the remedy."""
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    async with open_client(settings.base_url, key, timeout_s=timeout_s) as client:
        try:
            async with asyncio.timeout(timeout_s):
                page = await client.models.list()
                return tuple(model.id for model in page.data)
        except Exception as error:
            raise translated(error, model=settings.model, where=address(settings.base_url), key=key) from error
