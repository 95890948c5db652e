"""The link between machines: TLS in which both sides prove the cluster's token, and what somebody in between gets."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
import ssl
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from structlog.testing import capture_logs
from yarl import URL

from bot.cluster.node import TOKEN_BYTES
from bot.errors import SetupError
from bot.remote.link import encrypted_port, link_encryption
from bot.remote.link.address import LOOPBACK, RoomsAddress
from bot.remote.link.encrypted_port import EncryptedPort
from bot.remote.link.gateway_link import GatewayLink
from bot.remote.link.hello import RoomIdentity, RoomRefusedError, introduce
from bot.remote.link.link_encryption import LEAST_TOKEN_CHARS, gateway_encryption, room_encryption
from bot.remote.link.listener import RemoteRoomListener
from bot.remote.messages.frames import Notice, Request
from bot.remote.messages.wire_error import OtherProcessError
from tests.bot.remote.peers import until
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bot.remote.link.message_link import MessageLink

CLUSTER_TOKEN = "3b" * 32
OTHER_TOKEN = "4c" * 32
NORTH = RoomIdentity(0, 0, run_id="a", machine="north")
# How the token was sent before links between machines were encrypted.
OLDER_PROOF = {"Authorization": f"Bearer {CLUSTER_TOKEN}"}
SPOKEN = "what Ada said about the harbour"


@dataclass(frozen=True, slots=True)
class Repeat(Request[str]):
    """Asks for the same words."""

    words: str


@dataclass(frozen=True, slots=True)
class Said(Notice):
    """Somebody said something."""

    words: str


async def repeat(asked: Repeat) -> str:
    """Answer with the words."""
    return asked.words


class Gateway:
    """A gateway process that listens for other machines."""

    def __init__(self, token: str = CLUSTER_TOKEN) -> None:
        self.links: list[MessageLink] = []
        self.rooms: list[RoomIdentity] = []
        self.listener = RemoteRoomListener(self._on_link, token, at=RoomsAddress(LOOPBACK, 0))

    def _on_link(self, room: RoomIdentity, link: MessageLink) -> None:
        link.handlers.answer(Repeat, repeat)
        self.rooms.append(room)
        self.links.append(link)

    @property
    def port(self) -> int:
        port = URL(self.listener.url).port
        assert port is not None
        return port


@asynccontextmanager
async def gateway(token: str = CLUSTER_TOKEN) -> AsyncIterator[Gateway]:
    """Open one."""
    opened = Gateway(token)
    async with opened.listener:
        yield opened


class Between:
    """Somebody who sits between a machine and the gateway. `heard`: what it can read of both directions.

    `as_gateway`, `as_room`: what it shows to either side; None: it only passes on what comes.
    """

    def __init__(self, port: int, as_gateway: ssl.SSLContext | None, as_room: ssl.SSLContext | None) -> None:
        self.heard = b""
        self._port = port
        self._as_gateway = as_gateway
        self._as_room = as_room
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def sitting(self) -> AsyncIterator[str]:
        """Yield the address at which it takes the gateway's place."""
        server = await asyncio.start_server(self._serve, LOOPBACK, 0, ssl=self._as_gateway)
        async with server:
            yield f"wss://{LOOPBACK}:{server.sockets[0].getsockname()[1]}/room"
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(OSError):
            theirs, ours = await asyncio.open_connection(LOOPBACK, self._port, ssl=self._as_room)
            try:
                await asyncio.gather(self._pass(reader, ours), self._pass(theirs, writer))
            finally:
                ours.close()
                writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while some := await reader.read(65_536):
            self.heard += some
            writer.write(some)
        writer.close()


@pytest.mark.asyncio
async def test_who_only_listens_learns_nothing() -> None:
    """Neither the token, nor what people say, nor which rooms there are passes as text. The token passes in no form."""
    async with gateway() as there, AsyncExitStack() as stack:
        between = Between(there.port, None, None)
        url = await stack.enter_async_context(between.sitting())
        link = GatewayLink(url, CLUSTER_TOKEN, NORTH)
        heard: list[str] = []
        link.handlers.hear(Said, lambda said: heard.append(said.words))
        await stack.enter_async_context(link)
        assert await link.ask(Repeat(SPOKEN), within_s=PATIENCE_S) == SPOKEN
        there.links[0].tell(Said(SPOKEN))
        await until(lambda: heard == [SPOKEN])
        assert there.rooms == [NORTH]
        assert len(between.heard) > len(SPOKEN) * 3
        for secret in (CLUSTER_TOKEN, SPOKEN, "north", "Upgrade", "Bearer"):
            assert secret.encode() not in between.heard


