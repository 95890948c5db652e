"""A room's link to the gateway process, made again whenever it is lost. The room goes on meanwhile."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Self

import aiohttp
import structlog
from aiohttp import WSMsgType
from yarl import URL

from bot.background_task import logged_task
from bot.errors import SetupError
from bot.remote.link.address import LOOPBACK
from bot.remote.link.handlers import Handlers
from bot.remote.link.hello import (
    HELLO_S,
    NO_ENCRYPTION,
    OTHER_TOKEN,
    WRONG_TOKEN,
    RoomRefusedError,
    introduce,
)
from bot.remote.link.link_encryption import room_encryption
from bot.remote.link.message_link import AWAY, HEARTBEAT_S, MessageLink
from bot.remote.link.streams import STREAM_PATH, TICKET
from bot.remote.link.token_proof import AUTHORIZATION, is_gateway_proof, new_number, room_proof
from bot.remote.messages.frames import MOST_BYTES
from bot.remote.messages.wire_error import NotYetError, OtherProcessError
from voice.retry_pause import retry_pause_s

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType

    from bot.remote.link.hello import RoomIdentity
    from bot.remote.link.link_file import LinkAddress
    from bot.remote.messages.frames import AnswerT, Notice, Request

log = structlog.get_logger()

# How long the gateway process may take to be there at the first time.
OPEN_WITHIN_S = 10.0
# Between two attempts; doubled up to the longest. A gateway process that is started again is there after seconds.
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
# Once it is there and says that it is not ready yet.
NOT_YET_PAUSE_S = 0.4
_UNAUTHORIZED = 401


def _encryption(url: URL, token: str) -> ssl.SSLContext | None:
    """Return the encryption of a link, with which the token is proved; None on this machine. Raises `SetupError`."""
    if url.scheme == "wss":
        return room_encryption(token)
    assert url.host == LOOPBACK, "what goes unencrypted stays on this machine alone"
    return None


class GatewayLink:
    """The link of one room. Implements `Peer`. An async context manager; register handlers before entering it.

    `url`: of a gateway process on this machine (`ws:`) or on another one (`wss:`). Both prove that they have the token,
    which is not sent. `room`: who introduces itself; set it anew when it is known which room it is.
    `find_again`: returns where the gateway process is now, for further attempts; None: it stays where it is. Entering
    raises `RoomRefusedError`, or `OtherProcessError` if the gateway process cannot be reached; making it raises
    `SetupError` for a token that could be guessed.
    """

    def __init__(
        self,
        url: str,
        token: str,
        room: RoomIdentity,
        *,
        find_again: Callable[[], LinkAddress] | None = None,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        self.room = room
        self._find_again = find_again
        self._url, self._token = url, token
        self._tls = _encryption(URL(url), token)
        self._heartbeat_s = heartbeat_s
        self._handlers = Handlers()
        self._link: MessageLink | None = None
        self._on_opened: list[Callable[[], None]] = []
        self._lost_at = time.monotonic()
        self._refused: asyncio.Future[RoomRefusedError] = asyncio.get_running_loop().create_future()
        self._keeping: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()

    @property
    def handlers(self) -> Handlers:
        return self._handlers

    @property
    def is_open(self) -> bool:
        return self._link is not None and self._link.is_open

    @property
    def away_since(self) -> float | None:
        """Return since when the gateway process is away, in monotonic seconds; None while it is there."""
        return self._lost_at if self._link is None else None

    @property
    def lost_at(self) -> float:
        """Return when the link was lost last, in monotonic seconds; before it was opened, when this was made."""
        return self._lost_at

    def on_opened(self, call: Callable[[], None]) -> None:
        """Call `call` at each opening of the link: at once for what tells and asks first."""
        self._on_opened.append(call)

    async def refused(self) -> RoomRefusedError:
        """Wait until the gateway process will not have this room any more, and return why."""
        return await asyncio.shield(self._refused)

    async def ask(self, request: Request[AnswerT], *, within_s: float) -> AnswerT:
        """See `Peer.ask`."""
        if self._link is None:
            raise OtherProcessError(AWAY)
        return await self._link.ask(request, within_s=within_s)

    def tell(self, notice: Notice) -> None:
        """See `Peer.tell`."""
        if self._link is not None:
            self._link.tell(notice)

    async def __aenter__(self) -> Self:
        self._keeping = logged_task(self._keep(), name="gateway-link")
        opened = asyncio.create_task(self._opened.wait(), name="gateway-link-opened")
        try:
            await asyncio.wait({opened, self._keeping}, timeout=OPEN_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
            if self._refused.done():
                raise self._refused.result()
            if not self._opened.is_set():
                raise OtherProcessError(AWAY)
        except BaseException:
            await self._stop()
            raise
        finally:
            opened.cancel()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._stop()

    async def _stop(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)

    async def _keep(self) -> None:
        """Hold the link until the gateway process refuses it."""
        failures = 0
        async with aiohttp.ClientSession() as session:
            while True:
                longest_s = LONGEST_PAUSE_S
                try:
                    await self._hold(session)
                    failures = 0
                except RoomRefusedError as error:
                    log.error("gateway_link_refused", problem=error)  # noqa: TRY400 - no crash
                    self._refused.set_result(error)
                    return
                except NotYetError:
                    longest_s = NOT_YET_PAUSE_S
                except (OtherProcessError, aiohttp.ClientError, OSError, TimeoutError) as error:
                    log.info("gateway_not_reached", error_class=type(error).__name__)
                except Exception:
                    # Without this loop the room would never be linked again.
                    log.exception("gateway_link_failed")
                failures += 1
                await asyncio.sleep(retry_pause_s(failures, first_s=FIRST_PAUSE_S, longest_s=longest_s))
                self._look_again()

    def _look_again(self) -> bool:
        """Find out where the gateway process is now, and return whether that has changed."""
        if self._find_again is None:
            return False
        try:
            found = self._find_again()
        except SetupError as error:
            log.warning("gateway_not_found", problem=error)
            return False
        if (found.url, found.token) == (self._url, self._token):
            return False
        self._url, self._token = found.url, found.token
        self._tls = _encryption(URL(found.url), found.token)
        return True

    @asynccontextmanager
    async def stream(self, ticket: str, *, most_bytes: int) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open another websocket beside the link, for which the gateway process has given a ticket (`streams`).
        Raises what a network raises. `most_bytes`: the longest message that may come.
        """
        url = URL(self._url).with_path(STREAM_PATH)
        async with (
            aiohttp.ClientSession() as session,
            await self._connect(session, url, {TICKET: ticket}, most_bytes) as socket,
        ):
            yield socket

    async def _connect(
        self, session: aiohttp.ClientSession, url: URL, headers: dict[str, str], most_bytes: int
    ) -> aiohttp.ClientWebSocketResponse:
        number, token = new_number(), self._token
        proof = {AUTHORIZATION: room_proof(token, number)} if self._tls is None else {}
        async with asyncio.timeout(HELLO_S):
            socket = await session.ws_connect(
                url,
                headers={**proof, **headers},
                ssl=self._tls or True,
                heartbeat=self._heartbeat_s,
                max_msg_size=most_bytes,
            )
            if self._tls is None:
                await _check_gateway(socket, token, number)
            return socket

    def _tell_opened(self) -> None:
        for call in self._on_opened:
            try:
                call()
            except Exception:
                # The others must know too, and the room must not stay without a link.
                log.exception("link_opening_not_handled")

    async def _hold(self, session: aiohttp.ClientSession) -> None:
        """Open the link and run it until it is lost. Raises `RoomRefusedError` and what a network raises."""
        try:
            socket = await self._connect(session, URL(self._url), {}, MOST_BYTES)
        except aiohttp.WSServerHandshakeError as error:
            if error.status == _UNAUTHORIZED:
                if self._look_again() or self._opened.is_set():
                    # It was started again in this moment, or this is somebody else, as below.
                    raise OtherProcessError(AWAY) from error
                raise RoomRefusedError(WRONG_TOKEN) from error
            raise
        except aiohttp.ClientSSLError as error:
            log.warning("gateway_not_trusted", error_class=type(error).__name__)
            if self._opened.is_set():
                # It was there before, so this is somebody else, who shall not end the room by answering.
                raise
            is_other = isinstance(error, aiohttp.ClientConnectorCertificateError)
            why = OTHER_TOKEN if is_other else NO_ENCRYPTION
            raise RoomRefusedError(why.fill(gateway=URL(self._url).authority)) from error
        async with socket:
            await introduce(socket, self.room)
            link = self._link = MessageLink(socket, self._handlers, name="gateway-link")
            try:
                log.info("gateway_link_opened")
                self._tell_opened()
                self._opened.set()
                await link.run()
            finally:
                self._link, self._lost_at = None, time.monotonic()
            log.warning("gateway_link_lost")


async def _check_gateway(socket: aiohttp.ClientWebSocketResponse, token: str, number: str) -> None:
    """Wait for the proof of a gateway process on this machine. Raises `ConnectionError`, and closes the websocket, if
    somebody else answers: one that was killed leaves its port to whoever comes first.
    """
    is_gateway = False
    try:
        first = await socket.receive()
        is_told = first.type is WSMsgType.TEXT
        is_gateway = is_told and is_gateway_proof(first.data, token, number)
    finally:
        if not is_gateway:
            # Its goodbye is not waited for: it could make that last, and keep the room from the bot.
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await socket.close()
    if not is_gateway:
        if is_told:
            log.warning("gateway_not_trusted", error_class="token")
        raise ConnectionError("what answers at the gateway process's port does not have the token")
