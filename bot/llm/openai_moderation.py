"""The moderation API of an OpenAI-compatible endpoint, asked before the bot says something."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

import httpx
import openai

from voice.speaking.moderation import ModerationError

if TYPE_CHECKING:
    from types import TracebackType

OPENAI_URL = "https://api.openai.com/v1"
CONNECT_TIMEOUT_S = 5.0


class OpenAIModerator:
    """One endpoint (`voice.speaking.moderation.Moderator`). `base_url` empty is OpenAI itself.

    *Ownership*: an async context manager; it owns the HTTP connections. *Cancellation* hangs up the running call.
    """

    def __init__(self, *, base_url: str, api_key: str, model: str, timeout_s: float) -> None:
        self._where = base_url or OPENAI_URL
        self._model = model
        self._timeout_s = timeout_s
        self._client = openai.AsyncOpenAI(
            # The library insists on some key; servers without keys ignore it.
            api_key=api_key or "none",
            base_url=self._where,
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
            max_retries=0,
        )

    async def __aenter__(self) -> Self:
        # The library imports this part when it is first touched, which takes a while.
        await asyncio.to_thread(lambda: self._client.moderations)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    async def objection(self, text: str) -> str | None:
        """Return the flagged categories, or None. Raises `ModerationError`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._client.moderations.create(input=text, model=self._model)
            flagged = [result for result in answer.results if result.flagged]
            names = sorted({name for result in flagged for name, hit in result.categories.model_dump().items() if hit})
        except Exception as error:
            raise ModerationError(
                f"What I wanted to say could not be checked at {self._where} ({type(error).__name__}), so I did not "
                "say it. Check speaking.moderation and that its endpoint answers."
            ) from error
        return (", ".join(names) or "flagged") if flagged else None
