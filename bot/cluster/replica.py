"""One recogniser of the pool: a Whisper model behind its own fair queue, in a process that Ray places.

It logs no text and no sound.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import AsyncExitStack
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bot.cluster.pool_settings import PoolSettings
from bot.cluster.transcription import Answer, refusal, verbose_json
from bot.models.text_end_reader import open_text_end_reader
from voice.asr.reading_recogniser import ReadingRecogniser
from voice.asr.scheduler import QueuedRecogniser
from voice.asr.settings import AsrSettings
from voice.asr.whisper import whisper_on_best_device
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from bot.cluster.transcription import PooledUtterance

# Seconds over which `busy_share` is measured.
BUSY_WINDOW_S = 10.0


class RecogniserReplica:
    """What Ray Serve runs. `settings`: `AsrSettings` as JSON data. `pool`: the fields of `PoolSettings`, which
    `deployment.deployed_pool` reads as well. `text_end_folder`: of the model that reads what was recognised, if it is
    there; empty: none, as in a pool that a release without that model has deployed. On a machine that was updated,
    Ray makes the recognisers of such a pool with this release.

    It takes calls of Ray's alone, which need the cluster's token, and no HTTP (`front`). Serve awaits the constructor,
    so a recogniser gets no request before its model is loaded, and calls `__del__` after the last one.
    """

    async def __init__(  # type: ignore[misc] # Ray awaits it
        self, settings: Mapping[str, Any], pool: Mapping[str, Any], text_end_folder: str = ""
    ) -> None:
        asr = AsrSettings.model_validate(settings)
        self._stack = AsyncExitStack()
        self._recogniser = await self._stack.enter_async_context(
            QueuedRecogniser(
                whisper_on_best_device(asr).load,
                batch_size=PoolSettings(**pool).batch_size,
            )
        )
        folder = Path(text_end_folder) if text_end_folder else None
        self._opened_reader = await open_text_end_reader(self._stack, folder)
        reader = self._opened_reader.reader
        self._reading = self._recogniser if reader is None else ReadingRecogniser(self._recogniser, reader)
        # Whoever must mend something here looks for the machine and the process.
        self._name = f"{socket.gethostname()}/{os.getpid()}"
        self._computed: list[tuple[float, float]] = [(time.monotonic(), 0.0)]

    async def __del__(self) -> None:
        await self._stack.aclose()

    async def hear(self, utterance: PooledUtterance) -> Answer:
        """Return what an utterance is answered with. *Cancellation*: see `Recogniser`."""
        try:
            recognition = await self._reading.recognise(
                utterance.pcm,
                language=utterance.language,
                glossary=utterance.glossary,
                speaker_id=utterance.speaker_id,
                interim=utterance.interim,
                careful=utterance.careful,
            )
        except RecogniserOverloadedError as error:
            return refusal(HTTPStatus.TOO_MANY_REQUESTS, str(error))
        except RecogniserError as error:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        fault = self._opened_reader.fault
        return Answer(HTTPStatus.OK, verbose_json(recognition, recogniser=self._name, reader_fault=fault))

    async def answers(self, utterance: PooledUtterance) -> AsyncIterator[Answer]:
        """Yield what `hear` returns. Ray Serve calls this: of a stream it learns at once that an utterance was taken,
        and so which recogniser is free; of a single answer only when that comes (decision 0023).
        """
        yield await self.hear(utterance)

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Return what `scaling` decides by. Ray Serve calls this every second."""
        return {"oldest_wait_s": self._recogniser.oldest_wait_s, "busy_share": self._busy_share()}

    async def check_health(self) -> None:
        """Raise if the recogniser hears nobody: Ray then replaces this process.

        One whose model keeps failing refuses its requests at once. Because it is never busy, it would be given more of
        them than one that works.
        """
        if not self._recogniser.is_running:
            raise RecogniserError("The recogniser of this node has stopped.")
        if (outage := self._recogniser.outage) is not None:
            raise outage.problem

    def _busy_share(self) -> float:
        now, computed_s = time.monotonic(), self._recogniser.figures.compute_s
        self._computed.append((now, computed_s))
        while now - self._computed[0][0] > BUSY_WINDOW_S and len(self._computed) > 2:
            del self._computed[0]
        since, before_s = self._computed[0]
        return min(1.0, (computed_s - before_s) / max(now - since, 1e-3))
