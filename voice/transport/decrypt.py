"""Decrypts a datagram to an Opus frame: transport encryption, then Discord's end-to-end encryption (DAVE).

Keys are read from the live connection for every packet, because a copy would be wrong after the first re-key. A frame
that cannot be decrypted is dropped with a reason; ciphertext never reaches Opus.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import davey

from voice.transport.opus import SILENCE_FRAME
from voice.transport.rtp import NONCE_BYTES, NONCE_SUFFIX_BYTES, AudioPacket, PacketOpener

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


# The datagram carries the first 4 bytes of the nonce; the rest is zero.
_NONCE_FILL = bytes(NONCE_BYTES - NONCE_SUFFIX_BYTES)
_AUDIO = davey.MediaType.audio

# DAVE protocol, "Frame format": a frame ends with tag (8 bytes), nonce (ULEB128), unencrypted ranges, the size of all
# this in one byte, and this marker. Without ranges and with the shortest nonce that makes 12 bytes.
_DAVE_MARKER = b"\xfa\xfa"
_DAVE_SHORTEST_TRAILER = 8 + 1 + 1 + 2
# A frame of so few bytes has no speech in it: Opus' own header and two bytes, as in the silence frame (RFC 6716, 3.4).
_TINY_BYTES = len(SILENCE_FRAME)


class DecryptFailure(StrEnum):
    """Why a frame could not be decrypted. Each value names the packet counter that it adds to."""

    NOT_READY = "not_ready"  # the group is not ready, or our key is not there yet
    DAVE_FAILED = "dave_failures"
    CLEAR = "clear"  # not end-to-end encrypted, although the call is: whose words it has is not proven


@dataclass(frozen=True, slots=True)
class DecryptedFrame:
    """The identified sender, and the Opus frame. It cannot be decrypted again, because a nonce is accepted once."""

    user_id: int
    frame: bytes


class LiveKeys(Protocol):
    """Access to the current keys. discord.py's `VoiceConnectionState` implements it."""

    @property
    def secret_key(self) -> Sequence[int]:
        """The transport key: 32 bytes. It may be any other value before the first session description."""

    @property
    def dave_session(self) -> Any:
        """The end-to-end session (a `davey.DaveSession`), or None."""

    @property
    def dave_protocol_version(self) -> int:
        """The DAVE version; 0 means no end-to-end encryption."""

    @property
    def dave_downgraded(self) -> bool:
        """True from a downgrade to version 0 until the transition that ends the downgrade is executed."""

    @property
    def require_e2ee(self) -> bool:
        """Whether frames without end-to-end encryption are refused."""


def open_transport(
    datagram: bytes, packet: AudioPacket, secret_key: Sequence[int], opener: PacketOpener | None = None
) -> bytes | None:
    """Return the payload of `datagram` (extension body, media frame, padding), or None if the key is wrong.

    `aead_xchacha20_poly1305_rtpsize`: the header, with the extension's preamble, is the authenticated data. `opener`:
    the caller's own, which saves making one.
    """
    header = packet.header_bytes
    nonce = datagram[-NONCE_SUFFIX_BYTES:] + _NONCE_FILL
    try:
        key = bytes(secret_key)
    # There is no key before the first session description.
    except (ValueError, TypeError):
        return None
    return (opener or PacketOpener()).open(datagram[header:-NONCE_SUFFIX_BYTES], datagram[:header], nonce, key)


def looks_encrypted(frame: bytes) -> bool:
    """Return whether `frame` ends like a DAVE frame. So does one unencrypted frame in a million."""
    return (
        frame.endswith(_DAVE_MARKER)
        and len(frame) >= _DAVE_SHORTEST_TRAILER
        and _DAVE_SHORTEST_TRAILER <= frame[-3] <= len(frame)
    )


def open_frame(frame: bytes, user_id: int, keys: LiveKeys) -> bytes | DecryptFailure:
    """Return the Opus frame that `user_id` sent, or the reason for the failure.

    An unencrypted frame is heard at protocol version 0, and while the room returns to encryption or davey's own
    passthrough lasts (seconds after such a change). `require_e2ee` hears none. In an encrypted call it is refused: the
    server, or whoever controls it, could put words into somebody's mouth with it. A tiny one has no words; it becomes
    the silence frame, so that nothing of what was sent reaches the decoder. An encrypted frame that arrives late after
    a downgrade is still decrypted.
    """
    if frame == SILENCE_FRAME:
        return frame
    session = keys.dave_session
    ready = is_group_ready(keys)
    if looks_encrypted(frame):
        if not ready:
            return DecryptFailure.NOT_READY
        return _unseal(session, user_id, frame) or DecryptFailure.DAVE_FAILED
    if not keys.require_e2ee:
        if keys.dave_protocol_version == 0 or (keys.dave_downgraded and not ready):
            return frame
        if ready and (opened := _decrypt(session, user_id, frame)):
            return opened
    return SILENCE_FRAME if len(frame) <= _TINY_BYTES else DecryptFailure.CLEAR


def is_group_ready(keys: LiveKeys) -> bool:
    """Return whether the bot is in an end-to-end group, and has its keys."""
    session = keys.dave_session
    return session is not None and bool(session.ready)


def is_in_group(user_id: int, keys: LiveKeys) -> bool:
    """Return whether the bot's end-to-end group has `user_id`. True while that cannot be told."""
    session = keys.dave_session
    try:
        return session is None or str(user_id) in session.get_user_ids()
    # The event loop is changing the session right now.
    except RuntimeError:
        return True


def can_identify_sender(frame: bytes, keys: LiveKeys) -> bool:
    """Return whether trying the current keys can identify the sender of `frame`.

    They cannot identify the sender of an unencrypted frame: a decryptor that lets such frames through would accept the
    first candidate.
    """
    return is_group_ready(keys) and looks_encrypted(frame)


def find_sender(frame: bytes, candidates: Iterable[int], keys: LiveKeys) -> DecryptedFrame | None:
    """Return the sender of `frame` among `candidates`, found by trying their keys, or None.

    Each sender has their own key, so at most one fits.
    """
    if not can_identify_sender(frame, keys):
        return None
    session = keys.dave_session
    for user_id in candidates:
        opened = _unseal(session, user_id, frame)
        if opened is not None:
            return DecryptedFrame(user_id, opened)
    return None


def _unseal(session: Any, user_id: int, frame: bytes) -> bytes | None:
    """Decrypt a frame that looks encrypted.

    In passthrough mode the decryptor hands back what is not sealed, also if it only ends like a sealed frame. A sealed
    frame is longer than what is in it.
    """
    opened = _decrypt(session, user_id, frame)
    return opened if opened is not None and len(opened) < len(frame) else None


def _decrypt(session: Any, user_id: int, frame: bytes) -> bytes | None:
    try:
        return bytes(session.decrypt(user_id, _AUDIO, frame)) or None
    # RuntimeError: the event loop is changing the session right now.
    except (ValueError, RuntimeError):
        return None
