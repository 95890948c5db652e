"""Each mistake in an endpoint's settings and each of its failures gives a sentence, which never has the key."""

from __future__ import annotations

import base64
import copy
import json
import pickle
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import openai
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr, TypeAdapter, ValidationError

from rehearsal.servers.chat import LocalChatServer
from tests.patience import PATIENCE_S
from voice.endpoint import (
    KEEP_OPEN_S,
    MAX_ANSWER_MB,
    Endpoint,
    Remedies,
    describe_failure,
    is_retryable,
)
from voice.endpoint_settings import OPENAI_URL, EndpointKey, EndpointUrl, to_connect
from voice.errors import EnvironmentProxyError
from voice.plain_http import MAX_REFUSAL_BYTES, MOST_PARTS, AnswerRefusedError

KEY = "sk-secret"
REMEDIES = Remedies(section="asr", refused="asr.model")
_REQUEST = httpx2.Request("POST", "http://127.0.0.1:9/v1")


def _status(kind: type[openai.APIStatusError], status: int) -> openai.APIStatusError:
    return kind(KEY, response=httpx2.Response(status, request=_REQUEST), body={"message": KEY})


@pytest.mark.parametrize(
    ("error", "word", "passes"),
    [
        (openai.APITimeoutError(request=_REQUEST), "in time", True),
        (TimeoutError(), "in time", True),
        (httpx2.ReadTimeout(KEY), "in time", True),
        (_status(openai.AuthenticationError, 401), "asr.api_key", False),
        (_status(openai.PermissionDeniedError, 403), "asr.api_key", False),
        (_status(openai.NotFoundError, 404), "asr.model", False),
        (_status(openai.RateLimitError, 429), "limit", True),
        (_status(openai.APIStatusError, 402), "credit", False),
        (_status(openai.InternalServerError, 503), "503", True),
        (_status(openai.BadRequestError, 400), "asr.model", False),
        (openai.APIConnectionError(request=_REQUEST), "asr.base_url", True),
        (httpx2.ReadError(KEY), "asr.base_url", True),
        (openai.APIError(KEY, request=_REQUEST, body=None), "broke off", True),
        (ValueError(KEY), "asr.base_url", True),
        (
            openai.APIResponseValidationError(httpx2.Response(200, request=_REQUEST), body=KEY),
            "asr.base_url",
            True,
        ),
    ],
)
def test_each_failure_is_told_with_its_remedy(error: Exception, word: str, passes: bool) -> None:
    """The message says what happened and which setting to check, without anything that was sent. Each error is
    retryable or not.
    """
    sentence = str(describe_failure(error, REMEDIES))
    assert word in sentence
    assert KEY not in sentence
    assert is_retryable(error) is passes


@pytest.mark.slow
async def test_what_is_sent_to_this_machine_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment does not get it, as the bot tells people."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with LocalChatServer() as server, Endpoint(server.base_url, "m", timeout_s=PATIENCE_S).open() as client:
        assert (await client.models.list()).data


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "carrier-pigeon://127.0.0.1", "http://[::"])
def test_a_proxy_that_cannot_be_used_is_named(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is missing that an installation would bring, and no defect is to be reported."""
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(EnvironmentProxyError, match="ALL_PROXY"):
        Endpoint("", "m").open()


async def test_without_an_address_it_is_openai_itself() -> None:
    """Without an address the client uses OpenAI. Without a key it sends a word, because the library requires one. It
    never retries.
    """
    endpoint = Endpoint("", "m")
    async with endpoint.open() as client:
        assert str(client.base_url).rstrip("/") == endpoint.where == OPENAI_URL
        assert client.max_retries == 0
        assert client.api_key
    async with Endpoint("http://127.0.0.1:9/v1", "m", KEY).open() as client:
        assert (str(client.base_url).rstrip("/"), client.api_key) == ("http://127.0.0.1:9/v1", KEY)


@pytest.mark.server
async def test_a_connection_lasts_from_one_question_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connecting anew would delay the answer. A connection that has been idle for longer is not trusted."""
    passed, monotonic, peers = 0.0, time.monotonic, []

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.json_response({"id": "m", "object": "model", "created": 0, "owned_by": "us"})

    app = web.Application()
    app.router.add_get("/v1/models/m", answer)
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + passed)
    async with TestServer(app) as server, Endpoint(str(server.make_url("/v1")), "m").open() as client:
        for pause_s in (0.0, KEEP_OPEN_S - 1, KEEP_OPEN_S + 1):
            passed += pause_s
            await client.models.retrieve("m")
    assert [peer == peers[0] for peer in peers] == [True, True, False]


