"""The parts of MLS (RFC 9420) that a DAVE voice gateway reads and writes.

The voice gateway is not a member of the group. It signs Add and Remove proposals as an external sender, and reads the
members' commits to choose a valid commit. It does not check signatures: each member checks what another has signed.
Bytes that end too early raise `MlsError`.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from rehearsal.errors import MlsError

# The sections of RFC 9420: 17.2 (wire formats), 12.1 (proposal types), 6 (content and sender types), 5.3 (credentials).
_MLS_1_0 = b"\x00\x01"
_PUBLIC_MESSAGE = b"\x00\x01"
_BASIC_CREDENTIAL = b"\x00\x01"
_SENDER_EXTERNAL = b"\x02"
_CONTENT_PROPOSAL = b"\x02"
_PROPOSAL_ADD, _PROPOSAL_REMOVE = b"\x00\x01", b"\x00\x03"
_APPEND, _REVOKE = b"\x00", b"\x01"


@dataclass(frozen=True, slots=True)
class Proposal:
    """One signed proposal: the MLSMessage to send, and the reference that a commit uses for it."""

    message: bytes
    reference: bytes


@dataclass(frozen=True, slots=True)
class CommitWelcome:
    """The parsed body of op 28. `welcome` is empty when the commit adds nobody."""

    commit: bytes
    welcome: bytes
    epoch: int
    committer_leaf: int
    proposal_references: tuple[bytes, ...]


def vector(body: bytes) -> bytes:
    """Return `body` with its variable-size length header (RFC 9420 section 2.1.2)."""
    size = len(body)
    if size < 1 << 6:
        return bytes([size]) + body
    if size < 1 << 14:
        return struct.pack(">H", 0x4000 | size) + body
    return struct.pack(">I", 0x8000_0000 | size) + body


class _Reader:
    """Reads untrusted bytes in order."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.position = 0

    def take(self, size: int) -> bytes:
        taken = self._body[self.position : self.position + size]
        if len(taken) != size:
            raise MlsError(f"An MLS message ends {size - len(taken)} bytes too early.")
        self.position += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self) -> bytes:
        first = self.number(1)
        more = (1 << (first >> 6)) - 1
        return self.take((first & 0x3F) << (8 * more) | self.number(more))

    def skip_vectors(self, count: int) -> None:
        for _ in range(count):
            self.vector()

    @property
    def at_end(self) -> bool:
        return self.position == len(self._body)


class ExternalSender:
    """The voice gateway's signing identity for one group (a voice channel)."""

    def __init__(self, group_id: int) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._group_id = struct.pack(">Q", group_id)
        public = self._key.public_key().public_bytes(
            serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        )
        # The body of op 25 is a SignatureKey, then a basic credential.
        self.package = vector(public) + _BASIC_CREDENTIAL + vector(b"roomtone-local-voice-gateway")

    def add(self, epoch: int, key_package: bytes) -> Proposal:
        """Return the signed proposal that adds the owner of `key_package` in `epoch`."""
        return self._proposal(epoch, _PROPOSAL_ADD + key_package)

    def remove(self, epoch: int, leaf: int) -> Proposal:
        """Return the signed proposal that removes `leaf` in `epoch`."""
        return self._proposal(epoch, _PROPOSAL_REMOVE + struct.pack(">I", leaf))

    def _proposal(self, epoch: int, proposal: bytes) -> Proposal:
        sender = _SENDER_EXTERNAL + struct.pack(">I", 0)
        no_authenticated_data = vector(b"")
        content = (
            vector(self._group_id)
            + struct.pack(">Q", epoch)
            + sender
            + no_authenticated_data
            + _CONTENT_PROPOSAL
            + proposal
        )
        framed = _MLS_1_0 + _PUBLIC_MESSAGE + content
        signature = self._key.sign(_labelled("FramedContentTBS", framed), ec.ECDSA(hashes.SHA256()))
        # The reference hashes the AuthenticatedContent, which starts at the wire format (section 5.2).
        reference = _reference("Proposal Reference", _PUBLIC_MESSAGE + content + vector(signature))
        return Proposal(message=framed + vector(signature), reference=reference)


def append_proposals(messages: list[bytes]) -> bytes:
    """Return the body of op 27 that appends proposals."""
    return _APPEND + vector(b"".join(messages))


def revoke_proposals(references: list[bytes]) -> bytes:
    """Return the body of op 27 that revokes proposals."""
    return _REVOKE + vector(b"".join(vector(reference) for reference in references))


def split_commit_welcome(body: bytes) -> CommitWelcome:
    """Parse the body of op 28, which is a commit as PublicMessage and at most one Welcome."""
    reader = _Reader(body)
    reader.take(4)  # version, wire format
    reader.vector()  # group id
    epoch = reader.number(8)
    reader.take(1)  # sender type
    leaf = reader.number(4)
    reader.vector()  # authenticated data
    reader.take(1)  # content type
    references = _proposal_references(reader.vector())
    if reader.number(1):
        _skip_update_path(reader)
    reader.skip_vectors(3)  # signature, confirmation tag, membership tag
    commit, welcome = body[: reader.position], body[reader.position :]
    return CommitWelcome(commit, welcome, epoch=epoch, committer_leaf=leaf, proposal_references=references)


def _proposal_references(proposals: bytes) -> tuple[bytes, ...]:
    reader = _Reader(proposals)
    references: list[bytes] = []
    while not reader.at_end:
        reader.take(1)  # DAVE allows no proposals by value
        references.append(reader.vector())
    return tuple(references)


def _skip_update_path(reader: _Reader) -> None:
    reader.skip_vectors(2)  # encryption key, signature key
    reader.take(2)  # credential type
    reader.skip_vectors(6)  # identity, capabilities
    reader.take(1)  # source of the leaf
    reader.skip_vectors(4)  # parent hash, extensions, signature; path nodes


def _labelled(label: str, content: bytes) -> bytes:
    """Return the bytes of a SignContent (RFC 9420 section 5.1.2)."""
    return vector(b"MLS 1.0 " + label.encode()) + vector(content)


def _reference(label: str, content: bytes) -> bytes:
    """Return the RefHash (RFC 9420 section 5.2)."""
    return hashlib.sha256(vector(b"MLS 1.0 " + label.encode()) + vector(content)).digest()
