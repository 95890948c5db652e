"""The attempts to replace a broken voice websocket. The main gateway may name another voice server during one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import discord

from voice.errors import VoiceConnectionError

if TYPE_CHECKING:
    from collections.abc import Coroutine

# What an attempt raises if the server is gone, refuses it, or takes too long: `TimeoutError` is an `OSError`.
FAILURES = (discord.ConnectionClosed, VoiceConnectionError, aiohttp.ClientError, OSError)


class Attempts:
    """The attempts of one connection, one at a time, each with a time limit."""

    def __init__(self) -> None:
        self._limit: asyncio.Timeout | None = None
        self._superseded = False

    @property
    def under_way(self) -> bool:
        """Whether the websocket is being replaced."""
        return self._limit is not None

    def supersede(self) -> None:
        """End the attempt that is under way, because another server was named."""
        assert self._limit is not None, "an attempt is under way"
        self._superseded = True
        if not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    async def make(self, attempt: Coroutine[None, None, None], *, within_s: float) -> bool:
        """Make an attempt. Returns False if another server was named during it, which is to be tried then.

        Raises `FAILURES`; `TimeoutError` after `within_s`.
        """
        self._superseded = False
        try:
            async with asyncio.timeout(within_s) as self._limit:
                await attempt
        except FAILURES:
            if not self._superseded:
                raise
        finally:
            self._limit = None
        return not self._superseded
