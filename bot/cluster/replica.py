"""One recogniser of the pool: a Whisper model behind its own fair queue, in a process that Ray places.

It logs no text and no sound.
"""

from __future__ import annotations

import os
import time
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.datastructures import UploadFile
from starlette.responses import JSONResponse

from bot.cluster.pool_settings import PoolSettings
from bot.cluster.transcription import TranscriptionRefusedError, check_caller, utterance_of, verbose_json
from voice.asr.scheduler import QueuedRecognizer
from voice.asr.settings import AsrSettings
from voice.asr.whisper import whisper_on_best_device
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from bot.cluster.transcription import PooledUtterance
    from voice.asr.port import Recognition

# As Ray gives its own processes by itself, unless it is told otherwise (`node`).
NICENESS = 15
# Seconds over which `busy_share` is measured.
BUSY_WINDOW_S = 10.0


class RecogniserReplica:
    """What Ray Serve runs. `settings`: `AsrSettings` as JSON data. `token`: the cluster's. `pool`: the fields of
    `PoolSettings`, which `deployment.deployed_pool` reads as well.

    Serve awaits the constructor, so a recogniser gets no request before its model is loaded, and calls `__del__` after
    the last one.
    """

    async def __init__(  # type: ignore[misc] # Ray awaits it
        self, settings: Mapping[str, Any], token: str, pool: Mapping[str, Any]
    ) -> None:
        # A room on this machine comes first: people hear its voice falter, and wait a little for a text.
        os.nice(NICENESS)
        self._token = token
        self._stack = AsyncExitStack()
        self._recognizer = await self._stack.enter_async_context(
            QueuedRecognizer(
                whisper_on_best_device(AsrSettings.model_validate(settings)).load,
                batch_size=PoolSettings(**pool).batch_size,
            )
        )
        self._computed: list[tuple[float, float]] = [(time.monotonic(), 0.0)]

    async def __del__(self) -> None:
        await self._stack.aclose()

    async def __call__(self, request: Request) -> JSONResponse:
        """Answer one HTTP request."""
        try:
            check_caller(request.headers, method=request.method, path=request.url.path, token=self._token)
            recognition = await self._recognize(await _utterance(request))
        except TranscriptionRefusedError as refused:
            return _error(refused.status, str(refused))
        except RecogniserOverloadedError as error:
            return _error(HTTPStatus.TOO_MANY_REQUESTS, str(error))
        except RecogniserError as error:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        return JSONResponse(verbose_json(recognition))

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Return what `scaling` decides by. Ray Serve calls this every second."""
        return {"oldest_wait_s": self._recognizer.oldest_wait_s, "busy_share": self._busy_share()}

    async def check_health(self) -> None:
        """Raise if the recogniser hears nobody: Ray then replaces this process.

        One whose model keeps failing refuses its requests at once. Because it is never busy, it would be given more of
        them than one that works.
        """
        if not self._recognizer.is_running:
            raise RecogniserError("The recogniser of this node has stopped.")
        if (outage := self._recognizer.outage) is not None:
            raise outage.problem

    async def _recognize(self, utterance: PooledUtterance) -> Recognition:
        return await self._recognizer.recognize(
            utterance.pcm,
            language=utterance.language,
            glossary=utterance.glossary,
            speaker_id=utterance.speaker_id,
            interim=utterance.interim,
            careful=utterance.careful,
        )

    def _busy_share(self) -> float:
        now, computed_s = time.monotonic(), self._recognizer.figures.compute_s
        self._computed.append((now, computed_s))
        while now - self._computed[0][0] > BUSY_WINDOW_S and len(self._computed) > 2:
            del self._computed[0]
        since, before_s = self._computed[0]
        return min(1.0, (computed_s - before_s) / max(now - since, 1e-3))


async def _utterance(request: Request) -> PooledUtterance:
    async with request.form(max_files=1, max_fields=20) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise TranscriptionRefusedError(HTTPStatus.BAD_REQUEST, "The request has no file.")
        return utterance_of(form, await file.read(), request.headers)


def _error(status: HTTPStatus, message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message}}, status_code=status)
