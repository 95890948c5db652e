"""The web server over real sockets: files, the web socket, errors and limits."""

from __future__ import annotations

import asyncio
import contextlib
import socket as socket_library
import struct
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import WSMsgType, web
from structlog.typing import EventDict

import bot.web.connection as limits
import bot.web.socket as socket_module
from bot.errors import SetupError
from bot.settings import WebSettings
from bot.web.server import HEAD_TIMEOUT_S, SHUTDOWN_S, WebServer
from tests.bot.web.served_page import CLOSING, FakeHost, Page, told
from tests.fakes.clock import FakeClock
from tests.fakes.loop_time import pass_loop_time, wait_out
from tests.patience import PATIENCE_S, patiently
from voice.screen.frame import MAX_FRAME_BYTES


async def closed(socket: aiohttp.ClientWebSocketResponse) -> int | None:
    """Wait until the server has closed the socket, and return the close code."""
    while True:
        message = await socket.receive(timeout=PATIENCE_S)
        if message.type in {WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR}:
            return message.data if message.type is WSMsgType.CLOSE else socket.close_code


@pytest_asyncio.fixture
async def page() -> AsyncIterator[Page]:
    """A running server with a client."""
    host = FakeHost()
    async with WebServer(WebSettings(port=0), host) as server, aiohttp.ClientSession() as http:
        await server.start()
        page = Page(server, host, http)
        yield page
        await page.close()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/share", "text/html"),
        ("/page/base.css", "text/css"),
        ("/share/share.css", "text/css"),
        ("/share/share.js", "text/javascript"),
        ("/share/view.js", "text/javascript"),
        ("/share/secret.js", "text/javascript"),
        ("/share/capture_worker.js", "text/javascript"),
        ("/share/icon.svg", "image/svg+xml"),
    ],
)
async def test_the_page_is_given_out(page: Page, path: str, kind: str) -> None:
    """Each file of the page has its content type and the security headers, and contains no inline code."""
    async with page.http.get(page.base + path) as answer:
        text = await answer.text()
    assert (answer.status, answer.content_type) == (200, kind)
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Connection"] == "close"
    assert "Server" not in answer.headers
    assert "style=" not in text
    assert "<style" not in text
    assert " onclick" not in text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/share/../server.py", 404),
        ("GET", "/static/share.js", 404),
        ("POST", "/share", 405),
        ("GET", "/share/socket", 403),
    ],
)
async def test_nothing_else_is(page: Page, method: str, path: str, status: int) -> None:
    """Any other request is refused, with the security headers."""
    async with page.http.request(method, page.base + path) as answer:
        assert answer.status == status
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_foreign_page_is_refused(page: Page) -> None:
    """A web socket with a foreign origin is refused, whatever its Host header. A plain HTTP request is refused too."""
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{page.server.port % 65_535 + 1}"):
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await page.http.ws_connect(
                f"{page.base}/share/socket", origin=origin, headers={"Host": origin.removeprefix("https://")}
            )
        assert caught.value.status == 403
    async with page.http.get(f"{page.base}/share/socket", headers={"Origin": page.server.site.origin}) as answer:
        assert answer.status == 426
    assert page.host.asked == []


async def test_a_page_shares(page: Page) -> None:
    """A page says hello, is welcomed, sends pictures, gets notes, and stops."""
    socket = await page.socket()
    await socket.send_json({"t": "hello", "token": "good"})
    welcome = await told(socket)
    assert (welcome["t"], welcome["who"], welcome["resume"]) == ("welcome", "Ada", "secret")
    assert welcome["limits"]["max_bytes"] == MAX_FRAME_BYTES
    await socket.send_json({"t": "start", "surface": "window"})
    await socket.send_bytes(b"x" * MAX_FRAME_BYTES)
    await socket.send_json({"t": "ping"})
    assert await told(socket) == {"t": "pong"}
    page.host.line.outbox.put_nowait({"t": "note", "what": "Round 2"})
    assert await told(socket) == {"t": "note", "what": "Round 2"}
    await socket.send_json({"t": "something of a later version"})
    await socket.send_json({"t": "stop"})
    assert (await told(socket))["t"] == "ended"
    await closed(socket)
    assert page.host.line.heard == [("start", "window"), ("picture", MAX_FRAME_BYTES), "stop"]
    assert page.host.line.gone.is_set()


