"""Bounds what MCP servers do: one that sends a message without an end must not fill the bot's memory, nor one that has
itself asked without a pause take its time.

The library keeps what a program writes until its line ends, and what a web server answers until the answer ends,
however long that takes. It bounds only the events of event streams. So its reader of a program's output is replaced
here by one that counts; `tests.bot.mcp.test_connection` fails if the library uses another. Nor does it bound what
a message is made of, so each is looked at before the library checks it.

A web server says how soon it is asked again for a stream that has ended, and the library has no least pause and no end.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import mcp.client.stdio
from anyio.abc import ObjectReceiveStream
from anyio.streams.text import TextReceiveStream
from mcp.shared.message import SessionMessage

from bot.errors import BotError
from bot.texts.text import OperatorText, verbatim
from voice.token_bucket import TokenBucket

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

    import httpx2
    from mcp.client._transport import ReadStream, Transport, TransportStreams

    from voice.plain_http import AnswerRefusedError

# A picture of a whole screen, as some tools return it, has fewer. A model is told the kind of a picture only, and of a
# longer text than some thousand characters head and tail.
MOST_MESSAGE_BYTES: Final = 4_000_000
# What one is made of. For each value that is none of the protocol's, the library makes errors for all that it could
# have been: a megabyte becomes 2.4 GB and takes half a minute.
MOST_VALUES: Final = 50_000
# The tools of all rooms, the checks, and the library's own requests are a few a second.
MOST_REQUESTS_AT_ONCE: Final = 300
REQUESTS_PER_S: Final = 10


class ServerDroppedError(BotError):
    """A server went beyond a bound, so its connection ends. The message is a plain sentence."""


@dataclass(slots=True)
class MessageLimit:
    """The bounds of one connection to a server. `exceeded`: set when the server must be dropped. `error`: says why
    then.
    """

    server: str
    exceeded: asyncio.Event
    error: ServerDroppedError | None = field(default=None, init=False)
    _requests: TokenBucket = field(
        default_factory=partial(TokenBucket, rate=REQUESTS_PER_S, burst=MOST_REQUESTS_AT_ONCE), init=False, repr=False
    )

    def exceed(self, what: str) -> ServerDroppedError:
        """Note that the server must be dropped, and return why. `what`: what it did, as a clause."""
        if self.error is None:
            dropped = f"The server {self.server} was dropped: it {what}."
            remedy = "{dropped} Look at the server, or take it out of mcp.servers."
            self.error = ServerDroppedError(OperatorText(remedy, verbatim(dropped), dropped=dropped))
            self.exceeded.set()
        return self.error

    async def check_request(self, _: httpx2.Request) -> None:
        """Bound how often a web server is asked. A hook for its client: called before each request. Raises
        `ServerDroppedError`.
        """
        if not self._requests.take(time.monotonic()):
            raise self.exceed("has itself asked again and again without a pause")

    def refused(self, error: AnswerRefusedError) -> ServerDroppedError:
        """Note that the server must be dropped because of the form of an answer, and return why."""
        return self.exceed(str(error))


# That of a program whose transport is opened in this task from now on. Its reader is made in a task of the library,
# which gets this task's context.
PROGRAM_LIMIT: ContextVar[MessageLimit | None] = ContextVar("mcp_message_limit", default=None)


class BoundedText(TextReceiveStream):
    """A program's output. It ends at a line that is too long; the library then drops what else comes, until the program
    is ended.
    """

    def __post_init__(self, encoding: str, errors: str) -> None:
        super().__post_init__(encoding, errors)
        self._limit = PROGRAM_LIMIT.get()
        # Of the line that has not ended yet, in characters.
        self._length = 0

    async def receive(self) -> str:
        text = await super().receive()
        begun, newline, rest = text.partition("\n")
        if self._limit is not None and self._length + len(begun) > MOST_MESSAGE_BYTES:
            self._limit.exceed(f"sent a message of more than {MOST_MESSAGE_BYTES // 1_000_000} MB")
            raise anyio.EndOfStream
        self._length = len(rest) - (rest.rfind("\n") + 1) if newline else self._length + len(begun)
        return text


mcp.client.stdio.TextReceiveStream = BoundedText  # type: ignore[attr-defined]


class BoundedMessages(ObjectReceiveStream[SessionMessage | Exception]):
    """What a server has sent, as messages that are not checked yet. It ends before one of too many values."""

    def __init__(self, messages: ReadStream[SessionMessage | Exception], limit: MessageLimit) -> None:
        self._messages = messages
        self._limit = limit

    async def receive(self) -> SessionMessage | Exception:
        item = await self._messages.receive()
        waiting, left = [vars(item.message)] if isinstance(item, SessionMessage) else [], MOST_VALUES
        while waiting and left >= 0:
            each = waiting.pop()
            inner = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
            left -= len(inner)
            waiting += inner
        if left < 0:
            self._limit.exceed(f"sent a message of more than {MOST_VALUES:,} values")
            raise anyio.EndOfStream
        return item

    async def aclose(self) -> None:
        await self._messages.aclose()


@asynccontextmanager
async def bounded(transport: Transport, limit: MessageLimit) -> AsyncIterator[TransportStreams]:
    """Open a transport of the library whose messages are bounded."""
    async with transport as (messages, out):
        yield BoundedMessages(messages, limit), out
