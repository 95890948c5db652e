"""One person's side of DAVE, the end-to-end encryption of a call. The module does no I/O.

`DaveMember` answers the voice gateway's messages, and holds the MLS session and the protocol version in use. It never
logs or prints the session (davey 0.1.7's `repr` leaks memory).

Source: the DAVE protocol whitepaper (daveprotocol.com), opcodes 21-31.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import davey

from rehearsal.discord.dave.group import DaveOpcode
from voice.transport.opus import SILENCE_FRAME

MAX_VERSION = 1

# The first epoch of an MLS group. Op 24 with this epoch means "make a new group".
_FIRST_EPOCH = 1
# The marker at the end of every DAVE frame (whitepaper, "payload format").
_MAGIC = b"\xfa\xfa"
# After a switch between plain and encrypted frames, frames of the former kind are accepted for this long.
_PASSTHROUGH_S = 10


@dataclass(frozen=True, slots=True)
class JsonMessage:
    """A message to send as `{"op": op, "d": body}`."""

    op: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BinaryMessage:
    """A message to send as one byte of opcode and then `body`."""

    op: int
    body: bytes


GatewayMessage: TypeAlias = JsonMessage | BinaryMessage


class UndecryptableError(Exception):
    """A frame could not be decrypted: the key or the user is wrong, or the frame was damaged on the way."""


class DaveMember:
    """One person's membership in the encrypted call. One voice session owns it. Not thread-safe."""

    def __init__(self, *, user_id: int, channel_id: int) -> None:
        self._user_id = user_id
        self._channel_id = channel_id
        self._session: Any = None
        self._pending: dict[int, int] = {}
        self.version = 0

    @property
    def session(self) -> Any:
        """The MLS session, a `davey.DaveSession`; None before `begin` with a version other than 0."""
        return self._session

    @property
    def can_send(self) -> bool:
        """Return whether a frame can be made now, either plain (version 0) or encrypted with a group's keys."""
        return self.version == 0 or self._ready

    def begin(self, version: int) -> list[GatewayMessage]:
        """Start with the protocol version that op 4 names. Return the messages to send."""
        self.version = version
        self._pending.clear()
        return self._new_group(version) if version else []

    def handle_json(self, op: int, body: Mapping[str, Any]) -> list[GatewayMessage]:
        """Handle one JSON message (ops 21, 22, 24) and return the messages to send. Other messages are ignored."""
        if op == DaveOpcode.PREPARE_TRANSITION:
            return self._prepare(int(body["transition_id"]), int(body["protocol_version"]))
        if op == DaveOpcode.EXECUTE_TRANSITION:
            self._execute(int(body["transition_id"]))
        elif op == DaveOpcode.PREPARE_EPOCH and int(body["epoch"]) == _FIRST_EPOCH:
            version = int(body["protocol_version"])
            if self.version:
                self.version = version
            return self._new_group(version)
        return []

    def handle_binary(self, op: int, body: bytes, members: Iterable[int]) -> list[GatewayMessage]:
        """Handle one binary message (ops 25, 27, 29, 30) and return the messages to send.

        `members`: everybody whom the gateway has reported as connected. After a message that MLS refuses, the person
        leaves the group and asks to be added again (op 31, then op 26).
        """
        if self._session is None:
            return []
        try:
            if op == DaveOpcode.EXTERNAL_SENDER:
                self._session.set_external_sender(body)
            elif op == DaveOpcode.PROPOSALS:
                return self._propose(body, members)
            elif op in {DaveOpcode.ANNOUNCE_COMMIT, DaveOpcode.WELCOME}:
                return self._apply_commit(op, body)
        # davey raises ValueError for messages that MLS refuses. Struct and index errors mean truncated messages.
        except (ValueError, RuntimeError, struct.error, IndexError):
            names_transition = op in {DaveOpcode.ANNOUNCE_COMMIT, DaveOpcode.WELCOME}
            transition = int.from_bytes(body[:2], "big") if names_transition else 0
            refusal = JsonMessage(DaveOpcode.INVALID_COMMIT_WELCOME, {"transition_id": transition})
            return [refusal, *self._new_group(max(self.version, _FIRST_EPOCH))]
        return []

    def encrypt(self, opus: bytes) -> bytes | None:
        """Return the frame to send for one Opus packet, or None while there is no key."""
        if self.version == 0 or opus == SILENCE_FRAME:
            return opus
        if not self._ready:
            return None
        return bytes(self._session.encrypt_opus(opus))

    def decrypt(self, user_id: int, frame: bytes) -> bytes:
        """Return the Opus packet in a frame that `user_id` sent. Raises `UndecryptableError`."""
        if frame == SILENCE_FRAME:
            return frame
        # During a switch a sender may still send the former kind of frame. The trailer shows which kind a frame is.
        if self.version == 0 and not (self._ready and frame.endswith(_MAGIC)):
            return frame
        if not self._ready:
            raise UndecryptableError("there is no group yet")
        try:
            return bytes(self._session.decrypt(user_id, davey.MediaType.audio, frame))
        except ValueError as exc:
            raise UndecryptableError(str(exc)) from exc

    @property
    def _ready(self) -> bool:
        return self._session is not None and bool(self._session.ready)

    def _new_group(self, version: int) -> list[GatewayMessage]:
        if self._session is None:
            self._session = davey.DaveSession(version, self._user_id, self._channel_id)
        else:
            self._session.reinit(version, self._user_id, self._channel_id)
        return [BinaryMessage(DaveOpcode.KEY_PACKAGE, bytes(self._session.get_serialized_key_package()))]

    def _propose(self, body: bytes, members: Iterable[int]) -> list[GatewayMessage]:
        kinds = davey.ProposalsOperationType
        kind = kinds.append if body[0] == 0 else kinds.revoke
        expected = sorted({*members, self._user_id})
        answer = self._session.process_proposals(kind, body[1:], expected)
        if answer is None:
            return []
        return [BinaryMessage(DaveOpcode.COMMIT_WELCOME, bytes(answer.commit) + bytes(answer.welcome or b""))]

    def _apply_commit(self, op: int, body: bytes) -> list[GatewayMessage]:
        (transition,) = struct.unpack_from(">H", body)
        if op == DaveOpcode.WELCOME:
            self._session.process_welcome(body[2:])
        else:
            self._session.process_commit(body[2:])
        return self._ready_for(transition, self._session.protocol_version)

    def _prepare(self, transition: int, version: int) -> list[GatewayMessage]:
        if transition and version == 0 and self._session is not None:
            self._session.set_passthrough_mode(True, _PASSTHROUGH_S)
        return self._ready_for(transition, version)

    def _ready_for(self, transition: int, version: int) -> list[GatewayMessage]:
        """Return the answer to a transition. The one with the id 0 is executed at once."""
        self._pending[transition] = version
        if transition:
            return [JsonMessage(DaveOpcode.READY_FOR_TRANSITION, {"transition_id": transition})]
        self._execute(0)
        return []

    def _execute(self, transition: int) -> None:
        version = self._pending.pop(transition, None)
        if version is None:
            return
        upgraded = self.version == 0 and version > 0
        self.version = version
        if upgraded and self._session is not None:
            self._session.set_passthrough_mode(True, _PASSTHROUGH_S)
