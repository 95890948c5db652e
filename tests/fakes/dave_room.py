"""End-to-end encryption of a voice channel without a network: real davey sessions in one MLS group, and encrypted
datagrams.

The external sender is the one that the local Discord server uses, so the group is made as a voice gateway makes it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import davey
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt

from rehearsal.discord.dave.mls import ExternalSender, append_proposals
from voice.transport.opus import SILENCE_FRAME

CHANNEL_ID = 42
BOT_ID = 1001
_APPEND = davey.ProposalsOperationType.append


class DaveRoom:
    """The members of one MLS group. The bot creates the group, and every other member is added with a commit."""

    def __init__(self, *user_ids: int) -> None:
        self._gateway = ExternalSender(CHANNEL_ID)
        self._epoch = 0
        self.sessions: dict[int, Any] = {}
        self.bot = self._session(BOT_ID)[0]
        for user_id in user_ids:
            self.add(user_id)

    def _session(self, user_id: int) -> tuple[Any, bytes]:
        session = davey.DaveSession(1, user_id, CHANNEL_ID)
        session.set_external_sender(self._gateway.package)
        self.sessions[user_id] = session
        return session, session.get_serialized_key_package()

    def add(self, user_id: int) -> Any:
        """Add a member, which moves every session to the next epoch. Return the member's session."""
        present = [session for known, session in self.sessions.items() if known != user_id]
        session, key_package = self._session(user_id)
        proposals = append_proposals([self._gateway.add(self._epoch, key_package).message])[1:]
        results = [member.process_proposals(_APPEND, proposals) for member in present]
        committed = results[0]
        for member in present:
            member.process_commit(committed.commit)
        session.process_welcome(committed.welcome)
        self._epoch += 1
        return session

    def renew(self) -> None:
        """Move to the next epoch by adding a stranger, which changes everybody's keys."""
        self.add(900_000 + self._epoch)


@dataclass
class Keys:
    """The keys and the DAVE session of the bot's connection, in the shape of discord.py's connection state."""

    secret_key: Sequence[int] = field(default_factory=lambda: list(range(32)))
    dave_session: Any = None
    dave_protocol_version: int = 1
    dave_downgraded: bool = False
    require_e2ee: bool = False


@dataclass
class Sender:
    """One person's microphone. Takes Opus frames and returns datagrams as Discord's server forwards them."""

    user_id: int
    ssrc: int
    session: Any
    keys: Keys
    sequence: int = 65_530
    timestamp: int = 0xFFFF_F000
    _nonce: int = 0

    def datagram(
        self,
        opus_frame: bytes,
        *,
        padding: int = 0,
        extension: bytes = b"",
        clear: bool = False,
        secret_key: Sequence[int] | None = None,
        kind: int = 0x78,
    ) -> bytes:
        """Encrypt one frame and return its datagram.

        The bytes of `extension` become the body of a header extension; their number must be a multiple of four. With
        `clear` the frame is sent without DAVE encryption.
        """
        self.sequence = (self.sequence + 1) & 0xFFFF
        self.timestamp = (self.timestamp + 960) & 0xFFFF_FFFF
        self._nonce += 1
        in_clear = clear or opus_frame == SILENCE_FRAME
        frame = opus_frame if in_clear else bytes(self.session.encrypt_opus(opus_frame))
        first = 0x80 | (0x20 if padding else 0) | (0x10 if extension else 0)
        header = struct.pack(">BBHII", first, kind, self.sequence, self.timestamp, self.ssrc)
        if extension:
            header += b"\xbe\xde" + struct.pack(">H", len(extension) // 4)
        pad = bytes(padding - 1) + bytes([padding]) if padding else b""
        nonce = struct.pack("<I", self._nonce)
        key = bytes(self.keys.secret_key if secret_key is None else secret_key)
        body = crypto_aead_xchacha20poly1305_ietf_encrypt(extension + frame + pad, header, nonce + bytes(20), key)
        return header + body + nonce

    def skip(self, frames: int = 1) -> None:
        """Skip `frames` packets, as if they were lost on the way."""
        self.sequence = (self.sequence + frames) & 0xFFFF
        self.timestamp = (self.timestamp + 960 * frames) & 0xFFFF_FFFF
