"""A voice websocket of discord.py, without its network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import aiohttp

from tests.patience import PATIENCE_S
from voice.hearing import EventQueue
from voice.transport.private.connection_state import ReceivingState
from voice.transport.private.websocket import TolerantWebSocket
from voice.transport.receiver import Receiver


def _receiver() -> Receiver:
    return Receiver(deliver=EventQueue(0), heard_since=lambda _: float("-inf"))


@contextlib.asynccontextmanager
async def connection_state() -> AsyncIterator[ReceivingState]:
    """Yield a connection state without a client, which is enough for its internal logic."""
    client: Any = SimpleNamespace(user=SimpleNamespace(id=1001), loop=asyncio.get_running_loop(), state_is=bool)
    state = ReceivingState(client, receiver=_receiver())
    try:
        yield state
    finally:
        state._socket_reader.stop()
        await asyncio.to_thread(state._socket_reader.join, PATIENCE_S)
        assert not state._socket_reader.is_alive()


class Recorder:
    """Takes the place of a websocket's connection: gives `messages` and records what is sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.messages: list[aiohttp.WSMessage] = []

    async def receive(self) -> aiohttp.WSMessage:
        return self.messages.pop(0)

    async def send_str(self, text: str) -> None:
        self.sent.append(text)

    async def send_bytes(self, data: bytes) -> None:
        self.sent.append(data)


@contextlib.asynccontextmanager
async def websocket() -> AsyncIterator[tuple[TolerantWebSocket, ReceivingState, Recorder]]:
    async with connection_state() as state:
        recorder = Recorder()
        ws = TolerantWebSocket(recorder, asyncio.get_running_loop(), hook=state.hook)  # type: ignore[arg-type]
        ws._connection = state
        state.ws = state.voice_client.ws = ws  # type: ignore[misc]
        state.voice_client.channel = SimpleNamespace(id=42)  # type: ignore[assignment]
        state.dave_protocol_version = 1
        await state.reinit_dave_session()
        recorder.sent.clear()
        yield ws, state, recorder
