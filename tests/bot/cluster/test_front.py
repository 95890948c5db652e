"""What a node answers to HTTP: it checks and reads a request, asks a recogniser, and stops when the caller goes."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest
from starlette.responses import PlainTextResponse
from structlog.testing import capture_logs

from bot.cluster.address import ClusterError
from bot.cluster.front import PoolFront, middlewares
from bot.cluster.node import RAY_ENVIRONMENT
from bot.cluster.transcription import PATH, Answer, refusal
from tests.bot.cluster.test_transcription import wav
from voice.asr.pool_request import SPEAKER_HEADER

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from pathlib import Path
    from typing import Any

    from bot.cluster.transcription import PooledUtterance

TOKEN = "0123"
ALLOWED = {"Authorization": f"Bearer {TOKEN}"}
OF_SERVE = PlainTextResponse("Ray Serve's own")
HEARD = Answer(HTTPStatus.OK, {"text": "hello there"})


class Recogniser:
    """Answers with `answer`, and keeps what it was asked."""

    def __init__(self, answer: Answer | Exception = HEARD) -> None:
        self._answer = answer
        self.asked: list[PooledUtterance] = []

    async def hear(self, utterance: PooledUtterance) -> Answer:
        """See `bot.cluster.replica`."""
        self.asked.append(utterance)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


async def answer_of(recogniser: Recogniser, method: str = "POST", path: str = PATH, **request: Any) -> httpx.Response:
    """Return the answer to one request."""
    front = PoolFront(OF_SERVE, token=TOKEN, hear=recogniser.hear)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url="http://pool") as client:
        return await client.request(method, path, **request)


@pytest.mark.asyncio
async def test_a_form_of_openais_becomes_an_utterance() -> None:
    """The recogniser gets what was sent, and its answer is the caller's."""
    recogniser = Recogniser()
    answer = await answer_of(
        recogniser,
        files={"file": ("speech.wav", wav(), "audio/wav")},
        data={"model": "whisper", "language": "de"},
        headers={**ALLOWED, SPEAKER_HEADER: "42"},
    )
    assert (answer.status_code, answer.json()) == (HTTPStatus.OK, {"text": "hello there"})
    [utterance] = recogniser.asked
    assert (utterance.language, utterance.speaker_id) == ("de", 42)
    np.testing.assert_array_equal(utterance.pcm, np.ones(16_000, np.int16))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (refusal(HTTPStatus.TOO_MANY_REQUESTS, "full"), HTTPStatus.TOO_MANY_REQUESTS),
        (refusal(HTTPStatus.SERVICE_UNAVAILABLE, "no model"), HTTPStatus.SERVICE_UNAVAILABLE),
        (ConnectionError("the process was killed"), HTTPStatus.SERVICE_UNAVAILABLE),
    ],
)
async def test_a_recogniser_that_cannot_hear_is_told(answer: Answer | Exception, status: HTTPStatus) -> None:
    """Its own words reach the caller; of what Ray raises only that nobody could be asked."""
    told = await answer_of(Recogniser(answer), files={"file": ("speech.wav", wav(), "audio/wav")}, headers=ALLOWED)
    assert told.status_code == status
    assert "killed" not in told.text


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("method", "path", "request_of", "status"),
    [
        ("POST", PATH, {"files": {"file": ("speech.wav", wav(), "audio/wav")}}, HTTPStatus.UNAUTHORIZED),
        ("POST", "/-/healthz/", {"content": b"x" * 100_000}, HTTPStatus.UNAUTHORIZED),
        ("POST", "/-/anything", {"headers": ALLOWED}, HTTPStatus.NOT_FOUND),
        ("POST", "/", {"headers": ALLOWED}, HTTPStatus.NOT_FOUND),
        ("GET", PATH, {"headers": ALLOWED}, HTTPStatus.METHOD_NOT_ALLOWED),
        ("POST", PATH, {"headers": ALLOWED, "data": {"language": "en"}}, HTTPStatus.BAD_REQUEST),
        ("POST", PATH, {"headers": ALLOWED, "files": {"file": ("a.wav", b"RIFF")}}, HTTPStatus.BAD_REQUEST),
    ],
)
async def test_what_is_no_request_for_a_transcription_reaches_nobody(
    method: str, path: str, request_of: dict[str, Any], status: HTTPStatus
) -> None:
    """Neither a recogniser nor Ray Serve's own application is asked."""
    recogniser = Recogniser()
    answer = await answer_of(recogniser, method, path, **request_of)
    assert answer.status_code == status
    assert answer.text != "Ray Serve's own"
    assert recogniser.asked == []


