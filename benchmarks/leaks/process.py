"""Joins, leaves and receives in a process of its own (`python -m benchmarks.leaks.process`).

{"op": "enter", "discord": {...}}     -> {}    a client is logged in
{"op": "joins", "count": 50}          -> what the process holds after so many joins and leaves
{"op": "packets", "count": 5000}      -> the same after so many packets of 200 SSRCs
{"op": "encrypted packets", "count": 2500}    -> the same after so many of an encrypted room
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import structlog

from benchmarks.child_process import keep_stdout_for_answers, serve
from benchmarks.leaks.encrypted_room import EncryptedRoom
from benchmarks.leaks.growth import as_figures, holding
from benchmarks.receive.client import main_gateway
from benchmarks.receive.talk import bundled_recordings, joined
from rehearsal.discord.media.packet_encryption import XCHACHA_MODE, RtpPacket, encrypt_packet, packet_cipher
from voice.transport.link import VoiceLink
from voice.transport.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from voice.transport.discord_gateway import DiscordMainGateway

SSRCS = 200
_NAMED = 100
# Everybody speaks for so many packets; then somebody leaves and somebody else comes.
_PACKETS_A_TURN = 2000
_PAYLOAD_TYPE = 0x78
# The last connection's socket is closed a moment after its websocket.
_CLOSING_S = 0.5


class LeaksProcess:
    """The state of the process. `stack` closes what it opens."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._gateway: DiscordMainGateway | None = None
        self._strangers: Strangers | None = None
        self._encrypted: EncryptedRoom | None = None

    async def answer(self, request: Mapping[str, Any]) -> Mapping[str, object]:
        """Carry out one request."""
        match request["op"]:
            case "enter":
                self._gateway = await main_gateway(self._stack, request["discord"])
                return {}
            case "joins":
                for _ in range(request["count"]):
                    await self._join_and_leave()
                await asyncio.sleep(_CLOSING_S)
            case "packets":
                if self._strangers is None:
                    self._strangers = Strangers()
                self._strangers.send(request["count"])
            case "encrypted packets":
                if self._encrypted is None:
                    self._encrypted = EncryptedRoom()
                self._encrypted.send(request["count"])
            case other:
                raise ValueError(f"unknown request {other}")
        return as_figures(holding())

    async def _join_and_leave(self) -> None:
        assert self._gateway is not None, "entered before"
        async with VoiceLink(self._gateway, sink=lambda _: None, is_excluded=lambda _: False, on_event=lambda _: None):
            pass


class Strangers:
    """A receiver with packets of 200 SSRCs, half of them announced. The clock is moved, so nothing waits.

    They have no end-to-end encryption: a hundred people would change their keys for minutes.
    """

    def __init__(self) -> None:
        self._key = random.Random(1).randbytes(32)  # noqa: S311 - no secret
        self._cipher = packet_cipher(XCHACHA_MODE, self._key)
        self._now = 0.0
        self._receiver = Receiver(deliver=lambda _: None, is_excluded=lambda _: False, clock=lambda: self._now)
        self._keys = SimpleNamespace(
            secret_key=self._key, dave_session=None, dave_protocol_version=0, dave_downgraded=False, require_e2ee=False
        )
        self._opus = joined(bundled_recordings())
        self._numbers = itertools.count()

    def send(self, count: int) -> None:
        """Receive so many packets."""
        for number in itertools.islice(self._numbers, count):
            turn, place = divmod(number, _PACKETS_A_TURN)
            if place == 0:
                self._change(turn)
            round_number, speaker = divmod(number, SSRCS)
            packet = RtpPacket(
                _PAYLOAD_TYPE,
                round_number & 0xFFFF,
                round_number * 960 & 0xFFFF_FFFF,
                self._ssrc(turn, speaker),
                self._opus[number % len(self._opus)],
            )
            self._receiver.datagram(encrypt_packet(packet, self._cipher, number), self._keys)
            self._receiver.flush()
            self._now += 0.02 / SSRCS

    def _change(self, turn: int) -> None:
        """Let those of the turn before leave, and announce half of the new ones."""
        for speaker in range(_NAMED):
            if turn:
                self._receiver.left(self._ssrc(turn - 1, speaker))
            self._receiver.speaks(self._ssrc(turn, speaker), self._ssrc(turn, speaker))
        # A pause, in which what nobody claimed is given up.
        self._now += 2.0

    @staticmethod
    def _ssrc(turn: int, speaker: int) -> int:
        return 1 + turn * SSRCS + speaker


async def _run(answers: int) -> None:
    async with AsyncExitStack() as stack:
        await serve(answers, LeaksProcess(stack).answer)


if __name__ == "__main__":
    channel = keep_stdout_for_answers()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    asyncio.run(_run(channel))
