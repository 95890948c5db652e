"""The attacks: each round makes hostile input from a seed, and checks that nothing breaks and nothing gets through.

A round raises AssertionError, or whatever the attacked code wrongly raises. The same seed makes the same input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from bot.memory.transcript import TranscriptError, parse_transcript
from bot.settings import WebSettings
from bot.web.server import WebServer
from rehearsal.pytest_plugin import open_discord
from tests.bot.web.served_page import FakeHost, Page, told
from tests.fakes.dave_room import DaveRoom
from tests.patience import PATIENCE_S, patiently
from tests.voice.screen.screens import jpeg, screen
from tests.voice.transport.receiver_scene import ANA, BEN, Ear, assert_each_datagram_has_one_fate
from tests.voice.transport.voice_websocket import websocket
from voice.screen.frame import FrameRefusedError
from voice.screen.frame_decoder import FrameDecoder
from voice.screen.share_link import LinkRefusedError, ShareLinks

_NOW = 1_760_000_000.0
# What often breaks readers of numbers, texts and lists.
_ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, 2**70, 1e308, float("inf"), float("nan"), "", "x" * 5_000, "\0", "\ud800",
    "\u202e", [], {}, [[]], [None], {"op": 5}, "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+00:00",
)  # fmt: skip


# -- making hostile input -------------------------------------------------------------------------------------


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Return `data` with bytes changed, cut out, doubled or added."""
    broken = bytearray(data)
    for _ in range(chance.randint(1, 12)):
        at = chance.randrange(len(broken) + 1)
        match chance.randrange(4):
            case 0:
                broken[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del broken[at : at + chance.randint(1, 20)]
            case 2:
                broken[at:at] = broken[at : at + chance.randint(1, 20)]
            case _:
                broken[at:at] = chance.randbytes(chance.randint(1, 20))
    return bytes(broken)


def distorted(value: Any, chance: random.Random) -> Any:
    """Return a JSON value in which some parts are missing or of another kind."""
    if chance.random() < 0.1:
        return chance.choice(_ODD_VALUES)
    if isinstance(value, dict):
        kept = [(key, distorted(each, chance)) for key, each in value.items() if chance.random() > 0.05]
        return dict(kept)
    if isinstance(value, list):
        return [distorted(each, chance) for each in value for _ in range(chance.choice((1, 1, 1, 0, 2)))]
    return value


# -- the attacks ----------------------------------------------------------------------------------------------


@cache
def _dave_room() -> DaveRoom:
    return DaveRoom(ANA, BEN)


def packets(chance: random.Random) -> None:
    """Damaged, repeated and mixed-up voice packets: each datagram has one fate."""
    ear = Ear(room=_dave_room())
    ana = ear.sender(ANA, 11)
    ear.receiver.speaks(11, ANA)
    sent = [ana.datagram(next(ear.opus), padding=chance.randrange(5)) for _ in range(30)]
    for _ in range(100):
        ear.take(damaged(chance.choice(sent), chance))
        ear.take(chance.choice(sent))
        # Authentic packets whose sound is damaged, with and without end-to-end encryption.
        sound = damaged(next(ear.opus), chance)
        if sound:
            ear.take(
                ana.datagram(sound, clear=chance.random() < 0.2, extension=chance.randbytes(4 * chance.randrange(3)))
            )
    assert_each_datagram_has_one_fate(ear)


def voice_messages(chance: random.Random) -> None:
    """Damaged MLS messages, and messages of the voice gateway with missing and odd fields: none is raised.

    READY, SESSION_DESCRIPTION and HELLO are left out, because a connection must fail without them.
    """
    messages: list[dict[str, Any]] = [
        {"op": 5, "d": {"ssrc": 11, "user_id": "2001", "speaking": 1}},
        {"op": 11, "d": {"user_ids": ["2001", "2002"]}},
        {"op": 13, "d": {"user_id": "2001"}},
        {"op": 21, "d": {"transition_id": 3, "protocol_version": 1}},
        {"op": 22, "d": {"transition_id": 3}},
        {"op": 24, "d": {"epoch": 1, "protocol_version": 1}},
    ]

    async def attack() -> None:
        async with websocket() as (socket, _, _):
            for _ in range(150):
                kind, body = chance.choice((25, 27, 29, 30)), chance.randbytes(chance.randint(0, 80))
                await socket.received_binary_message(damaged(bytes([0, 1, kind, 0]) + body, chance))
                message = chance.choice(messages)
                await socket.received_message({"op": message["op"], "d": distorted(message["d"], chance)})

    with capture_logs():
        asyncio.run(attack())


@cache
def _picture() -> bytes:
    return jpeg(screen())


def pictures(chance: random.Random) -> None:
    """Damaged pictures are decoded or refused, and do not end the process that decodes them."""

    async def attack() -> None:
        picture = _picture()
        header = picture.index(b"\xff\xda")
        async with FrameDecoder(timeout_s=PATIENCE_S, start_timeout_s=PATIENCE_S) as decoder:
            await decoder.decode(picture)
            for _ in range(100):
                broken = damaged(picture[:header], chance) + picture[header:]
                if chance.random() < 0.5:
                    broken = picture[: header + 14] + damaged(picture[header + 14 : -2], chance) + picture[-2:]
                with contextlib.suppress(FrameRefusedError):
                    await decoder.decode(broken)
            assert decoder.running

    asyncio.run(attack())


def links(chance: random.Random) -> None:
    """No changed token is a link."""
    given = ShareLinks(valid_s=300)
    token = given.give(guild_id=7, user_id=ANA, session_id="evening", now=_NOW)
    for _ in range(500):
        forged = damaged(token.encode(), chance).decode("latin-1")
        if forged != token:
            with pytest.raises(LinkRefusedError):
                given.redeem(forged, now=_NOW)
    assert given.redeem(token, now=_NOW).user_id == ANA
    with pytest.raises(LinkRefusedError):
        given.redeem(token, now=_NOW)


def imports(chance: random.Random) -> None:
    """Transcripts with missing and odd fields are read or refused with a sentence."""
    for _ in range(150):
        line = json.dumps(distorted({"speaker": "Ada", "text": "Hello.", "at": _NOW}, chance))
        for each in (line, damaged(line.encode(), chance).decode("utf-8", "replace")):
            with contextlib.suppress(TranscriptError):
                parse_transcript([each], name="fuzz")


def web_pages(chance: random.Random) -> None:
    """Damaged requests and odd messages of pages leave the web server at work, and no answer quotes a request."""
    request = b"GET /share HTTP/1.1\r\nHost: localhost\r\nX-Secret: zebulon987\r\nConnection: close\r\n\r\n"
    hellos: tuple[Mapping[str, object], ...] = ({"t": "hello", "token": "bad"}, {"t": "hello", "resume": "bad"})

    async def attack() -> None:
        host = FakeHost()
        async with WebServer(WebSettings(port=0), host) as server, aiohttp.ClientSession() as http:
            await server.start()
            page = Page(server, host, http)
            answered = 0
            for _ in range(40):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                # The end of a head is always sent, else the server would wait for it.
                writer.write(damaged(request, chance) + b"\r\n\r\n")
                answer = await patiently(reader.read())
                assert b"zebulon" not in answer
                assert not answer or b"Content-Security-Policy" in answer
                answered += bool(answer)
                writer.close()
            assert answered > 30, "most requests get an answer"
            for _ in range(20):
                socket = await page.socket()
                await socket.send_str(json.dumps(distorted(chance.choice(hellos), chance)))
                await socket.receive(timeout=PATIENCE_S)
                await socket.close()
            last = await page.admitted()
            await last.send_json({"t": "ping"})
            assert await told(last) == {"t": "pong"}
            await page.close()

    with capture_logs():
        asyncio.run(attack())


def control_server(chance: random.Random) -> None:
    """Odd requests to the control API get a plain 4xx answer, and without the token nothing happens."""
    requests: tuple[tuple[str, dict[str, Any]], ...] = (
        ("members/2001/join", {"channel_id": 600}),
        ("members/2001/leave", {}),
        ("members/2001/message", {"text": "Good evening", "channel_id": 601}),
        ("network", {"loss": 0.05, "padding": 0.0, "reorder": 0.1}),
        ("fault/rtcp", {"user_id": "2001", "count": 3}),
        ("status", {}),
    )

    async def attack() -> None:
        async with open_discord() as opened, aiohttp.ClientSession() as http:
            base = opened.discord.control_base
            for _ in range(60):
                path, body = chance.choice(requests)
                data = json.dumps(distorted(body, chance)).encode()
                data = damaged(data, chance) if chance.random() < 0.3 else data
                async with http.post(f"{base}/{path}", data=data) as answer:
                    assert answer.status < 500, (path, data)
                    assert isinstance(await answer.json(), dict)
                token = damaged(base.rpartition("/")[2].encode(), chance).hex()
                async with http.post(f"{base.rpartition('/')[0]}/{token}/{path}", data=data) as answer:
                    assert answer.status == 403

    with capture_logs():
        asyncio.run(attack())


ATTACKS: dict[str, Callable[[random.Random], None]] = {
    attack.__name__: attack for attack in (packets, voice_messages, pictures, links, imports, web_pages, control_server)
}


def attack_once(name: str, number: int) -> None:
    """Run round `number` of an attack."""
    ATTACKS[name](random.Random(f"{name} {number}"))