MOST_BYTES = MAX_ANSWER_MB * 1_000_000


class _Flood(httpx2.AsyncByteStream):
    """An answer of so many bytes, a hundred times as many as are read of a refusal."""

    def __init__(self, length: int = 100 * MAX_REFUSAL_BYTES, piece: bytes = b" " * 4_096) -> None:
        self.sent = 0
        self.closed = False
        self._length = length
        self._piece = piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.sent < self._length:
            self.sent += len(self._piece)
            yield self._piece

    async def aclose(self) -> None:
        self.closed = True


@asynccontextmanager
async def _answered(
    monkeypatch: pytest.MonkeyPatch, answer: httpx2.Response, url: str = "http://127.0.0.1:9/v1"
) -> AsyncIterator[tuple[openai.AsyncOpenAI, list[httpx2.Request]]]:
    """Yield a client that gets this answer, and its requests."""
    asked: list[httpx2.Request] = []

    async def handle(_: httpx2.AsyncHTTPTransport, request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return answer

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", handle)
    async with Endpoint(url, "m", KEY).open() as client:
        yield client, asked


@pytest.mark.parametrize(
    ("status", "flood", "most"),
    [
        *((status, _Flood(), MAX_REFUSAL_BYTES) for status in (400, 503, 307)),
        (200, _Flood(10 * MOST_BYTES, b" " * 1_000_000), MOST_BYTES + 1_000_000),
    ],
)
async def test_an_answer_without_end_is_not_read_to_its_end(
    status: int, flood: _Flood, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of errors and redirects only the beginning is read, and then the connection is closed."""
    where = {"location": "http://127.0.0.1:9/v1"}
    async with _answered(monkeypatch, httpx2.Response(status, headers=where, stream=flood)) as (client, _):
        with pytest.raises((openai.APIError, AnswerRefusedError)) as caught:
            await client.models.retrieve("m")
    assert 0 < flood.sent <= most
    assert flood.closed
    told = str(describe_failure(caught.value, REMEDIES))
    assert (f"sent more than {MAX_ANSWER_MB} MB at once" in told) is (status == 200)


@pytest.mark.parametrize(
    ("status", "location", "told"),
    [
        (301, "http://169.254.169.254/latest/meta-data", "http://169.254.169.254, "),
        (302, f"https://{KEY}:{KEY}@models.example:8443/v1/{KEY}?key={KEY}", "https://models.example:8443, "),
        (303, f"/{KEY}", "http://127.0.0.1:9, "),
        (307, "https://" + "a" * 5_000, "?, "),
        (308, "https://**bold**/", "?, "),
        (307, "http://[", "?, "),
        (307, f"ftp://{KEY}/", "?, "),
    ],
)
async def test_a_redirect_is_told_and_not_followed(
    status: int, location: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody but the server in the settings gets what people say. The message names the other server, and nothing else
    of its address.
    """
    redirect = httpx2.Response(status, headers={"location": location}, stream=_Flood())
    async with _answered(monkeypatch, redirect) as (client, asked):
        with pytest.raises(openai.APIStatusError) as refused:
            await client.audio.transcriptions.create(model="m", file=("speech.wav", b"sound", "audio/wav"))
    assert [str(request.url) for request in asked] == ["http://127.0.0.1:9/v1/audio/transcriptions"]
    sentence = str(describe_failure(refused.value, REMEDIES))
    assert sentence.startswith(f"answered with a redirect to {told}")
    assert "set asr.base_url to its address" in sentence
    assert KEY not in sentence
    assert not is_retryable(refused.value)


@pytest.mark.parametrize(
    ("kind", "piece", "times", "is_read"),
    [
        ("application/json", b"{},", MOST_PARTS // 4, False),
        ("application/json; charset=utf-8", b"0,0,", MOST_PARTS // 2 + 1, False),
        ("application/json", b"[" + b"0.125," * 4_096 + b"0],", 64, True),
        ("text/event-stream", b'data: {"choices": [' + b"{}," * MOST_PARTS, 1, False),
        ("text/event-stream", b'data: {"choices": [{"delta": {"content": "Hi"}}]}\r\n\r\n', 20_000, True),
        ("text/event-stream", b'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n', 20_000, True),
        ("audio/pcm", b"{[,", MOST_PARTS, True),
    ],
)
async def test_what_would_be_made_of_an_answer_has_a_bound(
    kind: str, piece: bytes, times: int, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library makes an object of each value, in which time nobody is heard. Sixty-four vectors and a long answer in
    many events are read.
    """
    sent = piece * times

    class Pieces(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for at in range(0, len(sent), 65_536):
                yield sent[at : at + 65_536]

    answer = httpx2.Response(200, headers={"content-type": kind}, stream=Pieces())
    async with _answered(monkeypatch, answer) as (client, _):
        request = client.with_raw_response.models.retrieve("m")
        if is_read:
            assert len((await request).content) == len(sent)
        else:
            with pytest.raises(AnswerRefusedError, match="parts"):
                await request


@pytest.mark.parametrize("status", [200, 400, 503, 307])
@pytest.mark.parametrize("encodings", [["gzip"], ["gzip, gzip"], ["identity, GZIP"], ["identity", "br"], ["nonsense"]])
async def test_nothing_is_read_of_a_compressed_answer(
    encodings: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers are asked to compress nothing, and a few bytes of a compressed error may become gigabytes too."""
    flood = _Flood()
    headers = [("location", "/v1"), *(("content-encoding", encoding) for encoding in encodings)]
    async with _answered(monkeypatch, httpx2.Response(status, headers=headers, stream=flood)) as (client, asked):
        with pytest.raises(AnswerRefusedError) as caught:
            await client.models.retrieve("m")
    assert [request.headers["accept-encoding"] for request in asked] == ["identity"]
    assert flood.sent == 0
    assert flood.closed
    assert "compresses" in str(describe_failure(caught.value, REMEDIES))


URL_SETTING = TypeAdapter[str](EndpointUrl)
KEY_SETTING = TypeAdapter[SecretStr](EndpointKey)


@pytest.mark.parametrize(
    "url",
    ["", "http://127.0.0.1:11434/v1", "https://api.example.org/v1/", "http://[::1]:8000/v1", "http://gpu-box/v1"],
)
def test_addresses_are_taken_as_they_are(url: str) -> None:
    """A valid address is kept unchanged, and an empty one means OpenAI."""
    assert URL_SETTING.validate_python(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:11434/v1",
        "http://127.0.0.1:PORT/v1",
        "http://127.0.0.1:70000/v1",
        "ftp://x/v1",
        "http:///v1",
        "http://[::1/v1",
        "http://x/\n",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="http"):
        URL_SETTING.validate_python(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", ""),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
        ("https://bot:hunter2@models.example:8443/v1/?key=hunter2", "https://models.example:8443/v1/"),
        ("https://hunter2@[::1]:8000/v1#hunter2", "https://[::1]:8000/v1"),
    ],
)
def test_no_password_of_an_address_can_be_printed(url: str, shown: str) -> None:
    """A server behind a proxy may want one in its address. `/status` shows sentences to everybody in the channel."""
    setting = URL_SETTING.validate_python(url)
    printed = (
        str(setting),
        f"{setting}",
        "".join([setting]),
        setting + "",
        json.loads(json.dumps(setting)),
    )
    assert set(printed) == {shown}
    assert "hunter2" not in repr(setting)
    assert URL_SETTING.dump_json(setting).decode() == json.dumps(shown)
    assert Endpoint(setting, "m").where == (shown or OPENAI_URL)
    for same in (
        setting,
        copy.deepcopy(setting),
        pickle.loads(pickle.dumps(setting)),
        URL_SETTING.validate_python(setting),
    ):
        assert (same, to_connect(same)) == (shown, url)


async def test_a_server_gets_the_password_of_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not shown is sent."""
    setting = URL_SETTING.validate_python("http://bot:hunter2@127.0.0.1:9/v1")
    async with _answered(monkeypatch, httpx2.Response(404), setting) as (client, asked):
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("m")
    (request,) = asked
    assert request.headers["authorization"] == "Basic " + base64.b64encode(b"bot:hunter2").decode()


@pytest.mark.parametrize("key", ["", "none", "sk-proj-A_b-9", "hf_x.y=/+"])
def test_keys_stay_secret_and_whole(key: str) -> None:
    """A key may have any visible ASCII characters and is kept unchanged."""
    assert KEY_SETTING.validate_python(key).get_secret_value() == key


@pytest.mark.parametrize("key", ["…", "\u201csk-abc\u201d", "sk-abc\n", "sk abc", " sk-abc"])
def test_what_no_header_can_carry_is_refused_without_being_shown(key: str) -> None:
    """A key with curly quotes, white space or an ellipsis does not fit into a header. It is refused without being
    shown.
    """
    with pytest.raises(ValidationError, match="characters") as refused:
        KEY_SETTING.validate_python(SecretStr(key))
    assert "abc" not in str(refused.value)
