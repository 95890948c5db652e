"""The page on which somebody talks with the bot in the local Discord: their microphone is the voice of a member there.

page -> binary: 20 ms of their voice, 960 samples (mono int16 at 48 kHz, little-endian); none while they are muted
page <- binary: 20 ms of somebody's voice, the SSRC in 4 bytes before as many samples
        text: JSON with `event`: Welcome, Over with `why`, or what the bot hears, decides and remembers (`told`)

The page's address has a token, so other programs of this machine and other pages do not find it.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib import resources
from typing import Final, TypeVar

import numpy as np
from aiohttp import WSMsgType, web

from bot import events
from bot.background_task import owned_task
from bot.web.security import Site, security_headers
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import RehearsalError
from rehearsal.people.clip import FRAME_SAMPLES, RATE_HZ
from rehearsal.people.person import ScriptedPerson, scripted_member
from rehearsal.people.voice_session import ReceivedOpus
from rehearsal.runner.record import LoggedProblem, Observation
from rehearsal.servers.loopback import LoopbackServer
from voice.errors import OpusError
from voice.transport.opus import SILENCE_FRAME, Decoder, Encoder

T = TypeVar("T")

_TOKEN_BYTES: Final = 16
# Half a second of the microphone, while there are no keys to speak with; and five seconds for a page that is busy.
MOST_FRAMES: Final = 25
MOST_MESSAGES: Final = 250
# A microphone that sends nothing for so long is muted.
MUTED_S: Final = 0.2
SEND_TIMEOUT_S: Final = 10.0
HEARTBEAT_S: Final = 20.0
_FRAME_BYTES: Final = 2 * FRAME_SAMPLES
_FILES: Final = (
    ("", "rehearsal.roomtone", "page/microphone.html", "text/html"),
    ("microphone.css", "rehearsal.roomtone", "page/microphone.css", "text/css"),
    ("microphone.js", "rehearsal.roomtone", "page/microphone.js", "text/javascript"),
    ("worklet.js", "rehearsal.roomtone", "page/worklet.js", "text/javascript"),
    ("base.css", "bot.web", "static/base.css", "text/css"),
    ("icon.svg", "bot.web", "static/icon.svg", "image/svg+xml"),
)
# What the page is told of these is all that they have.
_TOLD_WHOLE: Final = (
    events.InterimTranscribed,
    events.UtteranceTranscribed,
    events.SpeechDropped,
    events.ReplySpoken,
    events.CompactionLanded,
    LoggedProblem,
)


class NewestQueue(asyncio.Queue[T]):
    """A queue that is never waited for: when it is full, the oldest goes."""

    def put_newest(self, item: T) -> None:
        """Add an item."""
        if self.full():
            self.get_nowait()
        self.put_nowait(item)


class MicrophonePage(LoopbackServer):
    """The page's server. Whoever talks there is the first person of the guild, from *Talk* until they leave the page.

    *Ownership*: an async context manager, as its base; one that talks leaves the channel at its end.
    """

    def __init__(self, discord: LocalDiscord) -> None:
        self._discord = discord
        self._who = discord.guild.people[0]
        self._path = f"/{secrets.token_urlsafe(_TOKEN_BYTES)}/"
        # What waits for the page of whoever talks.
        self._waiting: NewestQueue[bytes | str] | None = None
        files = [web.get(f"{self._path}{name}", self._file(*source)) for name, *source in _FILES]
        super().__init__([*files, web.get(f"{self._path}socket", self._socket)], has_page=True)

    @property
    def link(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.port}{self._path}"

    def observe(self, seen: Observation) -> None:
        """Tell the page what happened, if somebody talks."""
        if shown := told(seen):
            self._tell(shown)

    def _tell(self, shown: Mapping[str, object]) -> None:
        if self._waiting is not None:
            self._waiting.put_newest(json.dumps(shown))

    def _file(self, package: str, name: str, kind: str) -> Callable[[web.Request], Awaitable[web.Response]]:
        body = (resources.files(package) / name).read_bytes()

        async def handle(_: web.Request) -> web.Response:
            headers = security_headers(Site.of("", port=self.port))
            headers["Permissions-Policy"] = "microphone=(self)"
            return web.Response(body=body, content_type=kind, charset="utf-8", headers=headers)

        return handle

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=_FRAME_BYTES + 1, compress=False)
        await socket.prepare(request)
        why = "Somebody talks on another page. Close that page, and press Talk again."
        if self._waiting is None:
            self._waiting = NewestQueue(MOST_MESSAGES)
            try:
                why = await self._talk(socket, self._waiting)
            finally:
                self._waiting = None
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await socket.send_json({"event": "Over", "why": why})
                await socket.close()
        return socket

    async def _talk(self, socket: web.WebSocketResponse, waiting: NewestQueue[bytes | str]) -> str:
        """Let somebody talk until their page is gone. Return why they cannot go on."""
        decoders: defaultdict[int, Decoder] = defaultdict(lambda: Decoder(rate_hz=RATE_HZ))

        def hear(packet: ReceivedOpus) -> None:
            with suppress(OpusError):
                if packet.opus != SILENCE_FRAME:
                    sound = decoders[packet.ssrc].decode(packet.opus)
                    waiting.put_newest(packet.ssrc.to_bytes(4, "little") + sound.tobytes())

        frames: NewestQueue[bytes] = NewestQueue(MOST_FRAMES)
        guild = self._discord.guild
        names = {str(member.id): member.name for member in guild.people}
        welcome = {"event": "Welcome", "you": self._who.name, "bot": guild.bots[0].name, "names": names}
        try:
            async with (
                scripted_member(self._discord, self._who.id, on_opus=hear) as person,
                owned_task(_receive(socket, frames), name="microphone-receive") as receiving,
                owned_task(_send(socket, waiting), name="microphone-send") as sending,
                owned_task(_speak(person, frames), name="microphone-speak") as speaking,
                owned_task(self._released.wait(), name="microphone-released") as released,
            ):
                self._tell(welcome)
                tasks = {receiving, sending, speaking, released}
                ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for each in ended:
                    each.result()
        except RehearsalError as error:
            return f"{error} Press Talk again."
        except (ConnectionError, TimeoutError):
            return "The page took no sound for too long. Press Talk again."
        return "The local Discord has ended. Start it again, and open the page that it prints."


async def _receive(socket: web.WebSocketResponse, frames: NewestQueue[bytes]) -> None:
    """Take the microphone's sound until the page is gone. What is no frame of it is ignored."""
    async for message in socket:
        if message.type is WSMsgType.BINARY and len(message.data) == _FRAME_BYTES:
            frames.put_newest(message.data)


