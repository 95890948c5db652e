"""A recogniser of the pool says when it can hear nobody, so that Ray puts another in its place."""

from __future__ import annotations

import json
from http import HTTPStatus
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from bot.cluster import replica as replicas
from bot.cluster.replica import RecogniserReplica
from bot.cluster.transcription import PooledUtterance
from tests.fakes.recognizer import AnsweringEngine, recognition
from tests.patience import PATIENCE_S
from tests.voice.recordings import silence
from voice.asr import reading_recognizer, text_end
from voice.asr.settings import AsrSettings
from voice.circuit_breaker import Outage
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.asyncio
@pytest.mark.parametrize("is_told", [True, False])
async def test_it_reads_what_it_hears_if_it_is_told_where_the_model_is(
    tiny_reading_model: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    """One of a pool that an earlier release has deployed is not told, and hears all the same."""
    monkeypatch.setattr(text_end, "ANSWER_TIMEOUT_S", PATIENCE_S)
    monkeypatch.setattr(reading_recognizer, "CERTAIN_AFTER_S", PATIENCE_S)
    engine = AnsweringEngine(lambda _: recognition("the cat sat on the mat.", sentence_end_probability=0.9))
    monkeypatch.setattr(replicas, "whisper_on_best_device", lambda _: SimpleNamespace(load=lambda: engine))
    replica: Any = SimpleNamespace()
    folder = (str(tiny_reading_model.parent),) if is_told else ()
    # As Ray does it.
    starting: Any = RecogniserReplica.__init__(replica, AsrSettings().model_dump(mode="json"), {}, *folder)
    await starting
    try:
        answer = await RecogniserReplica.hear(
            replica, PooledUtterance(silence(1), "en", (), 42, interim=True, careful=False)
        )
    finally:
        await RecogniserReplica.__del__(replica)
    assert answer.status is HTTPStatus.OK
    assert (answer.body["text_end"] is not None) is is_told


def test_a_recogniser_takes_no_http() -> None:
    """Ray Serve hands on what it gets without the front's checks, so there is nothing that would take it."""
    assert "__call__" not in vars(RecogniserReplica)


@pytest.mark.asyncio
async def test_a_recogniser_that_hears_is_kept() -> None:
    """Nothing is raised, also while its model is loaded again after a single failure."""
    await check_health(is_running=True, outage=None)
