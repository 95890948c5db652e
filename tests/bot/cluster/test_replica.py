"""A recogniser of the pool says when it can hear nobody, so that Ray puts another in its place."""

from __future__ import annotations

import json
import os
import socket
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from bot.cluster import replica as replicas
from bot.cluster.replica import RecogniserReplica
from bot.cluster.transcription import PooledUtterance
from bot.models.text_end_reader import OpenedReader
from tests.fakes.recogniser import AnsweringEngine, recognition
from tests.patience import PATIENCE_S
from tests.voice.recordings import silence
from voice.asr import reading_recogniser, text_end
from voice.asr.settings import AsrSettings
from voice.asr.text_end import SentenceReader
from voice.circuit_breaker import Outage
from voice.errors import RecogniserError, RecogniserOverloadedError
from voice.quick_model import TurnModelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from voice.asr.port import Recognition
    from voice.audio import Pcm

# Ray's own modules use what their libraries deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

FAILED = RecogniserError("The speech model failed several times in a row.")


async def check_health(**recogniser: object) -> None:
    """Ask a replica with a recogniser of these attributes."""
    replica: Any = SimpleNamespace(_recogniser=SimpleNamespace(**recogniser))
    await RecogniserReplica.check_health(replica)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("recogniser", "why"),
    [
        ({"is_running": False, "outage": None}, "has stopped"),
        ({"is_running": True, "outage": Outage(1.0, 11.0, FAILED)}, "several times in a row"),
        ({"is_running": True, "outage": Outage(1.0, None, FAILED)}, "several times in a row"),
    ],
)
async def test_a_recogniser_that_hears_nobody_is_replaced(recogniser: dict[str, object], why: str) -> None:
    """One that refuses every request at once would get more of them than those that work, because it is never busy."""
    with pytest.raises(RecogniserError, match=why):
        await check_health(**recogniser)


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

    async def recognise(pcm: Pcm, **told: object) -> Recognition:
        asked.update(told, pcm=pcm)
        if isinstance(heard, RecogniserError):
            raise heard
        return heard

    replica: Any = SimpleNamespace(
        _reading=SimpleNamespace(recognise=recognise), _opened_reader=OpenedReader(), _name="north/4711"
    )
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


@asynccontextmanager
async def started(monkeypatch: pytest.MonkeyPatch, *folder: str) -> AsyncIterator[Any]:
    """Start a replica that hears the same of every sound, as Ray does it, and end it."""
    monkeypatch.setattr(text_end, "ANSWER_TIMEOUT_S", PATIENCE_S)
    monkeypatch.setattr(reading_recogniser, "CERTAIN_AFTER_S", PATIENCE_S)
    engine = AnsweringEngine(lambda _: recognition("the cat sat on the mat.", sentence_end_probability=0.9))
    monkeypatch.setattr(replicas, "whisper_on_best_device", lambda _: SimpleNamespace(load=lambda: engine))
    replica: Any = SimpleNamespace()
    starting: Any = RecogniserReplica.__init__(replica, AsrSettings().model_dump(mode="json"), {}, *folder)
    await starting
    try:
        yield replica
    finally:
        await RecogniserReplica.__del__(replica)


async def told_of_a_pause(replica: Any) -> Mapping[str, Any]:
    """Return what a replica answers to unfinished speech."""
    utterance = PooledUtterance(silence(1), "en", (), 42, interim=True, careful=False)
    answer = await RecogniserReplica.hear(replica, utterance)
    assert answer.status is HTTPStatus.OK
    return answer.body


@pytest.mark.asyncio
@pytest.mark.parametrize("is_told", [True, False])
async def test_it_reads_what_it_hears_if_it_is_told_where_the_model_is(
    tiny_reading_model: Path, monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    """One of a pool that an earlier release has deployed is not told, and hears all the same."""
    async with started(monkeypatch, *((str(tiny_reading_model.parent),) if is_told else ())) as replica:
        told = await told_of_a_pause(replica)
    assert (told["text_end"] is not None) is is_told
    assert told["reader_fault"] is None


@pytest.mark.asyncio
async def test_a_model_that_fails_is_told_as_long_as_it_does(
    tiny_reading_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the machine and the process, for whoever is to mend it. The recogniser hears all the same."""
    async with started(monkeypatch, str(tiny_reading_model.parent)) as replica:
        with monkeypatch.context() as patched:
            patched.setattr(SentenceReader, "read", _broken)
            told = await told_of_a_pause(replica)
        assert (told["text"], told["text_end"], told["reader_fault"]) == ("the cat sat on the mat.", None, "fails")
        assert told["recogniser"] == f"{socket.gethostname()}/{os.getpid()}"
        assert (await told_of_a_pause(replica))["reader_fault"] is None


@pytest.mark.asyncio
@pytest.mark.parametrize(("content", "fault"), [(b"no model", "not_loaded"), (None, None)])
async def test_a_model_that_is_damaged_is_told_and_a_missing_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, fault: str | None
) -> None:
    """A machine of the cluster may do without."""
    folder = tmp_path / "turn-text"
    if content is not None:
        folder.mkdir()
        (folder / "model.gguf").write_bytes(content)
    async with started(monkeypatch, str(folder)) as replica:
        told = await told_of_a_pause(replica)
    assert (told["text"], told["text_end"], told["reader_fault"]) == ("the cat sat on the mat.", None, fault)


def _broken(_: SentenceReader, __: str) -> NoReturn:
    raise TurnModelError("It broke.")


def test_a_recogniser_takes_no_http() -> None:
    """Ray Serve hands on what it gets without the front's checks, so there is nothing that would take it."""
    assert "__call__" not in vars(RecogniserReplica)


@pytest.mark.asyncio
async def test_a_recogniser_that_hears_is_kept() -> None:
    """Nothing is raised, also while its model is loaded again after a single failure."""
    await check_health(is_running=True, outage=None)
