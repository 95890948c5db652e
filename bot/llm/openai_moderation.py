"""Adapter for OpenAI's moderation API, which checks each sentence before it is spoken."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Self

from bot.texts.text import OperatorText, Text
from voice.speaking.moderation import ModerationError

if TYPE_CHECKING:
    from types import TracebackType

    from voice.endpoint import Endpoint

MODEL = "omni-moderation-latest"
# The name of a category, as the log may have it. An endpoint can write anything there, also what it was asked about.
_CATEGORY = re.compile(r"[a-z]+(?:[_/-][a-z]+){0,3}")
_CATEGORY_CHARS = 40
# Seconds that one judgement may take; usually it takes 0.2.
TIMEOUT_S = 3.0


class OpenAIModerator:
    """One endpoint and one model (`voice.speaking.moderation.Moderator`).

    *Ownership*: an async context manager; it owns the HTTP connections. *Cancellation* ends the call in progress.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client = endpoint.open()

    async def __aenter__(self) -> Self:
        # First use imports the library's moderation module, which would block the event loop.
        await asyncio.to_thread(lambda: self._client.moderations)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._client.close()

    async def objection(self, text: str) -> str | None:
        """Return the flagged categories with commas between them, or None if there are none. Raises `ModerationError`,
        also if the endpoint answers without a judgement.
        """
        try:
            async with asyncio.timeout(self._endpoint.timeout_s):
                answer = await self._client.moderations.create(input=text, model=self._endpoint.model)
            if not answer.results or not all(isinstance(result.flagged, bool) for result in answer.results):
                raise ValueError("no judgement")
            flagged = [result for result in answer.results if result.flagged]
            names = sorted({name for result in flagged for name, hit in result.categories.model_dump().items() if hit})
        except Exception as error:
            raise ModerationError(
                OperatorText(
                    "What I wanted to say could not be checked at {where} ({error}), so I did not say it. Check "
                    "speaking.moderation and that its endpoint answers.",
                    Text("I could not check what I wanted to say, so I did not say it."),
                    where=self._endpoint.where,
                    error=type(error).__name__,
                )
            ) from error
        known = [name for name in names if len(name) <= _CATEGORY_CHARS and _CATEGORY.fullmatch(name)]
        return (",".join(known) or "flagged") if flagged else None
