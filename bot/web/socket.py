"""The web socket protocol of the share page, with limits on what a page may send.

page -> {"t": "hello", "token": …} or {"t": "hello", "resume": …}, first and within seconds
page -> {"t": "start", "surface": "monitor" | "window" | "browser"}, {"t": "stop"}, {"t": "ping"}, pictures (binary);
        `start` again when something else is shared from now on
page <- welcome, note, trouble (an empty sentence: it is over), pong; refused: the last picture was not taken, for the
        reason that it names, so the page sends the screen again after a pause; at last `ended` or `denied` with a plain
        sentence
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiohttp import WSCloseCode, WSMsgType, web

from bot.background_task import owned_task
from bot.screen.messages import NotAdmittedError, PageClosedError
from bot.texts.text import all_in_language, sentence_of
from voice.screen.frame import MAX_FRAME_BYTES, MAX_SIDE_PX

if TYPE_CHECKING:
    from bot.screen.screens import ScreenPageConnection, Screens
    from bot.web.connection import Visits, WebConnection


log = structlog.get_logger()

HELLO_TIMEOUT_S: Final = 10.0
# The page pings every 15 seconds, or once a minute if the browser throttles a hidden page.
SILENCE_TIMEOUT_S: Final = 150.0
HEARTBEAT_S: Final = 20.0
SEND_TIMEOUT_S: Final = 10.0
MAX_TEXT_CHARS: Final = 2_000
# Unknown messages, for example of a later version of the page, are ignored; a flood of them ends the share.
MAX_TEXTS_PER_CONNECTION: Final = 20_000
# Sent to the page, so that both sides use the same limits.
LIMITS: Final = {
    "max_side_px": MAX_SIDE_PX,
    "max_bytes": MAX_FRAME_BYTES,
    "quality": 0.7,
    "sent_per_s": 2.0,
    "looked_per_s": 2.5,
    "max_buffered_bytes": MAX_FRAME_BYTES,
    "ping_s": 15,
}


async def serve(
    socket: web.WebSocketResponse, screens: Screens, visits: Visits, visitor: WebConnection, *, language: str
) -> None:
    """Serve one page until either side ends the connection. `socket`: already prepared, on the connection `visitor`.
    `visits`: learns whether the page has shown a valid link. `language`: that of the page.
    """
    try:
        connection = await _admit(socket, screens)
    except NotAdmittedError as error:
        visits.count(f"{error.reason}_link")
        denied = {"t": "denied", "reason": error.reason, "sentence": sentence_of(error)}
        with contextlib.suppress(ConnectionError, TimeoutError):
            await _send(socket, all_in_language(denied, language))
        await _close(socket, code=4403)
        return
    if connection is None:
        await _close(socket, code=4400)
        return
    try:
        visits.pages.admitted(visitor, connection.link)
        greeting = {"t": "welcome", **connection.welcome, "limits": LIMITS}
        await _send(socket, all_in_language(greeting, language))
        await _run_connection(socket, connection, language)
    except (ConnectionError, TimeoutError):
        log.info("page_connection_lost")
    finally:
        connection.disconnected()
        await _close(socket)


async def _admit(socket: web.WebSocketResponse, screens: Screens) -> ScreenPageConnection | None:
    """Wait for the hello and admit the page. Returns None for any other message. Raises `NotAdmittedError`."""
    try:
        # Not the library's own timeout, which begins anew with each ping.
        async with asyncio.timeout(HELLO_TIMEOUT_S):
            message = await socket.receive()
    except TimeoutError:
        return None
    parsed = _parse(message.data) if message.type is WSMsgType.TEXT else None
    if parsed is None or parsed.get("t") != "hello":
        return None
    match parsed:
        case {"resume": str(secret)}:
            return await screens.readmit(secret)
        case {"token": str(token)}:
            return await screens.admit(token)
        case _:
            return None


async def _run_connection(socket: web.WebSocketResponse, connection: ScreenPageConnection, language: str) -> None:
    """Receive and send concurrently until one of them ends."""
    async with (
        owned_task(_receive(socket, connection), name="page-receive") as receiving,
        owned_task(_send_messages(socket, connection, language), name="page-send") as sending,
    ):
        await asyncio.wait({receiving, sending}, return_when=asyncio.FIRST_COMPLETED)
        if receiving.done() and not receiving.exception() and not socket.closed:
            # The person stopped: send the page the last message before closing.
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await sending
    for task in (receiving, sending):
        # What one of them has failed with is the caller's.
        if not task.cancelled():
            task.result()


async def _send_messages(socket: web.WebSocketResponse, connection: ScreenPageConnection, language: str) -> None:
    async for message in connection.messages():
        await _send(socket, all_in_language(message, language))


async def _receive(socket: web.WebSocketResponse, connection: ScreenPageConnection) -> None:
    """Handle what the page sends, until its share or the connection ends."""
    texts = 0
    while True:
        message = await socket.receive(timeout=SILENCE_TIMEOUT_S)
        try:
            match message.type:
                case WSMsgType.BINARY:
                    await connection.picture(message.data)
                case WSMsgType.TEXT:
                    texts += 1
                    parsed = _parse(message.data)
                    if parsed is None or texts > MAX_TEXTS_PER_CONNECTION:
                        await connection.stop()
                        return
                    match parsed:
                        case {"t": "ping"}:
                            await _send(socket, {"t": "pong"})
                        case {"t": "start", "surface": str(surface)}:
                            connection.start(surface)
                        case {"t": "stop"}:
                            await connection.stop()
                            return
                case _:
                    # Closed, broken or too large; the library closes the socket.
                    return
        except PageClosedError:
            return


async def _send(socket: web.WebSocketResponse, message: Any) -> None:
    """Send a message. Raises TimeoutError if the page does not accept it in time."""
    async with asyncio.timeout(SEND_TIMEOUT_S):
        await socket.send_json(message)


async def _close(socket: web.WebSocketResponse, *, code: int = WSCloseCode.OK) -> None:
    """Close the connection. A page that does not take it is not waited for."""
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await socket.close(code=code)


def _parse(text: object) -> dict[str, Any] | None:
    """Return a message of the page, or None if it is invalid."""
    if isinstance(text, str) and len(text) <= MAX_TEXT_CHARS:
        with contextlib.suppress(ValueError, RecursionError):
            parsed = json.loads(text)
            return parsed if isinstance(parsed, dict) else None
    return None