async def test_a_page_comes_back(page: Page) -> None:
    """A page can reconnect with its resume secret instead of the link."""
    socket = await page.socket()
    await socket.send_json({"t": "hello", "resume": "good"})
    assert (await told(socket))["t"] == "welcome"
    assert page.host.asked == [("resume", "good")]


async def test_a_message_that_is_far_too_large_ends_the_connection(page: Page) -> None:
    """It is closed before the message is read, and the host hears nothing of it."""
    socket = await page.admitted()
    await socket.send_bytes(b"\xff" * (3 * MAX_FRAME_BYTES))
    await closed(socket)
    await patiently(page.host.line.gone.wait())
    assert page.host.line.heard == []


async def test_who_is_not_let_in_is_told_why(page: Page) -> None:
    """A page that is not admitted gets the reason in a plain sentence, and its socket is closed."""
    socket = await page.socket()
    await socket.send_json({"t": "hello", "token": "old"})
    assert await told(socket) == {"t": "denied", "reason": "used", "sentence": "This link has been used already."}
    assert await closed(socket) == 4403


@pytest.mark.parametrize(
    "hello",
    ["", "[]", "null", "{", '{"t": "start"}', '{"t": "hello"}', '{"t": "hello", "token": 7}', "[" * 1999, "x" * 5000],
)
async def test_what_is_no_hello_is_hung_up_on(page: Page, hello: str) -> None:
    """A socket whose first message is not a valid hello is closed without calling the host."""
    socket = await page.socket()
    await socket.send_str(hello)
    assert await closed(socket) == 4400
    assert page.host.asked == []


async def test_a_share_that_is_over_hangs_up(page: Page) -> None:
    """When a share ends, the page gets the reason and the socket is closed, even if the page goes on sending."""
    socket = await page.admitted()
    page.host.line.outbox.put_nowait({"t": "ended", "reason": "left", "sentence": "You left."})
    page.host.line.outbox.put_nowait(None)
    assert (await told(socket))["reason"] == "left"
    await closed(socket)
    socket = await page.admitted()
    page.host.line.closed = True
    await socket.send_bytes(b"x")
    page.host.line.outbox.put_nowait(None)
    await closed(socket)


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1", "http://127.0.0.1:8100/"),
        ("localhost", "http://127.0.0.1:8100/"),
        ("0.0.0.0", "http://127.0.0.1:8100/"),
        ("::", "http://127.0.0.1:8100/"),
        ("::1", "http://[::1]:8100/"),
        ("10.0.0.1", "http://10.0.0.1:8100/"),
        ("2001:db8::1", "http://[2001:db8::1]:8100/"),
        ("bot.internal", "http://bot.internal:8100/"),
    ],
)
async def test_login_link_leads_to_the_address_that_is_listened_on(host: str, origin: str) -> None:
    """A server on one of the machine's addresses alone, as Prometheus may need it, does not answer at the others."""
    async with WebServer(WebSettings(host=host, port=8100), FakeHost()) as server:
        assert server.login_link.startswith(origin)


