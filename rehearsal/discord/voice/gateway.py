"""The voice gateway, version 8. It lets clients into voice channels and handles their messages.

The handshake by opcode: 8 hello, 0 identify (or 7 resume -> 9), 2 ready, IP discovery over UDP, 1 select protocol, 4
session description. After the handshake `VoiceRoom` handles the session. The close codes are in Discord's reference
("Voice close event codes").
"""

from __future__ import annotations

import asyncio
import itertools
from enum import Enum, IntEnum
from typing import Any, Protocol

import structlog

from rehearsal.discord.dave.group import DaveOpcode
from rehearsal.discord.guild.state import LocalGuild
from rehearsal.discord.media import packet_encryption
from rehearsal.discord.media.forwarder import SSRC_STEP, Forwarder, MediaLeg
from rehearsal.discord.voice.voice_room import VoiceRoom, VoiceSession
from rehearsal.discord.websockets import GatewayConnection, HeartbeatWatch

_log = structlog.get_logger()

_IDENTIFY, _SELECT_PROTOCOL, _READY, _HEARTBEAT, _SESSION_DESCRIPTION, _SPEAKING = 0, 1, 2, 3, 4, 5
_HEARTBEAT_ACK, _RESUME, _HELLO, _RESUMED, _BACKEND_VERSION = 6, 7, 8, 9, 16
_LAST_OPCODE = 31
VOICE_VERSION = 8
HEARTBEAT_S = 13.75
_FIRST_SSRC = 1000
# How long a session can be resumed after its websocket broke.
RESUME_WINDOW_S = 5.0


class VoiceCloseCode(IntEnum):
    """The codes with which the voice gateway closes a connection."""

    UNKNOWN_OPCODE = 4001
    NOT_AUTHENTICATED = 4003
    AUTHENTICATION_FAILED = 4004
    ALREADY_AUTHENTICATED = 4005
    SESSION_INVALID = 4006
    SESSION_TIMED_OUT = 4009
    SERVER_NOT_FOUND = 4011
    UNKNOWN_PROTOCOL = 4012
    DISCONNECTED = 4014
    SERVER_CRASHED = 4015
    UNKNOWN_MODE = 4016
    DAVE_REQUIRED = 4017
    BAD_REQUEST = 4020
    RATE_LIMITED = 4021
    CALL_ENDED = 4022


# Whom Discord sends away with one of these codes has no session to resume.
ENDING_CODES = frozenset(
    {
        VoiceCloseCode.SESSION_INVALID,
        VoiceCloseCode.SESSION_TIMED_OUT,
        VoiceCloseCode.DISCONNECTED,
        VoiceCloseCode.RATE_LIMITED,
        VoiceCloseCode.CALL_ENDED,
    }
)
# A client that closes with one of these codes does not resume its session.
_LEAVING_CODES = frozenset({1000, 1001, VoiceCloseCode.DISCONNECTED})


class VoiceSessionChange(Enum):
    """What happened to a voice session. It is resumed when another websocket takes it over, of any process (op 7)."""

    BEGUN = "begun"
    RESUMED = "resumed"
    ENDED = "ended"


class VoiceSessionCallback(Protocol):
    """Gets each change of a voice session, and the SSRC that the session has alone."""

    def __call__(self, user_id: int, ssrc: int, change: VoiceSessionChange) -> None: ...


