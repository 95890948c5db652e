"""The state of one person's voice session: keys, sequence numbers, and the other connected users. The module does no
I/O.

A session begins with identify (op 0). It answers the gateway's
messages, turns Opus packets into datagrams, and turns datagrams into Opus packets with the speaker's id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rehearsal.discord.media.packet_encryption import RtpPacket
from rehearsal.people.dave import DaveMember, GatewayMessage, UndecryptableError
from rehearsal.people.media_socket import MODE, PacketCodec
from voice.transport.opus import SILENCE_FRAME

# Makes the member join or rejoin. Returns `{"state": VOICE_STATE_UPDATE data, "server": VOICE_SERVER_UPDATE data}`, as
# `POST /members/{user_id}/join` of the control API does.
JoinChannel: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
# Makes the member leave the channel.
LeaveChannel: TypeAlias = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class VoiceServerAccess:
    """The address and the credentials with which one member connects to a voice server.

    `endpoint`: host and port, without a scheme.
    """

    user_id: int
    guild_id: int
    channel_id: int
    session_id: str
    endpoint: str
    token: str = field(repr=False)

    @classmethod
    def parse(cls, answer: Mapping[str, Any]) -> VoiceServerAccess:
        """Read the two events of a join."""
        state, server = answer["state"], answer["server"]
        return cls(
            user_id=int(state["user_id"]),
            guild_id=int(server["guild_id"]),
            channel_id=int(state["channel_id"]),
            session_id=state["session_id"],
            endpoint=server["endpoint"],
            token=server["token"],
        )


READY = 2
SESSION_DESCRIPTION = 4
SPEAKING = 5
CLIENTS_CONNECT = 11
CLIENT_DISCONNECT = 13

# Audio may arrive a frame or two before op 5 announces its SSRC. At most half a second of such audio is kept.
HELD_PACKETS = 25


@dataclass(frozen=True, slots=True)
class ReceivedOpus:
    """One Opus packet received from one user."""

    user_id: int
    ssrc: int
    sequence: int
    timestamp: int
    opus: bytes
    arrived_at: float


@dataclass(slots=True)
class VoiceSessionState:
    """The state of one voice session. One connection owns it. Not thread-safe. `dave_failures`: how many packets could
    not be decrypted end to end.
    """

    admission: VoiceServerAccess
    ssrc: int = 0
    server: tuple[str, int] = ("", 0)
    seq_ack: int = -1
    dave_failures: int = 0
    members: set[int] = field(default_factory=set)
    speakers: dict[int, int] = field(default_factory=dict)
    dave: DaveMember = field(init=False)
    # The transport encryption, once op 4 has brought its key.
    codec: PacketCodec | None = None
    _held: deque[tuple[RtpPacket, float]] = field(default_factory=lambda: deque(maxlen=HELD_PACKETS))

    def __post_init__(self) -> None:
        self.dave = DaveMember(user_id=self.admission.user_id, channel_id=self.admission.channel_id)

    @property
    def can_send(self) -> bool:
        """Return whether audio can be encrypted and sent now."""
        return self.codec is not None and self.dave.can_send

    def handle_json(self, op: int, body: Mapping[str, Any]) -> list[GatewayMessage]:
        """Handle one JSON message of the gateway. Return the answers to send.

        Raises `ValueError` if the server does not offer our encryption.
        """
        if op == READY:
            self.ssrc = int(body["ssrc"])
            self.server = (str(body["ip"]), int(body["port"]))
            if MODE not in body["modes"]:
                raise ValueError(f"the voice server does not offer {MODE}")
        elif op == SESSION_DESCRIPTION:
            self.codec = PacketCodec(bytes(body["secret_key"]), self.ssrc)
            return self.dave.begin(int(body.get("dave_protocol_version") or 0))
        elif op == SPEAKING:
            self.speakers[int(body["ssrc"])] = int(body["user_id"])
            self.members.add(int(body["user_id"]))
        elif op == CLIENTS_CONNECT:
            self.members.update(int(user_id) for user_id in body["user_ids"])
        elif op == CLIENT_DISCONNECT:
            self._forget(int(body["user_id"]))
        else:
            return self.dave.handle_json(op, body)
        return []

    def handle_binary(self, message: bytes) -> list[GatewayMessage]:
        """Handle one binary message (two bytes of sequence number, one of opcode, the body). Return the answers to
        send.
        """
        if len(message) < 3:
            return []
        self.seq_ack = int.from_bytes(message[:2], "big")
        return self.dave.handle_binary(message[2], message[3:], self.members)

    def seal(self, opus: bytes) -> bytes | None:
        """Return the datagram for the next 20 ms of speech, or None while there are no keys."""
        if self.codec is None:
            return None
        frame = self.dave.encrypt(opus)
        if frame is None:
            self.codec.skip()
            return None
        return self.codec.seal(frame)

    def open(self, datagram: bytes, arrived_at: float) -> list[ReceivedOpus]:
        """Return the audio of a datagram, after the audio of earlier datagrams that were kept because their speaker was
        unknown.
        """
        packet = self.codec.open(datagram) if self.codec is not None else None
        if packet is None:
            return []
        waiting = [(packet, arrived_at)]
        if self._held:
            waiting = [*self._held, *waiting]
            self._held.clear()
        heard = (self._identify_speaker(each, at) for each, at in waiting)
        return [each for each in heard if each is not None]

    def _identify_speaker(self, packet: RtpPacket, arrived_at: float) -> ReceivedOpus | None:
        """Decrypt one packet with its speaker's key. Of an unknown SSRC, all connected users' keys are tried: whoever
        comes in the midst of speech has not got its op 5.
        """
        speaker = self.speakers.get(packet.ssrc)
        if speaker is not None:
            candidates = [speaker]
        else:
            # Plain frames and silence would fit every member.
            is_encrypted = self.dave.version and packet.payload != SILENCE_FRAME
            candidates = sorted(self.members) if is_encrypted else []
        for user_id in candidates:
            with suppress(UndecryptableError):
                opus = self.dave.decrypt(user_id, packet.payload)
                self.speakers[packet.ssrc] = user_id
                return ReceivedOpus(user_id, packet.ssrc, packet.sequence, packet.timestamp, opus, arrived_at)
        if speaker is not None:
            self.dave_failures += 1
        else:
            self._held.append((packet, arrived_at))
        return None

    def _forget(self, user_id: int) -> None:
        self.members.discard(user_id)
        for ssrc in [ssrc for ssrc, speaker in self.speakers.items() if speaker == user_id]:
            del self.speakers[ssrc]