async def test_who_dawdles_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is closed if its request head or its hello takes too long."""
    async with WebServer(WebSettings(port=0), FakeHost()) as server:
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /share HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        await writer.drain()
        await wait_out(monkeypatch, HEAD_TIMEOUT_S)
        assert await patiently(reader.read()) == b""
        writer.close()
    async with WebServer(WebSettings(port=0), FakeHost()) as server, aiohttp.ClientSession() as http:
        await server.start()
        socket = await http.ws_connect(f"http://127.0.0.1:{server.port}/share/socket", origin=server.site.origin)
        await wait_out(monkeypatch, socket_module.HELLO_TIMEOUT_S)
        assert await closed(socket) == 4400
        await socket.close()


async def test_who_only_pings_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pings, which the library answers by itself, are no hello and give no more time for one."""
    async with WebServer(WebSettings(port=0), FakeHost()) as server, aiohttp.ClientSession() as http:
        await server.start()
        socket = await http.ws_connect(f"http://127.0.0.1:{server.port}/share/socket", origin=server.site.origin)
        hung_up = asyncio.create_task(closed(socket))
        async with asyncio.timeout(PATIENCE_S):
            with contextlib.suppress(ConnectionError):
                while not hung_up.done():
                    await socket.ping()
                    pass_loop_time(monkeypatch, socket_module.HELLO_TIMEOUT_S / 10)
                    await asyncio.wait({hung_up}, timeout=0.01)
            assert await hung_up == 4400
        await socket.close()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"<script>alert(1)</script>\r\n\r\n",
        b"GET /share HTTP/9.9<script>\r\n\r\n",
        b"GET /share HTTP/1.1\r\nHost: x\r\n<script>: \0secret\r\n\r\n",
        b"GET /" + b"secret" * 2_000 + b" HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET /share/socket HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    ],
)
async def test_an_invalid_request_is_answered_plainly(page: Page, request_bytes: bytes) -> None:
    """The answer to a request that is no HTTP quotes nothing of it, and has the security headers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", page.server.port)
    writer.write(request_bytes)
    head, _, body = (await patiently(reader.read())).partition(b"\r\n\r\n")
    writer.close()
    assert head.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
    assert b"Content-Type: text/plain" in head
    assert b"Content-Security-Policy: default-src 'none'" in head
    assert b"X-Content-Type-Options: nosniff" in head
    assert b"aiohttp" not in head
    assert body == b"This is not a valid request.\n"


async def test_refused_requests_make_one_log_line_a_minute(
    caplog: pytest.LogCaptureFixture, logs: list[EventDict]
) -> None:
    """400 invalid requests and some foreign pages are counted in one line a minute, which quotes nothing. The rest is
    told when the server closes.
    """
    clock = FakeClock()
    async with (
        WebServer(WebSettings(port=0), FakeHost(), clock=clock) as server,
        aiohttp.ClientSession() as http,
    ):
        await server.start()

        async def flood(count: int) -> None:
            for _ in range(count):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(b"secret words\r\n\r\n")
                assert await reader.read()
                writer.close()

        await flood(200)
        for _ in range(3):
            async with http.get(f"http://127.0.0.1:{server.port}/share/socket") as answer:
                assert answer.status == 403
        clock.advance(60.0)
        await flood(200)
    told = [
        {key: value for key, value in line.items() if key.endswith("_count")}
        for line in logs
        if line["event"] == "web_requests_refused"
    ]
    assert told == [{"malformed_count": 1}, {"foreign_page_count": 3, "malformed_count": 200}, {"malformed_count": 199}]
    assert caplog.text == ""


async def test_an_address_behind_a_trusted_proxy_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a trusted proxy each address may open so many sockets; another address is not affected, and refused
    origins do not count.
    """
    monkeypatch.setattr(limits, "MAX_SOCKETS_PER_CLIENT", 2)
    async with (
        WebServer(WebSettings(port=0, trusted_proxies=("127.0.0.1",)), FakeHost()) as server,
        aiohttp.ClientSession() as http,
    ):
        await server.start()
        own, opened = server.site.origin, list[aiohttp.ClientWebSocketResponse]()

        async def status(origin: str, address: int) -> int:
            url, headers = f"http://127.0.0.1:{server.port}/share/socket", {"X-Forwarded-For": f"198.51.100.{address}"}
            try:
                opened.append(await http.ws_connect(url, origin=origin, headers=headers, timeout=CLOSING))
            except aiohttp.WSServerHandshakeError as refused:
                return refused.status
            return 101

        assert [await status("https://evil.example", 1) for _ in range(4)] == [403] * 4
        assert [await status(own, address) for address in (1, 1, 1, 2)] == [101, 101, 429, 101]
        for socket in opened:
            await socket.close()