class VoiceGateway:
    """All voice sessions of the local Discord, and the room of each channel."""

    def __init__(self, state: LocalGuild, forwarder: Forwarder) -> None:
        self._state = state
        self._heartbeats = HeartbeatWatch(HEARTBEAT_S, self._heard_nothing)
        self._forwarder = forwarder
        self._sessions: dict[GatewayConnection, VoiceSession] = {}
        self._ssrcs = itertools.count(_FIRST_SSRC, SSRC_STEP)
        self._by_user: dict[int, VoiceSession] = {}
        self.rooms: dict[int, VoiceRoom] = {}
        self.add_rooms()
        # Called when a voice session begins, is resumed and ends.
        self.watch: VoiceSessionCallback | None = None

    def add_rooms(self) -> None:
        """Make the rooms of the voice channels that have none. On a stage nothing is end-to-end encrypted."""
        for each in self._state.guild.voice_channels:
            if each.id not in self.rooms:
                self.rooms[each.id] = VoiceRoom(each.id, encrypted=not each.stage)

    def close(self) -> None:
        """Cancel every timer."""
        self._heartbeats.close()
        for room in self.rooms.values():
            room.timers.close()
        for session in self._by_user.values():
            session.stop_expiry()

    def session_of(self, user_id: int) -> VoiceSession | None:
        """Return the member's voice session, or None."""
        return self._by_user.get(user_id)

    def sessions(self) -> list[VoiceSession]:
        return list(self._by_user.values())

    def room_of(self, session: VoiceSession) -> VoiceRoom:
        """Return the room that a session belongs to."""
        return self.rooms[session.leg.channel_id]

    def disconnect(self, user_id: int, code: int = VoiceCloseCode.DISCONNECTED) -> None:
        """End a member's session, by default because the member left or was moved."""
        session = self._by_user.get(user_id)
        if session is not None:
            connection = session.connection
            self._end(session)
            if connection is not None:
                connection.close(code, "Disconnected")

    # --- ConnectionHandler -------------------------------------------------------------------------------------

    def opened(self, connection: GatewayConnection) -> None:
        """Say hello (op 8)."""
        self._heartbeats.opened(connection)
        data = {"v": VOICE_VERSION, "heartbeat_interval": self._heartbeats.interval_ms}
        connection.send_json({"op": _HELLO, "d": data})

    def text(self, connection: GatewayConnection, message: dict[str, Any]) -> None:
        """Handle a JSON message."""
        opcode = message["op"]
        data = message.get("d")
        fields = data if isinstance(data, dict) else {}
        if opcode == _HEARTBEAT:
            # Since version 8 a heartbeat says which message was the last that came.
            if not isinstance(fields.get("seq_ack"), int):
                connection.close(VoiceCloseCode.BAD_REQUEST, "A heartbeat needs seq_ack")
                return
            self._heartbeats.beat(connection)
            connection.send_json({"op": _HEARTBEAT_ACK, "d": {"t": fields.get("t")}})
            return
        if opcode == _BACKEND_VERSION:
            connection.send_json({"op": _BACKEND_VERSION, "d": {"voice": "0.0.0", "rtc_worker": "0.0.0"}})
            return
        session = self._sessions.get(connection)
        if session is None:
            if opcode == _IDENTIFY:
                self._identify(connection, fields)
            elif opcode == _RESUME:
                self._resume(connection, fields)
            else:
                connection.close(VoiceCloseCode.NOT_AUTHENTICATED, "Not authenticated")
        elif opcode in (_IDENTIFY, _RESUME):
            connection.close(VoiceCloseCode.ALREADY_AUTHENTICATED, "Already authenticated")
        elif opcode == _SELECT_PROTOCOL:
            self._select_protocol(connection, session, fields)
        elif not 0 <= opcode <= _LAST_OPCODE:
            connection.close(VoiceCloseCode.UNKNOWN_OPCODE, "Unknown opcode")
        elif session.protocol_selected:
            self._in_room(session, opcode, fields)

    def binary(self, connection: GatewayConnection, body: bytes) -> None:
        """Handle a binary message: the opcode, then the DAVE message."""
        session = self._sessions.get(connection)
        if session is None:
            connection.close(VoiceCloseCode.NOT_AUTHENTICATED, "Not authenticated")
        elif body and session.protocol_selected:
            self.room_of(session).dave_binary(session, body[0], body[1:])

    def closed(self, connection: GatewayConnection) -> None:
        """End the session, or keep it for a resume if the websocket broke."""
        self._heartbeats.closed(connection)
        session = self._sessions.pop(connection, None)
        if session is None or session.connection is not connection:
            return
        session.connection = None
        code = connection.close_code
        if code in _LEAVING_CODES and not connection.closed_by_us:
            self._end(session)
            return
        session.leg.muted = True
        loop = asyncio.get_running_loop()
        session.expiry = loop.call_later(RESUME_WINDOW_S, self._end, session)
        _log.info("voice_websocket_lost", user_id=session.user_id, code=code)

    # --- helpers -----------------------------------------------------------------------------------------------

    def _heard_nothing(self, connection: GatewayConnection) -> None:
        """End the session of a client that sends no heartbeats: it cannot be resumed."""
        session = self._sessions.get(connection)
        if session is not None:
            self._end(session)
        connection.close(VoiceCloseCode.SESSION_TIMED_OUT, "Session timed out")

    def _identify(self, connection: GatewayConnection, data: dict[str, Any]) -> None:
        user_id = _snowflake(data.get("user_id"))
        state = self._state.voice_states.get(user_id)
        token = self._state.voice_tokens.get(user_id)
        if data.get("server_id") != str(self._state.guild.id):
            connection.close(VoiceCloseCode.SERVER_NOT_FOUND, "Server not found")
        elif state is None or token is None or data.get("token") != token:
            connection.close(VoiceCloseCode.AUTHENTICATION_FAILED, "Authentication failed")
        elif data.get("session_id") != state["session_id"]:
            connection.close(VoiceCloseCode.SESSION_INVALID, "Session is no longer valid")
        elif not data.get("max_dave_protocol_version"):
            connection.close(VoiceCloseCode.DAVE_REQUIRED, "E2EE/DAVE protocol required")
        else:
            self._begin(connection, user_id, int(state["channel_id"]), state["session_id"])

    def _begin(self, connection: GatewayConnection, user_id: int, channel_id: int, session_id: str) -> None:
        old = self._by_user.get(user_id)
        if old is not None:
            # Each member has one voice session, so a new identify replaces the old session.
            former = old.connection
            self._end(old)
            if former is not None:
                former.close(VoiceCloseCode.SESSION_INVALID, "Session is no longer valid")
        leg = MediaLeg(user_id=user_id, channel_id=channel_id, ssrc=next(self._ssrcs))
        session = VoiceSession(user_id=user_id, session_id=session_id, leg=leg, connection=connection)
        self._sessions[connection] = session
        self._by_user[user_id] = session
        self._forwarder.add(leg)
        self._report(session, VoiceSessionChange.BEGUN)
        ready = {
            "ssrc": leg.ssrc,
            "ip": self._forwarder.host,
            "port": self._forwarder.port,
            "modes": list(packet_encryption.MODES),
            # Discord sends this field and tells clients not to use it.
            "heartbeat_interval": 1,
        }
        session.send_unsequenced({"op": _READY, "d": ready})

    def _resume(self, connection: GatewayConnection, data: dict[str, Any]) -> None:
        asked = data.get("session_id")
        session = next((each for each in self._by_user.values() if each.session_id == asked), None)
        if session is None:
            connection.close(VoiceCloseCode.SESSION_INVALID, "Session is no longer valid")
        elif data.get("server_id") != str(self._state.guild.id):
            connection.close(VoiceCloseCode.SERVER_NOT_FOUND, "Server not found")
        elif data.get("token") != self._state.voice_tokens.get(session.user_id):
            connection.close(VoiceCloseCode.AUTHENTICATION_FAILED, "Authentication failed")
        else:
            if session.connection is not None:
                self._sessions.pop(session.connection, None)
                session.connection.abort()
            session.stop_expiry()
            session.leg.muted = False
            self._sessions[connection] = session
            connection.send_json({"op": _RESUMED, "d": None})
            after = data.get("seq_ack")
            session.resume(connection, after if isinstance(after, int) and after >= 0 else 0)
            _log.info("voice_session_resumed", user_id=session.user_id)
            self._report(session, VoiceSessionChange.RESUMED)

    def _select_protocol(self, connection: GatewayConnection, session: VoiceSession, data: dict[str, Any]) -> None:
        choice = data.get("data")
        mode = choice.get("mode") if isinstance(choice, dict) else None
        if data.get("protocol") != "udp":
            connection.close(VoiceCloseCode.UNKNOWN_PROTOCOL, "Unknown protocol")
        elif mode not in packet_encryption.MODES:
            connection.close(VoiceCloseCode.UNKNOWN_MODE, "Unknown encryption mode")
        elif not session.protocol_selected:
            session.protocol_selected = True
            session.leg.cipher = packet_encryption.packet_cipher(mode, session.leg.key)
            room = self.room_of(session)
            description = {
                "mode": mode,
                "secret_key": list(session.leg.key),
                "dave_protocol_version": room.delivery.version,
                "audio_codec": "opus",
                "video_codec": "H264",
                "media_session_id": f"media-{session.leg.ssrc}",
            }
            session.send_unsequenced({"op": _SESSION_DESCRIPTION, "d": description})
            room.enter(session)

    def _in_room(self, session: VoiceSession, opcode: int, data: dict[str, Any]) -> None:
        room = self.room_of(session)
        if opcode == _SPEAKING:
            flags = data.get("speaking")
            # That it does not speak is enough: it tells the SSRC, and clients send it before they speak.
            session.leg.announced = session.leg.announced or isinstance(flags, int)
            # Discord announces to the others when somebody starts to speak, but not the end.
            if isinstance(flags, int) and flags:
                room.speaking(session, int(flags))
        elif opcode in (DaveOpcode.READY_FOR_TRANSITION, DaveOpcode.INVALID_COMMIT_WELCOME):
            room.dave_json(session, opcode, data)

    def _end(self, session: VoiceSession) -> None:
        session.stop_expiry()
        if self._by_user.get(session.user_id) is session:
            del self._by_user[session.user_id]
        if session.connection is not None:
            self._sessions.pop(session.connection, None)
            session.connection = None
        self._forwarder.remove(session.leg)
        self.room_of(session).leave(session)
        self._report(session, VoiceSessionChange.ENDED)

    def _report(self, session: VoiceSession, change: VoiceSessionChange) -> None:
        if self.watch is not None:
            self.watch(session.user_id, session.leg.ssrc, change)


def _snowflake(text: object) -> int:
    """Return an id from JSON, or 0 if the value is not an id."""
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 20 else 0
