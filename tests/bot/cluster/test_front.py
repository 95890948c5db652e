"""What a node answers to HTTP: it checks and reads a request, asks a recogniser, and stops when the caller goes."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import nullcontext
from functools import partial
from http import HTTPStatus
from types import SimpleNamespace
from typing import TYPE_CHECKING, Self

import httpx2
import numpy as np
import pytest
from starlette.responses import PlainTextResponse
from structlog.testing import capture_logs

from bot.cluster import front
from bot.cluster.address import ClusterError
from bot.cluster.front import PoolFront, middlewares
from bot.cluster.node import RAY_ENVIRONMENT
from bot.cluster.replica import RecogniserReplica
from bot.cluster.transcription import PATH, Answer, refusal, utterance_of
from tests.bot.cluster.test_transcription import wav
from voice.asr.pool_request import SPEAKER_HEADER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
    from pathlib import Path
    from typing import Any

    from bot.cluster.transcription import PooledUtterance

# Ray's own modules use what their libraries deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

TOKEN = "0123"
ALLOWED = {"Authorization": f"Bearer {TOKEN}"}
OF_SERVE = PlainTextResponse("Ray Serve's own")
HEARD = Answer(HTTPStatus.OK, {"text": "hello there"})


FORM = httpx2.Request("POST", f"http://pool{PATH}", files={"file": ("speech.wav", wav(), "audio/wav")})


def scope() -> dict[str, Any]:
    """Return what ASGI tells of a request with `FORM`."""
    headers = [(name.lower(), value) for name, value in httpx2.Headers({**FORM.headers, **ALLOWED}).raw]
    return {"type": "http", "method": "POST", "path": PATH, "query_string": b"", "headers": headers}


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


async def answer_of(recogniser: Recogniser, method: str = "POST", path: str = PATH, **request: Any) -> httpx2.Response:
    """Return the answer to one request."""
    app = PoolFront(OF_SERVE, token=TOKEN, hear=recogniser.hear, ongoing=nullcontext)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://pool") as client:
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

    app = PoolFront(OF_SERVE, token=TOKEN, hear=Recogniser().hear, ongoing=nullcontext)
    await app({"type": "websocket", "path": "/-/healthz", "headers": []}, asyncio.Event().wait, send)  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close"}]


@pytest.mark.asyncio
async def test_a_caller_that_goes_takes_the_utterance_along() -> None:
    """Whoever gives an interim up closes the connection; the recogniser then drops it, and nothing is answered."""
    given_up, asked = asyncio.Event(), asyncio.Event()

    async def hear(_: PooledUtterance) -> Answer:
        asked.set()
        try:
            return await asyncio.Future()
        finally:
            given_up.set()

    messages = iter(({"type": "http.request", "body": FORM.read()}, {"type": "http.disconnect"}))

    async def receive() -> MutableMapping[str, Any]:
        message = next(messages)
        if message["type"] == "http.disconnect":
            await asked.wait()
        return message

    async def send(message: MutableMapping[str, Any]) -> None:
        raise AssertionError(f"nobody waits for {message}")

    await PoolFront(OF_SERVE, token=TOKEN, hear=hear, ongoing=nullcontext)(scope(), receive, send)
    assert given_up.is_set()


async def body_of(*messages: MutableMapping[str, Any]) -> AsyncIterator[MutableMapping[str, Any]]:
    """Yield what a caller sends, and then nothing more. It stays connected."""
    for message in messages:
        yield message
    await asyncio.Future()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("sent", "asked"),
    [
        ([{"type": "http.request", "body": FORM.read()[:100], "more_body": True}], 0),
        ([{"type": "http.request", "body": FORM.read()}], 1),
    ],
    ids=["its sound does not come", "nobody answers"],
)
async def test_a_request_ends_in_time(sent: list[MutableMapping[str, Any]], asked: int) -> None:
    """Whoever sends slowly, or waits for recognisers that are not there, keeps no memory, and no machine."""
    hearing: list[str] = []

    async def hear(_: PooledUtterance) -> Answer:
        hearing.append("begun")
        try:
            return await asyncio.Future()
        finally:
            hearing.append("given up")

    answered: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        answered.append(message)

    app = PoolFront(OF_SERVE, token=TOKEN, hear=hear, ongoing=nullcontext, within_s=0.0)
    await app(scope(), body_of(*sent).__anext__, send)
    assert answered[0]["status"] == HTTPStatus.SERVICE_UNAVAILABLE
    assert hearing == ["begun", "given up"] * asked


@pytest.mark.slow
@pytest.mark.asyncio
@pytest.mark.parametrize("answer", [HEARD, ConnectionError("the process was killed")])
async def test_a_machine_is_not_drained_while_a_request_runs(
    answer: Answer | Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray Serve ends its process for HTTP once it has drained for half a minute and no request is counted. It counts
    this one until it has its answer.
    """
    from ray.serve._private.http_util import _apply_middlewares
    from ray.serve._private.proxy import HTTPProxy
    from ray.serve._private.proxy_router import ProxyRouter

    proxy: Any = HTTPProxy("node", "127.0.0.1", False, ProxyRouter(lambda *_: None), "proxy")  # type: ignore[arg-type]
    proxy.update_draining(draining=True)
    proxy._draining_start_time = 0.0
    was_drained: list[bool] = []

    class Asked(Recogniser):
        async def hear(self, utterance: PooledUtterance) -> Answer:
            was_drained.append(proxy.is_drained())
            return await super().hear(utterance)

    (tmp_path / "token").write_text(TOKEN, encoding="ascii")
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(front, "_heard_by_ray", Asked(answer).hear)

    async def send(message: MutableMapping[str, Any]) -> None:
        was_drained.append(proxy.is_drained())

    app = _apply_middlewares(proxy, middlewares())  # type: ignore[arg-type]
    assert proxy.is_drained()
    await app(scope(), body_of({"type": "http.request", "body": FORM.read()}).__anext__, send)
    assert was_drained == [False, False, False]
    assert proxy.is_drained()