async def test_closing_hangs_up_on_everybody() -> None:
    """When the server closes, open pages get the close code 1001 (going away)."""
    host = FakeHost()
    async with aiohttp.ClientSession() as http:
        async with WebServer(WebSettings(port=0), host) as server:
            await server.start()
            await server.start()
            page = Page(server, host, http)
            socket = await page.admitted()
        assert await closed(socket) == 1001
        await page.close()


async def test_closing_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that does not take the goodbye, as one that reads nothing, delays the end of the server for a moment."""

    async def never(socket: web.WebSocketResponse, **_: object) -> None:
        await asyncio.Event().wait()

    host = FakeHost()
    server = WebServer(WebSettings(port=0), host)
    async with aiohttp.ClientSession() as http, asyncio.timeout(PATIENCE_S):
        await server.start()
        page = Page(server, host, http)
        sockets = [await page.admitted(), await page.socket()]
        monkeypatch.setattr(web.WebSocketResponse, "close", never)
        closing = asyncio.create_task(server.__aexit__())
        # For the goodbyes, and twice in aiohttp.
        for _ in range(3):
            await wait_out(monkeypatch, SHUTDOWN_S)
        await closing
        await wait_out(monkeypatch, socket_module.SEND_TIMEOUT_S)
        for socket in sockets:
            assert await closed(socket) is not None
        await page.close()


async def test_what_keeps_it_from_listening_is_a_sentence(page: Page) -> None:
    """A port in use, an invalid public address and an invalid proxy each raise a SetupError that names the setting."""
    async with WebServer(WebSettings(port=page.server.port), page.host) as second:
        with pytest.raises(SetupError, match=r"web\.port"):
            await second.start()
    with pytest.raises(SetupError, match=r"web\.public_url"):
        WebServer(WebSettings(public_url="https://watch.example.org:99999"), page.host)
    with pytest.raises(SetupError, match=r"web\.trusted_proxies"):
        WebServer(WebSettings(trusted_proxies=("proxy",)), page.host)


def test_a_link_keeps_its_token_in_the_fragment() -> None:
    """The token of a link is in the URL fragment, which browsers do not send to the server."""
    server = WebServer(WebSettings(public_url="https://watch.example.org/"), FakeHost())
    assert server.share_link("abc.def") == "https://watch.example.org/share#abc.def"


async def test_pages_that_hang_up_at_once_are_not_logged(
    page: Page, caplog: pytest.LogCaptureFixture, logs: list[EventDict]
) -> None:
    """Somebody who resets the connection while they are answered makes no line, and no traceback, in the log."""
    head = (
        f"GET /share/socket HTTP/1.1\r\nHost: localhost\r\nOrigin: {page.server.site.origin}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    for _ in range(20):
        with socket_library.create_connection(("127.0.0.1", page.server.port)) as peer:
            # Closing it resets the connection.
            peer.setsockopt(socket_library.SOL_SOCKET, socket_library.SO_LINGER, struct.pack("ii", 1, 0))
            peer.sendall(head.encode())
    await (await page.admitted()).close()
    assert (logs, caplog.text) == ([], "")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_that_is_not_what_it_says_is_not_logged(
    page: Page, coding: str, caplog: pytest.LogCaptureFixture, logs: list[EventDict]
) -> None:
    """Nobody unpacks what strangers send, so a body in a broken coding makes no line, and no traceback, in the log."""
    for body in (b"not compressed", bytes(20)):
        for method, path, status in (("GET", "/share", 200), ("POST", "/share", 405)):
            async with page.http.request(
                method, page.base + path, data=body, headers={"Content-Encoding": coding}
            ) as answer:
                assert answer.status == status
    assert (logs, caplog.text) == ([], "")


async def test_a_socket_of_another_protocol_is_refused_and_not_logged(
    page: Page, caplog: pytest.LogCaptureFixture, logs: list[EventDict]
) -> None:
    """Our page names no subprotocol. A request that does, with a forged origin as often as it likes, makes no line."""
    for _ in range(3):
        with pytest.raises(aiohttp.WSServerHandshakeError, match="400"):
            await page.http.ws_connect(f"{page.base}/share/socket", origin=page.server.site.origin, protocols=["chat"])
    await (await page.admitted()).close()
    assert (logs, caplog.text) == ([], "")