@pytest.mark.asyncio
async def test_who_poses_as_the_gateway_is_told_nothing() -> None:
    """It has a certificate like ours, of another token. The machine sends it nothing and says what may be wrong."""
    async with gateway() as there:
        between = Between(there.port, gateway_encryption(OTHER_TOKEN), room_encryption(OTHER_TOKEN))
        async with between.sitting() as url:
            with capture_logs() as logs, pytest.raises(RoomRefusedError, match="somebody is in between"):
                async with GatewayLink(url, CLUSTER_TOKEN, NORTH):
                    pass
        assert between.heard == b""
        assert there.rooms == []
        assert "gateway_not_trusted" in [each["event"] for each in logs]


@pytest.mark.parametrize("shows", ["nothing", "another token", "the gateway's side"])
@pytest.mark.asyncio
async def test_who_poses_as_a_machine_is_not_let_in(shows: str) -> None:
    """It gets no answer at all, not even to a request. What the gateway shows to others cannot be shown to it."""
    async with gateway() as there:
        theirs = {
            "nothing": ssl.create_default_context(),
            "another token": room_encryption(OTHER_TOKEN),
            "the gateway's side": gateway_side_as_client(),
        }[shows]
        theirs.check_hostname, theirs.verify_mode = False, ssl.CERT_NONE
        with capture_logs() as logs, pytest.raises((aiohttp.ClientError, OSError)):
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(there.listener.url, ssl=theirs, headers=OLDER_PROOF),
            ):
                pass
        await until(lambda: logs)
        assert [(each["event"], each["token_count"]) for each in logs] == [("room_links_refused", 1)]
        assert there.rooms == []


def gateway_side_as_client() -> ssl.SSLContext:
    """Return the side of the gateway, for who connects: a machine with the token that speaks for the wrong side."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    side = link_encryption._Side
    return link_encryption._between(context, CLUSTER_TOKEN, side.GATEWAY, side.GATEWAY)


@pytest.mark.asyncio
async def test_older_versions_of_tls_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody in between can bargain either side down."""
    monkeypatch.setattr("bot.remote.link.gateway_link.OPEN_WITHIN_S", 0.1)
    async with gateway() as there:
        older = room_encryption(CLUSTER_TOKEN)
        older.minimum_version, older.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2
        with pytest.raises(OSError):  # noqa: PT011 - by OpenSSL's release a reset or an alert
            await asyncio.open_connection(LOOPBACK, there.port, ssl=older)
        older_gateway = gateway_encryption(CLUSTER_TOKEN)
        older_gateway.minimum_version, older_gateway.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2
        between = Between(there.port, older_gateway, room_encryption(CLUSTER_TOKEN))
        async with between.sitting() as url:
            with pytest.raises(OtherProcessError, match="not there"):
                async with GatewayLink(url, CLUSTER_TOKEN, NORTH):
                    pass
        assert (between.heard, there.rooms) == (b"", [])


@pytest.mark.asyncio
async def test_a_machine_never_speaks_without_encryption() -> None:
    """To who takes encryption away, and to a bot of before, it sends a handshake and no request."""
    async with gateway() as there, AsyncExitStack() as stack:
        heard: list[bytes] = []

        async def answer_plainly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.read(65_536))
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
            writer.close()

        server = await stack.enter_async_context(await asyncio.start_server(answer_plainly, LOOPBACK, 0))
        url = f"wss://{LOOPBACK}:{server.sockets[0].getsockname()[1]}/room"
        with pytest.raises(RoomRefusedError, match="does not encrypt"):
            async with GatewayLink(url, CLUSTER_TOKEN, NORTH):
                pass
        assert heard
        assert not any(secret in heard[0] for secret in (CLUSTER_TOKEN.encode(), b"GET", b"north"))
        assert there.rooms == []
        with pytest.raises(AssertionError, match="this machine alone"):
            GatewayLink("ws://10.0.0.1:8572/room", CLUSTER_TOKEN, NORTH)


