"""The recogniser service: a Whisper model behind its own queue, in processes that Ray Serve places and scales.

It answers as OpenAI's API does (`transcription`), so a bot uses it as any endpoint. It logs no text and no sound.
"""

from __future__ import annotations

import os
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, model_validator
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.responses import JSONResponse

from bot.cluster.transcription import TranscriptionRefusedError, check_request, request_of, verbose_json
from voice.asr.scheduler import QUEUE_SIZE, QueuedRecogniser
from voice.asr.settings import AsrSettings
from voice.asr.whisper import engine_on_best_device
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from ray.serve import Application
    from starlette.requests import Request

    from voice.asr.port import Recogniser


APP = "roomtone-recogniser"
DEPLOYMENT = "recogniser"
# The key is in the environment of Ray's processes, as it is in a bot's.
KEY_VARIABLE = "ROOMTONE_ASR__API_KEY"
# A GPU computes a few utterances in the time of one, a CPU does not (decision 0023).
_GPU_BATCH = 8
# A replica is added when so many utterances are with each one on average: one is heard, and half of the time one waits.
_ONGOING_EACH = 1.5
# Loading a model takes seconds, so a short peak gains nothing; voice channels fill and empty within minutes.
_UPSCALE_DELAY_S, _DOWNSCALE_DELAY_S = 3.0, 120.0
# Seconds that a replica that is removed has for the utterances it already has.
_DRAIN_S = 10.0


class ServiceSettings(BaseModel, extra="forbid", frozen=True, protected_namespaces=()):
    """How many replicas there are and what each reserves. `model_dir`: of the model, on every machine. `gpus`: a
    fraction is Ray's bookkeeping and limits no memory: four replicas with 0.25 must fit into one GPU together.
    `asks_for_key`: nobody is heard without `KEY_VARIABLE`, which every machine has in its environment.
    """

    model_dir: str
    least: int = Field(default=1, ge=1, le=256)
    most: int = Field(default=1, ge=1, le=256)
    cpus: float = Field(default=1.0, ge=0)
    gpus: float = Field(default=0.0, ge=0)
    asks_for_key: bool = False

    @model_validator(mode="after")
    def _makes_a_service(self) -> ServiceSettings:
        if self.most < self.least:
            raise ValueError("there are at most fewer recognisers than at least")
        if not self.cpus and not self.gpus:
            raise ValueError("each recogniser reserves a part of a CPU or of a GPU")
        return self


class TranscriptionEndpoint:
    """Answers requests with `recogniser`. `key`: empty: everybody may ask."""

    def __init__(self, recogniser: Recogniser, key: str) -> None:
        self._recogniser = recogniser
        self._key = key

    async def answer(self, request: Request) -> JSONResponse:
        """Answer one request. *Cancellation*: see `Recogniser`."""
        try:
            check_request(request.headers, method=request.method, path=request.url.path, key=self._key)
            async with request.form(max_files=1, max_fields=20) as form:
                file = form.get("file")
                if not isinstance(file, UploadFile):
                    raise TranscriptionRefusedError(HTTPStatus.BAD_REQUEST, "The request has no file.")
                wanted = request_of(form, await file.read())
            heard = await self._recogniser.recognise(wanted)
        except TranscriptionRefusedError as error:
            return _refusal(error.status, str(error))
        except MultiPartException:
            return _refusal(HTTPStatus.BAD_REQUEST, "The form is broken or has too many parts.")
        except RecogniserOverloadedError as error:
            return _refusal(HTTPStatus.TOO_MANY_REQUESTS, str(error))
        except RecogniserError as error:
            return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        return JSONResponse(verbose_json(heard))


class RecogniserService:
    """What Ray Serve runs: one replica. Serve awaits the constructor, so a replica gets no request before its model is
    loaded, and cancels a request whose caller is gone. Its model ends with its process.
    """

    async def __init__(self, settings: dict[str, Any]) -> None:  # type: ignore[misc] # Ray awaits it
        service = ServiceSettings.model_validate(settings)
        key = os.environ.get(KEY_VARIABLE, "") if service.asks_for_key else ""
        if service.asks_for_key and not key:
            raise RecogniserError(f"{KEY_VARIABLE} is not in the environment of this machine's Ray.")
        self.recogniser = QueuedRecogniser(
            engine_on_best_device(Path(service.model_dir), AsrSettings(), uses_gpu=bool(service.gpus)),
            batch_size=_GPU_BATCH if service.gpus else 1,
        )
        await self.recogniser.__aenter__()
        self._endpoint = TranscriptionEndpoint(self.recogniser, key)

    async def __call__(self, request: Request) -> JSONResponse:
        """Answer one request."""
        return await self._endpoint.answer(request)

    async def check_health(self) -> None:
        """Raise if the recogniser hears nobody: Ray then replaces this process. One whose model keeps failing is never
        busy, so it would be given more requests than one that works.
        """
        if not self.recogniser.is_running:
            raise RecogniserError("The recogniser has stopped.")
        if (outage := self.recogniser.model.outage) is not None:
            raise outage.problem


def application(settings: ServiceSettings) -> Application:
    """Return the service, for `serve deploy` too: `args` of its file are the fields of `ServiceSettings`."""
    from ray import serve
    from ray.serve.config import AutoscalingConfig

    deployment = serve.deployment(
        name=DEPLOYMENT,
        autoscaling_config=AutoscalingConfig(
            min_replicas=settings.least,
            max_replicas=settings.most,
            target_ongoing_requests=_ONGOING_EACH,
            upscale_delay_s=_UPSCALE_DELAY_S,
            downscale_delay_s=_DOWNSCALE_DELAY_S,
        ),
        max_ongoing_requests=QUEUE_SIZE,
        graceful_shutdown_timeout_s=_DRAIN_S,
        ray_actor_options={"num_cpus": settings.cpus, "num_gpus": settings.gpus},
    )
    return deployment(RecogniserService).bind(settings.model_dump())


def _refusal(status: HTTPStatus, message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message}}, status)
