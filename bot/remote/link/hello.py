"""How a room's process introduces itself to the gateway process, and is admitted or refused.

Both sides have proved before that they have the token: on one machine with the websocket's request and the first word
(`token_proof`), between machines with TLS (`link_encryption`). Then the room says which version of the messages it
speaks and which room it is, and is answered with a welcome or an error.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from aiohttp import WSMsgType

from bot.channel.port import ListenRequest  # noqa: TC001 - pydantic reads the annotation
from bot.errors import SetupError
from bot.remote.messages.frames import Head, MalformedError, Notice, content_of, frame_of, head_of
from bot.remote.messages.wire_error import OtherProcessError, WireError, error_from_wire, error_to_wire
from bot.texts.text import Text

if TYPE_CHECKING:
    from bot.remote.link.message_link import Socket

# Raised whenever the messages change: two processes of different versions do not talk to each other. Nor do two
# releases with the same messages: each would write what the other one does not know.
PROTOCOL_VERSION: Final = 19
# The path of the websocket.
ROOM_PATH: Final = "/room"
HELLO_S: Final = 5.0
_MOST_RELEASE_CHARS: Final = 40
# Of a machine: it goes into logs.
_MACHINE_NAME: Final = re.compile(r"[\w.-]{1,64}")

OTHER_VERSION = Text(
    "Two processes of this bot are of different versions ({theirs} and {ours}). Install the same Roomtone everywhere "
    "and start them again."
)
WRONG_TOKEN = Text("The bot refused the token of this process. Start the bot again.")
OTHER_TOKEN = Text(
    "What answers at {gateway} does not have the token of this machine, so nothing was sent there. Copy the file "
    "data/cluster/token of the bot's machine to the same place on this one. If they are the same, somebody is in "
    "between."
)
NO_ENCRYPTION = Text(
    "What answers at {gateway} does not encrypt, so nothing was sent there. Install the same Roomtone everywhere and "
    "start them again."
)
# Told to a Roomtone of before, whose link between machines was not encrypted.
NOT_ENCRYPTED = Text(
    "The link between two machines of this bot is encrypted now. Install the same Roomtone everywhere and start them "
    "again."
)
NO_HELLO = Text("Another process of this bot did not introduce itself.")


@dataclass(frozen=True, slots=True)
class RoomIdentity:
    """Which room a process runs. `claim`: the number of its claim; 0: it has none yet.

    `run_id`: what whoever started the process gave it, so that two processes of one room are told apart. `machine`: the
    name of its machine, if it is not the gateway process's. A guild of 0: it waits for a room; `emergency`: for one
    that has lost its process. `opened_by`: the mark of the gateway process that opened the room, of its version and
    settings. `listen`: the bot only writes down there.
    """

    guild_id: int
    channel_id: int
    claim: int = 0
    run_id: str = ""
    machine: str = ""
    emergency: bool = False
    opened_by: str = ""
    listen: ListenRequest | None = None


@dataclass(frozen=True, slots=True)
class Hello(Notice):
    """The first message of a room's process. `version`: `PROTOCOL_VERSION`; what follows is of that version. `release`:
    see `release_here`.
    """

    version: int
    room: RoomIdentity
    release: str


@dataclass(frozen=True, slots=True)
class _Version:
    version: int
    release: str | None = None


@dataclass(frozen=True, slots=True)
class Admitted(Notice):
    """The answer to `Hello`."""


class RoomRefusedError(SetupError):
    """The gateway process will not have this one, now or later. The message says why."""


def release_here() -> str:
    """Return the release of this Roomtone."""
    try:
        return version("roomtone")
    except PackageNotFoundError:
        return "unknown"


def is_machine_name(name: str) -> bool:
    """Return whether a machine may have this name: up to 64 letters, digits, dots and hyphens."""
    return _MACHINE_NAME.fullmatch(name) is not None


async def introduce(socket: Socket, room: RoomIdentity) -> None:
    """Say which room this is. Raises `RoomRefusedError` with the other side's reason, and `OtherProcessError` if this
    may be tried again: the other side says nothing in time, has heard nothing in time, or is not ready yet
    (`NotYetError`).
    """
    hello = Hello(PROTOCOL_VERSION, room, release_here())
    await socket.send_str(frame_of(Head("tell", 0, Hello.__name__), hello, Hello))
    try:
        head, body = head_of(await _frame(socket))
        if head.kind == "error":
            refusal = error_from_wire(content_of(body, WireError))
            if isinstance(refusal, OtherProcessError):
                raise refusal
            raise RoomRefusedError(*refusal.args) from refusal
        content_of(body, Admitted)
    except MalformedError as error:
        raise OtherProcessError(NO_HELLO) from error


async def read_hello(socket: Socket) -> RoomIdentity:
    """Return which room introduces itself. Raises `OtherProcessError`, and `SetupError` for another Roomtone."""
    try:
        head, body = head_of(await _frame(socket))
        if (head.kind, head.name) != ("tell", Hello.__name__):
            raise OtherProcessError(NO_HELLO)
        _check_version(content_of(body, _Version))
        hello: Hello = content_of(body, Hello)
    except MalformedError as error:
        raise OtherProcessError(NO_HELLO) from error
    return hello.room


def _check_version(theirs: _Version) -> None:
    """Raise `SetupError` for another Roomtone, before anything else is read that may be different there."""
    if theirs.version != PROTOCOL_VERSION:
        raise SetupError(OTHER_VERSION.fill(theirs=str(theirs.version), ours=str(PROTOCOL_VERSION)))
    # One without a release is no `Hello` of this version either.
    if theirs.release is not None and theirs.release != (ours := release_here()):
        raise SetupError(OTHER_VERSION.fill(theirs=theirs.release[:_MOST_RELEASE_CHARS], ours=ours))


async def refuse(socket: Socket, error: Exception) -> None:
    """Tell a room why it is not admitted."""
    await socket.send_str(frame_of(Head("error"), error_to_wire(error), WireError))


async def _frame(socket: Socket) -> str:
    """Return the next frame. Raises `OtherProcessError`."""
    try:
        async with asyncio.timeout(HELLO_S):
            message = await socket.receive()
    except TimeoutError as error:
        raise OtherProcessError(NO_HELLO) from error
    if message.type is not WSMsgType.TEXT:
        raise OtherProcessError(NO_HELLO)
    frame: str = message.data
    return frame