@pytest.mark.asyncio
async def test_an_older_machine_is_told_why_in_a_sentence() -> None:
    """It opens a websocket without encryption, introduces itself as it did, and reads the refusal that it knows."""
    async with gateway() as there, aiohttp.ClientSession() as session:
        url = URL(there.listener.url).with_scheme("ws")
        with capture_logs() as logs:
            async with session.ws_connect(url, headers=OLDER_PROOF) as socket:
                with pytest.raises(RoomRefusedError, match="Install the same Roomtone everywhere"):
                    await introduce(socket, NORTH)
        assert [each.get("plain_count") for each in logs] == [1]
        assert there.rooms == []


@pytest.mark.asyncio
async def test_somebody_who_comes_in_between_later_does_not_end_the_room() -> None:
    """The link is lost, as with a broken cable, and comes back when the gateway answers again."""
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(gateway())
        link = await stack.enter_async_context(GatewayLink(there.listener.url, CLUSTER_TOKEN, NORTH))
        honest = link._url
        impostor = Between(there.port, gateway_encryption(OTHER_TOKEN), room_encryption(OTHER_TOKEN))
        link._url = await stack.enter_async_context(impostor.sitting())
        with capture_logs() as logs:
            there.links[0].close()
            await until(lambda: "gateway_not_trusted" in [each["event"] for each in logs])
            with pytest.raises(OtherProcessError, match="not there"):
                await link.ask(Repeat(SPOKEN), within_s=1)
            link._url = honest
            await until(lambda: len(there.links) == 2 and link.is_open)
        assert await link.ask(Repeat(SPOKEN), within_s=PATIENCE_S) == SPOKEN
        assert impostor.heard == b""


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01", b"G"])
@pytest.mark.asyncio
async def test_who_proves_nothing_takes_nobodys_place(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """Connections that prove nothing are few at a time: silent ones, those within a handshake, and those without TLS.
    For the next one the oldest is closed, so a machine with the token is let in at once.
    """
    monkeypatch.setattr(encrypted_port, "MOST_OPENING", 2)
    async with gateway() as there, AsyncExitStack() as stack:
        readers = []
        for _ in range(2):
            reader, writer = await asyncio.open_connection(LOOPBACK, there.port)
            stack.callback(writer.close)
            writer.write(said)
            readers.append(reader)
        with capture_logs() as logs:
            async with GatewayLink(there.listener.url, CLUSTER_TOKEN, NORTH) as link:
                assert await link.ask(Repeat(SPOKEN), within_s=PATIENCE_S) == SPOKEN
            async with asyncio.timeout(PATIENCE_S):
                with suppress(ConnectionError):
                    assert await readers[0].read(1) == b""
        assert [each["crowded_count"] for each in logs if "crowded_count" in each] == [1]
        assert not readers[1].at_eof()


_SOCKET = (
    b"GET /room HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: secret\r\n\r\n"
)


@pytest.mark.parametrize("at", [None, RoomsAddress(LOOPBACK, 0)])
@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"GET /secret HTTP/9.9\r\n\r\n", b"400"),
        (b"GET /" + b"secret" * 2_000 + b" HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /secret HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 6\r\n\r\nsecret", b"404"),
        (_SOCKET, b"40"),
    ],
)
@pytest.mark.asyncio
async def test_strange_requests_are_at_most_one_line_in_the_log(
    at: RoomsAddress | None, said: bytes, answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody without the token sends what no process of ours does, over and over. It makes no traceback, and the
    answer quotes nothing of it.
    """
    with capture_logs() as logs:
        async with RemoteRoomListener(lambda *_: None, CLUSTER_TOKEN, at=at) as listener:
            logs.clear()
            for _ in range(3):
                reader, writer = await asyncio.open_connection(LOOPBACK, URL(listener.url).port)
                writer.write(said)
                async with asyncio.timeout(PATIENCE_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = next(int(line.split()[1]) for line in head.split(b"\r\n") if b"Content-Length:" in line)
                    body = await reader.readexactly(length)
                writer.close()
                assert head.split()[1].startswith(answer)
                assert b"secret" not in body
    assert len(logs) <= 1, logs
    assert caplog.text == ""


@pytest.mark.asyncio
async def test_connections_that_waited_together_do_not_close_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """All machines come at once when the bot is started again. Each connection gets as far as it can before the next is
    taken, so few of them are being opened at a time.
    """
    monkeypatch.setattr(encrypted_port, "MOST_OPENING", 10)
    refused: list[str] = []
    loop = asyncio.get_running_loop()
    serve = partial(asyncio.StreamReaderProtocol, asyncio.StreamReader())
    with ExitStack() as connections:
        async with EncryptedPort(
            serve, gateway_encryption(CLUSTER_TOKEN), LOOPBACK, 0, on_refused=refused.append
        ) as port:
            waiting = [connections.enter_context(socket.create_connection((LOOPBACK, port.port))) for _ in range(60)]
            for each in waiting:
                each.setblocking(False)
                # It only looks whether the port is open, so it is let go at once.
                each.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(PATIENCE_S):
                assert [await loop.sock_recv(each, 1) for each in waiting] == [b""] * 60
    assert refused == []


@pytest.mark.parametrize(
    ("files", "most"),
    [(resource.RLIM_INFINITY, 1_000), (4_000, 1_000), (1_024, 256), (100, 25)],
)
def test_strangers_leave_the_bot_most_of_its_files(monkeypatch: pytest.MonkeyPatch, files: int, most: int) -> None:
    """A quarter of those that it may open is for connections that have not proven anything."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert encrypted_port._most_opening() == most


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01", b"G", b"GET / HTTP/1.1\r\n\r\n"])
@pytest.mark.asyncio
async def test_who_proves_nothing_is_let_go(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """Before TLS, in the middle of a handshake, without TLS, and with a request that keeps its connection open."""
    monkeypatch.setattr(encrypted_port, "OPEN_WITHIN_S", 0.05)
    async with gateway() as there:
        reader, writer = await asyncio.open_connection(LOOPBACK, there.port)
        writer.write(said)
        async with asyncio.timeout(PATIENCE_S):
            with suppress(ConnectionError):
                await reader.read()
        writer.close()
    assert there.rooms == []


@pytest.mark.parametrize(("number", "remedy"), [(errno.EMFILE, "LimitNOFILE"), (errno.ENOBUFS, None)])
@pytest.mark.asyncio
async def test_a_system_that_opens_no_more_files_is_told_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, number: int, remedy: str | None
) -> None:
    """And what waits is let in once there are some again."""
    monkeypatch.setattr(encrypted_port, "_ACCEPT_AGAIN_S", 0.0)
    loop = asyncio.get_running_loop()
    accept, failures = loop.sock_accept, [OSError(number, os.strerror(number))]

    async def accept_later(listening: socket.socket) -> tuple[socket.socket, Any]:
        if failures:
            raise failures.pop()
        return await accept(listening)

    monkeypatch.setattr(loop, "sock_accept", accept_later)
    with capture_logs() as logs:
        async with gateway() as there, GatewayLink(there.listener.url, CLUSTER_TOKEN, NORTH) as link:
            assert await link.ask(Repeat(SPOKEN), within_s=PATIENCE_S) == SPOKEN
    [told] = [each for each in logs if each["event"] == "room_links_not_accepted"]
    assert told["problem"] == os.strerror(number)
    assert (remedy is None) == ("remedy" not in told)
    assert (remedy or "") in told.get("remedy", "")


@pytest.mark.parametrize("token", ["", "short", "a" * (LEAST_TOKEN_CHARS - 1)])
def test_a_token_that_could_be_guessed_is_none(token: str) -> None:
    """It is refused with the remedy on both sides, before anything listens or connects."""
    for make in (gateway_encryption, room_encryption):
        with pytest.raises(SetupError, match="could be guessed"):
            make(token)


def test_the_token_that_is_made_is_long_enough() -> None:
    """Twice as long as the shortest that is taken."""
    assert 2 * TOKEN_BYTES == 2 * LEAST_TOKEN_CHARS
