"""The web server over real sockets, and a page that talks to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
from aiohttp import WSMsgType

from bot.screen.messages import NotAdmittedError, PageClosedError
from bot.screen.screens import ScreenPageConnection, Screens
from bot.texts.text import verbatim
from bot.web.server import WebServer
from tests.patience import PATIENCE_S

CLOSING = aiohttp.ClientWSTimeout(ws_close=1.0)


class FakeLine(ScreenPageConnection):
    """A page's connection that records what the page sends."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.outbox: asyncio.Queue[Mapping[str, object] | None] = asyncio.Queue()
        self.gone = asyncio.Event()
        self.closed = False
        self.welcome = {
            "who": "Ada",
            "room": "Lounge",
            "server": "Games",
            "bot": "Roomtone",
            "reading": verbatim("Read here."),
            "resume": "secret",
            "sharing": False,
            "trouble": "",
        }

    @property
    def link(self) -> str:
        """Return the number of the link."""
        return "ada"

    def start(self, surface: str) -> None:
        """Record the start."""
        self._say(("start", surface))

    async def picture(self, data: bytes) -> None:
        """Record the size of the picture."""
        self._say(("picture", len(data)))

    async def stop(self) -> None:
        """Record the stop, and send the last message."""
        self._say("stop")
        self.outbox.put_nowait({"t": "ended", "reason": "stopped", "sentence": "Bye."})
        self.outbox.put_nowait(None)

    async def messages(self) -> AsyncIterator[Mapping[str, object]]:
        """Yield the queued messages until None."""
        while (message := await self.outbox.get()) is not None:
            yield message

    def disconnected(self) -> None:
        """Record that the connection is closed."""
        self.gone.set()

    def _say(self, what: object) -> None:
        if self.closed:
            raise PageClosedError
        self.heard.append(what)


class FakeHost(Screens):
    """Admits pages whose token is 'good'."""

    def __init__(self) -> None:
        self.line = FakeLine()
        self.asked: list[tuple[str, str]] = []

    async def admit(self, token: str) -> FakeLine:
        """Admit a page with a link's token."""
        return self._let_in("token", token)

    async def readmit(self, resume_secret: str) -> FakeLine:
        """Admit a page that reconnects."""
        return self._let_in("resume", resume_secret)

    def _let_in(self, by: str, word: str) -> FakeLine:
        self.asked.append((by, word))
        if word != "good":
            raise NotAdmittedError("used", verbatim("This link has been used already."))
        return self.line


class Page:
    """The server, a client, and web sockets with the page's own origin."""

    def __init__(self, server: WebServer, host: FakeHost, http: aiohttp.ClientSession) -> None:
        self.server = server
        self.host = host
        self.http = http
        self.opened: list[aiohttp.ClientWebSocketResponse] = []

    async def close(self) -> None:
        """Close every socket."""
        for socket in self.opened:
            await socket.close()

    @property
    def base(self) -> str:
        """Return the server's address."""
        return f"http://127.0.0.1:{self.server.port}"

    async def socket(self, origin: str | None = None) -> aiohttp.ClientWebSocketResponse:
        """Open a web socket as the page does."""
        url = f"{self.base}/share/socket"
        socket = await self.http.ws_connect(url, origin=origin or self.server.site.origin, timeout=CLOSING)
        self.opened.append(socket)
        return socket

    async def admitted(self) -> aiohttp.ClientWebSocketResponse:
        """Open a web socket and send a valid hello."""
        socket = await self.socket()
        await socket.send_json({"t": "hello", "token": "good"})
        assert (await told(socket))["t"] == "welcome"
        return socket


async def told(socket: aiohttp.ClientWebSocketResponse) -> Any:
    """Return the next message."""
    message = await socket.receive(timeout=PATIENCE_S)
    assert message.type is WSMsgType.TEXT, message
    return json.loads(message.data)
