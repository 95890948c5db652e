"""The web socket of the page that shares a screen: reads what the page says, within limits, and tells it the news.

page -> {"t": "hello", "token": …} or {"t": "hello", "resume": …}, first and within seconds
page -> {"t": "start", "surface": "monitor" | "window" | "browser"}, {"t": "stop"}, {"t": "ping"}, pictures (binary);
        `start` again when something else is shared from now on
page <- welcome, note, trouble (an empty sentence: it is over), refused, pong; at last `ended` or `denied` with a plain
        sentence
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiohttp import WSMsgType, web

from bot.web.port import NotAdmittedError, PageClosedError
from voice.screen.frame import MAX_FRAME_BYTES, MAX_SIDE_PX

if TYPE_CHECKING:
    from bot.web.port import PageConnection, SharePageHost

log = structlog.get_logger()

HELLO_TIMEOUT_S: Final = 10.0
# The page says something every 15 seconds; a browser that throttles a hidden page, once a minute.
SILENCE_TIMEOUT_S: Final = 150.0
HEARTBEAT_S: Final = 20.0
SEND_TIMEOUT_S: Final = 10.0
MAX_TEXT_CHARS: Final = 2_000
# Words that mean nothing, such as a later version of the page may say, are let pass; a flood of them is not.
MAX_TEXTS_PER_CONNECTION: Final = 20_000
# Pictures in a row that nobody wants: before the person has shared, or long after.
MAX_STRAYS: Final = 100
# How the page makes pictures, so that both sides go by the same figures.
LIMITS: Final = {
    "max_side_px": MAX_SIDE_PX,
    "max_bytes": MAX_FRAME_BYTES,
    "quality": 0.7,
    "sent_per_s": 2.0,
    "looked_per_s": 2.5,
    "max_buffered_bytes": MAX_FRAME_BYTES,
    "ping_s": 15,
}


def new_socket() -> web.WebSocketResponse:
    """Return a socket within the limits."""
    return web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=MAX_FRAME_BYTES + 1, compress=False)


async def serve(socket: web.WebSocketResponse, host: SharePageHost) -> None:
    """Talk with one page until either side ends it. `socket` is prepared already."""
    try:
        line = await _let_in(socket, host)
    except NotAdmittedError as error:
        await _tell(socket, {"t": "denied", "reason": error.reason, "sentence": str(error)})
        await socket.close(code=4403)
        return
    if line is None:
        await socket.close(code=4400)
        return
    try:
        await _tell(socket, _welcome(line))
        await _converse(socket, line)
    except (ConnectionError, TimeoutError):
        log.info("page_lost")
    finally:
        line.hung_up()
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await socket.close()


async def _let_in(socket: web.WebSocketResponse, host: SharePageHost) -> PageConnection | None:
    """Return the line of a page that says hello; None for what is no hello. Raises `NotAdmittedError`."""
    try:
        message = await socket.receive(timeout=HELLO_TIMEOUT_S)
    except TimeoutError:
        return None
    told = _told(message.data) if message.type is WSMsgType.TEXT else None
    if told is None or told.get("t") != "hello":
        return None
    match told:
        case {"resume": str(secret)}:
            return await host.readmit(secret)
        case {"token": str(token)}:
            return await host.admit(token)
        case _:
            return None


async def _converse(socket: web.WebSocketResponse, line: PageConnection) -> None:
    """Listen and tell side by side; whichever is over first ends the other."""
    listening = asyncio.create_task(_listen(socket, line), name="page-listening")
    telling = asyncio.create_task(_tell_news(socket, line), name="page-telling")
    try:
        await asyncio.wait({listening, telling}, return_when=asyncio.FIRST_COMPLETED)
        if listening.done() and not listening.exception() and not socket.closed:
            # The person stopped: the page is told so before the line is closed.
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await telling
    finally:
        for task in (listening, telling):
            task.cancel()
        ended = await asyncio.gather(listening, telling, return_exceptions=True)
    for error in ended:
        if isinstance(error, Exception):
            raise error


async def _tell_news(socket: web.WebSocketResponse, line: PageConnection) -> None:
    async for message in line.messages():
        await _tell(socket, message)


async def _listen(socket: web.WebSocketResponse, line: PageConnection) -> None:
    """Take what the page sends, until it or its share ends."""
    texts = strays = 0
    while True:
        message = await socket.receive(timeout=SILENCE_TIMEOUT_S)
        try:
            match message.type:
                case WSMsgType.BINARY:
                    fate = await line.picture(message.data)
                    strays = strays + 1 if fate == "dropped" else 0
                    if strays > MAX_STRAYS:
                        await line.stop()
                        return
                    if fate not in {"taken", "dropped"}:
                        await _tell(socket, {"t": "refused", "reason": fate})
                case WSMsgType.TEXT:
                    texts += 1
                    told = _told(message.data)
                    if told is None or texts > MAX_TEXTS_PER_CONNECTION:
                        await line.stop()
                        return
                    if await _obeyed(socket, line, told):
                        return
                case _:
                    # Closed, broken, too large: the socket has said goodbye itself.
                    return
        except PageClosedError:
            return


async def _obeyed(socket: web.WebSocketResponse, line: PageConnection, told: dict[str, Any]) -> bool:
    """Do what a page asks; return whether it was the last thing it asks."""
    match told:
        case {"t": "ping"}:
            await _tell(socket, {"t": "pong"})
        case {"t": "start", "surface": str(surface)}:
            line.start(surface)
        case {"t": "stop"}:
            await line.stop()
            return True
        case _:
            pass
    return False


def _welcome(line: PageConnection) -> dict[str, object]:
    welcome = line.welcome
    return {
        "t": "welcome",
        "who": welcome.who,
        "room": welcome.room,
        "server": welcome.server,
        "bot": welcome.bot,
        "reading": welcome.reading,
        "resume": welcome.resume_secret,
        "sharing": welcome.sharing,
        "trouble": welcome.trouble,
        "limits": LIMITS,
    }


async def _tell(socket: web.WebSocketResponse, message: Any) -> None:
    """Send a message; a page that takes none for long is gone."""
    async with asyncio.timeout(SEND_TIMEOUT_S):
        await socket.send_json(message)


def _told(text: object) -> dict[str, Any] | None:
    """Return what a page said, or None for what is no message."""
    if not isinstance(text, str) or len(text) > MAX_TEXT_CHARS:
        return None
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None
