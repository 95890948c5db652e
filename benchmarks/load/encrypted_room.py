"""An end-to-end encrypted voice channel in one process, without a network: people come, speak and leave.

Everybody is a real member of one MLS group, which the local Discord's delivery service makes. The receiver reads the
bot's session as it reads that of a connection, so what the session keeps of people who have left is seen.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from types import SimpleNamespace
from typing import TYPE_CHECKING, assert_never

from benchmarks.load.talk import bundled_recordings, joined
from rehearsal.discord.dave.delivery import DeliveryService, read_transition_id
from rehearsal.discord.dave.group import (
    DaveOpcode,
    DeliveryEffect,
    SendBinary,
    SendJson,
    StartTimer,
)
from rehearsal.discord.media.packet_encryption import XCHACHA_MODE, RtpPacket, encrypt_packet, packet_cipher
from rehearsal.people.dave import (
    MAX_VERSION,
    BinaryMessage,
    DaveMember,
    GatewayMessage,
    JsonMessage,
)
from rehearsal.people.media_socket import PAYLOAD_TYPE_OPUS, TIMESTAMP_STEP
from voice.hearing import EventQueue
from voice.transport.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Iterable


# Each of them processes each change of the group, so that ten take three times as long for a change.
PEOPLE = 4
# Ten packets of everybody; then the one who has been there longest leaves, and somebody else comes.
PACKETS_A_TURN = 40
BOT = 1
_CHANNEL = 42
# Of the people who come, every second one is never announced as speaking: the receiver tries the members' keys.
_ANNOUNCED = 2


class EncryptedGroup:
    """The members of one channel's group. Messages between them and the delivery service arrive in order, at once."""

    def __init__(self) -> None:
        self._delivery = DeliveryService(_CHANNEL)
        self._members: dict[int, DaveMember] = {}
        self._waiting: deque[DeliveryEffect] = deque()

    def enter(self, user_id: int) -> DaveMember:
        """Let a client in. After the second one everybody has the group's keys."""
        member = self._members[user_id] = DaveMember(user_id=user_id, channel_id=_CHANNEL)
        key_package = member.begin(MAX_VERSION)
        self._carry_out(self._delivery.connect(user_id))
        self._carry_out(self._answers(user_id, key_package))
        return member

    def leave(self, user_id: int) -> None:
        """Let a client go. The others get new keys."""
        del self._members[user_id]
        self._carry_out(self._delivery.disconnect(user_id))

    def _carry_out(self, effects: Iterable[DeliveryEffect]) -> None:
        self._waiting.extend(effects)
        while self._waiting:
            match self._waiting.popleft():
                case SendBinary(user_id, op, body):
                    answers = self._members[user_id].handle_binary(op, body, self._members)
                    self._waiting.extend(self._answers(user_id, answers))
                case SendJson(user_id, op, data):
                    self._waiting.extend(self._answers(user_id, self._members[user_id].handle_json(op, data)))
                case StartTimer():
                    # Nobody is late.
                    pass
                case other:
                    assert_never(other)

    def _answers(self, user_id: int, messages: Iterable[GatewayMessage]) -> list[DeliveryEffect]:
        """Give a client's messages to the delivery service. Returns what it sends then."""
        effects: list[DeliveryEffect] = []
        for message in messages:
            match message:
                case BinaryMessage(op, body) if op == DaveOpcode.KEY_PACKAGE:
                    effects += self._delivery.key_package(user_id, body)
                case BinaryMessage(op, body):
                    assert op == DaveOpcode.COMMIT_WELCOME, op
                    effects += self._delivery.commit(user_id, body)
                case JsonMessage(_, body):
                    effects += self._delivery.transition_ready(user_id, read_transition_id(body))
        return effects


class EncryptedRoom:
    """A receiver with the encrypted packets of `PEOPLE` people. The clock is moved, so nothing waits."""

    def __init__(self) -> None:
        self._key = random.Random(1).randbytes(32)  # noqa: S311 - no secret
        self._cipher = packet_cipher(XCHACHA_MODE, self._key)
        self._now = 0.0
        self.receiver = Receiver(deliver=EventQueue(0), heard_since=lambda _: float("-inf"), clock=lambda: self._now)
        self._group = EncryptedGroup()
        self.bot = self._group.enter(BOT)
        self._keys = SimpleNamespace(
            secret_key=self._key,
            dave_session=self.bot.session,
            dave_protocol_version=MAX_VERSION,
            dave_downgraded=False,
            require_e2ee=True,
        )
        self._opus = joined(bundled_recordings())
        self._newcomers = itertools.count(BOT + 1)
        self._people: deque[tuple[int, DaveMember]] = deque()
        for _ in range(PEOPLE):
            self._come()
        self._numbers = itertools.count()

    def send(self, count: int) -> None:
        """Receive so many packets."""
        for number in itertools.islice(self._numbers, count):
            turn, place = divmod(number, PACKETS_A_TURN)
            if turn and place == 0:
                self._go()
                self._come()
            round_number, speaker = divmod(number, PEOPLE)
            user_id, member = self._people[speaker]
            frame = member.encrypt(self._opus[number % len(self._opus)])
            assert frame is not None, "everybody has the group's keys"
            packet = RtpPacket(
                PAYLOAD_TYPE_OPUS,
                round_number & 0xFFFF,
                round_number * TIMESTAMP_STEP & 0xFFFF_FFFF,
                _ssrc(user_id),
                frame,
            )
            self.receiver.datagram(encrypt_packet(packet, self._cipher, number), self._keys)
            self.receiver.flush()
            self._now += 0.02 / PEOPLE

    def _come(self) -> None:
        user_id = next(self._newcomers)
        self._people.append((user_id, self._group.enter(user_id)))
        self.receiver.joined([user_id])
        self.receiver.rekeyed()
        if user_id % _ANNOUNCED == 0:
            self.receiver.speaks(_ssrc(user_id), user_id)

    def _go(self) -> None:
        user_id, _ = self._people.popleft()
        self._group.leave(user_id)
        self.receiver.left(user_id)
        self.receiver.rekeyed()


def _ssrc(user_id: int) -> int:
    return 1000 + user_id