async def _send(socket: web.WebSocketResponse, waiting: NewestQueue[bytes | str]) -> None:
    while True:
        message = await waiting.get()
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await (socket.send_str(message) if isinstance(message, str) else socket.send_bytes(message))


async def _speak(person: ScriptedPerson, frames: NewestQueue[bytes]) -> None:
    encoder = Encoder()

    async def unmuted(frame: bytes) -> AsyncIterator[bytes]:
        with suppress(TimeoutError):
            while True:
                yield encoder.encode(np.frombuffer(frame, "<i2"))
                async with asyncio.timeout(MUTED_S):
                    frame = await frames.get()

    while True:
        await person.speak(unmuted(await frames.get()))


def told(seen: Observation) -> dict[str, object]:
    """Return what the page is told of an event; empty if nothing."""
    match seen:
        case events.TurnDecided():
            shown: dict[str, object] = {"answers": seen.answers, "reason": seen.reason}
        case events.TurnRecorded(turn=turn):
            shown = {"seq": turn.seq}
        case events.ContextBuilt():
            shown = {"parts": Counter(part.kind.value for part in seen.parts)}
        case _ if isinstance(seen, _TOLD_WHOLE):
            shown = asdict(seen)
        case _:
            return {}
    return {"event": type(seen).__name__, **shown}
