"""The sessions of one voice channel. The room carries out the effects that its delivery service returns.

A session stays for a while without a websocket, so that the client can resume (op 7) and get the messages it missed.
"""

from __future__ import annotations

import json
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, assert_never

import structlog

from rehearsal.discord.dave.delivery import DeliveryService, read_transition_id
from rehearsal.discord.dave.group import (
    DaveOpcode,
    DeliveryEffect,
    SendBinary,
    SendJson,
    StartTimer,
)
from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.media.forwarder import MediaLeg
from rehearsal.discord.timers import Timers
from rehearsal.discord.websockets import GatewayConnection, ResumableSession
from rehearsal.errors import MlsError

_log = structlog.get_logger()

SPEAKING, CLIENTS_CONNECT, VIDEO, CLIENT_DISCONNECT = 5, 11, 12, 13
# The number of messages that are kept, so that they can be sent again after a resume.
_REPLAYED_MESSAGES = 500


@dataclass(slots=True, eq=False, kw_only=True)
class VoiceSession(ResumableSession):
    """One client's voice session after op 0."""

    user_id: int
    session_id: str
    leg: MediaLeg
    protocol_selected: bool = False
    sequence: int = 0
    _replay: deque[tuple[int, str | bytes]] = field(default_factory=lambda: deque(maxlen=_REPLAYED_MESSAGES))

    def send_json(self, opcode: int, data: Any) -> None:
        """Send a message with a sequence number. If the client misses it, it is sent again after a resume."""
        message = {"op": opcode, "d": data, "seq": self._next_sequence()}
        self._keep(json.dumps(message, separators=(",", ":")))

    def send_binary(self, opcode: int, body: bytes) -> None:
        """Send a binary message: sequence number, opcode, body."""
        self._keep(struct.pack(">HB", self._next_sequence(), opcode) + body)

    def send_unsequenced(self, message: Json) -> None:
        """Send a handshake message or a heartbeat answer, which have no sequence number."""
        if self.connection is not None:
            self.connection.send_json(message)

    def resume(self, connection: GatewayConnection, after: int) -> None:
        """Continue on a new websocket, and send the messages that came after the sequence number `after`."""
        self.connection = connection
        for sequence, frame in self._replay:
            # Sequence numbers have 16 bits and wrap around. A number up to half the range ahead counts as newer.
            if 0 < (sequence - after) & 0xFFFF < 0x8000:
                connection.send(frame)

    def _next_sequence(self) -> int:
        self.sequence = (self.sequence + 1) & 0xFFFF
        return self.sequence

    def _keep(self, frame: str | bytes) -> None:
        self._replay.append((self.sequence, frame))
        if self.connection is not None:
            self.connection.send(frame)


class VoiceRoom:
    """One voice channel. Use it only from the event loop's thread. *Ownership*: `timers`; close them."""

    def __init__(self, channel_id: int, *, encrypted: bool) -> None:
        self.channel_id = channel_id
        self.delivery = DeliveryService(channel_id, version=int(encrypted))
        self.sessions: dict[int, VoiceSession] = {}
        self.timers = Timers()

    def enter(self, session: VoiceSession) -> None:
        """Add a client after its session description (op 4). Send it the external sender and the ids of the others."""
        others = list(self.sessions.values())
        self.sessions[session.user_id] = session
        self._apply(self.delivery.connect(session.user_id))
        if others:
            session.send_json(CLIENTS_CONNECT, {"user_ids": [str(other.user_id) for other in others]})
        for other in others:
            other.send_json(CLIENTS_CONNECT, {"user_ids": [str(session.user_id)]})

    def leave(self, session: VoiceSession) -> None:
        """Remove a client."""
        if self.sessions.get(session.user_id) is not session:
            return
        del self.sessions[session.user_id]
        for other in self.sessions.values():
            other.send_json(CLIENT_DISCONNECT, {"user_id": str(session.user_id)})
        self._apply(self.delivery.disconnect(session.user_id))

    def speaking(self, session: VoiceSession, flags: int) -> None:
        """Announce to the others that a client speaks (op 5)."""
        data = {"user_id": str(session.user_id), "ssrc": session.leg.ssrc, "speaking": flags}
        for other in self.sessions.values():
            if other is not session:
                other.send_json(SPEAKING, data)

    def announce_video(self, session: VoiceSession) -> None:
        """Announce a camera to one client (op 12). No op 5 announces the SSRC of the camera's packets."""
        source = next((other for other in self.sessions.values() if other is not session), session)
        audio = source.leg.ssrc
        data = {"user_id": str(source.user_id), "audio_ssrc": audio, "video_ssrc": audio + 1, "rtx_ssrc": audio + 2}
        session.send_json(VIDEO, data)

    def dave_json(self, session: VoiceSession, opcode: int, data: object) -> None:
        """Handle op 23 or 31."""
        try:
            transition_id = read_transition_id(data)
        except MlsError as error:
            _log.warning("dave_message_refused", user_id=session.user_id, opcode=opcode, reason=str(error))
            return
        if opcode == DaveOpcode.READY_FOR_TRANSITION:
            self._apply(self.delivery.transition_ready(session.user_id, transition_id))
        elif opcode == DaveOpcode.INVALID_COMMIT_WELCOME:
            _log.info("invalid_commit_reported", user_id=session.user_id, transition_id=transition_id)
            self._apply(self.delivery.invalid_commit(session.user_id))

    def dave_binary(self, session: VoiceSession, opcode: int, body: bytes) -> None:
        """Handle op 26 or 28. Malformed bytes are refused and change nothing."""
        try:
            if opcode == DaveOpcode.KEY_PACKAGE:
                self._apply(self.delivery.key_package(session.user_id, body))
            elif opcode == DaveOpcode.COMMIT_WELCOME:
                self._apply(self.delivery.commit(session.user_id, body))
        except MlsError as error:
            _log.warning("dave_message_refused", user_id=session.user_id, opcode=opcode, reason=str(error))

    def decide(self, decision: Callable[[DeliveryService], list[DeliveryEffect]]) -> None:
        """Apply a decision of the gateway, such as a downgrade."""
        self._apply(decision(self.delivery))

    def _apply(self, effects: list[DeliveryEffect]) -> None:
        for effect in effects:
            match effect:
                case SendBinary(user_id, opcode, body):
                    if user_id in self.sessions:
                        self.sessions[user_id].send_binary(opcode, body)
                case SendJson(user_id, opcode, data):
                    if user_id in self.sessions:
                        self.sessions[user_id].send_json(opcode, data)
                case StartTimer(delay_s, then):
                    self.timers.later(delay_s, self._late, then)
                case _:
                    assert_never(effect)

    def _late(self, then: Callable[[], list[DeliveryEffect]]) -> None:
        self._apply(then())
