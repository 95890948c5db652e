"""The real client library connected to a local realtime server, with engines that need no model."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import openai
import pytest
from numpy.typing import NDArray
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from rehearsal.servers.realtime import LocalRealtimeServer
from rehearsal.servers.realtime_behaviour import FunctionCall, RealtimeBehaviour, RealtimeEngines, ResponseRequest
from rehearsal.servers.realtime_session import ServerSession
from tests.patience import PATIENCE_S

RATE_HZ = 24_000
# Each spoken word is a tone of this many milliseconds.
WORD_MS = 250


def tone(words: int, rate_hz: int = RATE_HZ) -> NDArray[np.int16]:
    """Return a tone as long as `words` words."""
    samples = words * WORD_MS * rate_hz // 1000
    return (8000 * np.sin(2 * np.pi * 220 * np.arange(samples) / rate_hz)).astype(np.int16)


class FakeModel:
    """Fake engines. They "hear" the given texts in order, and give the answers in `answers` or repeat what was said."""

    def __init__(self, *heard: str) -> None:
        self.heard = list(heard)
        self.answers: list[str | FunctionCall] = []
        self.pcm: list[NDArray[np.int16]] = []

    def engines(self) -> RealtimeEngines:
        """Return the engines for a local realtime server."""
        return RealtimeEngines(self._recognise, self._answer, self._speak)

    async def _recognise(self, pcm: NDArray[np.int16]) -> str:
        self.pcm.append(pcm)
        return self.heard.pop(0) if self.heard else "something"

    async def _answer(self, asked: ResponseRequest) -> str | FunctionCall:
        if self.answers:
            return self.answers.pop(0)
        last = next((text for role, text in reversed(asked.items) if role == "user"), "nothing")
        return f"You said {last}"

    async def _speak(self, text: str) -> NDArray[np.int16]:
        return tone(len(text.split()))


def report_usage(monkeypatch: pytest.MonkeyPatch, usage: Mapping[str, object]) -> None:
    """Let local realtime servers report this usage with each response."""
    made = ServerSession.response_json

    def billed(self: ServerSession, *args: Any, **others: Any) -> dict[str, Any]:
        return {**made(self, *args, **others), "usage": usage}

    monkeypatch.setattr(ServerSession, "response_json", billed)


class RealtimeLine:
    """One connection of the real client."""

    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self.connection = connection
        self.seen: list[dict[str, Any]] = []

    async def send(self, kind: str, **fields: Any) -> None:
        """Send one client event."""
        await self.connection.send_raw(json.dumps({"type": kind, **fields}))

    async def until(self, kind: str) -> dict[str, Any]:
        """Return the next server event of this type. Events before it are kept in `seen`."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                event = json.loads(await self.connection.recv_bytes())
                self.seen.append(event)
                if event["type"] == kind:
                    return dict(event)

    async def say(self, words: int) -> None:
        """Append and commit the sound of `words` words."""
        await self.send("input_audio_buffer.append", audio=encoded(tone(words)))
        await self.send("input_audio_buffer.commit")

    @property
    def types(self) -> list[str]:
        """Return the types of all received events, in order."""
        return [event["type"] for event in self.seen]


def encoded(pcm: NDArray[np.int16]) -> str:
    """Return sound in base64, as the protocol sends it."""
    return base64.b64encode(pcm.tobytes()).decode()


@asynccontextmanager
async def client_of(server: LocalRealtimeServer) -> AsyncIterator[RealtimeLine]:
    """Connect to the server with the real client."""
    client = openai.AsyncOpenAI(api_key="local", base_url=server.base_url)
    try:
        async with client.realtime.connect(model="local-realtime") as connection:
            yield RealtimeLine(connection)
    finally:
        await client.close()


@asynccontextmanager
async def served(model: FakeModel, behaviour: RealtimeBehaviour | None = None) -> AsyncIterator[LocalRealtimeServer]:
    """Run a local realtime server with a fake model."""
    async with LocalRealtimeServer(model.engines(), behaviour) as server:
        yield server
