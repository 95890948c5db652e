"""A recogniser of the pool, with a script in the place of its model: `python -m tests.cluster_faults.pool_server`.

Everything but the model is the pool's own: the queue (`bot.cluster.replica`), the check of the token, what it reads and
answers (`bot.cluster.front`). Ray Serve, which would start both and connect them, is not there: two cores do not carry
it beside a dozen rooms (`tests/bot/cluster` has it).
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import uvicorn
from starlette.responses import Response

from bot.cluster import replica
from bot.cluster.address import POOL_IP
from bot.cluster.front import PoolFront
from tests.fakes.recogniser import AnsweringEngine
from voice.asr.remote import RemoteRecogniser
from voice.asr.settings import AsrSettings
from voice.endpoint import Endpoint

if TYPE_CHECKING:
    from voice.asr.port import Recognition
    from voice.asr.worker import RecognitionRequest

_SCRIPT_S = 30.0


class Script:
    """Asks the test what an engine hears. `url`: of the test's recogniser. Made and used in one thread."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._script = self._loop.run_until_complete(self._opened(url))

    async def _opened(self, url: str) -> RemoteRecogniser:
        return await RemoteRecogniser(Endpoint(url, "script", "", _SCRIPT_S)).__aenter__()

    def answer(self, asked: RecognitionRequest) -> Recognition:
        """Return what the test says."""
        found = self._script.recognise(asked.pcm, language=asked.language, glossary=asked.glossary)
        return self._loop.run_until_complete(found)


async def serve(port: int, script_url: str, token: str) -> None:
    """Serve one recogniser at the pool's address until the process ends."""
    pool = replica.RecogniserReplica.__new__(replica.RecogniserReplica)
    scripted = SimpleNamespace(load=lambda: AnsweringEngine(Script(script_url).answer))
    with patch.object(replica, "whisper_on_best_device", lambda _: scripted):
        # As Ray does it.
        starting: Any = replica.RecogniserReplica.__init__(pool, AsrSettings().model_dump(mode="json"), {}, "")
        await starting

    app = PoolFront(Response(status_code=404), token=token, hear=pool.hear, ongoing=nullcontext)
    await uvicorn.Server(uvicorn.Config(app, POOL_IP, port, lifespan="off", log_level="warning")).serve()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2], sys.stdin.readline().strip()))