class ServeHandle:
    """A handle of Ray Serve's to one recogniser, which calls a method as a stream."""

    def __init__(self, hear: Callable[[PooledUtterance], Awaitable[Answer]]) -> None:
        replica: Any = SimpleNamespace(hear=hear)
        self._replica = SimpleNamespace(answers=partial(RecogniserReplica.answers, replica))
        self.given_up = False

    def options(self, *, method_name: str, stream: bool, **_: str) -> Self:
        self._method = getattr(self._replica, method_name)
        # Of a single answer Serve hears nothing before it is there. Until then the recogniser would seem to be free.
        assert stream
        # As Ray Serve wants it for a stream.
        assert inspect.isasyncgenfunction(self._method)
        return self

    def remote(self, utterance: PooledUtterance) -> Self:
        self._answers = self._method(utterance)
        return self

    def __aiter__(self) -> Any:
        return self._answers

    def cancel(self) -> None:
        self.given_up = True


@pytest.mark.slow
@pytest.mark.asyncio
async def test_ray_serve_learns_at_once_who_has_an_utterance(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for a stream, and told when nobody waits for the answer any more."""
    from ray import serve

    asked, utterance = asyncio.Event(), utterance_of({}, wav(), {})

    async def hear(_: PooledUtterance) -> Answer:
        asked.set()
        return await asyncio.Future()

    quick, slow = ServeHandle(Recogniser().hear), ServeHandle(hear)
    monkeypatch.setattr(serve, "get_deployment_handle", lambda *_: quick)
    assert await front._heard_by_ray(utterance) == HEARD
    assert not quick.given_up
    monkeypatch.setattr(serve, "get_deployment_handle", lambda *_: slow)
    hearing = asyncio.create_task(front._heard_by_ray(utterance))
    await asked.wait()
    hearing.cancel()
    await asyncio.wait({hearing})
    assert slow.given_up


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
    [middleware] = middlewares()
    assert middleware.kwargs["token"] == "secret"
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH")
    with pytest.raises(ClusterError, match="RAY_AUTH_TOKEN_PATH"):
        middlewares()
