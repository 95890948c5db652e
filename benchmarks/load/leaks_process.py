"""Joins, leaves and receives in a process of its own (`python -m benchmarks.load.leaks_process`).

{"op": "enter", "discord": {...}}     -> {}    a client is logged in
{"op": "joins", "count": 50}          -> what the process holds after so many joins and leaves
{"op": "encrypted packets", "count": 2500}    -> the same after so many packets of an encrypted room
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import structlog

from benchmarks.child_process import keep_stdout_for_answers, serve
from benchmarks.load.client import main_gateway
from benchmarks.load.encrypted_room import EncryptedRoom
from benchmarks.load.growth import holding
from voice.transport.link import VoiceLink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voice.transport.discord_gateway import DiscordMainGateway

# The last connection's socket is closed a moment after its websocket.
_CLOSING_S = 0.5


class LeaksProcess:
    """The state of the process. `stack` closes what it opens."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._gateway: DiscordMainGateway | None = None
        self._encrypted: EncryptedRoom | None = None

    async def answer(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        """Carry out one request."""
        match request["op"]:
            case "enter":
                self._gateway = await main_gateway(self._stack, request["discord"])
                return {}
            case "joins":
                for _ in range(request["count"]):
                    await self._join_and_leave()
                await asyncio.sleep(_CLOSING_S)
            case "encrypted packets":
                if self._encrypted is None:
                    self._encrypted = EncryptedRoom()
                self._encrypted.send(request["count"])
            case other:
                raise ValueError(f"unknown request {other}")
        return asdict(holding())

    async def _join_and_leave(self) -> None:
        assert self._gateway is not None, "entered before"
        async with VoiceLink(self._gateway, sink=lambda _: None, is_excluded=lambda _: False, on_event=lambda _: None):
            pass


async def _run(answers: int) -> None:
    async with AsyncExitStack() as stack:
        await serve(answers, LeaksProcess(stack).answer)


if __name__ == "__main__":
    channel = keep_stdout_for_answers()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(_run(channel))
