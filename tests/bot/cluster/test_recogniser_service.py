"""A replica of the recogniser service answers the bot's own client, and says when it hears nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from pydantic import ValidationError
from starlette.requests import Request

from bot.background_task import owned_task
from bot.cluster.recogniser_service import (
    KEY_VARIABLE,
    RecogniserService,
    ServiceSettings,
    TranscriptionEndpoint,
    application,
)
from tests.fakes.hearing import CannedRecogniser
from tests.fakes.recogniser import recognition
from tests.free_port import free_port
from tests.voice.recordings import voiced
from voice.asr.port import RecognitionRequest
from voice.asr.remote import RemoteRecogniser
from voice.circuit_breaker import Outage
from voice.endpoint import Endpoint
from voice.errors import RecogniserError

# Ray's own modules use what their libraries deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@asynccontextmanager
async def endpoint(key: str) -> AsyncIterator[str]:
    """Serve a recogniser that hears always the same, without Ray; yield the base URL."""
    served = TranscriptionEndpoint(CannedRecogniser(otherwise="from the service"), key)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (await served.answer(Request(scope, receive)))(scope, receive, send)

    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, "127.0.0.1", port, lifespan="off", log_level="warning"))
    async with owned_task(server.serve(), name="endpoint") as serving:
        while not server.started:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.should_exit = True
            await serving


async def test_a_bot_with_the_key_is_heard_and_no_other() -> None:
    """The bot's client reads the answer as it reads any endpoint's."""
    async with (
        endpoint("secret") as url,
        RemoteRecogniser(Endpoint(url, "whisper-1", "secret")) as bot,
        RemoteRecogniser(Endpoint(url, "whisper-1", "guessed")) as stranger,
    ):
        heard = await bot.recognise(RecognitionRequest(voiced(1), language="en"))
        assert heard.text == "from the service"
        assert heard.mean_logprob == recognition("from the service").mean_logprob
        with pytest.raises(RecogniserError, match="key"):
            await stranger.recognise(RecognitionRequest(voiced(1), language="en"))


async def test_a_service_that_asks_for_a_key_does_not_start_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose environment lacks it would hear everybody."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    starting: Any = RecogniserService.__init__
    with pytest.raises(RecogniserError, match=KEY_VARIABLE):
        await starting(SimpleNamespace(), ServiceSettings(model_dir="/models", asks_for_key=True).model_dump())


@pytest.mark.parametrize(
    ("is_running", "outage", "why"),
    [
        (False, None, "has stopped"),
        (True, Outage(1.0, None, RecogniserError("It failed.")), "failed"),
    ],
)
async def test_a_recogniser_that_hears_nobody_is_replaced(*, is_running: bool, outage: Outage | None, why: str) -> None:
    """One that refuses every request at once would get more of them than those that work, because it is never busy."""
    model = SimpleNamespace(outage=outage)
    service: Any = SimpleNamespace(recogniser=SimpleNamespace(is_running=is_running, model=model))
    with pytest.raises(RecogniserError, match=why):
        await RecogniserService.check_health(service)


def test_the_service_scales_within_its_bounds_on_ongoing_requests() -> None:
    """Each replica reserves what was asked for."""
    made: Any = application(ServiceSettings(model_dir="/models", least=2, most=5, gpus=0.25))._bound_deployment
    scaling = made._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas) == (2, 5)
    assert scaling.target_ongoing_requests > 0
    assert made.ray_actor_options["num_gpus"] == 0.25


@pytest.mark.parametrize("wrong", [{"least": 3, "most": 2}, {"least": 0}, {"cpus": 0}, {"gpus": -1}, {"more": 1}])
def test_what_makes_no_service_is_refused(wrong: dict[str, Any]) -> None:
    """Before anything is started."""
    with pytest.raises(ValidationError):
        ServiceSettings.model_validate({"model_dir": "/models", **wrong})
