"""The parts of MLS (RFC 9420) that a DAVE voice gateway reads and writes.

The voice gateway is not a member of the group. It signs Add and Remove proposals as an external sender, and reads the
members' commits to choose a valid commit. This module checks the form of messages; `delivery` checks their contents.
Malformed bytes raise `MlsError` and no other error.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from rehearsal.errors import MlsError

# The sections of RFC 9420: 17.2 (wire formats), 12.1 (proposal types), 6 (content and sender types), 5.3 (credentials).
_MLS_1_0 = b"\x00\x01"
_PUBLIC_MESSAGE = b"\x00\x01"
_SUITE_P256 = b"\x00\x02"  # DHKEMP256_AES128GCM_SHA256_P256, DAVE's only suite
_BASIC_CREDENTIAL = b"\x00\x01"
_SENDER_MEMBER, _SENDER_EXTERNAL = b"\x01", b"\x02"
_CONTENT_PROPOSAL, _CONTENT_COMMIT = b"\x02", b"\x03"
_PROPOSAL_ADD, _PROPOSAL_REMOVE = b"\x00\x01", b"\x00\x03"
_BY_REFERENCE = 2
_LEAF_FROM_KEY_PACKAGE, _LEAF_FROM_COMMIT = 1, 3
# Key packages of DAVE clients never expire (protocol.md, "Key Packages, Validation").
_WHOLE_LIFETIME = struct.pack(">QQ", 0, 2**64 - 1)

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
    welcomed: frozenset[bytes]  # references of the key packages that the welcome is for


def vector(body: bytes) -> bytes:
    """Return `body` with its variable-size length header (RFC 9420 section 2.1.2)."""
    size = len(body)
    if size < 1 << 6:
        return bytes([size]) + body
    if size < 1 << 14:
        return struct.pack(">H", 0x4000 | size) + body
    if size < 1 << 30:
        return struct.pack(">I", 0x8000_0000 | size) + body
    raise MlsError("An MLS vector holds less than 2^30 bytes.")


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

    def expect(self, expected: bytes, what: str) -> None:
        found = self.take(len(expected))
        if found != expected:
            raise MlsError(f"The {what} of an MLS message is {found.hex()}, not {expected.hex()}.")

    def vector(self) -> bytes:
        first = self.take(1)[0]
        prefix = first >> 6
        if prefix == 3:
            raise MlsError("An MLS vector's length has the reserved prefix 3.")
        length = ((first & 0x3F) << (8 * ((1 << prefix) - 1))) | self.number((1 << prefix) - 1)
        if prefix and length < 1 << (8 * (1 << (prefix - 1)) - 2):
            raise MlsError("An MLS vector's length is not in its shortest form.")
        return self.take(length)

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


def key_package_reference(key_package: bytes) -> bytes:
    """Return the reference by which a welcome names `key_package` (RFC 9420 section 5.2)."""
    return _reference("KeyPackage Reference", key_package)


def check_key_package(key_package: bytes, *, user_id: int) -> None:
    """Raise `MlsError` unless `body` is a valid key package of this user (protocol.md, "Key Packages, Validation")."""
    reader = _Reader(key_package)
    reader.expect(_MLS_1_0, "version")
    reader.expect(_SUITE_P256, "cipher suite")
    reader.vector()  # init key
    leaf_start = reader.position
    reader.vector()  # encryption key
    signature_key = reader.vector()
    reader.expect(_BASIC_CREDENTIAL, "credential type")
    identity = reader.vector()
    reader.skip_vectors(5)  # capabilities
    if reader.number(1) != _LEAF_FROM_KEY_PACKAGE:
        raise MlsError("A key package's leaf must come from a key package.")
    reader.expect(_WHOLE_LIFETIME, "lifetime")
    reader.vector()  # leaf extensions
    leaf = key_package[leaf_start : reader.position]
    leaf_signature = reader.vector()
    reader.vector()  # key package extensions
    signed = key_package[: reader.position]
    signature = reader.vector()
    if not reader.at_end:
        raise MlsError("A key package has bytes after its end.")
    if identity != struct.pack(">Q", user_id):
        raise MlsError("A key package names another user than the one who sent it.")
    _verify(signature_key, leaf_signature, _labelled("LeafNodeTBS", leaf))
    _verify(signature_key, signature, _labelled("KeyPackageTBS", signed))


def split_commit_welcome(body: bytes) -> CommitWelcome:
    """Parse the body of op 28, which is a commit as PublicMessage and at most one Welcome.

    A commit may contain only references to proposals: DAVE forbids proposals by value (protocol.md, "Voice Gateway
    Commit Validity").
    """
    reader = _Reader(body)
    reader.expect(_MLS_1_0 + _PUBLIC_MESSAGE, "framing")
    reader.vector()  # group id
    epoch = reader.number(8)
    reader.expect(_SENDER_MEMBER, "sender type")
    leaf = reader.number(4)
    reader.vector()  # authenticated data
    reader.expect(_CONTENT_COMMIT, "content type")
    references = _proposal_references(reader.vector())
    if _optional(reader):
        _skip_update_path(reader)
    reader.skip_vectors(3)  # signature, confirmation tag, membership tag
    commit, welcome = body[: reader.position], body[reader.position :]
    return CommitWelcome(
        commit=commit,
        welcome=welcome,
        epoch=epoch,
        committer_leaf=leaf,
        proposal_references=references,
        welcomed=_welcomed(welcome) if welcome else frozenset(),
    )


def _proposal_references(proposals: bytes) -> tuple[bytes, ...]:
    reader = _Reader(proposals)
    references: list[bytes] = []
    while not reader.at_end:
        if reader.number(1) != _BY_REFERENCE:
            raise MlsError("A commit holds a proposal by value, which DAVE does not allow.")
        references.append(reader.vector())
    if not references or len(set(references)) != len(references):
        raise MlsError("A commit names each of its proposals once, and at least one.")
    return tuple(references)


def _skip_update_path(reader: _Reader) -> None:
    reader.skip_vectors(2)  # encryption key, signature key
    reader.expect(_BASIC_CREDENTIAL, "credential type")
    reader.vector()  # identity
    reader.skip_vectors(5)  # capabilities
    if reader.number(1) != _LEAF_FROM_COMMIT:
        raise MlsError("The leaf of a commit's update path must come from that commit.")
    reader.skip_vectors(4)  # parent hash, extensions, signature; path nodes


def _welcomed(welcome: bytes) -> frozenset[bytes]:
    reader = _Reader(welcome)
    reader.expect(_SUITE_P256, "cipher suite")
    secrets = _Reader(reader.vector())
    reader.vector()  # encrypted group info
    if not reader.at_end:
        raise MlsError("A welcome has bytes after its end.")
    welcomed: set[bytes] = set()
    while not secrets.at_end:
        welcomed.add(secrets.vector())
        secrets.skip_vectors(2)  # KEM output, ciphertext
    return frozenset(welcomed)


def _optional(reader: _Reader) -> bool:
    present = reader.number(1)
    if present > 1:
        raise MlsError("An optional MLS value has a presence byte other than 0 and 1.")
    return present == 1


def _labelled(label: str, content: bytes) -> bytes:
    """Return the bytes of a SignContent (RFC 9420 section 5.1.2)."""
    return vector(b"MLS 1.0 " + label.encode()) + vector(content)


def _reference(label: str, content: bytes) -> bytes:
    """Return the RefHash (RFC 9420 section 5.2)."""
    return hashlib.sha256(vector(b"MLS 1.0 " + label.encode()) + vector(content)).digest()


def _verify(public: bytes, signature: bytes, content: bytes) -> None:
    try:
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public)
        key.verify(signature, content, ec.ECDSA(hashes.SHA256()))
    except (ValueError, InvalidSignature) as error:
        raise MlsError("A key package's signature does not fit its key.") from error
