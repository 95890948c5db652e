"""A recogniser of the pool says when it can hear nobody, so that Ray puts another in its place."""

from __future__ import annotations

import json
from http import HTTPStatus
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from bot.cluster.replica import RecogniserReplica
from bot.cluster.transcription import PooledUtterance
from tests.fakes.recognizer import recognition
from tests.voice.recordings import silence
from voice.circuit_breaker import Outage
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from voice.asr.port import Recognition
    from voice.audio import Pcm

# Ray's own modules use what their libraries deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

FAILED = RecogniserError("The speech model failed several times in a row.")


async def check_health(**recognizer: object) -> None:
    """Ask a replica with a recogniser of these attributes."""
    replica: Any = SimpleNamespace(_recognizer=SimpleNamespace(**recognizer))
    await RecogniserReplica.check_health(replica)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("recognizer", "why"),
    [
        ({"is_running": False, "outage": None}, "has stopped"),
        ({"is_running": True, "outage": Outage(1.0, 11.0, FAILED)}, "several times in a row"),
        ({"is_running": True, "outage": Outage(1.0, None, FAILED)}, "several times in a row"),
    ],
)
async def test_a_recogniser_that_hears_nobody_is_replaced(recognizer: dict[str, object], why: str) -> None:
    """One that refuses every request at once would get more of them than those that work, because it is never busy."""
    with pytest.raises(RecogniserError, match=why):
        await check_health(**recognizer)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("heard", "status", "said"),
    [
        (recognition("hello there"), HTTPStatus.OK, "hello there"),
        (RecogniserOverloadedError("The queue is full."), HTTPStatus.TOO_MANY_REQUESTS, "The queue is full."),
        (FAILED, HTTPStatus.SERVICE_UNAVAILABLE, str(FAILED)),
    ],
)
async def test_what_it_hears_or_why_not_is_the_answer(
    heard: Recognition | RecogniserError, status: HTTPStatus, said: str
) -> None:
    """Nothing is raised: Ray would log it with all that was called."""
    asked: dict[str, object] = {}

    async def recognize(pcm: Pcm, **told: object) -> Recognition:
        asked.update(told, pcm=pcm)
        if isinstance(heard, RecogniserError):
            raise heard
        return heard

    replica: Any = SimpleNamespace(_reading=SimpleNamespace(recognize=recognize))
    utterance = PooledUtterance(silence(1), "de", ("Ada",), 42, interim=True, careful=False)
    answer = await RecogniserReplica.hear(replica, utterance)
    assert answer.status is status
    assert said in json.dumps(answer.body)
    assert asked == {
        "pcm": utterance.pcm,
        "language": "de",
        "glossary": ("Ada",),
        "speaker_id": 42,
        "interim": True,
        "careful": False,
    }


def test_a_recogniser_takes_no_http() -> None:
    """Ray Serve hands on what it gets without the front's checks, so there is nothing that would take it."""
    assert "__call__" not in vars(RecogniserReplica)


@pytest.mark.asyncio
async def test_a_recogniser_that_hears_is_kept() -> None:
    """Nothing is raised, also while its model is loaded again after a single failure."""
    await check_health(is_running=True, outage=None)
