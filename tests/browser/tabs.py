"""Chromium without Playwright, so that tabs in the background really are hidden.

Playwright makes every page believe that it is in front. This module implements the few requests of the DevTools
protocol that the tests need.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp

from tests.browser.chromium import SWITCHES, executable
from tests.patience import PATIENCE_S, patiently

_PORT = re.compile(rb"DevTools listening on (ws://127\.0\.0\.1:\d+)/")


class Tab:
    """One tab. It handles one request at a time."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0

    async def ask(self, method: str, **parameters: object) -> Any:
        """Send a request and return its result."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        async with asyncio.timeout(PATIENCE_S):
            while (told := await self._socket.receive_json()).get("id") != self._number:
                pass
        assert "error" not in told, told
        return told["result"]

    async def evaluate(self, script: str) -> Any:
        """Run a script with a user gesture, as if the person had clicked, and return its value."""
        result = await self.ask("Runtime.evaluate", expression=script, userGesture=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until the script returns a true value in the page."""
        async with asyncio.timeout(PATIENCE_S):
            while not await self.evaluate(script):  # noqa: ASYNC110 - the page is another process
                await asyncio.sleep(0.05)

    async def to_front(self) -> None:
        """Bring the tab to the front, which puts the other tab behind it."""
        await self.ask("Page.bringToFront")


class Tabs:
    """A browser with one window."""

    def __init__(self, http: aiohttp.ClientSession, base: str, stack: AsyncExitStack) -> None:
        self._http = http
        self._base = base
        self._stack = stack

    async def open(self, url: str) -> Tab:
        """Open a tab."""
        async with self._http.put(f"{self._base}/json/new", params={"url": "about:blank"}) as answer:
            told = await answer.json(content_type=None)
        socket = await self._stack.enter_async_context(
            self._http.ws_connect(told["webSocketDebuggerUrl"], max_msg_size=0)
        )
        tab = Tab(socket)
        await tab.ask("Page.navigate", url=url)
        return tab


@asynccontextmanager
async def tabs() -> AsyncIterator[Tabs]:
    """Start Chromium without Playwright."""
    async with AsyncExitStack() as stack:
        profile = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        process = await asyncio.create_subprocess_exec(
            executable(),
            *SWITCHES,
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            "--no-first-run",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            async with asyncio.timeout(PATIENCE_S):
                while (found := _PORT.search(await process.stderr.readline())) is None:
                    assert process.returncode is None, "Chromium did not start"
            http = await stack.enter_async_context(aiohttp.ClientSession())
            yield Tabs(http, found[1].decode().replace("ws://", "http://"), stack)
        finally:
            process.terminate()
            await patiently(process.communicate())