def form_of(*parts: bytes, boundary: str = "x") -> dict[str, Any]:
    """Return a request with a form of these parts. `boundary`: what its head says is between them."""
    told = f"; boundary={boundary}" if boundary else ""
    body = b"".join(b"--x\r\n" + part + b"\r\n" for part in parts) + b"--x--\r\n"
    return {"headers": {**ALLOWED, "Content-Type": f"multipart/form-data{told}"}, "content": body}


SOUND = b'Content-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + wav()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "request_of",
    [
        form_of(SOUND, boundary=""),
        form_of(SOUND, boundary="y"),
        form_of(SOUND, b"no head"),
        form_of(SOUND, b"Content-Disposition: form-data\r\n\r\nwithout a name"),
        form_of(SOUND, SOUND),
        form_of(SOUND, *[b'Content-Disposition: form-data; name="a"\r\n\r\nb'] * 21),
    ],
)
async def test_a_broken_form_is_the_callers_fault(request_of: dict[str, Any]) -> None:
    """Nobody is told that recognisers are away, and none is asked."""
    recogniser = Recogniser()
    with capture_logs() as logs:
        answer = await answer_of(recogniser, **request_of)
    assert (answer.status_code, logs, recogniser.asked) == (HTTPStatus.BAD_REQUEST, [], [])


@pytest.mark.asyncio
async def test_ray_serve_answers_for_its_own_pages() -> None:
    """Kubernetes asks there whether a node serves; nobody's speech is behind them."""
    for page in ("/-/healthz", "/-/routes"):
        assert (await answer_of(Recogniser(), "GET", page)).text == "Ray Serve's own"


@pytest.mark.asyncio
async def test_a_websocket_is_refused() -> None:
    """Ray Serve would hand it to a recogniser without asking for the token."""
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    front = PoolFront(OF_SERVE, token=TOKEN, hear=Recogniser().hear)
    await front({"type": "websocket", "path": "/-/healthz", "headers": []}, asyncio.Event().wait, send)  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close"}]


@pytest.mark.asyncio
async def test_a_caller_that_goes_takes_the_utterance_along() -> None:
    """Whoever gives an interim up closes the connection; the recogniser then drops it, and nothing is answered."""
    form = httpx.Request("POST", f"http://pool{PATH}", files={"file": ("speech.wav", wav(), "audio/wav")})
    given_up, asked = asyncio.Event(), asyncio.Event()

    async def hear(_: PooledUtterance) -> Answer:
        asked.set()
        try:
            return await asyncio.Future()
        finally:
            given_up.set()

    messages = iter(({"type": "http.request", "body": form.read()}, {"type": "http.disconnect"}))

    async def receive() -> MutableMapping[str, Any]:
        message = next(messages)
        if message["type"] == "http.disconnect":
            await asked.wait()
        return message

    async def send(message: MutableMapping[str, Any]) -> None:
        raise AssertionError(f"nobody waits for {message}")

    headers = [(name.lower(), value) for name, value in httpx.Headers({**form.headers, **ALLOWED}).raw]
    scope = {"type": "http", "method": "POST", "path": PATH, "query_string": b"", "headers": headers}
    await PoolFront(OF_SERVE, token=TOKEN, hear=hear)(scope, receive, send)
    assert given_up.is_set()


def test_ray_serve_finds_the_front() -> None:
    """Every node is told where it is."""
    told = RAY_ENVIRONMENT["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"]
    assert told == f"{middlewares.__module__}:{middlewares.__name__}"


def test_without_the_clusters_token_nothing_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray Serve's process for HTTP fails to start, and says why; with the token it asks for that one."""
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    with pytest.raises(ClusterError, match="token"):
        middlewares()
    (tmp_path / "token").write_text("secret\n", encoding="ascii")
    [front] = middlewares()
    assert front.kwargs["token"] == "secret"
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH")
    with pytest.raises(ClusterError, match="RAY_AUTH_TOKEN_PATH"):
        middlewares()
